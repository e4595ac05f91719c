"""One private step: draw, clip, add up, add noise, normalize by a public number.

    g~ = ( sum over the drawn records of clip(g_b) + N(0, (sigma C)^2) ) / planned batch size

The batch may be empty (then the step is noise alone) or larger than planned; it is worked through in parts that fit
into memory, and how it is cut changes nothing. Gradients are written to `.grad`, where any torch optimizer finds them:
what an optimizer does with them is post-processing.

A record whose gradient is not a finite number adds nothing and does not stop the run: whether a run ends must not
depend on a record. What may stop it is the weights, which are released.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from tacit.errors import BadInputError, BadParameterError, TacitError
from tacit.noise.normal import normal_noise
from tacit.noise.source import Source, StreamKey
from tacit.training.clipping import AnyClipping, QuantileClipping
from tacit.training.correlated_noise import ToeplitzNoise
from tacit.training.device_noise import SECURE, add_device_noise
from tacit.training.gradients import Batch, Engine, Loss, PerExample, buffers_of, restore_buffers
from tacit.training.memory import is_out_of_memory
from tacit.training.plan import TrainingPlan
from tacit.training.sharding import OwnPart, ShardedModel, own_rows
from tacit.training.team import Team

if TYPE_CHECKING:
    from tacit.training.public_gradients import PublicGradients

PUBLIC = "public/"
LOST = (
    "the gradient of a record is not finite and counts as none: if the loss does not fall, lower the learning rate, or "
    "say what labels are possible"
)


class NotFiniteError(TacitError):
    """A loss, or a weight, is not a number."""


def check_weights(parameters: Iterable[Tensor], team: Team | None = None) -> None:
    """Stop a run that has left the numbers. It looks at weights only, which have their noise; if they lie in parts in
    the processes of a team, all of them stop."""
    astray = not all(bool(torch.isfinite(own_rows(parameter)).all()) for parameter in parameters)
    if astray if team is None else team.any_has(astray):
        raise NotFiniteError(
            "training-diverged", "the weights are no finite numbers any more: lower the learning rate and start anew"
        )


Collate = Callable[[Sequence[int]], Batch]
"""The batch of these records."""
Draw = Callable[[int, StreamKey], NDArray[np.int64]]
"""The records of a step; the same ones whenever it is repeated with this key."""

SPREAD = 1.5
"""Records are worked on together while the longest is at most this many times as long as the shortest."""
LEAST_TOGETHER = 4
"""So many are worked on together all the same: below it, the way into the model costs more than the padding."""


@dataclass(frozen=True)
class StepFacts:
    """Facts of a step. All of them are private: for the person who trains, never for a release."""

    examples: int
    loss: float
    shortened: float
    bound: float


@dataclass
class TrainingStep:
    """The shared part of private and plain steps: going through the records of a step in parts that fit into memory.

    `physical` is how many examples are worked on at a time; it shrinks when memory runs out. With `counts`, examples
    are records of so many rows, and `physical` counts rows: all rows of a record are in one part.
    `lengths`, if given, lets records of similar length be worked on together, which saves padding: more than half of a
    batch of 32 sentences. With `shapes`, `lengths` are public shapes and only records of the same one are worked on
    together, in batches of exactly `physical`; it tries a number of rows before it is used (`tacit.training.sixteen`).
    With a `team` of several processes each works on its share of the records; the sums of all are added up.
    """

    plan: TrainingPlan
    collate: Collate
    physical: int = 32
    warn: Callable[[str], None] = lambda message: None
    lengths: NDArray[np.int64] | None = None
    team: Team = field(default_factory=Team)
    counts: NDArray[np.int64] | None = None
    shapes: Callable[[int], object] | None = field(default=None, kw_only=True)
    draw: Draw | None = field(default=None, kw_only=True)
    """Who takes part in a step, where that does not follow from the plan alone."""
    agreed: bool = field(default=False, kw_only=True)
    """Whether the processes of a team have agreed on `physical`, so that none may take fewer by itself."""
    deviation: float = field(default=0.0, init=False)
    """The standard deviation of the noise in each number of the gradient of the last step: a public number."""

    def state(self) -> dict[str, Tensor]:
        """Tensors that a step needs besides weights, optimizer and key to go on from a checkpoint."""
        return {}

    def restore(self, state: Mapping[str, Tensor]) -> None:
        """Go on from the state of a checkpoint."""

    def drawn(self, step: int, key: StreamKey) -> NDArray[np.int64]:
        """The records of this step."""
        return self.plan.sample(step, key) if self.draw is None else self.draw(step, key)

    def batch_of(self, records: NDArray[np.int64]) -> Batch:
        """The batch of some records of this step."""
        return self.collate(records.tolist())

    def over_parts(
        self,
        records: NDArray[np.int64],
        add: Callable[[NDArray[np.int64]], tuple[float, int]],
        idle: Callable[[], None] | None = None,
    ) -> Tensor:
        """The summed loss and the number of shortened gradients of all records. If the processes of a team need each
        other in every part, `idle` is what one does that has no records left."""
        mine = self.team.share_of(self._in_order(records))
        losses, shortened, start = 0.0, 0, 0
        while start < len(mine) if idle is None else self.team.any_has(start < len(mine)):
            if start >= len(mine):
                assert idle is not None
                idle()
                continue
            part = self._together(self._that_fit(mine[start : start + self.physical]))
            try:
                loss, clipped = add(part)
            except (RuntimeError, MemoryError) as error:
                if idle is not None or self.agreed:
                    raise self._cannot_shrink(error) from error
                self._shrink(error)
                continue
            losses, shortened, start = losses + loss, shortened + clipped, start + len(part)
        return self.team.add_up(torch.tensor([losses, float(shortened)], dtype=torch.float64))

    def _that_fit(self, records: NDArray[np.int64]) -> NDArray[np.int64]:
        """The first of these records, as many as have `physical` rows together, one at least."""
        if self.counts is None:
            return records
        fitting = int(np.searchsorted(np.cumsum(self.counts[records]), self.physical, side="right"))
        return records[: max(1, fitting)]

    def _in_order(self, records: NDArray[np.int64]) -> NDArray[np.int64]:
        """The records, those that are worked on together beside each other."""
        return records if self.lengths is None else records[np.argsort(self.lengths[records], kind="stable")]

    def _together(self, records: NDArray[np.int64]) -> NDArray[np.int64]:
        """The first of these records, which are sorted by length: as many as are about equally long."""
        if self.lengths is None:
            return records
        lengths = self.lengths[records]
        if self.shapes is not None:
            same: NDArray[np.int64] = records[lengths == lengths[0]]
            return same
        similar = int(np.searchsorted(lengths, SPREAD * lengths[0], side="right"))
        return records[: max(similar, LEAST_TOGETHER)]

    def _cannot_shrink(self, error: Exception) -> Exception:
        """The error of a process that others wait for: they would wait forever if it took its part again."""
        if not is_out_of_memory(error):
            return error
        return BadInputError(
            "out-of-memory-in-a-team",
            "{physical} examples at a time do not fit into memory, and processes that share a model, or compute "
            "with 16 bits, cannot take fewer in the middle of a step: give the same command with {option.resume} and a "
            "smaller {option.physical}",
            physical=self.physical,
        )

    def _shrink(self, error: Exception) -> None:
        """Out of memory: go on with half as many examples at a time. Sums are only touched by parts that succeeded."""
        if not is_out_of_memory(error):
            raise error
        if self.physical == 1:
            raise BadInputError(
                "out-of-memory",
                "one example alone does not fit into memory: shorten the texts ({option.length}) or take a smaller "
                "model",
            ) from error
        self.physical = max(1, self.physical // 2)
        if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
            torch.cuda.empty_cache()
        if self.shapes is not None:
            try:
                self.shapes(self.physical)
            except (RuntimeError, MemoryError) as again:
                self._shrink(again)
                return
        self.warn(f"out of memory: going on with {self.physical} examples at a time")


@dataclass
class PlainStep(TrainingStep):
    """A step without clipping and noise, for plans without privacy: the mean gradient of the drawn records."""

    model: nn.Module = field(kw_only=True)
    loss: Loss = field(kw_only=True)

    def run(self, step: int, key: StreamKey) -> StepFacts:
        records = self.drawn(step, key)
        parameters = [p for p in self.model.parameters() if p.requires_grad]
        sums: list[Tensor | None] = [None] * len(parameters)

        def add(part: NDArray[np.int64]) -> tuple[float, int]:
            total = self.loss(self.model, self.batch_of(part)).sum()
            if not bool(torch.isfinite(total)):
                raise NotFiniteError(
                    "loss-not-finite",
                    "the loss of an example is not a finite number: lower the learning rate, check the labels, or "
                    "train in single precision",
                )
            gradients = torch.autograd.grad(total / max(1, len(records)), parameters, allow_unused=True)
            for i, more in enumerate(gradients):
                if more is not None:
                    sums[i] = more if (value := sums[i]) is None else value.add_(more)
            return float(total.detach()), 0

        losses, _ = self.over_parts(records, add).tolist()
        for parameter, value in zip(parameters, sums, strict=True):
            parameter.grad = self.team.add_up(torch.zeros_like(parameter) if value is None else value)
        return StepFacts(len(records), losses / max(1, len(records)), 0.0, 0.0)


@dataclass
class PrivateStep(TrainingStep):
    """The step of a private run."""

    engine: Engine = field(kw_only=True)
    clipping: AnyClipping = field(kw_only=True)
    model: nn.Module | None = field(default=None, kw_only=True)
    """Whatever it keeps besides its weights gets no noise, so it is the same after each step as before the first."""
    public: PublicGradients | None = field(default=None, kw_only=True)
    shards: ShardedModel | None = field(default=None, kw_only=True)
    """The weights in parts, if no process holds all of them."""
    generator: str = field(default=SECURE, kw_only=True)
    """Which generator draws the noise of the sums."""

    def __post_init__(self) -> None:
        self._buffers = {} if self.model is None else buffers_of(self.model)
        self._noise: ToeplitzNoise | None = None
        self._kept_noise: Mapping[str, Tensor] = {}
        self.lost = 0
        if self.plan.correlation is not None and isinstance(self.clipping, QuantileClipping):
            raise BadParameterError(
                "quantile-with-banded-noise",
                "a bound that moves is accounted for independent noise only: choose another {option.clipping}, or "
                "{option.noise[independent]}",
            )

    def run(self, step: int, key: StreamKey) -> StepFacts:
        """Leave the noisy gradient of this step on the parameters."""
        records = self.drawn(step, key)
        if self.public is not None:
            self.public.begin(step, self.engine.parameters)
        sums = {name: torch.zeros_like(own_rows(p)) for name, p in self.engine.parameters.items()}
        idle = None if self.shards is None else lambda: self._take_part(sums)
        losses, shortened = self.over_parts(records, lambda part: self._add(part, sums), idle).tolist()
        if self.model is not None:
            restore_buffers(self.model, self._buffers)
        if self.shards is None:
            for value in sums.values():
                self.team.add_up(value)
        bound = self.clipping.bound
        scale, deviation = self.plan.noise_scale, self.plan.noise_deviation(step)
        if isinstance(self.clipping, QuantileClipping):
            scale = deviation = self.clipping.gradient_multiplier(self.plan.multiplier)
        self._add_noise(sums, scale * bound, step, key)
        for name, parameter in self.engine.parameters.items():
            mean = sums[name].div_(self.plan.batch_at(step))
            parameter.grad = mean if self.shards is None else self.shards.as_gradient(mean, parameter)
        self.deviation = deviation * bound / self.plan.batch_at(step)
        if self.public is not None:
            self.deviation *= self.public.finish(step, self.engine.parameters, bound)
        if isinstance(self.clipping, QuantileClipping):
            source = key.stream(step, b"quantile")
            self.clipping.update(len(records) - int(shortened), len(records), self.plan.batch_at(step), source)
        seen = max(1, len(records))
        return StepFacts(len(records), losses / seen, shortened / seen, bound)

    def _add_noise(self, sums: dict[str, Tensor], scale: float, step: int, key: StreamKey) -> None:
        """Add the noise of this step, in place."""
        factor, parts = self.plan.correlation, None if self.shards is None else self.shards.parts
        if self.generator != SECURE:
            add_device_noise(sums, scale, step, key)
            return
        if factor is None:
            add_noise(sums, scale, key.stream(step, b"noise"), parts)
            return
        parameters = self.engine.parameters
        if self._noise is None:
            self._noise = ToeplitzNoise(factor, sum(value.numel() for value in parameters.values()), key, b"noise")
            self._noise.restore(self._kept_noise)
        noise, start = torch.from_numpy(self._noise.at(step)), 0
        for name, value in sums.items():
            first = start + (0 if parts is None else parts[name].start)
            share = noise[first : first + value.numel()].view(value.shape)
            value.add_(share.to(value.device, value.dtype), alpha=scale)
            start += parameters[name].numel()

    def state(self) -> dict[str, Tensor]:
        public = {} if self.public is None else self.public.state()
        noise = {} if self._noise is None else self._noise.state()
        return {**{PUBLIC + name: value for name, value in public.items()}, **noise}

    def restore(self, state: Mapping[str, Tensor]) -> None:
        self._kept_noise = state
        if self.public is not None:
            own = {name.removeprefix(PUBLIC): value for name, value in state.items() if name.startswith(PUBLIC)}
            self.public.restore(own)

    def _take_part(self, sums: Mapping[str, Tensor]) -> None:
        """Help the other processes through a part: compute on a made-up batch, of which nothing is added."""
        assert self.shards is not None
        self.engine.run(self.shards.made_up)
        for name, value in sums.items():
            value += self.shards.own_sum(torch.zeros(self.engine.parameters[name].shape, device=value.device))

    def gradients_of(self, records: NDArray[np.int64]) -> PerExample:
        """The gradients of some records of this step, and behind them of what only fills the batch up."""
        if self.shapes is not None:
            records = np.concatenate([records, np.repeat(records[:1], self.physical - len(records))])
        return self.engine.run(self.batch_of(records))

    def _add(self, records: NDArray[np.int64], sums: dict[str, Tensor]) -> tuple[float, int]:
        size = len(records)
        result = self.gradients_of(records)
        filling = len(result.losses) - size
        if self.public is not None:
            result = self.public.prepared(result)
        clipped = self.clipping.clip({name: norms[:size] for name, norms in result.safe_squared_norms.items()})
        # A factor of 0 for what only fills the batch up.
        factors = {name: nn.functional.pad(own, (0, filling)) for name, own in clipped.factors.items()}
        lost = clipped.lost
        loss = float(result.losses[:size].nan_to_num(0.0, 0.0, 0.0).sum())
        if self.shards is not None:
            # One weight after the other, in the same order in all processes: not all sums are in memory at a time.
            for name, value in sums.items():
                value += self.shards.own_sum(result.weighted_sum(name, factors.get(name, result.losses)))
        else:
            more = result.weighted_sums(factors)
            # Nothing below takes memory: a part that fails has not touched the sums, and is tried again in smaller
            # ones.
            for name, value in more.items():
                sums[name] += value
        if lost and not self.lost:
            self.warn(LOST)
        self.lost += lost
        return loss, clipped.shortened


NOISE_AT_ONCE = 2**22
"""Numbers that are drawn and moved together: what noise takes of the processor's memory beside the sums."""


def add_noise(
    sums: Mapping[str, Tensor], scale: float, source: Source, parts: Mapping[str, OwnPart] | None = None
) -> None:
    """Add N(0, scale^2) to every number, in place, from the secure generator: drawn on the processor and moved, some
    millions at a time. A device works on one piece while the next is drawn.

    parts   which numbers of the whole tensors these are: the noise of the others is drawn too, and left out
    """
    for name, value in sums.items():
        flat = value.view(-1)
        part = OwnPart(0, flat.numel()) if parts is None else parts[name]
        for start in range(0, part.total, NOISE_AT_ONCE):
            noise = torch.from_numpy(normal_noise(min(NOISE_AT_ONCE, part.total - start), source))
            first, end = max(start, part.start), min(start + len(noise), part.start + flat.numel())
            if first < end:
                own = noise[first - start : end - start].to(value.device, value.dtype, non_blocking=True)
                flat[first - part.start : end - part.start].add_(own, alpha=scale)
