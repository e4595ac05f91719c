"""The defaults of a run's start: known by names alone, before any library is loaded."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from tacit.errors import BadParameterError

FROM_SCRATCH: Final = re.compile(r"bilstm(?:-(\d+)x(\d+))?")
RANDOM_START: Final = "from scratch"
STRATEGIES: Final = (
    "full",
    "no-embeddings",
    "last-2",
    "head",
    "bias",
    "lora",
    "ia3",
    "adapter",
    "all-layers",
    "frozen-lstm",
)
"""What can be trained of a model, see `tacit.training.strategies`; also last-K for any K."""
LAST_LAYERS: Final = re.compile(r"last-(\d+)")

USUAL_RATES: Final[Mapping[str, float]] = {
    "lora": 1e-3,
    "ia3": 5e-3,
    "adapter": 1e-3,
    "head": 5e-3,
    "bias": 5e-3,
    "all-layers": 1e-2,
    "frozen-lstm": 2e-3,
    RANDOM_START: 5e-3,
    "full": 5e-4,
    "no-embeddings": 5e-4,
}
OTHER_RATE: Final = 1e-3
WITHOUT_NOISE: Final = 0.2
"""Noise allows, and large batches need, larger steps than usual."""


def is_from_scratch(name: str) -> bool:
    """Whether a model of this name starts from random weights: "bilstm", or "bilstm-2x256" (layers x width).

    >>> is_from_scratch("bilstm-2x256"), is_from_scratch("minilm")
    (True, False)
    """
    return FROM_SCRATCH.fullmatch(name) is not None


def check_strategy(strategy: str) -> str:
    """The strategy, if there is one of this name."""
    if strategy not in STRATEGIES and LAST_LAYERS.fullmatch(strategy) is None:
        raise BadParameterError(
            "unknown-strategy",
            "there is no strategy '{strategy}': choose {known} (last-K for any K)",
            strategy=strategy,
            known=", ".join(STRATEGIES),
        )
    return strategy


def usual_rate(strategy: str, *, private: bool) -> float:
    """The learning rate of a strategy, or of a model from scratch (`RANDOM_START`).

    >>> usual_rate("head", private=True)
    0.005
    """
    return USUAL_RATES.get(strategy, OTHER_RATE) * (1.0 if private else WITHOUT_NOISE)
