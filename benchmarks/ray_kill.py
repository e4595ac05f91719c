"""Kill -9 at random moments: `tacit rewrite --engine ray` must end with the bytes of a run that nobody disturbed.

One Ray runs all the time. Each trial starts the command on it, waits until a random number of parts is finished and a
random part of a second more, and kills either the command itself (with SIGKILL; then the same command is given again
with --resume, until one of them is finished) or one of its workers (the command should go on by itself). After that:

    bytes       every file of the output is that of the undisturbed run with the same test key
    rows        as many as the input has, and no part twice
    ledger      what one text has spent is what it was after the undisturbed run: the same tokens, counted once
    nothing     is left of the staging folder

    python benchmarks/ray_kill.py                    20 kills
    python benchmarks/ray_kill.py --kills 4 --rows 2000
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from corpus import sentences
from measure import Facts, Report, arguments_parser, say, seconds
from ray_engine import descendants
from startup import command_line

FILES = 12
SEED = 20_261_116


def make_input(folder: Path, rows: int) -> None:
    folder.mkdir()
    lines = sentences()[:rows]
    share = -(-len(lines) // FILES)
    for number in range(FILES):
        part = lines[number * share : (number + 1) * share]
        (folder / f"{number:02}.txt").write_text("".join(f"{line}\n" for line in part), encoding="utf-8")


def make_vectors(folder: Path) -> Path:
    """A few public words, so that a worker is ready at once."""
    import numpy as np

    words = [f"word{number}" for number in range(500)]
    path = folder / "vectors.txt"
    rows = np.random.Generator(np.random.PCG64(SEED)).standard_normal((len(words), 16))
    path.write_text(
        "".join(f"{word} {' '.join(f'{x:.4f}' for x in row)}\n" for word, row in zip(words, rows, strict=True))
    )
    return path


def command(folder: Path, name: str, vectors: Path, address: str, *more: str) -> list[str]:
    return [
        *command_line(), "rewrite", str(folder / "in"), "-o", str(folder / name), "--mechanism", "santext", "--epsilon",
        "3", "--vectors", str(vectors), "--seed", "1", "--engine", "ray", "--address", address, "--workers", "2",
        "--ledger", str(folder / f"{name}.ledger"), "--dataset", "kill", "--quiet", *more,
    ]  # fmt: skip


def own_workers() -> list[int]:
    """The processes of our Ray that rewrite parts at this moment; never those of anybody else."""
    found = []
    for pid in descendants(os.getpid()):
        with contextlib.suppress(OSError):
            if b"ray::MapWorker" in Path(f"/proc/{pid}/cmdline").read_bytes():
                found.append(pid)
    return found


def disturbed(folder: Path, name: str, vectors: Path, address: str, chance: random.Random) -> Facts:
    """One trial; how it ended."""
    kind = chance.choice(("command", "worker"))
    wanted, more = chance.randrange(FILES), chance.uniform(0, 0.5)
    started = time.perf_counter()
    process = subprocess.Popen(command(folder, name, vectors, address), stderr=subprocess.DEVNULL)
    records = folder / f"{name}.partial" / "done"
    while process.poll() is None and (not records.is_dir() or len(list(records.glob("*.json"))) < wanted):
        time.sleep(0.01)
    time.sleep(more)
    moment = time.perf_counter() - started
    parts, killed = len(list(records.glob("*.json"))), False
    if kind == "command" and process.poll() is None:
        process.kill()
        killed = True
    elif kind == "worker" and (there := own_workers()):
        os.kill(chance.choice(there), signal.SIGKILL)
        killed = True
    code = process.wait()
    runs = 1
    while code != 0 and runs < 4:
        more = ("--resume",)
        code = subprocess.run(command(folder, name, vectors, address, *more), check=False).returncode
        runs += 1
    return {"kind": kind, "second": moment, "killed": killed, "parts finished": parts, "runs": runs, "exit code": code}


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())} if folder.is_dir() else {}


def spent(folder: Path, name: str, text: str) -> float:
    from tacit.account.ledger import Subject, open_ledger

    with open_ledger(folder / f"{name}.ledger", create=False) as ledger:
        return float(ledger.spent(Subject("document", text)).epsilon)


def main() -> None:
    parser = arguments_parser(__doc__)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--rows", type=int, default=12_000)
    parser.add_argument("--seed", type=int, default=SEED, help="of the random moments")
    given = parser.parse_args()
    from tacit.engines.cluster.session import cluster

    os.environ.setdefault("TACIT_LEDGER_KEY", "01" * 32)
    chance = random.Random(given.seed)
    report = Report("ray_kill")
    trials: list[Facts] = []
    with tempfile.TemporaryDirectory(prefix="tacit-kill-") as temporary:
        folder = Path(temporary)
        make_input(folder / "in", given.rows)
        vectors = make_vectors(folder)
        text = (folder / "in" / "00.txt").read_text(encoding="utf-8").splitlines()[0]
        with cluster(None, 2) as ray:
            address = ray.ray.get_runtime_context().gcs_address
            started = time.perf_counter()
            done = subprocess.run(command(folder, "undisturbed", vectors, address), check=False)
            longest = time.perf_counter() - started
            if done.returncode != 0:
                sys.exit("the undisturbed run failed")
            wanted, cost = content(folder / "undisturbed"), spent(folder, "undisturbed", text)
            say(f"an undisturbed run takes {longest:.1f} s")
            for number in range(given.kills):
                name = f"trial-{number}"
                facts = disturbed(folder, name, vectors, address, chance)
                found = content(folder / name)
                facts["bytes"] = found == wanted
                facts["rows"] = sum(data.count(b"\n") for data in found.values())
                facts["ledger"] = spent(folder, name, text) == cost
                facts["nothing left"] = not (folder / f"{name}.partial").exists()
                trials.append(facts)
                say(f"{number + 1} of {given.kills}: {facts}")
    right = sum(t["bytes"] and t["rows"] == given.rows and t["ledger"] and t["nothing left"] for t in trials)
    report.table(
        "Trials",
        ("killed", "after s", "hit", "parts finished\nbefore", "commands\nneeded", "same bytes", "rows", "ledger"),
        [
            [t["kind"], seconds(t["second"]), str(t["killed"]), str(t["parts finished"]), str(t["runs"]),
             str(t["bytes"]), f"{t['rows']:,}", "same" if t["ledger"] else "OTHER"]
            for t in trials
        ],
    )  # fmt: skip
    report.notes.append(f"{right} of {len(trials)} trials ended as the undisturbed run did")
    report.facts = {"trials": trials, "undisturbed seconds": longest}
    report.show(given.json)


if __name__ == "__main__":
    main()
