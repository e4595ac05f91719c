"""Which weights are trained. Fewer weights take less noise; which choice is best depends on task and budget.

full             everything
no-embeddings    everything but the input embeddings
last-K           the last K layers and the head (last-2)
head             the head only, on a frozen encoder
bias             biases, layer norms and the head (BiTFiT; Bu et al. 2022)
lora, ia3        small matrices or vectors beside frozen weights, and the head (Hu et al. 2022; Liu et al. 2022)
"""

from __future__ import annotations

import re
from typing import Any

from torch import nn

from tacit.errors import BadParameterError, require

STRATEGIES = ("full", "no-embeddings", "last-2", "head", "bias", "lora", "ia3")
_LAYER = re.compile(r"\.(?:layer|layers|h|block|blocks)\.(\d+)\.")


def apply_strategy(model: Any, strategy: str, *, rank: int = 8) -> Any:
    """The model with exactly the weights of the strategy trainable; for lora and ia3, the model with them added."""
    if strategy in ("lora", "ia3"):
        return _with_small_weights(model, strategy, rank)
    last = re.fullmatch(r"last-(\d+)", strategy)
    if strategy not in STRATEGIES and last is None:
        raise BadParameterError(f"there is no strategy '{strategy}': choose {', '.join(STRATEGIES)} (last-K for any K)")
    heads = _head_names(model)
    embeddings = {id(p) for p in _input_embeddings(model)}
    layers = [int(found[1]) for name, _ in model.named_parameters() if (found := _LAYER.search(f".{name}"))]
    count = max(layers, default=-1) + 1
    if last is not None and int(last[1]) > count:
        raise BadParameterError(f"the model has {count} layers, fewer than '{strategy}' asks for")
    for name, parameter in model.named_parameters():
        found = _LAYER.search(f".{name}")
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
            wanted = in_head or (found is not None and int(found[1]) >= count - int(last[1]))
        parameter.requires_grad_(wanted)
    if not any(p.requires_grad for p in model.parameters()):
        raise BadParameterError(f"this model has nothing that the strategy '{strategy}' would train")
    return model


def _head_names(model: Any) -> set[str]:
    """Weights outside the pre-trained body; for language models, whose head is tied to the body, none."""
    body = getattr(model, "base_model", None)
    inner = {id(p) for p in body.parameters()} if isinstance(body, nn.Module) and body is not model else set()
    return {name for name, p in model.named_parameters() if id(p) not in inner} if inner else set()


def _input_embeddings(model: Any) -> list[nn.Parameter]:
    found = [m for name, m in model.named_modules() if isinstance(m, nn.Embedding)]
    return [p for module in found for p in module.parameters()]


def _is_norm(model: Any, name: str) -> bool:
    owner = model.get_submodule(name.rpartition(".")[0]) if "." in name else model
    return "norm" in type(owner).__name__.lower()


def _with_small_weights(model: Any, strategy: str, rank: int) -> Any:
    peft = require("peft", extra="training", purpose=f"the strategy '{strategy}'")
    heads = sorted({name.split(".")[0] for name in _head_names(model)})
    shared: dict[str, Any] = {"modules_to_save": heads or None}
    from transformers.pytorch_utils import Conv1D

    transposed = any(isinstance(module, Conv1D) for module in model.modules())
    try:
        if strategy == "lora":
            config = peft.LoraConfig(
                r=rank, lora_alpha=2 * rank, target_modules="all-linear", fan_in_fan_out=transposed, **shared
            )
        else:
            config = peft.IA3Config(fan_in_fan_out=transposed, **shared)
        return peft.get_peft_model(model, config)
    except ValueError as error:
        raise BadParameterError(f"peft cannot add '{strategy}' to this model: {str(error).splitlines()[0]}") from error
