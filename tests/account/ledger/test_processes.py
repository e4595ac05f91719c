"""Many processes at once, and processes that are killed: the ledger may count too much, never too little."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tacit.account.ledger import Subject, open_ledger
from tacit.noise.source import public_generator

from .conftest import KEY

SPENDER = """
import sys
from tacit.account.ledger import BudgetExceededError, Subject, open_ledger
from tacit.guarantee import Adjacency, Guarantee, Notion, Unit
place, key, name, count = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
guarantee = Guarantee(notion=Notion.PURE, epsilon=0.1, unit=Unit.DOCUMENT, adjacency=Adjacency.ANY_TWO, mechanism="m")
print("ready", flush=True)
sys.stdin.readline()
granted = 0
with open_ledger(place, key) as ledger:
    for number in range(count):
        subjects = [Subject("document", "one text"), Subject("document", f"{name} {number}")]
        try:
            reservation = ledger.reserve(guarantee, dataset="d", subjects=subjects, token=f"{name} {number}")
        except BudgetExceededError:
            continue
        print("drawn", number, flush=True)
        reservation.commit()
        granted += 1
print("granted", granted, flush=True)
"""


def start(place: str, name: str, count: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", SPENDER, place, KEY, name, str(count)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def go(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("go\n")
    process.stdin.flush()


def output_of(process: subprocess.Popen[str]) -> list[str]:
    out, _ = process.communicate(timeout=240)
    return out.splitlines()


def test_eight_processes_never_overspend_and_use_all_of_it(place: str) -> None:
    """8 processes ask for 50 times 0.1 each, 40 in all; 20.05 is allowed: exactly 200 are granted.

    They are also the first to open the ledger, all at once.
    """
    processes = [start(place, f"process {number}", 50) for number in range(8)]
    for process in processes:
        assert process.stdout is not None
        process.stdout.readline()
    with open_ledger(place, KEY) as ledger:
        ledger.set_limit("document", epsilon=20.05)
        for process in processes:
            go(process)
        granted = [int(output_of(process)[-1].split()[1]) for process in processes]
        assert sum(granted) == 200
        assert ledger.spent(Subject("document", "one text")).epsilon == pytest.approx(20.0)
        assert len(ledger.releases(state="committed")) == 200
        assert ledger.verify().ok


def test_many_processes_make_one_ledger(tmp_path: Path) -> None:
    place = str(tmp_path / "new.db")
    processes = [start(place, f"process {number}", 2) for number in range(4)]
    for process in processes:
        go(process)
    assert [output_of(process)[-1] for process in processes] == ["granted 2"] * 4
    with open_ledger(place, KEY, create=False) as ledger:
        assert ledger.spent(Subject("document", "one text")).epsilon == pytest.approx(0.8)
        assert ledger.verify().ok


def test_killed_at_random_moments(tmp_path: Path) -> None:
    """Whatever was drawn before a process was killed is in the ledger, and the ledger is whole."""
    generator = public_generator(7)
    place = str(tmp_path / "budget.db")
    open_ledger(place, KEY).close()
    drawn = 0
    for run in range(6):
        process = start(place, f"run {run}", 10_000)
        go(process)
        assert process.stdout is not None
        process.stdout.readline()
        process.stdout.readline()  # at least one release
        time.sleep(float(generator.uniform(0.0, 0.3)))
        process.send_signal(signal.SIGKILL)
        lines = process.stdout.read().splitlines()
        process.wait()
        process.stdout.close()
        with contextlib.suppress(BrokenPipeError):
            assert process.stdin is not None
            process.stdin.close()
        drawn += 1 + len([line for line in lines if line.startswith("drawn")])
        with open_ledger(place, KEY, create=False) as ledger:
            spent = ledger.spent(Subject("document", "one text"))
            assert drawn <= spent.releases <= drawn + run + 1  # at most one per run was reserved and not drawn
            assert ledger.verify().ok
            assert len(ledger.releases(state="reserved")) <= run + 1
    assert drawn >= 6
