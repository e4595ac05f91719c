"""Keys: only hashes are kept, wrong ones teach nothing, budgets and rates hold, revoking works at once."""

from __future__ import annotations

import hashlib
import hmac
import json
import stat

import pytest

from tacit.account.ledger import Subject, open_ledger
from tacit.cli.main import run
from tacit.errors import BadInputError, BadParameterError
from tacit.serve import budget
from tacit.serve import keys as keys_module
from tacit.serve.keys import Key, KeyOptions, Keys, RateLimit
from tests.serve.waiting import finished


@pytest.fixture
def state(tmp_path):
    return tmp_path / "state"


def bearer(secret):
    return {"authorization": f"Bearer {secret}"}


def test_only_a_hash_is_kept_and_only_the_owner_can_read_it(state):
    secret = Keys(state).add("team", 600)
    content = (state / "keys.json").read_text()
    assert secret not in content
    assert hashlib.sha256(secret.encode()).hexdigest() in content
    assert stat.S_IMODE((state / "keys.json").stat().st_mode) == 0o600
    assert stat.S_IMODE(state.stat().st_mode) == 0o700


def test_names_are_used_once(state):
    keys = Keys(state)
    keys.add("team", 600)
    keys.revoke("team")
    with pytest.raises(BadInputError, match="choose another name"):
        keys.add("team", 600)
    with pytest.raises(BadParameterError, match="letters"):
        keys.add("../team", 600)
    with pytest.raises(BadInputError, match="no active key"):
        keys.revoke("team")


def test_every_wrong_key_gets_the_same_answer(start, state):
    keys = Keys(state)
    good, revoked = keys.add("good", 600), keys.add("revoked", 600)
    keys.revoke("revoked")
    client = start(state)
    assert client.get("/v1/mechanisms", headers=bearer(good)).status_code == 200
    assert client.get("/v1/mechanisms", headers={"x-api-key": good}).status_code == 200
    wrong = [
        {},
        bearer("tacit_unknown"),
        bearer(revoked),
        bearer(""),
        bearer(good[:-1]),
        bearer("é" * 500),
        {"authorization": "Basic abc"},
        {"x-api-key": "x" * 5000},
    ]
    answers = [
        client.get("/v1/mechanisms", headers={k: v.encode("latin-1") for k, v in headers.items()}) for headers in wrong
    ]
    assert {answer.status_code for answer in answers} == {401}
    assert len({answer.content for answer in answers}) == 1
    assert len({tuple(sorted(answer.headers.items())) for answer in answers}) == 1


def test_a_wrong_key_costs_the_same_work(state, monkeypatch):
    """Whatever is presented, it is hashed once and compared with every key there is."""
    keys = Keys(state)
    secrets = [keys.add(f"key{i}", 600) for i in range(3)]
    keys.revoke("key1")
    counts = []
    original = hmac.compare_digest
    for presented in (*secrets, "", "unknown", "é" * 1000):
        seen = []
        monkeypatch.setattr(
            keys_module.hmac, "compare_digest", lambda a, b, seen=seen: (seen.append(a), original(a, b))[1]
        )
        keys.find(presented)
        counts.append(len(seen))
        monkeypatch.undo()
    assert counts == [3] * 6


def test_the_page_and_health_need_no_key_and_everything_else_does(start, state):
    Keys(state).add("team", 600)
    client = start(state)
    for path in ("/", "/healthz", "/openapi.json"):
        assert client.get(path).status_code == 200
    for route in client.app.routes:
        if getattr(route, "include_in_schema", False) and route.path not in ("/healthz", "/openapi.json"):
            method = min(route.methods - {"HEAD"})
            path = route.path.replace("{id}", "0" * 32).replace("{name}", "x").replace("{kind}", "json")
            assert client.request(method, path).status_code == 401, path


def test_the_rate_of_a_key_is_limited(start, state):
    secret, other = Keys(state).add("slow", 2), Keys(state).add("other", 100)
    client = start(state)
    statuses = [client.get("/v1/mechanisms", headers=bearer(secret)).status_code for _ in range(3)]
    assert statuses == [200, 200, 429]
    answer = client.get("/v1/mechanisms", headers=bearer(secret))
    assert 1 <= int(answer.headers["retry-after"]) <= 30
    assert client.get("/v1/mechanisms", headers=bearer(other)).status_code == 200


def test_a_bucket_fills_up_steadily(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(keys_module.time, "monotonic", lambda: now[0])
    rates, key = RateLimit(), Key("k", "", 60, "")
    assert [rates.wait(key) for _ in range(60)] == [0.0] * 60
    assert rates.wait(key) == pytest.approx(1.0)
    now[0] = 0.5
    assert rates.wait(key) == pytest.approx(0.5)
    now[0] = 1.01
    assert rates.wait(key) == 0.0


def test_a_key_that_is_revoked_stops_working_in_a_running_service(start, state, monkeypatch):
    monkeypatch.setattr(keys_module, "REREAD_SECONDS", 0.0)
    secret = Keys(state).add("team", 600)
    client = start(state)
    assert client.get("/v1/jobs", headers=bearer(secret)).status_code == 200
    Keys(state).revoke("team")
    assert client.get("/v1/jobs", headers=bearer(secret)).status_code == 401


def test_losing_the_file_of_keys_does_not_open_the_service(start, state, monkeypatch):
    monkeypatch.setattr(keys_module, "REREAD_SECONDS", 0.0)
    Keys(state).add("team", 600)
    client = start(state)
    (state / "keys.json").unlink()
    assert client.get("/v1/jobs").status_code == 503


def test_a_budget_is_spent_and_then_refused(start, state, request_body):
    """What is refused is not counted, and what one key spends is not the other's."""
    assert run(["serve", "keys", "add", "unlimited", "--state", str(state)]) == 0
    secret = Keys(state).add("team", 600)
    client = start(state, operators=("team",))
    cost = client.post("/v1/rewrite", json=request_body(), headers=bearer(secret)).json()["spent"]
    assert cost["remaining"] is None
    with open_ledger(state / "ledger.sqlite") as ledger:
        ledger.set_limit("key", epsilon=2.5 * cost["epsilon"], name="team")
    second = client.post("/v1/rewrite", json=request_body(), headers=bearer(secret)).json()["spent"]
    assert second["remaining"] == pytest.approx(0.5 * cost["epsilon"])
    third = client.post("/v1/rewrite", json=request_body(), headers=bearer(secret))
    assert third.status_code == 403
    assert third.json()["error"]["code"] == "budget_exceeded"
    assert "tacit_budget_refusals_total 1.0" in client.get("/metrics", headers=bearer(secret)).text
    overview = client.get("/v1/ledger", headers=bearer(secret)).json()
    assert overview["key"]["name"] == "team"
    assert overview["key"]["spent"]["epsilon"] == pytest.approx(2 * cost["epsilon"])
    assert [line["state"] for line in overview["releases"]] == ["committed", "committed"]
    with open_ledger(state / "ledger.sqlite") as ledger:
        assert ledger.spent(Subject("key", "unlimited")).epsilon == 0
        assert ledger.verify().ok


def test_the_commands(state, capsys):
    assert run(["serve", "keys", "add", "team", "--epsilon", "100", "--state", str(state)]) == 0
    secret = capsys.readouterr().out.strip()
    assert Keys(state).find(secret).name == "team"
    assert run(["serve", "keys", "list", "--state", str(state)]) == 0
    listed = capsys.readouterr().out
    assert "team" in listed
    assert "100" in listed
    assert secret not in listed
    assert run(["serve", "keys", "revoke", "team", "--state", str(state)]) == 0
    assert Keys(state).find(secret) is None
    assert run(["serve", "keys", "revoke", "nobody", "--state", str(state)]) == 2
    assert run(["serve", "keys", "add", "bad name", "--state", str(state)]) == 2
    assert run(["serve", "keys", "add", "x", "--epsilon", "-1", "--state", str(state)]) == 2
    assert [key["name"] for key in json.loads((state / "keys.json").read_text())["keys"]] == ["team"]


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.1.5", "::", "example.org"])
def test_without_keys_the_service_listens_on_this_machine_only(state, host, capsys):
    assert run(["serve", "--host", host, "--port", "0", "--state", str(state)]) == 2
    assert "keys add" in capsys.readouterr().err


def test_settings_that_make_no_sense(state, capsys):
    assert run(["serve", "--port", "70000", "--state", str(state)]) == 2
    assert "--port" in capsys.readouterr().err
    assert run(["serve", "--allow", "vectors", "--state", str(state)]) == 2
    assert run(["serve", "--reports", str(state / "nothing"), "--port", "0", "--state", str(state)]) == 2


@pytest.mark.parametrize(
    ("option", "value"),
    [("--body-mb", value) for value in ("nan", "inf", "-1", "0", "1e300")]
    + [("--upload-mb", "nan"), ("--keep-hours", "1e300"), ("--keep-hours", "nan"), ("--timeout", "inf")],
)
def test_numbers_that_make_no_sense(state, capsys, option, value):
    assert run(["serve", option, value, "--port", "0", "--state", str(state)]) == 2
    messages = capsys.readouterr().err
    assert option in messages
    assert len(messages.strip().splitlines()) == 1


# What one key learns of another ---------------------------------------------------------------------------------------


@pytest.fixture
def two_keys(start, state):
    """A service with the keys of two people who must not learn from each other."""
    first, second = (bearer(Keys(state).add(name, 10_000)) for name in ("one", "two"))
    return start(state), first, second


def limited(state, kind, epsilon, **more):
    with open_ledger(state / "ledger.sqlite") as ledger:
        ledger.set_limit(kind, epsilon=epsilon, **more)


@pytest.mark.parametrize(
    ("kind", "called", "named"),
    [
        ("document", "document", {}),
        ("user", "user", {"user": "u17"}),
        ("dataset", "data set", {"dataset": "letters"}),
    ],
)
def test_a_refusal_does_not_tell_what_another_key_has_spent(two_keys, state, request_body, kind, called, named):
    """The sentence is the same whatever was spent, and has no number in it."""
    client, first, second = two_keys
    cost = client.post("/v1/rewrite", json=request_body(text="w9", **named), headers=second).json()["spent"]["epsilon"]
    limited(state, kind, 3.5 * cost)
    sentences = set()
    for texts in (["w1"], ["w1", "w1"], ["w1 w2", "w1"]):  # the more another key has spent, the same is said
        for text in texts:
            client.post("/v1/rewrite", json=request_body(text=text, **named), headers=first)
        refused = client.post("/v1/rewrite", json=request_body(text="w1", draws=4, **named), headers=second)
        assert refused.status_code == 403
        sentences.add(refused.json()["error"]["message"])
    (sentence,) = sentences
    assert f"per {called} " in sentence
    assert not any(character.isdigit() for character in sentence)


def test_a_release_without_a_sum_of_another_key_is_not_described(two_keys, state, request_body):
    client, first, second = two_keys
    assert (
        client.post("/v1/rewrite", json=request_body(mechanism="santext+", dataset="d"), headers=first).status_code
        == 200
    )
    limited(state, "document", 1e6)
    refused = client.post("/v1/rewrite", json=request_body(dataset="d"), headers=second).json()["error"]["message"]
    assert "per document" in refused
    assert "metric" not in refused
    own = client.post("/v1/rewrite", json=request_body(text="w7", mechanism="santext+"), headers=second).json()["error"]
    assert "this release has no plain epsilon" in own["message"]  # its own release, so it may know why


def test_a_key_is_told_what_it_has_spent_itself(two_keys, state, request_body):
    client, first, _ = two_keys
    cost = client.post("/v1/rewrite", json=request_body(), headers=first).json()["spent"]["epsilon"]
    limited(state, "key", 1.5 * cost)
    refused = client.post("/v1/rewrite", json=request_body(), headers=first).json()["error"]["message"]
    assert "one key has spent epsilon" in refused


def test_a_job_does_not_tell_what_another_key_has_spent(two_keys, state, request_body, job_form):
    client, first, second = two_keys
    cost = client.post("/v1/rewrite", json=request_body(text="w1 w2", dataset="d"), headers=first).json()["spent"][
        "epsilon"
    ]
    limited(state, "document", 1.5 * cost)
    job = client.post("/v1/jobs", headers=second, **job_form(dataset="d", columns=["text"])).json()
    failed = finished(client, job["id"], headers=second)
    assert failed["state"] == "failed"
    assert "per document does not allow" in failed["error"]
    assert not any(character.isdigit() for character in failed["error"])


# What is damaged ------------------------------------------------------------------------------------------------------


def test_a_damaged_file_of_keys_is_no_fault_of_the_client(start, state, monkeypatch, caplog):
    monkeypatch.setattr(keys_module, "REREAD_SECONDS", 0.0)
    secret = Keys(state).add("team", 600)
    client = start(state)
    (state / "keys.json").write_text('{"keys": [{"name": "team"}]}')
    answer = client.get("/v1/jobs", headers=bearer(secret))
    assert answer.status_code == 503
    assert str(state) not in answer.text
    assert "keys.json" not in answer.text
    assert "keys.json cannot be read" in caplog.text  # the operator learns what it is
    health = client.get("/healthz")
    assert (health.status_code, health.json()["keys"]) == (503, "unavailable")
    assert run(["serve", "keys", "list", "--state", str(state)]) == 2


@pytest.fixture
def key_in_a_file(tmp_path, monkeypatch):
    """The key of the ledger lies in a file, as it does unless TACIT_LEDGER_KEY is set."""
    monkeypatch.delenv("TACIT_LEDGER_KEY")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setattr(budget, "CHECK_SECONDS", 0.0)
    return lambda: next((tmp_path / "config").rglob("*.key"))


def test_a_lost_key_of_the_ledger_is_told_to_the_operator_only(start, request_body, tmp_path, key_in_a_file, caplog):
    client = start()
    assert client.get("/healthz").json()["ledger"] == "ok"
    assert "its key is in" in caplog.text
    client.__exit__(None, None, None)
    path = key_in_a_file()
    kept = path.read_bytes()
    path.unlink()
    again = start()
    for answer in (again.post("/v1/rewrite", json=request_body()), again.get("/v1/ledger")):
        assert answer.status_code == 503
        assert answer.json()["error"]["code"] == "ledger"
        assert str(tmp_path) not in answer.text
    health = again.get("/healthz")
    assert (health.status_code, health.json()["ledger"]) == (503, "unavailable")
    assert str(tmp_path) not in health.text
    assert "the key of this ledger cannot be read" in caplog.text
    path.write_bytes(kept)
    assert again.get("/healthz").status_code == 200  # it gets well by itself
    assert again.post("/v1/rewrite", json=request_body()).status_code == 200


def test_a_key_of_the_ledger_that_is_too_short_is_no_fault_of_the_client(start, request_body, monkeypatch):
    monkeypatch.setenv("TACIT_LEDGER_KEY", "short")
    client = start()
    assert client.post("/v1/rewrite", json=request_body()).status_code == 503
    assert client.get("/healthz").status_code == 503


# The overview of a key ------------------------------------------------------------------------------------------------


def test_no_name_of_a_key_is_in_the_ledger(two_keys, state, request_body, job_form):
    client, first, _ = two_keys
    client.post("/v1/rewrite", json=request_body(), headers=first)
    finished(client, client.post("/v1/jobs", headers=first, **job_form(columns=["text"])).json()["id"], headers=first)
    with open_ledger(state / "ledger.sqlite") as ledger:
        commands = [record.command for record in ledger.releases()]
    assert len(set(commands)) == 1
    assert commands[0].startswith("tacit serve: key ")
    assert "one" not in commands[0]


def test_an_overview_names_no_data_set_of_another_key(two_keys, state, request_body):
    client, first, second = two_keys
    for headers, name in ((first, "of-one"), (second, "of-two")):
        client.post("/v1/rewrite", json=request_body(dataset=name), headers=headers)
        limited(state, "document", 1e6, dataset=name)
        limited(state, "dataset", 1e6, dataset=name)
    limited(state, "user", 1e5)
    limited(state, "dataset", 1e6, dataset="service")
    spent = client.get("/v1/ledger", headers=first)
    assert "of-two" not in spent.text
    limits = spent.json()["dataset_limits"]
    assert sorted((limit["kind"], limit["dataset"]) for limit in limits if limit["kind"] != "user") == [
        ("dataset", "of-one"),
        ("dataset", "service"),
        ("document", "of-one"),
    ]
    assert ("user", None) in {(limit["kind"], limit["dataset"]) for limit in limits}


def test_an_overview_has_the_releases_of_its_key_however_many_others_there_are(
    two_keys, state, request_body, monkeypatch
):
    client, first, second = two_keys
    client.post("/v1/rewrite", json=request_body(), headers=first)
    monkeypatch.setattr(budget, "RELEASES", 3)
    for _ in range(5):
        client.post("/v1/rewrite", json=request_body(), headers=second)
    with open_ledger(state / "ledger.sqlite") as ledger:  # as an earlier version wrote it
        subjects = [Subject("key", "one", 1), Subject("document", "old", 1)]
        guarantee = ledger.releases()[0].guarantee
        ledger.reserve(guarantee, dataset="old", subjects=subjects, token="old", command="tacit serve: one").commit()
    releases = client.get("/v1/ledger", headers=first).json()["releases"]
    assert [line["dataset"] for line in releases] == ["old", "service"]
    assert len(client.get("/v1/ledger", headers=second).json()["releases"]) == 3


@pytest.mark.parametrize("field", ["dataset", "user"])
def test_names_have_no_control_characters(two_keys, request_body, field):
    client, first, _ = two_keys
    answer = client.post("/v1/rewrite", json=request_body(**{field: "a\x00b"}), headers=first)
    assert answer.status_code == 422
    assert "control characters" in answer.json()["error"]["message"]
    assert client.post("/v1/rewrite", json=request_body(**{field: "Straße 漢字"}), headers=first).status_code == 200


def test_c5_a_key_can_demand_that_nominal_releases_are_refused(start, state, request_body, job_form):
    keys = Keys(state)
    careful, careless = keys.add("careful", 600, options=KeyOptions(refuse_nominal=True)), keys.add("careless", 600)
    client = start(state)

    def post(key, **changes):
        return client.post("/v1/rewrite", json=request_body(**changes), headers={"authorization": f"Bearer {key}"})

    refused = post(careful)
    assert refused.status_code == 403
    assert refused.json()["error"]["code"] == "nominal"
    spent = client.get("/v1/ledger", headers={"authorization": f"Bearer {careful}"}).json()["key"]["spent"]
    assert spent["releases"] == 0
    assert post(careless).status_code == 200
    assert post(careful, epsilon=0.2).status_code == 200
    assert post(careful, epsilon=0.2, draws=10).status_code == 403, "all draws count"
    assert post(careful, epsilon=0.01, text="w1 " * 5000).status_code == 403, "the longest text counts"


def test_c5_a_service_can_refuse_nominal_releases_to_everybody_and_so_do_its_jobs(start, state, request_body, job_form):
    client = start(refuse_nominal=True)
    assert client.post("/v1/rewrite", json=request_body()).status_code == 403
    made = client.post("/v1/jobs", **job_form())
    assert made.status_code in (200, 201, 202)
    job = made.json()["id"]
    facts = finished(client, job)
    assert facts["state"] == "failed"
    assert "nominal" in facts["error"]
    assert client.get("/v1/ledger").json()["key"]["spent"]["releases"] == 0, "no budget was touched"
