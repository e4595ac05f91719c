"""One forward and backward pass: which parameter is used where, and the taps that receive its gradients."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.overrides import resolve_name

from tacit.training.gradients.examples import (
    ParameterUses,
    UnsupportedModelError,
)

MARK = "output_of_a_tap"


class _Context(Protocol):
    """The values of a forward pass that its backward pass needs."""

    listener: Callable[[Tensor], None]


class _Tap(torch.autograd.Function):
    """The identity; on the way back it hands the gradient to a listener. The anchor keeps it in the graph even where
    nothing below it needs a gradient."""

    @staticmethod
    def forward(ctx: _Context, value: Tensor, anchor: Tensor, listener: Callable[[Tensor], None]) -> Tensor:
        ctx.listener = listener
        return value.view_as(value)

    @staticmethod
    def backward(ctx: _Context, *gradients: Tensor) -> tuple[Tensor, None, None]:
        ctx.listener(gradients[0].detach())
        return gradients[0], None, None


def tapped(value: Tensor, anchor: Tensor, listener: Callable[[Tensor], None]) -> Tensor:
    result: Tensor = _Tap.apply(value, anchor, listener)  # type: ignore[no-untyped-call]
    result.__dict__[MARK] = True
    return result


def is_tap(value: Tensor) -> bool:
    """Whether a tensor is the output of a tap."""
    return MARK in value.__dict__


@dataclass
class TapSite:
    """One place where a parameter is used: how the batch lies in its output."""

    layout: str  # "batch": axis 0; "rows": axis 0 is batch x positions; "one": axis 0 has length 1 and is broadcast


class TapPass:
    """One forward and backward pass over a batch of known size.

    names   of the trainable parameters, by `id`
    sites   how the batch lies in each use of a parameter; a learning pass adds to it
    """

    def __init__(
        self, names: Mapping[int, str], sites: dict[tuple[str, int], TapSite], size: int, *, learning: bool
    ) -> None:
        self.names = names
        self.sites = sites
        self.size = size
        self.learning = learning
        self.records: dict[str, ParameterUses] = defaultdict(ParameterUses)
        self.anchor = torch.zeros((), requires_grad=True)
        self.unknown: dict[str, set[str]] = defaultdict(set)
        self._uses: dict[str, int] = defaultdict(int)
        self.relative: Tensor | None = None
        # What was made from a weight alone, by `id`; kept as long as the pass, since an id is given to the next one.
        self.derived: dict[int, object] = {}

    def name_of(self, tensor: object) -> str | None:
        return self.names.get(id(tensor)) if isinstance(tensor, nn.Parameter) else None

    def note_unknown(self, func: Callable[..., Any], args: Sequence[object]) -> None:
        for item in args:
            name = self.name_of(item)
            if name is not None:
                self.unknown[name].add(str(resolve_name(func) or func))

    def tap(self, output: Tensor, site: str, listen: Callable[[Tensor], None]) -> Tensor:
        """The output with a listener that is handed its gradient as (B, positions, ...)."""
        layout = self._layout(site, output)
        size = self.size
        if layout == "one":
            output = output.expand(size, *output.shape[1:])
        if layout == "rows":
            return tapped(output, self.anchor, lambda g: listen(g.reshape(size, -1, *g.shape[1:])))
        return tapped(output, self.anchor, lambda g: listen(_with_positions(g)))

    def _layout(self, site: str, output: Tensor) -> str:
        number = self._uses[site]
        # A layer that will be computed again is used then.
        self._uses[site] += int(torch.is_grad_enabled())
        # Recurrent models use a weight once per step: all uses beyond the first few are alike.
        key = (site, min(number, 7))
        first = int(output.shape[0]) if output.dim() else 0
        known = self.sites.get(key)
        if self.learning:
            seen = _layout_of(first, self.size)
            if seen is None:
                raise UnsupportedModelError(
                    "batch-axis-unknown",
                    "'{layer}' is used with an output of shape {shape} for {examples} examples: which part belongs "
                    "to which example cannot be told",
                    layer=site,
                    shape=tuple(output.shape),
                    examples=self.size,
                )
            if known is not None and known.layout != seen:
                raise UnsupportedModelError(
                    "batch-axis-unknown",
                    "'{layer}' has its batch in different places for different batch sizes",
                    layer=site,
                )
            self.sites[key] = TapSite(seen)
            return seen
        if known is None:
            raise UnsupportedModelError(
                "layer-used-otherwise",
                "'{layer}' is used in a way that did not occur when the model was checked: check it in training mode",
                layer=site,
            )
        expected = {"batch": first == self.size, "one": first == 1, "rows": first % self.size == 0}
        if not expected[known.layout]:
            raise UnsupportedModelError(
                "layer-used-otherwise",
                "'{layer}' has an output of shape {shape}, unlike before",
                layer=site,
                shape=tuple(output.shape),
            )
        return known.layout

    def sides(self, value: Tensor, site_gradient: Tensor) -> Tensor:
        """An input in the layout of the gradient at its output: (B, positions, ...)."""
        positions = site_gradient.shape[1]
        if value.shape[0] == 1 and self.size > 1:
            value = value.expand(self.size, *value.shape[1:])
        return value.reshape(self.size, positions, -1)


class KeptInput:
    """An input, kept for the way back; refused if it was changed in place in between."""

    def __init__(self, value: Tensor, name: str) -> None:
        self._value = value.detach()
        self._version = self._value._version
        self.name = name

    @property
    def value(self) -> Tensor:
        if self._value._version != self._version:
            raise UnsupportedModelError(
                "changed-in-place", "an input of '{name}' was changed in place after it was used", name=self.name
            )
        return self._value


def _layout_of(first: int, size: int) -> str | None:
    if first == size:
        return "batch"
    if first == 1:
        return "one"
    return "rows" if first and first % size == 0 else None


def _with_positions(gradient: Tensor) -> Tensor:
    """(B, ..., width) as (B, positions, width)."""
    if gradient.dim() == 1:
        return gradient[:, None, None]
    if gradient.dim() == 2:
        return gradient[:, None]
    return gradient.flatten(1, -2) if gradient.dim() > 3 else gradient
