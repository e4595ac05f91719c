"""Jobs in processes of their own: limited memory, ended at once, and none is tried for ever."""

from __future__ import annotations

import gzip
import io
import json
import os
import signal
import threading
import time
from pathlib import Path

import pytest

from tacit.account.ledger import open_ledger
from tacit.serve import jobs, schedule
from tacit.serve.runner import JobOutcome
from tacit.serve.settings import ServiceSettings
from tacit.serve.workplace import JobProcessDiedError, JobProcesses
from tests.serve.process import Process
from tests.serve.waiting import finished

arrow = pytest.importorskip("pyarrow")
store = pytest.importorskip("pyarrow.parquet")

MEMORY = 1_500_000_000
LONG = b"text\n" + b"w1 w2 w3 w4 w5\n" * 50


def bomb(characters: int, rows: int) -> bytes:
    """A parquet file of some kilobytes: one long text in its dictionary, and its number in every row."""
    numbers = arrow.array([0] * rows, arrow.int32())
    column = arrow.DictionaryArray.from_arrays(numbers, arrow.array(["w1 " * (characters // 3)]))
    target = io.BytesIO()
    store.write_table(arrow.table({"text": column}), target, compression="zstd")
    return target.getvalue()


def page_bomb() -> bytes:
    """One page that unpacks to 160 megabytes of texts, which is as much as the reader needs at once."""
    rows = 40
    texts = arrow.array([f"{row:04d}" + "x" * 4_000_000 for row in range(rows)], arrow.large_string())
    target = io.BytesIO()
    store.write_table(
        arrow.table({"text": texts}), target, compression="zstd", use_dictionary=False, data_page_size=1_000_000_000,
        write_batch_size=rows,
    )  # fmt: skip
    return target.getvalue()


def test_b2_a_small_file_that_stands_for_gigabytes_is_refused(start, job_form, tmp_path):
    """The service lives, other jobs are done, and nothing of the file was charged."""
    content = bomb(8_000_000, 200_000)
    assert len(content) < 10_000
    client = start(jobs_apart=True, job_memory=MEMORY, unpacked=50_000_000)
    sent = client.post("/v1/jobs", **job_form(content=content, name="bomb.parquet")).json()
    other = client.post("/v1/jobs", **job_form(columns=["text"])).json()
    failed = finished(client, sent["id"], seconds=60)
    assert failed["state"] == "failed"
    assert "unpacks to more than 50,000,000 characters at row 7" in failed["error"]
    assert finished(client, other["id"], seconds=60)["state"] == "done"
    with open_ledger(tmp_path / "state" / "ledger.sqlite") as ledger:
        assert len(ledger.releases()) == 1


def test_b2_a_job_that_needs_more_memory_than_it_may_use_fails_with_a_sentence(start, job_form):
    client = start(jobs_apart=True, job_memory=300_000_000)
    sent = client.post("/v1/jobs", **job_form(content=page_bomb(), name="bomb.parquet")).json()
    failed = finished(client, sent["id"], seconds=60)
    assert (failed["state"], failed["resumable"]) == ("failed", True)
    assert "memory" in failed["error"]


def test_b2_a_gzip_bomb_is_refused_before_it_is_charged(start, job_form, tmp_path):
    content = gzip.compress(b"text\n" + b"w1 w2 w3\n" * 2_000_000)
    client = start(unpacked=1_000_000)
    failed = finished(client, client.post("/v1/jobs", **job_form(content=content, name="a.csv.gz")).json()["id"])
    assert failed["state"] == "failed"
    assert "unpacks to more than" in failed["error"]
    with open_ledger(tmp_path / "state" / "ledger.sqlite") as ledger:
        assert ledger.releases() == []


def test_b2_a_row_that_cannot_be_read_costs_no_budget(client, job_form, tmp_path):
    content = b"text\n" + b"w1\n" * 100 + b"\xff\n"
    assert finished(client, client.post("/v1/jobs", **job_form(content=content)).json()["id"])["state"] == "failed"
    with open_ledger(tmp_path / "state" / "ledger.sqlite") as ledger:
        assert ledger.releases() == []


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.jsonl", b'{"text": "' + b"w" * 20_000_000 + b'"}\n'),
        ("a.jsonl.gz", gzip.compress(b"\n" * 2_000_000)),
        ("a.csv", b'text\n"' + b"w" * 20_000_000 + b'"\n'),
        ("a.csv", b'text\n"' + b"w\n" * 10_000_000 + b'"\n'),
        ("a.txt.gz", gzip.compress(b"w" * 20_000_000)),
    ],
    ids=["line", "blank lines", "field", "open quote", "zipped line"],
)
def test_b2_lines_without_an_end_fail_with_a_sentence(client, job_form, name, content):
    sent = client.post("/v1/jobs", **job_form(content=content, name=name))
    assert sent.status_code == 202
    failed = finished(client, sent.json()["id"])
    assert (failed["state"], failed["resumable"]) == ("failed", False)
    assert "internal" not in failed["error"]


class _Deadly:
    """A place of work where the worker dies, having written so many more bytes each time."""

    def __init__(self, grows: int = 0) -> None:
        self.tries, self.grows = 0, grows

    def __call__(self, task, tell, check):
        self.tries += 1
        if self.grows and self.tries < 5:
            with Path(f"{task.files.output}.partial").open("ab") as file:
                file.write(b"x" * self.grows)
        elif self.grows:
            return JobOutcome(rows=1, units=1, mechanism="santext")
        raise JobProcessDiedError("workers-died", "SIGKILL")


def scheduled(tmp_path, work):
    """A schedule without a service around it, and a job in it."""
    from tacit.serve.keys import Keys
    from tacit.serve.metrics import Metrics

    settings = ServiceSettings(state=tmp_path)
    kept = jobs.JobStore(tmp_path / "jobs", 24.0)
    made = schedule.Schedule(kept, Keys(tmp_path), Metrics(), work, settings)
    if not kept.open_jobs():
        folder = kept.new_folder()
        (folder / "input.csv").write_bytes(LONG)
        kept.add(folder, None, "a.csv", "csv", {})
    return kept, made, kept.of(None)[0].id


def until(condition, seconds=20.0):
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.01)
    assert condition()


def test_b2_a_job_that_kills_its_worker_twice_is_failed(tmp_path):
    deadly = _Deadly()
    kept, made, id = scheduled(tmp_path, deadly)
    made.start()
    until(lambda: kept.current(id).state == "failed")
    made.stop()
    assert deadly.tries == 2
    assert kept.current(id).resumable
    assert "died twice" in kept.current(id).error
    assert (tmp_path / "jobs" / id / "input.csv").exists()  # nothing is lost


def test_b2_a_job_that_gets_on_may_lose_more_workers(tmp_path):
    working = _Deadly(grows=10)
    kept, made, id = scheduled(tmp_path, working)
    made.start()
    until(lambda: kept.current(id).state == "done")
    made.stop()
    assert working.tries == 5


def test_b2_a_job_that_takes_the_service_with_it_is_tried_twice(tmp_path):
    """What is on the disk is what a service finds that was killed: the attempt is counted before it is made."""
    for attempt in (1, 2):
        entered, go = threading.Event(), threading.Event()

        def hangs(task, tell, check, entered=entered, go=go):
            entered.set()
            go.wait(20)
            raise JobProcessDiedError("workers-died", "gone with the service")

        kept, made, id = scheduled(tmp_path, hangs)
        made.start()
        assert entered.wait(20)
        assert json.loads((tmp_path / "jobs" / id / "job.json").read_text())["attempts"] == attempt
        made._ending.set()
        go.set()
        made.stop()
    deadly = _Deadly()
    kept, made, id = scheduled(tmp_path, deadly)
    made.start()
    until(lambda: kept.current(id).state == "failed")
    made.stop()
    assert deadly.tries == 0


def test_b2_a_service_that_is_asked_to_stop_counts_no_attempt(tmp_path):
    def waits(task, tell, check):
        while True:
            check()
            time.sleep(0.01)

    for _ in range(4):
        kept, made, id = scheduled(tmp_path, waits)
        made.start()
        until(lambda kept=kept, id=id: kept.current(id).state == "running")
        made.stop()
        assert json.loads((tmp_path / "jobs" / id / "job.json").read_text())["attempts"] == 0


def test_b3_one_key_cannot_hold_up_the_jobs_of_all_others(tmp_path):
    from tacit.serve.keys import Keys
    from tacit.serve.metrics import Metrics

    kept, done = jobs.JobStore(tmp_path / "jobs", 24.0), []
    for name in ("one", "two"):
        Keys(tmp_path).add(name, 600)

    def work(task, tell, check):
        while task.owner == "one":
            check()
            time.sleep(0.01)
        done.append(task.id)
        return JobOutcome(1, 1, "santext")

    made = schedule.Schedule(kept, Keys(tmp_path), Metrics(), work, ServiceSettings(state=tmp_path))
    for owner in ("one", "one", "one", "two"):
        folder = kept.new_folder()
        (folder / "input.csv").write_bytes(LONG)
        kept.add(folder, owner, "a.csv", "csv", {})
    made.start()
    until(lambda: len(done) == 1)
    assert sorted(job.state for job in kept.of("one")) == ["queued", "queued", "running"]
    made.stop()


@pytest.fixture
def endless(tmp_path, vectors):
    """A service whose job computes for hours, and the folder of its job."""
    state = tmp_path / "state"
    service = Process(state, "--allow", f"vectors={vectors}")
    settings = {"mechanism": "santext", "epsilon": 1.0, "options": {"vectors": vectors}}
    rows = b"text\n" + b"".join(b"w%d " % (number % 40) * 4_000_000 + b"\n" for number in range(3))
    form = {"files": {"file": ("a.csv", rows)}, "data": {"settings": json.dumps(settings)}}
    job = service.client.post("/v1/jobs", **form).json()
    until(
        lambda: (
            children(service.process.pid) and service.client.get(f"/v1/jobs/{job['id']}").json()["state"] == "running"
        )
    )
    yield service, job
    service.kill()


def children(pid: int) -> list[int]:
    results = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in map(int, (task / "children").read_text().split()):
            if b"multiprocessing.spawn" in Path(f"/proc/{child}/cmdline").read_bytes():
                results.append(child)
    return results


def gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def test_b3_a_long_computation_ends_when_its_job_is_canceled(endless):
    service, job = endless
    workers = children(service.process.pid)
    assert service.client.delete(f"/v1/jobs/{job['id']}").json()["state"] == "canceled"
    until(lambda: all(map(gone, workers)), 10)
    assert service.client.get(f"/v1/jobs/{job['id']}").json()["state"] == "canceled"


def test_b3_a_long_computation_does_not_survive_the_service(endless):
    service, _ = endless
    workers = children(service.process.pid)
    service.process.send_signal(signal.SIGTERM)
    service.process.wait(timeout=20)
    until(lambda: all(map(gone, workers)), 10)


def test_b2_a_worker_process_that_is_killed_is_replaced(start, job_form, tmp_path, monkeypatch):
    client = start(jobs_apart=True)
    original, killed = JobProcesses.__call__, []

    def watched(self, task, tell, check):
        def kills():
            check()
            for pid in children(os.getpid())[:1]:
                if not killed:
                    killed.append(pid)
                    os.kill(pid, signal.SIGKILL)

        return original(self, task, tell, kills)

    monkeypatch.setattr(JobProcesses, "__call__", watched)
    job = client.post("/v1/jobs", **job_form(content=LONG)).json()
    done = finished(client, job["id"], seconds=60)
    assert (done["state"], done["rows"]) == ("done", 50)
    assert killed


def test_b2_a_worker_waits_until_its_predecessor_is_gone(tmp_path):
    """The process of a killed service may need a moment to notice; nobody writes beside it."""
    from concurrent.futures import ThreadPoolExecutor

    from tacit.serve.lock import lock_job

    first = lock_job(tmp_path)
    with ThreadPoolExecutor(1) as thread:
        second = thread.submit(lock_job, tmp_path)
        time.sleep(0.2)
        assert not second.done()
        first.release()
        second.result(timeout=10).release()
