"""Published mistakes, kept as fixtures: the checks of this folder must reject every one of them."""

from __future__ import annotations

import math
import multiprocessing
import os

import numpy as np
import pytest
from scipy.stats import beta as beta_distribution

from tacit import build
from tacit.auditing.published.words import tem_with_a_quotient
from tacit.noise.source import RandomnessError, Source
from tests.conftest import small_table
from tests.words.exactness import euclidean, worst_excess
from tests.words.test_exact import in_domain


def test_tem_with_a_quotient_is_rejected_and_the_right_one_is_not():
    table = small_table(40, 2, seed=2)
    distances = euclidean(table.vectors)
    epsilon, gamma = 8.0, 1.5
    bound = epsilon * distances
    assert worst_excess(tem_with_a_quotient(distances, epsilon, gamma), bound) > 1.0
    right = np.exp(-epsilon / 2 * np.minimum(distances, gamma))
    assert worst_excess(right / right.sum(axis=1, keepdims=True), bound) <= 1e-9


def test_santext_without_the_half_is_rejected():
    distances = euclidean(small_table(40, 2).vectors)
    weights = np.exp(-3.0 * distances)
    assert worst_excess(weights / weights.sum(axis=1, keepdims=True), 3.0 * distances) > 0.1


def test_underflow_to_zero_is_rejected():
    """Float32 weights make far words impossible for some inputs only: an infinite loss."""
    distances = euclidean(small_table(40, 2, scale=20.0).vectors).astype(np.float32)
    weights = np.exp(np.float32(-5.0) * distances).astype(np.float64)
    assert worst_excess(weights / weights.sum(axis=1, keepdims=True), 10.0 * distances.astype(float)) == math.inf


def test_unknown_words_passed_through_are_rejected():
    """Five words have no vector and pass unchanged, as in several published tools."""
    table = small_table(40, 2)
    law = np.eye(45)
    law[:40, :40] = build("santext", {"epsilon": 1.0, "vectors": table}).laws(np.arange(40))
    assert worst_excess(law, np.full((45, 45), 1e6)) == math.inf


def test_truncated_gumbel_as_published_is_refuted_inside_its_own_domain():
    table = small_table(20, 50, seed=1)
    mechanism = in_domain(table, 1.01, "published")
    distances = euclidean(table.vectors)
    excess = worst_excess(mechanism.laws(np.arange(20)), mechanism.epsilon * distances)
    assert excess > 0.5 * mechanism.epsilon * mechanism.smallest, "the bound is broken by more than half of itself"
    guarantee = mechanism.guarantee()
    assert not guarantee.is_private
    assert "refuted" in guarantee.void


def test_a_stream_shared_by_forked_workers_is_rejected():
    """The numpy way repeats the noise in each worker; ours refuses to draw."""
    fork = multiprocessing.get_context("fork")
    shared = np.random.default_rng(42)
    source = Source.from_test_seed(42)

    def child(queue):
        try:
            source.generator.random()
            outcome = "drew"
        except RandomnessError:
            outcome = "refused"
        queue.put((shared.random(), outcome, os.getpid()))

    queue = fork.Queue()
    children = [fork.Process(target=child, args=(queue,)) for _ in range(2)]
    for process in children:
        process.start()
    (first, left, pid), (second, two, other) = queue.get(timeout=30), queue.get(timeout=30)
    for process in children:
        process.join()
    assert pid != other
    assert first == second, "the published pattern: both workers draw the same number"
    assert (left, two) == ("refused", "refused")


# The noise mechanisms have no closed form in general: a statistical test in two dimensions ----------------------------


def lower_bounds(counts_a, counts_b, draws, confidence):
    """Clopper-Pearson: lower bound on ln(P_a / P_b) for each output."""
    tail = (1 - confidence) / 2
    low = beta_distribution.ppf(tail, counts_a, draws - counts_a + 1)
    high = beta_distribution.ppf(1 - tail, counts_b + 1, draws - counts_b)
    with np.errstate(divide="ignore"):
        return np.log(np.nan_to_num(low)) - np.log(high)


def refuted(mechanism, bound, *, draws=400_000, seed=3):
    """Whether sampling two words shows a loss above the bound. Wrong with probability at most 1e-6 by Bonferroni."""
    outputs = len(mechanism.table)
    confidence = 1 - 1e-6 / (2 * outputs)
    counts = [
        np.bincount(mechanism.draw(np.full(draws, word), Source.from_test_seed(seed + word)), minlength=outputs)
        for word in (0, 1)
    ]
    return any(lower_bounds(a, b, draws, confidence).max() > bound for a, b in (counts, counts[::-1]))


LINE = np.array([[0, 0], [1, 0], [-1.5, 0], [2.5, 0], [0.5, 1.5], [0.5, -1.5]], dtype=np.float32) + np.float32(0.25)


@pytest.fixture
def line_table():
    from tacit.vectors import VectorTable

    return VectorTable([f"p{i}" for i in range(len(LINE))], LINE, name="line", source="made for a test")


@pytest.mark.parametrize("epsilon", [0.7, 3.0])
@pytest.mark.parametrize(
    ("name", "options"),
    [("laplace", {}), ("laplace", {"bounding": "adapted-unit"}), ("vickrey", {}), ("vickrey", {"neighbors": 3}),
     ("mahalanobis", {}), ("mahalanobis", {"lam": 0.9}), ("laplace", {"bounding": "unit", "calibrated": False})],
)  # fmt: skip
def test_noise_mechanisms_are_not_refuted(name, options, epsilon, line_table):
    if options.get("bounding") == "unit":
        line_table = type(line_table)(
            line_table.words, LINE + np.float32(3), name="shifted line", source="made for a test"
        )
    mechanism = build(name, {"epsilon": epsilon, "vectors": line_table, **options})
    guarantee = mechanism.guarantee()
    distance = float(np.linalg.norm(mechanism.space[0] - mechanism.space[1])) if name == "mahalanobis" else 1.0
    assert not refuted(mechanism, guarantee.exponent(distance))


def test_noise_of_half_the_size_is_refuted(line_table):
    """The self-test of the test above: noise at 3 epsilon cannot hide behind a claim of epsilon."""
    mechanism = build("laplace", {"epsilon": 9.0, "vectors": line_table})
    assert refuted(mechanism, 3.0 * 1.0)


def test_excluding_the_input_word_is_refuted(line_table):
    """A Vickrey that drops the input word from the candidates: the word itself never comes out for itself only."""
    mechanism = build("laplace", {"epsilon": 0.7, "vectors": line_table})
    honest = mechanism.draw

    def drop_the_input(ids, source):
        drawn = honest(ids, source)
        return np.where(drawn == ids, (drawn + 1) % len(LINE), drawn)

    mechanism.draw = drop_the_input
    assert refuted(mechanism, 0.7 * 1.0)
