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


class CountedLookups(dict):
    """A vocabulary that counts how many characters it was asked about."""

    characters = 0

    def __contains__(self, part: object) -> bool:
        self.characters += len(str(part))
        return super().__contains__(part)


@pytest.mark.parametrize("token", ["x" * 200_000, "9" * 200_000, "x-" * 100_000, "x'" * 100_000])
@pytest.mark.parametrize("allowed", [None, np.array([0, 2, 5])])
def test_b3_a_huge_token_is_looked_up_in_time_that_grows_with_its_length(token, allowed):
    """The old rule asked about every beginning and every end: 4e10 characters for this token."""
    lexicon = Lexicon(WORDS, unknown_ids=allowed)
    lexicon._allowed = CountedLookups(lexicon._allowed)
    lexicon.id(token)
    assert 0 < lexicon._allowed.characters < 10 * len(token)
    assert token not in lexicon._resolved, "what is remembered stays small"


@given(st.text(alphabet="the1987bornwll-.", min_size=1, max_size=14))
def test_b3_the_shorter_search_finds_what_the_longer_one_found(token):
    lexicon = Lexicon(WORDS)
    expected = next(
        (
            WORDS.index(part)
            for length in range(len(token) - 1, (2 if token[:1].isdigit() else 4) - 1, -1)
            for part in (token[:length], token[-length:])
            if part in WORDS
        ),
        None,
    )
    if token not in WORDS and expected is not None:
        assert lexicon.id(token) == expected


def test_b3_a_word_of_a_megabyte_is_rewritten():
    """20 minutes with the old rule."""
    import tacit
    from tests.conftest import small_table

    release = tacit.SanText(epsilon=1, vectors=small_table()).rewrite("z" * 1_000_000)
    assert release.units == [1]
