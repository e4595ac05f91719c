"""How a job tells what it is doing."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[str, int, int], None]
"""(what is being done, so much, of so much)"""

Update = Callable[[int, int], None]
"""(so much, of so much)"""


def bar_of(progress: Progress | None) -> Callable[[str], Update]:
    """The same for work that names itself first and counts later; silent without anybody to tell."""
    if progress is None:
        return lambda what: lambda done, total: None
    return lambda what: lambda done, total: progress(what, done, total)
