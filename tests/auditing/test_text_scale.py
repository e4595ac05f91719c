"""What a rate means: intervals against known answers, and the light at both thresholds."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tacit.auditing.binomial import interval
from tacit.auditing.text.scale import Success, finding, of_trials, row_bootstrap
from tacit.report import Light


def test_clopper_pearson_known_answers():
    low, high = interval(4, 10)
    assert (low, high) == pytest.approx((0.1216, 0.7376), abs=1e-4)
    assert interval(0, 10) == pytest.approx((0.0, 0.3085), abs=1e-4)
    assert interval(10, 10)[1] == 1.0


@pytest.mark.parametrize(
    ("rate", "low", "high", "light"),
    [
        (0.05, 0.0, 0.19, Light.AMBER),  # above 10 % of 0.1 .. 0.9 at the upper end
        (0.11, 0.10, 0.17, Light.GREEN),
        (0.60, 0.51, 0.70, Light.RED),
        (0.60, 0.49, 0.70, Light.AMBER),
    ],
)
def test_lights(rate: float, low: float, high: float, light: Light):
    assert Success(rate, low, high, floor=0.1, ceiling=0.9, cases=100).light is light


def test_an_attack_that_fails_on_the_original_says_nothing():
    weak = Success(0.5, 0.4, 0.6, floor=0.5, ceiling=0.51, cases=100)
    assert weak.light is Light.NONE
    assert "says nothing" in finding("x", weak, "Found").sentence
    assert Success(math.nan, 0, 1, 0.1, 0.9, cases=0).light is Light.NONE


def test_rows_that_belong_together_widen_the_interval():
    hits = np.repeat(np.arange(20) % 2, 50).astype(float)  # whole rows are right or wrong
    rows = np.repeat(np.arange(20), 50)
    alone, together = of_trials(hits, floor=0, ceiling=1), of_trials(hits, floor=0, ceiling=1, rows=rows)
    assert together.high - together.low > 3 * (alone.high - alone.low)
    low, high = row_bootstrap(hits, rows)
    assert low < 0.35 < 0.65 < high


def test_more_looks_mean_more_doubt():
    once, often = of_trials([True] * 30 + [False] * 70, floor=0, ceiling=1), None
    often = of_trials([True] * 30 + [False] * 70, floor=0, ceiling=1, looks=10)
    assert often.low < once.low < once.high < often.high
