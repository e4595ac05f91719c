"""Adam that knows how much of its second moment is noise (DP-AdamBC; Tang, Shpilevskiy & Lécuyer, AAAI 2024).

A private gradient is g + N(0, s^2) in every number, with a public s = sigma C / batch. Adam divides by the root of a
running mean v of its squares, which is the mean of g^2 *plus s^2*: where noise is larger than gradients, all numbers
are divided by the same s and nothing of Adam's adaptation is left. Here the known part is taken off again:

    step = m / sqrt( max(v - phi, floor) ),      phi = the running mean of s^2, with the weights of v

The running mean of the squares of noise alone has the standard deviation phi sqrt(2 w), where w is the sum of the
squared weights of the mean. What is left of v within that is indistinguishable from noise, so it is the floor; the
paper has a constant to tune in its place.

Guarantee: post-processing. It reads the noisy gradients and public numbers, nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

BETAS = (0.9, 0.999)
LEAST = 1e-16
"""Of the corrected second moment, where there is no noise at all."""


class AdamBC(Optimizer):
    """Adam with a second moment that is corrected for noise; weights decay by themselves, as in AdamW.

    deviation   the standard deviation of the noise in each number of the gradient that is about to be used
    """

    deviation: Callable[[], float]

    def __init__(self, parameters: Iterable[nn.Parameter], lr: float, weight_decay: float = 0.0) -> None:
        super().__init__(parameters, {"lr": lr, "weight_decay": weight_decay})
        self.deviation = lambda: 0.0

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        """Move the weights by the gradients that lie on them."""
        variance = float(self.deviation()) ** 2
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    self._move(parameter, variance, group["lr"], group["weight_decay"])

    def _move(self, parameter: nn.Parameter, variance: float, rate: float, decay: float) -> None:
        gradient = cast("Tensor", parameter.grad)
        state = self.state[parameter]
        if not state:
            state.update(steps=0, noise=0.0, mean=torch.zeros_like(parameter), square=torch.zeros_like(parameter))
        first, second = BETAS
        state["steps"] += 1
        state["noise"] = second * state["noise"] + (1.0 - second) * variance
        state["mean"].lerp_(gradient, 1.0 - first)
        state["square"].mul_(second).addcmul_(gradient, gradient, value=1.0 - second)
        weight = 1.0 - second ** state["steps"]
        phi = state["noise"] / weight
        floor = max(LEAST, phi * math.sqrt(2.0 * squared_weights(second, state["steps"])))
        spread = (state["square"] / weight - phi).clamp_min_(floor).sqrt_()
        parameter.mul_(1.0 - rate * decay)
        parameter.addcdiv_(state["mean"], spread, value=-rate / (1.0 - first ** state["steps"]))


def squared_weights(beta: float, steps: int) -> float:
    """The sum of the squared weights of a running mean after so many steps, whose weights add up to 1.

    >>> squared_weights(0.9, 1)
    1.0
    """
    share = (1.0 - beta) / (1.0 + beta)
    return share * (1.0 + beta**steps) / (1.0 - beta**steps)
