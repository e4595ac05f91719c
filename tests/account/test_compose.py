"""Composition, amplification, groups, and how small delta has to be."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.account import (
    advanced_composition,
    basic_composition,
    check_delta,
    group_privacy,
    leak_probability,
    poisson_amplification,
)
from tacit.errors import BadParameterError, NoGuaranteeError


def test_basic():
    epsilon, delta = basic_composition([(1.0, 1e-6), (0.5, 0.0), (0.25, 2e-6)])
    assert epsilon == 1.75
    assert delta == pytest.approx(3e-6)
    with pytest.raises(NoGuaranteeError, match="promises nothing"):
        basic_composition([(1.0, 0.6), (1.0, 0.6)])


def test_advanced_is_the_textbook_formula():
    epsilon, delta = advanced_composition(0.01, 1e-9, 10_000, 1e-6)
    assert epsilon == pytest.approx(0.01 * math.sqrt(2e4 * math.log(1e6)) + 100 * math.expm1(0.01))
    assert delta == pytest.approx(1e-5 + 1e-6)
    assert epsilon < 100


def test_advanced_is_never_worse_than_basic():
    assert advanced_composition(5.0, 0.0, 3, 1e-6)[0] == 15.0
    assert advanced_composition(800.0, 0.0, 3, 1e-6)[0] == 2400.0


def test_amplification():
    assert poisson_amplification(1.0, 1e-5, 0.01)[0] == pytest.approx(0.017037, abs=5e-7)
    assert poisson_amplification(1.0, 1e-5, 0.01)[1] == pytest.approx(1e-7)
    assert poisson_amplification(2.0, 0.0, 1.0)[0] == pytest.approx(2.0)
    assert poisson_amplification(1000.0, 0.0, 0.1)[0] == pytest.approx(1000 + math.log(0.1))


@given(st.floats(1e-6, 650), st.floats(1e-6, 1))
def test_amplification_never_costs(epsilon, rate):
    assert poisson_amplification(epsilon, 0.0, rate)[0] <= epsilon * (1 + 1e-12)


def test_groups():
    assert group_privacy(1.0, 0.0, 4) == (4.0, 0.0)
    epsilon, delta = group_privacy(0.5, 1e-8, 3)
    assert epsilon == 1.5
    assert delta == pytest.approx(1e-8 * (1 + math.exp(0.5) + math.exp(1.0)))
    with pytest.raises(NoGuaranteeError):
        group_privacy(10.0, 1e-5, 5)


def test_delta_at_one_over_n_leaks_somebody():
    assert leak_probability(1e-4, 10_000) == pytest.approx(0.632, abs=5e-4)
    assert leak_probability(1e-8, 10_000) == pytest.approx(1e-4, rel=1e-3)


def test_delta_check():
    assert check_delta(1e-6, 570_000) == 1e-6
    for records in (570_000, 150_000, 100_000):
        with pytest.raises(BadParameterError, match="well below"):
            check_delta(1e-5, records)


@pytest.mark.parametrize(
    "call",
    [
        lambda: basic_composition([(0.0, 0.0)]),
        lambda: basic_composition([(1.0, 1.0)]),
        lambda: advanced_composition(1.0, 0.0, 0, 1e-6),
        lambda: advanced_composition(1.0, 0.0, 5, 0.0),
        lambda: poisson_amplification(1.0, 0.0, 0.0),
        lambda: group_privacy(1.0, 0.0, 0),
        lambda: leak_probability(1e-5, 0),
    ],
)
def test_bad_parameters(call):
    with pytest.raises(BadParameterError):
        call()
