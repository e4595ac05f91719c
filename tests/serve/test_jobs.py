"""Jobs: results equal to those of the command's engine, durable, private, deleted in time."""

from __future__ import annotations

import csv
import errno
import io
import json
import stat
import threading
import time

import pytest

from tacit.account.ledger import Subject, open_ledger
from tacit.card import Card
from tacit.serve import files, jobs, keys, runner
from tacit.serve.jobs import JobStore, shown_name
from tacit.serve.keys import Keys
from tacit.text.files import partial
from tacit.words.base import WordMechanism
from tests.serve.waiting import finished


def folder_of(tmp_path, job):
    return tmp_path / "state" / "jobs" / job["id"]


def test_a_file_is_rewritten_with_its_card(client, job_form, tmp_path):
    sent = client.post("/v1/jobs", **job_form(columns=["text"], keep=["label"]))
    assert sent.status_code == 202
    job = sent.json()
    assert job["state"] == "queued"
    assert job["name"] == "private.csv"
    done = finished(client, job["id"])
    assert (done["state"], done["rows"], done["units"], done["error"]) == ("done", 2, 3, None)
    result = client.get(f"/v1/jobs/{job['id']}/result")
    assert 'filename="rewritten.csv"' in result.headers["content-disposition"]
    rows = list(csv.DictReader(io.StringIO(result.text)))
    assert [row["label"] for row in rows] == ["a", "b"]
    assert [len(row["text"].split()) for row in rows] == [2, 1]
    card = Card.from_json(client.get(f"/v1/jobs/{job['id']}/card.json").text)
    assert card.facts.rows == 2
    assert "the column 'label', which is copied as it is" in card.guarantee.not_covered
    assert client.get(f"/v1/jobs/{job['id']}/card.md").text.startswith("# Privacy card")
    html = client.get(f"/v1/jobs/{job['id']}/card.html")
    assert html.headers["content-security-policy"].startswith("sandbox")
    assert client.get(f"/v1/jobs/{job['id']}/card.exe").status_code == 404
    folder = folder_of(tmp_path, job)
    assert not (folder / "input.csv").exists()  # the upload goes as soon as it is no longer needed
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_events_tell_the_progress_and_the_end(client, job_form):
    job = client.post("/v1/jobs", **job_form(columns=["text"])).json()
    text = client.get(f"/v1/jobs/{job['id']}/events").text
    events = [dict(line.split(": ", 1) for line in block.splitlines()) for block in text.strip().split("\n\n")]
    assert {event["event"] for event in events[:-1]} <= {"progress"}
    assert events[-1]["event"] == "done"
    assert json.loads(events[-1]["data"])["rows"] == 2


def test_jobs_are_listed_newest_first_and_can_be_deleted(client, job_form, tmp_path):
    first, second = (client.post("/v1/jobs", **job_form(columns=["text"])).json() for _ in range(2))
    assert [job["id"] for job in client.get("/v1/jobs").json()["jobs"]] == [second["id"], first["id"]]
    finished(client, first["id"])
    assert client.delete(f"/v1/jobs/{first['id']}").json()["state"] == "deleted"
    assert not folder_of(tmp_path, first).exists()
    assert client.get(f"/v1/jobs/{first['id']}").status_code == 404


@pytest.mark.parametrize(
    "name", ["../../evil.csv", "/etc/evil.csv", "..\\..\\evil.csv", "a\x00b.csv", "x" * 300 + ".csv"]
)
def test_a_name_is_never_a_path(client, job_form, name, tmp_path):
    before = {path for path in tmp_path.rglob("*") if "state" not in path.parts}
    job = client.post("/v1/jobs", **job_form(name=name, columns=["text"])).json()
    finished(client, job["id"])
    assert "/" not in job["name"]
    assert "\\" not in job["name"]
    assert len(job["name"]) <= 100
    assert {path for path in tmp_path.rglob("*") if "state" not in path.parts} == before
    assert not any("evil" in path.name for path in (tmp_path / "state").rglob("*"))


def test_names_that_are_shown():
    assert shown_name("../../a b.csv") == "a b.csv"
    assert shown_name("a\x1b[31m\n.csv") == "a[31m.csv"
    assert shown_name("///") == "upload"


@pytest.mark.parametrize(
    ("changes", "status", "words"),
    [
        ({"name": "picture.png"}, 422, "format"),
        ({"name": ""}, 400, "could not be read"),
        ({"mechanism": "santex"}, 404, "did you mean"),
        ({"epsilon": float("nan")}, 422, "epsilon"),
        ({"columns": "text"}, 422, "columns"),
        ({"user_column": "label"}, 422, "whole documents"),
        ({"seed": 1}, 422, "not known"),
    ],
)
def test_what_is_wrong_is_said_at_once(client, job_form, changes, status, words):
    answer = client.post("/v1/jobs", **job_form(**changes))
    assert answer.status_code == status
    assert words in answer.json()["error"]["message"]
    assert client.get("/v1/jobs").json()["jobs"] == []


def test_forms_that_are_no_forms(client, job_form):
    assert client.post("/v1/jobs", json={}).status_code == 415
    assert client.post("/v1/jobs", data={"settings": "{}"}).status_code == 415
    assert client.post("/v1/jobs", files={"file": ("a.csv", b"x")}).status_code == 422
    broken = {"content-type": "multipart/form-data; boundary=x"}
    assert client.post("/v1/jobs", content=b"--y\r\n", headers=broken).status_code in (400, 422)
    assert client.post("/v1/jobs", content=b"", headers={"content-type": "multipart/form-data"}).status_code == 400


def test_an_upload_that_is_too_large_leaves_nothing(start, job_form, tmp_path):
    client = start(upload_bytes=2_000)
    assert client.post("/v1/jobs", **job_form(content=b"text\n" + b"w1\n" * 2000)).status_code == 413
    assert list((tmp_path / "state" / "jobs").iterdir()) == []


@pytest.mark.parametrize(
    ("content", "changes", "words"),
    [
        (b"text,label\nw1,a\n", {"columns": ["txt"]}, "no column 'txt'"),
        (b"text,label\n\xff\xfe,a\n", {"columns": ["text"]}, "UTF-8"),
        (b"text,label\n", {"columns": ["text"]}, "no rows"),
        (b"", {"columns": ["text"]}, "empty"),
        (b'text,label\n"open,a\n', {"columns": ["text"]}, "quote"),
    ],
)
def test_a_file_that_cannot_be_read_fails_with_a_sentence_and_is_deleted(
    client, job_form, tmp_path, content, changes, words
):
    job = client.post("/v1/jobs", **job_form(content=content, **changes)).json()
    failed = finished(client, job["id"])
    assert failed["state"] == "failed"
    assert words in failed["error"]
    assert "--" not in failed["error"]
    assert not failed["resumable"]
    assert [path.name for path in folder_of(tmp_path, job).iterdir()] == ["job.json"]
    assert client.get(f"/v1/jobs/{job['id']}/result").status_code == 409


def test_csv_formulas_stay_as_they_are_unless_asked(client, job_form, tmp_path):
    job = client.post("/v1/jobs", **job_form(content=b'text,note\nw1,"=1+1"\nw2,@x\n', keep=["note"])).json()
    finished(client, job["id"])
    plain = list(csv.DictReader(io.StringIO(client.get(f"/v1/jobs/{job['id']}/result").text)))
    assert [row["note"] for row in plain] == ["=1+1", "@x"]
    safe = client.get(f"/v1/jobs/{job['id']}/result?spreadsheet=true")
    assert [row["note"] for row in csv.DictReader(io.StringIO(safe.text))] == ["'=1+1", "'@x"]


class _Slow:
    """Holds the engine before the block of a number, as long as a test wants."""

    def __init__(self, monkeypatch, block: int = 1):
        self.reached, self.go = threading.Event(), threading.Event()
        original, calls = runner.rewrite_file, 0

        def slow(work, *, progress, before_release):
            def watched(now):
                nonlocal calls
                calls += 1
                if calls == block + 1:
                    self.reached.set()
                    assert self.go.wait(20)
                progress(now)

            return original(work, progress=watched, before_release=before_release)

        monkeypatch.setattr(runner, "rewrite_file", slow)
        monkeypatch.setattr(runner, "BLOCK_CHARACTERS", 20)


LONG = b"text\n" + b"w1 w2 w3 w4 w5\n" * 50


def test_a_job_can_be_canceled_in_the_middle(client, job_form, monkeypatch, tmp_path):
    slow = _Slow(monkeypatch)
    job = client.post("/v1/jobs", **job_form(content=LONG)).json()
    assert slow.reached.wait(20)
    assert client.get(f"/v1/jobs/{job['id']}/result").status_code == 409
    assert client.delete(f"/v1/jobs/{job['id']}").json()["state"] == "canceled"
    slow.go.set()
    time.sleep(0.3)
    assert finished(client, job["id"])["state"] == "canceled"
    assert [path.name for path in folder_of(tmp_path, job).iterdir()] == ["job.json"]
    assert "event: canceled" in client.get(f"/v1/jobs/{job['id']}/events").text


def test_revoking_the_key_stops_the_job(start, job_form, monkeypatch, tmp_path):
    monkeypatch.setattr(keys, "REREAD_SECONDS", 0.0)
    state = tmp_path / "state"
    secret = Keys(state).add("team", 600)
    client = start(state)
    slow = _Slow(monkeypatch)
    headers = {"authorization": f"Bearer {secret}"}
    job = client.post("/v1/jobs", headers=headers, **job_form(content=LONG)).json()
    assert slow.reached.wait(20)
    Keys(state).revoke("team")
    slow.go.set()
    record = folder_of(tmp_path, job) / "job.json"
    end = time.monotonic() + 10
    while json.loads(record.read_text())["state"] != "failed" and time.monotonic() < end:
        time.sleep(0.02)
    assert "revoked" in json.loads(record.read_text())["error"]
    assert [path.name for path in record.parent.iterdir()] == ["job.json"]


def test_a_full_disk_fails_the_job_and_it_goes_on_with_the_same_noise(client, job_form, monkeypatch, tmp_path):
    slow = _Slow(monkeypatch, block=2)
    job = client.post("/v1/jobs", **job_form(content=LONG)).json()
    assert slow.reached.wait(20)
    begun = (folder_of(tmp_path, job) / "output.csv.partial").read_bytes()
    original = partial.write_at

    def full(file, offset, data):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(partial, "write_at", full)
    slow.go.set()
    failed = finished(client, job["id"])
    assert failed["state"] == "failed"
    assert failed["resumable"]
    assert "disk is full" in failed["error"]
    assert str(tmp_path) not in failed["error"]
    monkeypatch.setattr(partial, "write_at", original)
    assert client.post(f"/v1/jobs/{job['id']}/resume").status_code == 202
    done = finished(client, job["id"])
    assert (done["state"], done["rows"]) == ("done", 50)
    assert client.get(f"/v1/jobs/{job['id']}/result").content.startswith(begun)
    assert client.post(f"/v1/jobs/{job['id']}/resume").status_code == 409
    with open_ledger(tmp_path / "state" / "ledger.sqlite") as ledger:  # going on is no second release
        assert [record.state for record in ledger.releases()] == ["committed"]


def test_a_full_disk_refuses_an_upload(client, job_form, monkeypatch, tmp_path):
    def full(source, target):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(files.shutil, "copyfileobj", full)
    assert client.post("/v1/jobs", **job_form()).status_code == 507
    assert list((tmp_path / "state" / "jobs").iterdir()) == []


def test_a_mechanism_that_fails_leaves_a_job_that_can_go_on(client, job_form, monkeypatch):
    from tacit.words.santext import SanText

    def broken(self, texts, source):
        raise RuntimeError(f"secretmarker {texts[0]}")

    monkeypatch.setattr(SanText, "rewrite_texts", broken)
    job = client.post("/v1/jobs", **job_form(content=LONG)).json()
    failed = finished(client, job["id"])
    assert failed["state"] == "failed"
    assert "RuntimeError" in failed["error"]
    assert "secretmarker" not in json.dumps(failed)
    assert failed["resumable"]


def test_jobs_of_others_do_not_exist(start, job_form, tmp_path):
    state = tmp_path / "state"
    one, two = ({"authorization": f"Bearer {Keys(state).add(name, 600)}"} for name in ("one", "two"))
    client = start(state)
    job = client.post("/v1/jobs", headers=one, **job_form()).json()
    finished(client, job["id"], headers=one)
    for path in ("", "/events", "/result", "/card.json"):
        assert client.get(f"/v1/jobs/{job['id']}{path}", headers=two).status_code == 404
    assert client.delete(f"/v1/jobs/{job['id']}", headers=two).status_code == 404
    assert client.get("/v1/jobs", headers=two).json()["jobs"] == []
    assert client.get(f"/v1/jobs/{job['id']}/result", headers=one).status_code == 200


def test_files_expire(tmp_path):
    store = JobStore(tmp_path / "jobs", keep_hours=2.0)
    folder = store.new_folder()
    (folder / "input.csv").write_text("text\nw1\n")
    job = store.add(folder, None, "private.csv", "csv", {})
    made = time.time()
    store.sweep(made + 3600 * 1.9)
    assert (folder / "input.csv").exists()
    store.sweep(made + 3600 * 2.1)
    assert [path.name for path in folder.iterdir()] == ["job.json"]
    assert "private" not in (folder / "job.json").read_text()
    assert store.get(job.id, None).state == "expired"
    store.sweep(made + 3600 * 4.1)
    assert not folder.exists()
    assert store.current(job.id) is None


def test_an_upload_that_never_became_a_job_is_cleaned_up(tmp_path):
    store = JobStore(tmp_path / "jobs", keep_hours=1.0)
    folder = store.new_folder()
    (folder / "input.csv").write_text("text\nw1\n")
    JobStore(tmp_path / "jobs", keep_hours=1.0)
    assert not folder.exists()


def test_only_so_many_jobs_of_one_caller_are_open(client, job_form, monkeypatch):
    monkeypatch.setattr(jobs, "MOST_OPEN_JOBS", 0)
    answer = client.post("/v1/jobs", **job_form())
    assert answer.status_code == 429
    assert answer.headers["retry-after"] == "60"


def test_a_job_over_budget_releases_nothing(start, job_form, asked, tmp_path, monkeypatch):
    state = tmp_path / "state"
    headers = {"authorization": f"Bearer {Keys(state).add('team', 600)}"}
    with open_ledger(state / "ledger.sqlite") as ledger:
        ledger.set_limit("key", epsilon=50.0, name="team")
    monkeypatch.setattr(runner, "RESERVED_ROWS", 1)
    client = start(state)
    content = b"text\nw1\n" + b"w1 w2 w3 w4 w5\n" * 20
    drawn = []
    monkeypatch.setattr(WordMechanism, "rewrite_texts", lambda *given: drawn.append(given))
    job = client.post("/v1/jobs", headers=headers, **job_form(content=content)).json()
    failed = finished(client, job["id"], headers=headers)
    assert failed["state"] == "failed"
    assert "limit" in failed["error"]
    assert drawn == []
    with open_ledger(state / "ledger.sqlite") as ledger:
        assert ledger.spent(Subject("key", "team")).epsilon == pytest.approx(0.0, abs=1e-6)
        assert {record.state for record in ledger.releases()} == {"canceled"}


def test_documents_of_a_data_set_are_charged_once_per_release(client, job_form, asked, tmp_path):
    job = client.post("/v1/jobs", **job_form(content=b"text\nw1 w2\nw3\n", dataset="letters")).json()
    finished(client, job["id"])
    client.post("/v1/rewrite", json=asked(text="w1 w2", dataset="letters"))
    with open_ledger(tmp_path / "state" / "ledger.sqlite") as ledger:
        twice, once = (ledger.spent(Subject("document", text)) for text in ("w1 w2", "w3"))
        assert (twice.releases, once.releases) == (2, 1)
        assert twice.epsilon == pytest.approx(4 * once.epsilon)  # two releases of twice as many words


def test_sentences_for_people_without_a_command_line():
    message = "say which column holds the text, with --column NAME: this file has the columns 'my secret text'"
    assert "secret" not in runner.for_http(message)
    assert "--column" not in runner.for_http(message)
    assert runner.for_http("row 3 is empty") == "row 3 is empty"
