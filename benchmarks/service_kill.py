"""kill -9 of `tacit serve`, or of a worker process of its jobs, at random moments, in the middle of jobs and requests.

    python benchmarks/service_kill.py                         20 kills, of the service or of a job worker
    python benchmarks/service_kill.py --kills 5 --job-workers 1     a job is one process

A service works on jobs while clients send requests. At a random moment it is killed and started again in the same state
folder; or the process of a job, or one of its workers, is killed, and the service must go on by itself. A job that was
hit twice at the same place fails, and is resumed. A kill that hit nothing does not count. After the last kill all jobs
must finish. Checked for every kill and at the end:

    no row is released twice with different noise     what lay finished on the disk at the kill is, byte for byte, the
                                                       beginning of the file that is downloaded in the end
    no budget is under-counted                         the ledger has at least the cost of every answer that a client
                                                       has received, has every job exactly once, and its chain is intact
    every job finishes                                 all uploads become files with as many rows and units
    nobody works on                                    the workers of a killed service end with it; a service whose
                                                       worker was killed still answers

Moments are drawn from a seed (`--seed`), so a run can be repeated, as far as a busy machine repeats anything. The exit
code is 1 if anything is wrong.
"""

from __future__ import annotations

import argparse
import contextlib
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
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console

from service import Service, sentences

EPSILON = 4.0
MECHANISM = "custext"
ROWS = 30_000
ORPHAN_SECONDS = 10.0
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
    """Requests one after the other until the service is gone or they are told to stop; remembers what the answers said
    they cost."""

    def __init__(self, port: int, texts: list[str], count: int = 4) -> None:
        self.received = 0.0
        self.answers = 0
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(port, texts, i), daemon=True) for i in range(count)]
        for thread in self._threads:
            thread.start()

    def _run(self, port: int, texts: list[str], number: int) -> None:
        chance = random.Random(number)
        while not self._stop.is_set():
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
        self._stop.set()
        for thread in self._threads:
            thread.join(timeout=120)


def units_of(answer: dict[str, Any]) -> float:
    return float(sum(answer["units"]) * len(answer["draws"]))


def ledger_units(state: Path) -> tuple[float, dict[str, float], bool]:
    """Units that the ledger has counted for this service, in all and for each job (mechanisms without a plain epsilon
    count in units too); whether its chain is intact."""
    from tacit.account.ledger import open_ledger

    if not (state / "ledger.sqlite").exists():
        return 0.0, {}, True
    with open_ledger(state / "ledger.sqlite", key=os.environ["TACIT_LEDGER_KEY"]) as ledger:
        releases, intact = ledger.export(subjects=True)["releases"], ledger.verify().ok
    counted, of_jobs = 0.0, {}
    for release in releases:
        if release["state"] == "canceled":
            continue
        units = float(sum(charge["units"] for charge in release["charges"] if charge["kind"] == "key"))
        counted += units
        if release["job"] is not None:
            of_jobs[release["job"]] = of_jobs.get(release["job"], 0.0) + units
    return counted, of_jobs, intact


def finished_bytes(state: Path) -> dict[str, bytes]:
    """What of each job lies finished on the disk: bytes that a resumed run keeps."""
    found = {}
    for folder in (state / "jobs").iterdir():
        whole, partial, resume = (folder / f"output.txt{end}" for end in ("", ".partial", ".resume"))
        if whole.exists():
            found[folder.name] = whole.read_bytes()
            continue
        with contextlib.suppress(FileNotFoundError):  # not begun yet, or just finished
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


# Processes ----------------------------------------------------------------------------------------------------------


def job_workers(service: Service) -> list[tuple[int, str]]:
    """The processes of the service's jobs and their workers, each with the moment of its start: a number may be used
    again."""
    return [(pid, start_of(pid)) for pid in descendants(service.process.pid)]


def descendants(parent: int) -> list[int]:
    found: list[int] = []
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{parent}/task").iterdir():
            for pid in map(int, (task / "children").read_text().split()):
                if b"multiprocessing.spawn" in Path(f"/proc/{pid}/cmdline").read_bytes():
                    found += [pid, *descendants(pid)]
    return found


def start_of(pid: int) -> str:
    """Empty for a process that is gone, or dead and not yet buried."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] in "ZX" else fields[19]


def still_there(workers: list[tuple[int, str]]) -> list[int]:
    """Those that have not ended after a while."""
    end = time.monotonic() + ORPHAN_SECONDS
    while time.monotonic() < end and any(start_of(pid) == start for pid, start in workers):
        time.sleep(0.05)
    return [pid for pid, start in workers if start_of(pid) == start]


def resumed(service: Service, job: dict[str, Any]) -> bool:
    """Whether a job that was hit twice at the same place goes on again."""
    if job["state"] != "failed" or not job["resumable"] or "died twice" not in job["error"]:
        return False
    call(service.port, f"/v1/jobs/{job['id']}/resume", b"")
    return True


# Trials -------------------------------------------------------------------------------------------------------------


@dataclass
class Trials:
    """A state folder, the service on it, and what is known of both."""

    state: Path
    workers: int
    rows: list[str]
    texts: list[str]
    chance: random.Random
    service: Service | None = None
    jobs: list[str] = field(default_factory=list)
    seen: dict[str, list[bytes]] = field(default_factory=dict)
    received: float = 0.0
    problems: list[str] = field(default_factory=list)
    killed: dict[str, int] = field(default_factory=lambda: {"service": 0, "job workers": 0})

    def running(self) -> Service:
        if self.service is None:
            self.service = Service(self.state, "--job-workers", str(self.workers))
        return self.service

    def kill(self, number: int) -> None:
        """Once, while clients ask and a job is at work; a worker that could not be found is waited for again."""
        kind = self.chance.choice(("service", "job workers"))
        answers = 0
        while True:
            service = self.running()
            self._keep_busy(service)
            clients = Clients(service.port, self.texts)
            if self.chance.random() < 0.6:
                wait_for_output(self.state)
            time.sleep(self.chance.uniform(0.0, 2.0))
            hit = self._kill_service(service) if kind == "service" else self._kill_worker(service)
            clients.join()
            self.received += clients.received
            answers += clients.answers
            if hit:
                break
        self.killed[kind] += 1
        self._note(number, kind, answers)

    def _keep_busy(self, service: Service) -> None:
        open_jobs = [job for job in json.loads(call(service.port, "/v1/jobs"))["jobs"] if job["state"] != "done"]
        for job in open_jobs:
            if not resumed(service, job) and job["error"]:
                self.problems.append(f"job {job['id']} is {job['state']}: {job['error']}")
        if len(open_jobs) < 2:
            self.jobs.append(upload(service.port, self.rows))

    def _kill_service(self, service: Service) -> bool:
        workers = job_workers(service)
        os.kill(service.process.pid, signal.SIGKILL)
        hit = service.process.wait() == -signal.SIGKILL
        self.service = None
        if left := still_there(workers):
            self.problems.append(f"{len(left)} job workers went on without their service")
        self._remember()
        return hit

    def _kill_worker(self, service: Service) -> bool:
        workers = job_workers(service)
        self._remember()
        if not workers:
            return False
        chosen = self.chance.choice(workers)
        with contextlib.suppress(ProcessLookupError):
            os.kill(chosen[0], signal.SIGKILL)
        if still_there([chosen]):
            self.problems.append("a job worker outlived SIGKILL")
        call(service.port, "/healthz")
        self._remember()
        return True

    def _remember(self) -> None:
        for id, data in finished_bytes(self.state).items():
            self.seen.setdefault(id, []).append(data)

    def _note(self, number: int, kind: str, answers: int) -> None:
        counted, _, intact = ledger_units(self.state)
        if counted < self.received or not intact:
            self.problems.append(
                f"kill {number}: {self.received:,.0f} units received, {counted:,.0f} counted, intact: {intact}"
            )
        sizes = ", ".join(f"{len(versions[-1]):,}" for versions in self.seen.values()) or "nothing"
        console.print(f"kill {number:2} ({kind}): {answers} answers; bytes finished: {sizes}; "
                      f"units received {self.received:,.0f}, counted {counted:,.0f}")  # fmt: skip

    def finish(self) -> str:
        """All jobs to their end, and everything compared; one sentence about it."""
        service = self.running()
        units = {id: self._finished(service, id) for id in self.jobs}
        service.stop()
        counted, of_jobs, intact = ledger_units(self.state)
        if counted < self.received or not intact:
            self.problems.append(
                f"at the end: {self.received:,.0f} units received, {counted:,.0f} counted, intact: {intact}"
            )
        # The ledger knows jobs by a hash of their names; jobs of the same file cost the same.
        if len({*units.values()}) != 1 or sorted(of_jobs.values()) != sorted(units.values()):
            shown = f"{sorted(units.values())} in the answers, {sorted(of_jobs.values())} in the ledger"
            self.problems.append(f"jobs of the same file were not all charged the same, once: {shown}")
        compared = sum(len(found) for found in self.seen.values())
        if not compared:
            self.problems.append("no kill found a finished part: give more --rows")
        return (
            f"{len(self.jobs)} jobs of {len(self.rows):,} rows, {compared} finished parts compared, "
            f"{self.received:,.0f} units received, {counted:,.0f} counted, ledger intact: {intact}"
        )

    def _finished(self, service: Service, id: str) -> float:
        """What a job cost, once it is done and its file is what lay on the disk before."""
        end = time.monotonic() + 600
        while (job := json.loads(call(service.port, f"/v1/jobs/{id}")))["state"] in ("queued", "running") or resumed(
            service, job
        ):
            if time.monotonic() > end:
                break
            time.sleep(0.2)
        if job["state"] != "done" or job["rows"] != len(self.rows):
            self.problems.append(f"job {id} is {job['state']} with {job['rows']} rows: {job['error']}")
            return 0.0
        result = call(service.port, f"/v1/jobs/{id}/result")
        self.problems += [
            f"job {id}: a part that lay on the disk is not in the result"
            for data in self.seen.get(id, [])
            if not result.startswith(data)
        ]
        if result.count(b"\n") != len(self.rows):
            self.problems.append(f"job {id}: the file has {result.count(bytes([10]))} rows")
        self.received += job["units"]
        return float(job["units"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--rows", type=int, default=ROWS, help="of each uploaded file")
    parser.add_argument("--job-workers", type=int, default=2, help="processes that rewrite a job")
    parser.add_argument("--seed", type=int, default=7)
    given = parser.parse_args()
    os.environ.setdefault("TACIT_LEDGER_KEY", "a key for a benchmark only")
    texts = sentences()
    rows = [texts[i % len(texts)] for i in range(given.rows)]
    with tempfile.TemporaryDirectory() as folder:
        trials = Trials(Path(folder), given.job_workers, rows, texts, random.Random(given.seed))
        try:
            for number in range(1, given.kills + 1):
                trials.kill(number)
            found = trials.finish()
        finally:
            if trials.service is not None and trials.service.process.poll() is None:
                trials.service.stop()
    kills = " and ".join(f"{count} of the {kind}" for kind, count in trials.killed.items())
    console.print(f"{given.kills} kills ({kills}), {found}")
    for problem in trials.problems:
        console.print(f"PROBLEM {problem}", style="red")
    console.print("no problem found" if not trials.problems else f"{len(trials.problems)} problems")
    sys.exit(1 if trials.problems else 0)


if __name__ == "__main__":
    main()
