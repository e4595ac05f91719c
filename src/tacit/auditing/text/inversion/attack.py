"""Both attackers on every aligned token of a release."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats
from tacit.auditing.text import scale
from tacit.auditing.text.inversion.alignment import Aligned, align
from tacit.auditing.text.inversion.bayes import posterior
from tacit.auditing.text.pairs import TextPairs
from tacit.auditing.text.scale import Success
from tacit.progress import StepProgress
from tacit.text.sensitive import rarest_words
from tacit.words.base import WordMechanism
from tacit.words.two_classes import TwoClassWords

SENSITIVE_SHARE = 0.9
WORST = 20


@dataclass(frozen=True)
class Inversion:
    """Success of both attackers on the tokens of a release, for all words and for the sensitive ones.

    expected_unchanged   mean chance of the claimed law to leave a word as it is (NaN where it was sampled)
    unchanged            share of words that are the same in both texts
    chance_of_unchanged  bound on the chance of so many unchanged words under the claimed law
    leakage              vulnerability / largest prior: how many times likelier a right guess became under the prior
    worst                words that were guessed right with the greatest certainty: row, original, released, certainty
    """

    mechanism: str
    exact: bool
    tokens: int
    left_out: int
    outside: int
    bayes: Success
    nearest: Success
    bayes_by_class: dict[str, Success]
    nearest_by_class: dict[str, Success]
    leakage: float
    vulnerability: float
    unchanged: float
    expected_unchanged: float
    chance_of_unchanged: float
    worst: list[tuple[int, str, str, float]]


def invert(
    pairs: TextPairs,
    mechanism: WordMechanism,
    prior: Floats,
    *,
    seed: int = 0,
    progress: StepProgress | None = None,
) -> Inversion:
    """Attack every aligned token of a release."""
    aligned = align(pairs, mechanism)
    known = posterior(mechanism, prior, seed=seed, progress=progress)
    guess = np.where(aligned.copied, aligned.released, known.guess[aligned.released])
    bayes = guess == aligned.original
    nearest = aligned.released == aligned.original
    blind = aligned.original == int(prior.argmax())
    sensitive = sensitive_words(mechanism)[aligned.original]
    classes = {"sensitive words": sensitive, "common words": ~sensitive}
    drawn = ~aligned.copied
    chances = known.stays[aligned.original[drawn]]
    expected = float(chances.mean()) if known.exact and len(chances) else math.nan
    unchanged = float(nearest[drawn].mean()) if drawn.any() else math.nan
    return Inversion(
        mechanism=mechanism.name,
        exact=known.exact,
        tokens=len(bayes),
        left_out=aligned.left_out,
        outside=aligned.outside,
        bayes=scale.of_trials(bayes, floor=float(blind.mean()), ceiling=1.0, looks=2),
        nearest=scale.of_trials(nearest, floor=float(blind.mean()), ceiling=1.0, looks=2),
        bayes_by_class={name: _within(bayes, blind, mask) for name, mask in classes.items()},
        nearest_by_class={name: _within(nearest, blind, mask) for name, mask in classes.items()},
        leakage=known.vulnerability / float(prior.max()),
        vulnerability=known.vulnerability,
        unchanged=unchanged,
        expected_unchanged=expected,
        chance_of_unchanged=chance_of_at_least(unchanged, expected, int(drawn.sum())),
        worst=_worst(pairs, aligned, mechanism, bayes & sensitive, known.certainty),
    )


def _within(right: NDArray[np.bool_], blind: NDArray[np.bool_], mask: NDArray[np.bool_]) -> Success:
    floor = float(blind[mask].mean()) if mask.any() else 0.0
    return scale.of_trials(right[mask], floor=floor, ceiling=1.0, looks=4)


def sensitive_words(mechanism: WordMechanism) -> NDArray[np.bool_]:
    """The mechanism's own sensitive words, or the rarest 90 % of its vocabulary (as in the SanText+ paper)."""
    if isinstance(mechanism, TwoClassWords):
        return mechanism.sensitive
    return rarest_words(mechanism.vocabulary, SENSITIVE_SHARE)


def chance_of_at_least(share: float, mean: float, count: int) -> float:
    """Hoeffding's bound on the chance that independent events with this mean chance happen in this share or more."""
    if not (math.isfinite(share) and math.isfinite(mean)) or share <= mean or count == 0:
        return 1.0
    if mean <= 0.0:
        return 0.0
    part = share * math.log(share / mean)
    rest = 0.0 if share >= 1.0 else (1.0 - share) * math.log((1.0 - share) / (1.0 - mean))
    return math.exp(-count * (part + rest))


def _worst(
    pairs: TextPairs, aligned: Aligned, mechanism: WordMechanism, right: NDArray[np.bool_], certainty: Floats
) -> list[tuple[int, str, str, float]]:
    places = np.flatnonzero(right)
    order = places[np.argsort(-certainty[aligned.released[places]], kind="stable")]
    words, shown, result = mechanism.vocabulary, set(), []
    for i in order.tolist():
        pair = (int(aligned.original[i]), int(aligned.released[i]))
        if pair not in shown:
            shown.add(pair)
            row = pairs.rows[int(aligned.rows[i])]
            result.append((row, words[pair[0]], words[pair[1]], float(certainty[pair[1]])))
        if len(result) == WORST:
            break
    return result
