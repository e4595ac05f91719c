from __future__ import annotations

import sys
import types

import pytest

from tacit.errors import BadInputError, BadParameterError, MissingExtraError
from tacit.text.sensitive import detector, listed_words, pattern_detector, rarest_words

WORDS = ["the", ".", "'s", "and", "hepatitis", "gonzalez", "house", "1987", "n't", "xylophone"]


def test_the_rarest_words_by_public_frequency():
    pytest.importorskip("wordfreq", reason="public word frequencies need the 'default' extra")
    sensitive = rarest_words(WORDS, 0.4)
    assert sensitive.sum() == 4
    assert [w for w, s in zip(WORDS, sensitive, strict=True) if s] == ["hepatitis", "gonzalez", "1987", "xylophone"]
    assert rarest_words(WORDS, 1.0).all()


@pytest.mark.parametrize("share", [0, -1, 1.1, float("nan")])
def test_shares_outside_zero_and_one(share):
    with pytest.raises(BadParameterError, match="share"):
        rarest_words(WORDS, share)


def test_a_list_of_words(tmp_path):
    path = tmp_path / "words.txt"
    path.write_text("Gonzalez\nthe house\n\n")
    assert listed_words(WORDS, path).nonzero()[0].tolist() == [0, 5, 6]
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(BadInputError, match="not UTF-8"):
        listed_words(WORDS, path)
    path.write_text("\n")
    with pytest.raises(BadInputError, match="empty"):
        listed_words(WORDS, path)
    with pytest.raises(BadInputError, match="cannot read"):
        listed_words(WORDS, tmp_path / "absent")


def test_patterns_mark_numbers_addresses_and_names_after_titles():
    (flags,) = pattern_detector(["Dr. Who paid 40 to a@b.co at https://x.y today"])
    assert flags == [True, True, False, False, True, False, True, False, True, False]
    (titled,) = pattern_detector(["mr smith left"])
    assert titled == [True, True, False]


def test_a_spacy_pipeline_marks_its_entities(monkeypatch):
    """The real library is optional; a stand-in with its interface shows that entities are found again as tokens."""

    class Pipeline:
        def pipe(self, texts):
            for text in texts:
                names = [types.SimpleNamespace(text=name) for name in ("New York", "Ann") if name in text]
                yield types.SimpleNamespace(ents=names)

    monkeypatch.setitem(sys.modules, "spacy", types.SimpleNamespace(load=lambda name: Pipeline()))
    detect = detector("spacy:toy")
    assert detect(["Ann left New York for York", "none"]) == [[True, False, True, True, False, False], [False]]


def test_detectors_by_name(monkeypatch):
    assert detector("none") is None
    assert detector("patterns") is pattern_detector
    with pytest.raises(BadParameterError, match="choose none, patterns"):
        detector("magic")
    monkeypatch.setitem(sys.modules, "spacy", None)
    with pytest.raises(MissingExtraError, match="pip install"):
        detector("spacy")
