"""One private step: draw, clip, add up, add noise, normalize by a public number.

    g~ = ( sum over the drawn records of clip(g_b) + N(0, (sigma C)^2) ) / planned batch size

The batch may be empty (then the step is noise alone) or larger than planned; it is worked through in parts that fit
into memory, and how it is cut changes nothing. Gradients are written to `.grad`, where any torch optimizer finds them:
what an optimizer does with them is post-processing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tacit.errors import BadInputError
from tacit.noise.source import Source, StreamKey
from tacit.training.clipping import AutomaticClipping, FlatClipping, LayerClipping, QuantileClipping
from tacit.training.gradients import Batch, Engine
from tacit.training.plan import Plan

Collate = Callable[[Sequence[int]], Batch]
"""The batch of these records."""


@dataclass(frozen=True)
class StepFacts:
    """What a step saw. All of it is private: for the eyes of the person who trains, never for a release."""

    examples: int
    loss: float
    shortened: float
    bound: float


@dataclass
class PrivateStep:
    """The step of one run. `physical` is how many examples are worked on at a time; it shrinks when memory runs out."""

    engine: Engine
    plan: Plan
    clipping: FlatClipping | LayerClipping | AutomaticClipping | QuantileClipping
    collate: Collate
    physical: int = 32
    warn: Callable[[str], None] = lambda message: None

    def run(self, step: int, key: StreamKey) -> StepFacts:
        """Leave the noisy gradient of this step on the parameters."""
        records = self.plan.sample(step, key)
        sums = {name: torch.zeros_like(p) for name, p in self.engine.parameters.items()}
        losses, shortened = 0.0, 0
        start = 0
        while start < len(records):
            here = records[start : start + self.physical]
            try:
                loss, clipped = self._add(here, sums)
            except (RuntimeError, MemoryError) as error:
                self._shrink(error)
                continue
            losses, shortened, start = losses + loss, shortened + clipped, start + len(here)
        bound = self.clipping.bound
        multiplier = self.plan.multiplier
        if isinstance(self.clipping, QuantileClipping):
            multiplier = self.clipping.gradient_multiplier(multiplier)
        add_noise(sums, multiplier * bound, key.stream(step, b"noise"))
        for name, parameter in self.engine.parameters.items():
            parameter.grad = sums[name].div_(self.plan.batch)
        if isinstance(self.clipping, QuantileClipping):
            source = key.stream(step, b"quantile")
            self.clipping.update(len(records) - shortened, len(records), self.plan.batch, source)
        seen = max(1, len(records))
        return StepFacts(len(records), losses / seen, shortened / seen, bound)

    def _add(self, records: NDArray[np.int64], sums: dict[str, Tensor]) -> tuple[float, int]:
        result = self.engine.run(self.collate(records.tolist()))
        clipped = self.clipping.clip(result.squared_norms)
        for name, value in result.weighted_sums(clipped.factors).items():
            sums[name] += value
        return float(result.losses.sum()), clipped.shortened

    def _shrink(self, error: Exception) -> None:
        """Out of memory: go on with half as many examples at a time. Sums are only touched by parts that succeeded."""
        memory = isinstance(error, MemoryError) or "memory" in str(error).lower()
        if not memory:
            raise error
        if self.physical == 1:
            raise BadInputError(
                "one example alone does not fit into memory: shorten the texts (--length) or take a smaller model"
            ) from error
        self.physical = max(1, self.physical // 2)
        self.warn(f"out of memory: going on with {self.physical} examples at a time")


def add_noise(sums: dict[str, Tensor], scale: float, source: Source) -> None:
    """Add N(0, scale^2) to every number, in place, from the secure generator."""
    generator = source.generator
    for value in sums.values():
        noise = generator.standard_normal(value.numel(), dtype=np.float32)
        value.add_(torch.from_numpy(noise).view(value.shape).to(value.device, value.dtype), alpha=scale)
