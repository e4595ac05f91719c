"""The private step: the law of what is released, its promise, and what a test seed does to it."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tacit.card import Card
from tacit.errors import BadParameterError
from tacit.guarantee import Adjacency, Guarantee, Model, Notion, Unit, VoidReason
from tacit.labels import GIVEN
from tacit.matching import sketch as module
from tacit.matching.features import default_map
from tacit.matching.labels import ListedLabels, public_topics
from tacit.matching.pool import load_pool
from tacit.matching.sketch import DECLARED, build_sketch, noisy_totals, rounding_variance, step_for
from tacit.matching.sums import exact_sums, rows_in_memory
from tacit.matching.whole_numbers import GRID
from tacit.noise.gaussian import analytic_gaussian_sigma, gaussian_delta
from tacit.noise.source import Source

SENTENCES = load_pool().sentences
SMALL = default_map(words=300)
LABELS = ListedLabels(("a", "b"))


def rows(count: int = 400) -> object:
    return rows_in_memory(list(SENTENCES[:count]), [("a", "b")[place % 2] for place in range(count)])


def normal_below(value: float) -> float:
    return 0.5 * math.erfc(-value / math.sqrt(2))


@pytest.mark.parametrize(("total", "sigma_steps", "step"), [(5, 2.0, 1), (1003, 40.0, 8), (-777, 12.0, 4)])
def test_the_law_of_a_released_number_is_the_rounded_normal(total: int, sigma_steps: float, step: int) -> None:
    """Chi-square of 40,000 draws against Pr[k] = Phi((k + 1/2) step) - Phi((k - 1/2) step), around the exact sum."""
    sigma = sigma_steps / GRID
    draws = noisy_totals(np.full(40_000, total, dtype=np.int64), sigma, step, Source.from_test_seed(3))
    center = round(total / step)
    reach = math.ceil(2.5 * sigma_steps / step)
    cells = range(center - reach, center + reach + 1)
    expected = [
        normal_below(((k + 0.5) * step - total) / sigma_steps) - normal_below(((k - 0.5) * step - total) / sigma_steps)
        for k in cells
    ]
    seen = [int((draws == k).sum()) for k in cells]
    expected.append(1 - sum(expected))
    seen.append(len(draws) - sum(seen))
    chi = sum((s - 40_000 * e) ** 2 / (40_000 * e) for s, e in zip(seen, expected, strict=True))
    degrees = len(seen) - 1
    assert chi < degrees + 4.5 * math.sqrt(2 * degrees)


def test_two_neighbors_of_a_tiny_domain_keep_the_promise_exactly() -> None:
    """The released integer of one number, for neighboring sums 0 and one whole unit: its exact delta by summation."""
    epsilon, delta = 1.0, 1e-3
    sigma = analytic_gaussian_sigma(epsilon, delta, 1.0)
    step = step_for(sigma)
    scale = sigma * GRID

    def law(total: int) -> np.ndarray:
        edges = [(k - 0.5) * step for k in range(-3_000, 3_002)]
        below = [normal_below((edge - total) / scale) for edge in edges]
        return np.diff(below)

    with_row, without = law(GRID), law(0)
    for first, second in ((with_row, without), (without, with_row)):
        exceeding = np.maximum(first - math.exp(epsilon) * second, 0).sum()
        assert 0.9 * delta < exceeding <= delta * (1 + 1e-9)
    assert gaussian_delta(epsilon, sigma, 1.0) <= delta


def test_the_noise_around_the_exact_sums_has_the_stated_variance_and_is_independent() -> None:
    exact = exact_sums(rows(), LABELS, SMALL).totals
    drawn = [build_sketch(rows(), LABELS, SMALL, epsilon=1.0, delta=1e-6, seed=seed).sketch for seed in range(6)]
    noise = np.stack([made.totals * made.step - exact for made in drawn]) / GRID
    deviation = drawn[0].noise_deviation
    assert abs(noise.std() / deviation - 1) < 4 / math.sqrt(2 * noise.size)
    assert abs(noise.mean()) < 4.5 * deviation / math.sqrt(noise.size)
    between = np.corrcoef(noise.reshape(6, -1))[np.triu_indices(6, 1)]
    assert np.abs(between).max() < 4.5 / math.sqrt(noise[0].size)
    across = np.corrcoef(noise[:, 0].ravel(), noise[:, 1].ravel())[0, 1]
    assert abs(across) < 4.5 / math.sqrt(noise[:, 0].size)


def test_sums_and_counts_are_in_units() -> None:
    made = build_sketch(rows(), LABELS, SMALL, epsilon=50.0).sketch
    exact = exact_sums(rows(), LABELS, SMALL).totals
    assert np.abs(made.counts - 200).max() < 6 * made.count_deviation
    assert np.abs(made.sums - exact[:, :-1] / GRID).max() < 6 * made.noise_deviation
    assert made.sums.shape == (2, SMALL.dimension)


def test_every_build_draws_new_noise() -> None:
    first, second = (build_sketch(rows(), LABELS, SMALL, epsilon=1.0).sketch for _ in range(2))
    assert (first.totals != second.totals).mean() > 0.9


def test_the_promise_says_what_holds() -> None:
    promised = build_sketch(rows(), LABELS, SMALL, epsilon=1.0, delta=1e-7).sketch.guarantee
    assert (promised.notion, promised.model, promised.unit) == (Notion.APPROXIMATE, Model.CENTRAL, Unit.RECORD)
    assert (promised.epsilon, promised.delta, promised.slack) == (1.0, 1e-7, 0.0)
    assert promised.adjacency is Adjacency.ADD_REMOVE
    assert GIVEN in promised.assumptions
    assert not any("number of" in line for line in promised.assumptions), "a given delta says nothing about the rows"
    assert Card.from_json(Card(promised).to_json()).guarantee == promised


def test_what_the_promise_assumes_depends_on_the_options() -> None:
    automatic = build_sketch(rows(), ListedLabels(("a", "b"), declared=True), SMALL, epsilon=1.0).sketch.guarantee
    assert DECLARED in automatic.assumptions
    assert any("number of records is public" in line for line in automatic.assumptions)
    users = rows_in_memory(["x y", "y z"] * 5, ["a", "b"] * 5, [f"u{place % 4}" for place in range(10)])
    by_user = build_sketch(users, LABELS, SMALL, epsilon=1.0, by_user=True).sketch.guarantee
    assert by_user.unit is Unit.USER
    assert not any("several records" in line for line in by_user.not_covered)
    topics = build_sketch(rows(), public_topics(4), SMALL, epsilon=1.0).sketch
    assert len(topics.labels) == 4
    assert any(line.name == "topics" for line in topics.guarantee.provenance)


def test_the_card_is_the_same_with_and_without_rows_outside_the_list() -> None:
    texts, labels = ["a b"] * 20, ["a", "b"] * 10
    inside = build_sketch(rows_in_memory(texts, labels), LABELS, SMALL, epsilon=1.0)
    outside = build_sketch(rows_in_memory(texts, [*labels[:-3], "z", "z", None]), LABELS, SMALL, epsilon=1.0)
    assert inside.sketch.guarantee == outside.sketch.guarantee
    assert (inside.findings.unlabeled, outside.findings.unlabeled) == (0, 3)
    assert "findings" not in repr(outside)


def test_a_test_seed_voids_the_promise() -> None:
    made, again = (build_sketch(rows(), LABELS, SMALL, epsilon=1.0, seed=1).sketch for _ in range(2))
    assert (made.totals == again.totals).all()
    assert made.guarantee.void_reason is VoidReason.TEST_SEED
    assert not made.guarantee.is_private


def test_a_ledger_may_refuse_before_any_noise_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[int] = []
    monkeypatch.setattr(module, "noisy_totals", lambda *given: drawn.append(1))

    def refuse(promised: Guarantee) -> None:
        assert promised.epsilon == 1.0
        raise BadParameterError("no-budget", "no budget left")

    with pytest.raises(BadParameterError, match="no budget"):
        build_sketch(rows(), LABELS, SMALL, epsilon=1.0, before_noise=refuse)
    assert drawn == []


@pytest.mark.parametrize("epsilon", [0, -1, math.nan, math.inf])
def test_budgets_that_mean_nothing_are_refused(epsilon: float) -> None:
    with pytest.raises(BadParameterError):
        build_sketch(rows(), LABELS, SMALL, epsilon=epsilon)
    with pytest.raises(BadParameterError, match="one over"):
        build_sketch(rows(), LABELS, SMALL, epsilon=1.0, delta=0.5)


def test_small_budgets_and_large_ones_work() -> None:
    for epsilon in (0.01, 1_000.0):
        made = build_sketch(rows(), LABELS, SMALL, epsilon=epsilon).sketch
        assert made.step & (made.step - 1) == 0
        assert rounding_variance(made.step) < max(1e-4 * made.noise_variance, 1e-9)
    assert step_for(1e-9) == 1
