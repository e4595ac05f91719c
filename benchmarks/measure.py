"""What the benchmark programs share: a stopwatch, one subprocess per measured part, and the table at the end.

A part is a function of one program, run in its own Python process (`python PROGRAM --part NAME`), so that its peak
memory is its own. The program that starts the parts imports nothing large: Linux counts the memory of the process that
starts another one into the peak of the new one.

CPU seconds (`time.process_time`, all threads of the process) are the main figure, because they mean the same on a busy
machine; wall seconds stand beside them. Nothing here checks a limit: targets are printed next to what was measured.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

Part = Callable[..., dict[str, Any]]
Facts = dict[str, Any]

THREAD_VARIABLES = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
EXTRAPOLATED = "~"
"""Stands before every number that was not measured in full."""


@dataclass
class Cost:
    """CPU and wall seconds."""

    cpu: float = 0.0
    wall: float = 0.0

    def add(self, cpu: float, wall: float) -> None:
        self.cpu += cpu
        self.wall += wall


@dataclass
class Stopwatch:
    """Adds up the cost of named laps."""

    laps: dict[str, Cost] = field(default_factory=dict)

    @contextlib.contextmanager
    def lap(self, name: str) -> Iterator[None]:
        cost = self.laps.setdefault(name, Cost())
        cpu, wall = time.process_time(), time.perf_counter()
        try:
            yield
        finally:
            cost.add(time.process_time() - cpu, time.perf_counter() - wall)

    def around(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """The same function, with each call added to a lap."""

        def timed(*arguments: Any) -> Any:
            with self.lap(name):
                return function(*arguments)

        return timed

    def cpu(self, name: str) -> float:
        return self.laps[name].cpu if name in self.laps else 0.0

    def as_facts(self) -> Facts:
        return {name: {"cpu": cost.cpu, "wall": cost.wall} for name, cost in self.laps.items()}


def peak_memory() -> int:
    """Peak resident memory of this process so far, in bytes."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def say(message: str) -> None:
    """Progress, on standard error."""
    print(message, file=sys.stderr, flush=True)


# Parts in their own process -----------------------------------------------------------------------------------------


def run_part(
    program: str | Path,
    part: str,
    arguments: Facts,
    *,
    threads: int | None = 1,
    environment: dict[str, str] | None = None,
) -> Facts:
    """Run one part of a program in a new process and return what it measured."""
    variables = {**os.environ, **(environment or {})}
    if threads is not None:
        variables.update(dict.fromkeys(THREAD_VARIABLES, str(threads)))
    with tempfile.TemporaryDirectory(prefix="tacit-benchmark-") as folder:
        result = Path(folder) / "result.json"
        # Numbers that Tacit keeps between runs (diameters, output sets) are computed anew in each part.
        variables.setdefault("TACIT_CACHE", str(Path(folder) / "cache"))
        command = [sys.executable, str(program), "--part", part, json.dumps(arguments), str(result)]
        done = subprocess.run(command, env=variables, stdout=sys.stderr, check=False)
        if done.returncode != 0:
            raise SystemExit(f"the part '{part}' of {Path(program).name} failed (exit code {done.returncode})")
        return dict(json.loads(result.read_text(encoding="utf-8")))


def answer_part(parts: dict[str, Part]) -> None:
    """When this process was started for one part: run it, leave its result, and end."""
    if len(sys.argv) == 5 and sys.argv[1] == "--part":
        _, _, name, arguments, result = sys.argv
        found = parts[name](**json.loads(arguments))
        Path(result).write_text(json.dumps(found), encoding="utf-8")
        raise SystemExit(0)


# What is printed ----------------------------------------------------------------------------------------------------


def arguments_parser(description: str | None) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, metavar="PATH", help="write all numbers to this file as well")
    return parser


def machine() -> Facts:
    """The machine in general terms, with the load at this moment."""
    return {
        "processor": platform.machine(),
        "cores": os.cpu_count(),
        "system": platform.system(),
        "python": platform.python_version(),
        "load average": [round(load, 2) for load in os.getloadavg()],
    }


def machine_line(before: Facts, after: Facts) -> str:
    return (
        f"{before['cores']} {before['processor']} cores, {before['system']}, Python {before['python']}; "
        f"load average (1 min) {before['load average'][0]} at the start, {after['load average'][0]} at the end"
    )


@dataclass
class Report:
    """Tables for the terminal, and the same numbers as JSON."""

    program: str
    facts: Facts = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    _tables: list[Table] = field(default_factory=list)
    _before: Facts = field(default_factory=machine)

    def table(self, title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        table = Table(title=title, title_justify="left")
        for position, column in enumerate(columns):
            table.add_column(column, justify="left" if position == 0 else "right")
        for row in rows:
            table.add_row(*row)
        self._tables.append(table)

    def show(self, json_path: Path | None) -> None:
        after = machine()
        # A file or a pipe gets whole lines, whatever the width of the terminal.
        console = Console() if sys.stdout.isatty() else Console(width=160)
        for table in self._tables:
            console.print(table)
        for note in [*self.notes, machine_line(self._before, after)]:
            console.print(note, markup=False, highlight=False)
        if json_path is not None:
            everything = {"program": self.program, "before": self._before, "after": after, "notes": self.notes}
            json_path.write_text(json.dumps({**everything, **self.facts}, indent=1) + "\n", encoding="utf-8")


def seconds(value: float, *, extrapolated: bool = False) -> str:
    digits = 3 if value < 1 else 2 if value < 10 else 1 if value < 1000 else 0
    return f"{EXTRAPOLATED if extrapolated else ''}{value:,.{digits}f}"


def gigabytes(value: float) -> str:
    return f"{value / 1e9:.2f} GB"


def verdict(value: float, target: float) -> str:
    """Whether a target is met, for reading only."""
    return "met" if value <= target else "MISSED"
