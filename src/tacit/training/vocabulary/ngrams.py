"""Phrases of private texts with noisy counts, level by level (Kim, Gopi, Kulkarni & Yekhanin, "Differentially private
n-gram extraction", NeurIPS 2021), repaired.

    Level 1   words by the noisy histogram with a threshold tau (`word_noise`).
    Level k   candidates are the k-grams whose first and last k - 1 words were both released: a public set, since it is
              a function of what was released. Each unit adds m^-1/2 to each of its m candidates, at most L of them,
              chosen by the unit alone: Euclidean length 1. *Every* candidate, used or not, gets N(0, sigma^2) and is
              released with its noisy count if that is at least

                  rho = sigma Phi^-1(1 - min(1/2, eta |S| / M)),

              S the released (k - 1)-grams and M the exact number of candidates: about eta |S| made-up k-grams pass.

Guarantee: (epsilon, delta) for adding or removing one unit. Proof. Let D hold a unit more than D'. Of its m words at
level 1, of weight w = m^-1/2, let u be held by nobody else, E the event that none of these passes, and
p = Pr[E] = Phi((tau - w) / sigma)^u. E is independent of the noise of all other words, so given E the release on D is
an adaptive composition of Gaussian mechanisms on domains that D' has as well: at level 1 the words of D', on which the
counts differ by w sqrt(m - u), and at each later level the candidates, a function of the levels before, on which they
differ by at most 1. Such a composition is no easier to tell apart than one Gaussian step of

    mu^2 = w^2 (m - u) / sigma^2 + (levels - 1) / sigma^2            (Dong, Roth & Su 2022, Corollary 3.3, adaptive)

With delta_G(e, mu) its delta: for all sets A and e = epsilon - ln p,
Pr[M(D) in A] <= (1 - p) + p Pr[M(D) in A | E] <= (1 - p) + e^epsilon Pr[M(D') in A] + p delta_G(epsilon - ln p, mu);
and with e = epsilon + ln p, because Pr[M(D) in A | E] <= Pr[M(D) in A] / p,
Pr[M(D') in A] <= e^epsilon Pr[M(D) in A] + delta_G(epsilon + ln p, mu).
`calibrate` takes the largest over all m and u. It is at most delta_1 + delta_G(epsilon + ln(1 - delta_1),
sqrt(levels) / sigma) with delta_1 the largest 1 - p, the shorter bound of the literature.

The published code (Kim et al.) prints the *exact* count and number of users of each n-gram, and 0 for made-up ones;
tests made-up ones on another side than noise would; estimates M from a sample; and draws made-up ones among all
candidates that were not *released*, so that a used one has two chances. `tests/training/test_ngrams.py` refutes each.
"""

from __future__ import annotations

import math
import re
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tacit.arrays import Floats
from tacit.guarantee import Adjacency, Guarantee, Unit
from tacit.noise.gaussian import add_gaussian
from tacit.noise.grid import on_grid, step_below
from tacit.noise.rare import passing_zeros
from tacit.noise.source import Source
from tacit.progress import StepProgress
from tacit.training.vocabulary.contribution import Contribution
from tacit.training.vocabulary.histogram import histogram_guarantee
from tacit.training.vocabulary.word_noise import WordNoise, calibrate

Phrase = tuple[str, ...]
STEPS = 1 << 20
"""Steps of one count: weights are whole numbers of them, so their squares add up to at most 1 exactly."""
MADE_UP = 0.01
"""eta: made-up phrases of a level, as a part of the released ones of the level before."""
MECHANISM = "private n-grams (noisy counts level by level; Kim et al. 2021, repaired)"
_TOKEN = re.compile(r"[^\W_]+(?:['’][^\W_]+)*|[^\s]")


def runs_of(text: str, *, lowercase: bool = True) -> list[list[str]]:
    """The words of a text in runs that no mark interrupts: a phrase does not reach over a comma or the end of a
    sentence.

    >>> runs_of("Don't worry, be happy")
    [["don't", 'worry'], ['be', 'happy']]
    """
    runs: list[list[str]] = [[]]
    for token in _TOKEN.findall(text.lower() if lowercase else text):
        if token[0].isalnum():
            runs[-1].append(token)
        elif runs[-1]:
            runs.append([])
    return [run for run in runs if run]


class UnitRuns:
    """The runs of words of each unit, gone through as often as needed: four bytes a word. Private."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._words: list[str] = []
        self._runs: dict[str, list[array[int]]] = {}

    def add(self, unit: str, text: str, *, lowercase: bool = True) -> None:
        """Add a text of a unit."""
        of_unit = self._runs.setdefault(unit, [])
        for run in runs_of(text, lowercase=lowercase):
            of_unit.append(array("i", [self._number(word) for word in run]))

    def _number(self, word: str) -> int:
        number = self._numbers.setdefault(word, len(self._words))
        if number == len(self._words):
            self._words.append(word)
        return number

    def __len__(self) -> int:
        return len(self._runs)

    def __iter__(self) -> Iterator[list[list[str]]]:
        for runs in self._runs.values():
            yield [[self._words[number] for number in run] for run in runs]


@dataclass(frozen=True)
class PhraseTerms:
    """longest: words of a phrase; contribution: phrases of one unit that count at each level; noise: of each level, and
    the threshold of the words."""

    longest: int
    contribution: Contribution
    noise: WordNoise
    guarantee: Guarantee

    @property
    def step(self) -> float:
        """The grid of released counts."""
        return step_below(self.noise.scale * 2.0**-20)


def phrase_terms(
    *, epsilon: float, delta: float, longest: int, most_phrases: int, unit: Unit = Unit.USER
) -> PhraseTerms:
    """Noise and threshold that keep (epsilon, delta) over all levels."""
    contribution = Contribution(most_phrases)
    noise = calibrate(epsilon=epsilon, delta=delta, contribution=contribution, levels=longest)
    of_words = histogram_guarantee(noise, contribution, Adjacency.ADD_REMOVE, unit, None)
    parameters = {
        "longest phrase": f"{longest} words, and as many levels",
        f"phrases of one {unit.value} at each level": most_phrases,
        "noise": f"normal noise of scale {noise.scale:.6g} at every level, on candidates that nobody used too",
        "threshold": of_words.parameters["threshold"],
        "made-up phrases": f"about {MADE_UP:.0%} of a level are noise alone, and look like the others",
    }
    return PhraseTerms(longest, contribution, noise, replace(of_words, mechanism=MECHANISM, parameters=parameters))


@dataclass(frozen=True)
class Candidates:
    """The k-grams whose first and last k - 1 words were released, without listing them: for every (k - 2)-gram in the
    middle, each released beginning with each released end."""

    beginnings: Sequence[Sequence[Phrase]]
    ends: Sequence[Sequence[Phrase]]
    released: frozenset[Phrase]

    @classmethod
    def of(cls, released: Iterable[Phrase]) -> Candidates:
        """Candidates of released (k - 1)-grams; sorted, so that they are a function of the release alone."""
        known = sorted(released)
        ending: dict[Phrase, list[Phrase]] = {}
        beginning: dict[Phrase, list[Phrase]] = {}
        for phrase in known:
            ending.setdefault(phrase[1:], []).append(phrase)
            beginning.setdefault(phrase[:-1], []).append(phrase)
        middles = sorted(ending.keys() & beginning.keys())
        return cls([ending[each] for each in middles], [beginning[each] for each in middles], frozenset(known))

    def __len__(self) -> int:
        """M, exactly."""
        return sum(len(first) * len(last) for first, last in zip(self.beginnings, self.ends, strict=True))

    def __contains__(self, phrase: object) -> bool:
        return isinstance(phrase, tuple) and phrase[:-1] in self.released and phrase[1:] in self.released

    def drawn(self, count: int, used: Callable[[Phrase], bool], source: Source) -> list[Phrase]:
        """So many different candidates that are not used, each set of them equally likely: places are drawn until they
        are new and not used."""
        sizes = [len(first) * len(last) for first, last in zip(self.beginnings, self.ends, strict=True)]
        bounds = np.cumsum(sizes)
        chosen: dict[Phrase, None] = {}
        while len(chosen) < count:
            place = int(source.generator.integers(0, int(bounds[-1])))
            group = int(bounds.searchsorted(place, side="right"))
            first, last = divmod(place - (int(bounds[group]) - sizes[group]), len(self.ends[group]))
            phrase = (*self.beginnings[group][first], self.ends[group][last][-1])
            if not used(phrase):
                chosen[phrase] = None
        return list(chosen)


def bounded_counts(units: Iterable[Iterable[Phrase]], contribution: Contribution) -> dict[Phrase, int]:
    """Counts of phrases in steps, what each unit adds bounded: exact, and therefore private."""
    counts: dict[Phrase, int] = {}
    for phrases in units:
        different = list(dict.fromkeys(phrases))
        if len(different) > contribution.words:
            # Chosen by the words themselves: numbers of words would depend on what others have written.
            named = {" ".join(phrase): phrase for phrase in different}
            different = [named[name] for name in contribution.chosen(list(named))]
        if different:
            weight = math.isqrt(STEPS * STEPS // len(different))
            for phrase in different:
                counts[phrase] = counts.get(phrase, 0) + weight
    return counts


def least_steps(terms: PhraseTerms, candidates: int, released: int) -> int:
    """The threshold rho of a level, in steps of the grid, rounded up."""
    from scipy.special import ndtri

    share = min(0.5, MADE_UP * released / candidates)
    return math.ceil(-float(ndtri(share)) * terms.noise.scale / terms.step)


def next_level(
    units: Iterable[Iterable[Phrase]], before: Iterable[Phrase], terms: PhraseTerms, source: Source
) -> dict[Phrase, float]:
    """Released phrases of one word more than those of the level before. `units` are the candidates of each unit."""
    candidates = Candidates.of(before)
    if not len(candidates):
        return {}
    counts = bounded_counts(units, terms.contribution)
    least = least_steps(terms, len(candidates), len(candidates.released))
    used = list(counts)
    exact = np.array([counts[phrase] for phrase in used], dtype=np.float64) / STEPS
    noisy = add_gaussian(exact, sigma=terms.noise.scale, source=source) if used else np.zeros(0)
    shown = {used[place]: float(noisy[place]) for place in np.flatnonzero(noisy >= least * terms.step)}
    unused = len(candidates) - len(used)
    made_up: Floats = on_grid(passing_zeros(unused, terms.noise.scale / terms.step, least, source), terms.step)
    names = candidates.drawn(len(made_up), counts.__contains__, source)
    return {**shown, **dict(zip(names, made_up.tolist(), strict=True))}


def released_phrases(
    units: Iterable[Sequence[Sequence[str]]],
    terms: PhraseTerms,
    source: Source,
    progress: StepProgress | None = None,
) -> dict[Phrase, float]:
    """All released phrases with noisy counts, the longest last. Private, but for what is returned.

    units   the runs of words of each unit; gone through once for each level
    """
    words = bounded_counts((((word,) for run in unit for word in run) for unit in units), terms.contribution)
    names = [phrase[0] for phrase in words]
    exact = np.array(list(words.values()), dtype=np.float64) / STEPS
    shown, noisy = terms.noise.released(names, exact, source)
    level: dict[Phrase, float] = {(word,): count for word, count in zip(shown, noisy.tolist(), strict=True)}
    everything = dict(level)
    for length in range(2, terms.longest + 1):
        if progress is not None:
            progress(length - 1, terms.longest)
        level = next_level((_candidates_of(unit, level, length) for unit in units), level, terms, source)
        everything.update(level)
        if not level:
            break
    return everything


def _candidates_of(unit: Sequence[Sequence[str]], before: dict[Phrase, float], length: int) -> Iterator[Phrase]:
    for run in unit:
        for place in range(len(run) - length + 1):
            phrase = tuple(run[place : place + length])
            if phrase[:-1] in before and phrase[1:] in before:
                yield phrase
