"""Forward and backward passes with 16 bits (bfloat16), under a guarantee that does not depend on their rounding.

Weights stay in single precision, as do norms, clipped sums, noise and the optimizer. What has 16 bits are the numbers
that go through the layers and the gradients that come back: both are the factors of the outer products whose norm is
worked out and which are added up, so what is clipped is what is added, exactly (`gradients.examples.single`).

What remains is that the gradient of a record must depend on no other record. With 32 bits another shape of a batch
moves it by some 1e-7 of itself; with 16 bits the same cause moves it by up to a hundredth, for all records of a batch
at once, which one record more could cause. So a record is always computed in the same shape, known from its own length:
batches have exactly as many rows as are worked on at a time, in all processes alike, filled up with copies that count
nothing, and a width that is a multiple of `WIDTH`, or the longest. That a record has then the same gradient in any
place, beside any others, is tried on made-up records before a run; where a device does not keep to it, 16 bits are
refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from tacit.devices import moved
from tacit.errors import BadParameterError
from tacit.noise.source import public_generator
from tacit.training.frozen import Halves
from tacit.training.gradients import Batch, Engine, Loss, UnsupportedModelError
from tacit.training.gradients.examples import without_dropout
from tacit.training.gradients.unit_sums import gradient_of_unit
from tacit.training.memory import is_out_of_memory
from tacit.training.tasks import Encoded, Task
from tacit.training.team import Team

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

WIDTH = 16
TOLERANCE = 1e-5
"""How far a gradient may be off beside other records, relative to its norm: as much as with 32 bits."""


def check_sixteen_bits(device: torch.device, most_rows: int = 1) -> None:
    """Refuse a device that has no 16 bits to compute with, and records of several rows, whose batches have no public
    number of rows."""
    if most_rows > 1:
        raise BadParameterError(
            "several-rows-in-sixteen-bits",
            "with 16 bits a record is computed in one shape, and one of up to {rows} windows has none: learn from the "
            "best one alone ({option.windows[best]}), or leave {option.precision} at float32",
            rows=most_rows,
        )
    supported = device.type == "cpu" or (device.type == "cuda" and torch.cuda.is_bf16_supported())
    if not supported:
        raise BadParameterError(
            "no-sixteen-bits",
            "the device '{device}' does not compute with bfloat16: leave {option.precision} at float32",
            device=str(device),
        )


def in_sixteen(loss: Loss, device: torch.device, *, keep_copies: bool = True) -> Loss:
    """The same losses, with the layers of the model computed in 16 bits; losses themselves have 32.

    keep_copies   whether copies of weights with 16 bits are kept until the end of a forward pass, for weights that are
                  used several times; without, those of a sharded layer go with it
    """

    def computed(model: nn.Module, batch: Batch) -> Tensor:
        with torch.autocast(device.type, torch.bfloat16, cache_enabled=keep_copies):
            losses = loss(model, batch)
        return losses.float()

    return computed


def shape_of(example: Encoded, longest: int) -> int:
    """The width in which a record is computed, from its own length alone."""
    length = max((len(value) for value in example.values() if isinstance(value, list)), default=1)
    return max(length, min(-(-length // WIDTH) * WIDTH, longest))


def shapes_of(encoded: Sequence[Encoded], longest: int) -> NDArray[np.int64]:
    """The width of each record."""
    return np.array([shape_of(example, longest) for example in encoded], dtype=np.int64)


def collated(task: Task, examples: Sequence[Encoded], tokenizer: PreTrainedTokenizerBase) -> Batch:
    """Records of one width as a batch of that width."""
    width = max(shape_of(example, task.length) for example in examples)
    return replace(task, constant=True, length=width).collate(examples, tokenizer)


@dataclass
class ShapeTrial:
    """The trial whether made-up records have the same gradients beside any others, for a number of rows."""

    engine: Engine
    model: nn.Module
    task: Task
    tokenizer: PreTrainedTokenizerBase
    device: torch.device
    halves: Halves | None = None

    def __call__(self, rows: int) -> float:
        """The largest deviation of a record's gradient beside others from that beside copies of itself; refused where
        it is more than rounding of 32 bits."""
        deviation = 0.0
        generator = public_generator(13)
        with without_dropout(self.model):
            for width in sorted({min(WIDTH, self.task.length), self.task.length}):
                made = [self._made_up(generator, width) for _ in range(rows)]
                for place in {0, rows // 2, rows - 1}:
                    beside, alone = self._gradient(made, place), self._gradient([made[place]] * rows, 0)
                    norm = torch.stack([value.norm() for value in alone.values()]).norm()
                    off = torch.stack([(beside[name] - value).norm() for name, value in alone.items()]).norm()
                    share = float(off / norm.clamp_min(1e-30))
                    deviation = max(deviation, float("inf") if share != share else share)
        if deviation > TOLERANCE:
            raise UnsupportedModelError(
                "batch-matters",
                "with 16 bits the gradient of a record depends on the records beside it on this device, by "
                "{deviation:.0e} of its norm: leave {option.precision} at float32",
                deviation=deviation,
            )
        return deviation

    def fitting(
        self, rows: int, warn: Callable[[str], None], team: Team, *, alone: bool, shrinks: bool
    ) -> tuple[int, float]:
        """How many rows of the largest shape fit into the memory of each process of a team, at most so many, and the
        deviation with them.

        It is found out with made-up rows and dropout, before a record is read: in another number of rows the gradient
        of a record is slightly another one, so no record may be what makes the number smaller. Nor may the number
        depend on the process, because which of them works on a record depends on the other records.

        alone     whether the rows of a part are those of one unit, which is worked on by itself
        shrinks   whether fewer rows may be taken; processes that share a model need each other in every pass
        """
        while True:
            own, deviation = self._fitting_here(rows, warn, alone=alone, shrinks=shrinks)
            rows = team.smallest(own)
            if not team.any_has(rows < own):
                return rows, deviation

    def _fitting_here(self, rows: int, warn: Callable[[str], None], *, alone: bool, shrinks: bool) -> tuple[int, float]:
        """The same for this process by itself."""
        while True:
            try:
                self._go_through_largest(rows, alone=alone)
                return rows, 0.0 if alone else self(rows)
            except (RuntimeError, MemoryError) as error:
                if rows == 1 or not shrinks or not is_out_of_memory(error):
                    raise
            rows //= 2
            warn(f"out of memory: beginning with {rows} examples at a time")

    def _go_through_largest(self, rows: int, *, alone: bool) -> None:
        """Forward and back with as many rows of the largest shape."""
        generator = public_generator(14)
        made = [self._made_up(generator, self.task.length) for _ in range(rows)]
        before = self.model.training
        self.model.train()
        try:
            if alone:
                batch = self._batch(made)
                gradient_of_unit(self.engine.model, self.engine.loss, self.engine.parameters, [batch])
            else:
                self._gradient(made, 0)
        finally:
            self.model.train(before)

    def _made_up(self, generator: np.random.Generator, width: int) -> Encoded:
        """A made-up record, repeated and cut to this width; its places (where an answer begins) stay inside."""
        example = self.task.probe(generator, self.tokenizer)
        return {
            name: (value * (1 + width // max(1, len(value))))[:width]
            if isinstance(value, list)
            else (min(value, width - 1) if name in self.task.places else value)
            for name, value in example.items()
        }

    def _batch(self, examples: Sequence[Encoded]) -> Batch:
        batch = moved(collated(self.task, examples, self.tokenizer), self.device)
        return batch if self.halves is None else self.halves.continued(batch)

    def _gradient(self, examples: Sequence[Encoded], place: int) -> dict[str, Tensor]:
        result = self.engine.run(self._batch(examples))
        factors = torch.zeros(len(examples), device=result.losses.device)
        factors[place] = 1.0
        return result.weighted_sums(dict.fromkeys(result.squared_norms, factors))
