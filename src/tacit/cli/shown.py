"""What commands show while they work."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import ClassVar

from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from tacit.cli.terminal import error_console
from tacit.jobs.config import Config
from tacit.jobs.fields import Quiet as QuietOption
from tacit.progress import StepProgress, WorkProgress


class Quiet(Config):
    """Whether a command shows anything but its result."""

    job: ClassVar[str] = "shown"

    quiet: QuietOption = False


@contextmanager
def progress_bar(description: str, *, shown: bool) -> Iterator[StepProgress | None]:
    """A bar on a terminal that is given (done, total); None anywhere else."""
    console = error_console()
    if not (shown and console.is_terminal):
        yield None
        return
    with Progress(console=console, transient=True) as bar:
        task = bar.add_task(description, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


@contextmanager
def work_bar(*, shown: bool) -> Iterator[WorkProgress | None]:
    """A bar on a terminal whose line says what is being done, given (what, done, total); None anywhere else."""
    console = error_console()
    if not (shown and console.is_terminal):
        yield None
        return
    columns = (BarColumn(), TextColumn("{task.description}"), TimeRemainingColumn())
    with Progress(*columns, console=console) as bar:
        line = bar.add_task("preparing", total=None)

        def show(what: str, done: int, total: int) -> None:
            if bar.tasks[0].total != total:
                bar.reset(line, total=total)
            bar.update(line, completed=done, description=what)

        yield show


def status_line(what: str, *, shown: bool) -> AbstractContextManager[object]:
    """A line on a terminal that says what is being done, while it is."""
    console = error_console()
    return console.status(what) if shown and console.is_terminal else nullcontext()
