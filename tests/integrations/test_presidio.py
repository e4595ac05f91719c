"""The operator `tacit_dp` inside the real AnonymizerEngine."""

from __future__ import annotations

import gzip
import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from tacit.errors import BadParameterError, NoGuaranteeError
from tacit.guarantee import Adjacency, Notion
from tacit.text.tokens import split

pytest.importorskip(
    "presidio_anonymizer", reason="presidio-anonymizer is not installed: pip install 'tacit-dp[presidio]'"
)

from presidio_anonymizer import AnonymizerEngine
from presidio_anonymizer.entities import OperatorConfig, RecognizerResult

from tacit.integrations import loading
from tacit.integrations.presidio import TacitDP, operator_card, operator_guarantee, operator_mechanism

TEXT = "Please call Maria Gonzalez in Leeds today."
SPANS = [("PERSON", 12, 26), ("LOCATION", 30, 35)]


def anonymize(text, spans, parameters):
    engine = AnonymizerEngine()
    engine.add_anonymizer(TacitDP)
    recognized = [RecognizerResult(kind, start, end, 0.9) for kind, start, end in spans]
    return engine.anonymize(text, recognized, {"DEFAULT": OperatorConfig("tacit_dp", parameters)})


@pytest.fixture
def small(vectors):
    return {"mechanism": "santext", "epsilon": 1.0, "options": {"vectors": vectors}}


def test_only_the_spans_change(small):
    anonymized = anonymize(TEXT, SPANS, small)
    spans = sorted(anonymized.items, key=lambda item: item.start)
    assert anonymized.text == f"Please call {spans[0].text} in {spans[1].text} today."
    words = [word for item in spans for word in split(item.text)]
    assert len(words) == 3
    assert set(words) <= set(operator_mechanism(small).vocabulary)


@given(st.lists(st.tuples(st.sampled_from(["w1", "w7", "new", "Ünder", "3.5"]), st.booleans()), min_size=1, max_size=8))
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_is_marked_the_rest_comes_back(small, words):
    text, spans = "", []
    for number, (word, marked) in enumerate(words):
        if marked:
            spans.append((f"KIND{number}", len(text), len(text) + len(word)))
        text += f"{word}, "
    anonymized = anonymize(text, spans, small)
    places = [(item.start, item.end) for item in anonymized.items]
    assert outside(anonymized.text, places) == outside(text, [span[1:] for span in spans])
    assert {anonymized.text[start:end] for start, end in places} <= set(operator_mechanism(small).vocabulary)


def test_draws_follow_the_law_of_the_mechanism(small):
    """chi-square over 4,000 spans with noise of the operating system; false-alarm rate 1e-9."""
    mechanism = operator_mechanism(small)
    operator, counts = TacitDP(), dict.fromkeys(mechanism.vocabulary, 0)
    for _ in range(4_000):
        counts[operator.operate("w3", small)] += 1
    law = mechanism.distribution("w3")
    rare = law * 4_000 < 5
    seen = [counts[word] for word, few in zip(mechanism.vocabulary, rare, strict=True) if not few]
    expected = list(4_000 * law[~rare])
    if rare.any():
        seen.append(4_000 - sum(seen))
        expected.append(4_000 * law[rare].sum())
    assert chisquare(seen, expected, sum_check=False).pvalue > 1e-9


def test_the_mechanism_is_loaded_once(vectors, monkeypatch):
    built = []
    real = loading.build
    monkeypatch.setattr(loading, "build", lambda name, options: built.append(name) or real(name, options))
    settings = {"mechanism": "santext", "epsilon": 1.25, "options": {"vectors": vectors}}
    for _ in range(3):
        anonymize(TEXT, SPANS, settings)
    assert built == ["santext"]


def test_the_guarantee_is_about_words_inside_spans_only(small):
    promised = operator_guarantee(small)
    assert promised.notion is Notion.METRIC
    assert promised.adjacency is Adjacency.SAME_SPANS
    assert any("outside the detected spans" in item for item in promised.not_covered)
    assert any("reads the private text" in item for item in promised.not_covered)
    with pytest.raises(NoGuaranteeError):
        promised.for_document(5)
    sentence = operator_card(small).to_dict()["sentence"]
    assert "inside the detected spans only" in sentence
    assert "not protected at all" in sentence


def test_the_card_of_a_result_adds_up_its_words(small):
    recognized = [RecognizerResult(kind, start, end, 0.9) for kind, start, end in SPANS]
    card = operator_card(small, TEXT, recognized)
    of_word = operator_guarantee(small)
    totals = {total["what"]: total["exponent"] for total in card.to_dict()["totals"]}
    assert totals["all 3 words inside spans here, largest distances"] == pytest.approx(3 * of_word.exponent())
    assert not any("text of" in what or "longest row" in what for what in totals)
    nothing = operator_card(small, TEXT, []).to_dict()["totals"]
    assert all(total["what"].startswith("one word") for total in nothing)


def test_a_test_seed_voids_the_guarantee(vectors):
    seeded = {"mechanism": "santext", "epsilon": 1.0, "options": {"vectors": vectors, "seed": 7}}
    assert not operator_guarantee(seeded).is_private


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({}, "Give an epsilon"),
        ({"epsilon": float("nan")}, "not a number"),
        ({"epsilon": 1e308}, "protects nothing"),
        ({"epsilon": -1}, "must be positive"),
        ({"epsilon": 2, "p": 0.3}, "no parameter 'p'"),
        ({"epsilon": 2, "options": {"epsilon": 3}}, "give epsilon once"),
        ({"epsilon": 2, "mechanism": "santxt"}, "did you mean 'santext'"),
        ({"epsilon": 2, "options": {"vectors": object()}}, "numbers, texts or lists"),
    ],
)
def test_bad_settings_are_one_sentence(settings, said):
    with pytest.raises(BadParameterError, match=said):
        anonymize(TEXT, SPANS, settings)


def test_mechanisms_without_a_proof_inside_spans_are_refused(vectors):
    with pytest.raises(BadParameterError, match="nothing is proven"):
        anonymize(TEXT, SPANS, {"mechanism": "custext", "epsilon": 1, "options": {"vectors": vectors}})
    with pytest.raises(BadParameterError, match="word by word"):
        TacitDP().validate({"mechanism": "codebook", "epsilon": 1})


def test_real_spans(data_folder, default_table):
    """Fifty texts of presidio-research: what is outside the spans comes back letter by letter."""
    settings = {"mechanism": "santext+", "epsilon": 2.0}
    with gzip.open(data_folder / "presidio-synth-pii" / "data.jsonl.gz", "rt", encoding="utf-8") as file:
        rows = [json.loads(next(file)) for _ in range(50)]
    for row in rows:
        spans = [(span["type"], span["start"], span["end"]) for span in row["spans"]]
        anonymized = anonymize(row["text"], spans, settings)
        assert outside(anonymized.text, [(i.start, i.end) for i in anonymized.items]) == outside(
            row["text"], merged(row["text"], spans)
        )


def outside(text, places):
    parts, position = [], 0
    for start, end in sorted(places):
        parts.append(text[position:start])
        position = end
    return [*parts, text[position:]]


def merged(text, spans):
    """Neighboring spans of one kind with white space between them are one, as the engine has it."""
    places = []
    for kind, start, end in sorted(spans, key=lambda span: span[1:]):
        if places and places[-1][0] == kind and not text[places[-1][2] : start].strip(" "):
            places[-1][2] = end
        else:
            places.append([kind, start, end])
    return [(start, end) for _, start, end in places]
