"""`guessing`: a language model of this experiment guesses masked words of released texts (Yue et al. 2021, table 3).

The attack is mask token inference (`tacit.auditing.text.mask_inference`); the question is whether a model that was
pretrained on rewritten text is the better attacker. "defended" is the share of words that it does not recover, "gained"
how much more that is than for the original text. An attack that fails proves nothing about better ones: the same two
scores "where the attack works" are there only if the model recovers clearly more words of the original text than
whoever always says the most frequent one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

from pydantic import Field

from tacit.auditing import binomial
from tacit.auditing.text.mask_inference import infer_masked
from tacit.auditing.text.pairs import TextPairs
from tacit.errors import require
from tacit.evaluation.scores import Interval
from tacit.experiments.config import Parameters
from tacit.experiments.raw import read_json, read_part, read_released, write_json
from tacit.experiments.steps import Input, Kind, PlannedCell, Progress
from tacit.experiments.steps.rewrite import check_both
from tacit.experiments.steps.sanitized import MODEL

WORKS = 0.05  # so much more of the original words must be recovered than by the most frequent word


class Guessing(Parameters):
    part: str = "test"
    words: int = Field(default=600, ge=10)
    seed: int = 0


def run(parameters: Guessing, inputs: Mapping[str, Path], folder: Path, progress: Progress) -> None:
    rows, released = read_part(inputs["data"], parameters.part).texts, read_released(inputs["texts"], parameters.part)
    originals, shown = ([text for texts in some for text in texts] for some in (rows, released))
    inferred = infer_masked(
        TextPairs(originals, shown, {}), inputs["model"] / MODEL, tokens=parameters.words, seed=parameters.seed,
        progress=progress,
    )  # fmt: skip
    write_json(folder / "success.json", {**inferred.recovered.numbers(), "unchanged": inferred.unchanged})


def score(folder: Path) -> dict[str, float]:
    success = {name: float(value) for name, value in read_json(folder / "success.json").items()}
    ends = {f"rate.{end}": success[end] for end in ("low", "high", "floor", "ceiling")}
    words = int(success["cases"])
    defended = Interval(1 - success["rate"], 1 - success["high"], 1 - success["low"], words)
    intervals = {"defended": defended, "gained": gained(defended, of_words(success["ceiling"], words))}
    if success["ceiling"] - success["floor"] > WORKS:
        intervals |= {f"{name} where the attack works": interval for name, interval in intervals.items()}
    intervals["unchanged words"] = of_words(success["unchanged"], words)
    shown = {end: value for name, interval in intervals.items() for end, value in interval.named(name).items()}
    return {"rate": success["rate"], **ends, **shown}


def of_words(share: float, words: int) -> Interval:
    return Interval(share, *binomial.interval(round(share * words), words), words)


def gained(defended: Interval, ceiling: Interval) -> Interval:
    """defended - (1 - ceiling), from the intervals of both (Newcombe 1998). Which words were recovered twice is not
    known; taken as independent, the two give an interval that is rather too wide, since easy words are easy twice."""
    value = defended.value - (1 - ceiling.value)
    below = math.hypot(defended.value - defended.low, ceiling.value - ceiling.low)
    above = math.hypot(defended.high - defended.value, ceiling.high - ceiling.value)
    return Interval(value, value - below, value + above, defended.count)


def check(parameters: Guessing, inputs: frozenset[str] = frozenset()) -> None:
    require("torch", extra="training", purpose="a language model that attacks texts")


def fits(parameters: Guessing, inputs: Mapping[str, PlannedCell]) -> None:
    check_both(inputs, parameters.part)


KIND = Kind(
    "guessing", 1, Guessing, run, score,
    {"data": Input(("data",)), "texts": Input(("rewrite",)), "model": Input(("sanitized",))}, check,
    measures=("defended", "gained", "rate", "unchanged words", "defended where the attack works",
              "gained where the attack works"), fits=fits,
)  # fmt: skip
