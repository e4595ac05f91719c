"""Membership by shadow releases: many sketches with a target row and many without it, told apart by several scores.

The attacker of the promise knows all other rows, the target, and every public choice. Against normal noise the best
test of all is then known (Neyman & Pearson): the likelihood ratio, which is the product of what the target would add
with what the release has beyond the other rows. The other scores are worse against a correct release and better against
some mistakes.

    likelihood       the product with what the target would add: the best test against normal noise
    nearness         how much nearer the release is to the sums with the target, in absolute values: the best test
                     against Laplace noise
    count            the number of rows of its label
    exact numbers    how many of the released numbers are exactly those with the target, less those without it

The other rows are few (`BASE_ROWS`): the noise does not depend on them, and an attacker who knows them takes them off.
Every release here is made anew by the code under audit, with fresh noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.stats import norm

from tacit.arrays import Floats
from tacit.auditing.models.one_run import check_confidence
from tacit.auditing.synthetic.bounds import Separation, most_accurate, separation
from tacit.auditing.synthetic.numbers import SketchNumbers, exact_numbers, released_numbers
from tacit.auditing.synthetic.process import MatchingRelease, release_of
from tacit.auditing.synthetic.rows import AuditedRows, sample_of
from tacit.auditing.synthetic.targets import Target, usual_targets
from tacit.errors import BadInputError, BadParameterError
from tacit.matching.sketch import Sketch
from tacit.matching.whole_numbers import GRID
from tacit.noise.gaussian import gaussian_epsilon
from tacit.progress import StepProgress

BASE_ROWS = 20
CONFIDENCE = 0.999
"""A correct release is called refuted with probability 1 - CONFIDENCE at most."""
FEWEST_RELEASES = 20
QUICK_RELEASES = 200
LIKELIHOOD = "likelihood"
"""The score that is linear in the noise."""


@dataclass(frozen=True)
class TargetAttack:
    """The best attack on one target."""

    target: str
    separation: Separation


@dataclass(frozen=True)
class ShadowAttack:
    """Attacks on all targets, and the claim they are held against. All bounds hold together with `confidence`.

    claimed_epsilon, claimed_delta   of the card
    claimed_shift                    mu of the card: 1 / sigma; None for noise that is not normal
    """

    attacks: tuple[TargetAttack, ...]
    claimed_epsilon: float
    claimed_delta: float
    claimed_shift: float | None
    confidence: float

    @cached_property
    def best(self) -> TargetAttack:
        """The attack that guesses best."""
        return max(self.attacks, key=lambda attack: attack.separation.accuracy)

    @property
    def accuracy(self) -> float:
        """The share of right guesses of the best attack; 1/2 is guessing."""
        return self.best.separation.accuracy

    @property
    def accuracy_margin(self) -> float:
        """The share of right guesses is known to within this, in 19 of 20 audits, for all targets together."""
        return float(norm.isf(0.025 / len(self.attacks))) * 0.5 / math.sqrt(2 * self.best.separation.releases)

    @property
    def allowed_accuracy(self) -> float:
        """The largest share of right guesses that the card allows any attack, however strong."""
        if self.claimed_shift is None:
            return 1 / (1 + math.exp(-self.claimed_epsilon))
        return most_accurate(self.claimed_shift)

    @property
    def epsilon(self) -> float:
        """Epsilon is at least this, whatever the noise is like."""
        return max(attack.separation.epsilon for attack in self.attacks)

    @property
    def shift(self) -> float:
        """One record moves the sums by at least so many standard deviations, if the noise is normal."""
        return max(attack.separation.shift for attack in self.attacks)

    @property
    def epsilon_if_normal(self) -> float:
        """Epsilon at the claimed delta is at least this, if the noise is normal."""
        if self.claimed_shift is None:
            return 0.0
        return 0.0 if self.shift <= 0 else gaussian_epsilon(1.0 / self.shift, self.claimed_delta, 1.0)

    @property
    def refuted(self) -> bool:
        """Whether the card is shown to be wrong."""
        beyond = self.claimed_shift is not None and self.shift > self.claimed_shift
        return self.epsilon > self.claimed_epsilon or beyond


def membership_attack(
    rows: AuditedRows,
    sketch: Sketch | MatchingRelease,
    *,
    releases: int = QUICK_RELEASES,
    targets: Sequence[Target] | None = None,
    confidence: float = CONFIDENCE,
    seed: int | None = None,
    progress: StepProgress | None = None,
) -> ShadowAttack:
    """Shadow releases of a sketch with and without targets, `releases` of each.

    sketch   the released sketch, which says how others like it are made, or a way of making them
    seed     a test seed for all noise; without it noise is fresh, as in a release

        attack = membership_attack(AuditedRows(texts, labels), sketch)
        attack.accuracy, attack.allowed_accuracy, attack.refuted
    """
    release = sketch if isinstance(sketch, MatchingRelease) else release_of(sketch)
    check_audit(rows, releases, confidence)
    tried = usual_targets(rows, release) if targets is None else tuple(targets)
    shadows = ShadowSketches(release, rows, tried, seed)
    doubt = (1 - confidence) / len(tried)
    total, done = releases * (1 + len(tried)), 0

    def scores(name: Target | None) -> dict[Target, dict[str, Floats]]:
        nonlocal done
        made = []
        for _ in range(releases):
            made.append(shadows.scores(name))
            done += 1
            if progress is not None:
                progress(done, total)
        return {target: _columns([each[target] for each in made]) for target in made[0]}

    without = scores(None)
    attacks = []
    for target in tried:
        with_target = scores(target)[target]
        attacks.append(TargetAttack(target.kind, _separated(with_target, without[target], release, doubt)))
    return ShadowAttack(tuple(attacks), release.epsilon, release.delta, release.shift, confidence)


def _separated(
    with_target: dict[str, Floats], without: dict[str, Floats], release: MatchingRelease, doubt: float
) -> Separation:
    normal = LIKELIHOOD if release.shift is not None else None
    return separation(with_target, without, release.delta, doubt, normal)


def check_releases(releases: int) -> None:
    """Refuse too few shadow releases."""
    if releases < FEWEST_RELEASES:
        raise BadParameterError(
            "too-few-releases",
            "{given} shadow releases show nothing: make at least {fewest}",
            given=releases,
            fewest=FEWEST_RELEASES,
        )


def check_audit(rows: AuditedRows, releases: int, confidence: float) -> None:
    """Errors before any work."""
    if len(rows) < 2:
        raise BadInputError("too-few-rows", "an audit needs at least 2 private rows")
    check_releases(releases)
    check_confidence(confidence)


class ShadowSketches:
    """Fresh releases of the same few rows, with a target or without, and their scores."""

    def __init__(
        self, release: MatchingRelease, rows: AuditedRows, targets: Sequence[Target], seed: int | None
    ) -> None:
        self._release = release
        self._base = sample_of(rows, BASE_ROWS, 0, [place for target in targets for place in target.places])
        if not len(self._base):
            raise BadInputError("too-few-rows", "all private rows are targets of the audit: give more rows")
        self._exact = exact_numbers(release, self._base)
        self._added = {
            target: exact_numbers(release, self._base.with_rows(target.rows)) - self._exact for target in targets
        }
        self._seeds: Callable[[], int | None] = (lambda: None) if seed is None else _counting(seed)

    def scores(self, target: Target | None) -> dict[Target, dict[str, float]]:
        """The scores of a fresh release: for its target, or without one for all targets."""
        rows = self._base if target is None else self._base.with_rows(target.rows)
        sketch = self._release.sketch(rows, self._seeds())
        beyond = released_numbers(sketch) - self._exact
        looked_for = self._added if target is None else {target: self._added[target]}
        return {each: sketch_scores(beyond, added, sketch.step) for each, added in looked_for.items()}


def sketch_scores(beyond: SketchNumbers, added: SketchNumbers, step: int) -> dict[str, float]:
    """The scores of what a release has beyond the other rows, for a target that would add `added`; all in steps."""
    lines = np.asarray(added.totals.any(axis=1))
    seen, wanted = beyond.flat(lines).astype(np.float64), added.flat(lines).astype(np.float64)
    length = max(1.0, math.sqrt(float((wanted * wanted).sum())))
    distinct = np.abs(wanted) > 2 * step
    # Released numbers are rounded to a step, so an exact one is off by half a step at most.
    exact_with = (np.abs(seen - wanted) <= step / 2) & distinct
    exact_without = (np.abs(seen) <= step / 2) & distinct
    return {
        LIKELIHOOD: float((seen * wanted).sum()) / (length * GRID),
        "nearness": float(np.abs(seen).sum() - np.abs(seen - wanted).sum()) / GRID,
        "count": float(beyond.totals[lines, -1].sum()) / GRID,
        "exact numbers": float(exact_with.sum() - exact_without.sum()) / max(1, int(distinct.sum())),
    }


def _columns(rows: Sequence[dict[str, float]]) -> dict[str, Floats]:
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}


def _counting(seed: int) -> Callable[[], int]:
    """Test seeds, one after another."""
    last = seed * 1_000_003

    def following() -> int:
        nonlocal last
        last += 1
        return last

    return following
