"""Exact normal noise: every comparison against exact arithmetic, the law on small grids, and the tails."""

from __future__ import annotations

import math
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.special import log_ndtr, ndtr
from scipy.stats import chisquare

from tacit.errors import BadParameterError
from tacit.noise import Source, add_gaussian, analytic_gaussian_sigma
from tacit.noise.normal import (
    ACCEPTANCE_MARGIN,
    ALL_ONES,
    _thresholds,
    draw_normals,
    exp_bounds,
    normal_noise,
    rounded_normal,
    sum_bounds,
    uniform_words,
)

FINE = 400
"""Bits of the exact arithmetic that decisions are compared with."""


class Scripted:
    """Words that a test has chosen, and afterwards the same word again and again."""

    def __init__(self, *arrays: object, then: int = 0) -> None:
        self.arrays = [np.array(array, dtype=np.uint64) for array in arrays]
        self.then = then

    def __call__(self, size: int) -> np.ndarray:
        if self.arrays:
            result = self.arrays.pop(0)
            assert result.size == size
            return result
        return np.full(size, self.then, dtype=np.uint64)


def test_a6_bounds_of_exponentials_hold():
    """Against the alternating series, whose partial sums lie on both sides."""
    for exponent in (Fraction(0), Fraction(1, 2), Fraction(9, 2), Fraction(123456789, 2**27), Fraction(20)):
        for bits in (64, 200, 500):
            low, high = exp_bounds(exponent, bits)
            assert high - low < Fraction(1, 2**bits)
            term = total = Fraction(1)
            n = 0
            while abs(term) > Fraction(1, 2 ** (bits + 80)) or n % 2:
                n += 1
                term *= -exponent / n
                total += term
            assert low <= total + abs(term)
            assert high >= total - abs(term)


def test_a6_sums_of_whole_parts_hold():
    weights = [math.exp(-(k**2) / 2) for k in range(60)]
    for terms in range(1, 14):
        low, high = sum_bounds(terms, 300)
        assert 0 < low < high < 1
        assert high - low < Fraction(1, 2**300)
        rest = math.fsum(weights[terms:]) / math.fsum(weights)
        assert float(1 - low) == pytest.approx(rest, rel=1e-12)
    table = _thresholds().tolist()
    assert table == sorted(set(table))
    assert table[-1] == ALL_ONES
    for k, threshold in enumerate(table):
        assert sum_bounds(k + 1, FINE)[0] >= Fraction(threshold, 2**64)
        assert sum_bounds(k + 1, FINE)[1] <= Fraction(threshold + 1, 2**64)


def test_a6_numpy_exponential_is_within_the_margin():
    """The error of the vectorized doubles against exact fractions: a 16th of what is allowed for at most."""
    words = uniform_words(Source.from_test_seed(1))
    whole = _thresholds().searchsorted(words(400), side="left")
    position = words(400) >> np.uint64(1)
    x = position.view(np.int64) * 2.0**-63
    computed = np.exp(-0.5 * x * (2.0 * whole + x))
    for k, place, value in zip(whole.tolist(), position.tolist(), computed.tolist(), strict=True):
        exact = Fraction(place, 2**63)
        low, high = exp_bounds(exact * (2 * k + exact) / 2, FINE)
        assert abs(Fraction(value) - (low + high) / 2) < Fraction(ACCEPTANCE_MARGIN) / 16


def test_a6_every_decision_about_a_pair_is_the_exact_one():
    """V is put beside its bound, at distances from one unit of its 64th bit to millions of them."""
    words = uniform_words(Source.from_test_seed(2))
    first, second = words(60), words(60)
    whole = _thresholds().searchsorted(first, side="left").tolist()
    rows = []
    for k, u, w in zip(whole, first.tolist(), second.tolist(), strict=True):
        ends = [Fraction((w >> 1) + end, 2**63) for end in (0, 1)]
        bounds = [exp_bounds(x * (2 * k + x) / 2, FINE) for x in ends]
        middle = int(bounds[0][0] * 2**64)
        for distance in (0, 1, 2, 3, 100, 2**18, 2**20, 2**21, 2**26):
            for v in {middle - distance, middle + distance}:
                if 0 <= v <= ALL_ONES:
                    now = Fraction(v, 2**64) < bounds[0][0]  # all later bits zero
                    always = Fraction(v + 1, 2**64) <= bounds[1][0]  # whatever they are
                    rows.append((u, w, v, now, always))
    assert len(rows) > 900
    # A pair that is not kept is drawn again from the zeros that follow: k = 0, x = 0.
    drawn = draw_normals(len(rows), Scripted(*zip(*[row[:3] for row in rows], strict=True)))
    kept_by_doubles = 0
    for place, (_, w, _, now, always) in enumerate(rows):
        position = drawn.exact(place)[1]
        kept = position.numerator >> (position.bits - 63) == w >> 1
        assert kept == now
        if kept and place not in drawn.longer:
            kept_by_doubles += 1
            assert always
    assert kept_by_doubles > 100
    assert len(drawn.longer) > 100


def test_a6_the_whole_part_is_exact_where_the_first_word_leaves_it_open():
    for k, threshold in enumerate(_thresholds().tolist()[:9]):
        for word in (threshold - 1, threshold, threshold + 1):
            # V = 0 keeps every pair; the bits after the first word of U are zeros.
            drawn = draw_normals(1, Scripted([word], [0], [0]))
            expected = k + int(Fraction(word, 2**64) >= sum_bounds(k + 1, FINE)[1])
            assert drawn.exact(0)[0] == expected
    # 2**64 - 1 and zeros: still below the tenth sum, and far into the tail with more ones.
    assert draw_normals(1, Scripted([ALL_ONES], [0], [0])).exact(0)[0] == 9
    assert draw_normals(1, Scripted([ALL_ONES], [0], [0], [ALL_ONES], [ALL_ONES])).exact(0)[0] > 12


def test_a6_rounding_is_exact_at_the_middle_between_two_integers():
    words = uniform_words(Source.from_test_seed(3))
    second = words(300)
    first = np.zeros(300, dtype=np.uint64)  # k = 0
    sigma = 1234567.8901234567
    sizes = [Fraction(w >> 1, 2**63) * (-1 if w & 1 else 1) for w in second.tolist()]
    offsets, expected = [], []
    for place, size in enumerate(sizes):
        noise = Fraction(sigma) * size
        offset = float(noise // 1 + Fraction(1, 2) - noise)  # offset + noise is a half, up to the last bits of it
        for _ in range(place % 5):
            offset = math.nextafter(offset, math.inf if place % 2 else -math.inf)
        offsets.append(offset)
        expected.append(int((Fraction(offset) + noise + Fraction(1, 2)) // 1))
    rounded = rounded_normal(np.array(offsets), sigma, Scripted(first, second, np.zeros(300)))
    assert rounded.tolist() == expected
    naive = np.rint(np.array(offsets) + sigma * np.array([float(size) for size in sizes]))
    assert (naive != rounded).any()  # the same in double precision is wrong here


@pytest.mark.parametrize(("sigma", "offset"), [(0.6, 0.0), (0.8, 0.3), (2.0, -0.5), (7.0, 0.25)])
def test_a6_the_law_on_a_small_grid(sigma, offset):
    """Chi-square against differences of the normal distribution function; false-alarm rate 1e-6 each."""
    size = 200_000
    rounded = rounded_normal(np.full(size, offset), sigma, uniform_words(Source.from_test_seed(4)))
    reach = math.floor(4.2 * sigma)
    edges = np.array([-np.inf, *(np.arange(-reach, reach) + 0.5), np.inf])
    expected = np.diff(ndtr((edges - offset) / sigma)) * size
    counts = np.bincount(np.clip(rounded + reach, 0, 2 * reach), minlength=2 * reach + 1)
    assert chisquare(counts, expected).pvalue > 1e-6


def test_a6_the_law_by_enumeration():
    """All pairs and tests of a regular grid, each once: 2**22 equally likely triples instead of chance."""
    cells_u, cells_x, cells_v = 2**7, 2**7, 2**8
    u, x, v = np.meshgrid(*(np.arange(n) for n in (cells_u, cells_x, cells_v)), indexing="ij")

    def middle(cell: np.ndarray, cells: int) -> np.ndarray:
        return (cell.ravel().astype(np.uint64) * np.uint64(2) + np.uint64(1)) * np.uint64(2**63 // cells)

    marker = 1  # what is not kept is drawn again as k = 0, x = 2**-63, which no triple of the grid has
    grid = [middle(u, cells_u), middle(x, cells_x), middle(v, cells_v)]
    drawn = draw_normals(u.size, Scripted(*grid, then=2 * marker))
    kept = drawn.position != marker
    values = drawn.doubles()[kept]
    shares, _ = np.histogram(np.abs(values), bins=[0, 0.5, 1, 1.5, 2, 3, 9])
    expected = np.diff(2 * ndtr([0, 0.5, 1, 1.5, 2, 3, 9]))
    assert kept.mean() == pytest.approx(0.715, abs=0.01)
    assert shares / kept.sum() == pytest.approx(expected, abs=0.01)


def words_of(uniform: Fraction, count: int) -> list[int]:
    whole = int(uniform * 2 ** (64 * count))
    return [(whole >> (64 * (count - 1 - i))) & ALL_ONES for i in range(count)]


@pytest.mark.parametrize("k", [9, 13, 25])
def test_a6_a_release_reaches_every_number_of_sigmas(k):
    """The old noise ended at 12.2 sigma. Here a suitable U gives any whole part, and the release shows it."""
    bits = k * k + 200
    target = (sum_bounds(k, bits)[1] + sum_bounds(k + 1, bits)[0]) / 2
    words = words_of(target, bits // 64)
    script = Scripted([words[0]], [2**63 + 1], [0], *([word] for word in words[1:]))
    stream = SimpleNamespace(generator=SimpleNamespace(integers=lambda *_, size, **__: script(size)))
    release = add_gaussian([1000.0], sigma=3.0, source=stream)
    assert release[0] == pytest.approx(1000.0 - 3.0 * (k + 0.5), abs=1e-5)


def grid_log_law(center: float, sigma: float, points: np.ndarray) -> np.ndarray:
    """ln Pr[release = point] of `add_gaussian` on a grid of step 1: ln of Phi(b) - Phi(a), without cancellation."""
    a, b = (points - 0.5 - center) / sigma, (points + 0.5 - center) / sigma
    flip = a > 0
    a, b = np.where(flip, -b, a), np.where(flip, -a, b)
    return log_ndtr(b) + np.log1p(-np.exp(log_ndtr(a) - log_ndtr(b)))


@pytest.mark.parametrize("epsilon", [63.0, 250.0, 500.0, 2500.0, 10_000.0])
def test_a6_the_card_holds_between_latents_many_sigmas_apart(epsilon):
    """delta = sum of max(0, p - e**epsilon p') by the exact law on the grid, for a displacement of up to 140 sigma."""
    delta, sigma = 1e-6, 40.0
    distance = sigma / analytic_gaussian_sigma(epsilon, delta, 1.0)
    points = np.arange(-60 * sigma, distance + 60 * sigma)
    shifted, there = grid_log_law(distance, sigma, points), grid_log_law(0.0, sigma, points)
    excess = np.where(
        shifted > there + epsilon, np.exp(shifted) * -np.expm1(np.minimum(0, there + epsilon - shifted)), 0.0
    )
    assert math.fsum(excess) <= delta
    assert math.fsum(excess) > 0.9 * delta
    # The log-ratio is what the density of normal noise says, at every point, far beyond 12.2 sigma.
    ideal = (points - distance / 2) * distance / sigma**2
    tolerance = np.abs(points) / sigma**2 + np.abs(points - distance) / sigma**2 + 1e-3
    assert (np.abs(shifted - there - ideal) <= tolerance * (1 + distance / sigma)).all()
    # Control: noise that ends at 12.2 sigma does not keep this delta.
    cut = np.abs(points) > 12.2 * sigma
    reach = math.fsum(np.exp(shifted[cut & (np.abs(points - distance) <= 12.2 * sigma)]))
    assert reach > 100 * delta or epsilon == 63.0


def test_a6_sigmas_in_steps_have_a_limit():
    with pytest.raises(BadParameterError, match="coarser grid"):
        rounded_normal(np.zeros(1), 2.0**41, uniform_words(Source.from_test_seed(0)))


def test_a6_values_far_below_a_step_and_far_beyond_the_grid():
    tiny = add_gaussian([5e-324, -5e-324, 0.0], sigma=1e9, source=Source.from_test_seed(0))
    same = add_gaussian([0.0, 0.0, 0.0], sigma=1e9, source=Source.from_test_seed(0))
    np.testing.assert_array_equal(tiny, same)
    assert np.isfinite(add_gaussian([1e300, -1e300], sigma=1.0, source=Source.from_test_seed(0))).all()


def test_a6_training_noise_has_a_tail_without_end():
    """numpy's single precision ends at 8.2. What it puts at 4 or beyond is drawn again from the exact tail."""
    bits = 15 * 15 + 200
    target = (sum_bounds(15, bits, 4)[1] + sum_bounds(16, bits, 4)[0]) / 2
    words = words_of(target, bits // 64)
    script = Scripted([words[0]], [2**63], [0], *([word] for word in words[1:]))
    given = np.array([0.5, -4.5, 3.99], dtype=np.float32)
    generator = SimpleNamespace(integers=lambda *_, size, **__: script(size), standard_normal=lambda *_, **__: given)
    noise = normal_noise(3, SimpleNamespace(generator=generator))
    assert noise.dtype == np.float32
    assert noise.tolist() == [0.5, -15.5, np.float32(3.99)]


def test_a6_the_exact_tail_has_the_law_of_the_tail():
    """Chi-square on what lies beyond 4; false-alarm rate 1e-6."""
    sizes = np.abs(draw_normals(100_000, uniform_words(Source.from_test_seed(5)), 4).doubles())
    edges = np.array([4, 4.05, 4.1, 4.2, 4.3, 4.5, 4.75, 5, 5.25, np.inf])
    counts, _ = np.histogram(sizes, bins=[*edges[:-1], 100])
    expected = -np.diff(ndtr(-edges)) / ndtr(-4.0) * sizes.size
    assert sizes.min() >= 4
    assert chisquare(counts, expected).pvalue > 1e-6
