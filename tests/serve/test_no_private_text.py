"""No private text in logs, errors, traces or metrics: marker words go through every route, whatever becomes of them,
and then everything the service wrote or answered beside the released texts is searched."""

from __future__ import annotations

import logging
import re

from tacit.serve.keys import Keys
from tacit.words.base import WordMechanism
from tests.serve.process import Process
from tests.serve.waiting import finished

MARKER = "xylophone"
"""Not in the vocabulary, so no mechanism can release it."""


def everything(client, request_body, job_form, headers):
    """Requests that hold the marker: fine ones, and broken in every way that a route knows."""
    text = f"{MARKER} said w1, {MARKER}2"
    json_type = {**headers, "content-type": "application/json"}
    answers = [
        client.post("/v1/rewrite", json=body, headers=headers)
        for body in (
            request_body(text=text),
            request_body(texts=[text, text], draws=2),
            request_body(text=text, stream=True),
            request_body(text=text, dataset="d", user="u"),
            request_body(text=text, epsilon=-1.0),
            request_body(text=text, mechanism="none"),
            request_body(text=text, options={"vectors": "nowhere"}),
            request_body(text=text, draws=99),
            request_body(text=[text]),
            request_body(texts=[text, 3]),
            request_body(texts=[text] * 100),
            {**request_body(text=text), text: text},
        )
    ]
    answers += [
        client.post("/v1/rewrite", content=data, headers={**json_type, **more})
        for data, more in (
            (f'{{"text": "{text}"'.encode(), {}),
            (f'{{"text": "{text}\xff"}}'.encode("latin-1"), {}),
            (text.encode(), {"content-type": "text/plain"}),
            (f'{{"text": "{text * 3000}"}}'.encode(), {}),
        )
    ]
    answers += [
        client.get(f"/v1/{MARKER}?q={MARKER}", headers=headers),
        client.get(f"/v1/jobs/{MARKER}", headers=headers),
        client.get(f"/v1/reports/{MARKER}", headers=headers),
        client.get(f"/assets/{MARKER}"),
        client.get("/v1/mechanisms", headers={"authorization": f"Bearer {MARKER}"}),
        client.post("/v1/calibrate", json={"mechanism": "santext", "text": text}, headers=headers),
        client.post("/v1/curve", json={"mechanism": "santext", "epsilons": [text]}, headers=headers),
        client.post("/v1/jobs", content=text.encode(), headers={**headers, "content-type": "multipart/form-data"}),
    ]
    files = [
        (f"text\n{text}\n", {}),
        (f"{text}\nmore {text}\n", {"columns": ["text"]}),
        (f"text,x\n{text},y,{text}\n", {"columns": ["text"]}),
        (f'text\n"{text}\n', {}),
        (f"{text},{text}\n1,2\n", {}),
    ]
    for content, changes in files:
        sent = client.post("/v1/jobs", headers=headers, **job_form(content=content.encode(), **changes))
        answers.append(sent)
        if sent.status_code == 202:
            id = sent.json()["id"]
            finished(client, id, headers=headers)
            answers += [client.get(f"/v1/jobs/{id}{rest}", headers=headers)
                        for rest in ("", "/events", "/result", "/card.json", "/card.md", "/card.html")]  # fmt: skip
    answers += [client.get(path, headers=headers) for path in ("/v1/jobs", "/v1/ledger", "/metrics", "/openapi.json")]
    return answers


def found_in(answers):
    return [answer.text for answer in answers if MARKER in answer.text or MARKER in str(answer.headers)]


def test_a_real_process_writes_and_answers_nothing_private(tmp_path, request_body, job_form, vectors):
    state = tmp_path / "state"
    secret = Keys(state).add("team", 10_000)
    service = Process(state, "--allow", f"vectors={vectors}", "--texts", "50", "--body-mb", "0.05")
    try:
        answers = everything(service.client, request_body, job_form, {"authorization": f"Bearer {secret}"})
        statuses = {answer.status_code for answer in answers}
        assert {200, 202, 400, 401, 404, 409, 413, 415, 422} <= statuses
        assert 500 not in statuses
    finally:
        service.stop()
    log = service.log.read_text()
    assert found_in(answers) == []
    assert MARKER not in log
    assert secret not in log
    assert re.search(r"POST /v1/rewrite 200 [\d.]+ ms", log)
    assert "Traceback" not in log
    kept = [path for path in state.rglob("*") if path.is_file() and MARKER.encode() in path.read_bytes()]
    assert kept == []  # uploads are gone, the ledger holds keyed hashes


def test_a_mechanism_that_quotes_the_text_in_its_error(start, request_body, job_form, monkeypatch, caplog, capfd):
    def quoting(self, texts, source):
        raise ValueError(f"cannot digest {texts!r}")

    monkeypatch.setattr(WordMechanism, "rewrite_texts", quoting)
    caplog.set_level(logging.DEBUG)
    client = start()
    answers = everything(client, request_body, job_form, {})
    failed = client.post("/v1/rewrite", json=request_body(text=MARKER))
    assert failed.status_code == 500
    assert "ValueError in test_no_private_text.py" in failed.json()["error"]["message"]
    written = capfd.readouterr()
    ours = "\n".join(record.getMessage() for record in caplog.records if record.name.startswith("tacit"))
    assert found_in(answers) == []
    assert MARKER not in written.out + written.err + ours
    assert all(record.exc_info is None for record in caplog.records if record.name.startswith("tacit"))


def test_the_search_finds_what_it_looks_for(client, request_body):
    """The mechanism name is the client's word and is quoted back, so a marker there must be noticed."""
    assert found_in([client.post("/v1/rewrite", json=request_body(mechanism=MARKER))])
