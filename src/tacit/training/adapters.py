"""Bottleneck adapters (Houlsby et al. 2019; under differential privacy Yu et al. 2022): two small linear layers and a
nonlinearity behind the attention and the feed-forward part of every layer, and the head. The rest stays frozen.

    h  ->  h + up(gelu(down(h)))        h of d numbers, down: d -> width, up: width -> d, up = 0 at the start

Unlike lora they cannot be multiplied into the weights, so they are saved beside them: the weights keep their names,
each adapter is a part of the linear layer it stands behind, and the configuration of the model says how wide they are.
A folder is read again by Tacit; another library that reads it sees the model without adapters. So only models with a
new head have them, whose folders nobody else takes for a language model.

Clipping is exact as for any other layer: the engine follows plain linear layers (`gradients`).
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

import torch
from torch import nn
from torch.nn import functional
from transformers.pytorch_utils import Conv1D

from tacit.errors import BadInputError, BadParameterError

if TYPE_CHECKING:
    from transformers import PreTrainedModel

WIDTH: Final = "tacit_adapter_width"
"""The entry of a configuration that says how wide the adapters of a model are."""
_BEHIND: Final = re.compile(
    r"(?:^|\.)(?:output\.dense|out_proj|o_proj|out_lin|attn\.c_proj|mlp\.c_proj|lin2|fc2|down_proj|wo|Attention\.o"
    r"|SelfAttention\.o|EncDecAttention\.o)$"
)


class Bottleneck(nn.Module):
    """The numbers that are added to others on their way: up(gelu(down(h))), zero at the start."""

    def __init__(self, size: int, width: int) -> None:
        super().__init__()
        self.down, self.up = nn.Linear(size, width), nn.Linear(width, size)
        nn.init.normal_(self.down.weight, std=0.02)
        for start in (self.down.bias, self.up.weight, self.up.bias):
            nn.init.zeros_(start)

    def forward(self, value: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.up(functional.gelu(self.down(value)))
        return result


class AdaptedLinear(nn.Linear):
    """A linear layer with an adapter behind it."""

    adapter: Bottleneck

    def forward(self, value: torch.Tensor) -> torch.Tensor:
        through = super().forward(value)
        result: torch.Tensor = through + self.adapter(through)
        return result


class AdaptedConv1D(Conv1D):
    """The same for the linear layers of GPT-2."""

    adapter: Bottleneck

    def forward(self, value: torch.Tensor) -> torch.Tensor:
        through: torch.Tensor = super().forward(value)  # type: ignore[no-untyped-call]
        result: torch.Tensor = through + self.adapter(through)
        return result


def add_adapters(model: PreTrainedModel, width: int) -> list[str]:
    """Put adapters of this width behind the parts of all layers; returns the names of their weights."""
    body = model.base_model
    names = []
    for name, module in [*body.named_modules()]:
        if not _BEHIND.search(name) or type(module) not in (nn.Linear, Conv1D):
            continue
        size = module.out_features if isinstance(module, nn.Linear) else module.nf
        module.adapter = Bottleneck(int(size), width)
        module.__class__ = AdaptedLinear if isinstance(module, nn.Linear) else AdaptedConv1D
        names.append(name)
    if not names:
        raise BadParameterError(
            "strategy-does-not-fit", "this model has no layers that adapters could stand behind: choose lora"
        )
    setattr(model.config, WIDTH, width)
    return [name for name, _ in model.named_parameters() if ".adapter." in name]


def restore_adapters(model: PreTrainedModel, folder: str | Path) -> None:
    """Put the adapters of a saved model in place, if it has any."""
    width = getattr(model.config, WIDTH, None)
    if not isinstance(width, int):
        return
    from safetensors.torch import load_file

    wanted = add_adapters(model, width)
    kept: dict[str, torch.Tensor] = {}
    for file in sorted(Path(folder).glob("*.safetensors")):
        kept.update({name: value for name, value in load_file(file).items() if name in wanted})
    if set(kept) != set(wanted):
        raise BadInputError(
            "unreadable-adapters", "the adapters in {folder} are not complete: train the model again", folder=folder
        )
    model.load_state_dict(kept, strict=False)
