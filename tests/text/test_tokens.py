from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.text.tokens import chunks, is_punctuation, join, normalize, split

TRICKY = [
    "do", "n't", "'s", "can", "u.s.", "3", "3.5", ".", ",", "(", ")", "...", "x-ray", "a@b.co", "http://x.y", "$", "it",
    "'", "n", "-", "--", "'ll", "10:30", "_", "o'clock", "#", "%",
]  # fmt: skip


@settings(max_examples=1500)
@given(
    st.one_of(
        st.text(max_size=30),
        st.text(alphabet="ab n't'.,:-_3 s@!(\"$x\n", max_size=25),
        st.lists(st.sampled_from(TRICKY), max_size=10).map(" ".join),
        st.lists(st.sampled_from(TRICKY), max_size=10).map("".join),
    )
)
def test_splitting_loses_nothing_and_joining_is_its_inverse(text):
    tokens = split(text)
    assert "".join(tokens) == "".join(normalize(text).split())
    assert [token for chunk in chunks(text) for token in split(chunk)] == tokens
    assert split(join(tokens)) == tokens
    assert split(join(tokens, "spaces")) == tokens


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("It's good.", ["it", "'s", "good", "."]),
        ("don't", ["do", "n't"]),
        ("n't", ["n't"]),
        ("it 's a charming journey .", ["it", "'s", "a", "charming", "journey", "."]),
        ("$5,000.50", ["$", "5,000.50"]),
        ("well-known o'clock", ["well-known", "o'clock"]),
        ("U.S. troops", ["u.s.", "troops"]),
        ("wait...what--no", ["wait", "...", "what", "--", "no"]),
        ("mail john.doe+x@ex-ample.co.uk!", ["mail", "john.doe+x@ex-ample.co.uk", "!"]),
        ("see https://a.b/c?d=1.", ["see", "https://a.b/c?d=1", "."]),
        ("“Quoted” — text…", ['"', "quoted", '"', "--", "text", "..."]),
        ("covid19 3d 2021-03-04", ["covid19", "3d", "2021-03-04"]),
        ("naïve Σίσυφος 北京", ["naïve", "σίσυφος", "北京"]),
        ("snake_case", ["snake", "_", "case"]),
        ("", []),
        (" \t\n ", []),
    ],
)
def test_known_splits(text, tokens):
    assert split(text) == tokens


def test_natural_joining_reads_well():
    assert join(split("It's a well-made film, isn't it?")) == "it's a well-made film, isn't it?"
    assert join(["it", "'s", "fine", "."], "spaces") == "it 's fine ."


def test_punctuation():
    assert [is_punctuation(t) for t in (".", "--", "'s", "3", "a", "☂")] == [True, True, False, False, False, True]


@settings(max_examples=200)
@given(st.text(alphabet="ab.+-_3", min_size=50, max_size=90), st.sampled_from(["@b.co", "@x", "@", ""]))
def test_a_mail_address_of_any_length_is_split_by_the_same_rules(name, rest):
    tokens = split(name + rest)
    assert "".join(tokens) == normalize(name + rest)
    assert split(join(tokens)) == tokens


def test_a_long_run_without_a_mail_address_costs_no_more_than_its_length():
    """Each place of the run tries at most 64 characters of a mail address: 60,000 of them would take minutes else."""
    text = "a." * 30_000
    assert "".join(split(text)) == text
