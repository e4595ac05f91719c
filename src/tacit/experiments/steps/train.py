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

import hashlib
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

from tacit.arrays import Floats, Integers
from tacit.card import Card
from tacit.errors import BadInputError, require
from tacit.evaluation import scores
from tacit.evaluation.collapse import MAJORITY_SHARE, majority_voting
from tacit.evaluation.predictions import plain_answer, word_overlap
from tacit.experiments.config import DataSet, Parameters
from tacit.experiments.inputs import check_apart, check_labeled, check_part, data_in
from tacit.experiments.raw import Rows, read_json, read_lines, read_part, write_json, write_lines
from tacit.experiments.steps import OF_CLASSES, OF_THE_CARD, RUN_FOLDER, Cell, Input, Kind, Progress
from tacit.experiments.steps.downstream import RESAMPLES, with_interval
from tacit.noise.source import public_generator
from tacit.precision import Precision
from tacit.report import Table
from tacit.training.start import is_from_scratch

if TYPE_CHECKING:
    from tacit.training.plan import TrainingPlan
    from tacit.training.run import TrainingRun
    from tacit.training.tasks import Task

TaskName = Literal["classification", "pairs", "tagging", "answering"]
LOST = 0.01  # the F1 up to which a class is said to be lost, as in the thesis
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
    from tacit.training.models import model_folder
    from tacit.training.origin import Origin, starting_weights, with_tokenizer
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
    from_scratch = is_from_scratch(parameters.model)
    origin = (
        with_tokenizer(Origin(from_scratch=True), "minilm")
        if from_scratch
        else starting_weights(model_folder(parameters.model))
    )
    training = TrainingRun(
        task, model, tokenizer, rows, plan, settings, folder / RUN_FOLDER, parameters.noise_seed, origin=origin
    )
    carry_out(training, folder, progress)
    write_predictions(name, rows, tested, folder, parameters.strategy, parameters.precision)
    if parameters.private:
        promise = training.promise().also_not_covered(REPEATED)
        write_json(folder / "card.json", Card(promise).to_dict())


# Rows -------------------------------------------------------------------------------------------------------------


def task_of(data: Path) -> TaskName:
    task: TaskName | None = read_json(data / "about.json")["task"]
    if task not in ("classification", "pairs", "tagging"):
        raise BadInputError(
            "untrained-task",
            "the data set has the task '{task}': models are trained for classification, pairs and tagging, or for task"
            ' = "answering" on the step',
            task=task,
        )
    return task


TaskRows = list[dict[str, str]]


def task_rows(name: TaskName, train: Rows, test: Rows, seed: int) -> tuple[TaskRows, TaskRows]:
    """Training and test rows, by the roles that a task of `tacit.training` reads."""
    for rows in (train, test):
        if any(label is None for label in rows.labels):
            raise BadInputError(
                "data-without-labels",
                "the data set names no label: add 'label' to it",
            )
    if name != "answering":
        return _plain_rows(name, train), _plain_rows(name, test)
    if len(train.texts[0]) == 2:
        return _question_rows(train), _question_rows(test)
    kinds = sorted({kind for label in train.labels for _, _, kind in scores.entities(str(label).split())})
    return questions_from_tags(train, kinds, seed), questions_from_tags(test, kinds, seed)


def _plain_rows(name: TaskName, rows: Rows) -> TaskRows:
    roles = {"classification": ("text",), "pairs": ("text", "pair"), "tagging": ("text",)}[name]
    target = "tags" if name == "tagging" else "label"
    return [
        {**dict(zip(roles, texts, strict=True)), target: str(label)}
        for texts, label in zip(rows.texts, rows.labels, strict=True)
    ]


def _question_rows(rows: Rows) -> TaskRows:
    return [
        {"question": question, "context": context, "answer": str(answer)}
        for (question, context), answer in zip(rows.texts, rows.labels, strict=True)
    ]


def questions_from_tags(rows: Rows, kinds: Sequence[str], seed: int) -> TaskRows:
    """One question about each tagged text: half of them ask for an entity that the text has once, half for a kind of
    entity that it does not have, to which the answer is nothing, as in SQuAD 2. Texts without either are left out.

    What is asked is drawn by a public hash of the text: a record decides about no other record's question.
    """
    if len(kinds) < 2:
        raise BadInputError(
            "too-few-kinds",
            "questions are made from tags such as B-artist: the data set has fewer than two kinds",
        )
    found = []
    for texts, label in zip(rows.texts, rows.labels, strict=True):
        words = texts[0].split()
        hashed = hashlib.blake2b(texts[0].encode("utf-8"), digest_size=8, key=str(seed).encode("utf-8"))
        generator = public_generator(int.from_bytes(hashed.digest(), "little"))
        there: dict[str, list[str]] = {}
        for start, end, kind in sorted(scores.entities(str(label).split())):
            there.setdefault(kind, []).append(" ".join(words[start:end]))
        once = [kind for kind in there if len(there[kind]) == 1 and kind in kinds]
        absent = [kind for kind in kinds if kind not in there]
        answerable = once and (generator.random() < 0.5 or not absent)
        choice = once if answerable else absent
        if not choice:
            continue
        kind = choice[int(generator.integers(len(choice)))]
        found.append({"question": f"{kind.replace('_', ' ')}?", "context": " ".join(words),
                      "answer": there[kind][0] if answerable else ""})  # fmt: skip
    return found


# Training ---------------------------------------------------------------------------------------------------------


def make_task(name: TaskName, length: int, smoothing: float = 0.0) -> Task:
    from tacit.training.tasks import Answering, Classification, Tagging

    if name == "tagging":
        return Tagging(length=length)
    return Answering(length=length) if name == "answering" else Classification(length=length, smoothing=smoothing)


def plan_of(parameters: Train, records: int) -> TrainingPlan:
    from tacit.training.plan import TrainingPlan

    if not parameters.private:
        return TrainingPlan.without_privacy(records=records, batch=parameters.batch, epochs=parameters.epochs)
    return _calibrated(parameters.epsilon, records, parameters.batch, parameters.epochs, parameters.delta)


@lru_cache(maxsize=64)
def _calibrated(epsilon: float, records: int, batch: int, epochs: float, delta: float | None) -> TrainingPlan:
    """Finding the noise takes seconds, and all strategies on the same rows need the same."""
    from tacit.training.plan import TrainingPlan

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


# Scores -----------------------------------------------------------------------------------------------------------


def score(folder: Path) -> dict[str, float]:
    about = read_json(folder / "about.json")
    rows = list(read_lines(folder / "predictions.jsonl"))
    truth, said = [row["true"] for row in rows], [row["predicted"] for row in rows]
    if about["task"] == "answering":
        found = answer_scores(truth, said)
    else:
        split = about["task"] == "tagging"
        found = class_scores([t.split() if split else [t] for t in truth], [p.split() if split else [p] for p in said],
                             about["train labels"])  # fmt: skip
        if split:
            found |= tag_scores([t.split() for t in truth], [p.split() for p in said])
    if (folder / "card.json").is_file():
        card = Card.from_json((folder / "card.json").read_text(encoding="utf-8"))
        if card.guarantee.is_private:
            found |= {"epsilon of the card": card.guarantee.epsilon, "delta of the card": card.guarantee.delta}
    return found


def class_scores(
    truth: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]], train: Mapping[str, int]
) -> dict[str, float]:
    """Scores over the labels of each row (one, or one for each word); rows are resampled for the intervals."""
    flat = [label for row in truth for label in row]
    seen = list(Counter(train).elements())
    macro = scores.bootstrap_interval(scores.token_f1_of_items(truth, [predicted]), len(truth), resamples=RESAMPLES)
    counts = np.array([len(row) for row in truth])
    hits = np.array([sum(a == b for a, b in zip(t, p, strict=True)) for t, p in zip(truth, predicted, strict=True)])
    accuracy = scores.bootstrap_interval(
        lambda at: float(hits[at].sum() / max(1, counts[at].sum())), len(truth), resamples=RESAMPLES
    )
    majority = scores.most_frequent(seen)
    blind = float(np.mean([label == majority for label in flat]))
    floor = scores.classification_floor(seen, flat).value
    found = {**with_interval("score", macro, floor), **with_interval("macro-F1", macro, floor),
             **with_interval("accuracy", accuracy, blind)}  # fmt: skip
    if scores.marks_entities(truth):
        of_items = scores.entity_f1_of_items(truth, [predicted])
        found |= with_interval("entity F1", scores.bootstrap_interval(of_items, len(truth), resamples=RESAMPLES), 0.0)
    return {**found, **signs_of_collapse(truth, predicted)}


def signs_of_collapse(truth: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]]) -> dict[str, float]:
    """Whether the model has collapsed, and the shares of the classes that occur which are never named, and which have
    hardly any F1. Whether a rare one is among them may hang on one row."""
    labels, confusion = scores.confusion_of_items(truth, predicted)

    def signs(at: Integers) -> Floats:
        matrix = confusion(at)
        occurs, named = matrix.sum(axis=1) > 0, matrix.sum(axis=0) > 0
        collapsed = majority_voting(scores.scores_of_confusion(matrix, labels)) is not None
        return np.array([collapsed, np.mean(~named[occurs]), np.mean(scores.class_f1(matrix)[occurs] <= LOST)])

    collapsed, never, lost = scores.bootstrap_intervals(signs, len(truth), resamples=RESAMPLES)
    return {**collapsed.named("collapsed"), **never.named("never predicted"), **lost.named("lost classes")}


def tag_scores(truth: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]]) -> dict[str, float]:
    """The F1 of each tag that occurs."""
    labels, confusion = scores.confusion_of_items(truth, predicted)
    occurring = np.flatnonzero(confusion(np.arange(len(truth))).sum(axis=1))

    def f1(at: Integers) -> Floats:
        return np.nan_to_num(scores.class_f1(confusion(at))[occurring])

    intervals = scores.bootstrap_intervals(f1, len(truth), resamples=RESAMPLES)
    found: dict[str, float] = {}
    for place, interval in zip(occurring, intervals, strict=True):
        found |= interval.named(f"F1 of {labels[place]}")
    return found


def answer_scores(truth: Sequence[str], predicted: Sequence[str]) -> dict[str, float]:
    """Word overlap and exact match as in the evaluation of SQuAD; always saying nothing is the floor."""
    pairs = [(plain_answer(a), plain_answer(b)) for a, b in zip(truth, predicted, strict=True)]
    overlap = np.array([word_overlap(a.split(), b.split()) for a, b in pairs])
    interval = scores.mean_interval(overlap, resamples=RESAMPLES)
    floor = float(np.mean([not a for a, _ in pairs]))
    silent = np.array([float(not b) for _, b in pairs])
    unanswered = scores.mean_interval(silent, resamples=RESAMPLES)
    collapsed = scores.bootstrap_interval(
        lambda at: float(silent[at].mean() >= MAJORITY_SHARE), len(pairs), resamples=RESAMPLES
    )
    exact = scores.mean_interval([float(a == b) for a, b in pairs], resamples=RESAMPLES)
    answerable = overlap[[bool(a) for a, _ in pairs]]
    nothing = scores.Interval(math.nan, math.nan, math.nan, 0)
    there = scores.mean_interval(answerable, resamples=RESAMPLES) if len(answerable) else nothing
    return {
        **with_interval("score", interval, floor),
        **with_interval("word F1", interval, floor),
        **exact.named("exact match"),
        **there.named("F1 where there is an answer"),
        **unanswered.named("unanswered"),
        **collapsed.named("collapsed"),
    }


# Time -------------------------------------------------------------------------------------------------------------


def epoch_costs(cells: Sequence[tuple[Mapping[str, Any], Path]]) -> Table | None:
    """CPU seconds of an epoch with and without privacy, and their ratio (thesis, table 4.13). Epsilons and seeds are
    averaged; what was computed once before the first epoch (the frozen layers) is not in it."""
    found: dict[tuple[tuple[str, Any], ...], dict[bool, list[float]]] = {}
    for axes, folder in cells:
        timing = read_json(folder / "timing.json")
        if timing["epoch_cpu_seconds"] is not None:
            place = tuple((axis, value) for axis, value in axes.items() if axis not in ("epsilon", "seed"))
            found.setdefault(place, {}).setdefault(bool(timing["private"]), []).append(timing["epoch_cpu_seconds"])
    rows = []
    for place, seconds in found.items():
        plain, private = (float(np.mean(seconds[key])) if key in seconds else None for key in (False, True))
        ratio = private / plain if plain and private else None
        rows.append([*(str(value) for _, value in place), plain, private, ratio])
    if not rows:
        return None
    columns = [*(axis for axis, _ in next(iter(found))), "without privacy", "with privacy", "ratio"]
    note = "Means over epsilons and seeds. Batches may differ; frozen layers are computed once, before the first epoch."
    return Table("CPU seconds of an epoch", columns, rows, note)


# Before anything runs ---------------------------------------------------------------------------------------------


def check(parameters: Train, inputs: frozenset[str] = frozenset()) -> None:
    check_strategy(parameters.strategy)
    require("torch", extra="training", purpose="training a model")
    if parameters.private:
        require("dp_accounting", extra="accounting", purpose="accounting for DP-SGD")
    check_network(parameters.model)


def fits(parameters: Train, inputs: Mapping[str, Cell]) -> None:
    data = data_in(inputs)
    check_rows(data, parameters.task or data.task, parameters.train, parameters.test)


def check_rows(data: DataSet, task: str | None, train: str, test: str) -> None:
    """Whether a data set has the rows that a model is trained and tested on."""
    if task not in ("classification", "pairs", "tagging", "answering"):
        has = "no task" if task is None else f"the task '{task}'"
        raise BadInputError(
            "untrained-task",
            "the data set has {has}: models are trained for classification, pairs and tagging; name one of them in "
            "'task' of the data set",
            has=has,
        )
    check_labeled(data)
    check_part(data, train, "train")
    check_part(data, test, "test")
    check_apart(data, train, test)
    there, wanted = len(data.text_columns), 2 if task == "pairs" else 1
    if there != wanted and task != "answering":
        raise BadInputError(
            "columns-of-task",
            "the task '{task}' reads {wanted} of the columns, and 'text' of the data set names {named}: change 'text' "
            "or 'task'",
            task=task,
            wanted=wanted,
            named=there,
        )


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
