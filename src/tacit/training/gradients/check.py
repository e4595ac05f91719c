"""A check that every example's gradient is what it would be alone, by comparison with the loop on batches that are not
private.

The sensitivity of a step rests on two facts: the gradient of an example depends on no other example, and its norm is
what clipping takes it for. Both are compared here, number by number, for every trainable parameter; dropout is switched
off, since two runs would draw it differently. Running an engine without this check is not possible (`choose`). That the
length of a batch, which is that of its longest record, changes nothing either is compared in `padding`.

What a model keeps besides its weights (buffers: running means, counters) is saved with it and gets no noise, so a model
that changes any of it while it learns is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Protocol

import torch
from torch import Tensor, nn

from tacit.errors import MissingExtraError, check_choice
from tacit.training.gradients.examples import (
    Batch,
    Loss,
    PerExample,
    UnsupportedModelError,
    without_dropout,
)
from tacit.training.gradients.loop import Loop
from tacit.training.gradients.named_units import count_of
from tacit.training.gradients.opacus import Opacus
from tacit.training.gradients.padding import Filled, refuse_padding
from tacit.training.gradients.taps import Taps
from tacit.training.gradients.vmap import Vmap

TOLERANCE = 1e-5
"""How far a norm may be off, relative to the largest norm of the batch: far above the rounding of single precision, far
below anything a wrong formula gives (12 % for a forgotten cross term)."""


class Engine(Protocol):
    name: str
    parameters: dict[str, nn.Parameter]
    loss: Loss

    def learn(self, *batches: Batch) -> None: ...

    def run(self, batch: Batch) -> PerExample: ...


ENGINES: dict[str, Callable[[nn.Module, Loss], Engine]] = {"taps": Taps, "vmap": Vmap, "loop": Loop, "opacus": Opacus}
AUTOMATIC = ("taps", "vmap", "loop")


@dataclass(frozen=True)
class Checked:
    """The largest deviations from the loop: of an example's norm, and of a clipped sum; `worst` is the parameter.
    `padding_deviation` is that of a record filled up from the record alone."""

    engine: str
    norm_deviation: float
    sum_deviation: float
    worst: str
    examples: int
    parameters: int
    refused: dict[str, str] = field(default_factory=dict)
    padding_deviation: float = 0.0

    @property
    def deviation(self) -> float:
        """The largest of all, from one record alone."""
        return max(self.norm_deviation, self.sum_deviation, self.padding_deviation)

    @property
    def passed(self) -> bool:
        return max(self.norm_deviation, self.sum_deviation) <= TOLERANCE


def check(engine: Engine, model: nn.Module, loss: Loss, batches: Sequence[Batch]) -> Checked:
    """Compare an engine with the loop, noise-free."""
    norm_deviation = sum_deviation = 0.0
    worst = ""
    with without_dropout(model):
        for batch in batches:
            size = count_of(batch)
            ours, alone = engine.run(batch), Loop(model, loss).run(batch)
            totals = torch.stack(list(alone.squared_norms.values())).sum(0).sqrt()
            scale = max(float(totals.max()), 1e-12)
            # Different factors, so that examples that are mixed up are noticed.
            factors = torch.linspace(0.25, 1.0, size, device=totals.device)
            ours_norms, alone_norms = ours.squared_norms, alone.squared_norms
            shared = dict.fromkeys(engine.parameters, factors)
            ours_sums, alone_sums = ours.weighted_sums(shared), alone.weighted_sums(shared)
            for name, parameter in engine.parameters.items():
                zero = torch.zeros_like(totals)
                off = (ours_norms.get(name, zero).sqrt() - alone_norms.get(name, zero).sqrt()).abs().max()
                nothing = torch.zeros_like(parameter)
                moved = (ours_sums.get(name, nothing) - alone_sums.get(name, nothing)).norm() / (scale * size)
                if max(float(off) / scale, float(moved)) > max(norm_deviation, sum_deviation):
                    worst = name
                norm_deviation = _larger(norm_deviation, float(off) / scale)
                sum_deviation = _larger(sum_deviation, float(moved))
    return Checked(
        engine.name, norm_deviation, sum_deviation, worst, sum(map(count_of, batches)), len(engine.parameters)
    )


def choose(
    model: nn.Module, loss: Loss, batches: Sequence[Batch], engine: str = "auto", *, filled: Sequence[Filled] = ()
) -> tuple[Engine, Checked]:
    """The first engine that agrees with the loop on these batches (of at least two sizes above 1), ready to run.

    `filled` are records at several lengths, for everything that fills batches up: a model that depends on the length is
    refused (`PaddingError`), whatever the engine.
    """
    check_choice(engine, ("auto", *ENGINES), code="unknown-gradient-engine", what="gradient engine")
    _refuse_mixing(model)
    refuse_changing_buffers(model, loss, batches)
    with without_dropout(model):
        padding = refuse_padding(model, loss, filled)
    refused: dict[str, str] = {}
    for name in AUTOMATIC if engine == "auto" else (engine,):
        try:
            candidate: Engine = ENGINES[name](model, loss)
            with without_dropout(model):
                candidate.learn(*batches)
            candidate.learn(*batches)
            result = check(candidate, model, loss, batches)
        except MissingExtraError:
            raise
        except UnsupportedModelError as error:
            refused[name] = str(error)
            continue
        except (RuntimeError, NotImplementedError) as error:
            refused[name] = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
            continue
        if result.passed:
            return candidate, replace(result, refused=refused, padding_deviation=padding)
        refused[name] = (
            f"'{result.worst}' is off by {max(result.norm_deviation, result.sum_deviation):.1e} from one example at a "
            "time"
        )
    raise UnsupportedModelError(
        "gradient-cannot-be-bounded",
        "the gradient of one example cannot be bounded for this model: {reasons}",
        reasons="; ".join((f"{name}: {reason}" for name, reason in refused.items())),
    )


def _refuse_mixing(model: nn.Module) -> None:
    for name, module in model.named_modules():
        if isinstance(module, nn.modules.batchnorm._BatchNorm):
            raise UnsupportedModelError(
                "model-mixes-examples",
                "'{name}' is a batch normalization, which mixes the examples of a batch: replace it by a group or "
                "layer normalization",
                name=name,
            )


def refuse_changing_buffers(model: nn.Module, loss: Loss, batches: Sequence[Batch]) -> None:
    """Run made-up batches as in training: no buffer may change, and none may be added that would be saved."""
    saved, before = set(model.state_dict()), buffers_of(model)
    try:
        with _all_training(model), torch.random.fork_rng(devices=[]), torch.no_grad():
            for batch in batches:
                loss(model, batch)
        changed = [name for name, value in model.named_buffers() if name in before and not _same(value, before[name])]
        changed += sorted(set(model.state_dict()) - saved)
    finally:
        restore_buffers(model, before)
    if changed:
        module = changed[0].rpartition(".")[0] or "the model"
        raise UnsupportedModelError(
            "model-keeps-statistics",
            "'{module}' changes '{buffer}' while it learns, which is saved without noise: replace it by a layer "
            "that keeps no statistics (track_running_stats=False), or by a layer normalization",
            module=module,
            buffer=changed[0],
        )


def buffers_of(model: nn.Module) -> dict[str, Tensor]:
    return {name: buffer.detach().clone() for name, buffer in model.named_buffers()}


def restore_buffers(model: nn.Module, kept: Mapping[str, Tensor]) -> None:
    with torch.no_grad():
        for name, buffer in model.named_buffers():
            if name in kept and buffer.shape == kept[name].shape:
                buffer.copy_(kept[name])


def _same(first: Tensor, other: Tensor) -> bool:
    return first.shape == other.shape and bool(torch.equal(first.detach(), other))


@contextmanager
def _all_training(model: nn.Module) -> Iterator[None]:
    resting = [module for module in model.modules() if not module.training]
    model.train()
    try:
        yield
    finally:
        for module in resting:
            module.training = False


def _larger(a: float, b: float) -> float:
    """NaN counts as infinitely far off."""
    return float("inf") if b != b else max(a, b)
