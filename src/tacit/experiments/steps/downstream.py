"""`downstream`: train a learner on texts and labels, and test it.

    train_on   "released" texts, or "original" ones
    test_on    "released": the whole pipeline runs on released text (Yue et al. 2021, sanitization-aware fine-tuning)
               "original": what was learned from a release is used on plain text (Igamberdiev & Habernal 2023)

    tune_on    a part on which the setting of the learner is chosen (`tacit.evaluation.learners.search`), of the same
               texts as it is trained on; networks stop early by it
    unseen     test rows whose label no training row has: "refuse" the data, or "drop" them

Without an input `texts` both are the originals: the ceiling. Labels always come from the data: they are released as
they are. Scores: accuracy and macro-F1 (classes), Pearson and Spearman (similarity), F1 over entities or tokens
(tagging), with 95 % intervals over test items (bootstrap) and floors that need no text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import numpy as np

from tacit.arrays import Floats32
from tacit.documents.encoder import SentenceEncoder
from tacit.encoders import ENCODERS, Encoder, load_encoder
from tacit.errors import BadInputError, require
from tacit.evaluation import scores
from tacit.evaluation.downstream import Labeled, check_task, floor_of, item_statistic
from tacit.evaluation.learners import Task, make_learner
from tacit.evaluation.learners.neural import Validation
from tacit.evaluation.learners.search import searched
from tacit.evaluation.vectors import TextVectors, with_pieces
from tacit.experiments.config import Parameters
from tacit.experiments.inputs import check_apart, check_labeled, check_part, data_in
from tacit.experiments.raw import Rows, read_json, read_lines, read_part, read_released, write_json, write_lines
from tacit.experiments.steps import Input, Kind, PlannedCell, Progress
from tacit.experiments.steps.rewrite import check_released
from tacit.plugins import source_digest
from tacit.precision import Precision
from tacit.text.tokens import split

RESAMPLES = 500


class Downstream(Parameters):
    """precision   of the vectors of a probe: "fast" takes half the time on processors that compute with 16 bits"""

    learner: Literal["probe", "tfidf", "lstm", "transformer"] = "probe"
    encoder: str = "minilm"
    precision: Precision = "float32"
    train: str = "train"
    test: str = "test"
    train_on: Literal["released", "original"] = "released"
    test_on: Literal["released", "original"] = "released"
    unseen: Literal["refuse", "drop"] = "refuse"
    tune_on: str | None = None
    seed: int = 1


def run(parameters: Downstream, inputs: Mapping[str, Path], folder: Path, progress: Progress) -> None:
    data, texts = inputs["data"], inputs.get("texts")
    task = _named_task(read_json(data / "about.json")["task"])
    train = labeled(task, data, texts if parameters.train_on == "released" else None, parameters.train)
    test = labeled(task, data, texts if parameters.test_on == "released" else None, parameters.test)
    if parameters.unseen == "drop" and task in ("classification", "pairs"):
        test = _learnable(train, test)
    check_task(task, train, test)
    vectors: TextVectors | None = None
    if parameters.learner in ("probe", "transformer"):
        vectors = TextVectors(encoder(parameters.encoder, parameters.precision))
    facts: dict[str, object] = {}
    if parameters.tune_on is None:
        learner = make_learner(parameters.learner, task, vectors, progress)
        learner.fit(train.texts, train.labels, parameters.seed)
    else:
        held = labeled(task, data, texts if parameters.train_on == "released" else None, parameters.tune_on)
        best = searched(
            lambda: make_learner(parameters.learner, task, vectors, progress),
            task, train.texts, train.labels, Validation(held.texts, held.labels), parameters.seed,
        )  # fmt: skip
        learner, facts = best.learner, {"factor": best.factor, "validation": list(best.scores.values())}
    predicted = learner.predict(test.texts)
    write_lines(folder / "predictions.jsonl", ({"true": a, "predicted": b} for a, b in
                                               zip(test.labels, predicted, strict=True)))  # fmt: skip
    about = {"task": task, "learner": learner.name, "train labels": train.labels, **facts}
    write_json(folder / "about.json", about)


def _learnable(train: Labeled, test: Labeled) -> Labeled:
    """The test rows whose label stands in the training rows as well."""
    known = set(train.labels)
    kept = [place for place, label in enumerate(test.labels) if label in known]
    return Labeled([test.texts[i] for i in kept], [test.labels[i] for i in kept])


class RememberingEncoder(SentenceEncoder):
    """Remembers the vectors of the last lists of texts: many steps of a process ask for the same originals.

    Only a whole list is known again, because vectors depend, by rounding, on the texts they are computed with: so a
    step gets the same numbers in every process, whatever ran there before.
    """

    MOST_VECTORS = 40_000

    def __init__(self, name: str, precision: Precision = "float32") -> None:
        super().__init__(name, precision=precision)
        self._lists: dict[tuple[str, ...], Floats32] = {}

    def encode(self, texts: Sequence[str], progress: Progress | None = None) -> Floats32:
        key = tuple(texts)
        vectors = self._lists.pop(key, None)
        if vectors is None:
            vectors = super().encode(key, progress)
        self._lists[key] = vectors
        while len(self._lists) > 1 and sum(map(len, self._lists)) > self.MOST_VECTORS:
            del self._lists[next(iter(self._lists))]
        return vectors.copy()


@lru_cache(maxsize=3)
def encoder(name: str, precision: Precision = "float32") -> Encoder:
    """Loaded once per process."""
    return load_encoder(name) if name in ENCODERS else RememberingEncoder(name, precision)


def code_of_encoder(name: str) -> dict[str, str]:
    """The hash of the code of a plug-in's encoder, for the key of a step; nothing for any other."""
    digest = source_digest(ENCODERS[name]) if name in ENCODERS else None
    return {} if digest is None else {"encoder of a plug-in": digest}


def labeled(task: Task, data: Path, released: Path | None, part: str) -> Labeled:
    """Texts as the task wants them (strings, pairs, tokens), with the labels of the data."""
    rows = read_part(data, part)
    texts = rows.texts if released is None else read_released(released, part)
    labels = _labels(task, rows)
    if task in ("pairs", "similarity"):
        return Labeled([(row[0], row[1]) for row in texts], labels)
    if task == "classification":
        return Labeled([row[0] for row in texts], labels)
    tokens = [row[0].split() if released is None else _tokens(row[0], len(tags)) for row, tags in
              zip(texts, labels, strict=True)]  # fmt: skip
    fits = [place for place, tags in enumerate(labels) if len(tokens[place]) == len(tags)]
    return Labeled([tokens[i] for i in fits], [labels[i] for i in fits])


def _tokens(text: str, wanted: int) -> list[str]:
    """Released tokens: those of the mechanisms, or the words between white space where only these fit the tags."""
    tokens = split(text)
    return tokens if len(tokens) == wanted else text.split()


def _labels(task: Task, rows: Rows) -> list[Any]:
    if any(label is None or not label.strip() for label in rows.labels):
        raise BadInputError(
            "row-without-label",
            "a row has no label: name the column with 'label', or leave such rows out with 'where'",
        )
    labels = [str(label) for label in rows.labels]
    if task == "tagging":
        return [label.split() for label in labels]
    if task == "similarity":
        return [float(label) for label in labels]
    return list(labels)


def score(folder: Path) -> dict[str, float]:
    about = read_json(folder / "about.json")
    rows = list(read_lines(folder / "predictions.jsonl"))
    return scores_of(about["task"], about["train labels"], [r["true"] for r in rows], [r["predicted"] for r in rows])


def scores_of(task: Task, train: Sequence[Any], truth: Sequence[Any], predicted: Sequence[Any]) -> dict[str, float]:
    """The scores of one run with their intervals over test items and their floors."""
    statistic = item_statistic(task, truth, [predicted])
    main = scores.bootstrap_interval(statistic, len(truth), resamples=RESAMPLES)
    floor = floor_of(task, train, truth).value
    if task == "similarity":
        similarity = scores.similarity_scores(truth, predicted)
        gold, said = np.asarray(truth), np.asarray(predicted)
        also = scores.bootstrap_interval(lambda at: scores.pearson(gold[at], said[at]), len(truth), resamples=RESAMPLES)
        return {**with_interval("spearman", main, floor), **with_interval("pearson", also, 0.0),
                **scores.t_interval(np.abs(gold - said).tolist()).named("mean absolute error"),
                "score": similarity.pearson, "score.low": also.low, "score.high": also.high,
                "score.floor": 0.0}  # fmt: skip
    if task == "tagging":
        name = "entity F1" if scores.marks_entities(truth) else "macro-F1"
        return {**with_interval(name, main, floor), **with_interval("score", main, floor)}
    right = np.array([str(a) == str(b) for a, b in zip(truth, predicted, strict=True)], dtype=np.float64)
    accuracy = scores.mean_interval(right, resamples=RESAMPLES)
    # The accuracy of the better of: the majority class of the training labels, a fair draw among them.
    majority = scores.most_frequent(train)
    blind = max(float(np.mean([str(label) == str(majority) for label in truth])), 1.0 / len(set(train)))
    return {**with_interval("macro-F1", main, floor), **with_interval("accuracy", accuracy, blind),
            **with_interval("score", accuracy, blind)}  # fmt: skip


def with_interval(name: str, interval: scores.Interval, floor: float) -> dict[str, float]:
    return {**interval.named(name), f"{name}.floor": floor}


def check(parameters: Downstream, inputs: frozenset[str] = frozenset()) -> None:
    require("sklearn", extra="audit", purpose="a downstream task")
    check_encoder(parameters.learner, parameters.encoder, parameters.precision)


def check_encoder(learner: str, name: str, precision: Precision) -> None:
    """Say before anything runs that an encoder is missing, or told what it cannot do."""
    if precision == "fast" and learner != "probe":
        raise BadInputError(
            "precision-without-probe",
            'precision = "fast" is for learner = "probe": leave it out',
        )
    if learner in ("probe", "transformer"):
        encoder(name).dimension  # noqa: B018  # loads it, or says what is missing
    if learner == "transformer" or precision == "fast":
        with_pieces(encoder(name), "fine-tuning" if learner == "transformer" else "reduced precision")


def content(parameters: Downstream) -> dict[str, Any]:
    """The values that the key is made from: other code of a plug-in is another step."""
    # A parameter that came later counts where it is used: no earlier cell is run again.
    values = parameters.model_dump(exclude={"tune_on"} if parameters.tune_on is None else set())
    return {**values, **code_of_encoder(parameters.encoder)}


def _named_task(task: Task | None) -> Task:
    """The task of a data set, which must name one."""
    if task is None:
        raise BadInputError(
            "data-without-task", "the data set names no task: add 'task', such as task = \"classification\""
        )
    return task


def fits_data(parameters: Downstream, inputs: Mapping[str, PlannedCell]) -> None:
    data = data_in(inputs)
    _named_task(data.task)
    check_labeled(data)
    named = {"train": (parameters.train, parameters.train_on), "test": (parameters.test, parameters.test_on)}
    for key, (part, seen) in named.items():
        check_part(data, part, key)
        if "texts" in inputs and seen == "released":
            check_released(inputs["texts"], part, key)
    check_apart(data, parameters.train, parameters.test)
    if parameters.tune_on is not None:
        check_part(data, parameters.tune_on, "tune_on")
        if "texts" in inputs and parameters.train_on == "released":
            check_released(inputs["texts"], parameters.tune_on, "tune_on")
        for other in (parameters.train, parameters.test):
            check_apart(data, parameters.tune_on, other)


KIND = Kind(
    "downstream", 2, Downstream, run, score,
    {"data": Input(("data",)), "texts": Input(("rewrite",), required=False)}, check, content,
    measures=("accuracy", "macro-F1", "pearson", "spearman", "entity F1", "score"), fits=fits_data,
    further=("mean absolute error",),
)  # fmt: skip
