"""kill -9 in the middle of a job: it goes on after a restart, with the noise it had, and is counted once."""

from __future__ import annotations

import math
import re
import time

import pytest

from tacit.account.ledger import Subject, open_ledger
from tacit.serve.runner import RESERVED_ROWS
from tests.serve.process import Process
from tests.serve.waiting import finished

ROWS = 45_000
"""Several blocks of the engine."""


@pytest.fixture
def upload(job_form):
    rows = "".join(f"w{i % 40} w{i * 7 % 40} w{i * 3 % 40}\n" for i in range(ROWS))
    return job_form(content=f"text\n{rows}".encode(), epsilon=1.0)


def test_a_killed_service_finishes_its_jobs(tmp_path, upload, vectors, request_body, monkeypatch):
    monkeypatch.setenv("TACIT_LEDGER_KEY", "a key for tests, nothing more")
    state, options = tmp_path / "state", ("--allow", f"vectors={vectors}")
    service = Process(state, *options)
    job = service.client.post("/v1/jobs", **upload).json()
    partial = state / "jobs" / job["id"] / "output.csv.partial"
    end = time.monotonic() + 30
    while time.monotonic() < end and not (partial.exists() and partial.stat().st_size > 100):
        time.sleep(0.005)
    service.kill()
    begun = partial.read_bytes()
    spent = _spent(state)
    again = Process(state, *options)
    try:
        done = finished(again.client, job["id"], seconds=60)
        assert (done["state"], done["rows"], done["error"]) == ("done", ROWS, None)
        released = again.client.get(f"/v1/jobs/{job['id']}/result").content
        assert released.count(b"\n") == ROWS + 1
        assert len(begun) < len(released)
        assert released.startswith(begun)  # what was on disk before is what is released now
        assert again.client.post("/v1/rewrite", json=request_body()).status_code == 200
    finally:
        again.stop()
    assert "Traceback" not in again.log.read_text()
    assert 0 < spent < _spent(state)
    with open_ledger(state / "ledger.sqlite") as ledger:
        assert ledger.verify().ok
        releases = ledger.releases()
        assert len(releases) == math.ceil(ROWS / RESERVED_ROWS) + 1  # each part of the job once, and the request
        assert {record.state for record in releases} == {"committed"}


def _spent(state):
    with open_ledger(state / "ledger.sqlite") as ledger:
        return ledger.spent(Subject("key", "local")).epsilon


def test_a_service_that_is_asked_to_stop_leaves_the_job_for_the_next(tmp_path, upload, vectors):
    state, options = tmp_path / "state", ("--allow", f"vectors={vectors}")
    service = Process(state, *options)
    job = service.client.post("/v1/jobs", **upload).json()
    service.stop()
    assert service.process.returncode in (0, -15)
    assert not re.search("Traceback|unexpected", service.log.read_text())
    again = Process(state, *options)
    try:
        assert finished(again.client, job["id"], seconds=60)["state"] == "done"
    finally:
        again.stop()
