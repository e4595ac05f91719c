"""Whether an error of torch means that memory ran out."""

from __future__ import annotations

import torch


def is_out_of_memory(error: BaseException) -> bool:
    """Graphics cards have an error of their own; for the main memory torch raises a RuntimeError that only its words
    tell apart. Errors of Tacit are no RuntimeErrors, so no sentence of ours is read here."""
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    return isinstance(error, RuntimeError) and "memory" in str(error).lower()
