"""`perturbed_task`: learn a task, or a private attribute, from perturbed word vectors (Riecker 2023, chapter 5).

The attacker of the thesis is a learner like any other: it is trained on perturbed texts with the private labels and
tried on perturbed texts. So one step serves both: `target` is "label" (the task), a kept column (an attribute), or
"entities" (which of some names stand in the original text; several at once are one class of their own, and rare names
are repeated in training).

    pooled        logistic regression on mean, largest and smallest value of each dimension; not in the thesis, fast
    lstm          LSTM over the vectors, linear layer on top
    probe         logistic regression on frozen sentence vectors of the released words
    transformer   an encoder, fine-tuned on the released words

Scores: macro-F1 (for entities over the names), and "privacy" = 1 - macro-F1. With a `baseline` (the same learner on
unperturbed text) also "change" = macro-F1 - baseline and "privacy gain" = baseline - macro-F1, which are the Delta U
and Delta P of the thesis, with intervals over pairs: both tell about the same test texts. A macro-F1 at its floor means
that nothing is learned at all: no success of privacy alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from tacit.arrays import Floats, Integers
from tacit.errors import BadInputError, require
from tacit.evaluation import scores
from tacit.evaluation.downstream import item_statistic
from tacit.evaluation.learners import make_learner
from tacit.evaluation.learners.neural import NeuralLearner
from tacit.evaluation.vectors import TextVectors
from tacit.experiments.config import Parameters
from tacit.experiments.inputs import check_apart, check_column, check_labeled, check_part, data_in
from tacit.experiments.raw import Rows, read_json, read_lines, read_part, write_json, write_lines
from tacit.experiments.steps import Input, Kind, PlannedCell, Progress
from tacit.experiments.steps.downstream import (
    RESAMPLES,
    check_encoder,
    code_of_encoder,
    encoder,
    scores_of,
    with_interval,
)
from tacit.experiments.steps.perturb import Perturb, gives_words, read_vectors, read_words
from tacit.precision import Precision
from tacit.progress import StepProgress

NOTHING = "none"
JOINT = " + "
MOST_REPEATS = 20
Vectors = Sequence[NDArray[np.float32]]


class PerturbedTask(Parameters):
    """precision   of the vectors of a probe: "fast" takes half the time on processors that compute with 16 bits"""

    learner: Literal["pooled", "lstm", "probe", "transformer"] = "pooled"
    encoder: str = "minilm"
    precision: Precision = "float32"
    target: str = "label"
    entities: list[str] = Field(default=[])
    train: str = "train"
    test: str = "test"
    epochs: int = Field(default=3, ge=1)
    seed: int = 1


def run(parameters: PerturbedTask, inputs: Mapping[str, Path], folder: Path, progress: Progress) -> None:
    labels = {
        part: targets(parameters, read_part(inputs["data"], part)) for part in (parameters.train, parameters.test)
    }
    train, truth = labels[parameters.train], labels[parameters.test]
    if len(set(train)) < 2:
        raise BadInputError(
            "one-value-only",
            "the target '{target}' has one value only: take more rows, or another target",
            target=parameters.target,
        )
    learner: Any
    if parameters.learner in ("pooled", "lstm"):
        read: Any = read_vectors
        learner = Pooled() if parameters.learner == "pooled" else VectorLstm(parameters.epochs, progress)
    else:
        read = read_words
        vectors = TextVectors(encoder(parameters.encoder, parameters.precision))
        learner = make_learner(parameters.learner, "classification", vectors, progress)
    texts = read(inputs["vectors"], parameters.train)
    rows = balanced(train) if parameters.target == "entities" else range(len(train))
    learner.fit([texts[i] for i in rows], [train[i] for i in rows], parameters.seed)
    predicted = learner.predict(read(inputs["vectors"], parameters.test))
    write_lines(folder / "predictions.jsonl", ({"true": a, "predicted": b} for a, b in
                                               zip(truth, predicted, strict=True)))  # fmt: skip
    about: dict[str, object] = {"train labels": train, "entities": entities_of(parameters), "baseline": None}
    if "baseline" in inputs:  # the same test rows: a change is measured text by text
        about["baseline"] = [row["predicted"] for row in read_lines(inputs["baseline"] / "predictions.jsonl")]
    write_json(folder / "about.json", about)


def targets(parameters: PerturbedTask, rows: Rows) -> list[str]:
    if parameters.target == "entities":
        return [JOINT.join(named(text, parameters.entities)) or NOTHING for text in rows.joined]
    if parameters.target == "label":
        return [str(label) for label in rows.labels]
    if parameters.target not in rows.columns[0]:
        raise BadInputError(
            "column-not-kept",
            "the data set does not keep the column '{target}': name it in 'keep'",
            target=parameters.target,
        )
    return [row[parameters.target] for row in rows.columns]


def balanced(labels: Sequence[str]) -> list[int]:
    """Places of training rows in which texts with a name stand so often that they are about half of all (at most
    MOST_REPEATS times). Names are rare, and who always answers "none" is right most of the time and learns nothing."""
    with_names = [place for place, label in enumerate(labels) if label != NOTHING]
    times = min(MOST_REPEATS, (len(labels) - len(with_names)) // max(1, len(with_names)))
    return [*range(len(labels)), *with_names * max(0, times - 1)]


def named(text: str, entities: Sequence[str]) -> list[str]:
    return [name for name in entities if re.search(rf"\b{re.escape(name)}\b", text, re.IGNORECASE)]


def entities_of(parameters: PerturbedTask) -> list[str]:
    return parameters.entities if parameters.target == "entities" else []


# Learners -----------------------------------------------------------------------------------------------------------


class Pooled:
    """Logistic regression on mean, maximum and minimum of the vectors of a text, each feature scaled to variance 1."""

    name = "linear probe on pooled word vectors"

    def fit(self, texts: Vectors, labels: Sequence[str], seed: int = 0) -> Self:
        require("sklearn", extra="audit", purpose="a linear probe")
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler

        # A strong prior: there are about as many features as texts.
        model = LogisticRegression(C=0.1, max_iter=1000, random_state=seed)
        self._model = make_pipeline(StandardScaler(), model).fit(_pooled(texts), list(labels))
        return self

    def predict(self, texts: Vectors) -> list[str]:
        return [str(label) for label in self._model.predict(_pooled(texts))]


def _pooled(texts: Vectors) -> NDArray[np.float64]:
    width = max(rows.shape[1] for rows in texts)
    full = [rows if len(rows) else np.zeros((1, width), dtype=np.float32) for rows in texts]
    return np.array([[*rows.mean(axis=0), *rows.max(axis=0), *rows.min(axis=0)] for rows in full], dtype=np.float64)


class VectorLstm(NeuralLearner[NDArray[np.float32]]):
    """LSTM over given vectors, maximum over the tokens, dropout, linear: the sizes of the thesis."""

    name = "LSTM on perturbed word vectors"

    def __init__(self, epochs: int, progress: StepProgress | None = None) -> None:
        super().__init__(
            "classification", epochs=epochs, batch_size=64, learning_rate=5e-3, least_steps=120, progress=progress
        )

    def fit(self, texts: Sequence[Any], labels: Sequence[Any], seed: int = 0) -> Self:
        self._width = max(rows.shape[1] for rows in texts)
        return super().fit(texts, labels, seed)

    def _build(self, outputs: int) -> Any:
        import torch

        return torch.nn.ModuleDict(
            {
                "lstm": torch.nn.LSTM(self._width, 64, batch_first=True),
                "dropout": torch.nn.Dropout(0.1),
                "output": torch.nn.Linear(64, outputs),
            }
        )

    def _prepared(self, texts: Sequence[Any]) -> list[Any]:
        return [rows if len(rows) else np.zeros((1, self._width), dtype=np.float32) for rows in texts]

    def _scores(self, batch: Sequence[Any]) -> Any:
        import torch

        padded = torch.nn.utils.rnn.pad_sequence([torch.from_numpy(rows) for rows in batch], batch_first=True)
        lengths = torch.tensor([len(rows) for rows in batch])
        # Padding comes last and the LSTM reads forward, so the states in front of it do not know it.
        padding = torch.arange(padded.shape[1]) >= lengths.unsqueeze(1)
        states = self.network["lstm"](padded)[0].masked_fill(padding.unsqueeze(-1), float("-inf"))
        return self.network["output"](self.network["dropout"](states.amax(dim=1)))


# Scores -------------------------------------------------------------------------------------------------------------


def score(folder: Path) -> dict[str, float]:
    about = read_json(folder / "about.json")
    rows = list(read_lines(folder / "predictions.jsonl"))
    truth, predicted = [row["true"] for row in rows], [row["predicted"] for row in rows]
    if about["entities"]:
        numbers = entity_scores(about["entities"], truth, predicted)
    else:
        numbers = scores_of("classification", about["train labels"], truth, predicted)
    numbers |= _mirrored("privacy", "macro-F1", numbers, 1.0)
    if about["baseline"] is not None:
        numbers |= _changes(about["entities"], truth, predicted, about["baseline"], numbers["macro-F1.floor"])
    return numbers


def _changes(
    entities: Sequence[str], truth: Sequence[str], predicted: Sequence[str], before: Sequence[str], floor: float
) -> dict[str, float]:
    """The change from the score of the baseline; the bootstrap draws the same texts for both."""
    now, then = (_macro_f1(entities, truth, labels) for labels in (predicted, before))
    base = then(np.arange(len(truth)))
    change = scores.bootstrap_interval(lambda at: now(at) - then(at), len(truth), resamples=RESAMPLES)
    changes = with_interval("change", change, floor - base)
    return changes | _mirrored("privacy gain", "change", changes, 0.0) | {"macro-F1.ceiling": base}


def _mirrored(name: str, of: str, numbers: Mapping[str, float], top: float) -> dict[str, float]:
    """top - a score: its interval is turned around, and its floor becomes the most there is."""
    return {name: top - numbers[of], f"{name}.low": top - numbers[f"{of}.high"],
            f"{name}.high": top - numbers[f"{of}.low"], f"{name}.ceiling": top - numbers[f"{of}.floor"]}  # fmt: skip


def _macro_f1(entities: Sequence[str], truth: Sequence[str], predicted: Sequence[str]) -> Callable[[Integers], float]:
    """Macro-F1 on some of the texts."""
    if not entities:
        return item_statistic("classification", truth, [predicted])
    of_names = _f1_of_names(entities, truth, predicted)
    return lambda at: float(of_names(at)[0])


def entity_scores(entities: Sequence[str], truth: Sequence[str], predicted: Sequence[str]) -> dict[str, float]:
    """Macro-F1 over the names, and the F1 of each; naming nothing at all has 0. Intervals are over texts."""
    macro, *of_names = scores.bootstrap_intervals(
        _f1_of_names(entities, truth, predicted), len(truth), resamples=RESAMPLES
    )
    numbers = with_interval("macro-F1", macro, 0.0)
    for name, interval in zip(entities, of_names, strict=True):
        numbers |= interval.named(f"F1 of {name}")
    return numbers


def _f1_of_names(
    entities: Sequence[str], truth: Sequence[str], predicted: Sequence[str]
) -> Callable[[Integers], Floats]:
    """On some of the texts: the macro-F1, then the F1 of each name."""
    there, said = (
        np.array([[name in label.split(JOINT) for name in entities] for label in labels], dtype=bool)
        for labels in (truth, predicted)
    )

    def f1(at: NDArray[np.int64]) -> NDArray[np.float64]:
        right = (there[at] & said[at]).sum(axis=0)
        both = there[at].sum(axis=0) + said[at].sum(axis=0)
        each = np.divide(2.0 * right, both, out=np.zeros(len(right)), where=both > 0)
        return np.array([np.mean(each), *each])

    return f1


def check(parameters: PerturbedTask, inputs: frozenset[str] = frozenset()) -> None:
    require("sklearn", extra="audit", purpose="a downstream task")
    if (parameters.target == "entities") != bool(parameters.entities):
        raise BadInputError(
            "entities-without-names",
            "the target 'entities' and the list 'entities' of names go together: give both, or none",
        )
    if parameters.learner in ("lstm", "transformer"):
        require("torch", extra="documents", purpose="a neural learner")
    check_encoder(parameters.learner, parameters.encoder, parameters.precision)


def content(parameters: PerturbedTask) -> dict[str, Any]:
    """The values that the key is made from: other code of a plug-in is another step."""
    return {**parameters.model_dump(), **code_of_encoder(parameters.encoder)}


def fits(parameters: PerturbedTask, inputs: Mapping[str, PlannedCell]) -> None:
    data = data_in(inputs)
    check_part(data, parameters.train, "train")
    check_part(data, parameters.test, "test")
    check_apart(data, parameters.train, parameters.test)
    if parameters.target == "label":
        check_labeled(data)
    elif parameters.target != "entities":
        check_column(data, parameters.target, "target")
    if "baseline" in inputs:
        before = inputs["baseline"].parameters
        assert isinstance(before, PerturbedTask)  # as for "vectors"
        if (before.target, before.test, before.entities) != (parameters.target, parameters.test, parameters.entities):
            raise BadInputError(
                "baseline-of-another-task",
                "'baseline' has to learn the same 'target' and be tried on the same 'test' part",
            )
    made = inputs["vectors"].parameters
    assert isinstance(made, Perturb)  # `Input.kinds` lets nothing else stand there
    if parameters.learner in ("probe", "transformer") and not gives_words(made):
        raise BadInputError(
            "learner-needs-words",
            "the learner '{learner}' reads words, and '{mechanism}' without a mapping gives vectors: give the perturb "
            "step a 'mapping', or skip such cells",
            learner=parameters.learner,
            mechanism=made.mechanism,
        )


KIND = Kind(
    "perturbed_task", 3, PerturbedTask, run, score,
    {
        "data": Input(("data",)),
        "vectors": Input(("perturb",)),
        "baseline": Input(("perturbed_task",), required=False),
    },
    check, content, measures=("macro-F1", "change", "privacy", "privacy gain"), fits=fits,
    further=("accuracy", "score", "F1 of *"),
)  # fmt: skip
