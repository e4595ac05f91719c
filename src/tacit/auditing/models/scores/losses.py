"""Losses of texts, and the scorer that gives them: a model, or any function of texts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from tacit.arrays import Floats, Integers
from tacit.auditing.models.members import LabeledTexts
from tacit.errors import BadInputError, TacitError
from tacit.progress import StepProgress


@dataclass(frozen=True)
class TextLosses:
    """Losses in nats of whole texts, the number of tokens they are sums over, and how many texts were cut.

    A text without any token to predict has `tokens` 0 and a mean that is not a number.
    """

    total: Floats
    tokens: Integers
    cut: int = 0

    @property
    def mean(self) -> Floats:
        """Loss per token."""
        means: Floats = np.divide(self.total, self.tokens, out=np.full(len(self.total), np.nan), where=self.tokens > 0)
        return means

    def take(self, places: Sequence[int] | Integers) -> TextLosses:
        return TextLosses(self.total[places], self.tokens[places])


def check_paired(texts: Sequence[str], labels: Sequence[str] | None) -> None:
    """Refuse labels, where there are any, that are not as many as the texts."""
    if labels is not None and len(labels) != len(texts):
        raise BadInputError(
            "wrong-number-of-labels",
            "there are {texts:,} texts and {labels:,} labels: each text needs one",
            texts=len(texts),
            labels=len(labels),
        )


def finite_losses(losses: Floats, name: str) -> Floats:
    """Losses of the model of this name; those of damaged weights are refused."""
    if not np.isfinite(losses).all():
        raise BadInputError("not-finite", "{name} gives losses that are no numbers: its weights are damaged", name=name)
    return losses


class Scorer(ABC):
    """Texts (with labels or targets, where the model has them) to losses."""

    kind: ClassVar[str]
    of_language: ClassVar[bool] = True
    """Whether a loss is that of a text itself, not of a label or answer for it."""
    name: str

    @abstractmethod
    def losses(
        self, texts: Sequence[str], labels: Sequence[str] | None = None, progress: StepProgress | None = None
    ) -> TextLosses: ...

    def losses_of(self, side: LabeledTexts, progress: StepProgress | None = None) -> TextLosses:
        """The losses of the texts of one side."""
        return self.losses(side.texts, side.labels, progress)


class CallableScorer(Scorer):
    """Any function from texts to one loss each."""

    kind = "function"

    def __init__(self, function: Callable[[Sequence[str]], ArrayLike], name: str = "function") -> None:
        self.function = function
        self.name = name

    def losses(
        self, texts: Sequence[str], labels: Sequence[str] | None = None, progress: StepProgress | None = None
    ) -> TextLosses:
        try:
            losses = np.asarray(self.function(list(texts)), dtype=np.float64)
        except TacitError:
            raise
        except Exception as error:
            raise BadInputError(
                "function-failed",
                "the function {name} failed ({error}): it takes a list of texts and returns one loss for each",
                name=self.name,
                error=type(error).__name__,
            ) from error
        if losses.shape != (len(texts),) or not np.isfinite(losses).all():
            raise BadInputError(
                "not-finite",
                "the function {name} must return {texts:,} finite numbers, one loss for each text",
                name=self.name,
                texts=len(texts),
            )
        return TextLosses(losses, np.ones(len(texts), dtype=np.int64))
