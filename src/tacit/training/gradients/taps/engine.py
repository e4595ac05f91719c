"""The engine: torch functions intercepted by parameter while the loss is computed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from tacit.errors import BadParameterError
from tacit.training.gradients.examples import (
    Batch,
    Grams,
    Loss,
    PerExample,
    UnsupportedModelError,
    safe_squared_norm,
    size_of,
    squared_norm,
    trainable,
)
from tacit.training.gradients.named_units import units_of
from tacit.training.gradients.taps.checkpoints import recomputed
from tacit.training.gradients.taps.derived import DERIVING, make_derived
from tacit.training.gradients.taps.experts import tapped_experts
from tacit.training.gradients.taps.operations import OPERATIONS
from tacit.training.gradients.taps.passes import TapPass, TapSite
from tacit.training.gradients.taps.relative import relative_biases


class _Intercept(TorchFunctionMode):
    def __init__(self, pass_: TapPass) -> None:
        super().__init__()
        self._pass = pass_

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        handler = OPERATIONS.get(func)
        if handler is not None:
            result = handler(self._pass, *args, **kwargs)
            if result is not None:
                return result
        if func in DERIVING:
            made = make_derived(self._pass, func, tuple(args), dict(kwargs))
            if made is not None:
                return made
        if self._pass.learning:
            self._pass.note_unknown(func, args)
        return func(*args, **kwargs)


class Taps:
    """The engine for one model and one loss. `learn` first, on two batches of different sizes; then `run`."""

    name = "taps"

    def __init__(self, model: nn.Module, loss: Loss) -> None:
        self.model = model
        self.loss = loss
        self.parameters = trainable(model)
        self.names = {id(parameter): name for name, parameter in self.parameters.items()}
        self.sites: dict[tuple[str, int], TapSite] = {}
        self.checkpointing = False

    def learn(self, *batches: Batch) -> None:
        """See how each parameter is used. Batches must have different sizes, above 1, none of which is the length of a
        sequence or the width of a layer (3 and 5 do)."""
        sizes = {size_of(batch) for batch in batches}
        if len(sizes) < 2 or min(sizes) < 2:
            raise BadParameterError("too-few-batches", "checking a model takes batches of two different sizes above 1")
        for batch in batches:
            self._run(batch, learning=True)

    def run(self, batch: Batch) -> PerExample:
        return self._run(batch, learning=False)

    def compute_again(self, *batches: Batch) -> None:
        """From now on, compute the layers of the model again on the way back; tried on two batches."""
        self.checkpointing = True
        self.learn(*batches)

    def _run(self, batch: Batch, *, learning: bool) -> PerExample:
        size = size_of(batch)
        pass_ = TapPass(self.names, self.sites, size, learning=learning)
        for parameter in self.parameters.values():
            parameter.grad = None
        again = recomputed(self.model, lambda: _Intercept(pass_), active=self.checkpointing)
        # Layers that are computed again on the way back need all of it once more.
        with relative_biases(self.model, pass_), tapped_experts(self.model, pass_), again:
            with _Intercept(pass_):
                losses = self.loss(self.model, batch)
            self._go_back(losses, size)
        self._refuse_leaks(pass_)
        self._refuse_mixtures(pass_)
        grams: Grams = {}
        units, records, losses = units_of(batch), dict(pass_.records), losses.detach()
        with torch.no_grad():
            if units is not None:
                records, losses = {name: units.of(record) for name, record in records.items()}, units.summed(losses)
            norms = {name: squared_norm(record, grams) for name, record in records.items()}
            safe = {name: safe_squared_norm(records[name], norm, grams) for name, norm in norms.items()}
        shapes = {name: parameter.shape for name, parameter in self.parameters.items()}
        return PerExample(losses, norms, records, shapes, safe)

    @staticmethod
    def _go_back(losses: Tensor, size: int) -> None:
        if losses.shape != (size,):
            raise BadParameterError(
                "wrong-shape",
                "the loss must have one value per example, ({size},), not {shape}",
                size=size,
                shape=tuple(losses.shape),
            )
        torch.autograd.backward(losses.sum())

    def _refuse_leaks(self, pass_: TapPass) -> None:
        leaks = [name for name, parameter in self.parameters.items() if parameter.grad is not None]
        if not leaks:
            return
        for parameter in self.parameters.values():
            parameter.grad = None
        used = ", ".join(sorted(pass_.unknown.get(leaks[0], ()))) or "an operation without known algebra"
        more = f" (and {len(leaks) - 1} more)" if len(leaks) > 1 else ""
        raise UnsupportedModelError(
            "no-gradient-per-example",
            "the gradient of '{parameter}'{more} cannot be told apart by example: it is used by {used}",
            parameter=leaks[0],
            more=more,
            used=used,
        )

    @staticmethod
    def _refuse_mixtures(pass_: TapPass) -> None:
        """The products of two kinds of uses of one weight are part of its norm, and are not worked out."""
        for name, record in pass_.records.items():
            if bool(record.outer) + (record.direct is not None) + bool(record.slices) > 1:
                raise UnsupportedModelError(
                    "no-gradient-per-example",
                    "the gradient of '{parameter}'{more} cannot be told apart by example: it is used by {used}",
                    parameter=name,
                    more="",
                    used="a matrix product and number by number",
                )
