"""Sentences that are nearly the same: most of their words and pairs of neighboring words are shared.

    likeness(a, b) = |F(a) & F(b)| / |F(a) | F(b)|        F: the set of words and of pairs of words (Jaccard)

A stream is read once, and of sentences that are at least as alike as a threshold only the first is kept. Candidates
come from minhashes (Broder 1997): the smallest value of a random hash over F(a) and over F(b) is the same with
probability likeness(a, b). `BANDS` groups of `ROWS` such values are looked up in one table; what shares a group is then
compared exactly, so nothing is left out by chance, and of sentences that are exactly as alike as the usual threshold
about 98 % are recognized (1 - (1 - 0.7^3)^10).

Memory is bounded, however long the stream: the table has a fixed size, where new entries replace old ones, and the sets
of the last `REMEMBERED` kept sentences are stored. Beyond about a million sentences a near-duplicate that is far away
may therefore stay; one that is near never does for that reason.
"""

from __future__ import annotations

import re
import zlib
from array import array
from collections.abc import Iterable, Iterator
from itertools import islice, pairwise
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from tacit.noise.source import public_generator

USUAL_LIKENESS = 0.7
LEAST_LIKENESS = 0.5
"""Below this minhashes would miss too many."""
BANDS, ROWS = 10, 3
BANDS_BELOW, ROWS_BELOW = 16, 2
"""The groups for thresholds below `SWITCH`, of which fewer values must agree."""
SWITCH = 0.65
TABLE = 1 << 23
REMEMBERED = 1 << 20
BLOCK = 2_048

_WORD = re.compile(r"[^\W_]+")
_PAIR = np.uint64(0x9E3779B97F4A7C15)
_MIX = np.uint64(0xD6E8FEB86659FD93)

Entry = TypeVar("Entry")
Hashes = npt.NDArray[np.uint64]


class NearDuplicates:
    """The kept sentences of a stream, as far as they are remembered, and how many were left out."""

    def __init__(self, likeness: float = USUAL_LIKENESS, slots: int = TABLE) -> None:
        self.likeness = likeness
        self.removed = 0
        self._bands, self._rows = (BANDS, ROWS) if likeness >= SWITCH else (BANDS_BELOW, ROWS_BELOW)
        generator = public_generator(0)
        # Odd factors: multiplication is then one-to-one on 64-bit numbers.
        self._factors: Hashes = generator.integers(0, 1 << 63, self._bands * self._rows, dtype=np.uint64) * np.uint64(
            2
        ) + np.uint64(1)
        self._table = array("Q", bytes(8 * slots if likeness < 1 else 0))
        self._features: list[Hashes] = []
        self._kept = 0

    def kept(self, entries: Iterable[tuple[str, Entry]]) -> Iterator[tuple[str, Entry]]:
        """The sentences that are not nearly the same as an earlier one, each with what belongs to it."""
        if self.likeness >= 1:
            yield from entries
            return
        stream = iter(entries)
        while block := list(islice(stream, BLOCK)):
            features = [features_of(sentence) for sentence, _ in block]
            for entry, own, groups in zip(block, features, self._groups(features), strict=True):
                if self._is_new(own, groups):
                    yield entry
                else:
                    self.removed += 1

    def admits(self, sentence: str) -> bool:
        """Whether a single sentence is kept; if so, it is remembered."""
        if self.likeness >= 1:
            return True
        own = features_of(sentence)
        new = self._is_new(own, self._groups([own])[0])
        self.removed += not new
        return new

    def _groups(self, features: list[Hashes]) -> list[list[int]]:
        """The keys of the groups of every sentence: hashes of a few minhashes each."""
        sizes = np.array([max(1, len(each)) for each in features])
        starts = np.cumsum(sizes) - sizes
        joined = np.concatenate([each if len(each) else np.zeros(1, np.uint64) for each in features])
        keys = []
        for band in range(self._bands):
            key = np.full(len(features), np.uint64(band + 1), dtype=np.uint64)
            for row in range(self._rows):
                values = _mixed(joined * self._factors[band * self._rows + row])
                key = _mixed(key * _PAIR + np.minimum.reduceat(values, starts))
            keys.append(key)
        listed: list[list[int]] = np.stack(keys, axis=1).tolist()
        return listed

    def _is_new(self, own: Hashes, groups: list[int]) -> bool:
        """Whether a sentence is unlike all that are remembered; if so, it is remembered too."""
        compared: set[int] = set()
        for key in groups:
            entry = self._table[key % len(self._table)]
            # An entry is the upper half of a key and the number of a sentence, which begins at 1.
            if entry and entry >> 32 == key >> 32:
                number = entry & 0xFFFFFFFF
                if number not in compared and self._kept - number < REMEMBERED:
                    compared.add(number)
                    if likeness_of(own, self._features[(number - 1) % REMEMBERED]) >= self.likeness:
                        return False
        self._remember(own, groups)
        return True

    def _remember(self, own: Hashes, groups: list[int]) -> None:
        if self._kept < REMEMBERED:
            self._features.append(own)
        else:
            self._features[self._kept % REMEMBERED] = own
        self._kept += 1
        number = self._kept & 0xFFFFFFFF
        for key in groups:
            self._table[key % len(self._table)] = (key >> 32 << 32) | number


def features_of(sentence: str) -> Hashes:
    """The hashed words and pairs of words of a sentence, each once, sorted."""
    words = [zlib.crc32(word.encode("utf-8")) for word in _WORD.findall(sentence.casefold())]
    plain = np.array(words, dtype=np.uint64)
    pairs = np.array([first * 0x100000001 ^ second for first, second in pairwise(words)], dtype=np.uint64)
    return np.unique(np.concatenate([_mixed(plain + np.uint64(1)), _mixed(pairs * _PAIR)]))


def likeness_of(first: Hashes, second: Hashes) -> float:
    """The share of features that two sentences have in common."""
    if not len(first) or not len(second):
        return float(len(first) == len(second))
    common = len(np.intersect1d(first, second, assume_unique=True))
    return common / (len(first) + len(second) - common)


def _mixed(values: Hashes) -> Hashes:
    """Well-mixed 64-bit numbers, one-to-one."""
    values = (values ^ (values >> np.uint64(32))) * _MIX
    return np.asarray(values ^ (values >> np.uint64(29)), dtype=np.uint64)
