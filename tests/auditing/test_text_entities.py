"""Entity survival: what patterns find, what counts as surviving, chance by direct count, both ends on real spans."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from tacit.auditing.text.entities import Entity, from_patterns, from_spans, section, survival
from tacit.auditing.text.pairs import TextPairs
from tacit.catalog import build
from tacit.report import Light


def test_patterns():
    text = "Yesterday Dr. Jane Smith met old Peter Hansen in Paris, see www.a.org/x1 or mail j.s@b.com before 10:30."
    entities = {(entity.kind, entity.text) for entity in from_patterns([text])}
    assert entities == {
        ("mail address", "j.s@b.com"),
        ("web address", "www.a.org/x1"),
        ("name after a title", "Jane Smith"),
        ("number", "10:30"),
        ("capitalized words", "Peter Hansen"),
        ("capitalized words", "Paris"),
    }
    assert from_patterns(["nothing here", ""]) == []


def test_whole_and_part_and_chance():
    pairs = TextPairs(
        ["Jane Smith said", "by Jane Smith", "c", "no Jane Smith"],
        ["said jane smith , ok", "smith jane", "jane smith and jane smith", "nobody"],
    )
    whole, turned, other = (Entity(row, "person", "Jane Smith", ("jane", "smith")) for row in (0, 1, 3))
    people = survival(pairs, [whole, turned, other], source="test").by_kind["person"]
    assert people.whole.rate == pytest.approx(1 / 3)
    assert people.whole.ceiling == 1.0
    # In other rows: 1 of 3 for the first, 2 of 3 for the second and the third.
    assert people.whole.floor == pytest.approx((1 / 3 + 2 / 3 + 2 / 3) / 3)
    assert people.part.rate == pytest.approx(2 / 3)


def test_types_and_private_table():
    pairs = TextPairs(["Ann in Rome", "Bob in Bonn"], ["ann was there", "someone"])
    survived = survival(
        pairs, from_spans([[("PERSON", "Ann"), ("CITY", "Rome")], [("PERSON", "Bob"), ("X", "!!")]]), source="s"
    )
    assert survived.entities == 3  # a span without a word in it is none
    assert set(survived.by_kind) == {"all types", "PERSON", "CITY"}
    assert survived.by_kind["PERSON"].whole.rate == 0.5
    assert survived.by_kind["CITY"].whole.rate == 0.0
    assert survived.worst == [(1, "PERSON", "Ann", "ann was there")]
    assert [table.private for table in section([survived]).tables] == [False, True]


def test_both_ends_on_known_spans(data_folder: Path, default_table):
    with gzip.open(data_folder / "presidio-synth-pii" / "data.jsonl.gz", "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for _, line in zip(range(400), lines, strict=False)]
    originals = [row["text"] for row in rows]
    entities = from_spans([[(span["type"], span["value"]) for span in row["spans"]] for row in rows])
    assert len(entities) > 300
    same = survival(TextPairs(originals, originals), entities, source="known spans").by_kind["all types"].whole
    assert same.rate == same.ceiling > 0.99
    assert same.light is Light.RED
    noise = build("random", {"vectors": default_table.head(2_000), "seed": 4}).rewrite(originals).texts
    lost = survival(TextPairs(originals, noise), entities, source="known spans").by_kind["all types"].whole
    assert lost.low <= lost.floor + 0.005
    assert lost.light is Light.GREEN
