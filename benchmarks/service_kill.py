"""kill -9 of `tacit serve` at random moments, in the middle of jobs and requests.

    python benchmarks/service_kill.py              20 kills
    python benchmarks/service_kill.py --kills 5

A service works on jobs while clients send requests; at a random moment it is killed, and started again in the same
state folder. After the last kill all jobs must finish. Checked for every kill and at the end:

    no row is released twice with different noise     what lay finished on the disk at the kill is, byte for byte, the
                                                       beginning of the file that is downloaded in the end
    no budget is under-counted                         the ledger has at least the cost of every answer that a client
                                                       has received, of every finished job, and its chain is intact
    every job finishes                                 all uploads become files with as many rows

Moments are drawn from a seed (`--seed`), so a run can be repeated, as far as a busy machine repeats anything.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from rich.console import Console

from service import Service, sentences

EPSILON = 4.0
MECHANISM = "custext"
ROWS = 30_000
console = Console(width=120)


def call(port: int, path: str, data: bytes | None = None, kind: str = "application/json", method: str = "") -> bytes:
    asked = urllib.request.Request(f"http://127.0.0.1:{port}{path}", data=data, headers={"content-type": kind})
    if method:
        asked.method = method
    with urllib.request.urlopen(asked, timeout=120) as answer:
        return bytes(answer.read())


def upload(port: int, rows: list[str]) -> str:
    settings = json.dumps({"mechanism": MECHANISM, "epsilon": EPSILON})
    parts = [
        '--cut\r\ncontent-disposition: form-data; name="settings"\r\n\r\n' + settings,
        '--cut\r\ncontent-disposition: form-data; name="file"; filename="rows.txt"\r\n\r\n' + "\n".join(rows) + "\n",
        "--cut--\r\n",
    ]
    body = "\r\n".join(parts).encode()
    return str(json.loads(call(port, "/v1/jobs", body, "multipart/form-data; boundary=cut"))["id"])


class Clients:
    """Requests one after the other until the service is gone; remembers what the answers said they cost."""

    def __init__(self, port: int, texts: list[str], count: int = 4) -> None:
        self.received = 0.0
        self.answers = 0
        self._lock = threading.Lock()
        self._threads = [threading.Thread(target=self._run, args=(port, texts, i), daemon=True) for i in range(count)]
        for thread in self._threads:
            thread.start()

    def _run(self, port: int, texts: list[str], number: int) -> None:
        chance = random.Random(number)
        while True:
            some = chance.sample(texts, 4)
            body = json.dumps({"texts": some, "mechanism": MECHANISM, "epsilon": EPSILON}).encode()
            try:
                answer = json.loads(call(port, "/v1/rewrite", body))
            except (OSError, urllib.error.URLError, ValueError, ConnectionError):
                return  # the service was killed
            except Exception as error:  # a torn answer is none
                if type(error).__module__ != "http.client":
                    raise
                return
            with self._lock:
                self.received += units_of(answer)
                self.answers += 1

    def join(self) -> None:
        for thread in self._threads:
            thread.join(timeout=120)


def units_of(answer: dict[str, Any]) -> float:
    return float(sum(answer["units"]) * len(answer["draws"]))


def ledger_units(state: Path) -> tuple[float, bool]:
    """Units that the ledger has counted for this service (mechanisms without a plain epsilon count in units too)."""
    from tacit.account.ledger import open_ledger

    with open_ledger(state / "ledger.sqlite", key=os.environ["TACIT_LEDGER_KEY"]) as ledger:
        exported = ledger.export(subjects=True)
        counted = sum(
            charge["units"]
            for release in exported["releases"]
            if release["state"] != "canceled"
            for charge in release["charges"]
            if charge["kind"] == "key"
        )
        return float(counted), ledger.verify().ok


def finished_bytes(state: Path) -> dict[str, bytes]:
    """What of each job lies finished on the disk: bytes that a resumed run keeps."""
    found = {}
    for folder in (state / "jobs").iterdir():
        whole, partial, resume = (folder / f"output.txt{end}" for end in ("", ".partial", ".resume"))
        if whole.exists():
            found[folder.name] = whole.read_bytes()
        elif partial.exists() and resume.exists():
            complete = [line for line in resume.read_bytes().split(b"\n")[1:-1] if line]
            if complete:
                found[folder.name] = partial.read_bytes()[: json.loads(complete[-1])["offset"]]
    return found


def wait_for_output(state: Path, seconds: float = 60.0) -> None:
    """Until a job of this moment has begun to write, so that kills also hit the middle of files."""
    before = finished_bytes(state)
    end = time.monotonic() + seconds
    while time.monotonic() < end and finished_bytes(state) == before:
        time.sleep(0.05)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--rows", type=int, default=ROWS, help="of each uploaded file")
    parser.add_argument("--seed", type=int, default=7)
    given = parser.parse_args()
    os.environ.setdefault("TACIT_LEDGER_KEY", "a key for a benchmark only")
    chance = random.Random(given.seed)
    texts = sentences()
    rows = [texts[i % len(texts)] for i in range(given.rows)]
    problems: list[str] = []
    seen: dict[str, list[bytes]] = {}
    received, jobs = 0.0, []
    with tempfile.TemporaryDirectory() as folder:
        state = Path(folder)
        for kill in range(given.kills):
            service = Service(state)
            open_jobs = [job for job in json.loads(call(service.port, "/v1/jobs"))["jobs"] if job["state"] != "done"]
            problems += [f"job {job['id']} is {job['state']}: {job['error']}" for job in open_jobs if job["error"]]
            if len(open_jobs) < 2:
                jobs.append(upload(service.port, rows))
            clients = Clients(service.port, texts)
            if chance.random() < 0.6:
                wait_for_output(state)
            time.sleep(chance.uniform(0.0, 2.0))
            os.kill(service.process.pid, signal.SIGKILL)
            service.process.wait()
            clients.join()
            received += clients.received
            found = finished_bytes(state)
            for id, data in found.items():
                seen.setdefault(id, []).append(data)
            counted, intact = ledger_units(state) if (state / "ledger.sqlite").exists() else (0.0, True)
            if counted < received or not intact:
                problems.append(
                    f"kill {kill}: {received:,.0f} units received, {counted:,.0f} counted, intact: {intact}"
                )
            sizes = ", ".join(f"{len(data):,}" for data in found.values()) or "nothing"
            console.print(f"kill {kill + 1:2}: {clients.answers} answers; bytes finished: {sizes}; "
                          f"units received {received:,.0f}, counted {counted:,.0f}")  # fmt: skip
        service = Service(state)
        for id in jobs:
            end = time.monotonic() + 600
            while (job := json.loads(call(service.port, f"/v1/jobs/{id}")))["state"] in ("queued", "running"):
                if time.monotonic() > end:
                    break
                time.sleep(0.2)
            if job["state"] != "done" or job["rows"] != given.rows:
                problems.append(f"job {id} is {job['state']} with {job['rows']} of {given.rows} rows: {job['error']}")
                continue
            result = call(service.port, f"/v1/jobs/{id}/result")
            received += job["units"]
            problems += [
                f"job {id}: a part that lay on the disk is not in the result"
                for data in seen.get(id, [])
                if not result.startswith(data)
            ]
        service.stop()
        counted, intact = ledger_units(state)
        if counted < received or not intact:
            problems.append(f"at the end: {received:,.0f} units received, {counted:,.0f} counted, intact: {intact}")
    compared = sum(len(found) for found in seen.values())
    console.print(f"{given.kills} kills, {len(jobs)} jobs of {given.rows:,} rows, {compared} finished parts compared, "
                  f"{received:,.0f} units received, {counted:,.0f} counted, ledger intact: {intact}")  # fmt: skip
    for problem in problems:
        console.print(f"PROBLEM {problem}", style="red")
    console.print("no problem found" if not problems else f"{len(problems)} problems")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
