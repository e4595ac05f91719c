"""`matched`: perturbation at the epsilon where it keeps as much as another, found by searching (Riecker 2023).

Epsilons of different mechanisms, maps and mappings are different promises. What can be compared is what they do: at an
equal privacy against one attacker, which keeps more of the task, or at an equal utility, which hides more? The epsilon
is searched for by bisection of its logarithm between `low` and `high`, with new noise in each of `rounds` rounds, so
that on the validation rows the learner of `hold` keeps `share` of the way from its floor to what it reaches without
noise. At that epsilon noise is drawn once more, and both learners are trained on it and scored on the test rows.

    epsilon                    where the search ended; "reached" is 1 if `low` keeps less than `share`, and `high` more
    task, attacker macro-F1    of the label and of the private column, on test rows
    task, attacker kept        share of the way from the floor to no noise, with intervals over test rows; nothing where
                               no noise is no better than the floor
    words kept                 by a mapping that gives words

The search reads validation rows, and many draws were made of the training texts: these are scores of an experiment. A
release at the epsilon that was found would have to pay for the search.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

import numpy as np
from pydantic import Field

from tacit.arrays import Ids
from tacit.engines.blocks import content_digest
from tacit.errors import BadInputError
from tacit.evaluation.downstream import floor_of, item_statistic
from tacit.evaluation.scores import bootstrap_interval
from tacit.experiments.config import Parameters
from tacit.experiments.inputs import check_apart, check_column, check_labeled, check_part, data_in
from tacit.experiments.raw import read_json, read_part, write_json
from tacit.experiments.steps import Input, Kind, PlannedCell, Progress
from tacit.experiments.steps.downstream import RESAMPLES
from tacit.experiments.steps.perturb import LARGEST_HALF, Perturb, kept_interval, spaces
from tacit.experiments.steps.perturbed_task import PerturbedTask, Pooled, Vectors, targets
from tacit.experiments.steps.rewrite import step_key
from tacit.noise.source import Source
from tacit.text.tokens import split
from tacit.words.noisy import NoisyWords

PARTS: Final = ("train", "valid", "test")


class Matched(Parameters):
    """mechanism bounding mapping lam vectors limit tokens   as of `perturb`
    secret     the private column that the attacker learns
    hold       whose score is held at `share` of what it is without noise
    """

    mechanism: Literal["laplace", "univariate-laplace", "mahalanobis"]
    bounding: str = "none"
    mapping: Literal["none", "nearest", "first-or-second"] = "none"
    lam: float = Field(default=0.2, ge=0, le=1)
    vectors: str = "default"
    limit: int | None = None
    tokens: int = Field(default=48, ge=1)
    secret: str
    hold: Literal["task", "attacker"] = "attacker"
    share: float = Field(default=0.5, gt=0, lt=1)
    low: float = Field(default=0.1, gt=0)
    high: float = Field(default=1000.0, gt=0)
    rounds: int = Field(default=6, ge=1)
    seed: int = 1
    test_seed: int | None = None

    def perturb(self, epsilon: float) -> Perturb:
        return Perturb(
            mechanism=self.mechanism, epsilon=epsilon, bounding=self.bounding, mapping=self.mapping, lam=self.lam,
            vectors=self.vectors, limit=self.limit, tokens=self.tokens,
        )  # fmt: skip


@dataclass(frozen=True)
class Texts:
    """The words of one part, by their numbers, and how many each text has."""

    ids: Ids
    lengths: list[int]

    def cut(self, flat: np.ndarray) -> Vectors:
        return [np.asarray(rows) for rows in np.split(flat, np.cumsum(self.lengths)[:-1])]


def run(parameters: Matched, inputs: Mapping[str, Path], folder: Path, progress: Progress) -> None:
    rows = {part: read_part(inputs["data"], part) for part in PARTS}
    labels = {
        "task": {part: targets(PerturbedTask(target="label"), rows[part]) for part in PARTS},
        "attacker": {part: targets(PerturbedTask(target=parameters.secret), rows[part]) for part in PARTS},
    }
    space = spaces(parameters.vectors, parameters.limit, parameters.bounding)
    texts: dict[str, Texts] = {}
    for part in PARTS:
        words = [space.lexicon.ids(split(text)[: parameters.tokens]) for text in rows[part].joined]
        texts[part] = Texts(np.array([i for row in words for i in row], dtype=np.int64), [len(row) for row in words])
    plain = {part: texts[part].cut(space.vectors[texts[part].ids]) for part in PARTS}
    key = step_key(folder, parameters.test_seed)
    digest = content_digest([text for part in PARTS for text in rows[part].joined], str(parameters).encode())
    draws = iter(range(10 * parameters.rounds + 10))

    words_kept: dict[str, float] = {}

    def noisy(epsilon: float, part: str, source: Source) -> Vectors:
        mechanism = parameters.perturb(epsilon).build()
        mechanism.prepare()
        ids = texts[part].ids
        if parameters.mapping == "none" and isinstance(mechanism, NoisyWords):
            flat = np.clip(mechanism.noisy_vectors(ids, source), -LARGEST_HALF, LARGEST_HALF).astype(np.float16)
            return texts[part].cut(flat.astype(np.float32))
        words = mechanism.draw(ids, source)
        words_kept[part] = float((words == ids).mean())
        return texts[part].cut(space.vectors[words])

    def predicted(name: str, vectors: Mapping[str, Vectors], part: str) -> list[str]:
        learner = Pooled().fit(vectors["train"], labels[name]["train"], parameters.seed)
        return learner.predict(vectors[part])

    def drawn(epsilon: float, *parts: str) -> dict[str, Vectors]:
        return {part: noisy(epsilon, part, key.stream(next(draws), digest)) for part in parts}

    def kept(epsilon: float) -> float:
        said = predicted(parameters.hold, drawn(epsilon, "train", "valid"), "valid")
        return share_kept(labels[parameters.hold], "valid", said, ceiling)

    ceiling = predicted(parameters.hold, plain, "valid")
    ends = kept(parameters.low), kept(parameters.high)
    epsilon = bisected(kept, parameters, progress)
    last = drawn(epsilon, "train", "test")
    said = {name: predicted(name, last, "test") for name in labels}
    ceilings = {name: predicted(name, plain, "test") for name in labels}
    write_json(
        folder / "matched.json",
        {
            "epsilon": epsilon, "reached": float(ends[0] <= parameters.share <= ends[1]), "labels": labels,
            "predicted": said, "without noise": ceilings, "words kept": words_kept.get("test"),
            "lengths": texts["test"].lengths,
        },
    )  # fmt: skip


def bisected(kept: Callable[[float], float], parameters: Matched, progress: Progress) -> float:
    """The epsilon at which about the wanted share is kept, if more is kept the larger it is."""
    low, high = math.log(parameters.low), math.log(parameters.high)
    for done in range(parameters.rounds):
        middle = (low + high) / 2
        if kept(math.exp(middle)) < parameters.share:
            low = middle
        else:
            high = middle
        progress(done + 1, parameters.rounds)
    return math.exp((low + high) / 2)


def share_kept(labels: Mapping[str, list[str]], part: str, said: list[str], ceiling: list[str]) -> float:
    """(macro-F1 - floor) / (macro-F1 without noise - floor); 0 where there is nothing to keep."""
    everything = np.arange(len(said))
    floor = floor_of("classification", labels["train"], labels[part]).value
    value, most = (float(item_statistic("classification", labels[part], [x])(everything)) for x in (said, ceiling))
    return (value - floor) / (most - floor) if most > floor else 0.0


def score(folder: Path) -> dict[str, float]:
    outcome = read_json(folder / "matched.json")
    numbers = {"epsilon": float(outcome["epsilon"]), "reached": outcome["reached"]}
    if outcome["words kept"] is not None:
        lengths = np.array(outcome["lengths"], dtype=np.int32)
        numbers |= kept_interval(outcome["words kept"], lengths).named("words kept")
    for name, labels in outcome["labels"].items():
        truth = labels["test"]
        floor = floor_of("classification", labels["train"], truth).value
        said = item_statistic("classification", truth, [outcome["predicted"][name]])
        most = item_statistic("classification", truth, [outcome["without noise"][name]])
        reached = bootstrap_interval(said, len(truth), resamples=RESAMPLES)
        numbers |= reached.named(f"{name} macro-F1")
        # What is reached without noise is the same for all cells of a data set: it is a unit, not a measurement.
        way = float(most(np.arange(len(truth)))) - floor
        if way > 0:
            numbers |= reached.plus(-floor).times(1 / way).named(f"{name} kept")
    return numbers


def check(parameters: Matched, inputs: frozenset[str] = frozenset()) -> None:
    if parameters.low >= parameters.high:
        raise BadInputError("empty-search", "the search needs a 'low' below 'high'")


def fits(parameters: Matched, inputs: Mapping[str, PlannedCell]) -> None:
    data = data_in(inputs)
    check_labeled(data)
    check_column(data, parameters.secret, "secret")
    for part in PARTS:
        check_part(data, part, part)
    check_apart(data, "train", "test")
    check_apart(data, "train", "valid")
    check_apart(data, "valid", "test")


KIND = Kind(
    "matched", 1, Matched, run, score, {"data": Input(("data",))}, check,
    measures=("epsilon", "task kept", "attacker kept", "task macro-F1", "attacker macro-F1", "words kept", "reached"),
    fits=fits,
)  # fmt: skip
