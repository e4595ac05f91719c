"""`train`: train a model with DP-SGD, or without noise (epsilon = inf), and test it on rows that were held out.

Strategies across tasks (Senge, Igamberdiev & Habernal, EMNLP 2022; Igamberdiev 2023, chapter 4): which weights of a
pre-trained encoder should be trained when every step is noisy? One row is one record, added or removed.

Tasks are those of the data (classification, pairs, tagging) and `answering`: question, context and answer from the
data, or questions made from its tags (`questions_from_tags`).

macro-F1 comes first: accuracy hides a model that always says the same. "collapsed" is 1 for such a model
(`evaluate.collapse`), "never predicted" the share of the classes that it never names, "lost classes" the share of those
with an F1 of .01 or less, "unanswered" the share of questions to which it says nothing. Taggers have the F1 of each tag
too. What an epoch costs is kept in timing.json, outside of the scores, since it differs between equal runs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import Field

from tacit.card import Card
from tacit.errors import require
from tacit.experiments.config import Parameters
from tacit.experiments.inputs import data_in
from tacit.experiments.raw import read_json, read_part, write_json
from tacit.experiments.steps import OF_CLASSES, OF_THE_CARD, Input, Kind, PlannedCell, Progress
from tacit.experiments.task_rows import TaskName, check_rows, task_of, task_rows
from tacit.experiments.task_scores import score
from tacit.experiments.training import carry_out, check_network, training_config, write_predictions
from tacit.precision import Precision
from tacit.report import Table
from tacit.training.start import check_strategy

REPEATED = "other models trained on the same rows by the same experiment: what they reveal adds up"


class Train(Parameters):
    """A model (a hub name, a folder, "minilm", or "bilstm" from scratch), what is trained of it, and its budget.

    epsilon        of one row; inf trains without clipping and noise
    delta          by default well below 1 / rows
    plain_rate     learning rate without noise, where smaller steps are better
    bound          gradients are cut to this length
    precision      of the layers below the lowest trained one: "fast" takes half the time on processors that compute
                   with 16 bits
    """

    model: str = "minilm"
    strategy: str = "head"
    epsilon: float = Field(gt=0)
    delta: float | None = None
    task: TaskName | None = None
    epochs: float = Field(default=5.0, gt=0)
    batch: int = Field(default=256, ge=1)
    optimizer: Literal["adamw", "adam", "sgd"] = "adamw"
    learning_rate: float = Field(default=1e-3, gt=0)
    plain_rate: float | None = Field(default=None, gt=0)
    bound: float = Field(default=1.0, gt=0)
    length: int = Field(default=64, ge=4)
    smoothing: float = Field(default=0.0, ge=0, lt=1)
    precision: Precision = "float32"
    train: str = "train"
    test: str = "test"
    seed: int = 1
    test_seed: int | None = None

    @property
    def private(self) -> bool:
        return math.isfinite(self.epsilon)

    @property
    def noise_seed(self) -> int | None:
        """None: a key of the operating system. Without noise nothing is secret, so the samples may be repeatable."""
        return repetition_seed(self.test_seed, self.seed) if self.private else self.seed


def repetition_seed(test_seed: int | None, seed: int) -> int | None:
    """A test seed of its own for each repetition; None without a test seed."""
    return None if test_seed is None else 1_000_003 * test_seed + seed


def run(parameters: Train, inputs: Mapping[str, Path], folder: Path, progress: Progress) -> None:
    name = parameters.task or task_of(inputs["data"])
    train, test = (read_part(inputs["data"], part) for part in (parameters.train, parameters.test))
    rows, tested = task_rows(name, train, test, parameters.seed)
    rate = parameters.learning_rate if parameters.private else parameters.plain_rate or parameters.learning_rate
    config = training_config(
        name, rows, folder, parameters.smoothing, model=parameters.model, strategy=parameters.strategy,
        epsilon=parameters.epsilon, delta="auto" if parameters.delta is None else parameters.delta,
        epochs=parameters.epochs, batch=parameters.batch, optimizer=parameters.optimizer, learning_rate=rate,
        bound=parameters.bound, length=parameters.length, precision=parameters.precision, seed=parameters.noise_seed,
        start_seed=parameters.seed,
    )  # fmt: skip
    promise = carry_out(config, folder, progress)
    write_predictions(name, rows, tested, folder, parameters.strategy, parameters.precision)
    if parameters.private:
        write_json(folder / "card.json", Card(promise.also_not_covered(REPEATED)).to_dict())


# Time -------------------------------------------------------------------------------------------------------------


def epoch_costs(cells: Sequence[tuple[Mapping[str, Any], Path]]) -> Table | None:
    """CPU seconds of an epoch with and without privacy, and their ratio (thesis, table 4.13). Epsilons and seeds are
    averaged; what was computed once before the first epoch (the frozen layers) is not in it."""
    seconds_at: dict[tuple[tuple[str, Any], ...], dict[bool, list[float]]] = {}
    for axes, folder in cells:
        timing = read_json(folder / "timing.json")
        if timing["epoch_cpu_seconds"] is not None:
            place = tuple((axis, value) for axis, value in axes.items() if axis not in ("epsilon", "seed"))
            seconds_at.setdefault(place, {}).setdefault(bool(timing["private"]), []).append(timing["epoch_cpu_seconds"])
    rows = []
    for place, seconds in seconds_at.items():
        plain, private = (float(np.mean(seconds[key])) if key in seconds else None for key in (False, True))
        ratio = private / plain if plain and private else None
        rows.append([*(str(value) for _, value in place), plain, private, ratio])
    if not rows:
        return None
    columns = [*(axis for axis, _ in next(iter(seconds_at))), "without privacy", "with privacy", "ratio"]
    note = "Means over epsilons and seeds. Batches may differ; frozen layers are computed once, before the first epoch."
    return Table("CPU seconds of an epoch", columns, rows, note)


# Before anything runs ---------------------------------------------------------------------------------------------


def check(parameters: Train, inputs: frozenset[str] = frozenset()) -> None:
    check_strategy(parameters.strategy)
    require("torch", extra="training", purpose="training a model")
    if parameters.private:
        require("dp_accounting", extra="accounting", purpose="accounting for DP-SGD")
    check_network(parameters.model)


def fits(parameters: Train, inputs: Mapping[str, PlannedCell]) -> None:
    data = data_in(inputs)
    check_rows(data, parameters.task or data.task, parameters.train, parameters.test)


def meaning(parameters: Train) -> str:
    return "per record"


KIND = Kind(
    "train", 4, Train, run, score, {"data": Input(("data",))}, check, epsilon=meaning,
    measures=("score", "macro-F1", "accuracy", "entity F1", "word F1", "collapsed", "never predicted", "lost classes",
              "unanswered"),
    timing=epoch_costs, fits=fits,
    further=(*OF_CLASSES, *OF_THE_CARD, "exact match", "F1 where there is an answer", "F1 of *"),
)  # fmt: skip
