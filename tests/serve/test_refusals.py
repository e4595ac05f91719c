"""Every refusal names its cause: a code of docs/errors.md and the values of its sentence, and no private text."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from tacit.account.ledger import BudgetExceededError, LedgerError
from tacit.errors import BadInputError
from tacit.serve.answers import Refusal
from tacit.serve.errors import ServiceError, UnavailableError, as_service_error
from tests.serve.conftest import Body, Start

PAGE = Path(__file__).resolve().parents[2] / "docs" / "errors.md"
CODES = set(re.findall(r"^### ([a-z0-9-]+)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE))
JSON = {"content-type": "application/json"}
SECRET = "hunter2"


@pytest.mark.parametrize(
    ("method", "path", "sent", "status", "code", "cause", "fields"),
    [
        ("GET", "/nowhere", {}, 404, "not_found", "no-such-address", {}),
        ("PUT", "/v1/rewrite", {}, 405, "method_not_allowed", "method-not-taken", {}),
        ("POST", "/v1/rewrite", {"content": b"{}"}, 415, "wrong_content_type", "content-type-is-not-json", {}),
        ("POST", "/v1/rewrite", {"content": b"\xff", "headers": JSON}, 400, "bad_encoding", "body-not-utf-8", {}),
        ("POST", "/v1/rewrite", {"content": b"[", "headers": JSON}, 400, "bad_json", "body-not-json", {}),
        ("POST", "/v1/rewrite", {"content": b"[]", "headers": JSON}, 400, "bad_json", "body-not-an-object", {}),
        ("POST", "/v1/rewrite", {"json": {SECRET: 1}}, 422, "bad_parameter", "unknown-field", None),
        ("POST", "/v1/rewrite", {"json": {"mechanism": 3}}, 422, "bad_parameter", "bad-field", None),
        ("GET", "/v1/jobs/none", {}, 404, "not_found", "no-such-job", {}),
        ("GET", "/v1/reports/none", {}, 404, "not_found", "no-such-report", {}),
        ("POST", "/v1/jobs", {"json": {}}, 415, "wrong_content_type", "content-type-is-no-form", {}),
    ],
)  # fmt: skip
def test_a_refusal_names_its_cause(
    client: TestClient,
    method: str,
    path: str,
    sent: dict[str, object],
    status: int,
    code: str,
    cause: str,
    fields: dict[str, object] | None,
) -> None:
    answer = client.request(method, path, **sent)
    error = Refusal.model_validate(answer.json()).error
    assert (answer.status_code, error.code, error.cause) == (status, code, cause)
    assert fields is None or error.fields == fields
    assert error.cause in CODES
    assert SECRET not in answer.text


def test_a_mechanism_that_is_not_known_is_named_in_the_fields(client: TestClient) -> None:
    answer = client.post("/v1/rewrite", json={"mechanism": "santexx", "epsilon": 2, "text": "w1"})
    error = Refusal.model_validate(answer.json()).error
    assert (answer.status_code, error.code) == (404, "unknown_mechanism")
    assert error.cause in CODES
    assert "santexx" in error.fields.values()


def test_limits_are_named_by_their_number(start: Start, request_body: Body) -> None:
    answer = start(texts=1).post("/v1/rewrite", json=request_body(texts=["w1", "w2"]))
    error = Refusal.model_validate(answer.json()).error
    assert (answer.status_code, error.cause, error.fields) == (413, "too-many-texts", {"most": 1})


def test_a_limit_of_others_is_refused_without_their_numbers() -> None:
    spent = {"limit": "epsilon 3 per user", "spent": "epsilon 2.71828"}
    sentence = "the limit of {limit} would be broken: {spent}"
    of_others = as_service_error(BudgetExceededError("limit-broken", sentence, kind="user", **spent))
    assert (of_others.cause.code, of_others.cause.fields) == ("limit-of-operator", {"kind": "user"})
    assert "2.71828" not in str(of_others.facts())
    own = as_service_error(BudgetExceededError("limit-broken", sentence, kind="key", **spent))
    assert (own.code, own.cause.code) == ("budget_exceeded", "limit-broken")
    assert own.facts()["fields"]["spent"] == "epsilon 2.71828"


@pytest.mark.parametrize(
    ("error", "status", "cause"),
    [
        (LedgerError("damaged", "the file /srv/hunter2 is damaged"), 503, "ledger-unusable"),
        (UnavailableError("keys-lost", "the keys in /srv/hunter2 are lost"), 503, "service-unusable"),
        (OSError(28, "hunter2"), 507, "disk-full"),
        (MemoryError("hunter2"), 503, "out-of-memory"),
        (ValueError("hunter2"), 500, "unexpected"),
    ],
)
def test_what_only_the_operator_may_read_is_no_cause(error: Exception, status: int, cause: str) -> None:
    refusal = as_service_error(error)
    assert (refusal.status, refusal.cause.code) == (status, cause)
    assert cause in CODES
    assert SECRET not in str(refusal.facts())


def test_an_error_of_a_job_is_its_own_cause() -> None:
    error = BadInputError("no-such-row", "row {row} is missing", row=3)
    refusal = as_service_error(error)
    assert isinstance(refusal, ServiceError)
    assert refusal.facts() == {
        "code": "bad_parameter", "message": "row 3 is missing", "cause": "no-such-row", "fields": {"row": 3}
    }  # fmt: skip
