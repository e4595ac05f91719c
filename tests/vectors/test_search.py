from __future__ import annotations

import importlib.util
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.errors import BadInputError, BadParameterError, MissingExtraError
from tacit.vectors import Neighbors, VectorTable, search


def random_rows(n: int, d: int, seed: int = 0) -> np.ndarray:  # type: ignore[type-arg]
    return np.random.default_rng(seed).standard_normal((n, d)).astype(np.float32)


def brute(queries: np.ndarray, vectors: np.ndarray) -> np.ndarray:  # type: ignore[type-arg]
    return np.sqrt(((queries.astype(np.float64)[:, None] - vectors.astype(np.float64)[None]) ** 2).sum(-1))


@settings(max_examples=60)
@given(
    st.integers(1, 200),
    st.integers(1, 12),
    st.integers(1, 30),
    st.floats(0.01, 100),
    st.integers(0, 10**6),
    st.data(),
)
def test_search_equals_brute_force(n: int, d: int, q: int, scale: float, seed: int, data: st.DataObject) -> None:
    vectors, queries = random_rows(n, d, seed), random_rows(q, d, seed + 1) * np.float32(scale)
    k = data.draw(st.integers(1, n))
    distances = brute(queries, vectors)
    ordered = np.sort(distances, axis=1)
    neighbors = Neighbors(vectors)
    # What float32 scores can confuse: words about equally near, seen from this far away.
    slack = 1e-5 * (1 + scale)
    assert (distances[np.arange(q), neighbors.nearest(queries)] <= ordered[:, 0] + slack).all()
    ids, result = neighbors.nearest_k(queries, k)
    assert np.allclose(result, ordered[:, :k], rtol=1e-6, atol=slack)
    assert np.allclose(result, np.take_along_axis(distances, ids, axis=1), rtol=1e-12)
    assert (np.diff(result, axis=1) >= 0).all()
    assert all(len(set(row)) == k for row in ids.tolist())


def test_tiles_and_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    vectors, queries = random_rows(500, 20), random_rows(300, 20, 1)
    expected = Neighbors(vectors).nearest(queries), Neighbors(vectors).nearest_k(queries, 20)
    monkeypatch.setattr(search, "_TILE_WORDS", 64)
    monkeypatch.setattr(search, "_SCORE_BLOCK", 1000)
    tiled = Neighbors(vectors)
    assert np.array_equal(tiled.nearest(queries), expected[0])
    for k in (1, 2, 16, 17, 20):
        ids, distances = tiled.nearest_k(queries, k)
        assert np.array_equal(ids, expected[1][0][:, :k])
        assert np.array_equal(distances, expected[1][1][:, :k])
    assert tiled.nearest_k(queries[:3], 500)[0].shape == (3, 500)


def test_every_word_is_its_own_nearest(default_table: VectorTable) -> None:
    table = default_table.head(5000)
    assert np.array_equal(Neighbors(table).nearest(table.vectors), np.arange(5000))


def test_known_neighbors(default_table: VectorTable) -> None:
    ids, distances = Neighbors(default_table).nearest_words_of(np.array([default_table.index["doctor"]]), 4)
    assert [default_table.words[i] for i in ids[0]] == ["doctor", "physician", "nurse", "dentist"]
    assert distances[0] == pytest.approx([0, 3.08904, 3.12745, 3.44458], abs=1e-5)


@settings(max_examples=40)
@given(st.integers(2, 150), st.integers(1, 5), st.integers(0, 10**6), st.data())
def test_nearest_words_are_in_exact_order(n: int, d: int, seed: int, data: st.DataObject) -> None:
    # Small whole numbers: many ties, and distances that are exact.
    vectors = np.random.default_rng(seed).integers(-2, 3, size=(n, d)).astype(np.float32)
    k = data.draw(st.integers(1, n))
    ids, distances = Neighbors(vectors).nearest_words_of(np.arange(n), k)
    full = brute(vectors, vectors)
    for word in range(n):
        expected = np.lexsort((np.arange(n), full[word], np.arange(n) != word))[:k]
        assert ids[word].tolist() == expected.tolist()
        assert np.array_equal(distances[word], full[word][expected])


def test_nearest_words_of_a_large_vocabulary() -> None:
    vectors = random_rows(3000, 6)
    ids, distances = Neighbors(vectors).nearest_words_of(np.array([0, 2999]), 12)  # few enough for group minima
    full = brute(vectors[[0, 2999]], vectors)
    assert np.array_equal(ids, np.argsort(full, axis=1, kind="stable")[:, :12])
    assert np.allclose(distances, np.sort(full, axis=1)[:, :12], rtol=1e-13)


def test_pickle_sends_no_product_matrix() -> None:
    neighbors = Neighbors(random_rows(100, 5))
    neighbors.nearest(random_rows(2, 5))
    neighbors.nearest_words_of(np.array([1]), 2)
    bytes_ = pickle.dumps(neighbors)
    assert len(bytes_) < 1.5 * neighbors.vectors.nbytes
    assert np.array_equal(pickle.loads(bytes_).nearest(random_rows(9, 5)), neighbors.nearest(random_rows(9, 5)))


def test_wrong_questions() -> None:
    neighbors = Neighbors(random_rows(10, 5))
    with pytest.raises(BadParameterError, match="the words 5 dimensions: transform both"):
        neighbors.nearest(random_rows(2, 4))
    with pytest.raises(BadParameterError, match="between 1 and 10, not 11"):
        neighbors.nearest_k(random_rows(2, 5), 11)
    with pytest.raises(BadInputError, match="not finite: the noise is too large"):
        neighbors.nearest(np.full((2, 5), np.inf, dtype=np.float32))
    assert neighbors.nearest(np.empty((0, 5), dtype=np.float32)).shape == (0,)
    assert neighbors.nearest_k(np.empty((0, 5), dtype=np.float32), 2)[0].shape == (0, 2)


def test_approximate_search() -> None:
    if importlib.util.find_spec("faiss") is None:
        pytest.skip("approximate search needs faiss: pip install 'tacit-dp[search]'")
    vectors, queries = random_rows(3000, 16), random_rows(200, 16, 1)
    exact, approximate = Neighbors(vectors), Neighbors(vectors, approximate=True)
    ids, distances = approximate.nearest_k(queries, 3)
    assert np.allclose(distances, np.take_along_axis(brute(queries, vectors), ids, axis=1), rtol=1e-6)  # not squared
    assert (approximate.nearest(queries) == exact.nearest(queries)).mean() > 0.5
    assert np.array_equal(pickle.loads(pickle.dumps(approximate)).nearest(queries), approximate.nearest(queries))
    # Where the searched cells hold fewer than k words, the exact search fills in.
    many, _ = approximate.nearest_k(queries[:5], 2900)
    assert all(len(set(row)) == 2900 for row in many.tolist())


def test_approximate_search_without_faiss(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "faiss", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'tacit-dp\[search\]'"):
        Neighbors(random_rows(100, 4), approximate=True)


@pytest.mark.parametrize("words", [2, 3, 50, 1500])
def test_the_two_nearest_words_with_rough_distances(words):
    rng = np.random.default_rng(words)
    vectors, queries = rng.standard_normal((words, 7)), rng.standard_normal((300, 7)) * 2
    search = Neighbors(vectors.astype(np.float32))
    ids, distances = search.nearest_two(queries.astype(np.float32))
    exact_ids, exact = search.nearest_k(queries.astype(np.float32), 2)
    np.testing.assert_array_equal(ids, exact_ids)
    np.testing.assert_allclose(distances, exact, atol=2e-3)
