"""A sentence encoder that counts letters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np


class LetterEncoder:
    name = "toy-letters"
    dimension = 27

    def encode(self, texts: Sequence[str], progress: Callable[[int, int], None] | None = None) -> Any:
        return np.stack([self.encode_alone(text) for text in texts])

    def encode_alone(self, text: str) -> Any:
        counts = np.ones(self.dimension, dtype=np.float32)
        for letter in text.lower():
            counts[1 + (ord(letter) - ord("a")) % 26] += 1.0
        return counts / np.linalg.norm(counts)
