"""The public examples of the page are charged to nobody, and nothing else is free."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tacit.account.ledger import Subject, open_ledger
from tacit.serve import site
from tacit.serve.examples import EXAMPLES
from tacit.serve.keys import Keys

PAGE = Path(site.__file__).parent / "page"


@pytest.fixture
def state(tmp_path):
    return tmp_path / "state"


def spent(state, subject):
    with open_ledger(state / "ledger.sqlite") as ledger:
        return ledger.spent(subject)


@pytest.mark.parametrize("example", EXAMPLES)
@pytest.mark.parametrize("changes", [{}, {"draws": 3}, {"mechanism": "santext+"}, {"stream": True}, {"user": "u"}])
def test_c6_an_example_is_not_charged(start, state, request_body, example, changes):
    client = start(state)
    answer = client.post("/v1/rewrite", json=request_body(text=example, **changes))
    assert answer.status_code == 200
    if "stream" not in changes:
        assert answer.json()["spent"] == {"epsilon": 0.0, "delta": 0.0, "remaining": None}
        assert answer.json()["draws"][0]["texts"] != [example]
    with open_ledger(state / "ledger.sqlite") as ledger:
        assert ledger.releases() == []
    assert client.get("/v1/ledger").json()["key"]["spent"]["by_unit"] == []


@pytest.mark.parametrize(
    "text", [EXAMPLES[0] + " ", EXAMPLES[0].lower(), EXAMPLES[0][:-1], EXAMPLES[0] + EXAMPLES[1], "w1"]
)
def test_c6_only_the_very_text_is_an_example(start, state, request_body, text):
    """Whatever the client calls it."""
    client = start(state)
    answer = client.post("/v1/rewrite", json=request_body(text=text, dataset="public example"))
    assert answer.json()["spent"]["epsilon"] > 0
    assert spent(state, Subject("document", text)).releases == 1


def test_c6_in_a_request_with_others_only_the_others_are_charged(start, state, request_body):
    client = start(state)
    alone = client.post("/v1/rewrite", json=request_body(text="w1 w2")).json()["spent"]["epsilon"]
    answer = client.post(
        "/v1/rewrite", json=request_body(texts=[EXAMPLES[0], "w1 w2", EXAMPLES[1]], draws=2, user="u")
    ).json()
    assert answer["spent"]["epsilon"] == pytest.approx(2 * alone)
    assert spent(state, Subject("key", "local")).epsilon == pytest.approx(3 * alone)
    assert spent(state, Subject("user", "u")).epsilon == pytest.approx(2 * alone)
    assert spent(state, Subject("document", EXAMPLES[0])).releases == 0


def test_c6_examples_are_drawn_when_a_budget_is_used_up_and_not_without_a_ledger(start, state, request_body):
    secret = Keys(state).add("team", 600)
    headers = {"authorization": f"Bearer {secret}"}
    client = start(state)
    with open_ledger(state / "ledger.sqlite") as ledger:
        ledger.set_limit("key", epsilon=0.001, name="team")
    assert client.post("/v1/rewrite", json=request_body(), headers=headers).status_code == 403
    answer = client.post("/v1/rewrite", json=request_body(text=EXAMPLES[0]), headers=headers)
    assert answer.json()["spent"] == {"epsilon": 0.0, "delta": 0.0, "remaining": 0.001}
    for path in state.glob("ledger.sqlite*"):
        path.unlink()
    assert client.post("/v1/rewrite", json=request_body(text=EXAMPLES[0]), headers=headers).status_code == 503


def test_c6_page_and_service_have_one_list(start, state):
    script = start(state).get("/assets/examples.js")
    assert script.headers["content-type"].startswith("text/javascript")
    for example in EXAMPLES:
        assert example in script.text
    sources = "".join(path.read_text() for path in PAGE.glob("*.js"))
    assert re.search(r'import \{ EXAMPLES \} from "./examples.js"', sources)
    assert not any(example[:30] in sources for example in EXAMPLES)


def test_c6_an_overview_keeps_units_apart(start, state, request_body):
    client = start(state)
    cost = client.post("/v1/rewrite", json=request_body()).json()["spent"]["epsilon"]
    client.post("/v1/rewrite", json=request_body())
    client.post("/v1/rewrite", json=request_body(mechanism="santext+"))
    with open_ledger(state / "ledger.sqlite") as ledger:
        record = ledger.releases()[0]
        from tests.account.ledger.conftest import pure

        subjects = [Subject("key", "local", 1), Subject("document", "whole", 1)]
        ledger.reserve(pure(3.0), dataset="service", subjects=subjects, token="d", command=record.command).commit()
        gone = ledger.reserve(pure(9.0), dataset="service", subjects=subjects, token="e", command=record.command)
        gone.cancel()
    budget = client.get("/v1/ledger").json()["key"]["spent"]
    assert budget["by_unit"] == [
        {"unit": "document", "epsilon": 3.0, "delta": 0.0, "releases": 1},
        {"unit": "token", "epsilon": pytest.approx(2 * cost), "delta": 0.0, "releases": 2},
    ]
    assert sum(account["releases"] for account in budget["apart"]) == 1
