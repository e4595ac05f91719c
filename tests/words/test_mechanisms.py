"""Known answers and limits of the single mechanisms."""

from __future__ import annotations

import math

import numpy as np
import pytest

import tacit
from tacit import build
from tacit.errors import BadParameterError, NoGuaranteeError
from tacit.noise.source import Source
from tacit.vectors import VectorTable
from tacit.words.noisy import first_or_second, softened
from tacit.words.truncated_gumbel import gumbel_scale
from tests.conftest import small_table


def drawn(mechanism, seed=1, count=2000):
    return mechanism.draw(np.arange(count) % len(mechanism.table), Source.from_test_seed(seed))


def test_calibrated_laplace_is_uncalibrated_laplace_at_epsilon_over_sensitivity():
    table = small_table(30, 6, scale=2.0)
    calibrated = build("laplace", {"epsilon": 5.0, "vectors": table, "bounding": "unit"})
    sensitivity = calibrated.sensitivity.value
    assert sensitivity != 1
    plain = build("laplace", {"epsilon": 5.0 / sensitivity, "vectors": table, "bounding": "unit", "calibrated": False})
    np.testing.assert_array_equal(drawn(calibrated), drawn(plain))
    assert calibrated.guarantee().epsilon == pytest.approx(5.0)
    assert plain.guarantee().epsilon == pytest.approx(5.0)


def test_the_uncalibrated_guarantee_is_multiplied_by_the_sensitivity():
    table = small_table(30, 6, scale=2.0)
    mechanism = build("laplace", {"epsilon": 5.0, "vectors": table, "bounding": "unit", "calibrated": False})
    assert mechanism.guarantee().epsilon == pytest.approx(5.0 * mechanism.sensitivity.value)


@pytest.mark.parametrize(
    "bounding", ["none", "unit", "adapted-unit", "minus-one-to-one", "observed-range", "clip", "jl"]
)
def test_every_bounding_map_works_under_the_noise(bounding):
    mechanism = build("laplace", {"epsilon": 4.0, "vectors": small_table(200, 100), "bounding": bounding})
    assert set(drawn(mechanism).tolist()) <= set(range(200))
    assert "sensitivity" in mechanism.guarantee().parameters


def test_mahalanobis_without_covariance_is_multivariate_laplace():
    table = small_table(30, 6)
    round_noise = build("mahalanobis", {"epsilon": 4.0, "vectors": table, "lam": 0.0})
    np.testing.assert_allclose(round_noise.space, table.vectors, atol=1e-5)
    np.testing.assert_array_equal(drawn(round_noise), drawn(build("laplace", {"epsilon": 4.0, "vectors": table})))


def test_mahalanobis_noise_has_the_stated_shape():
    """Covariance of the noise in the original space is proportional to A = lam S + (1 - lam) I (20,000 draws, 5 %)."""
    rng = np.random.default_rng(0)
    vectors = (rng.standard_normal((500, 3)) * [3.0, 1.0, 0.2]).astype(np.float32)
    table = VectorTable([f"w{i}" for i in range(500)], vectors, name="stretched", source="test")
    mechanism = build("mahalanobis", {"epsilon": 2.0, "vectors": table, "lam": 0.7})
    covariance = np.cov(vectors.astype(float), rowvar=False)
    shape = 0.7 * covariance / (np.trace(covariance) / 3) + 0.3 * np.eye(3)
    values, directions = np.linalg.eigh(shape)
    root = (directions * np.sqrt(values)) @ directions.T
    noise = mechanism._noisy(np.zeros(20_000, dtype=np.int64), Source.from_test_seed(1)) - mechanism.space[0]
    measured = np.cov(noise @ root, rowvar=False)
    np.testing.assert_allclose(measured / np.trace(measured), shape / np.trace(shape), atol=0.05)


def test_first_or_second_known_answers():
    distances = np.array([[1.0, 1.0], [1.0, 3.0], [0.0, 2.0], [0.0, 0.0]])
    chance = first_or_second(distances, 0.75)
    np.testing.assert_allclose(chance[:, 0] / chance.sum(axis=1), [0.25, 0.75 / 1.5, 1.0, 0.25])
    assert (first_or_second(distances, 0.0)[:, 1] == 0).all()
    assert (first_or_second(distances, 1.0)[:, 0] == 0).all()
    np.testing.assert_allclose(softened(np.array([[1.0, 2.0, 3.0]]), 0.5), [[1, math.exp(-0.5), math.exp(-1)]])


def test_vickrey_with_t_zero_and_one_is_the_first_and_the_second_neighbor():
    table = small_table(30, 3)
    noisy = build("laplace", {"epsilon": 50.0, "vectors": table})
    queries = noisy._noisy(np.arange(30), Source.from_test_seed(9))
    nearest, _ = noisy.search.nearest_k(queries, 2)
    for t, column in ((0.0, 0), (1.0, 1)):
        mechanism = build("vickrey", {"epsilon": 50.0, "vectors": table, "t": t})
        np.testing.assert_array_equal(mechanism._map(queries, Source.from_test_seed(1)), nearest[:, column])


def test_released_vectors_lie_on_a_public_grid_and_carry_the_guarantee():
    mechanism = build("laplace", {"epsilon": 2.0, "vectors": small_table(30, 6), "seed": 4})
    vectors, guarantee = mechanism.release_vectors(["w1 w2 w3", "", "w4"])
    assert [len(v) for v in vectors] == [3, 0, 1]
    steps = vectors[0] / 2.0 ** (-1 - 20)
    np.testing.assert_array_equal(steps, np.rint(steps))
    assert not guarantee.is_private, "a test seed gives no guarantee"


def test_noise_vanishes_at_large_epsilon_and_rules_at_small():
    table = small_table(50, 4)
    for name in ("laplace", "mahalanobis"):
        identity = drawn(build(name, {"epsilon": 1e5, "vectors": table}), count=50)
        np.testing.assert_array_equal(identity, np.arange(50))
        lost = drawn(build(name, {"epsilon": 0.01, "vectors": table}), count=5000)
        assert (lost == np.arange(5000) % 50).mean() < 0.1


# Truncated Gumbel: the numbers of the specification -------------------------------------------------------------------

WORDS = 34_573


@pytest.mark.parametrize(("epsilon", "scale"), [(50, 21.6), (100, 12.6), (150, 10.6)])
def test_gumbel_scale_of_the_unbounded_vectors(epsilon, scale):
    assert gumbel_scale(epsilon, WORDS, 18.4198, 0.7890) == pytest.approx(scale, abs=0.05)


@pytest.mark.parametrize(
    ("largest", "smallest", "needs", "scales"),
    [
        (18.4198, 0.7890, 32.83, {}),
        (1.8962, 0.1298, 199.55, {}),
        (18.8451, 0.4773, 54.27, {100: 17.8, 150: 13.5}),
        (53.9977, 1.3676, 18.94, {50: 39.7, 100: 29.7, 150: 26.3}),
        (2.2047, 0.0800, 323.77, {}),
    ],
)
def test_gumbel_domain_guard(largest, smallest, needs, scales):
    # The constants are printed with four digits, which moves the limit in its fourth.
    with pytest.raises(BadParameterError, match="only defined for epsilon above"):
        gumbel_scale(needs * 0.999, WORDS, largest, smallest)
    assert gumbel_scale(needs * 1.002, WORDS, largest, smallest) > 0
    for epsilon, scale in scales.items():
        assert gumbel_scale(epsilon, WORDS, largest, smallest) == pytest.approx(scale, abs=0.06)


def test_the_compatibility_mode_runs_outside_the_domain_and_promises_nothing():
    for epsilon in (0.1, 1, 10):
        scale = gumbel_scale(epsilon, WORDS, 18.4198, 0.7890, guard=False)
        assert 0.42 <= scale / 18.4198 <= 0.86
    table = small_table(30, 5)
    mechanism = build("truncated-gumbel", {"epsilon": 0.5, "vectors": table, "mode": "real-part"})
    assert len(mechanism.rewrite("w1 w2").texts[0].split()) == 2
    assert "outside the domain" in mechanism.guarantee().void


def test_more_neighbors_than_remembered_are_all_candidates(monkeypatch):
    monkeypatch.setattr("tacit.words.truncated_gumbel.REMEMBERED_NEIGHBORS", 3)
    mechanism = build("truncated-gumbel", {"epsilon": 0.5, "vectors": small_table(30, 2), "mode": "real-part"})
    monkeypatch.setattr(
        "tacit.words.truncated_gumbel.truncated_poisson", lambda rate, upper, size, source: np.full(size, upper)
    )
    reached = set(mechanism.draw(np.zeros(400, dtype=np.int64), Source.from_test_seed(0)).tolist())
    assert len(reached) > 20


def test_uniform_ignores_its_input():
    table = small_table(30, 2)
    mechanism = build("random", {"vectors": table})
    a = mechanism.draw(np.zeros(100, dtype=np.int64), Source.from_test_seed(3))
    b = mechanism.draw(np.full(100, 17), Source.from_test_seed(3))
    np.testing.assert_array_equal(a, b)
    assert mechanism.guarantee().epsilon == 0


def test_laws_say_where_there_is_no_closed_form():
    with pytest.raises(NoGuaranteeError, match="no closed form"):
        build("laplace", {"epsilon": 1, "vectors": small_table()}).distribution("w1")
    with pytest.raises(NoGuaranteeError, match="16 bits"):
        build("brr", {"epsilon": 1, "vectors": small_table()}).distribution("w1")


def test_distribution_of_any_string_has_the_same_outputs():
    mechanism = tacit.SanText(epsilon=2.0, vectors=small_table())
    for word in ("w3", "W3", "never-seen", "Ωmega", "12345", "!"):
        law = mechanism.distribution(word)
        assert law.shape == (40,)
        assert law.sum() == pytest.approx(1.0)
        assert (law > 0).all()


@pytest.mark.parametrize(
    ("name", "options", "says"),
    [
        ("santext", {"epsilon": 0}, "must be positive"),
        ("santext", {"epsilon": -3}, "must be positive"),
        ("santext", {"epsilon": "nan"}, "NaN"),
        ("santext", {"epsilon": "inf"}, "protects nothing"),
        ("santext", {"epsilon": 1e9}, "protects nothing"),
        ("santext", {}, "needs epsilon"),
        ("santext", {"epsilon": 1, "unknown": "keep"}, "unknown must be one of"),
        ("santext+", {"epsilon": 1, "p": 0}, "probability"),
        ("santext+", {"epsilon": 1, "sensitive_share": 1.5}, "between 0 and 1"),
        ("santext+", {"epsilon": 1, "sensitive_share": 0}, "no word would be sensitive"),
        ("tem", {"epsilon": 1, "beta": 1}, "beta"),
        ("custext", {"epsilon": 1, "set_size": 1}, "at least 2"),
        ("mahalanobis", {"epsilon": 1, "lam": 2}, "lam"),
        ("vickrey", {"epsilon": 1, "t": -1}, "t must lie"),
        ("two-budgets", {"epsilon": 2, "common_epsilon": 1}, "smaller budget"),
        ("truncated-gumbel", {"epsilon": 1, "mode": "fast"}, "mode must be one of"),
        ("brr", {"epsilon": 1, "bits": 0}, "bits"),
        ("laplace", {"epsilon": 1, "bounding": "sphere"}, "bounding"),
        ("santekst", {"epsilon": 1}, "did you mean 'santext'"),
        ("santext", {"epsilon": 1, "sed": 4}, "did you mean 'seed'"),
        ("custext", {"epsilon": 1, "set_size": "many"}, "whole number"),
    ],
)
def test_bad_parameters_say_what_to_do(name, options, says):
    with pytest.raises(BadParameterError, match=says):
        build(name, {**options, "vectors": small_table()}).guarantee()


def test_one_word_cannot_hide_and_one_token_is_asked_for():
    alone = VectorTable(["word"], np.ones((1, 2), dtype=np.float32), name="alone", source="test")
    for name in tacit.mechanism_names("word"):
        with pytest.raises(BadParameterError, match="others to hide among"):
            build(name, {"epsilon": 2.0, "vectors": alone}).rewrite("word")
    with pytest.raises(BadParameterError, match="give one token, not 2"):
        build("santext", {"epsilon": 1, "vectors": small_table()}).distribution("don't")


def test_binary_response_decodes_ties_to_the_earlier_word():
    mechanism = build("brr", {"epsilon": 1.0, "vectors": small_table(40, 8), "bits": 5})
    every = ((np.arange(32)[:, None] >> np.arange(5)) & 1).astype(bool)
    hamming = (every[:, None] != mechanism.codes[None]).sum(axis=2)
    np.testing.assert_array_equal(mechanism.decode(every), hamming.argmin(axis=1))
