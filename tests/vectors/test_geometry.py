from __future__ import annotations

from fractions import Fraction
from math import sqrt
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tacit.errors import BadInputError, BadParameterError
from tacit.vectors import (
    DistanceRows,
    VectorTable,
    closest_pairs,
    diameter,
    distance_error_bound,
    geometry,
    median_distance,
    smallest_positive_distance,
)
from tacit.vectors.geometry import largest_ratio

values = st.floats(-100, 100, width=32).map(lambda x: 0.0 if abs(x) < 1e-6 else x)
tables = st.tuples(st.integers(2, 40), st.integers(1, 6)).flatmap(
    lambda shape: hnp.arrays(np.float32, shape, elements=values)
)


def brute(vectors: np.ndarray) -> np.ndarray:  # type: ignore[type-arg]
    wide = vectors.astype(np.float64)
    return np.sqrt(((wide[:, None] - wide[None]) ** 2).sum(-1))


def random_rows(n: int, d: int, seed: int = 0) -> np.ndarray:  # type: ignore[type-arg]
    return np.random.default_rng(seed).standard_normal((n, d)).astype(np.float32)


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(geometry, "_BLOCK", 7)


@settings(max_examples=100)
@given(tables)
def test_diameter_is_the_largest_distance(vectors: np.ndarray) -> None:  # type: ignore[type-arg]
    assert diameter(vectors) == pytest.approx(brute(vectors).max(), rel=1e-12, abs=1e-12)


@pytest.mark.usefixtures("small_blocks")
def test_diameter_over_many_blocks() -> None:
    for seed in range(5):
        vectors = random_rows(200, 3, seed)
        assert diameter(vectors) == pytest.approx(brute(vectors).max(), rel=1e-12)
        on_sphere = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)  # nothing can be pruned
        assert diameter(on_sphere) == pytest.approx(brute(on_sphere).max(), rel=1e-12)


@settings(max_examples=100)
@given(tables, st.integers(1, 12))
def test_closest_pairs_are_those_of_brute_force(vectors: np.ndarray, k: int) -> None:  # type: ignore[type-arg]
    i, j = np.triu_indices(len(vectors), 1)
    all_distances = brute(vectors)[i, j]
    order = np.lexsort((j, i, all_distances))[:k]
    pairs, distances = closest_pairs(vectors, k)
    assert distances == pytest.approx(all_distances[order], rel=1e-12, abs=1e-12)
    assert (pairs[:, 0] < pairs[:, 1]).all()
    assert brute(vectors)[pairs[:, 0], pairs[:, 1]] == pytest.approx(distances, rel=1e-12, abs=1e-12)


@pytest.mark.usefixtures("small_blocks")
def test_closest_pairs_over_many_blocks() -> None:
    i, j = np.triu_indices(150, 1)
    for seed in range(5):
        vectors = random_rows(150, 4, seed)
        vectors[100] = vectors[3]
        expected = brute(vectors)[i, j]
        for k in (1, 20, 300):
            order = np.lexsort((j, i, expected))[:k]
            pairs, distances = closest_pairs(vectors, k)
            assert np.array_equal(pairs, np.stack([i[order], j[order]], axis=1))
            assert np.allclose(distances, expected[order], rtol=1e-13)
            assert pairs[0].tolist() == [3, 100]
            assert distances[0] == 0.0
        assert smallest_positive_distance(vectors) == pytest.approx(expected[expected > 0].min(), rel=1e-13)


def test_nearly_equal_vectors_far_from_the_origin_are_told_apart() -> None:
    # The Gram formula alone would see nothing: the difference is 1e-10 of the squared norm.
    vectors = np.array([[1000, 0], [1000.0625, 0], [1000.0625, 0], [-1000, 0]], dtype=np.float32)
    pairs, distances = closest_pairs(vectors, 2)
    assert pairs.tolist() == [[1, 2], [0, 1]]
    assert distances.tolist() == [0.0, 0.0625]
    assert smallest_positive_distance(vectors) == 0.0625


def test_what_cannot_be_asked() -> None:
    with pytest.raises(BadInputError, match="all words have the same vector"):
        smallest_positive_distance(np.ones((3, 2), dtype=np.float32))
    with pytest.raises(BadInputError, match="all words have the same vector"):
        smallest_positive_distance(np.ones((1, 2), dtype=np.float32))
    with pytest.raises(BadParameterError, match="at least 1"):
        closest_pairs(random_rows(3, 2), 0)
    with pytest.raises(BadInputError, match="at least two words"):
        median_distance(random_rows(1, 2))
    with pytest.raises(BadInputError, match="shape"):
        diameter(np.ones(3))


def test_median_distance_is_a_fixed_sample() -> None:
    vectors = random_rows(500, 10)
    i, j = np.triu_indices(500, 1)
    assert median_distance(vectors) == median_distance(vectors)
    assert median_distance(vectors) == pytest.approx(np.median(brute(vectors)[i, j]), rel=0.01)
    assert median_distance(np.array([[0.0], [3.0]])) == 3.0


# --- rows of distances ---


@settings(max_examples=60)
@given(tables)
def test_distance_rows_stay_within_their_error_bound(vectors: np.ndarray) -> None:  # type: ignore[type-arg]
    rows = DistanceRows(vectors)
    distances = rows.rows(np.arange(len(vectors)))
    assert rows.error_bound == distance_error_bound(vectors)
    for i in range(min(len(vectors), 6)):
        assert distances[i, i] == 0.0
        for j in range(len(vectors)):
            exact = sum(
                (Fraction(float(a)) - Fraction(float(b))) ** 2 for a, b in zip(vectors[i], vectors[j], strict=True)
            )
            assert abs(distances[i, j] - sqrt(exact)) <= rows.error_bound


def test_the_error_bound_holds_where_it_is_hardest() -> None:
    # Clusters far from each other, close within: all cancellation there is.
    vectors = np.repeat(random_rows(10, 300) * 10, 20, axis=0) + random_rows(200, 300, 1) * np.float32(1e-4)
    error = np.abs(DistanceRows(vectors).rows(np.arange(200)) - brute(vectors)).max()
    assert 0 < error <= distance_error_bound(vectors)


def test_error_bound_formula() -> None:
    vectors = np.zeros((2, 300))
    vectors[:, 0] = [-10, 10]
    assert distance_error_bound(vectors) == pytest.approx(20 * sqrt((1.5 * 300 + 8) * 2.0**-53))


def test_distance_rows_use_the_buffer_and_chosen_columns() -> None:
    vectors = random_rows(50, 8)
    full = brute(vectors)
    buffer = np.full((4, 50), np.nan)
    distances = DistanceRows(vectors).rows(np.array([7, 3]), buffer)
    assert np.shares_memory(distances, buffer)
    assert np.allclose(distances, full[[7, 3]], atol=1e-9)
    assert np.isnan(buffer[2:]).all()
    columns = np.array([3, 10, 7, 20])
    some = DistanceRows(vectors, columns=columns)
    assert some.width == 4
    distances = some.rows(np.array([7, 3, 5]))
    assert np.allclose(distances, full[np.ix_([7, 3, 5], columns)], atol=1e-9)
    assert distances[0, 2] == 0.0
    assert distances[1, 0] == 0.0


# --- the largest ratio ---


@settings(max_examples=60)
@given(tables, st.integers(0, 10**6))
def test_largest_ratio_is_that_of_brute_force(vectors: np.ndarray, seed: int) -> None:  # type: ignore[type-arg]
    after = np.tanh(vectors @ random_rows(vectors.shape[1], 3, seed))
    below, above = brute(vectors), brute(after)
    expected = (above[below > 0] / below[below > 0]).max() if (below > 0).any() else 0.0
    assert largest_ratio(vectors, after) == pytest.approx(expected, rel=1e-9, abs=1e-12)


@pytest.mark.usefixtures("small_blocks")
def test_largest_ratio_over_many_blocks() -> None:
    before, after = random_rows(120, 5), random_rows(120, 3, 1)
    before[70] = before[2]
    below, above = brute(before), brute(after)
    expected = (above[below > 0] / below[below > 0]).max()
    assert largest_ratio(before, after) == pytest.approx(expected, rel=1e-12)
    with pytest.raises(BadParameterError, match="120 vectors became 119"):
        largest_ratio(before, after[1:])


@pytest.mark.usefixtures("small_blocks")
def test_a_pair_with_equal_inputs_hides_no_other_pair(monkeypatch: pytest.MonkeyPatch) -> None:
    # Words 0 and 3 share one input and have far outputs: the most promising pair of row 0, and it never counts.
    monkeypatch.setattr(geometry, "_sample_pairs", lambda n, count: np.array([[1, 2]]))
    before = np.array([[0.0], [5.0], [6.0], [0.0], [0.5]])
    after = np.array([[0.0], [5.0], [6.0], [9.0], [4.0]])
    # Without the pair (0, 3) the largest ratio is |9 - 4| / 0.5 = 10, of the pair (3, 4); then |4 - 0| / 0.5 = 8.
    assert largest_ratio(before, after) == 10
    after[3] = 7.9
    assert largest_ratio(before, after) == 8  # the pair (0, 4), in the row of the one that never counts


# --- kept numbers ---


def test_expensive_numbers_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TACIT_CACHE", str(tmp_path))
    monkeypatch.setattr(geometry, "_MEMORY", {})
    vectors = random_rows(2500, 4)
    expected = diameter(vectors), closest_pairs(vectors, 3), smallest_positive_distance(vectors)
    monkeypatch.setattr(geometry, "_MEMORY", {})
    for name in ("_farthest", "_closest", "_smallest"):
        monkeypatch.setattr(geometry, name, None)
    assert diameter(vectors) == expected[0]
    pairs, distances = closest_pairs(vectors, 3)
    assert np.array_equal(pairs, expected[1][0])
    assert np.array_equal(distances, expected[1][1])
    assert smallest_positive_distance(vectors) == expected[2]
    with pytest.raises(TypeError):
        diameter(vectors + 1)  # other content, nothing kept


def test_damaged_kept_numbers_are_computed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TACIT_CACHE", str(tmp_path))
    vectors = random_rows(2500, 4, 5)
    expected = diameter(vectors)
    for file in (tmp_path / "geometry").iterdir():
        file.write_text("{damaged")
    monkeypatch.setattr(geometry, "_MEMORY", {})
    assert diameter(vectors) == expected


def test_default_vectors_known_answers(default_table: VectorTable) -> None:
    table = default_table.head(5000)
    assert smallest_positive_distance(table) == pytest.approx(0.351360507, rel=1e-8)
    pairs, distances = closest_pairs(table, 1)
    assert {table.words[i] for i in pairs[0]} == {"monday", "tuesday"}
    assert distances[0] == smallest_positive_distance(table)
    assert diameter(default_table) == pytest.approx(20.93367173, rel=1e-8)
    assert median_distance(default_table) == pytest.approx(6.58, abs=0.02)
    assert distance_error_bound(default_table) < 1e-5
