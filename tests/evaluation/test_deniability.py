"""N_x, S_x and S*_y: limits, exact sums against counts, and the direction of the paper's figure 5."""

from __future__ import annotations

import numpy as np
import pytest

from tacit import build
from tacit.errors import BadParameterError
from tacit.evaluation.deniability import (
    counted_deniability,
    deniability,
    deniability_section,
    exact_deniability,
    over_epsilon,
)
from tacit.noise.source import Source
from tests.conftest import small_table


def test_no_privacy_and_pure_noise():
    identity = np.eye(30)
    ids = np.arange(30)
    stays, outputs, inputs, effective, entropy = exact_deniability(lambda chosen: identity[chosen], ids, runs=1000)
    for values, expected in ((stays, 1), (outputs, 1), (inputs, 1), (effective, 1), (entropy, 0)):
        np.testing.assert_allclose(values, expected)
    uniform = np.full((30, 30), 1 / 30)
    stays, outputs, inputs, effective, entropy = exact_deniability(
        lambda chosen: uniform[chosen], ids, runs=100_000, eta=0.1
    )
    np.testing.assert_allclose(stays, 1 / 30)
    np.testing.assert_allclose(outputs, 30)
    np.testing.assert_allclose(inputs, 30)
    np.testing.assert_allclose(effective, 27)
    np.testing.assert_allclose(entropy, np.log2(30))


def test_the_exact_sums_are_what_is_counted():
    """400 words in 50 runs each: averages over words within 5 standard errors, a false alarm for one of 10^6 seeds."""
    mechanism = build("santext", {"epsilon": 2.0, "vectors": small_table(400, 3)})
    ids = np.arange(400)
    exact = exact_deniability(mechanism.laws, ids, runs=50)
    counted = counted_deniability(lambda chosen: mechanism.draw(chosen, Source.from_test_seed(1)), ids, runs=50)
    for expected, each in list(zip(exact, counted, strict=True))[:3]:
        difference = each - expected
        assert abs(difference.mean()) <= 5 * difference.std() / np.sqrt(len(ids))


@pytest.mark.parametrize("name", ["santext", "laplace"])
def test_the_direction_of_figure_5(name, default_table):
    """N_x up, S_x and S*_y down with epsilon; exact for SanText, by drawing for the noise family."""
    table = default_table.head(1500)
    mechanism = build(name, {"epsilon": 1.0, "vectors": table})
    runs = 1000 if name == "santext" else 100
    curve = over_epsilon(mechanism, (1.0, 6.0, 16.0, 40.0), words=60, runs=runs, seed=4)
    assert [d.exact for d in curve] == [name == "santext"] * 4
    stays, outputs, inputs, entropy = (
        np.array([values(d).mean() for d in curve])
        for values in (lambda d: d.stays, lambda d: d.outputs, lambda d: d.inputs, lambda d: d.entropy)
    )
    assert (np.diff(stays) > 0).all()
    assert (np.diff(outputs) < 0).all()
    assert (np.diff(entropy) < 0).all()
    assert (np.diff(inputs) <= 0).all() if name == "santext" else inputs[-1] < inputs[1]
    assert stays[0] < 0.05
    assert stays[-1] > 0.95


def test_the_section_has_a_drawing_and_the_words_that_stay():
    mechanism = build("santext", {"epsilon": 2.0, "vectors": small_table(50, 3)})
    section = deniability_section(over_epsilon(mechanism, (0.5, 2.0, 8.0)), shown=2.0)
    assert section.findings[0].numbers["N_x"] == sorted(section.findings[0].numbers["N_x"])
    assert "At epsilon 2 " in section.findings[0].sentence
    assert len(section.tables[0].rows) == 3
    assert "<svg" in section.figures[0].svg
    single = deniability_section([deniability(mechanism)])
    assert not single.figures


def test_bad_input():
    mechanism = build("santext", {"epsilon": 2.0, "vectors": small_table(50, 3)})
    with pytest.raises(BadParameterError, match="eta"):
        deniability(mechanism, eta=0.0)
    with pytest.raises(BadParameterError, match="word-level"):
        deniability(object())
    with pytest.raises(BadParameterError, match="nothing to show"):
        deniability_section([])
