"""Fluency of a release under a public language model, beside that of the originals and of words in random order.

The model is SmolLM2 where it is installed. Otherwise it is a model of word triples that is counted on the public pool
(Witten & Bell 1991), on those of its sentences that are *not* in the release: sentences that a model has counted would
look fluent whatever they are.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tacit.evaluation.downstream import Labeled
from tacit.needs import needs_of_language_model
from tacit.noise.source import public_generator
from tacit.progress import StepProgress
from tacit.text.tokens import split

SMOLLM2 = "smollm2"
POOL_TRIPLES = "word triples of the public pool"
MOST_TEXTS = 200
MOST_COUNTED = 30_000
"""Sentences of the pool that are counted, drawn at random."""
BORDER = ""


@dataclass(frozen=True)
class Fluency:
    """Perplexity per word piece or word; lower is more fluent.

    salad   the words of the release in random order
    """

    model: str
    texts: int
    original: float
    released: float
    salad: float


def installed_model(name: str = SMOLLM2) -> str | None:
    """The name of the language model, if all that it needs is installed."""
    missing = [module for need in needs_of_language_model(name) for module in need.missing()]
    return None if missing else name


def fluency(
    original: Labeled,
    released: Labeled,
    pool: Sequence[str] = (),
    *,
    model: str | None = None,
    seed: int = 0,
    progress: StepProgress | None = None,
) -> Fluency | None:
    """The fluency of a sample of each side; None without a model and without a pool.

    model   a causal language model by name; without one, word triples of the pool
    """
    generator = public_generator(seed)
    own, made = (
        [str(rows.texts[place]) for place in generator.permutation(len(rows))[:MOST_TEXTS].tolist()]
        for rows in (original, released)
    )
    salad = [" ".join(generator.permutation(np.array(text.split(), dtype=object)).tolist()) for text in made]
    if model is not None:
        return Fluency(model, len(made), *_by_model(model, (own, made, salad), progress))
    drawn = set(map(str, released.texts))
    order = generator.permutation(len(pool)).tolist()
    counted = [pool[place] for place in order if pool[place] not in drawn][:MOST_COUNTED]
    if not counted:
        return None
    triples = WordTriples(counted)
    return Fluency(POOL_TRIPLES, len(made), *(triples.perplexity(side) for side in (own, made, salad)))


def _by_model(name: str, sides: Sequence[Sequence[str]], progress: StepProgress | None) -> tuple[float, float, float]:
    from tacit.documents.language_models import load_causal
    from tacit.evaluation.similarity.fluency import PERPLEXITY, surprise

    table = surprise([text for side in sides for text in side], load_causal(name, PERPLEXITY), progress)
    ends = np.cumsum([0, *map(len, sides)])
    first, second, third = (
        math.exp(float(part[:, 0].sum()) / max(1.0, float(part[:, 1].sum())))
        for part in (table[start:end] for start, end in itertools.pairwise(ends.tolist()))
    )
    return first, second, third


class WordTriples:
    """A language model of three words in a row, smoothed by shorter ones and by a uniform law over known words."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._counts: Counter[tuple[str, ...]] = Counter()
        self._followers: Counter[tuple[str, ...]] = Counter()
        """How many different words follow a history."""
        self._totals: Counter[tuple[str, ...]] = Counter()
        for text in texts:
            words = _framed(text)
            for place in range(2, len(words)):
                for length in range(3):
                    history, run = tuple(words[place - length : place]), tuple(words[place - length : place + 1])
                    if not self._counts[run]:
                        self._followers[history] += 1
                    self._counts[run] += 1
                    self._totals[history] += 1
        self._vocabulary = self._followers[()] + 1

    def probability(self, word: str, history: tuple[str, ...]) -> float:
        """The probability of a word after a history of at most two words."""
        shorter = self.probability(word, history[1:]) if history else 1.0 / self._vocabulary
        total, kinds = self._totals[history], self._followers[history]
        return shorter if not total else (self._counts[(*history, word)] + kinds * shorter) / (total + kinds)

    def perplexity(self, texts: Sequence[str]) -> float:
        """The perplexity per word, the end of a text included."""
        surprise, words = 0.0, 0
        for text in texts:
            framed = _framed(text)
            for place in range(2, len(framed)):
                surprise -= math.log(self.probability(framed[place], (framed[place - 2], framed[place - 1])))
                words += 1
        return math.exp(surprise / words) if words else math.nan


def _framed(text: str) -> list[str]:
    return [BORDER, BORDER, *split(text), BORDER]
