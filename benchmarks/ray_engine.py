"""The cluster engine against one worker, and against the local engine: whole commands, as somebody types them.

Model-bound: texts rewritten by the private codebook (a sentence encoder per worker), with one worker and with two;
target: 1.6 times as fast.

Overhead: short rows (SST-2 train again and again) rewritten by `santext` with `--workers 2`, by the local engine and
with `--engine ray`. Each command is run on a file of one row as well, which is its start and its end: Python and its
imports, the loading of the vectors, and with Ray all its processes. What a command takes beyond that is its work.
Target: the work takes under 15 % more with Ray. The start stands beside it. Both engines take turns, --runs times, and
the fastest run of each counts. Nothing is extrapolated: a longer job is measured with more --rows, or with --minutes,
which takes as many rows as the local engine needs so long for (a trial of 500,000 rows tells how many).

CPU seconds are those of all processes of a command. On a machine that is busy with something else the wall clock says
little: "by others" tells how many cores everything else took meanwhile, and a target is judged only where that is next
to nothing. Before the clock each command has been planned once (--dry-run), so that the numbers of the card are
kept and the modules are compiled, as they are on any second run.

    python benchmarks/ray_engine.py                                     some fifteen minutes
    python benchmarks/ray_engine.py --rows 1000000 --documents 2000 --runs 1
    python benchmarks/ray_engine.py --documents 0                       the overhead only
    python benchmarks/ray_engine.py --documents 0 --minutes 10          the overhead on a job of ten minutes
"""

from __future__ import annotations

import contextlib
import os
import random
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from corpus import FROM_CORPUS, MADE_UP, SEED, SMALL, cache_folder, sentences, vectors_path
from measure import THREAD_VARIABLES, Facts, Report, arguments_parser, say, seconds
from startup import command_line
from streaming import IDLE_ENOUGH, busy_seconds

SPEEDUP_TARGET, OVERHEAD_TARGET = 1.6, 0.15
FILES = 16
TRIAL_ROWS = 500_000
ENGINES = ("local", "ray")


def text_file(rows: int) -> Path:
    """So many sentences, shuffled with a fixed seed."""
    path = cache_folder() / f"sst2-{rows}-rows.txt"
    if not path.is_file():
        say(f"writing a file of {rows:,} rows (once)")
        lines, shuffler, left = sentences(), random.Random(SEED), rows
        draft = path.with_suffix(f".{os.getpid()}")
        with draft.open("w", encoding="utf-8") as file:
            while left > 0:
                shuffler.shuffle(lines)
                file.writelines(f"{line}\n" for line in lines[:left])
                left -= len(lines)
        draft.replace(path)
    return path


def text_folder(rows: int) -> Path:
    """The same in 16 files, so that there is enough to divide."""
    folder = cache_folder() / f"sst2-{rows}-rows-in-{FILES}"
    lines = text_file(rows).read_text(encoding="utf-8").splitlines(keepends=True)
    folder.mkdir(exist_ok=True)
    for number in range(FILES):
        (folder / f"{number:02}.txt").write_text("".join(lines[number::FILES]), encoding="utf-8")
    return folder


# Commands -----------------------------------------------------------------------------------------------------------


def command(source: Path, engine: str, mechanism: Sequence[str], workers: int) -> list[str]:
    return [
        *command_line(), "rewrite", str(source), "--epsilon", "3", *mechanism, "--workers", str(workers), "--engine",
        engine, "--quiet",
    ]  # fmt: skip


def santext() -> tuple[str, ...]:
    return "--mechanism", "santext", "--vectors", str(vectors_path(SMALL))


def environment(cache: str) -> dict[str, str]:
    """One BLAS thread per process; modules are compiled once, as where Tacit is installed."""
    found = {**os.environ, **dict.fromkeys(THREAD_VARIABLES, "1"), "TACIT_CACHE": cache}
    found.pop("PYTHONDONTWRITEBYTECODE", None)
    return found


def planned(arguments: list[str], variables: dict[str, str]) -> None:
    """Once without reading any text, before the clock."""
    subprocess.run([*arguments, "--dry-run"], env=variables, stdout=subprocess.DEVNULL, check=True)


def measured(arguments: list[str], variables: dict[str, str]) -> Facts:
    """One command from its start to its end, with the CPU seconds of all its processes."""
    with tempfile.TemporaryDirectory(prefix="tacit-benchmark-") as folder:
        spent: dict[int, float] = {}
        wall, busy = time.perf_counter(), busy_seconds()
        process = subprocess.Popen([*arguments, "--output", str(Path(folder) / "out")], env=variables)
        while process.poll() is None:
            note_cpu(spent, process.pid)
            time.sleep(0.05)
        wall, busy = time.perf_counter() - wall, busy_seconds() - busy
    if process.returncode != 0:
        raise SystemExit(f"'{' '.join(arguments)}' failed (exit code {process.returncode})")
    cpu = sum(spent.values())
    return {"wall": wall, "cpu": cpu, "by others": max(0.0, busy - cpu) / wall}


def note_cpu(spent: dict[int, float], root: int) -> None:
    """CPU seconds of a process and its descendants, each as it was last seen alive: Ray ends its workers without
    waiting for them, so the system does not add up what they took. Nothing without /proc."""
    for pid in descendants(root):
        with contextlib.suppress(OSError):
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            spent[pid] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def descendants(root: int) -> list[int]:
    """A process and all that it started, directly or not."""
    found, waiting = [], [root]
    while waiting:
        pid = waiting.pop()
        found.append(pid)
        with contextlib.suppress(OSError):
            for task in Path(f"/proc/{pid}/task").iterdir():
                waiting += [int(child) for child in (task / "children").read_text().split()]
    return found


# What is compared ---------------------------------------------------------------------------------------------------


def both_engines(rows: int, runs: int, cache: str) -> dict[str, list[Facts]]:
    """The engines in turns on the same file of short rows."""
    source, variables = text_file(rows), environment(cache)
    commands = {engine: command(source, engine, santext(), 2) for engine in ENGINES}
    for arguments in commands.values():
        planned(arguments, variables)
    found: dict[str, list[Facts]] = {engine: [] for engine in ENGINES}
    for number in range(runs):
        for engine, arguments in commands.items():
            facts = {"rows": rows, **measured(arguments, variables)}
            say(f"{rows:,} rows, {engine}, run {number + 1}: {facts['wall']:.1f} s, {facts['cpu']:.1f} CPU s")
            found[engine].append(facts)
    return found


def fastest(runs: list[Facts]) -> Facts:
    """The run that was disturbed least: the shortest by the clock, with the fewest CPU seconds of all."""
    return {**min(runs, key=lambda run: run["wall"]), "cpu": min(run["cpu"] for run in runs)}


def work_of(whole: Facts, start: Facts) -> Facts:
    """What a command took beyond its start and its end."""
    return {**whole, "wall": whole["wall"] - start["wall"], "cpu": whole["cpu"] - start["cpu"]}


@dataclass(frozen=True)
class Overhead:
    """A file of one row and the whole file, by each engine."""

    starts: dict[str, Facts]
    wholes: dict[str, Facts]

    @property
    def work(self) -> dict[str, Facts]:
        return {engine: work_of(self.wholes[engine], self.starts[engine]) for engine in ENGINES}

    def share(self, figure: str) -> float:
        """What Ray adds to the work, by the clock ("wall") or in CPU seconds ("cpu")."""
        return float(self.work["ray"][figure] / self.work["local"][figure] - 1)


def overhead(rows: int, runs: int) -> Overhead:
    """Both engines, on one row and on all rows."""
    with tempfile.TemporaryDirectory(prefix="tacit-cache-") as cache:
        starts, wholes = (
            {engine: fastest(found) for engine, found in both_engines(count, runs, cache).items()}
            for count in (1, rows)
        )
    return Overhead(starts, wholes)


def rows_for(minutes: float) -> int:
    """How many rows the local engine works on for so long, by a trial; whole hundred thousands."""
    with tempfile.TemporaryDirectory(prefix="tacit-cache-") as cache:
        variables = environment(cache)
        arguments = {rows: command(text_file(rows), "local", santext(), 2) for rows in (1, TRIAL_ROWS)}
        planned(arguments[TRIAL_ROWS], variables)
        start, whole = (measured(arguments[rows], variables)["wall"] for rows in (1, TRIAL_ROWS))
    rows = max(TRIAL_ROWS, round(60 * minutes * TRIAL_ROWS / (whole - start), -5))
    say(f"{TRIAL_ROWS:,} rows take {whole - start:.1f} s, so {minutes:g} minutes are {rows:,.0f} rows")
    return int(rows)


def model_bound(documents: int) -> list[Facts]:
    """One worker and two, on the private codebook."""
    source = text_folder(documents)
    found = []
    with tempfile.TemporaryDirectory(prefix="tacit-cache-") as cache:
        for workers in (1, 2):
            arguments = command(source, "ray", ("--mechanism", "codebook"), workers)
            planned(arguments, environment(cache))
            say(f"codebook, {workers} worker(s)")
            found.append({"rows": documents, **measured(arguments, environment(cache))})
    return found


def judged(met: bool, *runs: Facts) -> str:
    if max(run["by others"] for run in runs) > IDLE_ENOUGH:
        return "machine busy"
    return "met" if met else "MISSED"


def line(name: str, run: Facts) -> list[str]:
    return [
        name,
        f"{run['rows']:,}",
        seconds(run["wall"]),
        seconds(run["cpu"]),
        f"{run['by others']:.2f}",
        f"{run['rows'] / run['wall']:,.0f}",
    ]


def main() -> None:
    parser = arguments_parser(__doc__)
    parser.add_argument("--rows", type=int, default=4_000_000, help="short rows for the overhead; 0 leaves it out")
    parser.add_argument("--documents", type=int, default=60_000, help="texts for the model-bound job; 0 leaves it out")
    parser.add_argument("--minutes", type=float, help="choose the rows so that the local engine works so long on them")
    parser.add_argument("--runs", type=int, default=1, help="of each engine; the fastest counts")
    given = parser.parse_args()
    report = Report("ray_engine", notes=[MADE_UP, FROM_CORPUS, "one BLAS thread per process; whole commands"])
    names: dict[str, Facts] = {}
    targets: list[list[str]] = []
    if given.documents:
        one, two = model_bound(given.documents)
        names |= {"codebook, ray, 1 worker": one, "codebook, ray, 2 workers": two}
        speedup = report.facts["speedup"] = one["wall"] / two["wall"]
        targets.append(["two workers against one, wall", f"{speedup:.2f} x", f">= {SPEEDUP_TARGET} x",
                        judged(speedup >= SPEEDUP_TARGET, one, two)])  # fmt: skip
    rows = given.rows if given.minutes is None else rows_for(given.minutes)
    if rows:
        found = overhead(rows, given.runs)
        for title, runs in (("one row", found.starts), ("whole", found.wholes), ("work", found.work)):
            names |= {f"santext, {engine}, 2 workers, {title}": runs[engine] for engine in ENGINES}
        start = found.starts["ray"]["wall"] - found.starts["local"]["wall"]
        wall, cpu = found.share("wall"), found.share("cpu")
        report.facts |= {"start of Ray": start, "overhead": wall, "CPU overhead": cpu}
        minutes = found.work["local"]["wall"] / 60
        targets += [
            ["start and end of Ray, beyond those of the local engine, wall", f"{start:+.1f} s", "", ""],
            [f"work of {minutes:.1f} minutes, Ray against the local engine, wall", f"{wall:+.0%}",
             f"< {OVERHEAD_TARGET:+.0%}", judged(wall < OVERHEAD_TARGET, *found.wholes.values())],
            ["the same, CPU seconds of all processes", f"{cpu:+.0%}", "", ""],
        ]  # fmt: skip
    report.table("Runs", ("run", "rows", "wall s", "CPU s", "by\nothers", "rows\nper s"),
                 [line(name, facts) for name, facts in names.items()])  # fmt: skip
    report.table("Targets", ("what", "measured", "target", ""), targets)
    report.facts["runs"] = names
    report.show(given.json)


if __name__ == "__main__":
    main()
