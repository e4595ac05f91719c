"""Noise from the generator of a graphics card, in place of the secure one: faster, and a weaker promise.

The secure generator draws on the processor, 30 ns a number on one core. A graphics card has a generator of its own
(Philox), which costs next to nothing there. It is not made to keep secrets: its numbers follow from a seed of 62 bits,
and nobody has shown that they cannot be told from random ones. So it is never taken unless it is asked for, and the
card says what is assumed then.

The seed of a step follows from the key of the run and the number of the step, through the secure generator. A step that
is repeated after a stop has the same noise again, and the seeds of two steps have nothing to do with each other. The
numbers depend on the kind of the card as well, so a run goes on with the same kind only.

PyTorch seeds the generator of the *processor* with 32 bits of the seed, which anybody can try one by one. There it is
refused, but for a test seed, which promises nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import torch
from torch import Tensor

from tacit.errors import BadParameterError
from tacit.noise.source import StreamKey
from tacit.training.plan import TrainingPlan
from tacit.training.team import Team

GENERATORS: Final = ("secure", "device")
SECURE: Final = "secure"
ASSUMED: Final = (
    "the noise was drawn by the generator of the graphics card (Philox), which is not a cryptographic one, from a "
    "secret seed of 62 bits for each step: whoever can tell its numbers from random ones, or try all seeds, can take "
    "the noise off again"
)


def check_device_noise(device: torch.device, plan: TrainingPlan, *, secret: bool, team: Team) -> None:
    """Refuse the generator of a device where it would not keep even its own promise."""
    if device.type == "cpu" and secret:
        raise BadParameterError(
            "device-noise-on-processor",
            "{option.noise_generator[device]} is for a graphics card: on the processor its seed could be guessed, and "
            "the secure generator is what there is",
        )
    if team.size > 1 or plan.correlation is not None:
        raise BadParameterError(
            "device-noise-alone",
            "{option.noise_generator[device]} takes one process and independent noise: leave it out, or "
            "{option.noise[banded]} and torchrun",
        )


def add_device_noise(sums: Mapping[str, Tensor], scale: float, step: int, key: StreamKey) -> None:
    """Add N(0, scale^2) to every number, in place, from the generator of the device that holds them."""
    source = key.stream(step, b"device noise")
    generators: dict[torch.device, torch.Generator] = {}
    for value in sums.values():
        if value.device not in generators:
            seed = int(source.generator.integers(2**62))
            generators[value.device] = torch.Generator(device=value.device).manual_seed(seed)
        noise = torch.randn(value.shape, generator=generators[value.device], device=value.device)
        value.add_(noise.to(value.dtype), alpha=scale)


def generator_identity(name: str, device: torch.device) -> str | None:
    """The generator that a run must have again to go on: the kind of the device that draws, because another kind draws
    other numbers from the same seed; None for the secure generator, which is the same everywhere."""
    if name == SECURE:
        return None
    return torch.cuda.get_device_name(device) if device.type == "cuda" else device.type
