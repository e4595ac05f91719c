"""Which generated texts are kept, by what can be seen on the text itself or by a public model.

No filter sees a private row, so keeping and dropping is post-processing and costs nothing.

    empty, short   fewer than `shortest` words
    repetition     among 8 words or more, more than this share of the pairs of neighboring words are repeats
    code           the text contains a control code
    duplicate      the same text, after the same labels, was kept already
    unlikely       a public language model gives it a perplexity above the limit
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

import torch

from tacit.devices import device_of, moved
from tacit.errors import BadParameterError
from tacit.text.tokens import split
from tacit.training.synthesis.codes import Combination, ControlCodes
from tacit.training.tasks import CausalLanguage

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

Perplexity = Callable[[Sequence[str]], Sequence[float]]
REPETITION_FROM = 8


@dataclass(frozen=True)
class Filters:
    """Public settings. `perplexity` is the largest one allowed; it needs a public model to judge by."""

    shortest: int = 2
    repetition: float = 0.5
    codes: bool = True
    duplicates: bool = True
    perplexity: float | None = None

    def __post_init__(self) -> None:
        if self.shortest < 1:
            raise BadParameterError(
                "impossible-filter", "a text has at least 1 word, not {shortest}", shortest=self.shortest
            )
        if not 0 < self.repetition <= 1:
            raise BadParameterError(
                "impossible-filter",
                "the share of repeats lies above 0 and is at most 1, not {repetition}",
                repetition=self.repetition,
            )
        if self.perplexity is not None and not self.perplexity > 1:
            raise BadParameterError(
                "impossible-filter", "a perplexity is larger than 1, not {perplexity}", perplexity=self.perplexity
            )

    def described(self) -> str:
        parts = [f"{self.shortest} words or more", f"repeats at most {self.repetition:.0%}"]
        parts += ["no control codes"] if self.codes else []
        parts += ["no duplicates"] if self.duplicates else []
        parts += [f"perplexity at most {self.perplexity:g}"] if self.perplexity is not None else []
        return ", ".join(parts)


@dataclass
class Sieve:
    """Applies the filters to one text after the other and counts what was refused."""

    filters: Filters
    codes: ControlCodes
    judge: Perplexity | None = None
    refused: Counter[str] = field(default_factory=Counter)
    _kept: set[bytes] = field(default_factory=set)

    def __post_init__(self) -> None:
        if self.filters.perplexity is not None and self.judge is None:
            raise BadParameterError(
                "filter-without-model", "a limit on the perplexity needs a public language model to judge by"
            )
        self._markers = tuple(marker.lower() for marker in self.codes.markers())

    def keep(self, combinations: Sequence[Combination], texts: Sequence[str]) -> list[bool]:
        """Which texts of a batch are kept."""
        reasons = [self._seen(text) for text in texts]
        if self.filters.perplexity is not None and self.judge is not None:
            open_places = [i for i, reason in enumerate(reasons) if reason is None]
            judged = self.judge([texts[i] for i in open_places]) if open_places else []
            for i, value in zip(open_places, judged, strict=True):
                if not (math.isfinite(value) and value <= self.filters.perplexity):
                    reasons[i] = "unlikely"
        for i, reason in enumerate(reasons):
            if reason is None and self.filters.duplicates:
                reasons[i] = self._duplicate(combinations[i], texts[i])
        self.refused.update(reason for reason in reasons if reason is not None)
        return [reason is None for reason in reasons]

    def _seen(self, text: str) -> str | None:
        words = split(text)
        if len(words) < self.filters.shortest:
            return "short" if words else "empty"
        if repeated_share(words) > self.filters.repetition:
            return "repetition"
        lowered = text.lower()
        if self.filters.codes and any(marker in lowered for marker in self._markers):
            return "code"
        return None

    def _duplicate(self, combination: Combination, text: str) -> str | None:
        key = hashlib.blake2b(repr((combination, split(text))).encode(), digest_size=16).digest()
        if key in self._kept:
            return "duplicate"
        self._kept.add(key)
        return None


def repeated_share(words: Sequence[str]) -> float:
    """The share of neighboring word pairs that occurred before in the text; 0 for short texts."""
    if len(words) < REPETITION_FROM:
        return 0.0
    pairs = list(pairwise(words))
    return 1 - len(set(pairs)) / len(pairs)


def causal_perplexity(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, *, length: int = 128, batch: int = 32
) -> Perplexity:
    """Perplexities by a public causal language model, its mean over the word pieces of a text."""
    task = CausalLanguage(length=length)

    def judged(texts: Sequence[str]) -> list[float]:
        perplexities: list[float] = []
        model.eval()
        with torch.inference_mode():
            for start in range(0, len(texts), batch):
                rows = [{"text": text} for text in texts[start : start + batch]]
                encoded = [task.encode(row, tokenizer, train=True) for row in rows]
                losses = task.loss(model, moved(task.collate(encoded, tokenizer), device_of(model)))
                perplexities += [math.exp(min(value, 700.0)) for value in losses.tolist()]
        return perplexities

    return judged
