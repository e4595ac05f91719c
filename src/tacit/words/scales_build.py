"""The program that makes `assets/scales.json`: certified scales of the default vectors, on a fine grid.

    python -m tacit.words.scales_build [NAME]

Pieces that the file has already are kept, so that the program can be stopped and started again; after a change of the
method, delete the file. The scales lie between 0.1 and 14, each about 1 percent above the one before. At each, the
smallest epsilon that all pairs of the 30,000 words keep is bounded as in `tight`, with two changes that make a table of
550 scales a matter of ten minutes:

- 24 scales in equal steps h are worked out together, exp(-(s + h) d) = exp(-s d) exp(-h d), so that most weights cost a
  product instead of an exponential; each product adds at most 9 u + 4 u h d to the error of a weight. Without a cap the
  relative error of a weight grows with s d, but that of their sum with the mean of s d under the law, at most ln n,
  which is below the C that `tight` reckons with;
- s d stands for min(s d, C), an upper bound; and where every word can come out, the weights are not capped at all. A
  cap C then adds between 0 and n exp(-C) to Z, hence at most n exp(-C - low) / d to the slope of a pair, which whoever
  reads the table adds (`scales.capped`). So one table serves SanText and TEM with any beta.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Iterator
from dataclasses import astuple

import numpy as np

from tacit.arrays import Floats
from tacit.atomic import write_file
from tacit.noise.choice import exponent_cap
from tacit.vectors import smallest_positive_distance
from tacit.words.calibrated import CalibratedWords
from tacit.words.santext import SanText
from tacit.words.santext_plus import SanTextPlus
from tacit.words.scales import ANY_CAP, ASSET, vocabulary_key
from tacit.words.tight import COLUMNS, ROWS, SUMMED, Passes

RANGES = ((0.1, 0.4), (0.4, 13.0))
PIECE, AT_ONCE = 1.25, 24
FIRST = 0.75
"""The pieces from here on are made first: they hold the epsilons that people use most."""
FLOOR = -60.0
"""Smaller exponents than this are raised to it: they add nothing to a sum that is at least exp(-20)."""


def pieces() -> list[tuple[float, float]]:
    """The first scale and the step of each piece of the grid, in the order in which they are made."""
    result = []
    for first, end in RANGES:
        while first < end:
            step = round(first * (PIECE - 1.0) / AT_ONCE, 6)
            result.append((first, step))
            first = round(first + AT_ONCE * step, 6)
    return sorted(result, key=lambda piece: (piece[0] < FIRST, piece[0]))


class GridPasses(Passes):
    """Passes over all pairs for scales in equal steps. `lifted` says whether weights are capped."""

    lifted = False

    def log_normalizers_of(self, first_scale: float, step: float) -> Floats:
        """ln Z of every input at the scales of a piece, shape (scales, inputs)."""
        sums = np.zeros((AT_ONCE, self.geometry.count))
        kind, square = np.float32, self.geometry.is_square
        smallest = kind(math.exp(-self.cap))
        ones = np.ones(SUMMED, dtype=kind)
        full = np.empty((ROWS, COLUMNS), dtype=kind)
        for rows, first, tile in self.tiles(self.geometry.outputs):
            weights, factor = np.multiply(tile, kind(-first_scale)), np.multiply(tile, kind(-step))
            np.maximum(weights, kind(FLOOR), out=weights)
            np.exp(weights, out=weights)
            np.exp(factor, out=factor)
            last, beyond = first + tile.shape[1], max(rows.stop, first)
            whole = tile.shape[1] % SUMMED == 0
            for number in range(AT_ONCE):
                if number:
                    weights *= factor
                added = (
                    np.maximum(weights, smallest, out=full[: len(tile), : tile.shape[1]]) if self.lifted else weights
                )
                if whole:
                    groups = (added.reshape(-1, SUMMED) @ ones).reshape(len(tile), -1)
                else:
                    groups = np.add.reduceat(added, np.arange(0, tile.shape[1], SUMMED), axis=1)
                sums[number, rows] += groups.sum(axis=1, dtype=np.float64)
                if square and last > beyond:
                    sums[number, beyond:last] += added[:, beyond - first :].sum(axis=0)
        logs: Floats = np.log(sums)
        return logs

    def largest_slopes(self, logs: Floats) -> Floats:
        """max |ln Z(x) - ln Z(x')| / d of each row of logs, in the arithmetic of the pass."""
        limit = (2.0 * self.geometry.error) ** 2
        narrow = logs.astype(np.float32)
        work = np.empty((ROWS, COLUMNS), dtype=np.float32)
        best = np.zeros(len(logs))
        for rows, first, tile in self.tiles(self.geometry.between, far_below=limit):
            slopes = work.reshape(-1)[: tile.size].reshape(tile.shape)
            inverse = np.reciprocal(tile)
            for number, values in enumerate(narrow):
                np.subtract(values[rows][:, None], values[first : first + tile.shape[1]], out=slopes)
                np.abs(slopes, out=slopes)
                slopes *= inverse
                best[number] = max(best[number], float(slopes.max()))
        return best


def build(mechanism: CalibratedWords, rows: list[list[float]]) -> Iterator[dict[str, object]]:
    """The table of a mechanism over its vocabulary, after each piece that `rows` did not have."""
    passes = GridPasses(mechanism.geometry(), mechanism.cap, single=True, steps=1)
    passes.lifted = not passes.geometry.is_square
    passes.arithmetic += 1.01 * 2.0**-24 * (9.0 * AT_ONCE + 4.0 * (PIECE - 1.0) * passes.cap)
    smallest = smallest_positive_distance(mechanism.table)
    wider = 1.0 + 16.0 * float(np.finfo(np.float32).eps)
    about = f"{mechanism.name}, {len(mechanism.outputs):,} of {len(mechanism.table):,} words of {mechanism.table.name}"
    known = {row[0] for row in rows}
    for first, step in pieces():
        if first in known:
            continue
        started = time.process_time()
        logs = passes.log_normalizers_of(first, step)
        slopes = passes.largest_slopes(logs)
        for number, slope in enumerate(slopes.tolist()):
            scale = round(first + number * step, 6)
            needs = scale + (slope + 2.0 * passes.arithmetic / smallest) * wider
            _, _, low, high, stays = astuple(passes.certificate(scale, needs, logs[number]))
            rows.append([scale, _up(needs), -_up(-low), _up(high), _up(stays)])
        spent = time.process_time() - started
        print(f"{mechanism.name}: {len(rows)} scales, {spent:.0f} CPU s, last {rows[-1]}", flush=True)
        yield {"about": about, "smallest_distance": math.floor(smallest * 1e6) / 1e6, "certificates": sorted(rows)}


def _up(value: float) -> float:
    """A bound rounded to its safe side."""
    return math.ceil(value * 1e7) / 1e7


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", nargs="?", help="the mechanism whose table is made (default: all)")
    chosen = parser.parse_args().name
    for mechanism in (SanText(epsilon=2.0), SanTextPlus(epsilon=2.0)):
        if chosen in (None, mechanism.name):
            whole = len(mechanism.outputs) == len(mechanism.table)
            cap = ANY_CAP if whole else min(mechanism.cap, exponent_cap(len(mechanism.outputs)))
            key = vocabulary_key(mechanism.table, mechanism.metric, mechanism.outputs, cap)
            tables = json.loads(ASSET.read_text(encoding="utf-8")) if ASSET.is_file() else {}
            for table in build(mechanism, tables.get(key, {}).get("certificates", [])):
                tables[key] = table
                lines = [f'"{name}": {json.dumps(entry)}' for name, entry in sorted(tables.items())]
                write_file(ASSET, ("{\n" + ",\n".join(lines) + "\n}\n").encode())


if __name__ == "__main__":
    main()
