"""JSON that is written once, and the route that sends it."""

from __future__ import annotations

import json

import pytest

from tacit.serve.written import WrittenFields


@pytest.mark.parametrize("first", [{"a": 1}, {"a": {"b": []}}, {"a": "} , {"}, {"a": "ä\u2028"}])
@pytest.mark.parametrize("last", [{"z": None}, {"z": "{", "y": [1.5, {"x": "\u00e9"}]}])
def test_joined_pieces_are_one_object(first: dict, last: dict) -> None:
    joined = WrittenFields(last).after(first)
    assert json.loads(joined) == {**first, **last}
    assert joined == json.dumps({**first, **last}, ensure_ascii=False, separators=(",", ":")).encode()


def test_the_framework_answers_as_the_gate_does(start, request_body):
    """The gate calls the endpoint of the route itself, to save the framework's time; without it, the route answers."""
    client = start()
    body = request_body(text="w1 w2", epsilon=1e4)
    direct = client.post("/v1/rewrite", json=body)
    client.app.gate._direct = {}
    routed = client.post("/v1/rewrite", json=body)
    assert routed.status_code == direct.status_code == 200
    assert routed.json() == direct.json()
    refused = client.post("/v1/rewrite", json=request_body(mechanism="santex"))
    assert (refused.status_code, refused.json()["error"]["code"]) == (404, "unknown_mechanism")
