"""Which weights are trained. Fewer weights take less noise; which choice is best depends on task and budget.

full             everything
no-embeddings    everything but the input embeddings
last-K           the last K layers and the head (last-2)
head             the head only, on a frozen encoder
bias             biases, layer norms and the head (BiTFiT; Bu et al. 2022)
lora, ia3        small matrices or vectors beside frozen weights, and the head (Hu et al. 2022; Liu et al. 2022)
adapter          a small bottleneck behind the two parts of every layer, and the head (`adapters`; Houlsby et al. 2019)
all-layers       a new head that reads all layers of a frozen encoder side by side (`all_layers`)
frozen-lstm      a new bidirectional LSTM and head on a frozen encoder (Senge et al. 2022, `Tr/No/LSTM`)

The output layer of a language model is pre-trained like the rest, so lora and ia3 leave it as it is; a head that is new
is always trained. IA3 scales keys, values and what goes into the second feed-forward layer.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, cast

import torch
from torch import nn

from tacit.errors import BadParameterError, require
from tacit.training.start import LAST_LAYERS, check_strategy

if TYPE_CHECKING:
    from transformers import PreTrainedModel
    from transformers.pytorch_utils import Conv1D

OF_WHOLE_MODELS = ("full", "no-embeddings")
_IN_ATTENTION = re.compile(r"(?:^|\.)[a-z_]*att(?:entio)?n[a-z_]*\.")
_LAYER = re.compile(r"\.(?:layer|layers|h|block|blocks)\.(\d+)\.")
_ATTENTION = re.compile(
    r"(?:^|\.)(?:key|value|[kv]_proj|[kv]_lin|key_proj|value_proj|[kv]|c_attn|query_key_value|qkv_proj)$"
)
_FEED_FORWARD = re.compile(
    r"(?:^|\.)(?:fc2|lin2|wo|wi_1|down_proj|w2|mlp\.c_proj|dense_4h_to_h|(?<!attention\.)output\.dense|fc_out)$"
)


def apply_strategy(model: PreTrainedModel, strategy: str, *, rank: int = 8) -> PreTrainedModel:
    """The model with exactly the weights of the strategy trainable; for lora and ia3, the model with them added."""
    if getattr(model, "from_scratch", False) and strategy not in OF_WHOLE_MODELS:
        raise BadParameterError(
            "strategy-does-not-fit",
            "a model from scratch has nothing worth keeping, so '{strategy}' cannot train it: choose {choices}",
            strategy=strategy,
            choices=" or ".join(OF_WHOLE_MODELS),
        )
    if rank < 1:
        raise BadParameterError("impossible-count", "the rank of lora is at least 1, not {count}", count=rank)
    if strategy == "frozen-lstm":
        from tacit.training.networks import on_frozen_encoder

        return on_frozen_encoder(model)
    if strategy == "all-layers":
        from tacit.training.all_layers import on_all_layers

        return on_all_layers(model)
    if strategy in ("lora", "ia3"):
        return _with_lora(model, rank) if strategy == "lora" else _with_ia3(model)
    if strategy == "adapter":
        return _with_adapters(model, rank)
    last = LAST_LAYERS.fullmatch(check_strategy(strategy))
    heads = _head_names(model)
    embeddings = {id(p) for p in _input_embeddings(model)}
    layers = [int(match[1]) for name, _ in model.named_parameters() if (match := _LAYER.search(f".{name}"))]
    count = max(layers, default=-1) + 1
    if last is not None and int(last[1]) > count:
        raise BadParameterError(
            "strategy-does-not-fit",
            "the model has {layers} layers, fewer than '{strategy}' asks for",
            layers=count,
            strategy=strategy,
        )
    for name, parameter in model.named_parameters():
        match = _LAYER.search(f".{name}")
        in_head = name in heads
        if strategy == "full":
            wanted = True
        elif strategy == "no-embeddings":
            wanted = id(parameter) not in embeddings
        elif strategy == "head":
            wanted = in_head
        elif strategy == "bias":
            wanted = in_head or name.endswith(".bias") or _is_norm(model, name)
        else:
            assert last is not None
            wanted = in_head or (match is not None and int(match[1]) >= count - int(last[1]))
        parameter.requires_grad_(wanted)
    if not any(p.requires_grad for p in model.parameters()):
        raise BadParameterError(
            "strategy-does-not-fit",
            "this model has nothing that the strategy '{strategy}' would train",
            strategy=strategy,
        )
    return model


def _head_names(model: PreTrainedModel) -> set[str]:
    """Weights outside the pre-trained body; for language models, whose head is tied to the body, none."""
    body = getattr(model, "base_model", None)
    inner = {id(p) for p in body.parameters()} if isinstance(body, nn.Module) and body is not model else set()
    return {name for name, p in model.named_parameters() if id(p) not in inner} if inner else set()


def _input_embeddings(model: PreTrainedModel) -> list[nn.Parameter]:
    embeddings = [m for name, m in model.named_modules() if isinstance(m, nn.Embedding)]
    return [p for module in embeddings for p in module.parameters()]


def _is_norm(model: PreTrainedModel, name: str) -> bool:
    owner = model.get_submodule(name.rpartition(".")[0]) if "." in name else model
    return "norm" in type(owner).__name__.lower()


def _train_new_head(model: PreTrainedModel) -> None:
    """Only the head, and only if it is new: a language model speaks through a layer it was pre-trained with."""
    heads = _head_names(model) if _has_new_head(model) else set()
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(name in heads)


def _has_new_head(model: PreTrainedModel) -> bool:
    return not hasattr(model, "get_output_embeddings") or model.get_output_embeddings() is None


def _with_lora(model: PreTrainedModel, rank: int) -> PreTrainedModel:
    peft = require("peft", extra="training", purpose="the strategy 'lora'")
    from transformers.pytorch_utils import Conv1D

    heads = sorted({name.split(".")[0] for name in _head_names(model)}) if _has_new_head(model) else []
    transposed = any(isinstance(module, Conv1D) for module in model.modules())
    try:
        config = peft.LoraConfig(
            r=rank,
            lora_alpha=2 * rank,
            target_modules=_lora_targets(model),
            fan_in_fan_out=transposed,
            modules_to_save=heads or None,
        )
        # It is a PeftModel, which answers for the model inside of it.
        with_adapters: PreTrainedModel = peft.get_peft_model(model, config)
        return with_adapters
    except ValueError as error:
        raise BadParameterError(
            "strategy-does-not-fit", "peft cannot add 'lora' to this model: {reason}", reason=str(error).splitlines()[0]
        ) from error


def _lora_targets(model: PreTrainedModel) -> str | list[str]:
    """The layers that lora adapts: every linear layer; of a mixture of experts, the attention, since the experts of a
    layer are one stack of matrices; of Mamba, all but the layer that its kernels read directly."""
    linear = [name for name, module in model.named_modules() if isinstance(module, nn.Linear)]
    if any(hasattr(module, "gate_up_proj") and hasattr(module, "num_experts") for module in model.modules()):
        return [name for name in linear if _IN_ATTENTION.search(name)]
    if "mamba" in str(getattr(model.config, "model_type", "")):
        heads = {id(module) for module in (model.get_output_embeddings(),) if module is not None}
        return [n for n in linear if not n.endswith("out_proj") and id(model.get_submodule(n)) not in heads]
    return "all-linear"


def _with_adapters(model: PreTrainedModel, width: int) -> PreTrainedModel:
    from tacit.training.adapters import add_adapters

    if not _has_new_head(model):
        raise BadParameterError(
            "strategy-does-not-fit",
            "adapters are for models that classify, tag or answer, because they cannot be merged into the weights of "
            "a language model: choose lora",
        )
    _train_new_head(model)
    added = set(add_adapters(model, width))
    for name, parameter in model.named_parameters():
        if name in added:
            parameter.requires_grad_(True)
    return model


# IA3 ------------------------------------------------------------------------------------------------------------------


class ScaledLinear(nn.Module):
    """A frozen linear layer with a trained vector l: l * (W x + b), or W (l * x) + b for a feed-forward layer.

    The vector is used by a plain product, which the engine `taps` can follow; peft's own IA3 reshapes it first, and
    only one example at a time would be left.
    """

    def __init__(self, base: nn.Module, *, width: int, before: bool) -> None:
        super().__init__()
        self.base, self.before = base, before
        self.scale = nn.Parameter(torch.ones(width))

    @property
    def weight(self) -> torch.Tensor:
        """Some models look at the type of their weights."""
        return cast("torch.Tensor", self.base.weight)

    def forward(self, value: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.base(value * self.scale) if self.before else self.base(value) * self.scale
        return result

    @torch.no_grad()
    def merged(self) -> nn.Module:
        """The linear layer with the vector multiplied in."""
        rows_are_outputs = isinstance(self.base, nn.Linear)
        by_row = rows_are_outputs != self.before
        self.weight.mul_(self.scale[:, None] if by_row else self.scale)
        bias = self.base.bias
        if isinstance(bias, torch.Tensor) and not self.before:
            bias.mul_(self.scale)
        return self.base


def _with_ia3(model: PreTrainedModel) -> PreTrainedModel:
    """Keys, values and second feed-forward layers of every layer, whatever the model calls them."""
    from transformers.pytorch_utils import Conv1D

    _train_new_head(model)
    heads = {name.rpartition(".")[0] for name in _head_names(model)}
    linear = {name: m for name, m in model.named_modules() if isinstance(m, nn.Linear | Conv1D) and name not in heads}
    added = 0
    for name, module in linear.items():
        before = _FEED_FORWARD.search(name) is not None
        if not before and not _ATTENTION.search(name):
            continue
        width = _widths(module)[0 if before else 1]
        _put(model, name, ScaledLinear(module, width=width, before=before))
        added += 1
    if not added:
        raise BadParameterError(
            "strategy-does-not-fit", "this model has no attention that ia3 could scale: choose another strategy"
        )

    def merge_and_unload() -> PreTrainedModel:
        for name, module in [*model.named_modules()]:
            if isinstance(module, ScaledLinear):
                _put(model, name, module.merged())
        del model.__dict__["merge_and_unload"]
        return model

    # As a PeftModel has it.
    model.__dict__["merge_and_unload"] = merge_and_unload
    return model


def _widths(module: nn.Linear | Conv1D) -> tuple[int, int]:
    """In and out of a linear layer; a Conv1D of GPT-2 keeps its weight the other way around."""
    shape = tuple(int(n) for n in module.weight.shape)
    return (shape[1], shape[0]) if isinstance(module, nn.Linear) else (shape[0], shape[1])


def _put(model: PreTrainedModel, name: str, module: nn.Module) -> None:
    owner, _, last = name.rpartition(".")
    setattr(model.get_submodule(owner), last, module)
