"""Shuffled releases: the bound is never below the exact divergence of all small domains, and not far above it."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest

from tacit.account.shuffling import (
    TwoWeights,
    blanket_delta,
    blanket_epsilon,
    clones_delta,
    clones_epsilon,
)
from tacit.documents.staircase import staircase_shares
from tacit.errors import BadParameterError
from tacit.noise.response import response_matrix, response_shares

Law = Sequence[float]


def histogram_law(laws: Sequence[Law]) -> dict[tuple[int, ...], float]:
    """The exact law of how often each outcome occurs when each record draws by its own law."""
    outcomes = len(laws[0])
    counts = {(0,) * outcomes: 1.0}
    for law in laws:
        grown: Counter[tuple[int, ...]] = Counter()
        for seen, chance in counts.items():
            for outcome, share in enumerate(law):
                grown[(*seen[:outcome], seen[outcome] + 1, *seen[outcome + 1 :])] += chance * share
        counts = dict(grown)
    return counts


def divergence(first: Sequence[Law], second: Sequence[Law], epsilon: float) -> float:
    """The exact hockey-stick divergence of two shuffled releases."""
    left, other = histogram_law(first), histogram_law(second)
    return math.fsum(max(0.0, chance - math.exp(epsilon) * other.get(seen, 0.0)) for seen, chance in left.items())


def two_weights(epsilon: float, outcomes: int, near: int) -> TwoWeights:
    return TwoWeights(near, outcomes, *staircase_shares(epsilon, outcomes, near))


def laws_of(law: TwoWeights) -> list[Law]:
    """All laws that an input can have: one for each set of near outcomes."""
    return [
        [(law.t if outcome in near else law.w) / law.total for outcome in range(law.outcomes)]
        for near in itertools.combinations(range(law.outcomes), law.near)
    ]


CASES = [(2, 1, 6), (3, 1, 5), (3, 2, 5), (4, 2, 3)]


@pytest.mark.parametrize(("outcomes", "near", "most_rows"), CASES)
@pytest.mark.parametrize("local", [0.5, 2.0, 4.0])
def test_no_data_set_exceeds_the_bound(outcomes: int, near: int, most_rows: int, local: float):
    """Every replaced record, every choice of the other records, several epsilons."""
    law = two_weights(local, outcomes, near)
    every = laws_of(law)
    for rows in range(1, most_rows + 1):
        for epsilon in (0.0, 0.2 * local, 0.6 * local):
            bound, general = blanket_delta(law, rows, epsilon), clones_delta(local, rows, epsilon)
            worst = max(
                divergence([first_law, *others], [another, *others], epsilon)
                for first_law, another in itertools.permutations(every, 2)
                for others in itertools.combinations_with_replacement(every, rows - 1)
            )
            assert worst <= bound <= 1.0
            assert worst <= general + 1e-12
            if rows == 1:
                assert bound == pytest.approx(worst, rel=1e-6, abs=1e-12), "one row: there is nothing to hide among"


@pytest.mark.parametrize(("categories", "local"), [(2, 1.0), (2, 3.0), (3, 2.0)])
def test_randomized_response_of_up_to_eight_rows(categories: int, local: float):
    """k-ary response: the exact law of the histogram, for every replaced answer and all answers of the others."""
    every: list[Law] = [row.tolist() for row in response_matrix(local, categories)]
    truth, other = response_shares(local, categories)
    law = TwoWeights(1, categories, truth, other)
    for rows in (2, 5, 8):
        for epsilon in (0.1 * local, 0.5 * local, 0.9 * local):
            worst = max(
                divergence([first_law, *others], [another, *others], epsilon)
                for first_law, another in itertools.permutations(every, 2)
                for others in itertools.combinations_with_replacement(every, rows - 1)
            )
            assert worst <= blanket_delta(law, rows, epsilon)
            assert worst <= clones_delta(local, rows, epsilon) + 1e-12
            assert worst < divergence([every[0]], [every[1]], epsilon), "shuffling hides something"


def test_the_bound_is_the_divergence_where_all_others_are_uniform_or_known():
    """The blanket by brute force: every other record is uniform with probability K b, else nothing."""
    law, rows, epsilon = two_weights(2.0, 4, 1), 5, 0.7
    every = laws_of(law)
    uniform = [1 / law.outcomes] * law.outcomes
    share = law.outcomes * law.w / law.total
    exact = math.fsum(
        math.comb(rows - 1, hidden) * share**hidden * (1 - share) ** (rows - 1 - hidden)
        * divergence([every[0]] + [uniform] * hidden, [every[1]] + [uniform] * hidden, epsilon)
        for hidden in range(rows)
    )  # fmt: skip
    assert blanket_delta(law, rows, epsilon) == pytest.approx(exact, rel=1e-6)


@pytest.mark.parametrize(("outcomes", "near"), [(6, 2), (6, 3), (5, 3), (7, 5)])
def test_near_sets_as_disjoint_as_can_be_are_the_worst(outcomes: int, near: int):
    """The lemma of the module, by brute force: among uniform outcomes, what near sets share makes them alike."""
    law, epsilon = two_weights(1.5, outcomes, near), 0.4
    uniform = [1 / outcomes] * outcomes

    def weights(places: range) -> Law:
        return [(law.t if outcome in places else law.w) / law.total for outcome in range(outcomes)]

    apart = range(min(near, outcomes - near) + 1)
    for others in range(4):
        results = [
            divergence(
                [weights(range(near)), *[uniform] * others], [weights(range(m, near + m)), *[uniform] * others], epsilon
            )
            for m in apart
        ]
        assert all(low <= high + 1e-12 for low, high in itertools.pairwise(results))
        assert results[0] == pytest.approx(0.0, abs=1e-12)


def test_more_rows_and_a_larger_epsilon_hide_better():
    law = two_weights(5.0, 8192, 181)
    deltas = [blanket_delta(law, rows, 1.0) for rows in (1, 10, 100, 1_000, 10_000)]
    assert deltas == sorted(deltas, reverse=True)
    deltas = [blanket_delta(law, 3_000, epsilon) for epsilon in np.linspace(0.1, 3.0, 7)]
    assert deltas == sorted(deltas, reverse=True)


@pytest.mark.parametrize("rows", [1, 50, 2_000, 10_000])
def test_epsilon_and_delta_are_inverse_on_the_safe_side(rows: int):
    law = two_weights(4.0, 1_000, 60)
    delta = min(1e-3, rows**-1.5)
    epsilon = blanket_epsilon(law, rows, delta)
    assert blanket_delta(law, rows, epsilon) <= delta
    assert epsilon <= 4.0 * (1 + 1e-9)
    if epsilon < 3.9:
        assert blanket_delta(law, rows, epsilon * 0.99) > delta
    assert blanket_epsilon(law, rows, delta) <= clones_epsilon(4.0, rows, delta) * 1.01, "the exact law is better known"


@pytest.mark.parametrize(
    ("rows", "local", "printed"), [(100_000, 3.0, 0.368), (100_000, 5.0, 0.84), (10_000, 3.0, 0.82)]
)
def test_known_numbers(rows: int, local: float, printed: float):
    """Feldman, McMillan & Talwar's closed form is above their numerical bound."""
    delta = rows**-1.5
    growth = math.exp(local)
    closed = math.log1p(
        (growth - 1) / (growth + 1) * (8 * math.sqrt(growth * math.log(4 / delta) / rows) + 8 * growth / rows)
    )
    assert closed == pytest.approx(printed, abs=0.005)
    assert clones_epsilon(local, rows, delta) < closed


def test_known_numbers_of_the_codebook():
    assert blanket_epsilon(two_weights(5.0, 8192, 181), 13_784, 6e-7) == pytest.approx(0.543, abs=0.01)


@pytest.mark.parametrize("values", [(0, 3, 1, 1), (3, 3, 1, 1), (1, 3, 1, 2), (1, 3, 0, 0)])
def test_laws_that_are_none(values: tuple[int, int, int, int]):
    with pytest.raises(BadParameterError, match="two weights"):
        TwoWeights(*values)
    with pytest.raises(BadParameterError, match="at least 1"):
        blanket_delta(two_weights(1.0, 4, 1), 0, 1.0)
