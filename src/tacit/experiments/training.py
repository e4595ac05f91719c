"""A training as a step of an experiment: a job of `tacit.jobs.train` whose folder lies in the `RUN_FOLDER` of the step.

The run keeps its checkpoints beside it, with the key of its noise: a step that was killed goes on with the same samples
and the same noise, and the key is gone when the training is finished. Predictions are always those of the saved model.
"""

from __future__ import annotations

import itertools
import math
import time
from collections import Counter
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tacit.errors import BadInputError, require
from tacit.experiments.raw import write_json, write_lines
from tacit.experiments.steps import RUN_FOLDER, Progress
from tacit.experiments.task_rows import TaskName, TaskRows
from tacit.guarantee import Guarantee
from tacit.jobs.train import CONFIGS, TrainConfig
from tacit.jobs.training.result import TrainingProgress
from tacit.lineage import CARD
from tacit.precision import Precision
from tacit.training.plan import TrainingPlan
from tacit.training.start import is_from_scratch

if TYPE_CHECKING:
    from tacit.training.run import StepReport

JOBS: Final[dict[TaskName, tuple[str, tuple[str, ...]]]] = {
    "classification": ("classify", ("text", "label")),
    "pairs": ("classify", ("text", "label", "pair")),
    "tagging": ("tag", ("text", "tags")),
    "answering": ("answer", ("question", "context", "answer")),
}
"""The job and the roles of the rows of each task."""


def training_folder(folder: Path) -> Path:
    """The folder of the model of a step; a step that an earlier version began has it one level higher."""
    place = folder / RUN_FOLDER
    return place if (place / "private").exists() or (place / CARD).exists() else place / "training"


def training_config(
    name: TaskName, rows: TaskRows, folder: Path, smoothing: float = 0.0, **options: Any
) -> TrainConfig:
    """The job that trains a model for a task in the folder of a step."""
    job, roles = JOBS[name]
    options |= {f"{role}_column": role for role in roles}
    if job == "classify":
        options["label_smoothing"] = smoothing
    return CONFIGS[job](data=rows, output=training_folder(folder), **options)


class _Clock(TrainingProgress):
    """The progress of a step, and the processor time after each step of the training."""

    def __init__(self, progress: Progress, after_first: Callable[[], None] = lambda: None) -> None:
        self._progress = progress
        self._after_first = after_first
        self._times: list[tuple[int, float]] = []
        self._epoch = 0.0

    def planned(self, plan: TrainingPlan, notes: tuple[str, ...]) -> None:
        self._epoch = plan.records / plan.batch
        # What the progress says about epsilon is worked out beforehand: it is no part of the cost of an epoch.
        for step in range(plan.steps):
            plan.epsilon_at_most(step + 1)

    def prepared(self, done: int, total: int) -> None:
        self._progress(done, total)

    def stepped(self, now: StepReport) -> None:
        if not self._times:
            self._after_first()
        self._times.append((now.step, time.process_time()))
        self._progress(now.step, now.steps)

    def remarked(self, message: str) -> None:
        """Nothing: remarks are private, and nobody looks on."""

    def warned(self, message: str) -> None:
        """Nothing, in the same way."""

    @property
    def step_seconds(self) -> list[float]:
        """Processor seconds of each step after the first."""
        times = [time for _, time in self._times]
        return [after - before for before, after in itertools.pairwise(times)]

    @property
    def epoch_seconds(self) -> float | None:
        """Processor seconds of a pass over the records; None where fewer than two steps were taken."""
        if len(self._times) < 2:
            return None
        (first, begun), (last, ended) = self._times[0], self._times[-1]
        return (ended - begun) / (last - first) * self._epoch


def carry_out(
    config: TrainConfig, folder: Path, progress: Progress, *, released: Guarantee | None = None,
    model_name: str | None = None,
) -> Guarantee:  # fmt: skip
    """The promise of the trained model. It is trained from the beginning, from the last checkpoint, or not at all if
    that was done already."""
    from tacit.jobs.training.records import train_on_records
    from tacit.training.checkpoint import RunState, read_guarantee, run_state
    from tacit.training.private_folder import remove_training

    clock = _Clock(progress)
    state = run_state(config.output)
    if state is RunState.FINISHED:
        promise = read_guarantee(config.output)
    else:
        if state is RunState.ABSENT:  # a run that was killed before its first checkpoint may have left something
            remove_training(config.output)
        resumed = config.model_copy(update={"resume": state is RunState.UNFINISHED})
        promise = train_on_records(resumed, clock, released=released, model_name=model_name).guarantee
    write_json(
        folder / "timing.json", {"epoch_cpu_seconds": clock.epoch_seconds, "private": config.noise_epsilon < math.inf}
    )
    return promise


def seconds_of_steps(config: TrainConfig, after_first: Callable[[], None] = lambda: None) -> list[float]:
    """Processor seconds of each step of a training after the first; its model is for nothing else. `after_first` is
    called when the first step is over, and with it the preparations."""
    from tacit.jobs.training.records import train_on_records

    clock = _Clock(lambda done, total: None, after_first)
    train_on_records(config, clock)
    return clock.step_seconds


def write_predictions(
    name: TaskName, rows: TaskRows, tested: TaskRows, folder: Path, strategy: str, precision: Precision = "float32"
) -> None:
    """Write the predictions of the saved model for the test rows, beside the truth and the training labels."""
    from tacit.training.prediction import load_trained, predict_rows
    from tacit.training.strategies import apply_strategy

    task, model, tokenizer = load_trained(training_folder(folder))
    frozen = strategy == "head" or strategy.startswith("last-")
    if frozen:
        apply_strategy(model, strategy)
    predicted = predict_rows(task, model, tokenizer, tested, frozen=precision if frozen else None)
    write_lines(folder / "predictions.jsonl", ({"true": row[task.target], "predicted": said} for row, said in
                                               zip(tested, predicted, strict=True)))  # fmt: skip
    labels = Counter(
        tag for row in rows for tag in (row[task.target].split() if name == "tagging" else [row[task.target]])
    )
    counted = {} if name == "answering" else dict(sorted(labels.items()))
    write_json(folder / "about.json", {"task": name, "train labels": counted})


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
