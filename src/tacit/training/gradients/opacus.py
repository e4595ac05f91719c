"""Per-example gradients by the hooks of Opacus, for comparison and for layers that Opacus has a rule for.

Opacus is used without wrapping the model (`wrap_model=False` of its engine): the hooks leave `grad_sample` on each
parameter. Two of its habits are corrected here. Ids of positions come with a batch axis of length 1, which it cannot
handle: embeddings get one per example. And a parameter that it silently leaves out is refused.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn

from tacit.errors import require
from tacit.training.gradients.examples import Batch, Loss, PerExample, UnsupportedModelError, size_of, trainable
from tacit.training.gradients.named_units import added_up
from tacit.training.memory import is_out_of_memory


class Opacus:
    name = "opacus"

    def __init__(self, model: nn.Module, loss: Loss) -> None:
        require("opacus", extra="opacus", purpose="the gradient engine 'opacus'")
        self.model, self.loss = model, loss
        self.parameters = trainable(model)

    def learn(self, *batches: Batch) -> None:
        for batch in batches:
            self.run(batch)

    def run(self, batch: Batch) -> PerExample:
        from opacus.grad_sample import GradSampleHooks

        size = size_of(batch)
        hooks = GradSampleHooks(self.model, batch_first=True, loss_reduction="sum", strict=False)
        try:
            with batch_axis_for_positions(self.model, size), _hooks_awake(self.model), warnings.catch_warnings():
                # Its hooks fire where no input needs a gradient, which is what they are for.
                warnings.filterwarnings("ignore", message="Full backward hook is firing")
                losses = self.loss(self.model, batch)
                torch.autograd.backward(losses.sum())
            gradients = {}
            for name, parameter in self.parameters.items():
                per_example = getattr(parameter, "grad_sample", None)
                if isinstance(per_example, list):
                    per_example = torch.stack(per_example).sum(0)
                if per_example is None and parameter.grad is not None:
                    raise UnsupportedModelError(
                        "no-gradient-per-example", "Opacus has no gradient per example for '{name}'", name=name
                    )
                if per_example is not None:
                    if per_example.shape != (size, *parameter.shape):
                        raise UnsupportedModelError(
                            "model-mixes-examples", "Opacus mixes up the examples in '{name}'", name=name
                        )
                    gradients[name] = per_example.detach().clone()
        except (RuntimeError, ValueError, AttributeError, NotImplementedError) as error:
            if is_out_of_memory(error) or isinstance(error, UnsupportedModelError):
                raise
            raise UnsupportedModelError(
                "engine-cannot-run-model", "Opacus cannot run this model: {reason}", reason=str(error).splitlines()[0]
            ) from error
        finally:
            hooks.cleanup()
            for parameter in self.parameters.values():
                parameter.grad = None
                parameter.__dict__.pop("grad_sample", None)
        return PerExample.of_gradients(*added_up(batch, losses, gradients))


@contextmanager
def batch_axis_for_positions(model: nn.Module, size: int) -> Iterator[None]:
    """While this is active, ids without a batch axis (positions) get one per example."""

    def expand(module: nn.Module, args: tuple[object, ...]) -> tuple[object, ...]:
        if args and isinstance(args[0], torch.Tensor) and args[0].dim() == 2:
            ids = args[0].expand(size, -1) if args[0].shape[0] == 1 else args[0]
            return (ids.contiguous(), *args[1:])
        return args

    handles = [m.register_forward_pre_hook(expand) for m in model.modules() if type(m) is nn.Embedding]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


@contextmanager
def _hooks_awake(model: nn.Module) -> Iterator[None]:
    """Opacus looks away from layers in evaluation mode; layers with weights of their own do the same in both modes."""
    sleeping = [m for m in model.modules() if not m.training and any(True for _ in m.parameters(recurse=False))]
    for module in sleeping:
        module.training = True
    try:
        yield
    finally:
        for module in sleeping:
            module.training = False
