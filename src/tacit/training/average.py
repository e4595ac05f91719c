"""The mean of the weights after each of the last steps, which is saved in place of the last weights.

    saved = (w_{T-n+1} + ... + w_T) / n,    n = ceil(share T) of the T steps of the plan

With noise in every step the weights do not settle: they wander around where the gradients lead them, and the mean of
the last ones has less of that noise than the last one (Polyak and Juditsky 1992). Under differential privacy De et al.
2022 average with weights that fade, and Shejwalkar et al. 2022 ("Recycling scraps") find the plain mean over the last
part of a run at least as good; it has one number to choose, which means the same for runs of any length.

Guarantee: post-processing. The plan accounts for the noisy gradients of all steps together, w_1 to w_T are functions of
these and of what is public, and the mean is one of w_1 to w_T. Which steps count follows from the plan and the option,
before the first step.

Only what is trained is averaged: nothing else changes in a private run.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn


def averaged_steps(share: float | None, steps: int) -> int:
    """Over how many of the last steps a share of all is; 0 without a share.

    >>> averaged_steps(0.5, 9), averaged_steps(1.0, 9), averaged_steps(None, 9)
    (5, 9, 0)
    """
    return 0 if share is None else min(steps, max(1, math.ceil(share * steps)))


@dataclass
class WeightAverage:
    """The mean of some parameters over the steps after the first `before` ones; of none without parameters.

    mean   the mean so far, in the same parts and on the same device as the parameters; empty until there is one
    """

    parameters: Mapping[str, nn.Parameter] = field(default_factory=dict)
    before: int = 0
    mean: dict[str, Tensor] = field(default_factory=dict, init=False)

    @classmethod
    def of(cls, parameters: Mapping[str, nn.Parameter], share: float | None, steps: int) -> WeightAverage:
        """The mean over the last share of so many steps."""
        return cls() if share is None else cls(parameters, steps - averaged_steps(share, steps))

    @torch.no_grad()
    def add(self, done: int) -> None:
        """Take up the weights after so many steps."""
        count = done - self.before
        if count < 1:
            return
        for name, parameter in self.parameters.items():
            value = parameter.detach()
            if count == 1:
                self.mean[name] = value.clone()
            else:
                self.mean[name].add_(value - self.mean[name], alpha=1.0 / count)

    @torch.no_grad()
    def put(self) -> None:
        """Give the parameters their mean."""
        for name, value in self.mean.items():
            self.parameters[name].copy_(value)

    def restore(self, mean: Mapping[str, Tensor]) -> None:
        """Go on from the mean of a checkpoint."""
        own = self.parameters
        self.mean = {name: value.clone().to(own[name].device) for name, value in mean.items() if name in own}
