"""Distances between the words of a public vocabulary: exact, in blocks, never as a square of all pairs.

Mechanisms turn these numbers into guarantees (the largest distance bounds the exponent of metric DP, the
smallest one the domain of the truncated Gumbel mechanism), so each comes with what is known about its error.
Everything here reads public vectors only.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats, Ids
from tacit.errors import BadInputError, BadParameterError
from tacit.noise.source import public_generator
from tacit.vectors import cache
from tacit.vectors.distance_rows import Vectors, centered, error_bound, matrix_of
from tacit.vectors.search import distances_between

_BLOCK = 512
_MOST_PAIRS = 1 << 18  # computed again at once
_KEEP_FROM_ROWS = 2_000  # below this, computing is as fast as looking up


def diameter(vectors: Vectors) -> float:
    """The largest distance between two words, exact.

    A pair can only be the farthest if r_i + r_j >= the best distance so far, with r the distance from the
    center of mass (triangle inequality). Rows are sorted by r, so most blocks are never computed. The center
    lies in the convex hull, hence diameter >= max r, there is no cancellation, and the result is right to a
    relative 1e-12 (the winner of the products is computed again from its difference).
    """
    array = matrix_of(vectors)
    return float(_remembered("diameter", array, lambda: [_farthest(array)])[0])


def _farthest(vectors: NDArray[np.floating]) -> float:
    rows, _ = centered(vectors)
    radii = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    order = np.argsort(-radii, kind="stable")
    rows, radii = rows[order], radii[order]
    best = 0.0
    place = 0
    for _ in range(4):  # walk to the farthest word a few times: a good first value prunes nearly everything
        distances = distances_between(rows[place], rows)
        place = int(distances.argmax())
        best = max(best, float(distances[place]))
    product = _SquaredDistances(rows)
    height = _block_rows(len(rows))
    for start in range(0, len(rows), height):
        needed = best * (1 - 1e-12) - radii[start]
        stop = int(np.searchsorted(-radii, -needed, side="right"))
        if stop <= start + 1:
            break
        block = product.block(slice(start, start + height), slice(start, stop))
        i, j = np.unravel_index(int(block.argmax()), block.shape)
        best = max(best, float(distances_between(rows[start + i], rows[start + j][None])[0]))
    return best


def closest_pairs(vectors: Vectors, k: int) -> tuple[Ids, Floats]:
    """The k closest pairs of words (k, 2), i < j, with their distances (k,), closest first; ties in row order.

    Exact: products select candidates with their proven rounding bound as margin, differences in float64
    decide, so identical rows give exactly 0. Only words whose distances from the center of mass differ by no
    more than the k-th distance so far are compared. Fewer than k pairs come back where there are fewer.
    """
    if k < 1:
        raise BadParameterError(
            "impossible-count", "the number of closest pairs must be at least 1, not {count}", count=k
        )
    array = matrix_of(vectors)
    pairs = _remembered(f"closest-{k}", array, lambda: _closest(array, k).tolist())
    table = np.asarray(pairs, dtype=np.float64).reshape(-1, 3)
    return table[:, :2].astype(np.int64), table[:, 2]


def _closest(vectors: NDArray[np.floating], k: int) -> Floats:
    """Rows (i, j, distance)."""
    rows, _ = centered(vectors)
    radii = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    order = np.argsort(radii, kind="stable")
    rows, radii = rows[order], radii[order]
    product = _SquaredDistances(rows)
    best = np.empty((0, 3))
    height = _block_rows(len(rows))
    for start in range(0, len(rows), height):
        stop = min(start + height, len(rows))
        limit = best[k - 1, 2] if len(best) == k else math.inf
        last = int(np.searchsorted(radii, (radii[stop - 1] + limit) * (1 + 1e-12), side="right"))
        block = product.block(slice(start, stop), slice(start, last))
        _forget_lower_triangle(block, math.inf)
        if math.isinf(limit):
            flat = block.ravel()
            cut = float(np.partition(flat, k - 1)[k - 1]) + 2 * product.error if flat.size > k else math.inf
        else:
            cut = limit**2 + product.error
        near = np.flatnonzero((block <= cut) & (block < math.inf))
        for part in range(0, len(near), _MOST_PAIRS):
            i, j = np.divmod(near[part : part + _MOST_PAIRS], block.shape[1])
            pairs = np.sort(np.stack([order[start + i], order[start + j]], axis=1), axis=1)
            distances = _pair_distances(vectors, pairs)
            best = np.concatenate([best, np.column_stack([pairs, distances])])
            best = best[np.lexsort((best[:, 1], best[:, 0], best[:, 2]))][:k]
    return best


def smallest_positive_distance(vectors: Vectors) -> float:
    """The smallest distance between two words with different vectors, exact: identical rows count once."""
    array = matrix_of(vectors)
    return float(_remembered("smallest", array, lambda: [_smallest(array)])[0])


def _smallest(vectors: NDArray[np.floating]) -> float:
    _, distances = closest_pairs(vectors, 1) if len(vectors) > 1 else (None, np.zeros(1))
    if distances[0] > 0:
        return float(distances[0])
    plain = np.ascontiguousarray(vectors + 0)  # -0.0 + 0 = 0.0, so that equal rows have equal bytes
    _, first = np.unique(plain.view(f"V{plain.strides[0]}").ravel(), return_index=True)
    if len(first) < 2:
        raise BadInputError(
            "words-are-one", "all words have the same vector: a smallest distance needs two different ones"
        )
    return float(_closest(plain[first], 1)[0, 2])


MEDIAN_PAIRS = 100_000


def median_distance(vectors: Vectors) -> float:
    """The median distance over 100,000 pairs of different words, from a fixed public sample: an estimate.

    With this many pairs the sample median lies between the 49.5 % and the 50.5 % quantile of all pairs with
    probability above 0.998. It is for reading (what epsilon means at a typical distance); no guarantee uses
    it.
    """
    array = matrix_of(vectors)
    if len(array) < 2:
        raise BadInputError("too-few-words", "a median distance needs at least two words")
    return float(np.median(_pair_distances(array, _sample_pairs(len(array), MEDIAN_PAIRS))))


def _sample_pairs(n: int, count: int) -> Ids:
    """A fixed public sample of pairs of different rows (count, 2)."""
    generator = public_generator(0)
    i = generator.integers(n, size=count)
    j = (i + generator.integers(1, n, size=count)) % n
    return np.stack([i, j], axis=1)


def largest_ratio(before: NDArray[np.floating], after: NDArray[np.floating]) -> float:
    """max over pairs of |after_i - after_j| / |before_i - before_j|, exact, where the divisor is not 0.

    With A and B the squared distances after and before and s the best ratio so far, a pair can only win if
    A - s^2 B > 0. Both distances are products, so this difference is one product too (see `_Excess`); where it is
    positive, or within its rounding bound of 0, the pair is computed again from its differences in float64.
    """
    before, after = matrix_of(before), matrix_of(after)
    if len(before) != len(after):
        raise BadParameterError(
            "wrong-number-of-outputs",
            "{before} vectors became {after}: a map must keep the number of rows",
            before=len(before),
            after=len(after),
        )
    return float(_remembered("ratio", before, lambda: [_largest_ratio(before, after)], after)[0])


def _largest_ratio(before: NDArray[np.floating], after: NDArray[np.floating]) -> float:
    if len(before) < 2:
        return 0.0
    excess = _Excess(centered(before)[0], centered(after)[0])
    best = _ratio(before, after, _sample_pairs(len(before), 10_000))
    height = _block_rows(len(before))
    for start in range(0, len(before), height):
        rows = slice(start, start + height)
        while True:
            block = excess.block(rows, best)
            _forget_lower_triangle(block, -math.inf)
            # The most promising pair of each row first: raising the best ratio leaves few others with a chance.
            top = np.stack([np.arange(len(block)), block.argmax(axis=1)], axis=1)
            top = top[block[top[:, 0], top[:, 1]] > 0]
            better = _ratio(before, after, start + top)
            if better <= best:
                break
            best = better
        pairs = np.argwhere(block > 0) if len(top) else top
        for part in range(0, len(pairs), _MOST_PAIRS):
            best = max(best, _ratio(before, after, start + pairs[part : part + _MOST_PAIRS]))
    return best


def _ratio(before: NDArray[np.floating], after: NDArray[np.floating], pairs: Ids) -> float:
    below, above = _pair_distances(before, pairs), _pair_distances(after, pairs)
    different = below > 0
    return float((above[different] / below[different]).max()) if different.any() else 0.0


class _Excess:
    """Blocks of A - s^2 B, rounded up: squared distances after a map minus s^2 times those before it."""

    def __init__(self, before: Floats, after: Floats) -> None:
        self._before, self._after = before, after
        self._norms_before = np.einsum("ij,ij->i", before, before)
        self._norms_after = np.einsum("ij,ij->i", after, after)
        terms = before.shape[1] + after.shape[1] + 3
        self._error_before = error_bound(terms, float(self._norms_before.max())) ** 2
        self._error_after = error_bound(terms, float(self._norms_after.max())) ** 2
        ones = np.ones((1, len(before)))
        self._right = np.concatenate([after.T, before.T, ones, self._norms_after[None], self._norms_before[None]])

    def block(self, rows: slice, s: float) -> Floats:
        norms = self._norms_after[rows] + self._error_after
        norms -= s**2 * (self._norms_before[rows] - self._error_before)
        ones = np.ones((len(norms), 1))
        left = np.concatenate(
            [-2 * self._after[rows], 2 * s**2 * self._before[rows], norms[:, None], ones, -(s**2) * ones], axis=1
        )
        return np.asarray(left @ self._right[:, rows.start :])


def _block_rows(width: int) -> int:
    """Rows of a block that reaches over the whole vocabulary: 512, fewer where it would pass 64 MB."""
    return max(1, min(_BLOCK, (1 << 23) // width))


class _SquaredDistances:
    """Blocks of squared distances between centered rows, as one product each, off by at most `error`."""

    def __init__(self, rows: Floats) -> None:
        n, d = rows.shape
        norms = np.einsum("ij,ij->i", rows, rows)
        self.error = error_bound(d, float(norms.max())) ** 2
        self._rows, self._norms = rows, norms
        self._right = np.empty((d + 2, n))
        self._right[:d], self._right[d], self._right[d + 1] = rows.T, 1.0, norms

    def block(self, rows: slice, columns: slice) -> Floats:
        vectors = self._rows[rows]
        d = vectors.shape[1]
        left = np.empty((len(vectors), d + 2))
        left[:, :d], left[:, d], left[:, d + 1] = -2.0 * vectors, self._norms[rows], 1.0
        return np.asarray(left @ self._right[:, columns])


def _forget_lower_triangle(block: Floats, value: float) -> None:
    """Each pair once: in a block whose first row and column are the same word, keep only column > row."""
    size = min(block.shape)
    block[np.tril_indices(len(block), 0, size)] = value


def _pair_distances(vectors: NDArray[np.floating], pairs: Ids) -> Floats:
    """Distances of these pairs (n, 2) from their differences, in float64 and in blocks."""
    distances = np.empty(len(pairs))
    for start in range(0, len(pairs), 8192):
        i, j = pairs[start : start + 8192].T
        difference = vectors[i].astype(np.float64) - vectors[j]
        distances[start : start + 8192] = np.sqrt(np.einsum("ij,ij->i", difference, difference))
    return distances


_MEMORY: dict[str, list[Any]] = {}


def _remembered(
    what: str, vectors: NDArray[np.floating], compute: Callable[[], list[Any]], *more: NDArray[np.floating]
) -> list[Any]:
    """An expensive exact number, kept in memory and in the cache folder under the content it comes from."""
    if len(vectors) < _KEEP_FROM_ROWS:
        return compute()
    key = cache.key_of("geometry-1", what, *(_array_hash(array) for array in (vectors, *more)))
    if key not in _MEMORY:
        kept = cache.kept_text("geometry", f"{key}.json")
        try:
            value = json.loads(kept) if kept else None
        except ValueError:
            value = None
        if not isinstance(value, list) or not value:
            value = compute()
            cache.keep_text("geometry", f"{key}.json", json.dumps(value))
        _MEMORY[key] = value
    return _MEMORY[key]


def _array_hash(array: NDArray[np.floating]) -> str:
    digest = hashlib.blake2b(f"{array.shape} {array.dtype.str}".encode(), digest_size=16)
    for start in range(0, len(array), 16_384):
        digest.update(np.ascontiguousarray(array[start : start + 16_384]).data)
    return digest.hexdigest()
