"""Mixtures of experts (Mixtral and its kin): each word goes through some of several small networks.

The weights of all experts lie in one tensor (experts, out, in), and the words of all examples that chose an expert go
through it together. While this is active they do so one expert after another, each word's example is remembered, and
what an expert's slice of the weight receives is sorted by example.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from tacit.training.gradients.examples import Outer, ParameterUses, UnsupportedModelError
from tacit.training.gradients.taps.passes import KeptInput, TapPass, tapped

WEIGHTS = ("gate_up_proj", "down_proj")
AS_USUAL = {"has_gate": True, "has_bias": False, "is_transposed": False, "has_post_expert_norm": False}


@contextmanager
def tapped_experts(model: nn.Module, pass_: TapPass) -> Iterator[None]:
    """Taps at the experts of every layer that has trainable ones, while this is active."""
    changed = []
    for module in model.modules():
        if all(getattr(module, name, None) is value for name, value in AS_USUAL.items()) and any(
            pass_.name_of(getattr(module, weight, None)) for weight in WEIGHTS
        ):
            module.__dict__["forward"] = _forward(pass_, module)
            changed.append(module)
    try:
        yield
    finally:
        for module in changed:
            del module.__dict__["forward"]


def _forward(pass_: TapPass, module: nn.Module) -> Callable[[Tensor, Tensor, Tensor], Tensor]:
    gated = cast("Callable[[Tensor], Tensor]", module._apply_gate)

    def forward(hidden_states: Tensor, top_k_index: Tensor, top_k_weights: Tensor) -> Tensor:
        if hidden_states.dim() != 2 or hidden_states.shape[0] % pass_.size:
            raise UnsupportedModelError(
                "batch-axis-unknown",
                "'{layer}' is used with an output of shape {shape} for {examples} examples: which part belongs to "
                "which example cannot be told",
                layer=type(module).__name__,
                shape=tuple(hidden_states.shape),
                examples=pass_.size,
            )
        up, down = (cast("Tensor", getattr(module, name)) for name in WEIGHTS)
        result = torch.zeros_like(hidden_states)
        for expert in range(up.shape[0]):
            words, choice = torch.where(top_k_index == expert)
            if not len(words):
                continue
            examples = words // (hidden_states.shape[0] // pass_.size)
            inner = gated(_linear(pass_, hidden_states[words], up, expert, examples))
            outer = _linear(pass_, inner, down, expert, examples) * top_k_weights[words, choice, None]
            result = result.index_add(0, words, outer.to(result.dtype))
        return result

    return forward


def _linear(pass_: TapPass, value: Tensor, weight: Tensor, expert: int, examples: Tensor) -> Tensor:
    """W x of one expert, for words of these examples, which are in order."""
    name = pass_.name_of(weight)
    if name is None:
        return F.linear(value, weight[expert])
    output = F.linear(value, weight.detach()[expert])
    kept = KeptInput(value.to(output.dtype), name)

    def listen(gradient: Tensor) -> None:
        rows, columns = (_by_example(side, examples, pass_.size) for side in (gradient, kept.value))
        record = pass_.records[name].slices.setdefault(expert, ParameterUses())
        record.outer.append(Outer(rows, columns))

    return tapped(output, pass_.anchor, listen)


def _by_example(values: Tensor, examples: Tensor, size: int) -> Tensor:
    """(words, width) as (B, most words of an example, width), filled up with zeros."""
    counts = torch.bincount(examples, minlength=size)
    first = counts.cumsum(0) - counts
    place = torch.arange(len(examples), device=examples.device) - first[examples]
    made = values.new_zeros(size, int(counts.max()), values.shape[1])
    made[examples, place] = values
    return made
