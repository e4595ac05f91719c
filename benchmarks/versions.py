"""Two versions of Tacit side by side: is the newer one slower to start, to rewrite, to serve?

Each version has an environment of its own, with the same libraries; both get the same programs and texts, by turns
(before, after, before, after ...), so that a change in the load of the machine hits both. Medians of all rounds; CPU
seconds are the figure to look at on a busy machine, and the ratio is after / before.

    python benchmarks/versions.py OLD/bin/python NEW/bin/python
    python benchmarks/versions.py OLD/bin/python NEW/bin/python --rounds 7 --parts startup,rewrite

startup   new processes: `import tacit`, `tacit --help`, `tacit rewrite --help`
rewrite   `tacit rewrite` of the 67,349 sentences of SST-2 train with the default vectors, start included
service   `service.py` with each version: texts per second of CPU and of wall time under 64 clients
"""

from __future__ import annotations

import gzip
import itertools
import json
import os
import resource
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from measure import THREAD_VARIABLES, Facts, Report, arguments_parser, say

HERE = Path(__file__).parent
SIDES = ("before", "after")
MECHANISMS = {"santext": 67_349, "santext+": 67_349, "custext": 67_349, "laplace": 5_000}
"""Mechanisms and the number of sentences for each: a noise mechanism pays for every token."""
START = {
    "python -c pass": ("{python}", "-c", "pass"),
    "import tacit": ("{python}", "-c", "import tacit"),
    "tacit --help": ("{command}", "--help"),
    "tacit rewrite --help": ("{command}", "rewrite", "--help"),
}
SERVED = "santext,custext"
Timing = dict[str, float]


def environment(cache: Path) -> dict[str, str]:
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return {**variables, **dict.fromkeys(THREAD_VARIABLES, "1"), "TACIT_CACHE": str(cache)}


def timed(command: list[str], cache: Path) -> Timing:
    """Wall and CPU seconds of a command and all its processes."""
    start, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, env=environment(cache), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return {"wall s": wall, "CPU s": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime}


def startup(python: Path, folder: Path) -> dict[str, Timing]:
    command = str(python.with_name("tacit"))
    return {
        name: timed([word.format(python=python, command=command) for word in words], folder)
        for name, words in START.items()
    }


def rewrite(python: Path, folder: Path) -> dict[str, Timing]:
    timings = {}
    for mechanism, sentences in MECHANISMS.items():
        text = sst2(folder.parent, sentences)
        output = folder / "private.tsv"
        words = ["rewrite", str(text), "--column", "sentence", "--mechanism", mechanism, "--epsilon", "3"]
        command = [str(python.with_name("tacit")), *words, "--output", str(output), "--force", "--quiet"]
        timings[f"{mechanism}, {sentences:,} sentences"] = timed(command, folder)
    return timings


def service(python: Path, folder: Path) -> dict[str, Timing]:
    numbers = folder / "service.json"
    words = [str(HERE / "service.py"), "--mechanisms", SERVED, "--seconds", "5", "--json", str(numbers)]
    subprocess.run([str(python), *words], env=environment(folder), stdout=subprocess.DEVNULL, check=True)
    content = json.loads(numbers.read_text(encoding="utf-8"))
    timings = {"start": {"wall s": content["start seconds"], "CPU s": content["start CPU seconds"]}}
    for row in content["measurements"]:
        name = f"{row['mechanism']}, {row['texts per request']} a request"
        timings[name] = {
            "ms of CPU per text": 1_000 / row["texts per CPU second"],
            "ms per text": 1_000 / row["texts per second"],
            "median ms of an answer": 1_000 * row["median seconds"],
        }
    return timings


PARTS: dict[str, Callable[[Path, Path], dict[str, Timing]]] = {
    "startup": startup,
    "rewrite": rewrite,
    "service": service,
}
REPEATED = {"startup": 5, "rewrite": 1, "service": 1}
"""Measurements of a part in each round."""


def sst2(folder: Path, sentences: int) -> Path:
    """The first sentences of SST-2 train, as a file."""
    path = folder / f"sst2-{sentences}.tsv"
    if not path.exists():
        source = Path(os.environ.get("TACIT_DATA", HERE.parents[1] / "shared" / "data")) / "sst2" / "train.tsv.gz"
        if not source.exists():
            raise SystemExit(f"needs {source}: set TACIT_DATA to the folder of the data sets")
        with gzip.open(source, "rt", encoding="utf-8") as file:
            path.write_text("".join(itertools.islice(file, sentences + 1)), encoding="utf-8")
    return path


def main() -> None:
    parser = arguments_parser(__doc__)
    parser.add_argument("before", type=Path, help="the Python of the environment with the older version")
    parser.add_argument("after", type=Path, help="the same of the newer version")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--parts", default=",".join(PARTS))
    options = parser.parse_args()
    pythons = dict(zip(SIDES, (options.before, options.after), strict=True))
    report = Report("versions", notes=[f"medians of {options.rounds} rounds, both versions by turns"])
    with tempfile.TemporaryDirectory(prefix="tacit-versions-") as name:
        for side in SIDES:
            (Path(name) / side).mkdir()
        for part in options.parts.split(","):
            facts: Facts = {}
            for number in range(options.rounds + 1):
                say(f"{part}: round {number} of {options.rounds}" + (" (warms up)" if number == 0 else ""))
                for _ in range(REPEATED[part]):
                    for side, python in pythons.items():
                        for case, timing in PARTS[part](python.absolute(), Path(name) / side).items():
                            for measure, value in timing.items() if number else ():
                                facts.setdefault(case, {}).setdefault(measure, {}).setdefault(side, []).append(value)
            report.facts[part] = facts
            report.table(part, ("", "", "before", "after", "after / before"), rows(facts))
    report.show(options.json)


def rows(facts: Facts) -> list[list[str]]:
    """One line for each measure of each case."""
    lines = []
    for case, measures in facts.items():
        for measure, values in measures.items():
            before, after = (statistics.median(values[side]) for side in SIDES)
            lines.append([case, measure, f"{before:.3f}", f"{after:.3f}", f"{after / before:.2f}"])
    return lines


if __name__ == "__main__":
    main()
