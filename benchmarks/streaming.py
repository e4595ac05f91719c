"""Large files through the real command `tacit rewrite`: memory that does not grow, and two workers against one.

Memory: files of 1, 3 and 10 million tokens (SST-2 train again and again, shuffled with a fixed seed) are rewritten with
one worker. The peak resident memory of the command and all its processes together is sampled from /proc twenty times a
second (Linux only; elsewhere the largest single process is shown).

Workers: the same file with one worker and with two, one BLAS thread each; target: 1.7 times as fast by the clock. On a
machine that is busy with something else two workers cannot have two cores: "cores used" (CPU seconds per wall second)
tells how much of the machine a run got, "by others" how much everything else took meanwhile (Linux only). A speedup
below the target counts as missed only where the others took next to nothing.

    python benchmarks/streaming.py                       some minutes
    python benchmarks/streaming.py --tokens 1000000 --noise-tokens 200000 --json numbers.json
"""

from __future__ import annotations

import contextlib
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from corpus import FROM_CORPUS, MADE_UP, SEED, SMALL, cache_folder, sentences, vectors_path
from measure import (
    THREAD_VARIABLES,
    Facts,
    Report,
    answer_part,
    arguments_parser,
    gigabytes,
    run_part,
    say,
    seconds,
    verdict,
)
from startup import command_line

SPEEDUP_TARGET = 1.7
SAMPLE_SECONDS = 0.05
IDLE_ENOUGH = 0.2
"""Cores that other programs may use before a speedup says nothing."""
EPSILON = {"santext": 3.0, "laplace": 20.0}


# The files ----------------------------------------------------------------------------------------------------------


def text_file(tokens: int) -> Path:
    path = cache_folder() / f"sst2-{tokens}-tokens.txt"
    if not path.is_file():
        say(f"writing a file of {tokens:,} tokens (once)")
        run_part(__file__, "write", {"tokens": tokens, "path": str(path)}, threads=None)
    return path


def write_text(tokens: int, path: str) -> Facts:
    from tacit.text.tokens import split

    lines = [(sentence, len(split(sentence))) for sentence in sentences()]
    shuffler = random.Random(SEED)
    draft = Path(f"{path}.{os.getpid()}")
    count = 0
    with draft.open("w", encoding="utf-8") as file:
        while count < tokens:
            shuffler.shuffle(lines)
            for sentence, length in lines:
                file.write(f"{sentence}\n")
                count += length
                if count >= tokens:
                    break
    draft.replace(path)
    return {"tokens": count}


# The command --------------------------------------------------------------------------------------------------------


def rewrite(source: Path, vectors: Path, mechanism: str, workers: int, cache: Path) -> Facts:
    """Run the command to its end; its cost, and the peak memory of all its processes together."""
    with tempfile.TemporaryDirectory(prefix="tacit-benchmark-") as folder:
        output = Path(folder) / "private.txt"
        command = [*command_line(), "rewrite", str(source), "-o", str(output), "--vectors", str(vectors)]
        command += ["--mechanism", mechanism, "--epsilon", str(EPSILON[mechanism]), "--workers", str(workers)]
        command += ["--quiet", "--force"]
        variables = {**os.environ, **dict.fromkeys(THREAD_VARIABLES, "1"), "TACIT_CACHE": str(cache)}
        start, busy = time.perf_counter(), busy_seconds()
        process = subprocess.Popen(command, env=variables, stdout=subprocess.DEVNULL)
        peak, processes = 0, 0
        while True:
            pid, status, usage = os.wait4(process.pid, os.WNOHANG)
            if pid:
                break
            resident = tree_memory(process.pid)
            peak, processes = max(peak, sum(resident)), max(processes, len(resident))
            time.sleep(SAMPLE_SECONDS)
        wall, busy = time.perf_counter() - start, busy_seconds() - busy
        if status != 0:
            raise SystemExit(f"tacit rewrite failed with exit code {os.waitstatus_to_exitcode(status)}")
        written = output.stat().st_size
    largest = usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return {
        "mechanism": mechanism,
        "workers": workers,
        "wall": wall,
        "cpu": usage.ru_utime + usage.ru_stime,
        "cores used by others": max(0.0, busy - usage.ru_utime - usage.ru_stime) / wall,
        "peak memory": peak or largest,
        "processes": processes,
        "bytes written": written,
    }


def busy_seconds() -> float:
    """CPU seconds that all programs of the machine have used so far; 0 where /proc/stat is missing."""
    with contextlib.suppress(OSError, ValueError):
        user, nice, system = Path("/proc/stat").read_text().split()[1:4]
        return (int(user) + int(nice) + int(system)) / os.sysconf("SC_CLK_TCK")
    return 0.0


def judged(one: Facts, two: Facts) -> str:
    speedup = one["wall"] / two["wall"]
    if speedup < SPEEDUP_TARGET and max(one["cores used by others"], two["cores used by others"]) > IDLE_ENOUGH:
        return "machine busy"
    return verdict(SPEEDUP_TARGET, speedup)


def tree_memory(root: int) -> list[int]:
    """Resident bytes of a process and its descendants, from /proc."""
    resident = []
    waiting = [root]
    while waiting:
        pid = waiting.pop()
        with contextlib.suppress(OSError, ValueError, IndexError):
            pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
            resident.append(pages * os.sysconf("SC_PAGE_SIZE"))
            for task in Path(f"/proc/{pid}/task").iterdir():
                waiting += [int(child) for child in (task / "children").read_text().split()]
    return resident


# The program --------------------------------------------------------------------------------------------------------


def line(facts: Facts) -> list[str]:
    return [
        facts["mechanism"],
        f"{facts['tokens']:,}",
        str(facts["workers"]),
        str(facts["processes"]),
        gigabytes(facts["peak memory"]),
        seconds(facts["wall"]),
        seconds(facts["cpu"]),
        f"{facts['cpu'] / facts['wall']:.2f}",
        f"{facts['cores used by others']:.2f}",
        f"{facts['tokens'] / facts['wall']:,.0f}",
    ]


def main() -> None:
    parser = arguments_parser(__doc__)
    parser.add_argument("--tokens", default="1000000,3000000,10000000", help="sizes of the files")
    parser.add_argument("--noise-tokens", type=int, default=1_000_000, help="tokens for the noise mechanism's workers")
    given = parser.parse_args()
    sizes = [int(size) for size in given.tokens.split(",")]
    vectors = vectors_path(SMALL)
    report = Report("streaming", notes=[MADE_UP, FROM_CORPUS, "one BLAS thread per process"])
    runs: list[Facts] = []
    pairs = []
    with tempfile.TemporaryDirectory(prefix="tacit-benchmark-") as cache:
        # The numbers for the card are computed once per vector file: not part of what is compared.
        for mechanism in EPSILON:
            rewrite(text_file(10_000), vectors, mechanism, 1, Path(cache))

        def measured(mechanism: str, tokens: int, workers: int) -> Facts:
            say(f"{mechanism}: {tokens:,} tokens, {workers} worker(s)")
            facts = rewrite(text_file(tokens), vectors, mechanism, workers, Path(cache))
            runs.append({**facts, "tokens": tokens, "load average": os.getloadavg()[0]})
            return runs[-1]

        for size in sizes:
            one = measured("santext", size, 1)
        pairs.append((one, measured("santext", sizes[-1], 2)))
        pairs.append(
            (measured("laplace", given.noise_tokens, 1), measured("laplace", given.noise_tokens, 2)),
        )
    report.facts = {"runs": runs}
    report.table(
        "tacit rewrite",
        ("mechanism", "tokens", "workers", "processes", "peak memory\n(all processes)", "wall s", "CPU s",
         "cores\nused", "by\nothers", "tokens\nper s"),
        [line(facts) for facts in runs],
    )  # fmt: skip
    report.table(
        f"Two workers against one, one BLAS thread each; target: {SPEEDUP_TARGET} x",
        (
            "mechanism",
            "tokens",
            "speedup\n(wall)",
            "CPU s, 2 workers /\nCPU s, 1 worker",
            "load average\nbefore",
            "target",
        ),
        [
            [
                one["mechanism"],
                f"{one['tokens']:,}",
                f"{one['wall'] / two['wall']:.2f}",
                f"{two['cpu'] / one['cpu']:.2f}",
                f"{one['load average']:.1f}",
                judged(one, two),
            ]
            for one, two in pairs
        ],
    )
    report.show(given.json)


if __name__ == "__main__":
    answer_part({"write": write_text})
    main()
