"""Votes: the exact law for all small counts, who may count twice, and the published mistake about unit vectors."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.account.zcdp import choice_rho, epsilon_of_rho, repeated_rho
from tacit.arrays import Floats, Integers
from tacit.errors import BadParameterError
from tacit.noise.choice import rounding_slack
from tacit.training.prompting.batches import PrivateRecord, in_sets_of_users
from tacit.training.prompting.votes import NO_VOTE, VoteLaw, price_of_questions
from tests.training.prompting.toy import largest_loss

LABELS = 3
MOST = 6


def all_counts() -> Iterator[Integers]:
    """All counts of at most 6 votes for 3 labels."""
    for counts in itertools.product(range(MOST + 1), repeat=LABELS):
        if sum(counts) <= MOST:
            yield np.array(counts, dtype=np.int64)


def changed_votes(counts: Integers) -> Iterator[Integers]:
    """The counts after one set has changed its vote, lost it or got one."""
    for old, new in itertools.product([None, *range(LABELS)], repeat=2):
        after = counts.copy()
        if old is not None:
            after[old] -= 1
        if new is not None:
            after[new] += 1
        if after.min() >= 0:
            yield after


def one_more(counts: Integers) -> Iterator[Integers]:
    """The counts with one vote more."""
    for label in range(LABELS):
        after = counts.copy()
        after[label] += 1
        yield after


def ranges(law: VoteLaw, p: Floats, q: Floats) -> float:
    ratio = np.log(p) - np.log(q)
    return float(ratio.max() - ratio.min())


@pytest.mark.parametrize("width", [0.05, 1.0, 3.0])
def test_a_set_that_is_a_group_may_change_its_vote(width: float) -> None:
    law = VoteLaw(width, LABELS)
    pairs = [(law.law(counts), law.law(after)) for counts in all_counts() for after in changed_votes(counts)]
    worst = max(ranges(law, p, q) for p, q in pairs)
    assert 0.999 * (width - rounding_slack(LABELS)) - 1e-5 < worst <= width
    assert max(largest_loss(p, q) for p, q in pairs) <= width


@pytest.mark.parametrize("width", [0.05, 1.0, 3.0])
def test_a_set_that_is_a_user_brings_or_takes_a_vote(width: float) -> None:
    law = VoteLaw(width, LABELS, set_is_user=True)
    pairs = [(law.law(counts), law.law(after)) for counts in all_counts() for after in one_more(counts)]
    worst = max(ranges(law, p, q) for p, q in pairs)
    assert 0.999 * (width - rounding_slack(LABELS)) - 1e-5 < worst <= width


def test_the_strength_for_users_is_refuted_for_groups() -> None:
    law = VoteLaw(1.0, LABELS, set_is_user=True)
    worst = max(
        ranges(law, law.law(counts), law.law(after)) for counts in all_counts() for after in changed_votes(counts)
    )
    assert worst > 1.9


def test_sensitivity_one_for_unit_vectors_is_refuted() -> None:
    """Wu et al. give the sum of unit vectors of answers the noise of sensitivity 1, but an answer that is exchanged for
    the opposite one moves the sum by 2: at the noise for epsilon 1 and delta 1e-5 the delta is then far above 1e-5."""
    from scipy.stats import norm

    from tacit.noise.gaussian import analytic_gaussian_sigma

    answers = np.eye(4)[:3]
    exchanged = answers.copy()
    exchanged[0] = -answers[0]
    moved = float(np.linalg.norm(answers.sum(axis=0) - exchanged.sum(axis=0)))
    assert moved == 2.0
    sigma = analytic_gaussian_sigma(1.0, 1e-5, 1.0)

    def delta(sensitivity: float) -> float:
        mean = sensitivity / sigma
        return float(norm.cdf(mean / 2 - 1 / mean) - np.e * norm.cdf(-mean / 2 - 1 / mean))

    assert delta(1.0) <= 1e-5 * 1.001
    assert delta(moved) > 100 * 1e-5


def test_likeness_to_the_question_would_move_many_votes() -> None:
    """Three sets that each show the two examples nearest to a question: one record changes the votes of all of them.

    The nearest six records go to the sets in turns. A record nearer than all of them moves each to the next set.
    """

    def wrong_votes(records: list[tuple[float, int]]) -> list[int]:
        nearest = sorted(records)[:6]
        return [round(np.mean([label for _, label in nearest[start::3]])) for start in range(3)]

    records = [(1.0, 0), (2.0, 1), (3.0, 0), (4.0, 0), (5.0, 1), (6.0, 0)]
    before, after = wrong_votes(records), wrong_votes([(0.5, 1), *records])
    assert sum(a != b for a, b in zip(before, after, strict=True)) >= 2


@given(st.floats(0.05, 20.0), st.floats(1e-9, 1e-3), st.integers(1, 5_000))
def test_all_questions_together_cost_no_more_than_the_budget(epsilon: float, delta: float, questions: int) -> None:
    price = price_of_questions(epsilon, delta, questions, LABELS)
    assert price.epsilon <= epsilon * (1 + 1e-9)
    if price.delta:
        assert epsilon_of_rho(repeated_rho(choice_rho(price.width), questions), delta) <= epsilon * (1 + 1e-9)
    else:
        assert price.width * questions <= epsilon


def test_few_questions_need_no_delta() -> None:
    assert price_of_questions(2.0, 1e-6, 1, LABELS).delta == 0.0
    many = price_of_questions(2.0, 1e-6, 500, LABELS)
    assert many.delta == 1e-6
    assert many.width > 2.0 / 500


def test_draws_follow_the_law() -> None:
    """A chi-square test of 4,000 draws; false alarm once in a million seeds. Empty sets have no vote."""
    from scipy.stats import chi2

    from tacit.noise.source import Source

    law, source = VoteLaw(1.5, LABELS), Source.from_test_seed(2)
    votes = np.array([0, 0, 1, NO_VOTE, 2, 0])
    assert law.counts(votes).tolist() == [3, 1, 1]
    seen = np.bincount([law.draw(votes, source) for _ in range(4000)], minlength=LABELS)
    expected = 4000 * law.law(law.counts(votes))
    assert chi2.sf(float(((seen - expected) ** 2 / expected).sum()), LABELS - 1) > 1e-6


def test_a_user_is_in_one_set() -> None:
    records = [PrivateRecord(f"text {n}", "x", f"user {n % 7}") for n in range(50)]
    sets = in_sets_of_users(records, 4, b"k" * 32)
    assert sorted(r.text for members in sets for r in members) == sorted(r.text for r in records)
    owners = [{record.user for record in members} for members in sets]
    assert sum(map(len, owners)) == 7
    without = in_sets_of_users([r for r in records if r.user != "user 3"], 4, b"k" * 32)
    assert sum(a != b for a, b in zip(sets, without, strict=True)) == 1


def test_a_budget_below_rounding_is_refused() -> None:
    with pytest.raises(BadParameterError):
        price_of_questions(1e-9, 1e-9, 10, LABELS)
    with pytest.raises(BadParameterError):
        price_of_questions(1.0, 1e-6, 0, LABELS)
