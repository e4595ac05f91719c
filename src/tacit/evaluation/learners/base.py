"""The interface of learners, and the kinds of tasks they learn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, Self, get_args

from tacit.errors import BadParameterError, check_choice
from tacit.evaluation.scores import Label
from tacit.progress import StepProgress

if TYPE_CHECKING:
    from tacit.evaluation.vectors import TextVectors

Task = Literal["classification", "pairs", "similarity", "tagging"]
Text = str | Sequence[str]
"""A text; for tasks about pairs, two of them; for tagging, its tokens."""

TASKS: Final[tuple[Task, ...]] = get_args(Task)
LEARNERS: Final = ("probe", "tfidf", "lstm", "transformer")


class Learner(Protocol):
    """Learns a task from texts and labels. Equal data and seed give an equal learner.

    name     for tables
    random   whether the seed matters; a learner without randomness is run once
    """

    name: str
    random: bool

    def fit(self, texts: Sequence[Text], labels: Sequence[Any], seed: int = 0) -> Self: ...

    def predict(self, texts: Sequence[Text]) -> list[Any]: ...


def make_learner(
    name: str, task: Task, vectors: TextVectors | None = None, progress: StepProgress | None = None
) -> Learner:
    """A learner by its name; `vectors` is the encoder for those that need one."""
    check_choice(task, TASKS, code="unknown-task", what="task")
    check_choice(name, LEARNERS, code="unknown-learner", what="learner")
    if name == "tfidf":
        from tacit.evaluation.learners.linear import WordProbe

        return WordProbe(task)
    if name == "lstm":
        from tacit.evaluation.learners.lstm import Lstm

        return Lstm(task, progress=progress)
    from tacit.evaluation.vectors import TextVectors

    vectors = vectors or TextVectors()
    if name == "probe":
        from tacit.evaluation.learners.linear import VectorProbe

        return VectorProbe(task, vectors)
    from tacit.evaluation.learners.transformer import Transformer

    return Transformer(task, vectors.encoder, progress=progress)


def flat_labels(task: Task, labels: Sequence[Any]) -> list[Label]:
    """The labels of all texts, or of all their tokens."""
    return [tag for tags in labels for tag in tags] if task == "tagging" else list(labels)


def check_trainable(texts: Sequence[Text], labels: Sequence[Any], task: Task) -> None:
    """A learner needs something to tell apart."""
    if len(texts) != len(labels):
        raise BadParameterError(
            "wrong-number-of-labels",
            "there are {texts:,} texts but {labels:,} labels: give one for each",
            texts=len(texts),
            labels=len(labels),
        )
    kinds = set(flat_labels(task, labels))
    if len(kinds) < 2:
        only = "one label only" if kinds else "no label"  # which one is private
        raise BadParameterError(
            "too-few-classes",
            "the training rows have {labels}: give rows with at least two different labels",
            labels=only,
        )
