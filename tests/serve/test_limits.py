"""What one key can do to the others: nothing, by jobs, streams, counts, options or a second service."""

from __future__ import annotations

import contextlib
import errno
import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from tacit.cli.main import run
from tacit.errors import BadInputError, BadParameterError
from tacit.serve import files, gate, jobs, keys, runner, schedule
from tacit.serve.app import create_app
from tacit.serve.errors import ServiceError
from tacit.serve.jobs import JobStore
from tacit.serve.keys import Keys
from tacit.serve.pool import checked_options
from tacit.serve.settings import ServiceSettings
from tests.serve.live import ask, served
from tests.serve.waiting import finished

LONG = b"text\n" + b"w1 w2 w3 w4 w5\n" * 50


def bearer(secret):
    return {"authorization": f"Bearer {secret}"}


# Jobs -----------------------------------------------------------------------------------------------------------------


def test_b6_uploads_at_the_same_time_cannot_all_take_the_last_place(client, job_form, monkeypatch):
    """39 jobs were open where 20 are allowed: all had looked before the first was written down."""
    monkeypatch.setattr(jobs, "MOST_OPEN_JOBS", 3)
    monkeypatch.setattr(schedule.Schedule, "put", lambda self, job: None)  # nothing is worked on
    together = threading.Barrier(9, timeout=5)
    original = files.JobRoutes._stored

    def slow(self, *given):
        with contextlib.suppress(threading.BrokenBarrierError):
            together.wait()
        return original(self, *given)

    monkeypatch.setattr(files.JobRoutes, "_stored", slow)
    monkeypatch.setattr(files, "POLL_SECONDS", 0.01)
    threading.Timer(1.0, together.abort).start()
    with ThreadPoolExecutor(9) as many:
        statuses = list(many.map(lambda _: client.post("/v1/jobs", **job_form(content=LONG)).status_code, range(9)))
    assert sorted(statuses) == [202] * 3 + [429] * 6
    assert len(client.get("/v1/jobs").json()["jobs"]) == 3
    assert client.post("/v1/jobs", **job_form(content=LONG)).status_code == 429


def test_b6_an_upload_that_failed_gives_its_place_back(client, job_form, monkeypatch):
    monkeypatch.setattr(jobs, "MOST_OPEN_JOBS", 1)
    for _ in range(3):
        assert client.post("/v1/jobs", **job_form(name="picture.png")).status_code == 422
    assert client.post("/v1/jobs", **job_form(columns=["text"])).status_code == 202


def test_b6_resuming_is_no_way_around_the_limit(tmp_path, monkeypatch):
    monkeypatch.setattr(jobs, "MOST_OPEN_JOBS", 1)
    store = JobStore(tmp_path / "jobs", 1.0)
    made = []
    for _ in range(2):
        folder = store.new_folder()
        (folder / "input.csv").write_text("text\nw1\n")
        job = store.add(folder, "one", "a.csv", "csv", {})
        store.update(job.id, state="failed", resumable=True, attempts=2)
        made.append(job.id)
    assert store.reopen(made[0], "one").attempts == 0
    with pytest.raises(Exception, match="not finished"):
        store.reopen(made[1], "one")


# Keys -----------------------------------------------------------------------------------------------------------------


@pytest.fixture
def two(start, tmp_path, monkeypatch):
    monkeypatch.setattr(keys, "REREAD_SECONDS", 0.0)
    monkeypatch.setattr(gate, "KEY_SECONDS", 0.0)
    state = tmp_path / "state"
    first, other = (Keys(state).add(name, 600) for name in ("one", "other"))
    return start(state, operators=("other",)), bearer(first), bearer(other), state


def test_b6_a_stream_ends_when_its_key_is_revoked(tmp_path, vectors, request_body, monkeypatch):
    monkeypatch.setattr(keys, "REREAD_SECONDS", 0.0)
    monkeypatch.setattr(gate, "KEY_SECONDS", 0.0)
    secret = Keys(tmp_path).add("one", 600)
    original = gate.Gate._check_key
    looked = []

    def revoked_meanwhile(self, caller):
        looked.append(caller)
        if len(looked) == 10:
            Keys(tmp_path).revoke("one")
        original(self, caller)

    monkeypatch.setattr(gate.Gate, "_check_key", revoked_meanwhile)
    body = json.dumps(request_body(texts=["w1"] * 50, stream=True)).encode()
    headers = f"content-type: application/json\r\nauthorization: Bearer {secret}\r\n"
    with served(ServiceSettings(state=tmp_path, allowed=(("vectors", vectors),))) as port:
        status, answer = ask(port, "/v1/rewrite", headers, "POST", body)
        assert status == 200
        assert 1 <= answer.count(b'"draw"') < 10
        assert b"guarantee" not in answer
        assert ask(port, "/v1/rewrite", headers, "POST", body)[0] == 401


def test_b6_progress_of_a_job_ends_when_its_key_is_revoked(two, job_form, monkeypatch):
    client, first, _, state = two
    entered, go = threading.Event(), threading.Event()

    def hangs(self):
        entered.set()
        assert go.wait(20)
        return runner.JobOutcome(1, 1, "santext")

    monkeypatch.setattr(runner.JobWork, "outcome", hangs)
    job = client.post("/v1/jobs", headers=first, **job_form(content=LONG)).json()
    assert entered.wait(20)
    with ThreadPoolExecutor(1) as other:
        events = other.submit(lambda: client.get(f"/v1/jobs/{job['id']}/events", headers=first).text)
        time.sleep(0.3)
        Keys(state).revoke("one")
        events_sent = events.result(timeout=10)
    assert "event: progress" in events_sent
    assert "event: done" not in events_sent
    go.set()


def test_b6_an_answer_that_was_worked_out_for_a_revoked_key_is_not_sent(two, request_body, monkeypatch):
    from tacit.words.santext import SanText

    client, first, _, state = two
    original = SanText.rewrite_texts

    def revoked_meanwhile(self, texts, source):
        Keys(state).revoke("one")
        return original(self, texts, source)

    monkeypatch.setattr(SanText, "rewrite_texts", revoked_meanwhile)
    assert client.post("/v1/rewrite", json=request_body(), headers=first).status_code == 401


def test_b6_counts_of_all_keys_are_for_operators_only(two, start, tmp_path):
    client, first, other, _ = two
    refused = client.get("/metrics", headers=first)
    assert refused.status_code == 403
    assert "tacit_" not in refused.text
    assert client.get("/metrics").status_code == 401
    assert "tacit_requests_total" in client.get("/metrics", headers=other).text
    assert start(tmp_path / "without keys").get("/metrics").status_code == 200


def test_b6_one_key_cannot_take_all_places_of_waiting_requests():
    from tacit.serve.batching import Order, OrderQueues, Spender
    from tacit.serve.errors import ServiceError
    from tacit.serve.metrics import Metrics

    lines = OrderQueues(None, None, Metrics(), 4)
    for _ in range(2):
        lines._open_of["one"] += 1
        lines.open += 1
    with pytest.raises(ServiceError) as caught:
        lines.check_room("one")
    assert caught.value.status == 429
    lines.check_room("two")
    lines.leave(Order([], Spender("one")))
    lines.check_room("one")


# Options --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mechanism", "option", "value"),
    [("santext", "limit", 400_000), ("brr", "bits", 4_096), ("laplace", "neighbors", 30_000), ("adept", "beams", 99),
     ("adept", "batch_size", 100_000), ("custext", "limit", 30_001)],
)  # fmt: skip
def test_b6_nobody_chooses_how_much_memory_a_mechanism_takes(mechanism, option, value):
    """Twelve mechanisms are kept: with 400,000 words each they held four gigabytes."""
    with pytest.raises(BadParameterError, match="at most"):
        checked_options(mechanism, {option: value}, ())
    assert checked_options(mechanism, {option: value}, ((option, str(value)),)) == {option: value}
    assert checked_options(mechanism, {option: 2}, ()) == {option: 2}


def test_b6_a_request_hears_of_the_bound(client):
    body = {"text": "a", "mechanism": "santext", "epsilon": 2.0, "options": {"limit": 400_000}}
    answer = client.post("/v1/rewrite", json=body)
    assert answer.status_code == 422
    assert "'limit' is at most 30,000" in answer.json()["error"]["message"]


# One service per folder -----------------------------------------------------------------------------------------------


def test_b6_two_services_cannot_share_a_state_folder(start, tmp_path, capsys):
    client = start(tmp_path / "state")
    with pytest.raises(BadInputError, match="another service uses the state folder"):
        create_app(ServiceSettings(state=tmp_path / "state"))
    assert run(["serve", "--port", "0", "--state", str(tmp_path / "state")]) != 0
    assert "another service uses the state folder" in capsys.readouterr().err
    client.__exit__(None, None, None)
    assert start(tmp_path / "state").get("/healthz").status_code == 200


# Records --------------------------------------------------------------------------------------------------------------


def record_of(tmp_path, job):
    return tmp_path / "state" / "jobs" / job["id"] / "job.json"


def test_b7_a_record_of_a_newer_version_keeps_its_results(start, job_form, tmp_path):
    """Results were deleted at start because of one field that this version does not know."""
    first = start()
    job = first.post("/v1/jobs", **job_form(columns=["text"])).json()
    finished(first, job["id"])
    released = first.get(f"/v1/jobs/{job['id']}/result").content
    first.__exit__(None, None, None)
    record = record_of(tmp_path, job)
    record.write_text(json.dumps({**json.loads(record.read_text()), "priority": {"of": "a newer version"}}))
    again = start()
    assert again.get(f"/v1/jobs/{job['id']}/result").content == released
    assert "priority" not in again.get(f"/v1/jobs/{job['id']}").text
    again.app.state.schedule._store.update(job["id"], rows=2)
    assert json.loads(record.read_text())["priority"] == {"of": "a newer version"}  # kept for that version


@pytest.mark.parametrize(
    "damage",
    [
        lambda result: b"",
        lambda result: b"{",
        lambda result: b"[]",
        lambda result: json.dumps({**result, "state": "paused"}).encode(),
        lambda result: json.dumps({**result, "expires": "soon"}).encode(),
        lambda result: json.dumps({**result, "settings": None}).encode(),
        lambda result: json.dumps({**result, "format": "../x"}).encode(),
        lambda result: json.dumps({**result, "id": "0" * 32}).encode(),
        lambda result: json.dumps({name: value for name, value in result.items() if name != "owner"}).encode(),
    ],
    ids=["empty", "cut", "list", "state", "time", "settings", "format", "id", "missing"],
)
def test_b7_a_record_that_cannot_be_read_costs_no_file(start, job_form, tmp_path, damage, caplog):
    first = start()
    job = first.post("/v1/jobs", **job_form(columns=["text"])).json()
    finished(first, job["id"])
    first.__exit__(None, None, None)
    record = record_of(tmp_path, job)
    kept = record.read_bytes()
    record.write_bytes(damage(json.loads(kept)))
    files_before = sorted(path.name for path in record.parent.iterdir())
    again = start()
    assert again.get("/v1/jobs").json()["jobs"] == []
    assert sorted(path.name for path in record.parent.iterdir()) == files_before
    assert "cannot be read: its files are left as they are" in caplog.text
    again.__exit__(None, None, None)
    record.write_bytes(kept)
    assert start().get(f"/v1/jobs/{job['id']}/result").status_code == 200


def test_b7_what_is_not_ours_is_left_alone(tmp_path):
    (tmp_path / "jobs" / "notes of the operator").mkdir(parents=True)
    (tmp_path / "jobs" / ("0" * 32)).mkdir()
    (tmp_path / "jobs" / ("0" * 32) / "output.csv").write_text("a result without a record")
    JobStore(tmp_path / "jobs", 1.0)
    assert (tmp_path / "jobs" / "notes of the operator").exists()
    assert (tmp_path / "jobs" / ("0" * 32) / "output.csv").exists()


class _FullDisk:
    """No record can be written until there is room again."""

    def __init__(self, monkeypatch):
        self.full = False
        original = jobs.write_private

        def write(path, data):
            if self.full:
                raise OSError(errno.ENOSPC, "No space left on device")
            original(path, data)

        monkeypatch.setattr(jobs, "write_private", write)


def test_b7_a_job_that_fails_on_a_full_disk_is_failed(start, job_form, monkeypatch, tmp_path):
    """It was 'running' for ever: the failure itself could not be written down."""
    from tacit.text.files import partial

    monkeypatch.setattr(schedule, "SWEEP_SECONDS", 0.05)
    client, disk = start(), _FullDisk(monkeypatch)
    original = partial.write_at

    def full(file, offset, data):
        disk.full = True
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(partial, "write_at", full)
    job = client.post("/v1/jobs", **job_form(content=LONG)).json()
    failed = finished(client, job["id"])
    assert (failed["state"], failed["resumable"]) == ("failed", True)
    assert "disk is full" in failed["error"]
    assert json.loads(record_of(tmp_path, job).read_text())["state"] == "running"
    disk.full = False
    end = time.monotonic() + 10
    while json.loads(record_of(tmp_path, job).read_text())["state"] != "failed" and time.monotonic() < end:
        time.sleep(0.02)
    assert json.loads(record_of(tmp_path, job).read_text())["resumable"]
    monkeypatch.setattr(partial, "write_at", original)
    assert client.post(f"/v1/jobs/{job['id']}/resume").status_code == 202
    assert finished(client, job["id"])["state"] == "done"


def test_b7_an_upload_stays_until_the_disk_knows_that_its_job_is_done(start, job_form, monkeypatch, tmp_path):
    """After a restart the job is worked on again: it needs the upload to find that it is done, with the same result."""
    client, disk = start(), _FullDisk(monkeypatch)
    original = runner.rewrite_file

    def fills(*given, **more):
        facts = original(*given, **more)
        disk.full = True
        return facts

    monkeypatch.setattr(runner, "rewrite_file", fills)
    job = client.post("/v1/jobs", **job_form(content=LONG)).json()
    assert finished(client, job["id"])["state"] == "done"
    released = client.get(f"/v1/jobs/{job['id']}/result").content
    folder = record_of(tmp_path, job).parent
    assert (folder / "input.csv").exists()
    client.__exit__(None, None, None)
    disk.full = False
    monkeypatch.setattr(runner, "rewrite_file", original)
    again = start()
    assert finished(again, job["id"])["state"] == "done"
    assert again.get(f"/v1/jobs/{job['id']}/result").content == released
    assert not (folder / "input.csv").exists()


def test_b7_canceling_works_on_a_full_disk(start, job_form, monkeypatch, tmp_path):
    monkeypatch.setattr(schedule.Schedule, "put", lambda self, job: None)
    client, disk = start(), _FullDisk(monkeypatch)
    job = client.post("/v1/jobs", **job_form(content=LONG)).json()
    disk.full = True
    assert client.delete(f"/v1/jobs/{job['id']}").json()["state"] == "canceled"
    assert [path.name for path in record_of(tmp_path, job).parent.iterdir()] == ["job.json"]


# Long computations ----------------------------------------------------------------------------------------------------


def test_b3_callers_take_turns_for_the_one_thread():
    """However many questions one key has sent before, the next one is somebody else's."""
    import asyncio

    from tacit.serve.aside import Aside

    aside, go, done = Aside(10), threading.Event(), []

    def work(name):
        assert go.wait(20)
        done.append(name)

    async def ask_all():
        questions = [asyncio.create_task(aside.run("one", partial(work, f"one {number}"))) for number in range(4)]
        await asyncio.sleep(0.05)
        questions.append(asyncio.create_task(aside.run("two", partial(work, "two"))))
        await asyncio.sleep(0.05)
        questions[2].cancel()  # nobody waits for it any more, and it has not begun
        await asyncio.sleep(0.05)
        go.set()
        await asyncio.gather(*questions, return_exceptions=True)

    with ThreadPoolExecutor(1) as thread:
        thread.submit(lambda: asyncio.run(ask_all())).result()
    assert done == ["one 0", "one 1", "two", "one 3"] or done == ["one 0", "two", "one 1", "one 3"]
    aside.check_room("one")


def test_b6_a_caller_who_fills_his_places_takes_none_of_anothers():
    import asyncio

    from tacit.serve.aside import Aside

    aside, go = Aside(2), threading.Event()

    async def ask_all():
        first = [asyncio.create_task(aside.run("one", partial(go.wait, 20))) for _ in range(2)]
        await asyncio.sleep(0)
        with pytest.raises(ServiceError) as refused:
            aside.check_room("one")
        assert refused.value.code == "busy"
        other = asyncio.create_task(aside.run("two", lambda: aside.check_room("one")))
        go.set()
        await asyncio.gather(*first, other)
        aside.check_room("one")  # whoever has an answer has room again

    with ThreadPoolExecutor(1) as thread:
        thread.submit(lambda: asyncio.run(ask_all())).result()


def test_b3_a_shutdown_does_not_wait_for_a_computation():
    from tacit.serve.aside import ended

    go = threading.Event()
    thread = ThreadPoolExecutor(1)
    work = thread.submit(go.wait, 60)
    waiting = thread.submit(go.wait, 60)
    assert not ended([thread], 0.1)
    assert waiting.cancelled()
    go.set()
    assert work.result(timeout=10)
    assert ended([thread], 10.0)
