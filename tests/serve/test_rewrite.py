"""`POST /v1/rewrite`: what comes back, what it promises, and what is refused."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from tacit.catalog import build
from tacit.text.tokens import split


def test_a_text_comes_back_with_the_guarantee_of_the_mechanism(client, request_body, vectors):
    answer = client.post("/v1/rewrite", json=request_body(text="w1 w2 strange w3")).json()
    assert answer["mechanism"] == "santext"
    assert answer["units"] == [4]
    (text,) = answer["draws"][0]["texts"]
    assert len(split(text)) == 4
    assert set(split(text)) <= {f"w{i}" for i in range(40)}
    promised = build("santext", {"epsilon": 2.0, "vectors": vectors}).guarantee(secure=True)
    assert answer["guarantee"]["guarantee"] == json.loads(json.dumps(promised.to_dict()))
    whole = promised.for_document(4).over_diameter()
    assert answer["document_guarantee"]["guarantee"]["epsilon"] == pytest.approx(whole.epsilon)
    assert answer["document_note"] is None
    assert answer["plain"] == answer["document_guarantee"]["sentence"]


def test_several_texts_keep_their_order_and_their_lengths(client, request_body):
    texts = [" ".join(["w1"] * length) for length in (3, 1, 0, 7)]
    answer = client.post("/v1/rewrite", json=request_body(texts=texts)).json()
    assert answer["units"] == [3, 1, 0, 7]
    assert [len(split(text)) for text in answer["draws"][0]["texts"]] == [3, 1, 0, 7]


@pytest.mark.parametrize("texts", [[""], ["", "w1"], ["w1 w2", "w3"], ["w1", "w1"]])
def test_what_an_answer_says_it_cost_is_what_the_ledger_charges(client, request_body, texts):
    before = client.get("/v1/ledger").json()["key"]["spent"]["epsilon"]
    spent = client.post("/v1/rewrite", json=request_body(texts=texts, draws=2)).json()["spent"]
    after = client.get("/v1/ledger").json()["key"]["spent"]["epsilon"]
    assert spent["epsilon"] == pytest.approx(after - before)


def test_draws_add_up(client, request_body):
    answer = client.post("/v1/rewrite", json=request_body()).json()
    three = client.post("/v1/rewrite", json=request_body(draws=3)).json()
    assert len(three["draws"]) == 3
    assert three["guarantee"]["guarantee"]["epsilon"] == pytest.approx(3 * answer["guarantee"]["guarantee"]["epsilon"])
    assert three["spent"]["epsilon"] == pytest.approx(3 * answer["spent"]["epsilon"])
    whole, thrice = (a["document_guarantee"]["guarantee"]["epsilon"] for a in (answer, three))
    assert thrice == pytest.approx(3 * whole)


def test_pieces_pair_each_token_with_what_it_became(client, request_body):
    answer = client.post("/v1/rewrite", json=request_body(text="W1, w2", tokens=True)).json()
    (pieces,) = answer["draws"][0]["pieces"]
    assert [old for old, _ in pieces] == ["w1", ",", "w2"]
    assert split(answer["draws"][0]["texts"][0]) == [new for _, new in pieces]
    plain = client.post("/v1/rewrite", json=request_body(text="W1, w2")).json()
    assert plain["draws"][0]["pieces"] is None
    assert plain["guarantee"] == answer["guarantee"]  # how tokens are joined is no part of the promise


def test_dropped_punctuation_is_in_no_pair(client, request_body, vectors):
    options = {"vectors": vectors, "punctuation": "drop"}
    answer = client.post("/v1/rewrite", json=request_body(text="w1 , w2 !", tokens=True, options=options)).json()
    assert [old for old, _ in answer["draws"][0]["pieces"][0]] == ["w1", "w2"]
    assert answer["units"] == [2]


def test_a_stream_gives_the_texts_in_order_and_the_guarantee_last(client, request_body):
    texts = [f"w{i} " * (i + 1) for i in range(5)] * 200
    answer = client.post("/v1/rewrite", json=request_body(texts=texts, stream=True, draws=2))
    assert answer.headers["content-type"].startswith("application/x-ndjson")
    *parts, last = [json.loads(line) for line in answer.text.splitlines()]
    assert all(len(part["texts"]) == 1 for part in parts), "groups would show the lengths of the originals"
    released = {0: [], 1: []}
    for part in parts:
        assert part["first"] == len(released[part["draw"]])
        released[part["draw"]] += part["texts"]
    for draw in released.values():
        assert [len(split(text)) for text in draw] == [len(split(text)) for text in texts]
    assert last["guarantee"]["guarantee"]["epsilon"] == pytest.approx(4.0)
    assert last["units"] == [i % 5 + 1 for i in range(1000)]


def test_concurrent_requests_get_their_own_texts(client, request_body):
    """With so large an epsilon every word stays as it is, so each caller must see exactly his own text."""
    texts = [" ".join(f"w{(i + k) % 40}" for k in range(i % 7 + 1)) for i in range(60)]
    with ThreadPoolExecutor(12) as threads:
        answers = threads.map(
            lambda text: client.post("/v1/rewrite", json=request_body(text=text, epsilon=1e4)).json(), texts
        )
    assert [answer["draws"][0]["texts"][0] for answer in answers] == texts


def test_repeated_requests_draw_anew(client, request_body):
    """All 40 tokens alike twice in a row would happen by chance with probability far below 1e-9."""
    body = request_body(text=" ".join(["w1"] * 40), epsilon=0.1)
    first, second = (client.post("/v1/rewrite", json=body).json()["draws"] for _ in range(2))
    assert first != second


def test_no_plain_guarantee_is_said_not_hidden(request_body, vectors, tmp_path, start):
    words = tmp_path / "sensitive.txt"
    words.write_text("w1\nw2\nw3\n")
    service = start(tmp_path / "other", allowed=(("vectors", vectors), ("sensitive_list", str(words))))
    options = {"vectors": vectors, "sensitive_list": str(words), "sensitive_share": 0.0}
    answer = service.post("/v1/rewrite", json=request_body(mechanism="santext+", options=options)).json()
    assert answer["document_guarantee"] is None
    assert "unprotected output" in answer["document_note"]
    assert answer["spent"]["epsilon"] is None


def test_what_is_missing_on_the_server_is_not_the_fault_of_the_client(start, request_body, tmp_path):
    nowhere = str(tmp_path / "nowhere.txt")
    client = start(allowed=(("vectors", nowhere),))
    answer = client.post("/v1/rewrite", json=request_body(options={"vectors": nowhere}))
    assert answer.status_code == 503
    assert answer.json()["error"]["code"] == "not_available"
    listed = {entry["name"]: entry for entry in client.get("/v1/mechanisms").json()["mechanisms"]}
    assert not listed["santext"]["available"]


BAD = [
    ({"mechanism": "santex"}, 404, "unknown_mechanism", "did you mean 'santext'"),
    ({"epsilon": -1.0}, 422, "bad_parameter", "positive"),
    ({"epsilon": 0}, 422, "bad_parameter", "greater than 0"),
    ({"epsilon": 1e308}, 422, "bad_parameter", "protects nothing"),
    ({"epsilon": "2"}, 422, "bad_parameter", "epsilon"),
    ({"epsilon": None}, 422, "bad_parameter", "epsilon"),
    ({"epsilon": 10**400}, 422, "bad_parameter", "epsilon"),
    ({"text": 3}, 422, "bad_parameter", "text"),
    ({"texts": []}, 422, "bad_parameter", "empty"),
    ({"texts": ["a"], "text": "b"}, 422, "bad_parameter", "either"),
    ({"text": "\ud800"}, 422, "bad_parameter", "Unicode"),
    ({"draws": 11}, 422, "bad_parameter", "draws"),
    ({"draws": True}, 422, "bad_parameter", "draws"),
    ({"surprise": 1}, 422, "bad_parameter", "not known"),
    ({"options": {"nothing": 1}}, 422, "bad_parameter", "no option"),
    ({"options": {"seed": 1}}, 422, "bad_parameter", "secure noise"),
    ({"options": {"epsilon": 1}}, 422, "bad_parameter", "beside the options"),
    ({"options": {"limit": "many"}}, 422, "bad_parameter", "whole number"),
    ({"options": {"limit": True}}, 422, "bad_parameter", "whole number"),
    ({"options": {"vectors": "/etc/passwd"}}, 422, "bad_parameter", "operator"),
    ({"options": {"vectors": ["a"]}}, 422, "bad_parameter", "options"),
    ({"options": {"unknown": "guess"}}, 422, "bad_parameter", "one of"),
    ({"mechanism": "santext+", "options": {"detector": "spacy:/tmp/evil"}}, 422, "bad_parameter", "operator"),
    ({"mechanism": "santext+", "options": {"sensitive_list": "/etc/passwd"}}, 422, "bad_parameter", "operator"),
    ({"mechanism": "paraphrase", "options": {"model": "someone/model"}}, 422, "bad_parameter", "operator"),
]


@pytest.mark.parametrize(("changes", "status", "code", "words"), BAD)
def test_what_cannot_be_done_is_said_in_one_sentence(client, request_body, changes, status, code, words):
    body = json.dumps(request_body(**changes))
    answer = client.post("/v1/rewrite", content=body, headers={"content-type": "application/json"})
    assert answer.status_code == status
    error = answer.json()["error"]
    assert error["code"] == code
    assert words in error["message"]


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e400"])
def test_numbers_that_json_should_not_hold(client, request_body, number):
    body = json.dumps(request_body()).replace('"epsilon": 2.0', f'"epsilon": {number}')
    answer = client.post("/v1/rewrite", content=body, headers={"content-type": "application/json"})
    assert answer.status_code == 422
    assert "epsilon" in answer.json()["error"]["message"]


@pytest.mark.parametrize(
    ("content", "kind", "status", "code"),
    [
        (b"{", "application/json", 400, "bad_json"),
        (b"[1]", "application/json", 400, "bad_json"),
        (b"[" * 100_000, "application/json", 400, "bad_json"),
        (b'{"text": ' + b"9" * 5000 + b"}", "application/json", 400, "bad_json"),
        (b'{"text": "\xff\xfe"}', "application/json", 400, "bad_encoding"),
        (b"{}", "text/plain", 415, "wrong_content_type"),
        (b"", "", 415, "wrong_content_type"),
        (b"", "application/json", 400, "bad_json"),
    ],
)
def test_bodies_that_are_not_what_they_should_be(client, content, kind, status, code):
    answer = client.post("/v1/rewrite", content=content, headers={"content-type": kind})
    assert answer.status_code == status
    assert answer.json()["error"]["code"] == code
