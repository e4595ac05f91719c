"""CusText (Chen et al. 2023): each word is replaced by a word of its own small output set.

The public vocabulary is cut once into sets of K words (or a few more, where K does not divide its size): the most
frequent word that has no set yet takes its nearest free words. Within its set, a word y is drawn for x with probability
proportional to exp(t u(x, y)), where u(x, y) = 1 - d(x, y) / max_z d(x, z) lies in [0, 1]. The paper's t is
epsilon / 2; exact calibration takes for each set the largest t that keeps epsilon in it (`tight_sets`).

Guarantee: pure epsilon differential privacy between any two words *of the same set*, because both weight and
normalizer change by at most exp(epsilon / 2), or because the loss of each set was computed. Words of different sets are
told apart with certainty: the set is not covered, and the card says so. The sets partition the vocabulary, so every
input of a set has the same outputs.
(Published code learns the sets from the private text and passes unknown words through; both void the guarantee.)
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import ClassVar

import numpy as np

from tacit.arrays import Floats, Ids
from tacit.checks import EVERY_WORD, Check, MadeUpWords, WordLaw, WordSamples
from tacit.errors import BadParameterError
from tacit.guarantee import Adjacency, Guarantee, Notion
from tacit.noise.choice import draw_rows, integer_weights, probabilities, rounding_slack
from tacit.noise.source import Source
from tacit.parameters import EpsilonRange, parameter
from tacit.vectors import VectorTable, cache
from tacit.words.base import (
    BLOCK_CELLS,
    WordMechanism,
    by_word,
    digest_of,
)
from tacit.words.calibrated import EXACT, TEXTBOOK, percent_up
from tacit.words.tight_sets import exact_factors

LARGEST_EXACT_SET = 2_000
KEEP_FROM_WORDS = 2_000
"""Smaller vocabularies are calibrated faster than a file is read."""


@dataclass(kw_only=True, eq=False)
class CusText(WordMechanism):
    """Replace each word by a word of its own set of K similar words; protects the word within its set, not the set.

    set_size      how many words at least share an output set (K)
    calibration   "exact": the largest exponent that is proven for epsilon in each set, which keeps more words;
                  "textbook": half of epsilon, as in the paper, and always for sets of more than 2,000 words
    """

    set_size: int = parameter(20, service_most=1_000)
    calibration: str = parameter(EXACT, choices=(EXACT, TEXTBOOK))

    name: ClassVar[str] = "custext"
    title: ClassVar[str] = "CusText"
    paper: ClassVar[str] = "Chen et al. 2023"
    notion: ClassVar[str] = Notion.PURE.value
    block_characters: ClassVar[int] = 4_000_000
    epsilon_range: ClassVar[EpsilonRange] = EpsilonRange(8.0, 1.0, 30.0)

    def check_parameters(self) -> None:
        super().check_parameters()
        if self.set_size < 2:
            raise BadParameterError(
                "impossible-set-size",
                "set_size must be at least 2, not {set_size}: one word alone cannot hide",
                set_size=self.set_size,
            )

    @cached_property
    def sets(self) -> Ids:
        """One row of vocabulary ids per set; a set that is smaller than the largest one is filled up with -1."""
        return partition(self.table, self.set_size)

    @cached_property
    def set_of(self) -> Ids:
        owner = np.empty(len(self.table), dtype=np.int64)
        filled = self.sets >= 0
        owner[self.sets[filled]] = np.nonzero(filled)[0]
        return owner

    @property
    def is_exact(self) -> bool:
        """Whether the factor of each set is searched for: all laws of a set are held at a time."""
        return self.calibration == EXACT and self.sets.shape[1] <= LARGEST_EXACT_SET

    @cached_property
    def factors(self) -> Floats:
        """The factor t of each set."""
        if not self.is_exact:
            return np.full(len(self.sets), self.epsilon / 2.0)
        key = cache.key_of("factors", 1, self.table.fingerprint, digest_of(self.sets), self.epsilon)
        kept = cache.cache_folder() / "factors" / key / "factors.npy"
        if kept.is_file():
            kept_factors: Floats = np.load(kept)
            if kept_factors.shape == (len(self.sets),):
                return kept_factors
        factors = exact_factors(self._scores, self.sets >= 0, self.epsilon)
        if self.sets.size >= KEEP_FROM_WORDS:
            cache.keep_folder("factors", key, lambda folder: np.save(folder / "factors.npy", factors))
        return factors

    def _scores(self, chosen: slice) -> Floats:
        """1 - u for all words of these sets, shape (sets, K, K)."""
        sets = self.sets[chosen]
        size = sets.shape[1]
        scores = np.zeros((len(sets), size, size))
        members = np.flatnonzero(sets.ravel() >= 0)
        for start in range(0, len(members), self._block()):
            places = members[start : start + self._block()]
            scores.reshape(-1, size)[places] = self._relative_distances(sets.ravel()[places])
        return scores

    @cached_property
    def guessed(self) -> float:
        """The share of the vocabulary that the best attacker guesses from one output, each word being equally likely:
        the mean over outputs of the largest probability that a word gives them. Exact, from the law that is drawn."""
        best = np.zeros(len(self.table))
        for start in range(0, len(self.table), self._block()):
            ids = np.arange(start, min(start + self._block(), len(self.table)))
            members = self.sets[self.set_of[ids]]
            law = probabilities(self._weights(ids))
            np.maximum.at(best, members[members >= 0], law[members >= 0])
        return float(best.mean())

    def prepare(self) -> None:
        super().prepare()
        self._load("set_of", "factors")

    def _shown_parameters(self) -> dict[str, object]:
        shown = super()._shown_parameters()
        shown["calibration"] = EXACT if self.is_exact else TEXTBOOK
        if self.is_exact:
            shown["best guess"] = f"{percent_up(self.guessed)} of the words of the vocabulary"
        return shown

    def checks(self) -> tuple[Check, ...]:
        return (WordLaw(words=EVERY_WORD), WordSamples(), MadeUpWords(sets=len(self.sets)))

    def draw(self, ids: Ids, source: Source) -> Ids:
        drawn = np.empty(len(ids), dtype=np.int64)
        for words, counts, positions in by_word(ids, self._block()):
            columns = draw_rows(self._weights(words), counts, source)
            drawn[positions] = self.sets[np.repeat(self.set_of[words], counts), columns]
        return drawn

    def laws_of_draw(self, ids: Ids) -> Floats:
        result = np.zeros((len(ids), len(self.table)))
        for first in range(0, len(ids), self._block()):
            block = ids[first : first + self._block()]
            members = self.sets[self.set_of[block]]
            rows, columns = np.nonzero(members >= 0)
            result[first + rows, members[rows, columns]] = probabilities(self._weights(block))[rows, columns]
        return result

    def _weights(self, ids: Ids) -> Ids:
        exponents = self._relative_distances(ids)
        exponents *= self.factors[self.set_of[ids]][:, None]
        weights = integer_weights(exponents)
        weights[self.sets[self.set_of[ids]] < 0] = 0
        return weights

    def _relative_distances(self, ids: Ids) -> Floats:
        """Distances of these words to the words of their set, as shares of the largest."""
        members = self.sets[self.set_of[ids]]
        vectors = self.table.vectors
        difference = vectors[members].astype(np.float64)
        difference -= vectors[ids][:, None, :]
        distances = np.sqrt(np.einsum("ijk,ijk->ij", difference, difference))
        distances[members < 0] = 0.0
        farthest = distances.max(axis=1, keepdims=True)
        farthest[farthest == 0.0] = 1.0
        distances /= farthest
        result: Floats = distances
        return result

    def _block(self) -> int:
        return max(1, BLOCK_CELLS // (self.set_size * self.table.dimension))

    def promise(self) -> Guarantee:
        return self._promise(
            Notion.PURE,
            self.epsilon,
            adjacency=Adjacency.SAME_SET,
            domain=f"{len(self.sets):,} output sets ({digest_of(self.sets)})",
            slack=rounding_slack(self.sets.shape[1]),
            not_covered=(
                f"the set of similar words (here {int((self.sets >= 0).sum(axis=1).min()):,} or more) that a word "
                "belongs to: it is revealed with certainty",
            ),
        )


def partition(table: VectorTable, size: int) -> Ids:
    """Sets of at least `size` words: the first free word of the vocabulary with its nearest free words, until none is
    left. The words that `size` does not divide are spread over the first sets, so that no set is smaller."""
    key = cache.key_of("custext", 2, table.fingerprint, size)
    kept = cache.cache_folder() / "sets" / key / "sets.npy"
    if kept.is_file():
        kept_sets: Ids = np.load(kept)
        return kept_sets
    count = max(1, len(table) // size)
    sizes = [len(table) // count + (number < len(table) % count) for number in range(count)]
    sets = _partition(table, sizes)

    def write(folder: Path) -> None:
        np.save(folder / "sets.npy", sets)

    cache.keep_folder("sets", key, write)
    return sets


def _partition(table: VectorTable, sizes: list[int]) -> Ids:
    free = np.arange(len(table), dtype=np.int64)
    vectors = np.array(table.vectors, dtype=np.float32)
    half_norms = 0.5 * np.einsum("ij,ij->i", vectors, vectors)
    taken = np.zeros(len(free), dtype=bool)
    sets = []
    first = 0
    for count in sizes:
        while taken[first]:
            first += 1
        # |x - y|^2 / 2 up to a constant; words that are taken are out of reach.
        closeness = vectors @ vectors[first] - half_norms
        closeness[taken] = -np.inf
        closeness[first] = np.inf
        nearest = np.argpartition(-closeness, count - 1)[:count]
        nearest = nearest[np.lexsort((nearest, -closeness[nearest]))]
        taken[nearest] = True
        members = np.full(sizes[0], -1, dtype=np.int64)
        members[:count] = free[nearest]
        sets.append(members)
        if taken.mean() > 0.5 and not taken.all():
            left = ~taken
            free, vectors, half_norms = free[left], vectors[left], half_norms[left]
            taken, first = np.zeros(len(free), dtype=bool), 0
    return np.stack(sets)
