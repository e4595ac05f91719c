"""What every request passes: hosts, origins, sizes, headers, room."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from tacit.serve import gate
from tacit.serve.keys import Keys
from tests.serve.waiting import finished


@pytest.mark.parametrize("host", ["localhost", "localhost:8000", "127.0.0.1:9", "[::1]:8000", "[::1]"])
def test_names_of_this_machine_are_accepted(client, host):
    assert client.get("/v1/mechanisms", headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example:80", "", "10.0.0.1"]
)
def test_a_name_that_points_here_is_refused_without_keys(client, host):
    """DNS rebinding: the browser of the user believes that the service belongs to the stranger's page."""
    assert client.get("/v1/mechanisms", headers={"host": host}).status_code == 403


def test_a_name_can_be_allowed_and_keys_make_names_unimportant(start, tmp_path):
    client = start(tmp_path / "a", hosts=("text.example",))
    assert client.get("/v1/mechanisms", headers={"host": "text.example"}).status_code == 200
    secret = Keys(tmp_path / "b").add("team", 100)
    headers = {"host": "anything.example", "authorization": f"Bearer {secret}"}
    assert start(tmp_path / "b").get("/v1/mechanisms", headers=headers).status_code == 200


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://localhost:1234"])
def test_pages_of_other_sites_are_refused(client, request_body, origin):
    assert client.post("/v1/rewrite", json=request_body(), headers={"origin": origin}).status_code == 403


def test_the_own_page_is_not_another_site(client, request_body):
    assert client.post("/v1/rewrite", json=request_body(), headers={"origin": "http://localhost"}).status_code == 200


def test_every_answer_has_its_security_headers(client, request_body):
    for answer in (client.get("/"), client.get("/nothing"), client.post("/v1/rewrite", json=request_body())):
        assert answer.headers["content-security-policy"].startswith("default-src 'self'")
        assert "unsafe" not in answer.headers["content-security-policy"]
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "server" not in answer.headers
    assert client.get("/nothing").json()["error"]["code"] == "not_found"
    assert client.get("/v1/rewrite").status_code == 405
    assert client.delete("/v1/mechanisms").json()["error"]["code"] == "method_not_allowed"


def test_a_large_body_is_stopped_by_its_length_and_while_it_streams(start, request_body):
    client = start(body_bytes=2_000)
    body = json.dumps(request_body(text="w1 " * 1000)).encode()
    declared = client.post("/v1/rewrite", content=body, headers={"content-type": "application/json"})
    assert declared.status_code == 413
    taken = 0

    def chunks():
        nonlocal taken
        for start in range(0, len(body), 100):
            taken += 1
            yield body[start : start + 100]

    streamed = client.post("/v1/rewrite", content=chunks(), headers={"content-type": "application/json"})
    assert streamed.status_code == 413
    assert "2,000 bytes" in streamed.json()["error"]["message"]


async def never():
    await asyncio.sleep(60)


async def dribbling():
    """A byte now and then, never a long pause."""
    await asyncio.sleep(0.02)
    return {"type": "http.request", "body": b" ", "more_body": True}


@pytest.mark.parametrize(("receive", "limit"), [(never, "BODY_PAUSE_SECONDS"), (dribbling, "BODY_SECONDS")])
def test_a_body_that_stands_still_or_never_ends_is_given_up(monkeypatch, tmp_path, receive, limit):
    from tacit.serve.app import create_app
    from tacit.serve.settings import ServiceSettings

    monkeypatch.setattr(gate, limit, 0.1)
    app = create_app(ServiceSettings(state=tmp_path))
    sent = []

    async def send(message):
        sent.append(message)

    scope = {"type": "http", "method": "POST", "path": "/v1/rewrite", "raw_path": b"/v1/rewrite", "query_string": b"",
             "headers": [(b"host", b"localhost"), (b"content-type", b"application/json")]}  # fmt: skip
    # In a thread of its own: a browser of other tests may keep an event loop in this one.
    with ThreadPoolExecutor(1) as thread:
        thread.submit(lambda: asyncio.run(asyncio.wait_for(app(scope, receive, send), 20))).result()
    assert sent[0]["status"] == 400
    assert b"slow_body" in sent[1]["body"]


def test_too_many_texts(start, request_body):
    client = start(texts=10)
    assert client.post("/v1/rewrite", json=request_body(texts=["w1"] * 10)).status_code == 200
    assert client.post("/v1/rewrite", json=request_body(texts=["w1"] * 11)).status_code == 413
    assert client.post("/v1/rewrite", json=request_body(texts=["w1"] * 5, draws=3)).status_code == 413


def test_metrics_count_routes_not_paths(client, request_body):
    client.post("/v1/rewrite", json=request_body())
    client.get("/v1/jobs/secretword")
    client.get("/secretword")
    text = client.get("/metrics").text
    assert 'tacit_requests_total{route="/v1/rewrite",status="200"} 1.0' in text
    assert 'tacit_requests_total{route="/v1/jobs/{id}",status="404"} 1.0' in text
    assert 'route="unknown route",status="404"' in text
    assert 'tacit_released_units_total{mechanism="santext"} 3.0' in text
    assert "tacit_batch_texts_count 1.0" in text
    assert 'tacit_jobs{state="done"} 0.0' in text
    assert "secretword" not in text


@pytest.mark.parametrize("run", ["x+", "ab1.", "a@-", "don", "n't'", "http://_", "1,", "a.b@"])
def test_a_text_without_spaces_cannot_hold_up_the_service(run):
    """Tokens are found in linear time: eight times the text takes about eight times as long, never sixty-four."""
    from tacit.text.tokens import split

    def seconds(length):
        started = time.process_time()
        split(run * (length // len(run)))
        return time.process_time() - started

    short, long = min(seconds(20_000) for _ in range(3)), min(seconds(160_000) for _ in range(3))
    assert long < 24 * short + 0.05


def test_questions_that_wait_for_the_one_thread_are_bounded(start, vectors, monkeypatch):
    from tacit.serve import answers, app, catalog

    monkeypatch.setattr(app, "MOST_ASIDE", 1)
    entered, go = threading.Event(), threading.Event()

    def slow(pool, request_body):
        entered.set()
        assert go.wait(20)
        return answers.Curve(points=[], how="slowly", blind=None, guessed_how=None)

    monkeypatch.setattr(catalog, "curve", slow)
    client = start()
    body = {"mechanism": "santext", "epsilons": [1.0]}
    with ThreadPoolExecutor(1) as other:
        first = other.submit(lambda: client.post("/v1/curve", json=body))
        assert entered.wait(20)
        refused = client.post("/v1/curve", json=body)
        assert (refused.status_code, refused.json()["error"]["code"]) == (503, "busy")
        assert refused.headers["retry-after"] == "5"
        go.set()
        assert first.result().status_code == 200
    assert client.post("/v1/curve", json=body).status_code == 200


def test_head_answers_like_get_without_the_body(client, job_form):
    job = client.post("/v1/jobs", **job_form(columns=["text"])).json()
    finished(client, job["id"])
    for path in ("/", "/healthz", "/v1/mechanisms", "/openapi.json", "/v1/ledger", "/metrics", "/assets/main.js",
                 *(f"/v1/jobs/{job['id']}{rest}" for rest in
                   ("", "/result", "/result?spreadsheet=true", "/events", "/card.html"))):  # fmt: skip
        head, get = client.head(path), client.get(path)
        assert (head.status_code, head.content) == (200, b""), path
        assert head.headers["content-type"] == get.headers["content-type"]
    assert client.head("/v1/jobs/unknown").status_code == 404
    assert client.head("/v1/rewrite").status_code == 405


@pytest.mark.parametrize("name", ["nothing", "x" * 100])
def test_what_is_not_there_is_said_in_whole_sentences(client, request_body, name):
    quoted = name if len(name) < 40 else "x" * 40 + "…"
    message = client.post("/v1/rewrite", json=request_body(mechanism=name)).json()["error"]["message"]
    assert message.startswith(f"there is no mechanism '{quoted}'. The mechanisms are: ")
    message = client.post("/v1/rewrite", json=request_body(options={name: 1})).json()["error"]["message"]
    assert f"has no option '{quoted}'. Its options are: " in message
