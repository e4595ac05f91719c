"""Canaries: made-up secrets of a public format, put into the training data, and how well the model knows them.

Carlini, Liu, Erlingsson, Kos & Song, "The secret sharer" (USENIX Security 2019). A format such as "the code of the door
is {digits:6}" has |R| candidates. The exposure of a canary s is

    exposure(s) = log2 |R| - log2 rank(s),    rank by the model's loss among all candidates, ties counting against it

from 0 (the last of all) to log2 |R| (the model prefers it to every other candidate). A canary that the model never saw
has a uniform rank: Pr[exposure >= x] <= 2**-x. Other inserted canaries are no candidates: known ones would hide each
other.

    enumerated     all candidates are scored: exact
    extrapolated   a skew-normal law is fitted to the losses of random candidates, and its lower tail at the canary's
                   loss gives the rank (section 4.4 there): an estimate, with the p-value of a Kolmogorov-Smirnov test
                   of the fit beside it. What the sample alone proves, -log2 of the Clopper-Pearson upper bound of the
                   share of candidates with at most its loss, is `at_least`.

Each canary has a number of repeats and a fair coin: heads, it is inserted so many times; tails, it is left out. So the
same file serves the one-run audit (`tacit.auditing.models.one_run`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Literal

import numpy as np
from scipy.stats import kstest, skewnorm

from tacit.arrays import Floats
from tacit.auditing.binomial import at_most
from tacit.auditing.models.one_run import Observations, check_confidence
from tacit.errors import BadParameterError
from tacit.noise.source import Source
from tacit.report import Finding, Light, Section, Table

Losses = Callable[[Sequence[str]], Floats]

WORDS = (
    "anchor", "apple", "arrow", "basket", "beacon", "bottle", "bridge", "butter", "button", "candle", "canvas",
    "carpet", "castle", "cherry", "circle", "copper", "corner", "cotton", "cradle", "desert", "dragon", "engine",
    "fabric", "feather", "finger", "forest", "garden", "garlic", "ginger", "guitar", "hammer", "harbor", "island",
    "jacket", "kettle", "ladder", "lantern", "lemon", "magnet", "marble", "meadow", "mirror", "needle", "orange",
    "paddle", "palace", "pepper", "pillow", "planet", "pocket", "puzzle", "rabbit", "ribbon", "saddle", "shadow",
    "silver", "spider", "ticket", "tunnel", "velvet", "violin", "walnut", "window", "winter",
)  # fmt: skip
"""64 public words: six bits each."""

ALPHABETS: dict[str, Sequence[str]] = {
    "digits": "0123456789",
    "letters": "abcdefghijklmnopqrstuvwxyz",
    "hex": "0123456789abcdef",
    "words": WORDS,
}
DEFAULT_FORMAT = "my secret number is {digits:9}"
ENUMERATED = 100_000
SAMPLED = 1_000
_FIELD = re.compile(r"\{(\w+):(\d+)\}")


@dataclass(frozen=True)
class CanaryFormat:
    """A public pattern with fields {digits:N}, {letters:N}, {hex:N} or {words:N}."""

    pattern: str

    def __post_init__(self) -> None:
        fields = _FIELD.findall(self.pattern)
        if not fields:
            raise BadParameterError(
                "canary-without-random-field",
                "a canary format has a random field, such as '{example}': one of {fields}",
                example=DEFAULT_FORMAT,
                fields=", ".join("{" + name + ":N}" for name in ALPHABETS),
            )
        for kind, length in fields:
            if kind not in ALPHABETS or int(length) < 1:
                raise BadParameterError(
                    "unknown-canary-field",
                    "there is no field {{{kind}:{length}}}: use {fields} with N of at least 1",
                    kind=kind,
                    length=length,
                    fields=", ".join("{" + name + ":N}" for name in ALPHABETS),
                )

    @property
    def _slots(self) -> list[Sequence[str]]:
        return [ALPHABETS[kind] for kind, length in _FIELD.findall(self.pattern) for _ in range(int(length))]

    @property
    def candidates(self) -> int:
        """|R|, exactly."""
        return math.prod(len(slot) for slot in self._slots)

    def fill(self, symbols: Sequence[str]) -> str:
        left = list(symbols)

        def take(match: re.Match[str]) -> str:
            count = int(match[2])
            taken, left[:count] = left[:count], []
            return (" " if match[1] == "words" else "").join(taken)

        return _FIELD.sub(take, self.pattern)

    def enumerate(self) -> list[str]:
        """All candidates."""
        return [self.fill(symbols) for symbols in product(*self._slots)]

    def draw(self, count: int, generator: np.random.Generator) -> list[str]:
        """Different random candidates."""
        if 2 * count > self.candidates:
            raise BadParameterError(
                "too-few-candidates",
                "the format has {candidates:,} candidates, too few to draw {count:,}: make its field longer",
                candidates=self.candidates,
                count=count,
            )
        texts: dict[str, None] = {}
        while len(texts) < count:
            texts[self.fill([slot[int(generator.integers(len(slot)))] for slot in self._slots])] = None
        return list(texts)


@dataclass(frozen=True)
class Canary:
    """A secret, how often it is inserted if its coin says so, and the coin.

    pattern  the public format of all candidates; empty for a canary in the distribution (`in_distribution`)
    prefix   what stands before the secret there
    label    the label of its row, if rows have one
    """

    text: str
    pattern: str
    repeats: int
    included: bool
    prefix: str = ""
    label: str | None = None

    @property
    def insertions(self) -> int:
        return self.repeats if self.included else 0


CanaryLosses = Callable[[Sequence[Canary]], Floats]
"""The loss of each canary; smaller for what looks trained on."""


def make_canaries(
    count: int,
    *,
    source: Source,
    pattern: str = DEFAULT_FORMAT,
    repeats: Sequence[int] = (1,),
) -> list[Canary]:
    """`count` canaries; the numbers of repeats take turns, and each canary has its own fair coin."""
    if count < 2:
        raise BadParameterError("too-few-canaries", "an audit needs at least 2 canaries, not {count}", count=count)
    if not repeats or min(repeats) < 1:
        raise BadParameterError("impossible-repeats", "a canary is inserted at least once: repeats are numbers from 1")
    generator = source.generator
    texts = CanaryFormat(pattern).draw(count, generator)
    coins = generator.random(count) < 0.5
    return [
        Canary(text, pattern, int(repeats[place % len(repeats)]), bool(coin))
        for place, (text, coin) in enumerate(zip(texts, coins, strict=True))
    ]


def insert(texts: Sequence[str], canaries: Sequence[Canary], source: Source) -> list[str]:
    """The training texts with the included canaries at random places."""
    everything = [*texts, *(canary.text for canary in canaries for _ in range(canary.insertions))]
    return [everything[place] for place in source.generator.permutation(len(everything))]


def inserted_canaries(canaries: Sequence[Canary], source: Source) -> list[Canary]:
    """The included canaries in a random order, each as often as it is inserted."""
    everything = [canary for canary in canaries for _ in range(canary.insertions)]
    return [everything[place] for place in source.generator.permutation(len(everything))]


# Exposure ---------------------------------------------------------------------------------------------------------

Method = Literal["enumerated", "extrapolated"]


@dataclass(frozen=True)
class Exposure:
    """One canary.

    exposure    in bits, exact or estimated by the method of its `Exposures`
    at_least    what the random candidates prove with the stated confidence; the exposure itself if enumerated
    """

    canary: Canary
    loss: float
    exposure: float
    at_least: float


@dataclass(frozen=True)
class Exposures:
    """All canaries of one format. `largest` is log2 |R|; `fit` the p-value of the fitted law, None if enumerated."""

    pattern: str
    method: Method
    candidates: int
    scored: int
    largest: float
    fit: float | None
    confidence: float
    canaries: tuple[Exposure, ...]


def exposures(
    losses: Losses,
    canaries: Sequence[Canary],
    *,
    source: Source,
    confidence: float = 0.95,
    enumerated: int = ENUMERATED,
    sampled: int = SAMPLED,
) -> list[Exposures]:
    """The exposure of every canary, by format. `losses` scores texts; formats with up to `enumerated` candidates are
    scored in full."""
    check_confidence(confidence)
    groups = []
    for pattern in dict.fromkeys(canary.pattern for canary in canaries):
        group = [canary for canary in canaries if canary.pattern == pattern]
        form = CanaryFormat(pattern)
        own = np.asarray(losses([canary.text for canary in group]), dtype=np.float64)
        largest = math.log2(form.candidates)
        fit: float | None = None
        if form.candidates <= enumerated:
            method: Method = "enumerated"
            inserted = {canary.text for canary in group if canary.included}
            texts = [text for text in form.enumerate() if text not in inserted]
            others = np.sort(np.asarray(losses(texts), dtype=np.float64))
            # A text that is scored in another batch may differ in the last bits: that near counts as equal.
            below = np.searchsorted(others, own + 1e-6 * np.abs(own), side="right")
            itself = np.array([canary.included for canary in group], dtype=np.int64)  # others do not hold it
            bits = np.log2(len(others) + itself) - np.log2(np.maximum(1, below + itself))
            proven = bits
        else:
            method = "extrapolated"
            taken = {canary.text for canary in group}
            texts = [text for text in form.draw(sampled, source.generator) if text not in taken]
            others = np.sort(np.asarray(losses(texts), dtype=np.float64))
            law, fit = _fitted(others)
            bits = np.clip(-skewnorm.logcdf(own, *law) / math.log(2), 0.0, largest)
            below = np.searchsorted(others, own, side="right")
            upper = at_most(below, len(others), 1 - confidence)
            proven = np.maximum(0.0, -np.log2(np.where(below == len(others), 1.0, upper)))
        rows = tuple(
            Exposure(canary, float(loss), float(bit), float(least))
            for canary, loss, bit, least in zip(group, own, bits, proven, strict=True)
        )
        groups.append(Exposures(pattern, method, form.candidates, len(others), largest, fit, confidence, rows))
    return groups


def _fitted(losses: Floats) -> tuple[tuple[float, float, float], float]:
    """A skew-normal law by moments, refined by maximum likelihood, and the p-value of its fit."""
    spread = float(losses.std())
    if spread == 0:
        return (0.0, float(losses.mean()), 1e-9), 0.0
    shape, place, scale = skewnorm.fit((losses - losses.mean()) / spread, 0.0)
    law = (float(shape), float(place * spread + losses.mean()), float(scale * spread))
    return law, float(kstest(losses, skewnorm(*law).cdf).pvalue)


def observations(losses: Losses, canaries: Sequence[Canary], *, baseline: Losses | None = None) -> Observations:
    """Scores for the one-run audit: the loss turned around, less that of a reference model where one is given."""

    def of_texts(scored: Losses) -> CanaryLosses:
        return lambda some: scored([canary.text for canary in some])

    known = None if baseline is None else of_texts(baseline)
    return observed_canaries(of_texts(losses), canaries, baseline=known)


def observed_canaries(
    losses: CanaryLosses, canaries: Sequence[Canary], *, baseline: CanaryLosses | None = None
) -> Observations:
    """The same by losses of canaries, which may look at a part of a canary or at its label."""
    scores = -np.asarray(losses(canaries), dtype=np.float64)
    if baseline is not None:
        scores = scores + np.asarray(baseline(canaries), dtype=np.float64)
    coins = np.array([canary.included for canary in canaries])
    return Observations(scores[coins], scores[~coins])


# For a report -----------------------------------------------------------------------------------------------------


def canary_section(groups: Sequence[Exposures], *, false_alarm: float = 0.05) -> Section:
    """Exposure by number of insertions, and whether inserted canaries are known better than chance allows."""
    rows = [row for group in groups for row in group.canaries]
    inserted = [row for row in rows if row.canary.included]
    bar = math.log2(max(1, len(inserted)) / false_alarm)
    known = [row for row in inserted if row.exposure >= bar]
    exact = all(group.method == "enumerated" for group in groups)
    method = "exact, by enumeration" if exact else "estimated by extrapolation from random candidates"
    highest = max(inserted, key=lambda row: row.exposure)
    largest = max(group.largest for group in groups)
    light = Light.RED if known else Light.GREEN
    sentence = (
        f"{len(known):,} of {len(inserted):,} inserted canaries are exposed by {bar:.1f} bits or more; the highest has "
        f"{highest.exposure:.1f} of {largest:.1f} bits after {_times(highest.canary.insertions)} ({method})."
    )
    reachable = min(group.largest for group in groups) >= bar
    if not reachable:
        sentence += " The format has too few candidates for this number of canaries to show anything."
        light = Light.RED if known else Light.AMBER
    why = (
        f"A canary that was never seen reaches x bits with probability 2**-x, so one of {len(inserted):,} passes "
        f"{bar:.1f} bits by chance with probability {false_alarm:g} at most"
        + ("." if exact else ", as far as the fitted law holds.")
    )
    numbers = {
        "exposed": len(known), "inserted": len(inserted), "threshold_bits": bar, "highest": highest.exposure,
        "largest": largest, "method": [group.method for group in groups], "fit": [group.fit for group in groups],
    }  # fmt: skip
    counts = sorted({row.canary.insertions for row in rows})
    summary = []
    for count in counts:
        bits = [row.exposure for row in rows if row.canary.insertions == count]
        summary.append((count, len(bits), float(np.median(bits)), max(bits)))
    tables = [
        Table(
            "Exposure by number of insertions",
            ("insertions", "canaries", "median bits", "highest bits"),
            summary,
            note="Left-out canaries (0 insertions) show what chance gives: a median of 1 bit.",
        ),
        Table(
            "Canaries the model knows best",
            ("canary", "insertions", "exposure", "proven at least", "loss"),
            [
                (row.canary.text, row.canary.insertions, row.exposure, row.at_least, row.loss)
                for row in sorted(rows, key=lambda row: -row.exposure)[:10]
            ],
        ),
    ]
    for group in groups:
        if group.fit is not None and group.fit < 0.01:
            sentence += " The fitted law does not describe the candidates well: read the proven bits instead."
            break
    return Section(
        "Canaries",
        "Made-up secrets that were put into the training data, ranked by the model among all secrets of their format.",
        (Finding("Canary exposure", light, sentence, why, numbers=numbers),),
        tables,
    )


def _times(insertions: int) -> str:
    return "1 insertion" if insertions == 1 else f"{insertions} insertions"
