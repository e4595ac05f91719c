from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.errors import BadParameterError
from tacit.text.lexicon import Lexicon

WORDS = ["the", "hospital", "born", "water", "19", "198", "well", ".", "tail"]


def test_known_words_and_the_spelling_rule():
    lexicon = Lexicon(WORDS)
    expected = {
        "hospital": "hospital",
        "hospitals": "hospital",  # begins with it
        "underwater": "water",  # ends with it
        "newborn": "born",
        "1987": "198",  # numbers: two digits are enough
        "ill-born": "born",
        "cocktail": "tail",
    }
    for token, word in expected.items():
        assert WORDS[lexicon.id(token)] == word


def test_short_coincidences_do_not_count():
    """'them' begins with 'the', but three letters say nothing: the hash decides."""
    spelled, hashed = Lexicon(WORDS), Lexicon(WORDS, rule="hash")
    assert spelled.id("them") == hashed.id("them")


@given(st.text(min_size=1, max_size=30))
def test_every_string_has_a_place_and_always_the_same_one(token):
    for rule in ("spelling", "hash"):
        first, second = Lexicon(WORDS, rule=rule).id(token), Lexicon(WORDS, rule=rule).id(token)
        assert first == second
        assert 0 <= first < len(WORDS)


@given(st.text(min_size=1, max_size=30))
def test_unknown_strings_can_be_confined_to_some_words(token):
    allowed = np.array([1, 3, 8])
    lexicon = Lexicon(WORDS, unknown_ids=allowed)
    if token not in lexicon:
        assert lexicon.id(token) in allowed


def test_the_hash_rule_spreads():
    """10,000 made-up strings over 9 words: each gets between 8 % and 14 % (a chance of about 1e-20 to fail)."""
    lexicon = Lexicon(WORDS, rule="hash")
    counts = np.bincount(lexicon.ids([f"q{i}z" for i in range(10_000)]), minlength=9)
    assert counts.min() > 800
    assert counts.max() < 1400


def test_bad_rules():
    with pytest.raises(BadParameterError, match="spelling, hash"):
        Lexicon(WORDS, rule="keep")
    with pytest.raises(BadParameterError, match="no word is left"):
        Lexicon(WORDS, unknown_ids=np.array([], dtype=np.int64))
