"""Where a model computes: the processor, a graphics card (cuda, cuda:1), or an Apple chip (mps).

A job moves its model once, and whatever works with a model puts its numbers where the model is (`device_of`). So a
device is named in one place, and nothing below a job has to know which one it is. Models that are loaded deep inside of
a job (a sentence encoder, a judge) are put where `computing_on` says; without it they stay on the processor.

No promise depends on the device: records are clipped by norms that were computed where their gradients are, noise is
drawn by the secure generator on the processor and moved, and what a release costs is worked out from the plan alone.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Final, TypeVar, cast

from tacit.errors import BadParameterError

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn

State = TypeVar("State")
PROCESSOR: Final = "cpu"
AUTO: Final = "auto"
_CHOSEN: ContextVar[str | torch.device] = ContextVar("device of a job", default=PROCESSOR)

DEVICE_NAME: Final = re.compile(r"auto|cpu|mps|cuda(?::\d+)?")


def check_device(name: str) -> str:
    """The name of a device, if there could be one of this name.

    >>> check_device("cuda:1")
    'cuda:1'
    """
    if DEVICE_NAME.fullmatch(name) is None:
        raise BadParameterError(
            "unknown-device", "there is no device '{name}': choose auto, cpu, cuda, cuda:N or mps", name=name
        )
    return name


def device_named(name: str) -> torch.device:
    """The device of this name; "auto" is a graphics card or an Apple chip, or the processor without one.

    Of several processes that train together (torchrun), each takes the card with its own number.
    """
    import torch

    check_device(name)
    cards = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if name == "auto":
        name = "cuda" if cards else "mps" if torch.backends.mps.is_available() else "cpu"
    if name == "cuda":
        name = f"cuda:{os.environ.get('LOCAL_RANK', '0')}"
    device = torch.device(name)
    present = {"cpu": 1, "cuda": cards, "mps": int(torch.backends.mps.is_available())}[device.type]
    if (device.index or 0) >= present:
        raise BadParameterError(
            "device-missing",
            "there is no device '{name}' on this machine, which has {present} of this kind: choose another "
            "{option.device}, or auto",
            name=name,
            present=present,
        )
    return device


@contextmanager
def computing_on(device: str | torch.device) -> Iterator[None]:
    """Models that are loaded inside go to this device. One that is asked for by name and is not there is refused now;
    "auto" is looked up when the first model is loaded, so that a job without any needs no torch."""
    chosen = device if device in (PROCESSOR, AUTO) or not isinstance(device, str) else device_named(device)
    before = _CHOSEN.set(chosen)
    try:
        yield
    finally:
        _CHOSEN.reset(before)


def device_in_use() -> str | torch.device:
    """The device that `computing_on` says, for whoever loads a model later."""
    return _CHOSEN.get()


def chosen_device() -> torch.device:
    """Where models go that are loaded now: what `computing_on` says, or the processor."""
    import torch

    chosen = _CHOSEN.get()
    return torch.device(PROCESSOR) if chosen == PROCESSOR else _resolved(chosen)


def _resolved(device: str | torch.device) -> torch.device:
    return device_named(device) if isinstance(device, str) else device


def device_of(model: nn.Module) -> torch.device:
    """Where the weights of a model are; the processor for a model without any."""
    import torch

    return next((parameter.device for parameter in model.parameters()), torch.device("cpu"))


def seed_torch(seed: int) -> None:
    """Seed dropout and masks on every device in use. `torch.manual_seed` also writes things down for devices that are
    not in use, which takes longer than a small step."""
    import torch

    torch.default_generator.manual_seed(seed)
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        torch.cuda.manual_seed_all(seed)
    if torch.backends.mps.is_available():
        torch.mps.manual_seed(seed)


def moved(batch: Mapping[str, Tensor], device: torch.device | str) -> dict[str, Tensor]:
    """The numbers of a batch on a device."""
    return {name: values.to(device) for name, values in batch.items()}


def in_double(values: Tensor) -> Tensor:
    """The same numbers in double precision, on the processor if their device has none (Apple chips)."""
    return (values.cpu() if values.device.type == "mps" else values).double()


def on_processor(state: State) -> State:
    """The same numbers in the memory of the processor, however they are nested, so that a run may go on with another
    device."""
    import torch

    if isinstance(state, torch.Tensor):
        return cast("State", state.cpu())
    if isinstance(state, dict):
        return cast("State", {name: on_processor(value) for name, value in state.items()})
    if isinstance(state, list):
        return cast("State", [on_processor(value) for value in state])
    return state
