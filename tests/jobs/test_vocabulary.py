"""A private vocabulary from Python: texts in memory, a public list in memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from tacit.card import Card
from tacit.errors import BadInputError, BadParameterError
from tacit.guarantee import Unit
from tacit.jobs.vocabulary import VocabularyConfig, build

ROWS = [{"text": "the good film" if i % 2 else "the bad film", "user": f"u{i // 3}"} for i in range(300)]


def test_rows_in_memory_become_words_with_a_card(tmp_path: Path) -> None:
    made = build(ROWS, epsilon=20, output=tmp_path / "words", kind="words", user_column="user", most_words=6)
    assert set(made.histogram.words) == {"the", "good", "bad", "film"}
    assert made.card.guarantee.unit is Unit.USER
    assert made.tokenizer is None
    card = Card.from_json((made.folder / "vocabulary-card.json").read_text())
    assert card.made_by == made.card.made_by
    assert (card.made_by["job"], card.made_by["most_words"]) == ("vocabulary", 6)
    with pytest.raises(BadInputError) as refused:
        build(ROWS, epsilon=20, output=tmp_path / "words")
    assert refused.value.code == "folder-exists"


def test_a_list_of_words_must_be_declared_public(tmp_path: Path) -> None:
    with pytest.raises(BadParameterError) as refused:
        VocabularyConfig(data=ROWS, epsilon=1, output=tmp_path / "w", public_words=["good"])
    assert refused.value.code == "word-list-not-public"
    listed = {"public_words": ["good", "never"], "public": "two words", "kind": "words", "noise": "laplace"}
    made = build(ROWS, epsilon=20, output=tmp_path / "w", **listed)
    assert set(made.histogram.words) == {"good", "never"}
    assert made.guarantee.delta == 0.0
