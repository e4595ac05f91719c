"""Types of the arrays that pass between modules; each is defined here and nowhere else."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
"""Real numbers at full precision: scores, distances, probabilities, weights."""

Floats32 = NDArray[np.float32]
"""Real numbers as models compute them: embeddings, latent vectors, gradients."""

Ids = NDArray[np.int64]
"""Positions in a table: words of a vocabulary, tokens, rows, classes."""

Ids32 = NDArray[np.int32]
"""Positions in a table so large that 64 bits each would not fit."""

Integers = NDArray[np.int64]
"""Whole numbers that are not positions: counts, sizes, integer weights."""

Integers32 = NDArray[np.int32]
"""The same where 64 bits each would not fit."""

Mask = NDArray[np.bool_]
"""One truth value for each entry of another array."""
