"""Progress bars of all commands: on a terminal, on standard error, and nowhere else."""

from __future__ import annotations

import time
from contextlib import AbstractContextManager, ExitStack, nullcontext
from types import TracebackType
from typing import Self

from rich.errors import LiveError
from rich.progress import BarColumn, ProgressColumn, TaskID, TextColumn, TimeRemainingColumn
from rich.progress import Progress as RichProgress

from tacit.cli.terminal import error_console, readable_bytes, readable_seconds
from tacit.engines.job import RewriteProgress
from tacit.progress import listening


class Bars:
    """Progress bars with names, one line each; silent if not ``shown`` or without a terminal.

    They appear with the first report, so that lines printed before do not mix with them. Bars that stay (``stays``)
    are all visible and remain on the screen; otherwise only the current one is, until the block ends.
    """

    def __init__(self, *, shown: bool, stays: bool = False, time_left: bool = True) -> None:
        console = error_console()
        columns: list[ProgressColumn] = [BarColumn(), TextColumn("{task.description}", markup=False)]
        if time_left:
            columns.append(TimeRemainingColumn())
        self._stays = stays
        self._lines: dict[str, TaskID] = {}
        self._display = RichProgress(
            *columns, console=console, transient=not stays, disable=not (shown and console.is_terminal)
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._display.stop()

    def show(self, name: str, done: int, total: int | None, text: str | None = None) -> None:
        """Set the bar of this name to ``done`` of ``total`` (None: not known yet); its line reads ``text`` or the
        name."""
        if name not in self._lines:
            self._display.start()
            if not self._stays:
                for line in self._lines.values():
                    self._display.update(line, visible=False)
            self._lines[name] = self._display.add_task(text or name, total=total)
        self._display.update(self._lines[name], completed=done, total=total, description=text or name, visible=True)


class AnnouncedWork:
    """A bar for work deep inside of a mechanism that announces itself (`tacit.progress.announced`), while it lasts."""

    def __init__(self) -> None:
        self._bars: Bars | None = None

    def __call__(self, work: str, done: int, total: int) -> None:
        if self._bars is None:
            self._bars = Bars(shown=True)
        try:
            self._bars.show(work, done, total)
        except LiveError:  # an older rich shows one display at a time, and another one is shown
            return
        if done >= total:
            self._bars.__exit__(None, None, None)
            self._bars = None


class RewriteBar:
    """Bytes done, rates and time left of a rewriting run."""

    def __init__(self, *, shown: bool) -> None:
        self._bars = Bars(shown=shown, time_left=False)
        self._started: tuple[float, RewriteProgress] | None = None
        self._announced = ExitStack()

    def __enter__(self) -> Self:
        self._bars.show("rewriting", 0, None, "preparing")
        self._announced.enter_context(
            listening(lambda work, done, total: self._bars.show("rewriting", done, total, f"preparing: {work}"))
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._announced.close()
        self._bars.__exit__(kind, error, trace)

    def update(self, now: RewriteProgress) -> None:
        """Show how far the run is."""
        if self._started is None:  # the part before a resumed run does not count for its speed
            self._started = time.monotonic(), now
        started, first = self._started
        line = rewriting_line(first, now, time.monotonic() - started)
        self._bars.show("rewriting", now.bytes_done, now.bytes_total, line)


def rewriting_line(first: RewriteProgress, now: RewriteProgress, seconds: float) -> str:
    """Progress in words, with rates since the run began."""
    total = f" of {readable_bytes(now.bytes_total)}" if now.bytes_total else ""
    parts = [f"{readable_bytes(now.bytes_done)}{total}", f"{now.rows:,} rows"]
    if seconds > 0 and now.rows > first.rows:
        parts.append(f"{(now.rows - first.rows) / seconds:,.0f} rows/s")
        parts.append(f"{(now.units - first.units) / seconds:,.0f} tokens/s")
        done = now.bytes_done - first.bytes_done
        if now.bytes_total and done > 0:
            left = seconds * (now.bytes_total - now.bytes_done) / done
            parts.append(f"{readable_seconds(left)} left")
    return ", ".join(parts)


def spinner(text: str, *, shown: bool) -> AbstractContextManager[object]:
    """A line that says what is being done, for work whose length is not known."""
    console = error_console()
    return console.status(text) if shown and console.is_terminal else nullcontext()
