"""One round on the server: clip the updates of the visited users, add them up, add noise, move the weights.

    w  <-  w + server( ( sum over the visited users of clip(update_u) + noise ) / planned cohort )

DP-FedAvg (McMahan et al., "Learning differentially private recurrent language models", ICLR 2018): the users are a
Poisson sample and the noise is N(0, (sigma C)^2), fresh in every round. DP-FTRL (Kairouz et al., ICML 2021): the users
come in a fixed order and the noise is correlated over the rounds. The server may be any optimizer (Reddi et al., ICLR
2021): it only sees the noisy sum. All users weigh the same, however many rows they have.

Adaptive clipping (Andrew et al., NeurIPS 2021) releases the share of updates that are short enough. Relative to their
noise, update / (z C) and vote / s of a user are one vector of norm at most (z^-2 + (2 s)^-2)^(1/2), which is 1 / sigma
of the plan (`QuantileClipping`). So votes and updates together are the mechanism that the plan accounts for, with noise
of the same kind for both; dividing by the current bound and multiplying by it again is post-processing, since it was
released before.

An update that is not finite counts as no update: somebody's broken rows must not stop the run for all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor

from tacit.account.matrix import Toeplitz
from tacit.noise.source import Source, StreamKey
from tacit.training.clipping import AnyClipping, QuantileClipping
from tacit.training.correlated_noise import NoiseStream, noise_stream
from tacit.training.federated.local import LocalTraining, local_update
from tacit.training.federated.visits import VisitPlan
from tacit.training.gradients.examples import trainable
from tacit.training.step import PlainStep, StepFacts
from tacit.training.users import Users

VOTES = b"votes"
UPDATES = b"updates"


@dataclass
class FederatedRound(PlainStep):
    """`clipping` is None only for plans without privacy."""

    users: Users = field(kw_only=True)
    local: LocalTraining = field(kw_only=True)
    clipping: AnyClipping | None = field(kw_only=True)

    def __post_init__(self) -> None:
        self.parameters = trainable(self.model)
        self.streams: dict[bytes, NoiseStream] = {}
        self.lost = 0

    def run(self, step: int, key: StreamKey) -> StepFacts:
        """Leave the negative noisy mean update on the parameters, where the server's optimizer finds it."""
        visited = self.plan.sample(step, key)
        sums = {name: torch.zeros_like(p) for name, p in self.parameters.items()}
        totals = torch.zeros(2, dtype=torch.float64)
        for user in self.team.share_of(visited).tolist():
            totals += torch.tensor(self._add(user, step, key, sums), dtype=torch.float64)
        for value in sums.values():
            self.team.add_up(value)
        losses, shortened = self.team.add_up(totals).tolist()
        seen = max(1, len(visited))
        facts = StepFacts(len(visited), losses / seen, shortened / seen, self.clipping.bound if self.clipping else 0.0)
        if self.clipping is not None:
            self._noise(sums, step, key)
            if isinstance(self.clipping, QuantileClipping):
                noise = float(self._stream(1, key, VOTES).at(step)[0])
                below = len(visited) - shortened
                self.clipping.move(below - len(visited) / 2.0 + self.clipping.count_noise * noise, self.plan.batch)
        planned = self.plan.batch if self.plan.private else seen
        for name, parameter in self.parameters.items():
            parameter.grad = sums[name].div_(-planned)
        return facts

    def _add(self, user: int, step: int, key: StreamKey, sums: dict[str, Tensor]) -> tuple[float, float]:
        """Add the update of one user; its loss, and whether it was shortened."""
        source = key.stream(step, b"user/%d" % user)
        update, loss = local_update(
            self.model, self.parameters, self.loss, self.collate, self.users.rows[user], self.local, source
        )
        squared = {name: value.square().sum()[None] for name, value in update.items()}
        if not bool(torch.isfinite(torch.stack(list(squared.values())).sum())):
            if not self.lost:
                self.warn(
                    "an update is not finite and counts as none: if the loss does not fall, lower the rate of the "
                    "local steps"
                )
            self.lost += 1
            return 0.0, 1.0
        if self.clipping is None:
            for name, value in update.items():
                sums[name] += value
            return loss, 0.0
        clipped = self.clipping.clip(squared)
        factors = {name: float(factor) for name, factor in clipped.factors.items()}
        self._put(update, factors, key.stream(step, b"rounding/%d" % user), sums, step)
        return loss, float(clipped.shortened)

    def _put(
        self,
        update: Mapping[str, Tensor],
        factors: Mapping[str, float],
        source: Source,
        sums: dict[str, Tensor],
        step: int,
    ) -> None:
        """Add a clipped update to the sums."""
        for name, value in update.items():
            sums[name].add_(value, alpha=factors[name])

    def _noise(self, sums: dict[str, Tensor], step: int, key: StreamKey) -> None:
        assert self.clipping is not None
        multiplier = self.plan.multiplier
        if isinstance(self.clipping, QuantileClipping):
            multiplier = self.clipping.gradient_multiplier(multiplier)
        noise = torch.from_numpy(self._stream(sum(v.numel() for v in sums.values()), key, UPDATES).at(step))
        self._spread(noise, sums, multiplier * self.clipping.bound)

    def _spread(self, values: Tensor, sums: dict[str, Tensor], alpha: float = 1.0) -> None:
        """Add a long vector to the sums, parameter by parameter."""
        start = 0
        for value in sums.values():
            share = values[start : start + value.numel()].view(value.shape)
            value.add_(share.to(value.device, value.dtype), alpha=alpha)
            start += value.numel()

    def _stream(self, size: int, key: StreamKey, label: bytes) -> NoiseStream:
        if label not in self.streams:
            factor = self.plan.factorization if isinstance(self.plan, VisitPlan) else Toeplitz()
            self.streams[label] = noise_stream(factor, self.plan.steps, size, key, label)
        return self.streams[label]
