"""DP-SGD accounting against printed budgets, closed forms and a second accountant."""

from __future__ import annotations

import math
import sys

import pytest

from tacit.account import classic_rdp_epsilon, group_privacy, sgd_epsilon, sgd_noise_multiplier
from tacit.errors import BadParameterError, MissingExtraError, NoGuaranteeError
from tacit.guarantee import Adjacency
from tacit.noise import gaussian_epsilon

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
    found = classic_rdp_epsilon(sampling_rate=rate, noise_multiplier=noise, steps=steps, delta=1e-5)
    digits = len(str(epsilon).partition(".")[2])
    assert found == pytest.approx(epsilon, abs=0.51 * 10 ** -max(digits, 2))


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


def test_replacing_a_record_doubles_the_reach():
    run = {"sampling_rate": 1.0, "steps": 2000, "delta": 1e-5, "adjacency": REPLACE}
    doubled = sgd_epsilon(noise_multiplier=112.0, **run)
    assert doubled == pytest.approx(3.380, abs=5e-4)
    assert doubled == sgd_epsilon(**{**run, "adjacency": Adjacency.ADD_REMOVE}, noise_multiplier=56.0)
    assert doubled < sgd_epsilon(noise_multiplier=112.0, **run, method="rdp")


def test_replacing_a_record_with_sampling():
    """More than adding or removing one, at most a group of two, and the Renyi bound has no proof."""
    run = {"sampling_rate": 0.01, "noise_multiplier": 4.0, "steps": 2000, "delta": 1e-5}
    single, replaced = sgd_epsilon(**run), sgd_epsilon(**run, adjacency=REPLACE)
    assert single < replaced
    smaller = sgd_epsilon(**{**run, "delta": 1e-6})
    group_epsilon, group_delta = group_privacy(smaller, 1e-6, 2)
    assert group_delta <= 1e-5
    assert replaced <= group_epsilon
    with pytest.raises(NoGuaranteeError, match="pld"):
        sgd_epsilon(**run, adjacency=REPLACE, method="rdp")


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
