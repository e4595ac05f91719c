"""Tensors in a safetensors file: as they are, or matrices in 8 bits with a scale for each row.

In 8 bits a number is off by at most 1/254 of the largest number of its row, and the file has half the size of one with
16 bits.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tacit.errors import BadInputError, require

if TYPE_CHECKING:
    from torch import Tensor, nn

SCALE = ".scale"


def save_tensors(module: nn.Module, path: Path) -> None:
    _save({name: value.contiguous() for name, value in module.state_dict().items()}, path)


def save_in_eight_bits(module: nn.Module, path: Path) -> None:
    import torch

    kept: dict[str, Tensor] = {}
    for name, value in module.state_dict().items():
        if value.ndim != 2:
            kept[name] = value.contiguous()
            continue
        scale = value.abs().amax(dim=1, keepdim=True).clamp(min=1e-30).float() / 127
        kept[name] = (value / scale).round().to(torch.int8)
        kept[name + SCALE] = scale
    _save(kept, path)


def _save(tensors: dict[str, Tensor], path: Path) -> None:
    library = require("safetensors.torch", extra="documents", purpose="saving a model")
    library.save_file(tensors, str(path))


def damaged_error(path: Path) -> BadInputError:
    """The error for a file of a model that cannot be read."""
    return BadInputError(
        "damaged-model",
        "{file} is missing or damaged in '{folder}': copy the whole folder again",
        file=path.name,
        folder=path.parent.name,
    )


def load_tensors(path: Path) -> dict[str, Tensor]:
    library = require("safetensors.torch", extra="documents", purpose="loading a model")
    try:
        tensors: dict[str, Tensor] = library.load_file(str(path))
    except Exception as error:  # the library has its own class, and OSError
        raise damaged_error(path) from error
    scales = {name: tensors.pop(name + SCALE) for name in list(tensors) if name + SCALE in tensors}
    return {name: value.float() * scales[name] if name in scales else value for name, value in tensors.items()}
