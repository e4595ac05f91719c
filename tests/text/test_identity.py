"""Two texts with the same tokens are one document."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.text.identity import document_identity, name_identity, user_name
from tacit.text.tokens import join, normalize, split

SPACES = st.text(" \t\n\r\x0b\x0c\x1c\x1d\x1e\x1f\x85\u00a0\u2003\u2028\u3000\u200b\u00ad", max_size=3)


@given(st.text(max_size=40), st.sampled_from(["natural", "spaces"]))
def test_a13_the_identity_is_a_function_of_the_tokens(text, style):
    tokens = split(text)
    assert document_identity(text) == document_identity("".join(tokens))
    assert document_identity(text) == document_identity(join(tokens, style))
    assert document_identity(text) == document_identity(normalize(text))


@given(st.lists(st.tuples(st.text(max_size=4), SPACES), max_size=8), SPACES)
def test_a13_white_space_makes_no_second_document(pieces, end):
    plain = "".join(text for text, _ in pieces)
    assert document_identity("".join(text + spaces for text, spaces in pieces) + end) == document_identity(plain)


@pytest.mark.parametrize(
    "other",
    [
        "THE CAFÉ «HOME» — it’s open…",
        unicodedata.normalize("NFD", "The café “home” — it's open..."),
        unicodedata.normalize("NFKD", "The café “home” — it's open..."),
        'The cafe "home" -- it\'s open...',
        "\x07The\x00 café\u200d \ufeff“home” —\u2060 it's open...\ufffd",
        "\uff34\uff28\uff25 café “home” — it's open...",
    ],
)
def test_a13_what_no_mechanism_reads_makes_no_second_document(other):
    assert document_identity(other) == document_identity("The café “home” — it's open...")


def test_a13_other_words_are_other_documents():
    texts = ["a text", "a text.", "a tex", "texta", "a text 1", "ein Text", "一つ", "二つ", ""]
    assert len({document_identity(text) for text in texts}) == len(texts)


def test_names_are_kept_but_for_white_space_and_composition():
    assert name_identity(" José\n") == name_identity("Jose\u0301") == "José"
    assert name_identity("aB") != name_identity("ab")


@given(st.text(max_size=12), SPACES, SPACES)
def test_spellings_of_a_name_that_look_alike_are_one_user(name, before, after):
    for other in (before + name + after, unicodedata.normalize("NFD", name), name.replace(" ", "\u00a0 ")):
        assert user_name(other) == user_name(name)
    assert user_name(user_name(name)) == user_name(name)


@pytest.mark.parametrize(
    "other",
    ["ann@example.org", "ANN@EXAMPLE.ORG", "Ann@example.org\x00", "Ann\ufe0f@example.org", "Ann\u3164@example.org",
     "\uff21nn@example.org", "A\u034fnn@example.org"],
)  # fmt: skip
def test_capitals_unseen_characters_and_wide_letters_make_no_second_user(other):
    assert user_name(other) == user_name("Ann@example.org")


def test_a_person_called_nan_is_somebody():
    assert user_name("nan") == user_name(" nan\u200b") == ""
    assert user_name("Nan") == user_name("NAN") == user_name(user_name("Nan")) != ""
