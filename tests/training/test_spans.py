"""Span corruption: pairs that put a text together again, each a function of its own record."""

from __future__ import annotations

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.training.spans import span_pair, span_pairs

MARK = re.compile(r"<extra_id_(\d+)>")


def restored(pair: dict[str, str]) -> list[str]:
    """The words of the text that a pair was made from."""
    _, *spans = MARK.split(pair["target"])
    missing = {spans[place]: spans[place + 1].split() for place in range(0, len(spans), 2)}
    words: list[str] = []
    for word in pair["source"].split():
        mark = MARK.fullmatch(word)
        words += [word] if mark is None else missing[mark[1]]
    return words


@given(st.lists(st.sampled_from(["a", "bb", "ccc", "d"]), max_size=120))
@settings(max_examples=150, deadline=None)
def test_source_and_target_hold_every_word_once(words: list[str]) -> None:
    pair = span_pair(" ".join(words))
    assert restored(pair) == words
    marks = MARK.findall(pair["source"])
    assert marks == [str(number) for number in range(len(marks))]
    assert MARK.findall(pair["target"]) == [*marks, str(len(marks))]
    if len(words) > 1:
        assert any(MARK.fullmatch(word) is None for word in pair["source"].split()), "something is left to read"
        assert 1 <= len(words) - sum(MARK.fullmatch(word) is None for word in pair["source"].split()) <= len(words)


def test_a_pair_depends_on_its_own_record_alone() -> None:
    texts = ["one two three four five six seven", "the cat sat on the mat and slept all day long", ""]
    assert span_pairs(texts) == [span_pair(text) for text in texts]
    assert span_pairs(texts[::-1]) == span_pairs(texts)[::-1]


def test_about_the_planned_share_is_left_out_in_spans() -> None:
    text = " ".join(f"w{number}" for number in range(400))
    source = span_pair(text)["source"].split()
    marks = sum(MARK.fullmatch(word) is not None for word in source)
    assert 400 - (len(source) - marks) == 60
    assert marks == 20
