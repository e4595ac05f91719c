"""`train`: train a model with DP-SGD, or without noise (epsilon = inf), and test it on rows that were held out.

Strategies across tasks (Senge, Igamberdiev & Habernal, EMNLP 2022; Igamberdiev 2023, chapter 4): which weights of a
pre-trained encoder should be trained when every step is noisy? One row is one record, added or removed.

Tasks are those of the data (classification, pairs, tagging) and `answering`: question, context and answer from the
data, or questions made from its tags (`questions_from_tags`).

macro-F1 comes first: accuracy hides a model that always says the same. "collapsed" is 1 for such a model
(`evaluate.collapse`), "never predicted" the share of the classes that it never names, "lost classes" the share of those
with an F1 of .01 or less, "unanswered" the share of questions to which it says nothing. Taggers have the F1 of each tag
too. What an epoch costs is kept in timing.json, outside of the scores, since it differs between equal runs.

A run keeps its checkpoints, with the key of its noise, in `RUN_FOLDER`: a step that was killed goes on from there with
the same samples and the same noise, and the key is gone when the training is finished. Predictions are always those of
the saved model.
"""

from __future__ import annotations

import math
import re
import shutil
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from pydantic import Field

from tacit.card import Card
from tacit.errors import BadInputError, require
from tacit.experiments.config import Parameters
from tacit.experiments.inputs import data_in
from tacit.experiments.raw import read_json, read_part, write_json, write_lines
from tacit.experiments.steps import OF_CLASSES, OF_THE_CARD, RUN_FOLDER, Input, Kind, PlannedCell, Progress
from tacit.experiments.task_rows import TaskName, TaskRows, check_rows, make_task, task_of, task_rows
from tacit.experiments.task_scores import score
from tacit.precision import Precision
from tacit.report import Table
from tacit.training.plan import TrainingPlan
from tacit.training.start import is_from_scratch

if TYPE_CHECKING:
    from tacit.training.run import TrainingRun
    from tacit.training.tasks import Task

REPEATED = "other models trained on the same rows by the same experiment: what they reveal adds up"
_STRATEGY = re.compile(r"full|no-embeddings|last-\d+|head|bias|lora|ia3|frozen-lstm")


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
    from tacit.jobs.training.running import origin_of
    from tacit.training.run import TrainingRun, TrainingSettings

    name = parameters.task or task_of(inputs["data"])
    train, test = (read_part(inputs["data"], part) for part in (parameters.train, parameters.test))
    rows, tested = task_rows(name, train, test, parameters.seed)
    task = make_task(name, parameters.length, parameters.smoothing)
    task.learn(rows)
    plan = plan_of(parameters, len(rows))
    model, tokenizer = load_network(task, parameters.model, parameters.strategy, parameters.seed)
    rate = parameters.learning_rate if parameters.private else parameters.plain_rate or parameters.learning_rate
    settings = TrainingSettings(
        optimizer=parameters.optimizer, learning_rate=rate, bound=parameters.bound, strategy=parameters.strategy,
        model=parameters.model, precision=parameters.precision,
    )  # fmt: skip
    origin = origin_of(parameters.model, None)
    training = TrainingRun(
        task, model, tokenizer, rows, plan, settings, folder / RUN_FOLDER, parameters.noise_seed, origin=origin
    )
    carry_out(training, folder, progress)
    write_predictions(name, rows, tested, folder, parameters.strategy, parameters.precision)
    if parameters.private:
        promise = training.promise().also_not_covered(REPEATED)
        write_json(folder / "card.json", Card(promise).to_dict())


# Training ---------------------------------------------------------------------------------------------------------


def plan_of(parameters: Train, records: int) -> TrainingPlan:
    if not parameters.private:
        return TrainingPlan.without_privacy(records=records, batch=parameters.batch, epochs=parameters.epochs)
    return _calibrated(parameters.epsilon, records, parameters.batch, parameters.epochs, parameters.delta)


@lru_cache(maxsize=64)
def _calibrated(epsilon: float, records: int, batch: int, epochs: float, delta: float | None) -> TrainingPlan:
    """Finding the noise takes seconds, and all strategies on the same rows need the same."""
    return TrainingPlan.calibrated(epsilon=epsilon, records=records, batch=batch, epochs=epochs, delta=delta)


def load_network(task: Task, model: str, strategy: str, seed: int) -> tuple[Any, Any]:
    """A model whose new weights are drawn from a public seed."""
    import torch

    from tacit.training.models import load_model
    from tacit.training.strategies import apply_strategy

    torch.manual_seed(seed)
    loaded, tokenizer = load_model(task, model)
    return apply_strategy(loaded, strategy), tokenizer


def carry_out(training: TrainingRun, folder: Path, progress: Progress) -> None:
    """Train to the end: from the beginning, from the last checkpoint, or not at all if that was done already."""
    from tacit.training.checkpoint import PRIVATE_FOLDER, STATE
    from tacit.training.run import CARD

    unfinished = (training.folder / PRIVATE_FOLDER / STATE).exists()
    clock: list[tuple[int, float]] = []
    if unfinished or not (training.folder / CARD).exists():
        if not unfinished:
            shutil.rmtree(training.folder, ignore_errors=True)
        training.prepared = progress
        # What the progress says about epsilon is worked out beforehand: it is no part of the cost of an epoch.
        for step in range(training.plan.steps):
            training.plan.epsilon_at_most(step + 1)

        def note(now: Any) -> None:
            clock.append((now.step, time.process_time()))
            progress(now.step, now.steps)

        training.run(note, resume=unfinished)
    seconds = None
    if len(clock) > 1:
        (first, begun), (last, ended) = clock[0], clock[-1]
        seconds = (ended - begun) / (last - first) * training.plan.records / training.plan.batch
    write_json(folder / "timing.json", {"epoch_cpu_seconds": seconds, "private": training.plan.private})


def write_predictions(
    name: TaskName, rows: TaskRows, tested: TaskRows, folder: Path, strategy: str, precision: Precision = "float32"
) -> None:
    """What the saved model says about the test rows, beside the truth and the training labels."""
    from tacit.training.prediction import load_trained, predict_rows
    from tacit.training.strategies import apply_strategy

    target = {"tagging": "tags", "answering": "answer"}.get(name, "label")
    task, model, tokenizer = load_trained(folder / RUN_FOLDER)
    frozen = strategy == "head" or strategy.startswith("last-")
    if frozen:
        apply_strategy(model, strategy)
    predicted = predict_rows(task, model, tokenizer, tested, frozen=precision if frozen else None)
    write_lines(folder / "predictions.jsonl", ({"true": row[target], "predicted": said} for row, said in
                                               zip(tested, predicted, strict=True)))  # fmt: skip
    labels = Counter(tag for row in rows for tag in (row[target].split() if name == "tagging" else [row[target]]))
    counted = {} if name == "answering" else dict(sorted(labels.items()))
    write_json(folder / "about.json", {"task": name, "train labels": counted})


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


def check_strategy(strategy: str) -> None:
    if _STRATEGY.fullmatch(strategy) is None:
        raise BadInputError(
            "no-such-strategy",
            "there is no strategy '{strategy}': choose full, no-embeddings, last-2, head, bias, lora, ia3 or "
            "frozen-lstm",
            strategy=strategy,
        )


@lru_cache(maxsize=16)
def check_network(model: str) -> None:
    """Whether a model can be had, without loading its weights."""
    transformers = require("transformers", extra="documents", purpose="loading a model")
    from tacit.training.models import model_folder

    if is_from_scratch(model):
        model_folder("minilm")
        return
    try:
        transformers.AutoConfig.from_pretrained(model_folder(model), trust_remote_code=False)
    except (OSError, ValueError, KeyError) as error:
        raise BadInputError(
            "model-not-found",
            "the model '{model}' is neither a folder nor can it be fetched from the model hub ({kind}): give a local "
            "folder, or a connection",
            model=model,
            kind=type(error).__name__,
        ) from None


def meaning(parameters: Train) -> str:
    return "per record"


KIND = Kind(
    "train", 4, Train, run, score, {"data": Input(("data",))}, check, epsilon=meaning,
    measures=("score", "macro-F1", "accuracy", "entity F1", "word F1", "collapsed", "never predicted", "lost classes",
              "unanswered"),
    timing=epoch_costs, fits=fits,
    further=(*OF_CLASSES, *OF_THE_CARD, "exact match", "F1 where there is an answer", "F1 of *"),
)  # fmt: skip
