"""A round in whole numbers: what `integers` describes, in the place of the sum of `round`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from tacit.errors import BadParameterError
from tacit.noise.source import Source, StreamKey
from tacit.training.clipping import QuantileClipping
from tacit.training.federated.integers import IntegerCode, SkellamPlan
from tacit.training.federated.round import UPDATES, FederatedRound


@dataclass
class IntegerRound(FederatedRound):
    """Updates are added as whole numbers modulo a power of two, with Skellam noise."""

    def __post_init__(self) -> None:
        super().__post_init__()
        assert isinstance(self.plan, SkellamPlan)
        assert self.clipping is not None
        if isinstance(self.clipping, QuantileClipping):
            # Its votes are a second release, which the plan of whole numbers does not account for.
            raise BadParameterError(
                "clipping-not-in-whole-numbers",
                "sums of whole numbers have one bound for the whole update: choose {option.clipping[flat]} or "
                "{option.clipping[automatic]}",
            )
        size = sum(value.numel() for value in self.parameters.values())
        self.code = IntegerCode.fitting(
            size, self.clipping.bound, self.plan.multiplier, 2 * self.plan.batch, self.plan.bits
        )
        self.total = torch.zeros(self.code.dimension, dtype=torch.int64)

    def _put(
        self,
        update: Mapping[str, Tensor],
        factors: Mapping[str, float],
        source: Source,
        sums: dict[str, Tensor],
        step: int,
    ) -> None:
        long = torch.cat([(value.double() * factors[name]).reshape(-1).cpu() for name, value in update.items()])
        whole = self.code.encode(long.numpy(), step, source)
        self.total += torch.from_numpy(self.code.wrapped(whole))

    def _noise(self, sums: dict[str, Tensor], step: int, key: StreamKey) -> None:
        """Replace the sums by what the noisy sum of whole numbers stands for."""
        added = self.team.add_up(self.total).numpy()
        noise = self.code.noise(self.plan.multiplier, key.stream(step, UPDATES))
        released = self.code.wrapped(added + noise)
        self.total = torch.zeros_like(self.total)
        self._spread(torch.from_numpy(self.code.decode(released, step)), sums)
