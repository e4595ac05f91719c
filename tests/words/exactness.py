"""The definition of each notion, checked on a probability matrix: one row per input, one column per output.

These functions know nothing of the mechanisms: they take a law and a guarantee and return by how much the law breaks
the guarantee at worst (a positive number is a violation).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats


def log_ratios(law: Floats) -> Floats:
    """max over outputs of ln(P[x, y] / P[x', y]) for all pairs (x, x'): infinite where only x' excludes y."""
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(law)
        ratios = logs[:, None, :] - logs[None, :, :]
    ratios[np.isnan(ratios)] = -np.inf  # impossible under both inputs: says nothing
    return ratios.max(axis=2)


def worst_excess(law: Floats, bound: Floats, outputs: NDArray[np.bool_] | None = None) -> float:
    """The largest amount by which a log-ratio exceeds its bound (inputs x inputs), over the given outputs."""
    np.testing.assert_allclose(law.sum(axis=1), 1.0, rtol=0, atol=1e-9)
    assert (law >= 0).all()
    ratios = log_ratios(law if outputs is None else law[:, outputs])
    promised = np.isfinite(bound)  # an infinite bound promises nothing
    return float((ratios[promised] - bound[promised]).max())


def euclidean(vectors: NDArray[np.float32]) -> Floats:
    points = np.asarray(vectors, dtype=np.float64)
    return np.sqrt(((points[:, None] - points[None]) ** 2).sum(axis=2))
