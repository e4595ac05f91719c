"""Certified scales of the exponential family: those that come with Tacit, those kept from earlier, or a search.

A certificate (`tight.Certificate`) says which epsilon its scale is proven for. So one table of certified scales on a
fine public grid serves every epsilon: the largest scale that needs no more than epsilon is proven, whatever lies
between the points of the grid. Such a table comes with Tacit for the default vectors (`assets/scales.json`, made by
`python -m tacit.words.scales_build`); for other vocabularies the search runs once and its result is kept in the cache
folder. Everything here is about public vectors.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import astuple, dataclass
from functools import cache as remembered
from pathlib import Path
from typing import Final

import numpy as np

from tacit.arrays import Floats, Ids
from tacit.noise.choice import exponent_cap
from tacit.progress import announced
from tacit.vectors import VectorTable, cache
from tacit.words.base import digest_of
from tacit.words.tight import Certificate, WordSpace, calibrate

ASSET = Path(__file__).with_name("assets") / "scales.json"
VERSION = 1
KEEP_FROM_WORDS = 1_000
"""Smaller vocabularies are searched faster than a file is read."""

NEAR = 0.995
"""A kept certificate that uses this share of epsilon is as good as a search."""

FINE = 1.02
"""Where the next scale of a table is farther than this, the table has a gap and a search does better."""

ANY_CAP: Final = 0.0
"""In place of the largest exponent in a key: the weights behind these certificates are not capped."""


def vocabulary_key(table: VectorTable, metric: str, outputs: Ids, cap: float) -> str:
    """The name of everything that a certificate depends on: vectors, their distance, possible outputs, largest
    exponent."""
    chosen = "all" if len(outputs) == len(table) else digest_of(outputs)
    return cache.key_of("scales", VERSION, table.fingerprint, metric, chosen, round(cap, 9))


def certified_scale(
    table: VectorTable, metric: str, outputs: Ids, cap: float, epsilon: float, geometry: Callable[[], WordSpace]
) -> Certificate:
    """A certificate whose scale is proven for epsilon: from the table that comes with Tacit, from the cache folder, or
    by a search, which is then kept."""
    cap = min(cap, exponent_cap(len(outputs)))
    key = vocabulary_key(table, metric, outputs, cap)
    tables = bundled_scales()
    bundled = tables.get(key)
    if bundled is None and (free := tables.get(vocabulary_key(table, metric, outputs, ANY_CAP))) is not None:
        bundled = capped(free, len(outputs), cap)
    if bundled is not None:
        words = len(table) if len(outputs) == len(table) else None
        proven = best_of(bundled, epsilon) or above_table(bundled, epsilon, len(outputs), cap, words)
        if proven is not None:
            return proven
    kept = _kept(key)
    for certificate in kept:
        if NEAR * epsilon <= certificate.needs <= epsilon and 2.0 * certificate.scale >= epsilon:
            return certificate
    space = geometry()
    large = space.count >= KEEP_FROM_WORDS
    progress = announced("exact calibration over this vocabulary, once") if large else None
    certificate = calibrate(space, epsilon, cap, progress=progress)
    if large:
        cache.keep_text("scales", f"{key}.json", json.dumps([astuple(each) for each in (*kept, certificate)]))
    return certificate


@dataclass(frozen=True)
class ScaleTable:
    """Certificates in the order of their scales, one per row, and the smallest distance of different words."""

    certificates: Floats
    smallest_distance: float


def capped(table: ScaleTable, outcomes: int, cap: float) -> ScaleTable:
    """The table for weights capped at exp(-cap), from one for weights that are not, where every word can come out.

    The cap adds between 0 and n exp(-cap) to every Z, so between 0 and r = n exp(-cap - low) to every ln Z: the slope
    of a pair rises by at most r / d, ln Z by at most r, and words stay no more often.
    """
    rows = table.certificates.copy()
    rise = outcomes * np.exp(-cap - rows[:, 2]) * (1.0 + 1e-9)
    rows[:, 1] += rise / table.smallest_distance
    rows[:, 3] += rise
    return ScaleTable(rows, table.smallest_distance)


def best_of(table: ScaleTable, epsilon: float) -> Certificate | None:
    """The largest scale that a table proves for epsilon, not below the textbook's; None outside of the table."""
    rows = table.certificates
    proven = np.flatnonzero(rows[:, 1] <= epsilon)
    if not len(proven) or proven[-1] + 1 == len(rows):
        return None
    certificate, above = Certificate(*rows[proven[-1]].tolist()), rows[proven[-1] + 1]
    if above[0] > certificate.scale * FINE:
        return None
    if 2.0 * certificate.scale >= epsilon:
        return certificate
    # The grid stops just below the textbook's scale, which is proven without it. Z falls with the scale, so its other
    # numbers lie between those of the scales around it.
    half = epsilon / 2.0
    larger = rows[min(int(np.searchsorted(rows[:, 0], half)), len(rows) - 1)]
    return (
        Certificate(half, epsilon, float(larger[2]), certificate.high, float(larger[4])) if larger[0] >= half else None
    )


def above_table(table: ScaleTable, epsilon: float, outcomes: int, cap: float, words: int | None) -> Certificate | None:
    """A scale that is proven for an epsilon above those of a table; None below its end. `words` is the size of the
    vocabulary where every word can come out.

    There nearly every word stays as it is, so little is lost by the larger of three scales that are proven at once: the
    last of the table, the textbook's, and, where every word can come out, the scale s of a closed form. Of Z, a word
    itself adds 1 and each other one between 0 and exp(-min(s d_min, C)), so ln Z lies between 0 and r, their sum, and
    no pair needs more than s + r / d_min; r is taken at epsilon / 2, below s.
    """
    last = Certificate(*table.certificates[-1].tolist())
    if epsilon < last.needs:
        return None
    half = epsilon / 2.0
    # Z falls with the scale, and is never below what the cap leaves of every weight.
    low = 0.0 if words is not None else math.log(outcomes) - cap
    candidates = [last, Certificate(half, epsilon, low, last.high, 1.0)]
    if words is not None:
        rise = words * math.exp(-min(half * table.smallest_distance, cap)) * (1.0 + 1e-9)
        scale = (epsilon - rise / table.smallest_distance) * (1.0 - 1e-12)
        if scale >= half:
            candidates.append(Certificate(scale, epsilon, 0.0, last.high, 1.0))
    return max(candidates, key=lambda each: each.scale)


@remembered
def bundled_scales() -> dict[str, ScaleTable]:
    """The tables that come with Tacit, by `vocabulary_key`."""
    if not ASSET.is_file():
        return {}
    return {
        key: ScaleTable(np.array(entry["certificates"], dtype=np.float64), float(entry["smallest_distance"]))
        for key, entry in json.loads(ASSET.read_text(encoding="utf-8")).items()
    }


def _kept(key: str) -> list[Certificate]:
    """The certificates that earlier searches over this vocabulary left, the largest scale first."""
    text = cache.kept_text("scales", f"{key}.json")
    try:
        rows = json.loads(text) if text else []
        certificates = [Certificate(*(float(value) for value in row)) for row in rows]
    except (ValueError, TypeError):
        return []
    return sorted(certificates, key=lambda each: -each.scale)
