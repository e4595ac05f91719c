"""Tensors in a safetensors file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tacit.errors import BadInputError, require


def save_tensors(module: Any, path: Path) -> None:
    library = require("safetensors.torch", extra="documents", purpose="saving a model")
    library.save_file({name: value.contiguous() for name, value in module.state_dict().items()}, str(path))


def load_tensors(path: Path) -> dict[str, Any]:
    library = require("safetensors.torch", extra="documents", purpose="loading a model")
    try:
        tensors: dict[str, Any] = library.load_file(str(path))
    except Exception as error:  # the library has its own class, and OSError
        raise BadInputError(
            f"{path.name} is missing or damaged in '{path.parent.name}': copy the whole folder again"
        ) from error
    return tensors
