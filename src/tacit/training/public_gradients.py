"""Gradients of public rows that help private steps.

    precondition   every number of a record's gradient is divided by the root mean square of that number in public
                   gradients, before clipping (AdaDPS; Li et al. 2022): the bound and the noise are then spent evenly
                   on all numbers, those that matter little included in their own measure
    blend          the private gradient of step t counts cos(pi t / 2K), the public one the rest (the first-order form
                   of mirror descent with the public loss as mirror; PDA-DPMD, Amid et al. 2022), K = 2 x all steps

Guarantee: that of the plan, unchanged. The scale of step t is a function of public rows and of the weights before step
t, which are a function of the noisy sums before; so step t clips a function of one record to the same bound and gets
the same noise. Blending happens after the noise. Nothing here reads a private row.

Public gradients are those of the model without dropout, the mean over `ROWS` public rows a step, drawn from a public
generator. In a team every process works on its share of them, so all have the same.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from tacit.devices import device_of, moved
from tacit.noise.source import public_generator
from tacit.training.gradients import Batch, Loss, PerExample
from tacit.training.gradients.examples import without_dropout
from tacit.training.gradients.scaling import scaled
from tacit.training.record_rows import RecordRows
from tacit.training.step import TrainingStep

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    from tacit.training.plan import TrainingPlan
    from tacit.training.settings import TrainingSettings
    from tacit.training.tasks import Row, Task
    from tacit.training.team import Team

PUBLIC_USES: Final = ("precondition", "blend")
ROWS: Final = 64
"""Public rows of a step."""
MEMORY: Final = 0.9
"""Of the running mean of squared public gradients."""
FLOOR: Final = 0.1
"""No number is divided by less than this share of the root mean square over all numbers."""

Parameters = Mapping[str, nn.Parameter]


@dataclass
class PublicGradients(TrainingStep):
    """The gradients of `rows` public rows for the steps of a plan."""

    model: nn.Module = field(kw_only=True)
    loss: Loss = field(kw_only=True)
    rows: int = field(kw_only=True)

    def mean(self, step: int, parameters: Parameters) -> dict[str, Tensor]:
        """The mean gradient of the public rows of this step."""
        drawn = public_generator(step).choice(self.rows, min(ROWS, self.rows), replace=False)
        sums = {name: torch.zeros_like(parameter) for name, parameter in parameters.items()}

        def add(part: NDArray[np.int64]) -> tuple[float, int]:
            with without_dropout(self.model), torch.enable_grad():
                total = self.loss(self.model, self.collate(part.tolist())).sum()
                gradients = torch.autograd.grad(total, list(parameters.values()), allow_unused=True)
            for value, more in zip(sums.values(), gradients, strict=True):
                if more is not None:
                    value += more
            return float(total.detach()), 0

        self.over_parts(np.sort(drawn), add)
        # A public row whose gradient is not finite must not end a run either.
        return {name: self.team.add_up(value).div_(len(drawn)).nan_to_num_(0, 0, 0) for name, value in sums.items()}

    @abstractmethod
    def begin(self, step: int, parameters: Parameters) -> None:
        """Get ready for a step, before its records are read."""

    def prepared(self, gradients: PerExample) -> PerExample:
        """The gradients of single records as they are clipped."""
        return gradients

    def finish(self, step: int, parameters: Parameters, bound: float) -> float:
        """Change the noisy gradients on the parameters; the share of them that stays, and of their noise."""
        return 1.0


@dataclass
class Preconditioned(PublicGradients):
    """Gradients in units of what public gradients are."""

    def __post_init__(self) -> None:
        self._squares: dict[str, Tensor] = {}
        self._scales: dict[str, Tensor] = {}

    def begin(self, step: int, parameters: Parameters) -> None:
        for name, gradient in self.mean(step, parameters).items():
            square = gradient.square()
            before = self._squares.get(name)
            self._squares[name] = square if before is None else before.mul_(MEMORY).add_(square, alpha=1.0 - MEMORY)
        self._scales = scales_of(self._squares)

    def prepared(self, gradients: PerExample) -> PerExample:
        return scaled(gradients, self._scales)

    def state(self) -> dict[str, Tensor]:
        return self._squares

    def restore(self, state: Mapping[str, Tensor]) -> None:
        own = next(self.model.parameters())
        self._squares = {name: value.to(own.device) for name, value in state.items()}


def scales_of(squares: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """One over the root mean square of every number, never more than 1 / `FLOOR` over that of all, in such a unit that
    the public gradient is as long as before: then a clipping bound means what it meant."""
    total = float(sum(value.double().sum() for value in squares.values()))
    numbers = sum(value.numel() for value in squares.values())
    if not 0.0 < total < math.inf:
        return {name: torch.ones_like(value) for name, value in squares.items()}
    middle = math.sqrt(total / numbers)
    scales = {name: 1.0 / (value.sqrt() / middle + FLOOR) for name, value in squares.items()}
    after = float(sum((scales[name].double().square() * squares[name].double()).sum() for name in squares))
    return {name: value.mul_(math.sqrt(total / after)) for name, value in scales.items()}


@dataclass
class Blended(PublicGradients):
    """Private gradients with a growing share of the public one, which is no longer than the bound either."""

    def begin(self, step: int, parameters: Parameters) -> None:
        self._mean = self.mean(step, parameters)

    def finish(self, step: int, parameters: Parameters, bound: float) -> float:
        share = math.cos(math.pi * step / (4.0 * self.plan.steps))
        length = math.sqrt(float(sum(value.double().square().sum() for value in self._mean.values())))
        factor = min(1.0, bound / max(length, 1e-30))
        for name, parameter in parameters.items():
            assert parameter.grad is not None
            parameter.grad.mul_(share).add_(self._mean[name], alpha=(1.0 - share) * factor)
        return share


PUBLIC_AT_ONCE: Final = 32
"""Public rows worked on at a time, where their number follows from the memory."""
PUBLIC_KINDS: Final[Mapping[str, type[PublicGradients]]] = {"precondition": Preconditioned, "blend": Blended}


def public_help(
    settings: TrainingSettings,
    plan: TrainingPlan,
    model: nn.Module,
    task: Task,
    tokenizer: PreTrainedTokenizerBase,
    rows: Sequence[Row],
    *,
    warn: Callable[[str], None],
    team: Team,
) -> PublicGradients | None:
    """The gradients of public rows, if the settings say how they help."""
    if not settings.public_gradients:
        return None
    encoded, device = RecordRows.of(task, rows, tokenizer), device_of(model)

    def collate(records: Sequence[int]) -> Batch:
        return moved(encoded.batch(records, lambda parts: task.collate(parts, tokenizer)), device)

    shared = (plan, collate, settings.physical or PUBLIC_AT_ONCE, warn, None, team, encoded.several)
    return PUBLIC_KINDS[settings.public_gradients](*shared, model=model, loss=task.loss, rows=len(encoded.counts))
