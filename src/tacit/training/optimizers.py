"""Optimizers and schedules of the learning rate, by name."""

from __future__ import annotations

import math

import torch
from torch import nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR, LRScheduler

from tacit.training.adam_bc import AdamBC

OPTIMIZERS = ("adam", "adamw", "sgd", "adam-bc")
SCHEDULES = ("constant", "linear", "cosine")
LEAST_FACTOR = 1e-3
"""Of the learning rate, which never falls to 0."""


def optimizer_for(
    parameters: list[nn.Parameter], name: str, rate: float, weight_decay: float, momentum: float = 0.9
) -> Optimizer:
    """The optimizer of this name; only "sgd" has the momentum."""
    if name == "sgd":
        return torch.optim.SGD(parameters, lr=rate, momentum=momentum, weight_decay=weight_decay)
    if name == "adam-bc":
        return AdamBC(parameters, rate, weight_decay)
    kind = torch.optim.AdamW if name == "adamw" else torch.optim.Adam
    return kind(parameters, lr=rate, weight_decay=weight_decay)


def scheduler_for(optimizer: Optimizer, name: str, steps: int) -> LRScheduler:
    """The schedule of this name over so many steps."""

    def factor(step: int) -> float:
        done = min(1.0, step / steps)
        if name == "constant":
            return 1.0
        return 1.0 - done if name == "linear" else 0.5 * (1.0 + math.cos(math.pi * done))

    return LambdaLR(optimizer, lambda step: max(factor(step), LEAST_FACTOR))
