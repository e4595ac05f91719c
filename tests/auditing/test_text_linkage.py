"""Linkage: ranks against a direct count, ties, blocks, and both ends."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tacit.auditing.text import linkage
from tacit.auditing.text.linkage import by_length, by_vectors, by_words, link, ranks, section
from tacit.auditing.text.pairs import TextPairs
from tacit.errors import BadInputError
from tacit.noise.source import public_generator
from tests.documents.test_codebook import WordEncoder, sentences


def unit(rows: int, seed: int) -> np.ndarray:
    drawn = public_generator(seed).standard_normal((rows, 8)).astype(np.float32)
    return drawn / np.linalg.norm(drawn, axis=1, keepdims=True)


def test_blocks_give_what_the_square_gives(monkeypatch: pytest.MonkeyPatch):
    originals, released = unit(101, 0), unit(101, 1)
    released[:40] = originals[:40]
    square = released @ originals.T
    own = np.diag(square)
    monkeypatch.setattr(linkage, "BLOCK_CELLS", 7 * 101)
    ranking = by_vectors(originals, released)
    np.testing.assert_array_equal(ranking.better, (square > own[:, None] + 1e-6).sum(axis=1))
    assert ranking.top(1)[:40].mean() == 1.0
    np.testing.assert_allclose(ranking.reciprocal(), 1.0 / (ranking.better + 1))


def test_equal_originals_share_the_credit():
    ranking = ranks(4, lambda rows: np.zeros((4, 4), dtype=np.float32)[rows])
    np.testing.assert_array_equal(ranking.top(1), 0.25)
    np.testing.assert_array_equal(ranking.top(10), 1.0)
    np.testing.assert_allclose(ranking.reciprocal(), (1 + 1 / 2 + 1 / 3 + 1 / 4) / 4)
    same = TextPairs(["one two", "one two", "three four"], ["one two", "one two", "three four"])
    words = {each.attacker: each for each in link(same)}["words"]
    assert words.top1.rate == pytest.approx(2 / 3)
    assert words.top1.ceiling == pytest.approx(2 / 3)


def test_both_ends():
    originals = list(dict.fromkeys(sentences()))
    results = {each.attacker.split()[0]: each for each in link(TextPairs(originals, originals), encoder=WordEncoder())}
    assert results["words"].top1.rate == results["words"].top1.ceiling == 1.0
    assert results["vectors"].top1.rate > 0.9
    assert results["words"].reciprocal == 1.0
    # A release that belongs to other originals: chance, within five standard errors (false alarm below 1e-6).
    n = len(originals)
    shuffled = [originals[i] for i in public_generator(7).permutation(n)]
    lost = {each.attacker: each for each in link(TextPairs(originals, shuffled))}["words"]
    assert abs(lost.top1.rate - 1 / n) < 5 * math.sqrt(1 / n / n) + 1 / n
    assert abs(lost.reciprocal - lost.reciprocal_by_chance) < 5 * 0.2 / math.sqrt(n)


def test_the_number_of_tokens_alone_links_texts_of_unequal_length():
    originals = [" ".join(["word"] * (i + 1)) for i in range(30)]
    released = [" ".join(["thing"] * (i + 1)) for i in range(30)]
    assert by_length(originals, released).top(1).mean() == 1.0
    assert by_words(originals, released).top(1).mean() == pytest.approx(1 / 30)
    links = link(TextPairs(originals, released))
    shown = section(links, TextPairs(originals, released))
    assert "length" in shown.findings[0].sentence
    assert shown.tables[-1].private


def test_bad_input():
    with pytest.raises(BadInputError, match="one row only"):
        link(TextPairs(["a"], ["b"]))
    with pytest.raises(BadInputError, match="no words"):
        link(TextPairs(["", ""], ["a", "b"]))
