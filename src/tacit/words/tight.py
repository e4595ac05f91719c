"""Exact calibration of the exponential family over a public vocabulary: the largest scale that keeps epsilon.

An output y is drawn for x with probability t(x, y) / Z(x), t = exp(-min(s d(x, y), C)). Papers take s = epsilon / 2,
because weight and normalizer may each move by exp(epsilon d / 2). Over a known vocabulary the second half need not be
assumed: it can be computed. min(s d, C) moves by at most min(s d(x, x'), C) from x to x', so for every output

    loss(x, x')  <=  min(s d(x, x'), C) + |ln Z(x') - ln Z(x)|,

with equality at y = x where Z(x') >= Z(x). The mechanism is epsilon-metric private if (and, where a word is among its
own outputs, only if)

    needs(s)  =  max over pairs of [ min(s d, C) + |ln Z(x') - ln Z(x)| ] / d  <=  epsilon.

|ln Z(x') - ln Z(x)| <= s d always (each weight moves by at most exp(s d)), so s = epsilon / 2 is always proven and the
search can only gain. The idea answers Imola et al. 2022, who solve a linear program instead (`optimal`).

Proof obligation. `needs` is computed for *all* pairs at the scale that is drawn with; how the scale was found does not
matter. Computed distances are off by at most eta (`DistanceRows.error_bound`), computed ln Z by at most `arithmetic`
beyond what eta does to it, s eta. Hence, with hats for what is computed,

    min(s d, C) + |ln Z' - ln Z|  <=  min(s d^, C) + s eta + |ln Z^' - ln Z^| + 2 arithmetic + 2 s eta
                                  <=  needs d^ + 3 s eta  <=  needs d + (3 s + needs) eta,

`needs` being the maximum of [min(s d^, C) + |ln Z^' - ln Z^| + 2 arithmetic] / d^ over the pairs with d^ > 2 eta. A
pair with d^ <= 2 eta has d <= 3 eta and a loss of at most 2 s d <= epsilon d + 3 s eta whatever it is: words with
equal vectors have equal laws. The integer law that is really drawn differs from the ideal one by `rounding_slack` and
4 s eta, on any machine. With s <= epsilon and needs <= epsilon everything is at most epsilon d + rounding_slack +
8 epsilon eta, and that is the slack on the card (`slack_of`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats, Ids
from tacit.noise.choice import exponent_cap, rounding_slack
from tacit.progress import StepProgress

Cells = NDArray[np.floating]

ROWS = 128
COLUMNS = 1024
"""Cells of a tile: what is worked on at a time stays in the processor's cache."""

SUMMED = 128
"""So many weights are added in the precision of the tile before the sum goes on in double precision."""

DOUBLE_BELOW = 3_000
"""Vocabularies of fewer words are worked out in double precision: it costs nothing there."""

KEPT_PAIRS = 256
MOST_STEPS = 40
SMALLEST_SEARCHED = 1e-290
"""Products of a smaller epsilon with distances would lose digits, or vanish."""
AIM = 1.0 - 2.0**-14
"""The search aims a little below epsilon, so that rounding to integers leaves the loss below it too."""


class PairDistances(Protocol):
    """Distances from every word to the possible outputs, in blocks."""

    @property
    def error_bound(self) -> float:
        """A bound on |computed - true| for every distance."""

    @property
    def width(self) -> int:
        """The number of outputs."""

    def rows(self, ids: Ids, out: Floats | None = None) -> Floats:
        """Distances of these words to all outputs."""

    def squares_from(self, ids: Ids, first: int, out: Floats) -> Floats:
        """Squared distances of these words to the outputs from number `first` on."""


@dataclass(frozen=True)
class WordSpace:
    """A public vocabulary as the calibration sees it.

    count      the number of words that can be inputs: all words of the vocabulary
    between    distances between inputs
    outputs    distances from inputs to outputs; the same object where every word can come out
    members    the words that can come out
    """

    count: int
    between: PairDistances
    outputs: PairDistances
    members: Ids

    @property
    def is_square(self) -> bool:
        return self.outputs is self.between

    @property
    def error(self) -> float:
        return max(self.between.error_bound, self.outputs.error_bound)


@dataclass(frozen=True)
class Certificate:
    """A scale with what was proven and computed for it.

    scale       s, the factor of a distance
    needs       the smallest epsilon that is proven for it
    low, high   the smallest and the largest ln Z over all inputs
    stays       the mean of 1 / Z over the words that can come out. It is the share of them that come out as themselves,
                and also the share that the best attacker guesses from one output, if each of them was equally likely:
                t(x, y) / Z(x) <= 1 / Z(y) for all x, as ln Z moves by at most min(s d, C), so no guess is better than
                the word that came out.
    """

    scale: float
    needs: float
    low: float
    high: float
    stays: float


def slack_of(outcomes: int, epsilon: float, error: float) -> float:
    """A bound on what rounding adds to the loss of the law that is drawn (see the module)."""
    return rounding_slack(outcomes) + 8.0 * epsilon * error


def certify(
    geometry: WordSpace,
    scales: Sequence[float],
    cap: float,
    *,
    single: bool | None = None,
    progress: StepProgress | None = None,
) -> list[Certificate]:
    """The certificate of each of these scales, by two passes over all pairs that the scales share. `single` says
    whether to work in single precision (default: for large vocabularies)."""
    passes = Passes(geometry, cap, single=single, steps=2, progress=progress)
    logs = passes.log_normalizers(scales)
    needs = [value for value, _ in passes.steepest(scales, logs)]
    return [passes.certificate(*numbers) for numbers in zip(scales, needs, logs, strict=True)]


def calibrate(geometry: WordSpace, epsilon: float, cap: float, *, progress: StepProgress | None = None) -> Certificate:
    """The certificate of the largest scale between epsilon / 2 and epsilon that the search finds proven for epsilon.

    Cutting planes: a pass over all pairs at a scale finds the worst ones; the largest scale that these keep is found
    with their own rows alone, and tried next. It ends when all pairs keep epsilon at a scale that some pairs allow no
    more than. Where it does not end, epsilon / 2 is proven without a search.
    """
    passes = Passes(geometry, cap, steps=5, progress=progress)
    if passes.single and 2.0 * passes.arithmetic > 1e-4 * epsilon * passes.smallest_distance():
        passes = Passes(geometry, cap, single=False, steps=5, progress=progress)
    pairs = np.empty((0, 2), dtype=np.int64)
    scale, best = 0.75 * epsilon, None
    for _ in range(MOST_STEPS if epsilon >= SMALLEST_SEARCHED else 0):
        logs = passes.log_normalizers([scale])[0]
        needs, worst = passes.steepest([scale], logs[None])[0]
        if needs <= epsilon and (best is None or scale > best.scale):
            best = passes.certificate(scale, needs, logs)
        pairs = np.unique(np.concatenate([pairs, worst]), axis=0)
        allowed = _largest_for(geometry, pairs, epsilon, passes.cap, passes.arithmetic)
        if best is not None and allowed <= best.scale * (1.0 + 1e-6):
            break
        # A pair that stood for the scale just tried must not stop the search: a little less then.
        scale = allowed if allowed != scale else scale * (1.0 - 1e-4)
    if best is None:
        # Proven without any pair, by the triangle inequality.
        halved = epsilon / 2.0
        best = passes.certificate(halved, epsilon, passes.log_normalizers([halved])[0])
    passes.finish()
    return best


def _largest_for(geometry: WordSpace, pairs: Ids, epsilon: float, cap: float, arithmetic: float) -> float:
    """The largest scale up to epsilon, by bisection, at which these pairs keep epsilon with a little to spare."""
    if not len(pairs):
        return epsilon
    words, places = np.unique(pairs, return_inverse=True)
    left, right = places.reshape(-1, 2).T
    rows = geometry.outputs.rows(words)
    between = (rows if geometry.is_square else geometry.between.rows(words))[left, words[right]]

    def keep(scale: float) -> bool:
        logs = np.log(np.exp(-np.minimum(scale * rows, cap)).sum(axis=1))
        losses = np.minimum(scale * between, cap) + np.abs(logs[left] - logs[right]) + 2.0 * arithmetic
        return bool((losses <= AIM * epsilon * between).all())

    low, high = epsilon / 2.0, epsilon
    if keep(high):
        return high
    for _ in range(30):
        middle = (low + high) / 2.0
        low, high = (middle, high) if keep(middle) else (low, middle)
    return low


class Passes:
    """Passes over all pairs of a vocabulary, tile by tile."""

    def __init__(
        self,
        geometry: WordSpace,
        cap: float,
        *,
        single: bool | None = None,
        steps: int,
        progress: StepProgress | None = None,
    ) -> None:
        self.geometry = geometry
        self.cap = min(cap, exponent_cap(geometry.outputs.width))
        self.single = geometry.count >= DOUBLE_BELOW if single is None else single
        self.kind: type[np.float32] | type[np.float64] = np.float32 if self.single else np.float64
        self.arithmetic = self._arithmetic()
        widest = max(geometry.count, geometry.outputs.width)
        self._buffer = np.empty((min(ROWS, geometry.count), widest))
        self._steps, self._done, self._progress = steps, 0, progress

    def _arithmetic(self) -> float:
        """A bound on the error of ln Z beyond that of the distances. With u the unit roundoff: root, scale, product and
        their conversions move an exponent, at most C, by 4 u C; the exponential has 4 units in the last place (8 u);
        128 weights are added in this precision along a row and 128 along a column, in any order; ln Z itself, below
        C + ln n, is rounded to this precision once. Second order terms are covered by the factor."""
        unit = float(np.finfo(self.kind).eps) / 2.0
        largest = self.cap + math.log(self.geometry.outputs.width) + 1.0
        return 1.01 * unit * (4.0 * self.cap + 8.0 + SUMMED + ROWS + largest)

    def smallest_distance(self) -> float:
        """The smallest distance between words with different vectors."""
        smallest = math.inf
        for _, _, squares in self._blocks(self.geometry.between, count=False):
            squares[squares <= (2.0 * self.geometry.error) ** 2] = math.inf
            smallest = min(smallest, float(squares.min()))
        return math.sqrt(smallest)

    def log_normalizers(self, scales: Sequence[float]) -> Floats:
        """ln Z of every input at each scale, shape (scales, inputs)."""
        sums = np.zeros((len(scales), self.geometry.count))
        work = np.empty((ROWS, COLUMNS), dtype=self.kind)
        square = self.geometry.is_square
        for rows, first, tile in self.tiles(self.geometry.outputs):
            weights = work.reshape(-1)[: tile.size].reshape(tile.shape)
            last = first + tile.shape[1]
            for number, scale in enumerate(scales):
                self._weigh(tile, scale, weights)
                groups = np.add.reduceat(weights, np.arange(0, tile.shape[1], SUMMED), axis=1)
                sums[number, rows] += groups.sum(axis=1, dtype=np.float64)
                if square and last > rows.stop:
                    beyond = max(rows.stop, first)
                    sums[number, beyond:last] += weights[:, beyond - first :].sum(axis=0)
        logs: Floats = np.log(sums)
        return logs

    def steepest(self, scales: Sequence[float], logs: Floats) -> list[tuple[float, Ids]]:
        """The smallest epsilon that all pairs keep at each scale, and the pairs that come closest to it."""
        limit = (2.0 * self.geometry.error) ** 2
        narrow = logs.astype(self.kind)
        work = np.empty((ROWS, COLUMNS), dtype=self.kind)
        kept = [_Steepest() for _ in scales]
        for rows, first, tile in self.tiles(self.geometry.between, far_below=limit):
            slopes = work.reshape(-1)[: tile.size].reshape(tile.shape)
            columns = slice(first, first + tile.shape[1])
            inverse = np.reciprocal(tile)
            for number, scale in enumerate(scales):
                values = narrow[number]
                np.subtract(values[rows][:, None], values[columns], out=slopes)
                np.abs(slopes, out=slopes)
                slopes += self.kind(2.0 * self.arithmetic)
                self._add_exponents(tile, scale, slopes)
                slopes *= inverse
                kept[number].offer(slopes, rows.start, first)
        # Converted distances, their inverse and the product: a few units in the last place.
        wider = 1.0 + 16.0 * float(np.finfo(self.kind).eps)
        return [(steepest.value * wider, steepest.pairs) for steepest in kept]

    def certificate(self, scale: float, needs: float, logs: Floats) -> Certificate:
        return Certificate(
            scale,
            needs,
            float(logs.min()) - self.arithmetic,
            float(logs.max()) + self.arithmetic,
            min(1.0, float(np.exp(-logs[self.geometry.members]).mean())),
        )

    def finish(self) -> None:
        """Report that the work is done, however many passes were expected."""
        if self._progress is not None:
            self._progress(1, 1)

    def _weigh(self, tile: Cells, scale: float, out: Cells) -> None:
        np.multiply(tile, self.kind(-scale), out=out)
        if scale * float(tile.max()) > self.cap:
            np.maximum(out, self.kind(-self.cap), out=out)
        np.exp(out, out=out)

    def _add_exponents(self, tile: Cells, scale: float, out: Cells) -> None:
        exponents = np.multiply(tile, self.kind(scale))
        if scale * float(tile.max()) > self.cap:
            np.minimum(exponents, self.kind(self.cap), out=exponents)
        out += exponents

    def tiles(self, distances: PairDistances, far_below: float = -1.0) -> Iterator[tuple[slice, int, Cells]]:
        """Tiles of distances: the rows, the first column, the numbers. Squared distances up to `far_below` become
        infinite."""
        for rows, start, squares in self._blocks(distances):
            if far_below >= 0.0:
                squares[squares <= far_below] = math.inf
            for first in range(0, squares.shape[1], COLUMNS):
                tile: Cells = squares[:, first : first + COLUMNS].astype(self.kind)
                np.maximum(tile, 0.0, out=tile)
                np.sqrt(tile, out=tile)
                yield rows, start + first, tile

    def _blocks(self, distances: PairDistances, *, count: bool = True) -> Iterator[tuple[slice, int, Floats]]:
        """Blocks of squared distances: the rows, the first column, the numbers. Each pair once where possible."""
        square = distances is self.geometry.between
        total = self.geometry.count
        for start in range(0, total, ROWS):
            rows = slice(start, min(start + ROWS, total))
            first = start if square else 0
            yield rows, first, distances.squares_from(np.arange(rows.start, rows.stop), first, self._buffer)
            if count and self._progress is not None:
                done = rows.stop * (2 * total - rows.stop) / total if square else rows.stop
                self._progress(round(self._done + done), max(self._steps * total, round(self._done + total)))
        if count:
            self._done += total


class _Steepest:
    """The pairs with the largest slopes so far."""

    def __init__(self) -> None:
        self.value = 0.0
        self.pairs: Ids = np.empty((0, 2), dtype=np.int64)

    def offer(self, slopes: Cells, row: int, column: int) -> None:
        largest = float(slopes.max())
        if largest > self.value:
            i, j = divmod(int(slopes.argmax()), slopes.shape[1])
            self.value = largest
            self.pairs = np.concatenate([np.array([[row + i, column + j]]), self.pairs])[:KEPT_PAIRS]
