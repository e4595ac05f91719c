"""Bodies: what is wrong is found at its first place, beside the event loop, and never quoted."""

from __future__ import annotations

import json
import threading
import tracemalloc

import pytest

from tacit.serve import messages, reading, texts
from tacit.serve.errors import ServiceError
from tacit.serve.messages import AuditRequest, CurveRequest, JobSettings, RewriteRequest, parse_message
from tacit.serve.reading import READ_AT_ONCE, read_object

JSON = {"content-type": "application/json"}
KNOWN = ("text", "texts", "options", "epsilon")


def padded(body: str) -> bytes:
    """The same JSON, too long to be read at once."""
    return (body + " " * READ_AT_ONCE).encode()


@pytest.mark.parametrize(
    "value", ["0,", "[],", "{},", '{"a":0},', "null,", "true,", "1.5,", '"secretmarker",'], ids=repr
)
def test_b4_a_bomb_of_wrong_values_ends_at_the_first(client, value, monkeypatch):
    """9.8 MB of zeros took 46 seconds and 4.4 GB: an error was made of each."""
    errors = []
    original = messages.complaint
    monkeypatch.setattr(
        messages, "complaint", lambda error, kind: errors.append(error.error_count()) or original(error, kind)
    )
    many = 9_800_000 // len(value)
    body = f'{{"mechanism": "santext", "epsilon": 2.0, "texts": [{value * many}0]}}'.encode()
    answer = client.post("/v1/rewrite", content=body, headers=JSON)
    assert answer.status_code in (413, 422)
    assert len(answer.content) < 500
    assert "secretmarker" not in answer.text
    assert errors in ([], [1])


def test_b4_reading_a_bomb_takes_little_memory():
    body = ('{"texts": [' + "[]," * 1_500_000 + "0]}").encode()
    tracemalloc.start()
    try:
        with pytest.raises(ServiceError):
            parse_message(body, RewriteRequest)
        assert tracemalloc.get_traced_memory()[1] < 3 * len(body)
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("length", [100, READ_AT_ONCE + 1])
@pytest.mark.parametrize(
    ("path", "field", "kind"),
    [
        ("/v1/rewrite", "texts", RewriteRequest),
        ("/v1/curve", "epsilons", CurveRequest),
        ("/v1/audit/exact", "words", AuditRequest),
        ("/v1/calibrate", "options", None),
    ],
)
def test_b4_every_route_counts_before_it_checks(client, path, field, kind, length):
    values = {str(number): [number] for number in range(2_000)} if kind is None else [[]] * 20_000
    body = json.dumps({"mechanism": "santext", field: values}).encode() + b" " * length
    answer = client.post(path, content=body, headers=JSON)
    assert answer.status_code in (413, 422)
    assert field in answer.json()["error"]["message"] or "larger" in answer.json()["error"]["message"]


def test_b4_unknown_fields_are_refused_at_the_first(client):
    body = json.dumps({f"secretmarker{number}": 0 for number in range(400_000)}).encode()
    answer = client.post("/v1/rewrite", content=body, headers=JSON)
    assert answer.status_code == 422
    assert "not known" in answer.json()["error"]["message"]
    assert "secretmarker" not in answer.text


def test_b4_settings_of_a_job_are_read_the_same_way(client, job_form):
    form = job_form(columns=[0] * 90_000)
    answer = client.post("/v1/jobs", **form)
    assert answer.status_code in (413, 422)
    with pytest.raises(ServiceError):
        parse_message(json.dumps({"columns": [0] * 90}).encode(), JobSettings)


def test_b4_large_bodies_are_read_beside_the_event_loop(client, request_body, monkeypatch):
    places = []
    original = texts.parse_message

    def watched(*given):
        places.append(threading.current_thread().name)
        return original(*given)

    monkeypatch.setattr(texts, "parse_message", watched)
    assert client.post("/v1/rewrite", json=request_body()).status_code == 200
    assert client.post("/v1/rewrite", json=request_body(texts=["w1 w2 " * 2_000] * 10)).status_code == 200
    assert places[0] != places[1]
    assert places[1].startswith("asyncio")


def test_b4_texts_are_bounded_one_by_one_and_with_their_draws(start, request_body):
    client = start(text_characters=100, body_bytes=2_000)
    assert client.post("/v1/rewrite", json=request_body(text="w" * 100)).status_code == 200
    assert client.post("/v1/rewrite", json=request_body(text="w" * 101)).status_code == 413
    assert client.post("/v1/rewrite", json=request_body(texts=["w" * 100] * 3, draws=7)).status_code == 413


@pytest.mark.parametrize(
    "body",
    [
        '{"text": "a\\u00e9\\"]}", "options": {"a": 1, "b": null, "c": true, "d": -1.5e3, "e": "}"}}',
        ' {"texts" : [ "a" , "b\\n" ] , "epsilon" : NaN } ',
        "{}",
        '{"texts": [], "options": {}}',
        '{"text": "a", "text": "b"}',
        '{"text": "\\ud800"}',
        '{"epsilon": 12345678901234567890}',
    ],
)
def test_b4_large_bodies_mean_the_same_as_small_ones(body):
    small, large = read_object(body.encode(), KNOWN), read_object(padded(body), KNOWN)
    assert repr(small) == repr(large)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ('{"text": "a"', 400), ('{"text" "a"}', 400), ('{"text": }', 400), ('{"text": "a",}', 400), ("[1]", 400),
        ('"x"', 400), ('{"text": "a"} x', 400), ('{text: "a"}', 400), ('{"texts": ["a" "b"]}', 400), ("", 400),
        ('{"texts": ["a",]}', 400), ('{"epsilon": ' + "9" * 5_000 + "}", 400), ('{"text": "\x01"}', 400),
        ('{"other": 1}', 422), ('{"texts": [' + "0," * 1_001 + "0]}", 413), ('{"text": tru}', 400),
        ('{"options": {"a": 1, "b"}}', 400), ("[" * 100_000, 400),
    ],
)  # fmt: skip
def test_b4_large_bodies_are_refused_as_small_ones(body, status):
    for data in (body.encode(), padded(body)):
        with pytest.raises(ServiceError) as caught:
            read_object(data, KNOWN)
        assert caught.value.status == status


def test_b4_nested_values_are_refused_in_large_bodies():
    for value in ('[["a"]]', '{"a": {}}', '{"a": []}', '["a", {}]'):
        with pytest.raises(ServiceError) as caught:
            read_object(padded(f'{{"options": {value}}}'), KNOWN)
        assert caught.value.status == 422
    assert reading.MOST_VALUES >= 200  # words of an audit
