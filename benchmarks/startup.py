"""How long a user waits before anything happens: `import tacit` and `tacit --help`, beside the start of Python itself.

Each line is the median of 10 runs (after one that warms the disk cache) of a new process; wall seconds are what the
user waits, CPU seconds stand beside them. "above Python" leaves out what `python -c pass` takes.

    python benchmarks/startup.py
    python benchmarks/startup.py --runs 30 --json numbers.json
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

from measure import Facts, Report, arguments_parser, say, seconds, verdict

TARGETS = {"import tacit": 0.1, "tacit --help": 0.2}


def command_line() -> list[str]:
    """The installed command, or its module where the command is not beside this Python."""
    script = Path(sys.executable).with_name("tacit")
    return [str(script)] if script.is_file() else [sys.executable, "-m", "tacit.cli.main"]


def measured(command: list[str], runs: int) -> Facts:
    walls, cpus = [], []
    for number in range(runs + 1):
        before, start = os.times(), time.perf_counter()
        subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
        wall, after = time.perf_counter() - start, os.times()
        if number:
            walls.append(wall)
            cpus.append(after.children_user + after.children_system - before.children_user - before.children_system)
    return {"wall": statistics.median(walls), "cpu": statistics.median(cpus), "slowest wall": max(walls)}


def main() -> None:
    parser = arguments_parser(__doc__)
    parser.add_argument("--runs", type=int, default=10)
    given = parser.parse_args()
    tacit = command_line()
    commands = {
        "python -c pass": [sys.executable, "-c", "pass"],
        "import tacit": [sys.executable, "-c", "import tacit"],
        "tacit --help": [*tacit, "--help"],
        "tacit --version": [*tacit, "--version"],
        "tacit mechanisms": [*tacit, "mechanisms"],
        "tacit rewrite --help": [*tacit, "rewrite", "--help"],
    }
    report = Report("startup", notes=[f"median of {given.runs} new processes each"])
    results = {}
    for name, command in commands.items():
        say(name)
        results[name] = measured(command, given.runs)
    bare = results["python -c pass"]["wall"]
    rows = []
    for name, found in results.items():
        target = TARGETS.get(name)
        rows.append(
            [
                name,
                seconds(found["wall"]),
                seconds(found["wall"] - bare),
                seconds(found["slowest wall"]),
                seconds(found["cpu"]),
                "" if target is None else f"< {target} s: {verdict(found['wall'], target)}",
            ]
        )
    report.facts = {"commands": results}
    report.table("Startup", ("command", "wall s", "above Python", "slowest", "CPU s", "target"), rows)
    report.show(given.json)


if __name__ == "__main__":
    main()
