"""The cluster engine against one worker, and against the local engine.

Model-bound: texts rewritten by the private codebook (a sentence encoder per worker), with one worker and with two;
target: 1.6 times as fast. Overhead: a million short rows (SST-2 train again and again) rewritten by `santext` with two
workers, over Ray and by the local engine; target: under 25 %.

Ray is started before the clock, and its start is shown beside: it is the same for a thousand rows and for a billion.
CPU seconds are those of all processes of the engine. On a machine that is busy with something else the wall clock says
little: "by others" tells how many cores everything else took meanwhile, and a missed target counts only where that is
next to nothing.

    python benchmarks/ray_engine.py                                     some ten minutes
    python benchmarks/ray_engine.py --rows 100000 --documents 2000
"""

from __future__ import annotations

import contextlib
import os
import random
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from corpus import FROM_CORPUS, MADE_UP, SEED, SMALL, cache_folder, sentences, vectors_path
from measure import Facts, Report, answer_part, arguments_parser, run_part, say, seconds
from streaming import IDLE_ENOUGH, busy_seconds

SPEEDUP_TARGET, OVERHEAD_TARGET = 1.6, 0.25
FILES = 16


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


def rewritten(source: str, engine: str, mechanism: str, vectors: str, workers: int) -> Facts:
    """One job of an engine, in a process of its own."""
    from tacit.catalog import build
    from tacit.engines.local import RewriteJob, rewrite_file

    options: dict[str, Any] = {"epsilon": 3.0, **({"vectors": vectors} if vectors else {})}
    with tempfile.TemporaryDirectory(prefix="tacit-benchmark-") as folder:
        job = RewriteJob(
            mechanism=build(mechanism, options), input=source, output=str(Path(folder) / "out.txt"), workers=workers
        )
        job.promise()  # the numbers of the card are worked out once per vector file, before the clock
        if engine == "local":
            return measured(lambda: rewrite_file(job))
        from tacit.engines.cluster.rewrite import rewrite_dataset
        from tacit.engines.cluster.session import cluster

        started = time.perf_counter()
        with cluster(None, workers):
            start = time.perf_counter() - started
            return {**measured(lambda: rewrite_dataset(job)), "start": start}


def measured(work: Any) -> Facts:
    spent: dict[int, float] = {}
    stop = threading.Event()
    note_cpu(spent)
    before = sum(spent.values())
    watch = threading.Thread(target=lambda: [note_cpu(spent) for _ in iter(lambda: stop.wait(0.25), True)])
    wall, busy = time.perf_counter(), busy_seconds()
    watch.start()
    facts = work()
    wall, busy = time.perf_counter() - wall, busy_seconds() - busy
    stop.set()
    watch.join()
    note_cpu(spent)
    cpu = sum(spent.values()) - before
    return {
        "wall": wall,
        "cpu": cpu,
        "by others": max(0.0, busy - cpu) / wall,
        "rows": facts.rows,
        "units": facts.units,
    }


def note_cpu(spent: dict[int, float]) -> None:
    """CPU seconds of this process and its descendants, each as it was last seen alive: Ray ends its workers without
    waiting for them, so the system does not add up what they took. Nothing without /proc."""
    for pid in descendants(os.getpid()):
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


def judged(met: bool, *runs: Facts) -> str:
    if met:
        return "met"
    return "machine busy" if max(run["by others"] for run in runs) > IDLE_ENOUGH else "MISSED"


def line(name: str, run: Facts) -> list[str]:
    return [
        name,
        f"{run['rows']:,}",
        seconds(run["wall"]),
        seconds(run["cpu"]),
        f"{run['by others']:.2f}",
        seconds(run["start"]) if "start" in run else "",
        f"{run['rows'] / run['wall']:,.0f}",
    ]


def main() -> None:
    parser = arguments_parser(__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000, help="short rows for the overhead")
    parser.add_argument("--documents", type=int, default=60_000, help="texts for the model-bound job")
    given = parser.parse_args()
    report = Report("ray_engine", notes=[MADE_UP, FROM_CORPUS, "one BLAS thread per process"])
    vectors = str(vectors_path(SMALL))
    documents, rows = str(text_folder(given.documents)), str(text_file(given.rows))

    def run(source: str, engine: str, mechanism: str, workers: int) -> Facts:
        say(f"{mechanism}, {engine} engine, {workers} worker(s)")
        word = mechanism == "santext"
        arguments = {"source": source, "engine": engine, "mechanism": mechanism, "workers": workers}
        return run_part(__file__, "rewrite", {**arguments, "vectors": vectors if word else ""})

    one, two = (run(documents, "ray", "codebook", workers) for workers in (1, 2))
    local, over_ray = (run(rows, engine, "santext", 2) for engine in ("local", "ray"))
    speedup = one["wall"] / two["wall"]
    overhead, cpu_overhead = over_ray["wall"] / local["wall"] - 1, over_ray["cpu"] / local["cpu"] - 1
    names = {"codebook, ray, 1 worker": one, "codebook, ray, 2 workers": two}
    names |= {"santext, local, 2 workers": local, "santext, ray, 2 workers": over_ray}
    report.table(
        "Runs",
        ("run", "rows", "wall s", "CPU s", "by\nothers", "start of\nRay, s", "rows\nper s"),
        [line(name, facts) for name, facts in names.items()],
    )
    report.table(
        "Targets",
        ("what", "measured", "target", ""),
        [
            ["two workers against one, wall", f"{speedup:.2f} x", f">= {SPEEDUP_TARGET} x",
             judged(speedup >= SPEEDUP_TARGET, one, two)],
            ["overhead against the local engine, wall", f"{overhead:.0%}", f"< {OVERHEAD_TARGET:.0%}",
             judged(overhead < OVERHEAD_TARGET, local, over_ray)],
            ["the same, CPU seconds of all processes", f"{cpu_overhead:.0%}", "", ""],
        ],
    )  # fmt: skip
    report.facts = {"runs": names, "speedup": speedup, "overhead": overhead, "CPU overhead": cpu_overhead}
    report.show(given.json)


if __name__ == "__main__":
    answer_part({"rewrite": rewritten})
    main()
