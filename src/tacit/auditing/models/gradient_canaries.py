"""Gradient canaries: scores for a one-run audit of a DP-SGD step (`tacit.auditing.models.one_run`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tacit.auditing.models.one_run import Observations, check_coins
from tacit.errors import BadInputError, BadParameterError, require
from tacit.noise.source import Source

TENSOR_CELLS = 200_000_000


def observe_steps(
    step: Callable[[Any], Any],
    *,
    dimension: int,
    canaries: int,
    steps: int,
    source: Source,
    norm: float = 1.0,
    tensors: bool = True,
) -> Observations:
    """Run a DP-SGD step with gradient canaries among its records, and score each canary.

    step        takes the gradients of the canaries that are records of this run, shape (included, dimension), treats
                them like all other per-example gradients (sampling, clipping), and returns the sum it releases, noise
                included, of length `dimension`: a torch tensor or an array
    canaries    m; canary j is `norm` times its own coordinate (Nasr et al., "Tight auditing of differentially private
                machine learning", USENIX Security 2023), so canaries do not disturb each other
    norm        at least the clipping norm, so that clipping leaves all of it that it can
    tensors     hand the gradients over as a torch tensor; otherwise as an array

    The score of a canary is what its coordinate of all released sums adds up to.
    """
    if not 2 <= canaries <= dimension:
        raise BadParameterError(
            "canaries-without-coordinates",
            "each canary needs a coordinate: from 2 to {dimension:,} canaries, not {canaries:,}",
            dimension=dimension,
            canaries=canaries,
        )
    if canaries * dimension > TENSOR_CELLS:
        raise BadParameterError(
            "canaries-exceed-memory", "these canaries do not fit into memory: audit fewer, or a part of the parameters"
        )
    if steps < 1:
        raise BadParameterError(
            "impossible-number-of-steps", "an audit needs at least one step, not {steps}", steps=steps
        )
    generator = source.generator
    places = generator.permutation(dimension)[:canaries]
    coins = generator.random(canaries) < 0.5
    gradients = np.zeros((int(coins.sum()), dimension), dtype=np.float32)
    gradients[np.arange(len(gradients)), places[coins]] = norm
    inputs: Any = gradients
    if tensors:
        inputs = require("torch", extra="documents", purpose="auditing a training step").from_numpy(gradients)
    total = np.zeros(dimension)
    for _ in range(steps):
        released = step(inputs)
        if hasattr(released, "detach"):
            released = released.detach().cpu().numpy()
        values = np.asarray(released, dtype=np.float64)
        if values.shape != (dimension,) or not np.isfinite(values).all():
            raise BadInputError(
                "not-finite",
                "the step must return {dimension:,} finite numbers: the sum that it releases",
                dimension=dimension,
            )
        total += values
    scores = total[places]
    check_coins(coins)
    return Observations(scores[coins], scores[~coins])
