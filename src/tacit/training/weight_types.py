"""The kinds of numbers in a checkpoint: whole numbers in place of weights, and kinds that do not exist, are refused.

Weights are read in single precision whatever floating type they were saved in. A matrix of whole numbers is a quantized
one whose scales are elsewhere: read as it is, it would be trained without a word and be of no use.
"""

from __future__ import annotations

import json
import struct
from pathlib import Path

import torch
from torch import nn

from tacit.errors import BadInputError

WHOLE_NUMBERS = ("I8", "U8", "I16", "U16", "I32", "U32", "I64", "U64", "BOOL")


CONFIGURED = ("dtype", "torch_dtype")
"""What a configuration calls the type of its weights; the second is the older name."""


def check_configured_type(folder: Path, name: str) -> None:
    """Refuse a folder whose configuration names a type of numbers that PyTorch does not have: transformers looks it up
    before it reads a single weight, and stops without a sentence."""
    settings = folder / "config.json"
    configured = json.loads(settings.read_text(encoding="utf-8")) if settings.is_file() else {}
    for key in CONFIGURED:
        kind = configured.get(key) if isinstance(configured, dict) else None
        if isinstance(kind, str) and not isinstance(getattr(torch, kind.removeprefix("torch."), None), torch.dtype):
            raise BadInputError(
                "unknown-weight-type",
                "config.json of '{name}' says that its weights are '{kind}', which PyTorch {version} does not know: "
                "update PyTorch, or give a checkpoint in float32, float16 or bfloat16",
                name=name,
                kind=kind,
                version=torch.__version__,
            )


def check_weight_types(model: nn.Module, folder: Path, name: str) -> None:
    """Refuse a folder whose files hold whole numbers where the model has weights."""
    weights = {parameter_name.rpartition(".")[0] + "." for parameter_name, _ in model.named_parameters()}
    for file in sorted(folder.glob("*.safetensors")):
        for key, kind in _types(file).items():
            layer = key.rpartition(".")[0] + "."
            if kind in WHOLE_NUMBERS and key.endswith("weight") and any(known.endswith(layer) for known in weights):
                raise BadInputError(
                    "weights-are-whole-numbers",
                    "the weights of '{name}' are whole numbers ({kind}, {key} for one), as quantized checkpoints have "
                    "them: give the model in 16 or 32 bits",
                    name=name,
                    kind=kind,
                    key=key,
                )


def _types(file: Path) -> dict[str, str]:
    """The type of each tensor, by the header of a safetensors file; nothing for one that cannot be read, which has been
    refused by then."""
    try:
        with file.open("rb") as opened:
            (length,) = struct.unpack("<Q", opened.read(8))
            header = json.loads(opened.read(length))
    except (OSError, ValueError, struct.error):
        return {}
    return {key: str(entry["dtype"]) for key, entry in header.items() if key != "__metadata__"}
