"""Layers that are computed again on the way back instead of being kept (gradient checkpointing): less memory, more
time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

from torch import nn

from tacit.errors import BadParameterError
from tacit.training.gradients import Batch, Engine
from tacit.training.gradients.taps import Taps
from tacit.training.gradients.taps.checkpoints import recomputable


def compute_again(model: nn.Module, engine: Engine | None = None, probes: Sequence[Batch] = ()) -> None:
    """From now on, compute the layers of a model again on the way back: in the engine of a private training, or without
    one in the model itself."""
    if engine is not None and not isinstance(engine, Taps):
        raise BadParameterError(
            "engine-cannot-recompute",
            "layers are computed again by the engine taps, and this model is trained by '{engine}': leave "
            "{option.gradient_checkpointing} out, and lower {option.physical} to save memory",
            engine=engine.name,
        )
    if not recomputable(model):
        raise BadParameterError(
            "nothing-to-recompute",
            "this model has no layers that can be computed again: leave {option.gradient_checkpointing} out",
        )
    if engine is not None:
        engine.compute_again(*probes)
    else:
        enable = cast("Callable[[dict[str, object]], None]", model.gradient_checkpointing_enable)
        enable({"use_reentrant": False})
