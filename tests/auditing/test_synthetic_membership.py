"""Membership by shadow releases: the card holds for the right release, and planted mistakes are refuted.

A seed fixes all noise, so a test passes or fails always. For fresh noise the stated false-alarm rate is 1 - confidence.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from tacit.auditing.synthetic import AuditedRows, MatchingRelease, membership_attack, release_of, usual_targets
from tacit.auditing.synthetic.bounds import separation
from tacit.auditing.synthetic.planted import PLANTED
from tacit.errors import BadInputError, BadParameterError
from tacit.matching.features import default_map
from tacit.matching.labels import ListedLabels
from tacit.matching.pool import load_pool

NAMES = ("good", "bad", "other")


def private_rows(count: int = 120, users: int = 0) -> AuditedRows:
    texts = list(load_pool().sentences[:count])
    return AuditedRows(
        texts,
        [NAMES[row % 3] for row in range(count)],
        [f"user {row % users}" for row in range(count)] if users else (),
    )


def release(kind: str = "", epsilon: float = 1.0, *, by_user: bool = False) -> MatchingRelease:
    made = PLANTED[kind] if kind else MatchingRelease
    return made(ListedLabels(NAMES), default_map(), epsilon, 1e-5, by_user)


@pytest.mark.parametrize("by_user", [False, True])
def test_the_right_release_is_not_refuted(by_user: bool) -> None:
    attack = membership_attack(private_rows(users=12 if by_user else 0), release(by_user=by_user), releases=60, seed=3)
    assert not attack.refuted
    assert attack.accuracy < 0.7
    assert attack.allowed_accuracy == pytest.approx(norm.cdf(attack.claimed_shift / 2))
    assert len(attack.attacks) == (3 if by_user else 4)


@pytest.mark.parametrize("kind", ["means-without-noise", "counts-without-noise"])
def test_what_has_no_noise_is_refuted(kind: str) -> None:
    attack = membership_attack(private_rows(), release(kind), releases=40, seed=3)
    assert attack.refuted
    assert attack.accuracy > 0.95


def test_users_that_are_not_bounded_are_refuted() -> None:
    attack = membership_attack(private_rows(users=12), release("users-not-bounded", by_user=True), releases=40, seed=3)
    assert attack.refuted
    assert attack.best.target == "a user with 200 equal rows"


def test_an_attack_reaches_what_the_card_allows() -> None:
    """At epsilon 8 the likelihood ratio comes close to the bound of the card, and stays below it."""
    attack = membership_attack(private_rows(), release(epsilon=8.0), releases=200, seed=5)
    assert not attack.refuted
    assert attack.best.separation.score == "likelihood"
    assert attack.accuracy == pytest.approx(attack.allowed_accuracy, abs=attack.accuracy_margin)
    assert 0 < attack.shift < attack.claimed_shift


def test_bounds_of_a_known_law_are_below_it() -> None:
    """Two normal laws 2 apart: the bounds come near the truth and are never above it by chance (doubt 0.001)."""
    generator = np.random.default_rng(1)
    for _ in range(20):
        with_target = {"score": generator.normal(2.0, 1.0, 3000)}
        without = {"score": generator.normal(0.0, 1.0, 3000)}
        bound = separation(with_target, without, 0.0, 0.001)
        assert 1.6 < bound.shift <= 2.0
        assert bound.accuracy == pytest.approx(norm.cdf(1.0), abs=0.02)
        assert bound.area == pytest.approx(norm.cdf(2 / np.sqrt(2)), abs=0.02)


def test_equal_releases_show_nothing() -> None:
    same = {"score": np.zeros(100)}
    bound = separation(same, same, 1e-5, 0.001)
    assert bound.epsilon == bound.shift == 0
    assert bound.area == bound.accuracy == 0.5


def test_targets_are_not_among_the_other_rows() -> None:
    rows = private_rows(6)
    for target in usual_targets(rows, release()):
        assert len(target.rows) == 1
    attack = membership_attack(rows, release(), releases=20, seed=1)
    assert attack.attacks


def test_errors_come_before_any_work() -> None:
    with pytest.raises(BadParameterError) as error:
        membership_attack(private_rows(), release(), releases=5)
    assert error.value.code == "too-few-releases"
    with pytest.raises(BadParameterError) as error:
        membership_attack(private_rows(), release(), confidence=1.0)
    assert error.value.code == "impossible-confidence"
    with pytest.raises(BadInputError) as error_of_rows:
        AuditedRows(["a", "b"], ["good"])
    assert error_of_rows.value.code == "uneven-columns"


def test_a_sketch_says_how_others_like_it_are_made() -> None:
    made = release(epsilon=2.0, by_user=True)
    assert release_of(made.sketch(private_rows(users=12))) == made


def test_a_sketch_without_a_promise_is_not_audited() -> None:
    with pytest.raises(BadInputError) as error:
        release_of(release().sketch(private_rows(), seed=1))
    assert error.value.code == "promise-not-audited"
