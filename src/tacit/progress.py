"""Callbacks through which long work reports how far it is; each type is defined here and nowhere else."""

from __future__ import annotations

from collections.abc import Callable

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
