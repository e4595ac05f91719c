"""A check that the gradient of a record does not depend on how far it is filled up, by comparison with the record
alone, on made-up records.

A batch is filled up to its longest record. If that changed the gradients of the others, one longer record would move
the sum by more than the clipping bound, whatever the engine: six times the bound for an XLNet that is filled up on the
wrong side, 1.4 times for an FNet, whose Fourier transform sees the filling.

So each made-up record is collated alone, without filling, and at several lengths up to the longest that a task reads;
all its gradients have to agree, for the weights as they are and for weights near them: a part that starts at zero (the
second matrix of LoRA) would hide what lies behind it. Engines are compared with one example at a time in the same
filled-up batch (`check`), so both together compare a record in a batch beside longer ones with the record alone.

A model that fails is filled up to one public length for every record (`Task.constant`): then nothing of a batch depends
on another record, and what the filling does to a model is the same with and without it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from tacit.devices import moved
from tacit.training.gradients.examples import Batch, Loss, UnsupportedModelError, trainable

TOLERANCE = 1e-5
"""How far a gradient may be off, relative to its norm: above what another shape does to rounding, far below the
thousandths of YOSO and CANINE."""
LEAST_SCALE = 1e-3
"""Gradients that are shorter than this share of the longest are compared on its scale."""
SHAKEN = 0.5
"""How much is added to the weights for the second trial: numbers of this size over the root of the width of a layer, so
that what they add to its output is as large in wide layers as in narrow ones."""


@dataclass(frozen=True)
class Filled:
    """One made-up record: collated alone, and filled up to several lengths."""

    alone: Batch
    longer: tuple[Batch, ...]

    def on(self, device: torch.device | str) -> Filled:
        """The same record on a device."""
        return Filled(moved(self.alone, device), tuple(moved(batch, device) for batch in self.longer))


class PaddingError(UnsupportedModelError):
    """The gradient of a record depends on how far it is filled up, and so on the other records."""


def refuse_padding(model: nn.Module, loss: Loss, records: Sequence[Filled]) -> float:
    """The largest deviation between a record alone and filled up; refused where it is more than rounding."""
    deviation, worst = padding_deviation(model, loss, records)
    if deviation > TOLERANCE:
        raise PaddingError(
            "padding-matters",
            "what a record adds depends on how far it is filled up, and so on the longest record beside it: the "
            "gradient of '{parameter}' is off by {deviation:.1e}",
            parameter=worst,
            deviation=deviation,
        )
    return deviation


def padding_deviation(model: nn.Module, loss: Loss, records: Sequence[Filled]) -> tuple[float, str]:
    """The largest deviation, relative to the norm of the gradient, and the parameter that is off most."""
    deviation, worst = 0.0, ""
    for _ in _weights_to_try(model):
        alone = [_gradient(model, loss, record.alone) for record in records]
        norms = [_norm(gradient) for gradient in alone]
        longest = max(norms, default=0.0)
        for record, gradient, norm in zip(records, alone, norms, strict=True):
            scale = max(norm, LEAST_SCALE * longest, 1e-30)
            for batch in record.longer:
                off = {
                    name: float((value - gradient[name]).norm()) / scale
                    for name, value in _gradient(model, loss, batch).items()
                }
                name = max(off, key=lambda key: _counted(off[key]))
                if _counted(off[name]) > deviation:
                    deviation, worst = _counted(off[name]), name
    return deviation, worst


def _gradient(model: nn.Module, loss: Loss, batch: Batch) -> dict[str, Tensor]:
    parameters = trainable(model)
    gradients = torch.autograd.grad(loss(model, batch).sum(), list(parameters.values()), allow_unused=True)
    return {
        name: torch.zeros_like(parameter) if value is None else value.detach()
        for (name, parameter), value in zip(parameters.items(), gradients, strict=True)
    }


def _norm(gradient: dict[str, Tensor]) -> float:
    return float(torch.stack([value.norm() for value in gradient.values()]).norm())


def _counted(deviation: float) -> float:
    """NaN counts as infinitely far off."""
    return float("inf") if deviation != deviation else deviation


def _weights_to_try(model: nn.Module) -> Iterator[None]:
    yield
    with _shaken(model):
        yield


@contextmanager
def _shaken(model: nn.Module) -> Iterator[None]:
    """Weights near those of the model, always the same ones; restored bit for bit."""
    parameters = list(trainable(model).values())
    kept = [parameter.detach().clone() for parameter in parameters]
    generator = torch.Generator().manual_seed(5)
    try:
        with torch.no_grad():
            for parameter in parameters:
                noise = torch.randn(parameter.shape, generator=generator, dtype=torch.float32)
                width = parameter.shape[-1] if parameter.dim() > 1 else 25
                parameter.add_(noise.to(parameter.device, parameter.dtype), alpha=SHAKEN * width**-0.5)
        yield
    finally:
        with torch.no_grad():
            for parameter, value in zip(parameters, kept, strict=True):
                parameter.copy_(value)
