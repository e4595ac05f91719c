"""Jobs: results equal to those of the command's engine, durable, private, deleted in time."""

from __future__ import annotations

import csv
import errno
import io
import json
import stat
import threading
import time
from datetime import UTC, datetime

import pytest

from tacit.account.ledger import Subject, open_ledger
from tacit.card import Card
from tacit.errors import BadInputError
from tacit.serve import files, jobs, keys, runner, schedule
from tacit.serve.jobs import JobStore, shown_name
from tacit.serve.keys import Keys
from tacit.text.files import choose_columns, partial
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
        ({"columns": ["txt"]}, 422, "no column 'txt'"),
        ({"columns": ["text"], "keep": ["labels"]}, 422, "no column 'labels'"),
        ({"columns": ["x" * 150]}, 422, f"'{'x' * 40}…'"),
        ({"content": b"a,b\n1,2\n"}, 422, "which column"),
        ({"mechanism": "codebook", "options": {}, "columns": ["text"], "user_column": "who"}, 422, "no column 'who'"),
        ({"mechanism": "codebook", "options": {}, "columns": ["text"], "user_column": "text"}, 422, "another column"),
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


def test_a_failed_job_calls_the_file_as_its_owner_does(client, job_form, tmp_path):
    form = job_form(content=b"text\n", name="../my letters.csv", columns=["text"])
    failed = finished(client, client.post("/v1/jobs", **form).json()["id"])
    assert "my letters.csv has no rows" in failed["error"]
    assert "input" not in failed["error"]
    assert str(tmp_path) not in failed["error"]


def test_csv_formulas_stay_as_they_are_unless_asked(client, job_form, tmp_path):
    job = client.post("/v1/jobs", **job_form(content=b'text,note\nw1,"=1+1"\nw2,@x\n', keep=["note"])).json()
    finished(client, job["id"])
    plain = list(csv.DictReader(io.StringIO(client.get(f"/v1/jobs/{job['id']}/result").text)))
    assert [row["note"] for row in plain] == ["=1+1", "@x"]
    safe = client.get(f"/v1/jobs/{job['id']}/result?spreadsheet=true")
    assert [row["note"] for row in csv.DictReader(io.StringIO(safe.text))] == ["'=1+1", "'@x"]


def test_long_cells_are_safe_for_a_spreadsheet_after_a_restart(client, job_form):
    """The largest cell that csv reads is a setting of the process, which a new process does not have."""
    content = b"text,note\nw1,=" + b"q" * 200_000 + b"\n"
    job = client.post("/v1/jobs", **job_form(content=content, columns=["text"], keep=["note"])).json()
    finished(client, job["id"])
    before = csv.field_size_limit(131_072)
    try:
        safe = client.get(f"/v1/jobs/{job['id']}/result?spreadsheet=true")
        assert safe.status_code == 200
        assert safe.text.count("q") == 200_000
        assert ",'=qq" in safe.text
    finally:
        csv.field_size_limit(before)


class _Slow:
    """Holds the engine before the block of a number, as long as a test wants."""

    def __init__(self, monkeypatch, block: int = 1):
        self.reached, self.go = threading.Event(), threading.Event()
        original, calls = runner.rewrite_file, 0

        def slow(work, *, progress):
            def watched(now):
                nonlocal calls
                calls += 1
                if calls == block + 1:
                    self.reached.set()
                    assert self.go.wait(20)
                progress(now)

            return original(work, progress=watched)

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
    first, second = ({"authorization": f"Bearer {Keys(state).add(name, 600)}"} for name in ("one", "two"))
    client = start(state)
    job = client.post("/v1/jobs", headers=first, **job_form()).json()
    finished(client, job["id"], headers=first)
    for path in ("", "/events", "/result", "/card.json"):
        assert client.get(f"/v1/jobs/{job['id']}{path}", headers=second).status_code == 404
    assert client.delete(f"/v1/jobs/{job['id']}", headers=second).status_code == 404
    assert client.get("/v1/jobs", headers=second).json()["jobs"] == []
    assert client.get(f"/v1/jobs/{job['id']}/result", headers=first).status_code == 200


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


def test_a_job_over_budget_releases_nothing(start, job_form, request_body, tmp_path, monkeypatch):
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


def test_documents_of_a_data_set_are_charged_once_per_release(client, job_form, request_body, tmp_path):
    job = client.post("/v1/jobs", **job_form(content=b"text\nw1 w2\nw3\n", dataset="letters")).json()
    finished(client, job["id"])
    client.post("/v1/rewrite", json=request_body(text="w1 w2", dataset="letters"))
    with open_ledger(tmp_path / "state" / "ledger.sqlite") as ledger:
        twice, once = (ledger.spent(Subject("document", text)) for text in ("w1 w2", "w3"))
        assert (twice.releases, once.releases) == (2, 1)
        assert twice.epsilon == pytest.approx(4 * once.epsilon)  # two releases of twice as many words


def limited(tmp_path, kind, epsilon):
    with open_ledger(tmp_path / "state" / "ledger.sqlite") as ledger:
        ledger.set_limit(kind, epsilon=epsilon)


def spent_on(tmp_path, kind, identity):
    with open_ledger(tmp_path / "state" / "ledger.sqlite") as ledger:
        return ledger.spent(Subject(kind, identity))


def test_documents_are_charged_before_there_is_a_limit(client, job_form, request_body, tmp_path):
    """What was spent before a limit counts under it, for requests and for jobs."""
    cost = client.post("/v1/rewrite", json=request_body(text="w1 w2")).json()["spent"]["epsilon"]
    finished(client, client.post("/v1/jobs", **job_form(columns=["text"])).json()["id"])
    assert spent_on(tmp_path, "document", "w1 w2").epsilon == pytest.approx(2 * cost)
    limited(tmp_path, "document", 2.5 * cost)
    refused = client.post("/v1/rewrite", json=request_body(text="w1 w2"))
    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "budget_exceeded")
    job = finished(client, client.post("/v1/jobs", **job_form(columns=["text"])).json()["id"])
    assert (job["state"], job["resumable"]) == ("failed", False)
    assert client.post("/v1/rewrite", json=request_body(text="w3")).status_code == 200


def test_columns_that_are_rewritten_together_are_documents_of_their_own(client, job_form, request_body, tmp_path):
    """A text is the same document in a request, in a column, and beside another column."""
    cost = client.post("/v1/rewrite", json=request_body(text="w1 w2")).json()["spent"]["epsilon"]
    content = b"title,text\nw5,w1 w2\nw6,w3\n"
    finished(client, client.post("/v1/jobs", **job_form(content=content, columns=["title", "text"])).json()["id"])
    assert spent_on(tmp_path, "document", "w1 w2").epsilon == pytest.approx(2 * cost)
    assert spent_on(tmp_path, "document", "w5").epsilon == pytest.approx(cost / 2)
    limited(tmp_path, "document", 2.5 * cost)
    again = client.post("/v1/jobs", **job_form(content=content, columns=["title", "text"])).json()
    assert finished(client, again["id"])["state"] == "failed"


class _Documents:
    """A document mechanism that needs no model."""

    def __init__(self, monkeypatch):
        from tacit.documents.codebook import Codebook
        from tacit.mechanism import Rewritten

        def rewritten(self, texts, source):
            return Rewritten(["x"] * len(texts), [1] * len(texts))

        monkeypatch.setattr(Codebook, "prepare", lambda self: None)
        monkeypatch.setattr(Codebook, "rewrite_texts", rewritten)


@pytest.mark.parametrize(
    ("changes", "documents", "users"),
    [
        ({"documents_per_user": 2}, {"w1 w2": 1.0, "w3": 1.0, "w5": 1.0, "w4": 0.0}, {"ann": 2.0, "ben": 1.0}),
        ({"user_mode": "concatenate"}, {"w1 w2\nw3\nw4": 2.0, "w5": 2.0, "w3": 0.0}, {"ann": 2.0, "ben": 2.0}),
    ],
)
def test_documents_of_users_are_charged_as_well(client, job_form, tmp_path, monkeypatch, changes, documents, users):
    _Documents(monkeypatch)
    content = b"who,text\nann,w1 w2\nann,w3\nann,w4\nben,w5\n"
    form = job_form(content=content, mechanism="codebook", options={}, columns=["text"], user_column="who", **changes)
    done = finished(client, client.post("/v1/jobs", **form).json()["id"])
    assert (done["state"], done["error"]) == ("done", None)
    assert {text: spent_on(tmp_path, "document", text).epsilon for text in documents} == pytest.approx(documents)
    assert {user: spent_on(tmp_path, "user", user).epsilon for user in users} == pytest.approx(users)


@pytest.mark.parametrize("mode", ["divide", "concatenate"])
def test_a1_the_card_of_a_job_counts_the_texts_of_a_user(client, job_form, tmp_path, monkeypatch, mode):
    _Documents(monkeypatch)
    content = b"who,title,text\nann,w1,w2\nann,w3,w4\nben,w5,w6\n"
    form = job_form(
        content=content, mechanism="codebook", options={}, columns=["title", "text"], user_column="who",
        user_mode=mode, documents_per_user=2,
    )  # fmt: skip
    id = client.post("/v1/jobs", **form).json()["id"]
    assert finished(client, id)["state"] == "done"
    promised = client.get(f"/v1/jobs/{id}/card.json").json()["guarantee"]
    request_body = json.loads(form["data"]["settings"])["epsilon"]
    assert (promised["unit"], promised["epsilon"]) == ("user", pytest.approx(request_body))
    assert spent_on(tmp_path, "user", "ann").epsilon == pytest.approx(promised["epsilon"] + promised["slack"])


@pytest.mark.parametrize(
    ("name", "what"), [("a.pdf", "a PDF"), ("b.DOCX", "office program"), ("c.xlsx", "spreadsheet")]
)
def test_c7_an_upload_of_another_program_is_told_what_is_read(client, job_form, name, what):
    form = job_form(content=b"%PDF-1.7")
    form["files"]["file"] = (name, b"%PDF-1.7", "application/octet-stream")
    answer = client.post("/v1/jobs", **form)
    assert answer.status_code == 422
    message = answer.json()["error"]["message"]
    assert what in message
    assert ".txt (one text per line), .csv, .tsv, .jsonl or .parquet" in message
    assert name not in message


def test_c7_an_upload_that_only_looks_like_a_table_fails_with_a_sentence(client, job_form):
    form = job_form(content=b"%PDF-1.7\nsecret")
    done = finished(client, client.post("/v1/jobs", **form).json()["id"])
    assert done["state"] == "failed"
    assert "a PDF, whatever its name says: save the texts as .txt" in done["error"]


# What has begun is not thrown away ------------------------------------------------------------------------------------


@pytest.fixture
def begun(start, job_form, monkeypatch, tmp_path):
    """A job that was stopped in the middle, as a crash leaves it; the same again goes on with it."""
    first = start()
    slow = _Slow(monkeypatch, block=2)
    job = first.post("/v1/jobs", **job_form(content=LONG)).json()
    assert slow.reached.wait(20)
    first.app.state.schedule._ending.set()
    slow.go.set()
    first.__exit__(None, None, None)
    monkeypatch.undo()
    monkeypatch.setattr(runner, "BLOCK_CHARACTERS", 20)
    monkeypatch.setenv("TACIT_LEDGER_KEY", "a key for tests, nothing more")
    assert (folder_of(tmp_path, job) / "output.csv.partial").exists()
    return job


def rows_of(client, job):
    return client.get(f"/v1/jobs/{job['id']}/result").text.count("\n") - 1


def test_a_limit_that_is_set_meanwhile_does_not_destroy_a_job(start, begun, tmp_path):
    limited(tmp_path, "document", 1e-3)
    again = start()
    assert finished(again, begun["id"])["state"] == "done"  # it was reserved before the limit
    assert rows_of(again, begun) == 50


def test_an_upgrade_that_promises_in_other_words_does_not_destroy_a_job(start, begun, tmp_path, monkeypatch):
    from tacit.engines.job import RewriteJob

    original = RewriteJob.unit_promise.func
    other = property(lambda self: original(self).also_not_covered("something that an upgrade says"))
    monkeypatch.setattr(RewriteJob, "unit_promise", other)
    before = spent_on(tmp_path, "key", "local").epsilon
    again = start()
    assert finished(again, begun["id"])["state"] == "done"
    assert spent_on(tmp_path, "key", "local").epsilon == pytest.approx(2 * before)  # too much, never too little


def test_a_limit_and_an_upgrade_leave_a_job_that_can_go_on(start, begun, tmp_path, monkeypatch):
    from tacit.engines.job import RewriteJob

    limited(tmp_path, "document", 1e-3)
    original = RewriteJob.unit_promise.func
    other = property(lambda self: original(self).also_not_covered("something that an upgrade says"))
    monkeypatch.setattr(RewriteJob, "unit_promise", other)
    again = start()
    failed = finished(again, begun["id"])
    assert (failed["state"], failed["resumable"]) == ("failed", True)
    with open_ledger(tmp_path / "state" / "ledger.sqlite") as ledger:
        assert "canceled" not in {record.state for record in ledger.releases()}  # its noise was drawn
        ledger.remove_limit("document")
    assert again.post(f"/v1/jobs/{begun['id']}/resume").status_code == 202
    assert finished(again, begun["id"])["state"] == "done"


def test_a_job_of_another_version_waits_for_that_version(start, begun, monkeypatch):
    from tacit.engines import job

    version = job.__version__
    monkeypatch.setattr(job, "__version__", "99.0")
    again = start()
    failed = finished(again, begun["id"])
    assert (failed["state"], failed["resumable"]) == ("failed", True)
    assert "another version" in failed["error"]
    assert "--" not in failed["error"]
    monkeypatch.setattr(job, "__version__", version)
    assert again.post(f"/v1/jobs/{begun['id']}/resume").status_code == 202
    assert finished(again, begun["id"])["state"] == "done"


def test_a_lost_key_of_the_ledger_does_not_destroy_a_job(start, begun, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "nothing"))
    monkeypatch.delenv("TACIT_LEDGER_KEY")
    again = start()
    failed = finished(again, begun["id"])
    assert (failed["state"], failed["resumable"]) == ("failed", True)
    assert str(tmp_path) not in failed["error"]
    monkeypatch.setenv("TACIT_LEDGER_KEY", "a key for tests, nothing more")
    assert again.post(f"/v1/jobs/{begun['id']}/resume").status_code == 202
    assert finished(again, begun["id"])["state"] == "done"
    assert rows_of(again, begun) == 50


# Time -----------------------------------------------------------------------------------------------------------------


def test_files_are_deleted_in_time_while_another_job_runs(start, job_form, monkeypatch, tmp_path):
    monkeypatch.setattr(schedule, "SWEEP_SECONDS", 0.05)
    client = start(keep_hours=1.0 / 3600)
    done = client.post("/v1/jobs", **job_form(columns=["text"])).json()
    finished(client, done["id"])
    slow = _Slow(monkeypatch)
    running = client.post("/v1/jobs", **job_form(content=LONG)).json()
    assert slow.reached.wait(20)
    end = time.monotonic() + 10
    while any(path.name != "job.json" for path in folder_of(tmp_path, done).iterdir()) and time.monotonic() < end:
        time.sleep(0.02)
    assert not (folder_of(tmp_path, done) / "output.csv").exists()
    slow.go.set()
    assert finished(client, running["id"])["state"] in ("expired", "done")


def test_a_result_that_is_over_its_time_is_not_handed_out(start, job_form, monkeypatch, tmp_path):
    """Also between two sweeps."""
    client = start(keep_hours=1.0)
    job = client.post("/v1/jobs", **job_form(columns=["text"])).json()
    finished(client, job["id"])
    monkeypatch.setattr(jobs.time, "time", lambda: datetime.now(UTC).timestamp() + 3700)
    assert client.get(f"/v1/jobs/{job['id']}/result").status_code == 409
    assert [each["state"] for each in client.get("/v1/jobs").json()["jobs"]] == ["expired"]
    assert [path.name for path in folder_of(tmp_path, job).iterdir()] == ["job.json"]


def test_sentences_for_people_without_a_command_line():
    with pytest.raises(BadInputError) as raised:
        choose_columns(["my secret text", "other"], (), ())
    sentence = str(runner.for_owner(raised.value))
    assert "secret" not in sentence
    assert "--" not in sentence
    assert "'columns'" in sentence
    assert runner.for_owner(BadInputError("text-missing", "row 3 is empty")) is None
    changed = BadInputError("input-has-changed", "restore it, or add {option.force}")
    assert "delete the job" in str(runner.for_owner(changed))
