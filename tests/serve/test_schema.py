"""schemathesis: requests made from the OpenAPI description, and broken ones, never cause a 500."""

from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient

from tacit.account.ledger import open_ledger
from tacit.serve import answers
from tacit.serve.app import create_app
from tacit.serve.keys import Keys
from tacit.serve.settings import ServiceSettings
from tests.serve.waiting import finished

schemathesis = pytest.importorskip("schemathesis", reason="needs pip install schemathesis")
requests = pytest.importorskip("requests", reason="comes with schemathesis")

EXAMPLES = 12
FEW_EXAMPLES = 3
ROUTES = [
    ("POST", "/v1/rewrite"),
    ("GET", "/v1/mechanisms"),
    ("POST", "/v1/calibrate"),
    ("POST", "/v1/curve"),
    ("POST", "/v1/audit/exact"),
    ("POST", "/v1/jobs"),
    ("POST", "/v1/expect"),
    ("GET", "/v1/guide"),
    ("POST", "/v1/guide"),
    ("POST", "/v1/jobs/synthesize"),
    ("GET", "/v1/jobs"),
    ("GET", "/v1/jobs/{id}"),
    ("DELETE", "/v1/jobs/{id}"),
    ("POST", "/v1/jobs/{id}/resume"),
    ("GET", "/v1/jobs/{id}/events"),
    ("GET", "/v1/jobs/{id}/result"),
    ("GET", "/v1/jobs/{id}/card.{kind}"),
    ("GET", "/v1/jobs/{id}/sketch"),
    ("GET", "/v1/jobs/{id}/attribution"),
    ("GET", "/v1/jobs/{id}/report"),
    ("GET", "/v1/jobs/{id}/view"),
    ("GET", "/v1/ledger"),
    ("GET", "/v1/reports"),
    ("GET", "/v1/reports/{name}"),
    ("GET", "/healthz"),
    ("GET", "/metrics"),
]


WITH_BODY = [route for route in ROUTES if route[0] == "POST" and "{" not in route[1]]
OF_THE_LEDGER = ("/v1/rewrite", "/v1/jobs", "/v1/ledger")
ADDRESS = "http://localhost"


@pytest.fixture(scope="module")
def service(tmp_path_factory, vectors):
    app = create_app(ServiceSettings(state=tmp_path_factory.mktemp("state"), allowed=(("vectors", vectors),)))
    with TestClient(app, base_url=ADDRESS, raise_server_exceptions=False) as client:
        yield client


@pytest.fixture(scope="module")
def schema(service):
    return schemathesis.openapi.from_dict(service.get("/openapi.json").json())


@pytest.fixture(scope="module")
def keyed(tmp_path_factory, vectors):
    """A service with a key, whose budget and limits are asked for every request."""
    state = tmp_path_factory.mktemp("keyed")
    secret = Keys(state).add("team", 1_000_000)
    with open_ledger(state / "ledger.sqlite", "a key for tests, nothing more") as ledger:
        ledger.set_limit("key", epsilon=1e4, name="team")
        for kind in ("document", "user", "dataset"):
            ledger.set_limit(kind, epsilon=200.0)
    app = create_app(ServiceSettings(state=state, allowed=(("vectors", vectors),)))
    with TestClient(app, base_url=ADDRESS, raise_server_exceptions=False) as client:
        client.headers["authorization"] = f"Bearer {secret}"
        yield client


def send(service, case):
    """The case over our own client: one service for all of them."""
    made = requests.Request(**case.as_transport_kwargs(base_url=ADDRESS)).prepare()
    headers = {name: value for name, value in made.headers.items() if name.lower() != "authorization"}
    return service.request(made.method, made.url, content=made.body or b"", headers=headers)


def test_all_routes_are_described(schema):
    operations = [result.ok() for result in schema.get_all_operations()]
    assert sorted((operation.method.upper(), operation.path) for operation in operations) == sorted(ROUTES)


@pytest.mark.parametrize(
    ("method", "path", "mode"),
    [(*route, "positive") for route in ROUTES] + [(*route, "negative") for route in WITH_BODY],
)
def test_no_request_causes_an_internal_error(service, schema, method, path, mode, vectors):
    reached = sent_from(service, schema, method, path, mode, vectors)
    if mode == "positive" and path in ("/v1/rewrite", "/v1/curve"):
        assert True in reached  # some of them were done, not merely refused


@pytest.mark.parametrize(("method", "path"), [route for route in ROUTES if route[1] in OF_THE_LEDGER])
def test_no_request_with_a_key_causes_an_internal_error(keyed, schema, method, path, vectors):
    """Names of data sets and users, which meet limits here."""
    reached = sent_from(keyed, schema, method, path, "positive", vectors)
    if path in ("/v1/rewrite", "/v1/ledger"):
        assert reached


def sent_from(service, schema, method, path, mode, vectors):
    """Half of the requests name a mechanism that exists, so that they get past the first question; whether such and
    others were done."""
    operation = schema[path][method]
    examples = EXAMPLES if (method, path) in WITH_BODY else FEW_EXAMPLES
    reached: set[bool] = set()
    declared = set(schema.raw_schema["paths"][path][method.lower()]["responses"])

    @settings(max_examples=examples, phases=[Phase.generate], derandomize=True, database=None,
              suppress_health_check=list(HealthCheck))  # fmt: skip
    @given(case=operation.as_strategy(generation_mode=schemathesis.GenerationMode(mode)), aimed=st.booleans())
    def check(case, aimed):
        if aimed and isinstance(case.body, dict) and "mechanism" in case.body:
            case.body = {**case.body, "mechanism": "santext", "options": {"vectors": vectors}}
            if path == "/v1/rewrite":
                case.body = {**case.body, "text": "w1 w2", "texts": None, "epsilon": 0.5}
        response = send(service, case)
        assert str(response.status_code) in declared, response.status_code
        assert response.status_code < 500, (response.status_code, response.text)
        if response.status_code >= 400:
            assert set(response.json()) == {"error"}
        else:
            reached.add(aimed)

    check()
    return reached


# The description ------------------------------------------------------------------------------------------------------


def test_the_description_names_types_keys_and_only_what_occurs(service):
    description = service.get("/openapi.json").json()
    paths = description["paths"]
    assert description["components"]["securitySchemes"]["bearer"] == {
        "type": "http",
        "scheme": "bearer",
        "description": "A key of 'tacit serve keys add'.",
    }
    assert "HTTPValidationError" not in json.dumps(description)
    assert not any("head" in operations for operations in paths.values())
    media = {
        "/v1/jobs/{id}/events": {"text/event-stream"},
        "/v1/jobs/{id}/result": {"application/octet-stream", "text/csv"},
        "/v1/jobs/{id}/card.{kind}": {"application/json", "text/markdown", "text/html"},
        "/v1/jobs/{id}/sketch": {"application/octet-stream"},
        "/v1/jobs/{id}/attribution": {"text/plain"},
        "/v1/jobs/{id}/report": {"text/html"},
        "/v1/reports/{name}": {"text/html"},
        "/metrics": {"text/plain; version=0.0.4; charset=utf-8"},
    }
    for path, kinds in media.items():
        assert set(paths[path]["get"]["responses"]["200"]["content"]) == kinds
    for path, operations in paths.items():
        for operation in operations.values():
            assert ("security" in operation) is (path != "/healthz")
            for status, response in operation["responses"].items():
                content = response["content"]
                assert all(each["schema"] for each in content.values()), (path, status)
    assert set(paths["/v1/mechanisms"]["get"]["responses"]) == {"200", "401", "403", "429", "500", "503"}
    assert "409" not in paths["/v1/rewrite"]["post"]["responses"]


def test_answers_have_the_described_shape(start, request_body, job_form, tmp_path, vectors):
    """Nothing is missing in the description, and nothing is there beside it."""
    (tmp_path / "reports").mkdir()
    (tmp_path / "reports" / "audit.html").write_text("<title>Audit</title>")
    client = start(reports=tmp_path / "reports")
    of_words = {"mechanism": "santext", "options": {"vectors": vectors}}
    for tokens in (False, True):
        answers.RewriteAnswer.model_validate(client.post("/v1/rewrite", json=request_body(tokens=tokens)).json())
    job = client.post("/v1/jobs", **job_form(columns=["text"])).json()
    answers.JobFacts.model_validate(job)
    finished(client, job["id"])
    with open_ledger(tmp_path / "state" / "ledger.sqlite") as ledger:
        ledger.set_limit("key", epsilon=1e9, name="local")
        ledger.set_limit("document", epsilon=1e9)
    asked_for = (
        (answers.Mechanisms, client.get("/v1/mechanisms")),
        (answers.Calibrated, client.post("/v1/calibrate", json={**of_words, "document_epsilon": 20.0})),
        (answers.Curve, client.post("/v1/curve", json={**of_words, "epsilons": [2.0]})),
        (answers.AuditReport, client.post("/v1/audit/exact", json={**of_words, "epsilon": 2.0})),
        (answers.Jobs, client.get("/v1/jobs")),
        (answers.JobFacts, client.get(f"/v1/jobs/{job['id']}")),
        (answers.Overview, client.get("/v1/ledger")),
        (answers.Reports, client.get("/v1/reports")),
        (answers.Health, client.get("/healthz")),
        (answers.Refusal, client.get("/v1/jobs/nothing")),
        (answers.JobFacts, client.delete(f"/v1/jobs/{job['id']}")),
    )
    for shape, answer in asked_for:
        shape.model_validate(answer.json())
