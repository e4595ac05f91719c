"""Callbacks through which long work reports how far it is; each type is defined here and nowhere else."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

StepProgress = Callable[[int, int], None]
"""Called with (steps done, steps in all)."""

WorkProgress = Callable[[str, int, int], None]
"""Called with (name of the work, steps done, steps in all)."""


def steps_of(progress: WorkProgress | None) -> Callable[[str], StepProgress]:
    """A function from the name of a piece of work to the callback for its steps.

    Without ``progress`` the callbacks do nothing.
    """
    if progress is None:
        return lambda work: lambda done, total: None
    return lambda work: lambda done, total: progress(work, done, total)


_listener: ContextVar[WorkProgress | None] = ContextVar("listener", default=None)


@contextmanager
def listening(progress: WorkProgress) -> Iterator[None]:
    """Inside, `announced` work reports to this callback: work so deep inside that nobody can hand it a callback."""
    before = _listener.set(progress)
    try:
        yield
    finally:
        _listener.reset(before)


def announced(work: str) -> StepProgress:
    """A callback for the steps of a piece of work, which tells whoever is `listening`; otherwise it does nothing."""
    return steps_of(_listener.get())(work)
