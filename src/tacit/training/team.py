"""Several processes that train one model together (started by `torchrun`; see docs/training.md).

Every process knows the key, draws the same records, works on its share of them, and adds the same noise to the same
total. So the released numbers, the accounting and the card are those of one process; only the first one writes.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, cuda, distributed

from tacit.errors import TacitError
from tacit.training.memory import is_out_of_memory

Sent = TypeVar("Sent")


class WorkerLostError(TacitError):
    """Another process of the team has ended before the run has."""


@contextmanager
def _all_there() -> Iterator[None]:
    """Say what to do when another process does not answer any more; nothing of the step has been released then."""
    try:
        yield
    except RuntimeError as error:
        if is_out_of_memory(error):
            raise
        raise WorkerLostError(
            "worker-lost",
            "another of the processes that train together has ended or cannot be reached (its own output says why): "
            "give the same command again with {option.resume}, and the run goes on from its last checkpoint with the "
            "same noise",
        ) from error


@dataclass(frozen=True)
class Team:
    """The processes that train together; this one is number `rank` of `size`."""

    rank: int = 0
    size: int = 1

    @classmethod
    def from_environment(cls) -> Team:
        """The team that torchrun describes in the environment; one process without it."""
        size = int(os.environ.get("WORLD_SIZE", "1"))
        if size == 1:
            return cls()

        if not distributed.is_initialized():
            # Sums of weights are added up where they are, facts of a step on the processor.
            distributed.init_process_group("cpu:gloo,cuda:nccl" if cuda.is_available() else "gloo")
        return cls(distributed.get_rank(), distributed.get_world_size())

    @property
    def first(self) -> bool:
        return self.rank == 0

    def share_of(self, records: NDArray[np.int64]) -> NDArray[np.int64]:
        return records[self.rank :: self.size]

    def add_up(self, values: Tensor) -> Tensor:
        """The sum over all processes, in place."""
        if self.size > 1:
            with _all_there():
                distributed.all_reduce(values)
        return values

    def any_has(self, something: bool) -> bool:
        """Whether any process has something; all ask at the same time."""
        return bool(self.add_up(torch.tensor(float(something))) > 0)

    def smallest(self, number: int) -> int:
        """The smallest of the numbers of all processes; all ask at the same time."""
        smallest = torch.tensor(number)
        if self.size > 1:
            with _all_there():
                distributed.all_reduce(smallest, distributed.ReduceOp.MIN)
        return int(smallest)

    def from_first(self, thing: Sent | None) -> Sent:
        """The value of the first process, on every process; values of the others are ignored."""
        if self.size == 1:
            return cast("Sent", thing)

        box = [thing]
        with _all_there():
            distributed.broadcast_object_list(box, src=0)
        return cast("Sent", box[0])

    def same_weights(self, parameters: list[Tensor]) -> None:
        """Give every process the weights of the first."""
        if self.size > 1:
            with _all_there():
                for parameter in parameters:
                    distributed.broadcast(parameter.data, src=0)

    def leave(self) -> None:
        if self.size > 1:
            distributed.destroy_process_group()
