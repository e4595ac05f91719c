"""A toy model: its predictions are a fixed function of a record and the tokens so far, few enough for exact laws."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable, Iterator, Sequence
from functools import cache

import numpy as np

from tacit.arrays import Floats, Floats32, Ids, Mask

OUTPUTS = 5


def toy_logits(text: str, written: Sequence[int]) -> Floats32:
    """Numbers between -20 and 20: records disagree as much as records can."""
    return _toy_logits(text, tuple(written))


@cache
def _toy_logits(text: str, written: tuple[int, ...]) -> Floats32:
    digest = hashlib.blake2b(f"{text}|{list(written)}".encode(), digest_size=2 * OUTPUTS).digest()
    numbers = np.frombuffer(digest, dtype=np.uint16).astype(np.float32) / 65535.0
    return (numbers * 40.0 - 20.0).astype(np.float32)


class ToyReading:
    """Prompts of the toy model side by side."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.texts = list(texts)
        self.written: list[list[int]] = [[] for _ in texts]
        self._predict()

    def extend(self, tokens: Ids, anew: Mask) -> None:
        for row, token in enumerate(tokens.tolist()):
            self.written[row] = [*([] if anew[row] else self.written[row]), token]
        self._predict()

    def _predict(self) -> None:
        self.logits = np.stack([toy_logits(*row) for row in zip(self.texts, self.written, strict=True)])


class ToyReader:
    """The toy model, with so many rows."""

    def __init__(self, rows: int = 4) -> None:
        self.rows = rows

    def read(self, texts: Sequence[str]) -> ToyReading:
        assert len(texts) == self.rows
        return ToyReading(texts)

    def read_public(self, copies: int) -> ToyReading:
        return ToyReading([""] * copies)


Law = Callable[[Sequence[str], Sequence[int]], Floats]
"""The probabilities of the next token, for the texts of a batch and the tokens so far."""


def law_of_two(law: Law, texts: Sequence[str]) -> Floats:
    """The exact probabilities of all pairs of tokens."""
    first = law(texts, [])
    return np.concatenate([first[token] * law(texts, [token]) for token in range(OUTPUTS)])


def largest_loss(p: Floats, q: Floats) -> float:
    return float(np.abs(np.log(p) - np.log(q)).max())


def neighbors(domain: Sequence[str], most: int) -> Iterator[tuple[list[str], list[str]]]:
    """All pairs of multisets of at most `most` records of the domain, of which the second has one more."""
    for size in range(most):
        for smaller in itertools.combinations_with_replacement(domain, size):
            for extra in domain:
                yield list(smaller), [*smaller, extra]
