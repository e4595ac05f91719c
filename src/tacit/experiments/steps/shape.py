"""`shape`: what the number of words alone tells about a text released word by word (Igamberdiev 2023, section 2.2).

A promise about single words says nothing about how many there are. An attacker counts what stands between the spaces of
a released text, and names the original, of all that were released, whose number of words is nearest to that; by chance
where there are several.

    about as long       share of the released texts whose count is within 2 % of the words of their original
    linked by length    share of the released texts whose original this attacker names; its floor is 1 / texts
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from tacit.evaluation.scores import mean_interval
from tacit.experiments.config import Parameters
from tacit.experiments.raw import read_lines, read_part, read_released, write_lines
from tacit.experiments.steps import Input, Kind, PlannedCell, Progress
from tacit.experiments.steps.downstream import RESAMPLES, with_interval
from tacit.experiments.steps.rewrite import check_both
from tacit.text.tokens import split

ABOUT = 0.02


class Shape(Parameters):
    part: str = "test"


def run(parameters: Shape, inputs: Mapping[str, Path], folder: Path, progress: Progress) -> None:
    rows, released = read_part(inputs["data"], parameters.part).texts, read_released(inputs["texts"], parameters.part)
    # Words of a vocabulary, such as ajc.com, would be cut again by the rule for texts: a release shows its spaces.
    write_lines(
        folder / "lengths.jsonl",
        (
            {"original": len(split(" ".join(own))), "released": len(" ".join(shown).split())}
            for own, shown in zip(rows, released, strict=True)
        ),
    )
    progress(1, 1)


def score(folder: Path) -> dict[str, float]:
    rows = list(read_lines(folder / "lengths.jsonl"))
    original, released = (np.array([row[name] for row in rows], dtype=np.float64) for name in ("original", "released"))
    close = (np.abs(original - released) <= ABOUT * original).astype(np.float64)
    apart = np.abs(released[:, None] - original[None, :])
    nearest = apart == apart.min(axis=1, keepdims=True)
    linked = np.diagonal(nearest) / nearest.sum(axis=1)
    return with_interval("about as long", mean_interval(close, resamples=RESAMPLES), 0.0) | with_interval(
        "linked by length", mean_interval(linked, resamples=RESAMPLES), 1 / len(rows)
    )


def fits(parameters: Shape, inputs: Mapping[str, PlannedCell]) -> None:
    check_both(inputs, parameters.part)


KIND = Kind(
    "shape", 2, Shape, run, score, {"data": Input(("data",)), "texts": Input(("rewrite",))},
    measures=("linked by length", "about as long"), fits=fits,
)  # fmt: skip
