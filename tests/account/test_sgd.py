"""DP-SGD accounting against printed budgets, closed forms and a second accountant."""

from __future__ import annotations

import math
import sys
from decimal import Decimal
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.account import classic_rdp_epsilon, group_privacy, sgd_epsilon, sgd_noise_multiplier
from tacit.account.delta import LEAST_DELTA, automatic_delta
from tacit.account.groups import group_epsilon, group_noise_multiplier
from tacit.account.renyi import renyi_divergence
from tacit.errors import BadParameterError, MissingExtraError
from tacit.guarantee import Adjacency
from tacit.noise import gaussian_epsilon
from tacit.rounding import rounded_up

REPLACE = Adjacency.REPLACE_ONE


@pytest.mark.parametrize(
    ("rate", "noise", "steps", "epsilon"),
    [
        (0.01, 4, 10_000, 1.2586),
        (0.1, 4, 1_000, 4.2445),
        (1.0, 4, 100, 15.131),
        (1.0, 50, 100, 0.9797),
        (1.0, 4, 2000, 136.51),
        (1.0, 2, 500, 136.51),
        (1.0, 26, 2000, 9.75),
        (1.0, 48, 2000, 4.91),
        (1.0, 112, 2000, 2.00),
        (1.0, 56, 2000, 4.15),  # the last one with replaced instead of added records: noise over 2 C
        (256 / 60_000, 1.1, 14_062, 3.009),
        (0.01, 1.0, 1_000, 2.538),
    ],
)
def test_printed_budgets(rate, noise, steps, epsilon):
    computed = classic_rdp_epsilon(sampling_rate=rate, noise_multiplier=noise, steps=steps, delta=1e-5)
    digits = len(str(epsilon).partition(".")[2])
    assert computed == pytest.approx(epsilon, abs=0.51 * 10 ** -max(digits, 2))


@pytest.mark.parametrize(
    ("rate", "noise", "steps", "epsilon"), [(256 / 60_000, 1.1, 14_062, 2.597), (0.01, 1.0, 1_000, 2.108)]
)
def test_improved_conversion(rate, noise, steps, epsilon):
    run = {"sampling_rate": rate, "noise_multiplier": noise, "steps": steps, "delta": 1e-5}
    assert classic_rdp_epsilon(**run, conversion="improved") == pytest.approx(epsilon, abs=5.1e-4)
    # The library uses fractional orders as well: never above, and close.
    library = sgd_epsilon(**run, method="rdp")
    assert 0.98 * epsilon < library <= epsilon + 1e-3
    assert sgd_epsilon(**run) < library


def test_full_batches_have_a_closed_form():
    run = {"sampling_rate": 1.0, "noise_multiplier": 112.0, "steps": 2000, "delta": 1e-5}
    exact = gaussian_epsilon(112 / math.sqrt(2000), 1e-5, 1)
    assert sgd_epsilon(**run) == exact == pytest.approx(1.552, abs=5e-4)
    assert exact < sgd_epsilon(**run, method="rdp") < 2.0


@given(st.integers(2, 10**9), st.integers(1, 50))
def test_an_automatic_delta_has_one_digit_and_is_below_what_it_may_be(records, releases):
    delta = automatic_delta(records, releases)
    assert 0 < delta <= max(records**-1.5, min(LEAST_DELTA, records**-1.1)) / releases
    assert len(Decimal(rounded_up(delta)).normalize().as_tuple().digits) == 1


def test_replacing_a_record_doubles_the_reach():
    run = {"sampling_rate": 1.0, "steps": 2000, "delta": 1e-5, "adjacency": REPLACE}
    doubled = sgd_epsilon(noise_multiplier=112.0, **run)
    assert doubled == pytest.approx(3.380, abs=5e-4)
    assert doubled == sgd_epsilon(**{**run, "adjacency": Adjacency.ADD_REMOVE}, noise_multiplier=56.0)
    assert doubled < sgd_epsilon(noise_multiplier=112.0, **run, method="rdp")


def test_replacing_a_record_with_sampling():
    """More than adding or removing one, at most a group of two; the Renyi bound is looser."""
    run = {"sampling_rate": 0.01, "noise_multiplier": 4.0, "steps": 2000, "delta": 1e-5}
    single, replaced = sgd_epsilon(**run), sgd_epsilon(**run, adjacency=REPLACE)
    assert single < replaced
    smaller = sgd_epsilon(**{**run, "delta": 1e-6})
    group_epsilon, group_delta = group_privacy(smaller, 1e-6, 2)
    assert group_delta <= 1e-5
    assert replaced <= group_epsilon
    assert replaced < sgd_epsilon(**run, adjacency=REPLACE, method="rdp") < 1.15 * replaced


def exact_threshold_delta(epsilon, *, rate, noise, steps, threshold, replaced):
    """The delta at epsilon of the test that counts the steps whose output is above a threshold, with 50 digits.

    It is a function of the outputs, so no correct epsilon at this delta is smaller than the one it refutes.
    """
    mp = pytest.importorskip("mpmath")
    with mp.workdps(50):

        def above(mean):
            return mp.erfc((mp.mpf(threshold) - mean) / noise / mp.sqrt(2)) / 2

        none = above(0)
        q = mp.mpf(rate)
        with_record = (1 - q) * none + q * above(1)
        other = (1 - q) * none + q * above(-1) if replaced else none
        largest = mp.mpf(0)
        for p, p0 in ((with_record, other), (other, with_record)):
            total, growth = mp.mpf(0), mp.exp(mp.mpf(epsilon))
            chance, there = (1 - p) ** steps, (1 - p0) ** steps
            for k in range(steps + 1):  # of the binomial laws, each term from the one before it
                total += max(mp.mpf(0), chance - growth * there)
                ways = mp.mpf(steps - k) / (k + 1)
                chance *= ways * p / (1 - p)
                there *= ways * p0 / (1 - p0)
            largest = max(largest, total)
        return float(largest)


@pytest.mark.parametrize("adjacency", [Adjacency.ADD_REMOVE, REPLACE])
@pytest.mark.parametrize("delta", [1e-11, 1e-12, 1e-13, 1e-14, 1e-20])
def test_a9_a_small_delta_is_never_accounted_below_the_truth(delta, adjacency):
    """Fourier transforms lose deltas of 1e-13: what the library says there is refuted exactly."""
    run = {"rate": 0.001, "noise": 1.0, "steps": 1000, "replaced": adjacency is REPLACE}
    claimed = sgd_epsilon(sampling_rate=0.001, noise_multiplier=1.0, steps=1000, delta=delta, adjacency=adjacency)
    for threshold in (7.5, 8.0, 8.25, 9.0):
        assert exact_threshold_delta(claimed, threshold=threshold, **run) <= delta
    # The calibrated noise stands the same test.
    noise = sgd_noise_multiplier(epsilon=1.0, sampling_rate=0.001, steps=1000, delta=delta, adjacency=adjacency)
    for threshold in (7.5, 8.25):
        assert exact_threshold_delta(1.0, threshold=threshold * noise, **{**run, "noise": noise}) <= delta
    if delta == 1e-14:
        from tacit.account.sgd import FINE_INTERVAL, pld_epsilon_of_phases

        alone = pld_epsilon_of_phases([(0.001, 1000)], 1.0, delta, adjacency, FINE_INTERVAL)
        assert exact_threshold_delta(alone, threshold=8.25, **run) > delta, "the library alone is refuted"


@pytest.mark.parametrize("adjacency", [Adjacency.ADD_REMOVE, REPLACE])
def test_a9_epsilon_never_falls_with_delta_and_agrees_where_both_accountants_hold(adjacency):
    run = {"sampling_rate": 0.02, "noise_multiplier": 2.0, "steps": 500, "adjacency": adjacency}
    epsilons = [sgd_epsilon(delta=10.0**-digits, **run) for digits in range(5, 31)]
    assert all(later >= earlier for earlier, later in pairwise(epsilons))
    for delta in (1e-5, 1e-8):
        assert sgd_epsilon(delta=delta, **run) <= sgd_epsilon(delta=delta, **run, method="rdp")


@pytest.mark.parametrize("adjacency", [Adjacency.ADD_REMOVE, REPLACE])
@pytest.mark.parametrize("order", [2, 3, 5])
def test_a9_renyi_divergence_against_numerical_integration(order, adjacency):
    """Both directions of one step, for an integer order: R bounds them, for replacing by way of the middle."""
    mp = pytest.importorskip("mpmath")
    q, noise = 0.1, 1.5

    def density(x, mean):
        return mp.exp(-((x - mean) ** 2) / (2 * noise**2))

    def mixed(x, mean):
        return (1 - q) * density(x, 0) + q * density(x, mean)

    def divergence(p, other):
        scale = noise * mp.sqrt(2 * mp.pi)
        whole = mp.quad(lambda x: p(x) ** order * other(x) ** (1 - order), [-40, -8, 0, 8, 40]) / scale
        return float(mp.log(whole) / (order - 1))

    def plus(x):
        return mixed(x, 1)

    other = (lambda x: mixed(x, -1)) if adjacency is REPLACE else (lambda x: density(x, 0))
    true = max(divergence(plus, other), divergence(other, plus))
    if adjacency is REPLACE:
        up, down = renyi_divergence(q, noise, 2 * order), renyi_divergence(q, noise, 2 * order - 1)
        assert true <= (order - 0.5) / (order - 1) * up + down
    else:
        assert true == pytest.approx(renyi_divergence(q, noise, order), rel=1e-9)


@pytest.mark.parametrize("sigma", [0.3, 1.0, 5.0, 40.0])
@pytest.mark.parametrize("delta", [1e-11, 1e-13, 1e-20, 1e-100])
def test_a9_the_closed_form_of_full_batches_and_matrix_noise_has_its_digits(sigma, delta):
    mp = pytest.importorskip("mpmath")
    epsilon = gaussian_epsilon(sigma, delta, 1.0)
    with mp.workdps(200):
        s, e = mp.mpf(sigma), mp.mpf(epsilon)
        exact = mp.ncdf(1 / (2 * s) - e * s) - mp.exp(e) * mp.ncdf(-1 / (2 * s) - e * s)
        assert abs(float(exact / mp.mpf(delta)) - 1.0) < 1e-9


def test_library_agrees_with_the_closed_form_for_full_batches():
    import dp_accounting

    for relation, reach in (("ADD_OR_REMOVE_ONE", 1), ("REPLACE_ONE", 2)):
        accountant = dp_accounting.pld.PLDAccountant(dp_accounting.NeighboringRelation[relation])
        accountant.compose(dp_accounting.SelfComposedDpEvent(dp_accounting.GaussianDpEvent(100.0), 2000))
        assert accountant.get_epsilon(1e-5) == pytest.approx(
            gaussian_epsilon(100 / math.sqrt(2000), 1e-5, reach), rel=1e-4
        )


@pytest.mark.parametrize("adjacency", [Adjacency.ADD_REMOVE, REPLACE])
def test_noise_for_a_target(adjacency):
    run = {"sampling_rate": 0.01, "steps": 500, "delta": 1e-5, "adjacency": adjacency}
    noise = sgd_noise_multiplier(epsilon=1.0, **run)
    assert 0.995 < sgd_epsilon(noise_multiplier=noise, **run) <= 1.0
    full = {**run, "sampling_rate": 1.0}
    assert sgd_epsilon(noise_multiplier=sgd_noise_multiplier(epsilon=7.0, **full), **full) == pytest.approx(7.0)


@given(
    epsilon=st.floats(0.01, 100.0), delta=st.floats(1e-12, 1e-2), steps=st.integers(1, 2_000), group=st.integers(1, 9)
)
@settings(max_examples=60)
def test_the_noise_of_full_batches_is_never_reported_above_the_target(epsilon, delta, steps, group):
    """Not by a unit in the last place either: the least sigma and its epsilon round on their own."""
    record = sgd_noise_multiplier(epsilon=epsilon, sampling_rate=1.0, steps=steps, delta=delta)
    user = group_noise_multiplier(epsilon=epsilon, sampling_rate=1.0, group=group, steps=steps, delta=delta)
    shared = {"sampling_rate": 1.0, "steps": steps, "delta": delta}
    for spent in (
        sgd_epsilon(noise_multiplier=record, **shared),
        group_epsilon(noise_multiplier=user, group=group, **shared),
    ):
        assert epsilon * (1.0 - 1e-9) < spent <= epsilon


def test_more_noise_fewer_steps_smaller_lots_cost_less():
    run = {"sampling_rate": 0.01, "noise_multiplier": 3.0, "steps": 1000, "delta": 1e-5}
    base = sgd_epsilon(**run)
    for change in ({"noise_multiplier": 3.5}, {"steps": 800}, {"sampling_rate": 0.008}, {"delta": 1e-4}):
        assert sgd_epsilon(**{**run, **change}) < base


def test_delta_must_be_below_one_over_n():
    with pytest.raises(BadParameterError, match="records"):
        sgd_epsilon(sampling_rate=0.01, noise_multiplier=1, steps=10, delta=1e-5, records=570_000)
    with pytest.raises(BadParameterError, match="records"):
        sgd_noise_multiplier(epsilon=1, sampling_rate=0.01, steps=10, delta=1e-5, records=570_000)


@pytest.mark.parametrize(
    "change",
    [
        {"sampling_rate": 0.0},
        {"sampling_rate": 1.5},
        {"noise_multiplier": 0.0},
        {"steps": 0},
        {"steps": 1.5},
        {"delta": 0.0},
        {"adjacency": Adjacency.ANY_TWO},
    ],
)
def test_bad_parameters(change):
    run = {"sampling_rate": 0.1, "noise_multiplier": 1.0, "steps": 10, "delta": 1e-5}
    with pytest.raises(BadParameterError):
        sgd_epsilon(**{**run, **change})


def test_bad_orders():
    run = {"sampling_rate": 0.1, "noise_multiplier": 1.0, "steps": 10, "delta": 1e-5}
    with pytest.raises(BadParameterError, match="orders"):
        classic_rdp_epsilon(**run, orders=(1, 2))
    with pytest.raises(BadParameterError, match="conversion"):
        classic_rdp_epsilon(**run, conversion="other")  # type: ignore[arg-type]


def test_a_missing_library_is_one_sentence(monkeypatch):
    monkeypatch.setitem(sys.modules, "dp_accounting", None)
    with pytest.raises(MissingExtraError, match=r"tacit-dp\[accounting\]"):
        sgd_epsilon(sampling_rate=0.1, noise_multiplier=1.0, steps=10, delta=1e-5)
    assert sgd_epsilon(sampling_rate=1.0, noise_multiplier=10.0, steps=10, delta=1e-5) > 0
