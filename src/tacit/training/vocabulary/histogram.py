"""The words of a private column with noisy counts.

A vocabulary that is learned from private text is a release: a name that stands in it shows that somebody wrote it. Here
it is paid for (Hoory et al., "Learning and evaluating a differentially private pre-trained language model", Findings of
EMNLP 2021, section 3.2; Ponomareva et al., "Training text-to-text transformers with privacy guarantees", Findings of
ACL 2022, section 4).

    1. Each unit (a record, or all records of a user) adds to the counts of at most L different words: 1 to each
       ("one"), or 1 / sqrt(k) to each of its k words ("shared"; Gopi et al., "Differentially private set union", ICML
       2020). Which L of more words count is a function of the unit alone: a choice from one stream of random numbers
       for all units would move with every unit that is added, and no sensitivity would hold.
    2. Every count gets noise: normal of width sigma, or discrete Laplace.
    3. Only words with a noisy count of at least tau are released, with that count.

Why the threshold. Noise cannot hide *which* words have a count: a word that one unit alone holds is in the histogram or
not. It must come out with a small probability only (Korolova et al., "Releasing search queries and clicks privately",
WWW 2009). Let neighbors differ by one unit that holds k words of weight w, u of which no other unit holds, and let
p = Phi((tau - w) / sigma)^u be the probability that none of these u passes. Whether one passes is independent of the
noise of the other words, on which the counts differ by s = w sqrt(k - u) in l2 norm. With delta_G(e, s) the delta of
the Gaussian mechanism at epsilon e, the largest possible delta is

    with against without the unit    (1 - p) + p delta_G(epsilon - ln p, s)
    without against with             delta_G(epsilon + ln p, s)

(Wilkins, Kifer, Zhang & Karrer, "Exact privacy analysis of the Gaussian sparse histogram mechanism", JPC 2024); cutting
off the other words at tau is post-processing. `thresholded_delta` is the maximum over k and u; `calibrate` finds sigma
and tau that keep it at or below delta. Without a threshold p = 0 and delta = 1: nothing is promised.

For Laplace noise of scale L / epsilon the other words stay within epsilon (L - u) / L, so delta = 1 - p alone, as long
as -ln p <= epsilon u / L, which is part of the calibration.

When a *public* word list is given, all of its words get a noisy count, those that nobody used included. Then there is
nothing to hide but the counts: no threshold, and with Laplace noise no delta.

Replacing a unit instead of removing it: both units can differ in all their words, so s^2 and the l1 distance double,
and p' of the other unit enters as delta_G(epsilon - ln p + ln p', s).
"""

from __future__ import annotations

import hashlib
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from tacit.account.delta import automatic_delta, check_delta
from tacit.arrays import Floats
from tacit.errors import BadInputError, BadParameterError
from tacit.guarantee import Adjacency, Guarantee, Model, Notion, Provenance, Unit, VoidReason, check_epsilon
from tacit.noise.gaussian import add_gaussian, analytic_gaussian_sigma
from tacit.noise.grid import step_below
from tacit.noise.laplace import discrete_laplace
from tacit.noise.parameters import proper_delta
from tacit.noise.source import Source, new_source, public_generator

WEIGHTINGS = ("one", "shared")
NOISES = ("gaussian", "laplace")
DEFAULT_WORDS = 100

_STEPS_PER_COUNT = 1 << 20
"""Laplace counts lie on a grid of this many steps to one count, whatever the data: counts are on it exactly."""

_WIDER = (1.0, 1.003, 1.01, 1.03)
"""Noise a little above the least possible leaves more of delta to the threshold: the best of these is taken."""

_WORD = re.compile(r"[^\W_]+|[^\w\s]|_")


def words_of(text: str, *, lowercase: bool = True) -> list[str]:
    """The words of a text by a fixed public rule: runs of letters and digits, and every other mark on its own (as
    BERT cuts words before it looks for pieces)."""
    return _WORD.findall(text.lower() if lowercase else text)


# What one unit adds -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Contribution:
    """words: the most different words that one unit adds to; weighting: how much to each of them."""

    words: int = DEFAULT_WORDS
    weighting: str = "shared"

    def __post_init__(self) -> None:
        if self.words < 1:
            raise BadParameterError(
                "impossible-count", "a unit must be allowed at least 1 word, not {count}", count=self.words
            )
        if self.weighting not in WEIGHTINGS:
            raise BadParameterError(
                "unknown-weighting",
                "there is no weighting '{weighting}': choose {known}",
                weighting=self.weighting,
                known=" or ".join(WEIGHTINGS),
            )

    def weight(self, held: int) -> float:
        """The weight of each of `held` words of a unit."""
        return 1.0 if self.weighting == "one" else held**-0.5

    def l2_sensitivity(self, adjacency: Adjacency) -> float:
        entries = self.words if self.weighting == "one" else 1.0
        return math.sqrt(_reach(adjacency) * entries)

    def l1_sensitivity(self, adjacency: Adjacency) -> int:
        if self.weighting != "one":
            raise BadParameterError(
                "noise-does-not-fit-weighting",
                "Laplace noise goes with the weighting 'one', normal noise with both: change either",
            )
        return _reach(adjacency) * self.words

    def chosen(self, words: Sequence[str]) -> list[str]:
        """The different words of a unit, at most so many of them, chosen by the unit's own words and nothing else."""
        different = list(dict.fromkeys(words))
        if len(different) <= self.words:
            return different
        digest = hashlib.blake2b("\n".join(different).encode("utf-8", "surrogatepass"), digest_size=16).digest()
        order = public_generator(int.from_bytes(digest, "little"))
        return [different[i] for i in np.sort(order.permutation(len(different))[: self.words])]


def _reach(adjacency: Adjacency) -> int:
    """How many units' worth of counts two neighbors differ by."""
    if adjacency not in (Adjacency.ADD_REMOVE, Adjacency.REPLACE_ONE):
        raise BadParameterError(
            "adjacency-not-accounted",
            "a histogram promises something for adding or removing one unit, or for replacing one",
        )
    return 2 if adjacency is Adjacency.REPLACE_ONE else 1


def count_words(units: Iterable[Sequence[str]], contribution: Contribution) -> dict[str, float]:
    """The bounded counts of all words: exact, and therefore private."""
    counts: Counter[str] = Counter()
    if contribution.weighting == "one":
        for words in units:
            counts.update(contribution.chosen(words))
        return {word: float(count) for word, count in counts.items()}
    weighted: dict[str, float] = {}
    for words in units:
        chosen = contribution.chosen(words)
        for word in chosen:
            weighted[word] = weighted.get(word, 0.0) + contribution.weight(len(chosen))
    return weighted


def units_of(
    texts: Sequence[str], users: Sequence[str] | None, known: frozenset[str] | None, *, lowercase: bool
) -> Iterator[list[str]]:
    """The words of each unit: of a text, or of all texts of a user; only known ones where the list is public."""

    def words(text: str) -> list[str]:
        all_words = words_of(text, lowercase=lowercase)
        return all_words if known is None else [word for word in all_words if word in known]

    if users is None:
        yield from map(words, texts)
        return
    of_user: dict[str, list[str]] = {}
    for row, (user, text) in enumerate(zip(users, texts, strict=True), 1):
        name = user.strip()  # as in federated training: white space makes no second person
        if not name:
            raise BadInputError("user-not-named", "row {row} has no user: every row must belong to one", row=row)
        of_user.setdefault(name, []).extend(words(text))
    yield from of_user.values()


# Noise and threshold ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class WordNoise:
    """kind; scale: sigma, or the scale of the Laplace noise, in counts; threshold: the smallest noisy count that is
    released, None for a public word list."""

    kind: str
    scale: float
    threshold: float | None
    epsilon: float
    delta: float

    def released(self, words: Sequence[str], counts: Floats, source: Source) -> tuple[list[str], Floats]:
        """The only private step. `words` and `counts` belong together; what comes back may be shown."""
        noisy = self._noisy(counts, source)
        kept = np.arange(len(words)) if self.threshold is None else np.flatnonzero(noisy >= self.threshold)
        # Sorted by what is released: the order of the input is not.
        order = sorted(kept.tolist(), key=lambda i: (-noisy[i], words[i]))
        return [words[i] for i in order], noisy[order]

    def _noisy(self, counts: Floats, source: Source) -> Floats:
        if self.kind == "gaussian":
            return add_gaussian(counts, sigma=self.scale, source=source)
        whole = np.rint(counts * _STEPS_PER_COUNT).astype(np.int64)
        noise = discrete_laplace(round(self.scale * _STEPS_PER_COUNT), len(counts), source)
        return np.asarray((whole + noise) / _STEPS_PER_COUNT)


def calibrate(
    *,
    epsilon: float,
    delta: float,
    contribution: Contribution,
    kind: str = "gaussian",
    adjacency: Adjacency = Adjacency.ADD_REMOVE,
    public_words: bool = False,
) -> WordNoise:
    """Noise and threshold for (epsilon, delta). For a public word list there is no threshold, and Laplace noise needs
    no delta (0 is returned)."""
    check_epsilon(epsilon)
    if kind not in NOISES:
        raise BadParameterError(
            "unknown-noise", "there is no noise '{noise}': choose {known}", noise=kind, known=" or ".join(NOISES)
        )
    if kind == "laplace":
        return _laplace(epsilon, delta, contribution, adjacency, public_words)
    proper_delta(delta)
    least = analytic_gaussian_sigma(epsilon, delta, contribution.l2_sensitivity(adjacency))
    if public_words:
        return WordNoise("gaussian", least, None, epsilon, delta)
    best: tuple[float, float] | None = None
    for factor in _WIDER:
        sigma = least * factor
        threshold = _threshold(epsilon, delta, sigma, contribution, adjacency)
        if threshold is not None and (best is None or threshold < best[0]):
            best = threshold, sigma
    if best is None:
        raise BadParameterError(
            "no-threshold",
            "no threshold gives delta {delta:g} at epsilon {epsilon:g}: raise epsilon, or take a smaller delta",
            delta=delta,
            epsilon=epsilon,
        )
    threshold, sigma = best
    # Noisy counts are rounded to a grid: one step more, and no count below the threshold is rounded up to it.
    return WordNoise("gaussian", sigma, threshold + step_below(sigma * 2.0**-20), epsilon, delta)


def thresholded_delta(
    epsilon: float,
    sigma: float,
    threshold: float,
    contribution: Contribution,
    adjacency: Adjacency = Adjacency.ADD_REMOVE,
) -> float:
    """The largest delta over all neighbors, for normal noise and an unknown vocabulary: the formula above."""
    from scipy.special import log_ndtr

    held = np.arange(1, contribution.words + 1) if contribution.weighting == "shared" else [contribution.words]
    pairs = [(k, u) for k in held for u in range(k + 1)]
    k, u = (np.array(side, dtype=np.float64) for side in zip(*pairs, strict=True))
    weight = np.ones_like(k) if contribution.weighting == "one" else k**-0.5
    # -0 * infinity cannot occur: log_ndtr is finite for finite arguments.
    log_p = u * log_ndtr((threshold - weight) / sigma)
    shared = weight**2 * (k - u)
    if adjacency is Adjacency.ADD_REMOVE:
        without = _gaussian_delta(epsilon + log_p, np.sqrt(shared), sigma)
        other = 0.0
    else:
        # The unit that takes its place: its words that nobody else holds, at their worst, and all its other words.
        other = float(log_p.min())
        shared = shared + contribution.l2_sensitivity(Adjacency.ADD_REMOVE) ** 2
        without = np.zeros_like(log_p)
    with_unit = -np.expm1(log_p) + np.exp(log_p) * _gaussian_delta(epsilon - log_p + other, np.sqrt(shared), sigma)
    return float(max(with_unit.max(), without.max()))


def _gaussian_delta(epsilon: Floats, distance: Floats, sigma: float) -> Floats:
    """Balle & Wang 2018, Theorem 8, for arrays; epsilon may be a little below 0."""
    from scipy.special import log_ndtr, ndtr

    moved = distance > 0
    s = np.where(moved, distance, 1.0)
    a, b = s / (2 * sigma), epsilon * sigma / s
    value = ndtr(a - b) - np.exp(epsilon + log_ndtr(-a - b))
    # Two terms of about the size of the result cancel: what double precision can have lost is added.
    value = value + 1e-14 * ndtr(a - b)
    return np.clip(np.where(moved, value, -np.expm1(np.minimum(epsilon, 0.0))), 0.0, 1.0)


def _threshold(
    epsilon: float, delta: float, sigma: float, contribution: Contribution, adjacency: Adjacency
) -> float | None:
    """The smallest threshold that keeps delta, from above; None if none does."""
    from scipy.optimize import brentq

    def excess(threshold: float) -> float:
        # A delta of 0 has no logarithm; the smallest double stands for it.
        return math.log(max(thresholded_delta(epsilon, sigma, threshold, contribution, adjacency), 5e-324) / delta)

    low, high = 0.0, 1.0 + 40.0 * sigma
    if excess(high) > 0:
        return None
    solution = float(brentq(excess, low, high, xtol=1e-6 * sigma, rtol=1e-12))
    while excess(solution) > 0:
        solution += 1e-6 * sigma
    return solution


def _laplace(
    epsilon: float, delta: float, contribution: Contribution, adjacency: Adjacency, public_words: bool
) -> WordNoise:
    """Scale in whole steps, so that epsilon is exact; the tail of the discrete Laplace is known exactly too:
    Pr[X >= m] = a^m / (1 + a) for m >= 1, a = exp(-1 / scale)."""
    sensitivity = contribution.l1_sensitivity(adjacency)
    scale = math.ceil(sensitivity * _STEPS_PER_COUNT / epsilon)
    if public_words:
        return WordNoise("laplace", scale / _STEPS_PER_COUNT, None, epsilon, 0.0)
    proper_delta(delta)
    passes = -math.expm1(math.log1p(-delta) / contribution.words)
    passes = min(passes, -math.expm1(-epsilon / sensitivity))
    steps = max(1, math.ceil(-scale * (math.log(passes) + math.log1p(math.exp(-1.0 / scale)))))
    return WordNoise("laplace", scale / _STEPS_PER_COUNT, 1.0 + (steps + 1) / _STEPS_PER_COUNT, epsilon, delta)


# The release --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class WordHistogram:
    """Words with noisy counts, the most frequent first, and what was promised to each unit."""

    words: list[str]
    counts: Floats
    guarantee: Guarantee
    lowercase: bool = True

    def __len__(self) -> int:
        return len(self.words)


def private_histogram(
    texts: Sequence[str],
    *,
    epsilon: float,
    delta: float | None = None,
    users: Sequence[str] | None = None,
    contribution: Contribution | None = None,
    kind: str = "gaussian",
    public_words: Sequence[str] | None = None,
    public_name: str = "a public word list",
    adjacency: Adjacency = Adjacency.ADD_REMOVE,
    lowercase: bool = True,
    seed: int | None = None,
) -> WordHistogram:
    """The words of private texts with noisy counts. Every call spends anew.

    Without a delta, a tenth of what a training run takes by itself: the two together stay below 1 / units.
    """
    bounded = contribution or Contribution(weighting="one" if kind == "laplace" else "shared")
    if not texts:
        raise BadInputError("no-text", "there are no texts to take words from")
    count = len(texts) if users is None else len(set(users))
    chosen = automatic_delta(count) / 10 if delta is None else delta
    check_delta(chosen, count)
    known = None if public_words is None else _public(public_words, lowercase=lowercase)
    noise = calibrate(
        epsilon=epsilon,
        delta=chosen,
        contribution=bounded,
        kind=kind,
        adjacency=adjacency,
        public_words=known is not None,
    )
    exact = count_words(
        units_of(texts, users, None if known is None else frozenset(known), lowercase=lowercase), bounded
    )
    words = list(exact) if known is None else known
    source = new_source(seed)
    counts = np.array([exact.get(word, 0.0) for word in words], dtype=np.float64)
    released, noisy = noise.released(words, counts, source)
    guarantee = _guarantee(
        noise, bounded, adjacency, Unit.RECORD if users is None else Unit.USER, public_name if known else None
    )
    if not source.secure:
        guarantee = guarantee.voided("its noise was drawn with a test seed, which undoes it", VoidReason.TEST_SEED)
    return WordHistogram(released, noisy, guarantee, lowercase)


def _public(words: Sequence[str], *, lowercase: bool) -> list[str]:
    """The words of a public list that the word rule can produce."""
    spelled = dict.fromkeys(word.lower() if lowercase else word for word in words)
    usable = [word for word in spelled if _WORD.fullmatch(word)]
    if not usable:
        raise BadInputError(
            "word-list-is-empty", "the public word list has no word that could occur: give one word per line"
        )
    return usable


def _guarantee(
    noise: WordNoise, contribution: Contribution, adjacency: Adjacency, unit: Unit, public_name: str | None
) -> Guarantee:
    name = {"gaussian": "normal noise", "laplace": "discrete Laplace noise"}[noise.kind]
    parameters: dict[str, object] = {
        f"words of one {unit.value}": contribution.words,
        "weighting": contribution.weighting,
        "noise": f"{name} of scale {noise.scale:.6g}",
    }
    if noise.threshold is not None:
        parameters["threshold"] = f"{noise.threshold:.6g} (noisy count a word needs to be shown)"
    return Guarantee(
        notion=Notion.PURE if noise.delta == 0.0 else Notion.APPROXIMATE,
        epsilon=noise.epsilon,
        delta=noise.delta,
        model=Model.CENTRAL,
        unit=unit,
        adjacency=adjacency,
        mechanism="private vocabulary (noisy word counts; Hoory et al. 2021)",
        parameters=parameters,
        not_covered=(f"how many {unit.value}s there are",),
        assumptions=(
            f"the number of {unit.value}s is public",
            "the noise comes from a secret random key of the operating system",
        ),
        provenance=() if public_name is None else (Provenance("word list", public_name),),
    )
