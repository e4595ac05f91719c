"""The private folder of an unfinished run: the key of its noise, written once, and its last checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from pathlib import Path
from typing import NotRequired, Protocol, TypedDict

import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from tacit.atomic import draft_file
from tacit.card import Card
from tacit.devices import on_processor
from tacit.errors import BadInputError
from tacit.guarantee import Guarantee
from tacit.lineage import CARD
from tacit.noise.kept_key import check_private_folder, erase, keep_key, kept_key
from tacit.noise.source import KEY_BYTES
from tacit.training.average import WeightAverage
from tacit.training.clipping import Clipping, QuantileClipping
from tacit.training.private_folder import STATE, holds_something, private_folder, refuse_private_part
from tacit.training.sharding import gathered, like, optimizer_state_like

KEY = "noise.key"


class RunState(Enum):
    """How far the run in a folder has come."""

    ABSENT = auto()
    UNFINISHED = auto()
    FINISHED = auto()


def run_state(folder: Path) -> RunState:
    """The state of the run in a folder. Its checkpoint is removed last, when the model and its card are there."""
    if (private_folder(folder) / STATE).exists():
        return RunState.UNFINISHED
    return RunState.FINISHED if (folder / CARD).exists() else RunState.ABSENT


def check_run_folder(folder: Path, *, resume: bool) -> None:
    """Nothing if a run can begin in a folder, or go on there."""
    unfinished = run_state(folder) is RunState.UNFINISHED
    if resume and not unfinished:
        raise BadInputError(
            "no-unfinished-run",
            "there is no unfinished run in {folder}: start one without {option.resume}",
            folder=folder,
        )
    if resume:
        return
    if unfinished:
        raise BadInputError(
            "unfinished-run",
            "there is an unfinished run in {folder}: go on with {option.resume}, or give another folder",
            folder=folder,
        )
    if holds_something(folder):
        raise BadInputError("folder-not-empty", "{folder} is not empty: give another folder", folder=folder)
    refuse_private_part(folder)


def read_guarantee(folder: Path) -> Guarantee:
    """The guarantee on the card of a finished run."""
    return Card.of_file(folder / CARD).guarantee


class Checkpoint(TypedDict):
    """The state of a run after `step` steps; `fingerprint` describes the run that wrote it."""

    step: int
    parameters: dict[str, Tensor]
    optimizer: dict[str, object]
    scheduler: dict[str, object]
    bound: float
    fingerprint: str
    step_state: NotRequired[dict[str, Tensor]]
    average: NotRequired[dict[str, Tensor]]


@dataclass(frozen=True)
class Beginning:
    """Where a run begins: the key of its noise, and the checkpoint that it goes on from, if it does."""

    key: bytes
    checkpoint: Checkpoint | None = None


class HasState(Protocol):
    """A step that remembers something between steps."""

    def state(self) -> dict[str, Tensor]: ...

    def restore(self, state: Mapping[str, Tensor]) -> None: ...


@dataclass(frozen=True)
class Training:
    """All that changes from step to step."""

    parameters: Mapping[str, nn.Parameter]
    optimizer: Optimizer
    scheduler: LRScheduler
    clipping: Clipping | None
    step: HasState | None = None
    average: WeightAverage = field(default_factory=WeightAverage)

    def save(self, folder: Path, step: int, fingerprint: str, *, write: bool = True) -> None:
        """Replace the checkpoint in the private part of `folder`. Where weights lie in parts in several processes all
        of them call it, and one of them is to `write`; whole as it is, any number of processes can go on from it."""
        checkpoint = Checkpoint(
            step=step,
            parameters={name: gathered(p.detach(), keep=write) for name, p in self.parameters.items()},
            optimizer=gathered(self.optimizer.state_dict(), keep=write),
            scheduler=self.scheduler.state_dict(),
            bound=0.0 if self.clipping is None else float(self.clipping.bound),
            fingerprint=fingerprint,
            step_state={} if self.step is None else on_processor(self.step.state()),
            average=gathered(self.average.mean, keep=write),
        )
        if not write:
            return
        with draft_file(private_folder(folder) / STATE) as draft:
            torch.save(checkpoint, draft)

    @torch.no_grad()
    def restore(self, checkpoint: Checkpoint) -> None:
        """Put everything back to where it was at the checkpoint."""
        for name, value in checkpoint["parameters"].items():
            self.parameters[name].copy_(like(value, self.parameters[name]))
        optimizer = optimizer_state_like(checkpoint["optimizer"], list(self.parameters.values()))
        self.optimizer.load_state_dict(optimizer)
        self.scheduler.load_state_dict(checkpoint["scheduler"])
        if isinstance(self.clipping, QuantileClipping):
            self.clipping.bound = float(checkpoint["bound"])
        if self.step is not None:
            self.step.restore(checkpoint.get("step_state", {}))
        self.average.restore(
            {name: like(value, self.parameters[name]) for name, value in checkpoint.get("average", {}).items()}
        )


def read_checkpoint(folder: Path) -> tuple[bytes, Checkpoint]:
    """The key and the checkpoint of the unfinished run in `folder`."""
    private = private_folder(folder)
    check_private_folder(private)
    try:
        key = kept_key(private / KEY, KEY_BYTES)
    except FileNotFoundError:
        raise BadInputError(
            "noise-key-missing",
            "the key of the noise is missing in {folder}, and the run cannot go on with other noise: start anew in "
            "another folder",
            folder=private,
        ) from None
    checkpoint: Checkpoint = torch.load(private / STATE, weights_only=True)
    return key, checkpoint


def write_key(folder: Path, key: bytes) -> None:
    """Once, in a file of its own: a checkpoint is written many times, and each would leave a copy on the disk."""
    private = private_folder(folder)
    private.mkdir(parents=True, exist_ok=True, mode=0o700)
    check_private_folder(private)
    keep_key(private / KEY, key)


def forget(folder: Path) -> None:
    """Remove the checkpoint and destroy the key: the run is finished."""
    private = private_folder(folder)
    (private / STATE).unlink()
    erase(private / KEY)
