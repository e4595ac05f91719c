"""The memory that tensors take while something runs: counted, not measured, so that equal steps give equal numbers.

What a process holds says little about one step of it: libraries, and memory that is kept for later, are many times
larger. Here every result of an operation is noticed when it is made, and forgotten when its storage is.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class _Storages(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Bytes of the storages that were made while it is active and are still there, and the most there were."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._sizes: dict[int, int] = {}
        self.now: int = 0
        self.most: int = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        for leaf in tree_leaves(result):
            if isinstance(leaf, torch.Tensor):
                self._notice(leaf.untyped_storage())
        return result

    def _notice(self, storage: torch.UntypedStorage) -> None:
        number = storage._cdata
        if number in self._sizes:
            return
        self._sizes[number] = storage.nbytes()
        self.now += self._sizes[number]
        self.most = max(self.most, self.now)
        weakref.finalize(storage, self._forget, number)

    def start_anew(self) -> None:
        """The most is from now on that of what comes."""
        self.most = self.now

    def _forget(self, number: int) -> None:
        self.now -= self._sizes.pop(number, 0)


def most_megabytes(work: Callable[[Callable[[], None]], object]) -> float:
    """The most memory that tensors made by `work` took at one time. It is given what makes the count start anew, as
    when its preparations are over. What they made and kept still counts."""
    storages = _Storages()
    with storages:
        work(storages.start_anew)
    return storages.most / 1e6
