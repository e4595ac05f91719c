"""Correlated noise: factorizations, their sensitivity against all patterns of visits, their errors."""

from __future__ import annotations

import math
from itertools import chain, combinations, pairwise, product

import numpy as np
import pytest

from tacit.account.matrix import Buffered, Toeplitz, error_of, optimal_banded, optimal_buffered, square_root
from tacit.account.tree import Tree, best_tree
from tacit.errors import BadParameterError
from tacit.noise import gaussian_epsilon

FACTORS = [
    Toeplitz(),
    square_root(3),
    square_root(12),
    square_root(5, momentum=0.9),
    Toeplitz((1.0, 1.0, 1.0, 0.3)),
    Buffered((0.4, 0.2), (0.3, 0.95)),
    Buffered((1.0,), (1.0,)),
    Tree(),
    Tree(efficient=False),
    Tree(restart=4),
    Tree(restart=5, efficient=False),
]


def named(factor):
    return factor.label


def fixed_order(rounds, separation):
    return [tuple(range(j, rounds, separation)) for j in range(min(separation, rounds))]


def far_enough(rounds, separation):
    """All sets of rounds that are at least `separation` apart."""
    everything = chain.from_iterable(combinations(range(rounds), size) for size in range(1, rounds + 1))
    return [s for s in everything if all(b - a >= separation for a, b in pairwise(s))]


def largest(encoder, patterns):
    return max(float(np.linalg.norm(encoder[:, list(pattern)].sum(axis=1))) for pattern in patterns)


# Exact ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("factor", FACTORS, ids=named)
@pytest.mark.parametrize("rounds", [1, 7, 12, 16])
def test_the_factors_multiply_to_running_sums(factor, rounds):
    product_ = factor.decoder(rounds) @ factor.encoder(rounds)
    np.testing.assert_allclose(product_, np.tril(np.ones((rounds, rounds))), atol=1e-12)
    assert (factor.encoder(rounds) >= 0).all(), "the formula for the sensitivity needs it"


@pytest.mark.parametrize("factor", FACTORS, ids=named)
@pytest.mark.parametrize(
    ("rounds", "separation"), [(1, 1), (6, 1), (9, 2), (12, 3), (12, 5), (11, 4), (10, 10), (7, 20)]
)
def test_the_sensitivity_is_that_of_the_worst_visits(factor, rounds, separation):
    """Brute force over the whole schedule, on the dense matrix."""
    claimed = factor.sensitivity(rounds, separation)
    assert claimed == pytest.approx(largest(factor.encoder(rounds), fixed_order(rounds, separation)), rel=1e-12)


@pytest.mark.parametrize("factor", [f for f in FACTORS if not isinstance(f, Tree)], ids=named)
@pytest.mark.parametrize(("rounds", "separation"), [(10, 2), (12, 3), (12, 5)])
def test_a_toeplitz_sensitivity_covers_every_user_who_stays_away_long_enough(factor, rounds, separation):
    claimed = factor.sensitivity(rounds, separation)
    assert claimed == pytest.approx(largest(factor.encoder(rounds), far_enough(rounds, separation)), rel=1e-12)


@pytest.mark.parametrize("factor", FACTORS, ids=named)
def test_no_choice_of_directions_does_more_than_the_same_one_every_time(factor):
    """All signs, and random vectors in four dimensions."""
    rounds, separation = 12, 3
    encoder, claimed = factor.encoder(rounds), factor.sensitivity(rounds, separation)
    generator = np.random.default_rng(0)
    for visits in fixed_order(rounds, separation):
        columns = encoder[:, list(visits)]
        for signs in product((-1.0, 1.0), repeat=len(visits)):
            assert np.linalg.norm(columns @ np.array(signs)) <= claimed * (1 + 1e-12)
        for _ in range(20):
            directions = generator.standard_normal((len(visits), 4))
            directions /= np.linalg.norm(directions, axis=1, keepdims=True)
            assert np.linalg.norm(columns @ directions) <= claimed * (1 + 1e-12)


@pytest.mark.parametrize("factor", FACTORS, ids=named)
@pytest.mark.parametrize("rounds", [1, 5, 12, 16])
def test_variances_are_the_rows_of_the_decoder(factor, rounds):
    np.testing.assert_allclose(factor.variances(rounds), (factor.decoder(rounds) ** 2).sum(axis=1), rtol=1e-10)


@pytest.mark.parametrize("factor", FACTORS, ids=named)
def test_what_a_part_of_the_run_spends_is_what_its_rows_show(factor):
    """After t of n rounds an observer has seen the rows of C that are complete by then: the sensitivity of t rounds."""
    rounds, separation, part = 12, 3, 7
    if isinstance(factor, Tree):
        factor = Tree(factor.span(rounds), factor.efficient)  # a tree that was planned for 12 rounds
    encoder = factor.encoder(rounds)
    seen = encoder[~(encoder[:, part:] != 0).any(axis=1)]
    assert factor.sensitivity(part, separation) == pytest.approx(largest(seen, fixed_order(rounds, separation)))


# The tree ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rounds", [1, 2, 3, 4, 7, 8, 100, 1000])
def test_one_visit_costs_the_depth_of_the_tree(rounds):
    depth = math.ceil(math.log2(rounds + 1))
    assert Tree().sensitivity(rounds, rounds) == pytest.approx(math.sqrt(depth))


def test_a_restarted_tree_adds_up_over_the_visits():
    assert Tree(restart=8).sensitivity(40, 8) ** 2 == pytest.approx(5 * 4)
    assert Tree(restart=8).variances(40)[-1] == pytest.approx(5 * Tree().node_variance(3))


def test_one_visit_is_a_plain_gaussian_and_no_better_than_the_published_bound():
    """The Renyi accountant of dp-accounting knows this tree: the same divergence, a looser epsilon."""
    library = pytest.importorskip("dp_accounting")
    sigma, delta, rounds = 5.0, 1e-5, 100
    exact = gaussian_epsilon(sigma, delta, Tree().sensitivity(rounds, rounds))
    assert exact == pytest.approx(gaussian_epsilon(sigma / math.sqrt(7), delta, 1.0), rel=1e-9)
    relation = library.NeighboringRelation.REPLACE_SPECIAL
    renyi = library.rdp.RdpAccountant(neighboring_relation=relation)
    renyi.compose(library.SingleEpochTreeAggregationDpEvent(sigma, rounds))
    gaussian = library.rdp.RdpAccountant()
    gaussian.compose(library.GaussianDpEvent(sigma / math.sqrt(7)))
    assert renyi.get_epsilon(delta) == pytest.approx(gaussian.get_epsilon(delta))
    assert exact <= renyi.get_epsilon(delta) <= exact * 1.1
    losses = library.pld.PLDAccountant()
    losses.compose(library.GaussianDpEvent(sigma / math.sqrt(7)))
    assert losses.get_epsilon(delta) == pytest.approx(exact, rel=1e-3)


def test_using_the_nodes_below_never_hurts():
    for rounds in (5, 16, 100):
        assert (Tree().variances(rounds) <= Tree(efficient=False).variances(rounds) + 1e-12).all()
    assert [Tree().node_variance(level) for level in range(3)] == pytest.approx([1, 2 / 3, 4 / 7])


# The best factors ----------------------------------------------------------------------------------------------------


def test_the_square_root_is_a_square_root():
    rounds = 40
    root = square_root(rounds).encoder(rounds)
    np.testing.assert_allclose(root @ root, np.tril(np.ones((rounds, rounds))), atol=1e-12)
    remembered = np.cumsum(0.9 ** np.arange(rounds))
    with_momentum = square_root(rounds, momentum=0.9).encoder(rounds)
    np.testing.assert_allclose((with_momentum @ with_momentum)[:, 0], remembered, rtol=1e-10)


@pytest.mark.parametrize(("rounds", "separation"), [(64, 64), (100, 100), (120, 12), (500, 50)])
def test_fitted_factors_beat_the_tree_and_their_own_start(rounds, separation):
    banded = optimal_banded(rounds, separation, 32)
    buffered = optimal_buffered(rounds, separation)
    tree = error_of(best_tree(rounds, separation), rounds, separation)
    assert error_of(banded, rounds, separation) < error_of(square_root(32), rounds, separation)
    assert error_of(banded, rounds, separation) < 0.75 * tree
    assert error_of(buffered, rounds, separation) < 0.75 * tree
    assert error_of(best_tree(rounds, separation), rounds, separation) <= error_of(Tree(), rounds, separation)


def test_the_gradient_of_the_fit_leads_to_a_minimum():
    """No coefficient can be moved a little to a smaller error."""
    rounds, separation, bands = 60, 20, 6
    best = optimal_banded(rounds, separation, bands)
    least = error_of(best, rounds, separation)
    for place, change in product(range(1, bands), (-1e-3, 1e-3)):
        moved = list(best.coefficients)
        moved[place] += change
        assert error_of(Toeplitz(tuple(moved)), rounds, separation) >= least


def test_near_the_best_possible_for_one_visit():
    """The optimal dense factorization for one visit, by the fixed point of Denisov et al. 2022 (section 3): with the
    Gram matrix G of the sums, v = diag((D G D)^(1/2)), D = diag(v)^(1/2); its mean squared error is the mean of v."""
    rounds = 100
    sums = np.tril(np.ones((rounds, rounds)))
    gram = sums.T @ sums
    dual = np.ones(rounds)
    for _ in range(200):
        root = np.sqrt(dual)
        values, vectors = np.linalg.eigh(root[:, None] * gram * root)
        dual = np.einsum("ij,j,ij->i", vectors, np.sqrt(values.clip(0)), vectors)
    least = math.sqrt(dual.mean())
    assert least == pytest.approx(2.2355, abs=1e-4)
    assert least < error_of(optimal_buffered(rounds, rounds), rounds, rounds) < 1.05 * least
    assert least < error_of(optimal_banded(rounds, rounds, 64), rounds, rounds) < 1.05 * least


# Bad input -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("coefficients", [(), (0.5,), (1.0, 1.1), (1.0, -0.1), (1.0, 0.2, 0.3), (1.0, float("nan"))])
def test_series_without_a_proof_are_refused(coefficients):
    with pytest.raises(BadParameterError, match="Toeplitz"):
        Toeplitz(coefficients)


def test_other_impossible_numbers_are_refused():
    with pytest.raises(BadParameterError, match="add up to at most 1"):
        Buffered((0.9, 0.2), (0.5, 0.5))
    with pytest.raises(BadParameterError, match="momentum"):
        square_root(4, momentum=1.0)
    with pytest.raises(BadParameterError, match="separation"):
        Tree().sensitivity(5, 0)
    with pytest.raises(BadParameterError, match="restarts"):
        Tree(restart=-1)
    with pytest.raises(BadParameterError, match="bands"):
        optimal_banded(10, 5, 0)
