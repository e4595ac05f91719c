"""Kill -9 at random moments: no row of `tacit rewrite --engine ray` may be released twice with different noise.

One Ray runs all the time. Each trial starts the command on it with a key of its own (no test seed: a run that threw
everything away and started over would come out different), waits until a random number of parts is finished and a
random part of a second more, and kills either the command itself (with SIGKILL; then the same command is given again
with --resume, until one of them is finished) or one of its workers (the command should go on by itself). Whatever lies
finished in the staging folder at that moment is copied. A trial that came too late to kill anything is repeated. After
each:

    bytes       every part that was copied is in the output, byte for byte, in its file and at its place
    rows        every file of the output has as many as that of an undisturbed run
    ledger      every text has been charged what it was charged in the undisturbed run, nothing is left reserved, and
                the chain is intact
    nothing     is left of the staging folder

And one trial of the program itself: a command that is killed and then given again with --force, which starts over, must
be caught by the comparison of bytes. The exit code is 1 if anything is wrong.

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
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from corpus import sentences
from measure import Facts, Report, arguments_parser, say, seconds
from ray_engine import descendants
from startup import command_line

FILES = 12
SEED = 20_261_116
MOST_COMMANDS, MOST_TRIES = 4, 5

Content = dict[str, bytes]


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


@dataclass(frozen=True)
class Setting:
    """Where all trials take place."""

    folder: Path
    vectors: Path
    address: str

    def command(self, name: str, *more: str) -> list[str]:
        return [
            *command_line(), "rewrite", str(self.folder / "in"), "-o", str(self.folder / name), "--mechanism",
            "santext", "--epsilon", "3", "--vectors", str(self.vectors), "--engine", "ray", "--address", self.address,
            "--workers", "2", "--ledger", str(self.ledger(name)), "--dataset", "kill", "--quiet", *more,
        ]  # fmt: skip

    def ledger(self, name: str) -> Path:
        return self.folder / f"{name}.ledger"

    def staging(self, name: str) -> Path:
        return self.folder / f"{name}.partial"


# Killing ------------------------------------------------------------------------------------------------------------


def own_workers() -> list[int]:
    """The processes of our Ray that rewrite parts at this moment; never those of anybody else."""
    found = []
    for pid in descendants(os.getpid()):
        with contextlib.suppress(OSError):
            if b"ray::MapWorker" in Path(f"/proc/{pid}/cmdline").read_bytes():
                found.append(pid)
    return found


def content(folder: Path) -> Content:
    """The finished files of a folder. It may go away meanwhile."""
    found = {}
    with contextlib.suppress(FileNotFoundError):
        for path in sorted(folder.iterdir()):
            if not path.name.startswith("."):
                found[path.name] = path.read_bytes()
    return found


def finished(staging: Path) -> Content:
    """What of the output is finished: parts, and files put together of them, by name."""
    return content(staging / "parts") | content(staging / "release")


def kill_something(kind: str, process: subprocess.Popen[bytes], chance: random.Random) -> bool:
    """Whether there was something to kill, while the command was at work."""
    if process.poll() is not None:
        return False
    if kind == "command":
        process.kill()
        return process.wait() == -signal.SIGKILL
    workers = own_workers()
    if not workers:
        return False
    os.kill(chance.choice(workers), signal.SIGKILL)
    return True


def disturbed(setting: Setting, name: str, chance: random.Random, kind: str, again: str = "--resume") -> Facts:
    """One trial: how it ended, and what was finished at the kill."""
    wanted, more = chance.randrange(FILES), chance.uniform(0, 0.5)
    started = time.perf_counter()
    process = subprocess.Popen(setting.command(name), stderr=subprocess.DEVNULL)
    staging = setting.staging(name)
    while process.poll() is None and len(list((staging / "done").glob("*.json"))) < wanted:
        time.sleep(0.01)
    time.sleep(more)
    kept = finished(staging)
    moment = time.perf_counter() - started
    killed = kill_something(kind, process, chance)
    kept = differing(kept, finished(staging))
    code, runs = process.wait(), 1
    while code != 0 and runs < MOST_COMMANDS:
        code = subprocess.run(setting.command(name, again), check=False).returncode
        runs += 1
    return {"kind": kind, "second": moment, "killed": killed, "kept": kept, "runs": runs, "exit code": code}


def differing(before: Content, after: Content) -> Content:
    """What was finished before the kill or just after; a part that has two versions is kept as both."""
    return before | {
        (f"{name} again" if before.get(name, data) != data else name): data for name, data in after.items()
    }


def trial(setting: Setting, number: int, chance: random.Random) -> tuple[str, Facts]:
    """A trial that really killed something, and its name."""
    for attempt in range(MOST_TRIES):
        name, kind = f"trial-{number}-{attempt}", chance.choice(("command", "worker"))
        facts = disturbed(setting, name, chance, kind)
        if facts["killed"]:
            return name, facts
        say(f"trial {number + 1}: the command was finished before the kill; once more")
    sys.exit(f"{MOST_TRIES} times nothing was there to be killed: give more --rows")


# Checking -----------------------------------------------------------------------------------------------------------


def not_in(kept: Content, output: Content) -> list[str]:
    """The names of finished parts that the output does not hold."""
    return [name for name, data in kept.items() if not is_in(name, data, output)]


def is_in(name: str, data: bytes, output: Content) -> bool:
    """`part-FILE-NUMBER` is a piece of the output's file `part-FILE.txt`, the first one its beginning; any other name
    is a whole file."""
    pieces = name.split(" ")[0].split("-")
    if len(pieces) != 3:
        return output.get(name) == data
    whole = output.get(f"part-{pieces[1]}.txt", b"")
    return whole.startswith(data) if int(pieces[2]) == 0 else data in whole


def rows_of(output: Content) -> dict[str, int]:
    return {name: data.count(b"\n") for name, data in output.items()}


def charges(place: Path) -> tuple[Counter[tuple[str, float]], bool]:
    """How many texts (hashed with the key of the ledger) have been charged how many units in all; whether everything
    is committed and the chain intact."""
    from tacit.account.ledger import open_ledger

    with open_ledger(place, create=False) as ledger:
        releases = ledger.export(subjects=True)["releases"]
        whole = ledger.verify().ok and all(release["state"] == "committed" for release in releases)
    totals: Counter[tuple[str, str]] = Counter()
    for release in releases:
        for charge in release["charges"]:
            totals[charge["kind"], charge["subject"]] += charge["units"]
    return Counter((kind, units) for (kind, _), units in totals.items()), whole


def checked(setting: Setting, name: str, facts: Facts, wanted: Content, cost: Counter[tuple[str, float]]) -> Facts:
    output = content(setting.folder / name)
    spent, whole = charges(setting.ledger(name))
    kept = facts.pop("kept")
    return {
        **facts,
        "parts": len(kept),
        "lost": not_in(kept, output),
        "rows": sum(rows_of(output).values()),
        "same rows": rows_of(output) == rows_of(wanted),
        "same charges": spent == cost and whole,
        "nothing left": not setting.staging(name).exists(),
    }


def is_right(facts: Facts) -> bool:
    return (
        facts["exit code"] == 0
        and not facts["lost"]
        and facts["same rows"]
        and facts["same charges"]
        and facts["nothing left"]
    )


def would_be_caught(setting: Setting, chance: random.Random) -> bool:
    """Whether the comparison notices a run that was killed and started over."""
    for attempt in range(MOST_TRIES):
        facts = disturbed(setting, f"control-{attempt}", chance, "command", again="--force")
        if facts["killed"] and facts["kept"]:
            return bool(not_in(facts["kept"], content(setting.folder / f"control-{attempt}")))
    sys.exit("no command was killed after its first part: give more --rows")


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
    with tempfile.TemporaryDirectory(prefix="tacit-kill-") as temporary, cluster(None, 2) as ray:
        folder = Path(temporary)
        make_input(folder / "in", given.rows)
        setting = Setting(folder, make_vectors(folder), ray.ray.get_runtime_context().gcs_address)
        started = time.perf_counter()
        if subprocess.run(setting.command("undisturbed"), check=False).returncode != 0:
            sys.exit("the undisturbed run failed")
        longest = time.perf_counter() - started
        wanted, (cost, _) = content(folder / "undisturbed"), charges(setting.ledger("undisturbed"))
        say(f"an undisturbed run takes {longest:.1f} s")
        for number in range(given.kills):
            name, facts = trial(setting, number, chance)
            trials.append(checked(setting, name, facts, wanted, cost))
            say(f"{number + 1} of {given.kills}: {trials[-1]}")
        caught = would_be_caught(setting, chance)
    right, compared = sum(map(is_right, trials)), sum(facts["parts"] for facts in trials)
    report.table(
        "Trials",
        ("killed", "after s", "finished parts\ncompared", "not in\nthe output", "commands\nneeded", "rows", "ledger",
         "right"),
        [
            [t["kind"], seconds(t["second"]), str(t["parts"]), str(len(t["lost"])), str(t["runs"]), f"{t['rows']:,}",
             "same" if t["same charges"] else "OTHER", "yes" if is_right(t) else "NO"]
            for t in trials
        ],
    )  # fmt: skip
    report.notes.append(
        f"{right} of {len(trials)} trials ended right; {compared} finished parts compared byte for byte"
    )
    report.notes.append(
        f"a run that was killed and started over {'is' if caught else 'is NOT'} caught by the comparison"
    )
    report.facts = {"trials": trials, "undisturbed seconds": longest, "starting over is caught": caught}
    report.show(given.json)
    sys.exit(0 if right == len(trials) and compared and caught else 1)


if __name__ == "__main__":
    main()
