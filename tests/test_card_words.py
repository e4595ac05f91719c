"""The lines of a card are for a reader who wrote no code."""

from __future__ import annotations

import re
from dataclasses import fields, replace
from typing import Any

import pytest

from tacit.card import Card, ReleaseFacts
from tacit.card_words import BY_NAME, BY_VALUE, UNITS, domain_text, notion_text, setting_line
from tacit.catalog import build, mechanism_classes, mechanism_names
from tacit.guarantee import Notion, Unit
from tests.conftest import small_table
from tests.test_guarantee import approximate, metric, optimized, pure

NEVER_SHOWN = {"epsilon", "seed", "batch_size", "limit", "sensitive_share", "sensitive_list", "detector"}
FEW = ({}, {"punctuation": "keep"}, {"punctuation": "drop", "unknown": "hash", "joining": "spaces"})
MORE: dict[str, list[dict[str, Any]]] = {
    "laplace": [{"bounding": "unit"}, {"bounding": "clip", "calibrated": False}, {"approximate": False}],
    "santext+": [{"detector": "patterns"}, {"p": 0.5}],
    "two-budgets": [{"common_epsilon": 3.0}],
    "truncated-gumbel": [{"mode": "published"}],
}
JARGON = re.compile(r"joining|natural|indistinguishable|\bnotion\b|protected outputs|\([0-9a-f]{12}\)|True|False")


def described(name: str) -> bool:
    shown = name.replace("_", " ")
    return shown in BY_NAME or any(known == shown for known, _ in BY_VALUE)


@pytest.mark.parametrize("mechanism", mechanism_classes(), ids=lambda result: result.name)
def test_c8_every_setting_of_every_mechanism_has_words(mechanism: Any):
    names = {item.name for item in fields(mechanism)} - NEVER_SHOWN - {"codebook", "encoder", "chat", "prompt", "stop",
                                                                     "delta", "temperature"}  # fmt: skip
    assert [name for name in sorted(names) if not described(name)] == []


@pytest.mark.parametrize("name", mechanism_names("word"))
def test_c8_no_card_of_a_word_mechanism_has_jargon(name: str):
    mode = {"mode": "real-part"} if name == "truncated-gumbel" else {}
    for options in (*FEW, *MORE.get(name, [])):
        given = {"epsilon": 1.0, "vectors": small_table(), **mode, **options}
        if options.get("mode") == "published":
            given["epsilon"] = 1e4
        text = Card(build(name, given).guarantee()).to_text()
        assert JARGON.search(text) is None, JARGON.search(text)
        assert "one word, number or punctuation mark (a token)" in text


def test_c8_what_was_not_understood_is_plain():
    assert setting_line("joining", "natural") == (
        "spaces in the output", "as in ordinary writing; those of the original are not kept",
    )  # fmt: skip
    assert domain_text("27,000 sensitive words (de2360ee303c)") == (
        "27,000 sensitive words, fingerprint de2360ee303c (releases add up only if theirs is the same)"
    )
    assert domain_text("redaction by patterns") == "redaction by patterns"


def test_c8_a_setting_that_nobody_described_is_shown_as_it_is():
    assert setting_line("some_new_option", 12_000) == ("some new option", "12,000")
    assert setting_line("noise scale", 60.73141530663677) == ("scale of the noise", "60.7314")
    both = pure().then(replace(pure(), parameters={"steps": 3}))
    assert "steps of training: 3" in Card(both).to_text()


@pytest.mark.parametrize("guarantee", [pure(), approximate(), metric(), optimized()])
def test_c8_all_forms_of_a_card_have_the_same_lines(guarantee: Any):
    card = Card(guarantee)
    for label, value in card.to_dict()["in_words"]:
        assert label in card.to_text()
        assert value in card.to_text()
        assert label in card.to_markdown()
        assert label in card.to_html()


def test_c8_delta_is_said_once():
    card = Card(replace(approximate(), parameters={"delta": approximate().delta}))
    assert [label for label, _ in card.content().rows].count("delta") == 1


def test_c8_what_was_released_is_counted_in_words_or_texts():
    facts = ReleaseFacts(rows=3, documents=3, units=60, longest_document=30, longest_row=30)
    assert ("words released", "60 (longest text 30)") in Card(pure(), facts).content().release
    record = replace(pure(), unit=Unit.RECORD)
    assert ("words released", "60 (longest text 30)") in Card(record, facts).content().release
    whole = replace(pure(), unit=Unit.DOCUMENT)
    texts = Card(whole, replace(facts, units=3, longest_document=1)).content().release
    assert [label for label, _ in texts if "released" in label] == []


@pytest.mark.parametrize(
    ("unit", "name"),
    [(Unit.TOKEN, "words"), (Unit.DOCUMENT, "documents"), (Unit.USER, "users"), (Unit.RECORD, "records")],
)
def test_c8_a_metric_promise_speaks_of_its_own_unit(unit: Unit, name: str):
    assert f"the closer two {name} are" in notion_text(Notion.METRIC, unit)


def test_c8_every_unit_is_explained():
    assert set(UNITS) == set(Unit)
