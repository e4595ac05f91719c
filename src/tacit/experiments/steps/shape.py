"""`shape`: what the number of words alone tells about a text released word by word (Igamberdiev 2023, section 2.2).

A promise about single words says nothing about how many there are. An attacker who knows all originals names, for each
released text, one of those with as many words, by chance where there are several.

    same length         share of the released texts that have as many words as their original
    linked by length    share of the released texts whose original this attacker names; its floor is 1 / texts
"""

from __future__ import annotations

from collections import Counter
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


class Shape(Parameters):
    part: str = "test"


def run(parameters: Shape, inputs: Mapping[str, Path], folder: Path, progress: Progress) -> None:
    rows, released = read_part(inputs["data"], parameters.part).texts, read_released(inputs["texts"], parameters.part)
    lengths = [[len(split(" ".join(texts))) for texts in some] for some in (rows, released)]
    write_lines(
        folder / "lengths.jsonl",
        ({"original": own, "released": shown} for own, shown in zip(*lengths, strict=True)),
    )
    progress(1, 1)


def score(folder: Path) -> dict[str, float]:
    rows = list(read_lines(folder / "lengths.jsonl"))
    as_long = Counter(row["original"] for row in rows)
    same = np.array([float(row["original"] == row["released"]) for row in rows])
    linked = same / np.array([as_long[row["original"]] for row in rows])
    return with_interval("same length", mean_interval(same, resamples=RESAMPLES), 0.0) | with_interval(
        "linked by length", mean_interval(linked, resamples=RESAMPLES), 1 / len(rows)
    )


def fits(parameters: Shape, inputs: Mapping[str, PlannedCell]) -> None:
    check_both(inputs, parameters.part)


KIND = Kind(
    "shape", 1, Shape, run, score, {"data": Input(("data",)), "texts": Input(("rewrite",))},
    measures=("linked by length", "same length"), fits=fits,
)  # fmt: skip
