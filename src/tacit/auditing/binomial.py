"""Exact bounds on a probability from counts (Clopper & Pearson 1934)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.arrays import Floats, Ids


def at_least(successes: ArrayLike, trials: float | Floats | Ids, alpha: float) -> NDArray[np.float64]:
    """The probability is at least this, wrong with probability at most alpha."""
    from scipy.special import betaincinv

    k = np.asarray(successes, dtype=np.float64)
    return np.where(k > 0, betaincinv(np.maximum(k, 1e-9), trials - np.maximum(k, 1e-9) + 1.0, alpha), 0.0)


def at_most(successes: ArrayLike, trials: float | Floats | Ids, alpha: float) -> NDArray[np.float64]:
    """The probability is at most this, wrong with probability at most alpha."""
    from scipy.special import betainccinv

    k = np.asarray(successes, dtype=np.float64)
    rest = np.maximum(trials - k, 1e-9)
    return np.where(k < trials, betainccinv(k + 1.0, rest, alpha), 1.0)


def interval(successes: float, trials: int, doubt: float = 0.05) -> tuple[float, float]:
    """Both, with half of the doubt on either side."""
    return float(at_least(successes, trials, doubt / 2)), float(at_most(successes, trials, doubt / 2))
