"""Every mechanism with a closed form keeps its promise on all triples of a 40-word vocabulary, and its draws follow
exactly the law that was checked."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

from tacit import build
from tacit.guarantee import Adjacency, Notion
from tacit.noise.source import Source
from tacit.vectors import VectorTable, closest_pairs, diameter
from tests.conftest import small_table
from tests.words.exactness import euclidean, worst_excess

ALL = np.arange(40)
ARITHMETIC = 1e-9  # what the test's own float64 logarithms may be off


def promised_bound(mechanism, distances):
    """The exponent that the guarantee allows for each pair of inputs, from the card's numbers alone."""
    g = mechanism.guarantee()
    assert g.notion is not Notion.NONE
    if g.metric is None:
        return np.full_like(distances, g.epsilon + g.slack)
    return g.epsilon * distances + g.offset + g.slack


TEXTBOOK = {"calibration": "textbook"}
CASES = [
    ("santext", {}),
    ("tem", {}),
    ("tem", {"beta": 0.4}),
    ("two-budgets", {"sensitive_list": "LIST", "sensitive_share": 0.0}),
    ("two-budgets", {"sensitive_list": "LIST", "sensitive_share": 0.0, "common_epsilon": 9.0}),
    ("santext", TEXTBOOK),
    ("tem", TEXTBOOK),
    ("two-budgets", {"sensitive_list": "LIST", "sensitive_share": 0.0, **TEXTBOOK}),
    ("random", {}),
]


@pytest.mark.parametrize("dimension", [1, 2, 50])
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 8.0])
@pytest.mark.parametrize(("name", "options"), CASES)
def test_all_triples_of_a_small_vocabulary_keep_the_bound(name, options, epsilon, dimension, tmp_path):
    table = small_table(40, dimension, seed=dimension)
    mechanism = build(name, {"epsilon": epsilon, "vectors": table, **with_list(options, tmp_path)})
    excess = worst_excess(mechanism.laws(ALL), promised_bound(mechanism, euclidean(table.vectors)))
    assert excess <= ARITHMETIC


def with_list(options, folder):
    if options.get("sensitive_list") != "LIST":
        return options
    path = folder / "sensitive.txt"
    path.write_text("\n".join(f"w{i}" for i in range(0, 40, 3)))
    return {**options, "sensitive_list": str(path)}


@settings(max_examples=40)
@given(
    seed=st.integers(0, 10**6),
    dimension=st.integers(1, 60),
    scale=st.floats(0.01, 30.0),
    epsilon=st.floats(1e-3, 200.0),
    beta=st.floats(1e-6, 0.99),
)
def test_the_exponential_family_keeps_its_bound_for_any_vectors(seed, dimension, scale, epsilon, beta):
    table = small_table(15, dimension, seed, scale)
    for mechanism in (
        build("santext", {"epsilon": epsilon, "vectors": table}),
        build("tem", {"epsilon": epsilon, "vectors": table, "beta": beta}),
    ):
        law = mechanism.laws(np.arange(15))
        assert (law > 0).all(), "no output may become impossible"
        assert worst_excess(law, promised_bound(mechanism, euclidean(table.vectors))) <= ARITHMETIC


@pytest.mark.parametrize("epsilon", [0.5, 6.0])
@pytest.mark.parametrize("p", [0.05, 0.3, 1.0])
@pytest.mark.parametrize("calibration", ["exact", "textbook"])
def test_santext_plus_is_utility_optimized(epsilon, p, calibration, tmp_path):
    table = small_table(40, 3)
    options = with_list({"sensitive_list": "LIST", "sensitive_share": 0.0, "calibration": calibration}, tmp_path)
    mechanism = build("santext+", {"epsilon": epsilon, "vectors": table, "p": p, **options})
    law = mechanism.laws(ALL)
    sensitive = mechanism.sensitive
    assert sensitive.sum() == 14
    guarantee = mechanism.guarantee()
    assert guarantee.notion is (Notion.UTILITY_OPTIMIZED_METRIC if p < 1 else Notion.METRIC)
    assert guarantee.offset == pytest.approx(math.log(1 / p))
    bound = promised_bound(mechanism, euclidean(table.vectors))
    assert worst_excess(law, bound, sensitive) <= ARITHMETIC
    if p < 1:
        # Every unprotected output has exactly one input, itself.
        common = law[:, ~sensitive] > 0
        assert (common.sum(axis=0) == 1).all()
        np.testing.assert_allclose(np.diag(law)[~sensitive], 1 - p, atol=1e-12)
    # Marked tokens (a detector saw them) are inputs of their own, protected like sensitive words.
    marked = mechanism.laws(np.concatenate([ALL, ALL + 40]))
    twice = np.tile(bound, (2, 2))
    assert worst_excess(marked, twice, sensitive) <= ARITHMETIC
    assert (marked[40:, ~sensitive] == 0).all()


def test_santext_plus_with_every_word_sensitive_is_santext():
    table = small_table(40, 3)
    plus = build("santext+", {"epsilon": 2.0, "vectors": table, "sensitive_share": 1.0})
    plain = build("santext", {"epsilon": 2.0, "vectors": table})
    np.testing.assert_array_equal(plus.laws(ALL), plain.laws(ALL))
    assert plus.guarantee().notion is Notion.METRIC
    assert plus.guarantee().offset == 0


@pytest.mark.parametrize("epsilon", [0.1, 3.0, 40.0])
@pytest.mark.parametrize("size", [2, 7, 40, 100])
@pytest.mark.parametrize("calibration", ["exact", "textbook"])
def test_custext_is_pure_within_each_set_and_the_sets_partition_the_vocabulary(epsilon, size, calibration):
    table = small_table(40, 5)
    options = {"epsilon": epsilon, "vectors": table, "set_size": size, "calibration": calibration}
    mechanism = build("custext", options)
    assert (mechanism.sets >= 0).sum(axis=1).min() >= min(size, 40), "no set is smaller than asked for"
    members = mechanism.sets[mechanism.sets >= 0]
    assert sorted(members.tolist()) == list(range(40))
    law = mechanism.laws(ALL)
    guarantee = mechanism.guarantee()
    assert guarantee.adjacency is Adjacency.SAME_SET
    same_set = mechanism.set_of[:, None] == mechanism.set_of[None, :]
    bound = np.where(same_set, guarantee.epsilon + guarantee.slack, np.inf)
    assert worst_excess(law, bound) <= ARITHMETIC
    assert ((law > 0) == same_set).all(), "exactly the words of the set can come out"


@pytest.mark.parametrize("epsilon", [0.2, 2.0])
def test_binary_response_keeps_its_bound_in_hamming_distance(epsilon):
    mechanism = build("brr", {"epsilon": epsilon, "vectors": small_table(40, 8), "bits": 9})
    codes = mechanism.codes
    hamming = (codes[:, None] != codes[None]).sum(axis=2).astype(float)
    assert mechanism.guarantee().metric.diameter == hamming.max()
    assert worst_excess(mechanism.laws(ALL), promised_bound(mechanism, hamming)) <= ARITHMETIC


@pytest.mark.parametrize("dimension", [2, 50])
@pytest.mark.parametrize("factor", [1.01, 1.5, 3.0])
def test_anchored_truncated_gumbel_keeps_its_bound_pure_and_metric(dimension, factor):
    table = small_table(20, dimension, seed=1)
    mechanism = in_domain(table, factor, "anchored")
    law = mechanism.laws(np.arange(20))
    distances = euclidean(table.vectors)
    assert worst_excess(law, promised_bound(mechanism, distances)) <= 1e-6
    metric = mechanism.epsilon * distances
    np.fill_diagonal(metric, 0.0)
    assert worst_excess(law, metric) <= 1e-6, "the published metric claim holds for the repaired mechanism"
    assert mechanism.anchor / 2**62 < 1 / (148 * 20)


def in_domain(table: VectorTable, factor: float, mode: str):
    smallest = np.sort(euclidean(table.vectors)[np.triu_indices(len(table), 1)])[0]
    epsilon = factor * (3 + 2 * (1 + math.log(len(table)))) / smallest
    return build("truncated-gumbel", {"epsilon": epsilon, "vectors": table, "mode": mode})


def marks_all_after_w0(texts):
    """A detector that reads its surroundings: everything is marked in a text that begins with w0."""
    return [[text.startswith("w0 ")] * len(text.split()) for text in texts]


@pytest.mark.parametrize("name", ["santext+", "two-budgets"])
def test_a_detector_that_reads_the_context_breaks_the_promise_per_word_but_not_per_text(name, tmp_path):
    """Two texts that differ in their first word only: the laws of all others change with their marks."""
    table = small_table(40, 3)
    options = with_list({"sensitive_list": "LIST", "sensitive_share": 0.0}, tmp_path)
    mechanism = build(name, {"epsilon": 1.0, "vectors": table, "detector": "patterns", **options})
    mechanism.__dict__["_detect"] = marks_all_after_w0
    texts = ["w0" + 30 * " w1", "w3" + 30 * " w1"]
    (left, _), (right, _) = (mechanism._encode([text]) for text in texts)
    outputs = mechanism.sensitive if name == "santext+" else slice(None)
    ratios = np.log(mechanism.laws(left)[:, outputs]) - np.log(mechanism.laws(right)[:, outputs])
    loss = np.abs(ratios).max(axis=1).sum()  # positions are independent
    guarantee = mechanism.guarantee()
    distance = float(np.linalg.norm(table.vectors[0] - table.vectors[3]))
    assert guarantee.adjacency is Adjacency.SAME_MARKS, "the card does not promise what the context can break"
    assert loss > guarantee.exponent(distance), "one word changed, and the loss exceeds the bound for one word"
    whole = guarantee.for_document(31)
    assert whole.adjacency is Adjacency.EQUAL_LENGTH
    assert loss <= whole.exponent(distance), "the bound for the whole text counts every position"


def test_the_law_of_a_word_does_not_depend_on_the_words_beside_it():
    table = small_table(200, 64, scale=1000.0)
    mechanism = build("santext", {"epsilon": 0.01, "vectors": table})
    together = mechanism.laws(np.arange(200))
    for word in (0, 7, 199):
        np.testing.assert_array_equal(mechanism.laws(np.array([word]))[0], together[word])


# Shape of the laws ----------------------------------------------------------------------------------------------------


def test_limits_of_santext():
    table = small_table(40, 3)
    near_zero = build("santext", {"epsilon": 1e-9, "vectors": table}).laws(ALL)
    np.testing.assert_allclose(near_zero, 1 / 40, rtol=1e-6)
    large = build("santext", {"epsilon": 1e5, "vectors": table}).laws(ALL)
    np.testing.assert_allclose(np.diag(large), 1.0, atol=1e-5)
    middle = build("santext", {"epsilon": 3.0, "vectors": table}).laws(ALL)
    distances = euclidean(table.vectors)
    for row, distance in zip(middle, distances, strict=True):
        assert (np.diff(row[np.argsort(distance)]) <= 0).all(), "a nearer word is never less likely"


def test_tem_is_the_gumbel_maximum_of_the_paper():
    """The paper's procedure, sampled literally, against the closed form. Chi-square, false-alarm rate 1e-6."""
    table = small_table(12, 2)
    mechanism = build("tem", {"epsilon": 2.0, "vectors": table, "beta": 0.8, "calibration": "textbook"})
    distances = euclidean(table.vectors)[0]
    inside = np.flatnonzero(distances <= mechanism.gamma)
    outside = np.flatnonzero(distances > mechanism.gamma)
    assert len(inside) > 1
    assert len(outside) > 1
    rng = np.random.default_rng(5)
    draws = 200_000
    scores = np.append(-distances[inside], -mechanism.gamma + 2 / 2.0 * math.log(len(outside)))
    winners = (scores + rng.gumbel(0, 2 / 2.0, size=(draws, len(scores)))).argmax(axis=1)
    chosen = np.append(inside, -1)[winners]
    chosen[chosen < 0] = rng.choice(outside, size=(chosen < 0).sum())
    assert_follows(np.bincount(chosen, minlength=12), mechanism.laws(np.array([0]))[0])


def assert_follows(counts, law, false_alarm=1e-6):
    expected = law * counts.sum()
    usable = expected > 5
    statistic = ((counts[usable] - expected[usable]) ** 2 / expected[usable]).sum()
    rest, rest_expected = counts[~usable].sum(), expected[~usable].sum()
    if rest_expected > 5:
        statistic += (rest - rest_expected) ** 2 / rest_expected
    assert statistic < chi2.isf(false_alarm, usable.sum())


@pytest.mark.parametrize(
    ("name", "options"),
    [
        *CASES[:3],
        CASES[4],
        ("santext+", {"sensitive_list": "LIST", "sensitive_share": 0.0}),
        ("custext", {"set_size": 7}),
        ("brr", {"bits": 6}),
    ],
)
def test_draws_follow_the_law_that_was_checked(name, options, tmp_path):
    """Chi-square over 100,000 draws of three words each, false-alarm rate 1e-6 each."""
    table = small_table(40, 3)
    mechanism = build(name, {"epsilon": 1.5, "vectors": table, **with_list(options, tmp_path)})
    words = np.array([0, 7, 31])
    drawn = mechanism.draw(np.tile(words, 100_000), Source.from_test_seed(11)).reshape(-1, 3)
    for column, law in enumerate(mechanism.laws(words)):
        assert_follows(np.bincount(drawn[:, column], minlength=40), law)


def test_truncated_gumbel_draws_follow_its_law():
    """As above: chi-square, false-alarm rate 1e-6. The quadrature law and the sampler share no code."""
    table = small_table(20, 4, seed=3)
    mechanism = in_domain(table, 1.3, "anchored")
    drawn = mechanism.draw(np.full(200_000, 5), Source.from_test_seed(2))
    assert_follows(np.bincount(drawn, minlength=20), mechanism.laws(np.array([5]))[0])


# The real vocabulary --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def closest(default_table):
    pairs, distances = closest_pairs(default_table, 500)
    return np.asarray(pairs), np.asarray(distances)


@pytest.mark.parametrize(
    ("name", "epsilon"), [("santext", 1.0), ("santext", 10.0), ("santext+", 3.0), ("tem", 6.0), ("two-budgets", 2.0)]
)
def test_the_500_closest_pairs_of_the_real_vocabulary_keep_the_bound(name, epsilon, default_table, closest):
    pairs, distances = closest
    assert len(pairs) == 500
    mechanism = build(name, {"epsilon": epsilon, "vectors": default_table})
    outputs = mechanism.sensitive if name == "santext+" else slice(None)
    bounds = promised_bound(mechanism, distances)
    for start in range(0, 500, 100):
        left, right = (mechanism.laws(pairs[start : start + 100, side])[:, outputs] for side in (0, 1))
        excess = np.abs(np.log(left) - np.log(right)).max(axis=1) - bounds[start : start + 100]
        assert excess.max() <= ARITHMETIC


def test_custext_and_anchored_gumbel_on_the_real_vocabulary(default_table, closest):
    pairs, _ = closest
    custext = build("custext", {"epsilon": 4.0, "vectors": default_table})
    together = pairs[custext.set_of[pairs[:, 0]] == custext.set_of[pairs[:, 1]]]
    assert len(together) > 50
    left, right = custext.laws(together[:, 0]), custext.laws(together[:, 1])
    possible = left > 0
    assert (possible == (right > 0)).all()
    assert np.abs(np.log(left[possible]) - np.log(right[possible])).max() <= 4.0 + custext.guarantee().slack
    gumbel = build("truncated-gumbel", {"epsilon": 80.0, "vectors": default_table})
    left, right = (gumbel.laws(pairs[:20, side]) for side in (0, 1))
    assert np.abs(np.log(left) - np.log(right)).max() <= gumbel.guarantee().epsilon + 1e-6
    assert gumbel.guarantee().epsilon <= 80.0 * gumbel.smallest + 1e-6
    assert gumbel.largest == diameter(default_table)
