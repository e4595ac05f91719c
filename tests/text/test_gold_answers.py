"""The answers that a cell holds."""

from __future__ import annotations

import json

import pytest

from tacit.text.files import read_columns
from tacit.text.gold_answers import GoldAnswer, gold_answers


@pytest.mark.parametrize(
    ("cell", "answers"),
    [
        ("Normandy", [GoldAnswer("Normandy")]),
        ("", []),
        ("[]", []),
        ('["France", "in France"]', [GoldAnswer("France"), GoldAnswer("in France")]),
        ('[{"text": "France", "start": 159}]', [GoldAnswer("France", 159)]),
        ('[{"text": "France", "answer_start": 159}, {"text": "", "answer_start": 0}]', [GoldAnswer("France", 159)]),
        ('{"text": ["a", "b"], "answer_start": [3, 4]}', [GoldAnswer("a", 3), GoldAnswer("b", 4)]),
        ('{"text": [], "answer_start": []}', []),
        # Texts that only look like lists.
        ("[12]", [GoldAnswer("[12]")]),
        ("[sic]", [GoldAnswer("[sic]")]),
        ('{"text": "a"}', [GoldAnswer('{"text": "a"}')]),
        ('{"text": ["a"], "page": [1]}', [GoldAnswer('{"text": ["a"], "page": [1]}')]),
    ],
)
def test_one_answer_several_or_none(cell, answers):
    assert gold_answers(cell) == answers


def test_an_answer_is_looked_for_where_its_start_says():
    context = "a film, and a film"
    assert GoldAnswer("film", 14).place_in(context) == 14
    assert GoldAnswer("film", 13).place_in(context) == 2, "a wrong start is no start"
    assert GoldAnswer("film", -4).place_in(context) == 2
    assert GoldAnswer("play", 2).place_in(context) == -1


def test_answers_come_out_of_files_as_they_stand_there(tmp_path):
    """Lists of parts with names are read as JSON; lists of words are words."""
    answers = [{"text": "Caf\u00e9 de l'Univers", "start": 3}]
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps({"answers": answers, "tokens": ["a", "b"], "one": {"text": ["x"]}}) + "\n")
    columns = read_columns(path, ["answers", "tokens", "one"])
    assert gold_answers(columns["answers"][0]) == [GoldAnswer("Caf\u00e9 de l'Univers", 3)]
    assert columns["tokens"] == ["a b"]
    assert gold_answers(columns["one"][0]) == [GoldAnswer("x")]
