"""A budget that cannot be looked up is no budget: whatever happens to the ledger or the keys, nothing is released."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import sys
import threading

import pytest

from tacit.account.ledger import Subject, open_ledger
from tacit.cli.main import run
from tacit.errors import BadInputError
from tacit.serve import keys as keys_module
from tacit.serve import runner
from tacit.serve.keys import KeyBudget, KeyOptions, Keys
from tests.serve.waiting import finished


@pytest.fixture
def state(tmp_path):
    return tmp_path / "state"


def bearer(secret):
    return {"authorization": f"Bearer {secret}"}


def command(*arguments):
    return run([str(argument) for argument in arguments])


@pytest.fixture
def spent_key(state, start, request_body, capsys):
    """A key whose budget is used up, and the service that refused it, stopped."""
    assert command("serve", "keys", "add", "team", "--epsilon", "1", "--state", state) == 0
    headers = bearer(capsys.readouterr().out.strip())
    client = start(state)
    assert client.post("/v1/rewrite", json=request_body(), headers=headers).status_code == 403
    client.__exit__(None, None, None)
    return headers


def ledger_files(state):
    return list(state.glob("ledger.sqlite*"))


def remove(state):
    for path in ledger_files(state):
        path.unlink()


def empty(state):
    remove(state)
    (state / "ledger.sqlite").touch()


def replace_by_another(state):
    remove(state)
    open_ledger(state / "ledger.sqlite").close()


def replace_by_another_with_the_same_limit(state):
    remove(state)
    with open_ledger(state / "ledger.sqlite") as ledger:
        ledger.set_limit("key", epsilon=1, name="team")


def damage(state):
    (state / "ledger.sqlite").write_bytes(b"nothing that a database would say" * 200)


def lose_the_limit(state):
    with open_ledger(state / "ledger.sqlite") as ledger:
        ledger.remove_limit("key", name="team")


def lose_the_limit_behind_its_back(state):
    with sqlite3.connect(state / "ledger.sqlite") as connection:
        connection.execute("DELETE FROM limits")
    connection.close()


LOSSES = (
    remove,
    empty,
    replace_by_another,
    replace_by_another_with_the_same_limit,
    damage,
    lose_the_limit,
    lose_the_limit_behind_its_back,
)


def assert_nothing_is_released(client, request_body, headers):
    answer = client.post("/v1/rewrite", json=request_body(), headers=headers)
    assert answer.status_code == 503, answer.text
    error = answer.json()["error"]
    assert error["code"] in ("ledger", "unavailable")
    assert "ledger" in error["message"] or "operator" in error["message"]
    assert "/" not in error["message"]  # no path of the server


@pytest.mark.parametrize("loss", LOSSES)
def test_b1_a_key_with_a_budget_gets_503_when_its_ledger_was_lost_before_a_restart(
    state, start, request_body, spent_key, loss, caplog
):
    loss(state)
    client = start(state)
    assert_nothing_is_released(client, request_body, spent_key)
    assert caplog.text  # the operator learns why
    assert not (state / "ledger.sqlite").exists() or loss is not remove  # and none was made in its place


@pytest.mark.parametrize("loss", LOSSES)
def test_b1_the_same_while_the_service_runs(state, start, request_body, spent_key, loss):
    client = start(state)
    assert client.post("/v1/rewrite", json=request_body(), headers=spent_key).status_code == 403
    loss(state)
    assert_nothing_is_released(client, request_body, spent_key)
    assert_nothing_is_released(client, request_body, spent_key)  # nor after it was opened again


def test_b1_another_ledger_at_serve_is_refused(state, start, request_body, spent_key, tmp_path):
    other = tmp_path / "other.db"
    client = start(state, ledger=str(other))
    assert_nothing_is_released(client, request_body, spent_key)
    assert client.get("/v1/ledger", headers=spent_key).status_code == 503
    assert client.get("/healthz").json()["ledger"] == "unavailable"
    assert not other.exists()
    open_ledger(other).close()
    assert_nothing_is_released(client, request_body, spent_key)


@pytest.mark.parametrize("loss", LOSSES)
def test_b1_a_job_of_a_key_with_a_budget_fails(state, start, job_form, spent_key, loss):
    loss(state)
    client = start(state)
    job = client.post("/v1/jobs", headers=spent_key, **job_form(columns=["text"])).json()
    failed = finished(client, job["id"], headers=spent_key)
    assert failed["state"] == "failed"
    assert failed["rows"] == 0
    assert "ledger" in failed["error"] or "operator" in failed["error"]


def test_b1_a_service_without_keys_does_not_start_counting_anew(state, start, request_body):
    """Limits per document are lost with the ledger as well."""
    client = start(state)
    assert client.post("/v1/rewrite", json=request_body()).status_code == 200
    client.__exit__(None, None, None)
    remove(state)
    assert_nothing_is_released(start(state), request_body, {})


def test_b1_a_ledger_that_comes_back_is_used_again(state, start, request_body, spent_key, tmp_path):
    for path in ledger_files(state):
        shutil.move(path, tmp_path / path.name)
    client = start(state)
    assert_nothing_is_released(client, request_body, spent_key)
    for path in tmp_path.glob("ledger.sqlite*"):
        shutil.move(path, state / path.name)
    assert client.post("/v1/rewrite", json=request_body(), headers=spent_key).status_code == 403


def test_b1_an_older_ledger_is_refused(state, start, request_body, capsys, tmp_path):
    """From a copy of before, the budget could be spent again."""
    assert command("serve", "keys", "add", "team", "--epsilon", "1e6", "--state", state) == 0
    headers = bearer(capsys.readouterr().out.strip())
    shutil.copy(state / "ledger.sqlite", tmp_path / "copy")
    client = start(state)
    assert client.post("/v1/rewrite", json=request_body(), headers=headers).status_code == 200
    client.__exit__(None, None, None)
    remove(state)
    shutil.copy(tmp_path / "copy", state / "ledger.sqlite")
    again = start(state)
    assert_nothing_is_released(again, request_body, headers)
    assert again.get("/healthz").json()["ledger"] == "unavailable"
    assert again.get("/v1/ledger", headers=headers).status_code == 503  # what it says was spent is too low
    assert command("ledger", "accept", state / "ledger.sqlite") == 0
    assert again.post("/v1/rewrite", json=request_body(), headers=headers).status_code == 200


def test_b1_a_key_without_a_budget_is_bound_to_its_ledger_too(state, start, request_body, capsys):
    assert command("serve", "keys", "add", "team", "--state", state) == 0
    captured = capsys.readouterr()
    assert "NEW LEDGER" in captured.err
    remove(state)
    assert_nothing_is_released(start(state), request_body, bearer(captured.out.strip()))


def test_b1_lost_keys_do_not_open_the_service(state, start, request_body, spent_key, caplog):
    (state / "keys.json").unlink()
    client = start(state)
    assert client.post("/v1/rewrite", json=request_body()).status_code == 503  # nobody gets in without a key
    assert client.post("/v1/rewrite", json=request_body(), headers=spent_key).status_code == 503
    assert "there is no 'keys.json'" in caplog.text


def test_b1_a_key_that_is_sent_to_a_service_without_keys_is_not_ignored(state, start, request_body, spent_key):
    shutil.rmtree(state)
    client = start(state)
    assert client.post("/v1/rewrite", json=request_body(), headers=spent_key).status_code == 503
    assert client.post("/v1/rewrite", json=request_body()).status_code == 200


def test_b1_rebinding_is_said_and_gives_budgets_anew(state, start, request_body, spent_key, tmp_path, capsys):
    remove(state)
    other = tmp_path / "other.db"
    assert command("serve", "keys", "list", "--state", state) == 2
    assert "rebind" in capsys.readouterr().err
    assert command("serve", "keys", "rebind", "--state", state, "--ledger", other) == 0
    messages = capsys.readouterr().err
    assert "NEW LEDGER" in messages
    assert "these keys begin anew, with their whole budget: team" in messages
    with open_ledger(other) as ledger:
        assert ledger.limit_of(Subject("key", "team")).epsilon == 1
    client = start(state, ledger=str(other))
    assert client.post("/v1/rewrite", json=request_body(), headers=spent_key).status_code == 403
    client.__exit__(None, None, None)
    assert_nothing_is_released(start(state, ledger=str(tmp_path / "third.db")), request_body, spent_key)


def test_b1_the_key_of_the_ledger_is_rotated_under_a_running_service(
    state, start, request_body, capsys, monkeypatch, tmp_path
):
    monkeypatch.delenv("TACIT_LEDGER_KEY")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    assert command("serve", "keys", "add", "team", "--epsilon", "1e6", "--state", state) == 0
    headers = bearer(capsys.readouterr().out.strip())
    client = start(state)
    first = client.post("/v1/rewrite", json=request_body(), headers=headers).json()["spent"]
    assert command("ledger", "rotate-key", state / "ledger.sqlite") == 0
    answers = [client.post("/v1/rewrite", json=request_body(), headers=headers) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [200, 200]
    left = first["remaining"] - 2 * first["epsilon"]
    assert answers[1].json()["spent"]["remaining"] == pytest.approx(left)
    assert len(client.get("/v1/ledger", headers=headers).json()["releases"]) >= 2
    assert command("ledger", "rotate-key", state / "ledger.sqlite") == 0
    looked = client.get("/v1/ledger", headers=headers)
    assert len(looked.json()["releases"]) >= 2  # a look alone finds the new key as well
    assert command("ledger", "verify", state / "ledger.sqlite") == 0


def test_b10_a_job_goes_on_when_the_key_of_the_ledger_is_rotated_while_it_is_charged(
    state, start, job_form, capsys, monkeypatch, tmp_path
):
    monkeypatch.delenv("TACIT_LEDGER_KEY")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    assert command("serve", "keys", "add", "team", "--epsilon", "1e6", "--state", state) == 0
    headers = bearer(capsys.readouterr().out.strip())
    client, charged, changes = start(state), runner.charged, []

    def changing(*arguments):
        """What is charged, and twice another key, in the middle of it."""
        for part in charged(*arguments):
            yield part
            if len(changes) < 2:
                changes.append(command("ledger", "rotate-key", state / "ledger.sqlite"))

    monkeypatch.setattr(runner, "charged", changing)
    monkeypatch.setattr(runner, "RESERVED_ROWS", 1)
    job = client.post("/v1/jobs", headers=headers, **job_form(columns=["text"])).json()
    assert finished(client, job["id"], headers=headers)["state"] == "done"
    assert changes == [0, 0]
    with open_ledger(state / "ledger.sqlite") as ledger:
        assert len(ledger.releases()) == 2  # each part once, under the key of before or of after
        assert ledger.verify().ok


# Nominal releases -----------------------------------------------------------------------------------------------------


def test_a_key_can_be_refused_what_is_nominal(state, start, request_body, job_form, capsys, monkeypatch):
    """By what the whole text is promised: the same epsilon is too much for a longer text or more draws."""
    monkeypatch.setattr(keys_module, "REREAD_SECONDS", 0.0)
    assert command("serve", "keys", "add", "team", "--refuse-nominal", "--state", state) == 0
    headers = bearer(capsys.readouterr().out.strip())
    client = start(state)

    def status(**changes):
        return client.post("/v1/rewrite", json=request_body(epsilon=0.5, **changes), headers=headers).status_code

    assert status(text="w1") == 200
    assert status(text="w1", draws=10) == 403
    assert status(texts=["w1", "w1 w2 " * 20]) == 403
    refused = client.post("/v1/rewrite", json=request_body(text="w1", mechanism="santext+"), headers=headers)
    assert refused.json()["error"]["code"] == "nominal"  # no bound for a whole text
    with open_ledger(state / "ledger.sqlite") as ledger:
        assert len(ledger.releases()) == 1  # what was refused was not counted
    for content, ends in ((b"text\nw1\n", "done"), (b"text\nw1\n" + b"w1 w2 " * 20 + b"\n", "failed")):
        form = job_form(content=content, epsilon=0.5, columns=["text"])
        job = client.post("/v1/jobs", headers=headers, **form).json()
        result = finished(client, job["id"], headers=headers)
        assert result["state"] == ends
        assert ("nominal" in (result["error"] or "")) == (ends == "failed")
    assert command("serve", "keys", "change", "team", "--allow-nominal", "--state", state) == 0
    assert status(text="w1", draws=10) == 200


# Keys of before -------------------------------------------------------------------------------------------------------


@pytest.fixture
def old_keys(state, spent_key):
    """The file as a version wrote it that knew no ledgers."""
    content = json.loads((state / "keys.json").read_text())
    for key in content["keys"]:
        del key["budget"], key["options"]
    (state / "keys.json").write_text(json.dumps({"keys": content["keys"]}))
    return spent_key


def test_b1_keys_of_before_take_their_budget_from_the_ledger(state, start, request_body, old_keys):
    client = start(state)
    assert client.post("/v1/rewrite", json=request_body(), headers=old_keys).status_code == 403
    assert Keys(state).named("team").budget == KeyBudget(1.0, 1e-6)
    with open_ledger(state / "ledger.sqlite") as ledger:
        assert Keys(state).register().ledger == ledger.id


@pytest.mark.parametrize("loss", [remove, empty])
def test_b1_keys_of_before_never_get_a_new_ledger(state, start, request_body, old_keys, loss):
    loss(state)
    assert_nothing_is_released(start(state), request_body, old_keys)


# Changing keys --------------------------------------------------------------------------------------------------------

WORKER = """
import sys
from pathlib import Path
from tacit.serve.keys import Keys
keys, first = Keys(Path(sys.argv[1])), int(sys.argv[2])
for number in range(first, first + 10):
    keys.revoke(f"old{number}")
    keys.add(f"new{number}", 60)
"""


def test_b5_simultaneous_changes_lose_nothing_and_a_reader_never_sees_a_broken_file(state):
    """Four processes revoke and add at the same time, while a service reads."""
    keys = Keys(state)
    for number in range(40):
        keys.add(f"old{number}", 60)
    problems = []
    done = threading.Event()

    def read():
        while not done.is_set():
            known = Keys(state).all()
            if len(known) < 40:
                problems.append(len(known))

    reader = threading.Thread(target=read)
    reader.start()
    workers = [
        subprocess.Popen([sys.executable, "-c", WORKER, str(state), str(first)], stderr=subprocess.PIPE)
        for first in (0, 10, 20, 30)
    ]
    outcomes = [(worker.communicate()[1], worker.returncode) for worker in workers]
    done.set()
    reader.join()
    assert [code for _, code in outcomes] == [0] * 4, outcomes
    assert problems == []
    result = Keys(state)
    assert sorted(key.name for key in result.active()) == sorted(f"new{number}" for number in range(40))
    assert len(result.all()) == 80
    assert not list(state.glob("*.draft"))


def test_b5_two_keys_of_one_name_cannot_share_a_limit(state, capsys):
    """The second is refused before it can change the limit of the first."""
    outcomes = []

    def add(epsilon):
        outcomes.append(command("serve", "keys", "add", "team", "--epsilon", epsilon, "--state", state))

    threads = [threading.Thread(target=add, args=(epsilon,)) for epsilon in (1, 1000)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == [0, 2]
    with open_ledger(state / "ledger.sqlite") as ledger:
        assert ledger.limit_of(Subject("key", "team")).epsilon == Keys(state).named("team").budget.epsilon


def test_b5_a_change_that_is_stopped_changes_nothing(state, monkeypatch):
    keys = Keys(state)
    keys.add("team", 60)
    before = (state / "keys.json").read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(keys_module.os, "fsync", full)
    with pytest.raises(BadInputError, match="nothing was changed"):
        keys.revoke("team")
    monkeypatch.undo()
    assert (state / "keys.json").read_bytes() == before
    assert not list(state.glob("*.draft"))
    assert Keys(state).is_active("team")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'{"ledger": null}',
        b'{"ledger": 3, "keys": []}',
        b'{"ledger": null, "keys": [], "more": 1}',
        b'{"ledger": null, "keys": [{"name": "team"}]}',
        b'{"ledger": null, "keys": "team"}',
    ],
)
def test_b5_damaged_keys_fail_closed(state, start, request_body, content):
    secret = Keys(state).add("team", 60)
    (state / "keys.json").write_bytes(content)
    assert not Keys(state).works()
    with pytest.raises(BadInputError):
        Keys(state).add("other", 60)
    with pytest.raises(BadInputError):
        Keys(state).revoke("team")
    assert (state / "keys.json").read_bytes() == content  # nothing is lost on top
    with pytest.raises(BadInputError):
        start(state).post("/v1/rewrite", json=request_body(), headers=bearer(secret))


@pytest.mark.parametrize("change", [{"options": {"unheard": True}}, {"options": {"refuse_nominal": "no"}}, {"x": 1}])
def test_b5_a_restriction_that_is_not_known_is_not_ignored(state, change):
    Keys(state).add("team", 60)
    content = json.loads((state / "keys.json").read_text())
    content["keys"][0].update(change)
    (state / "keys.json").write_text(json.dumps(content))
    assert not Keys(state).works()


def test_b5_a_running_service_hears_of_changes(state, start, monkeypatch):
    monkeypatch.setattr(keys_module, "REREAD_SECONDS", 0.0)
    secret = Keys(state).add("team", 600)
    client = start(state)
    assert client.get("/v1/jobs", headers=bearer(secret)).status_code == 200
    Keys(state).add("other", 60, options=KeyOptions(refuse_nominal=True))
    assert Keys(state).named("other").options.refuse_nominal
    assert not Keys(state).set_options("other", refuse_nominal=False).options.refuse_nominal
    assert Keys(state).set_rate("team", 1000).requests_per_minute == 1000
    assert client.get("/v1/jobs", headers=bearer(secret)).status_code == 200
    Keys(state).revoke("team")
    assert client.get("/v1/jobs", headers=bearer(secret)).status_code == 401
