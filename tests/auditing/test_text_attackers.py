"""Authorship and attributes: both ends on real authors, adaptive against static, folds, and bad labels.

Seeds are fixed. The blind end uses the interval of the report itself at 95 % for two attackers together: a false alarm
for one seed in twenty, and this seed is fixed.
"""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("sklearn")

from tacit.auditing.text import attacker
from tacit.auditing.text.attacker import NearestMean, folds_of, identify, macro_f1, ranks_of
from tacit.auditing.text.attributes import infer_attribute
from tacit.auditing.text.attributes import section as attribute_section
from tacit.auditing.text.authorship import authorship, section
from tacit.auditing.text.pairs import TextPairs
from tacit.errors import BadInputError
from tacit.noise.source import public_generator
from tacit.report import Light
from tests.documents.test_codebook import WordEncoder


@pytest.fixture(scope="module")
def news(data_folder: Path) -> tuple[list[str], list[str]]:
    """Beginnings of 30 articles of each of 8 authors."""
    with gzip.open(data_folder / "reuters-c50" / "train.tsv.gz", "rt", encoding="utf-8") as lines:
        rows = [line.rstrip("\n").split("\t") for line in lines][1:]
    names = sorted({row[0] for row in rows})[:8]
    chosen = [row for name in names for row in [r for r in rows if r[0] == name][:30]]
    return [row[1][:400] for row in chosen], [row[0] for row in chosen]


def random_words(texts: list[str], seed: int = 0) -> list[str]:
    """As many words as before, drawn at random: what a mechanism gives as epsilon goes to 0."""
    generator = public_generator(seed)
    return [" ".join(f"x{i}" for i in generator.integers(0, 500, size=40)) for _ in texts]


def test_without_privacy_all_attackers_are_the_non_private_one(news):
    texts, authors = news
    successes = authorship(TextPairs(texts, texts), authors)
    for name in ("static", "adaptive"):
        assert successes.top1[name].rate == successes.top1[name].ceiling > 0.6
        assert successes.top5[name].rate == successes.top5[name].ceiling >= successes.top1[name].rate
        assert successes.macro_f1[name] == successes.macro_f1["non-private"] > 0.6
    shown = section(successes, TextPairs(texts, texts))
    assert [f.light for f in shown.findings] == [Light.RED, Light.RED]
    assert shown.tables[1].private


def test_random_words_leave_the_floor(news):
    texts, authors = news
    successes = authorship(TextPairs(texts, random_words(texts)), authors)
    assert successes.majority == successes.random == pytest.approx(1 / 8)
    for name in ("static", "adaptive"):
        assert successes.top1[name].low <= 1 / 8 <= successes.top1[name].high
        assert successes.top1[name].light is not Light.RED
    assert successes.top5["static"].floor == pytest.approx(5 / 8)


def test_only_the_adaptive_attacker_reads_a_cipher(news):
    """Each letter replaced by another one: no privacy at all, and the static attacker does not notice."""
    texts, authors = news
    letters = "abcdefghijklmnopqrstuvwxyz"
    cipher = str.maketrans(letters, "".join(public_generator(1).permutation(list(letters))))
    secret = [text.lower().translate(cipher) for text in texts]
    successes = authorship(TextPairs([text.lower() for text in texts], secret), authors)
    assert successes.top1["adaptive"].share > 0.9
    assert successes.top1["static"].share < 0.5


def test_attributes_keep_authors_on_one_side():
    """Every author repeats a word of their own, and the attribute belongs to the author only: nothing to learn."""
    generator = public_generator(3)
    authors = [f"a{i}" for i in range(30) for _ in range(6)]
    value = dict(zip([f"a{i}" for i in range(30)], generator.permutation(["x", "y"] * 15), strict=True))
    values = [str(value[author]) for author in authors]
    texts = [f"{author} {author} {generator.integers(100)} said so" for author in authors]
    alone = infer_attribute(TextPairs(texts, texts), "kind", values)
    assert alone.top1["static"].ceiling > 0.95
    apart = infer_attribute(TextPairs(texts, texts), "kind", values, authors=authors)
    assert apart.top1["static"].ceiling < 0.75
    assert "no author is on both sides" in attribute_section(apart, "kind", TextPairs(texts, texts), grouped=True).text


def test_folds_are_stratified_and_groups_stay_together():
    y = np.repeat([0, 1, 2], [30, 9, 3])
    folds = folds_of(y, None, 0)
    for label in range(3):
        assert np.ptp(np.bincount(folds[y == label], minlength=3)) <= 1
    groups = [f"g{i // 2}" for i in range(42)]
    folds = folds_of(np.zeros(42, dtype=np.int64), groups, 0)
    assert all(folds[i] == folds[i + 1] for i in range(0, 42, 2))


def test_many_classes_use_class_means(monkeypatch: pytest.MonkeyPatch):
    authors = [f"a{i}" for i in range(12) for _ in range(4)]
    texts = [f"word{author} other{author}" for author in authors]
    monkeypatch.setattr(attacker, "MOST_CLASSES", 5)
    assert isinstance(attacker._model(12), NearestMean)
    assert identify(texts, texts, authors).top1["adaptive"].rate == 1.0


def test_sentence_vectors_instead_of_words():
    authors = ["a", "b"] * 20
    texts = [f"the {'cat sat on a mat' if author == 'a' else 'stock fell by ten points'}" for author in authors]
    successes = identify(texts, texts, authors, encoder=WordEncoder())
    assert successes.top1["adaptive"].rate == successes.top1["static"].ceiling == 1.0


def test_texts_without_words():
    with pytest.raises(BadInputError, match="no words"):
        identify(["a b"] * 6, [""] * 6, ["x", "y"] * 3)


def test_numbers_by_hand():
    y = np.array([0, 0, 1, 1])
    assert macro_f1(y, np.array([0, 0, 0, 1]), 2) == pytest.approx((0.8 + 2 / 3) / 2)
    assert macro_f1(y, np.zeros(4, dtype=np.int64), 2) == pytest.approx(1 / 3)
    scores = np.array([[3.0, 1.0], [1.0, 1.0]], dtype=np.float32)
    assert ranks_of(scores, np.array([0, 0])).tolist() == [0, 1]  # a tie counts against the attacker


def test_bad_labels():
    pairs = TextPairs(["a b", "c d", "e f"], ["a b", "c d", "e f"])
    with pytest.raises(BadInputError, match="one value only"):
        authorship(pairs, ["x", "x", "x"])
    with pytest.raises(BadInputError, match="author of row 2 has one text only"):
        authorship(pairs, ["x", "y", "x"])
    with pytest.raises(BadInputError, match="row 3 has one text only"):
        infer_attribute(pairs.take([0, 0, 0, 1, 1, 1, 2]), "age", ["x"] * 3 + ["y"] * 3 + ["z"])
    six = pairs.take([0, 1, 2, 0, 1, 2])
    with pytest.raises(BadInputError, match="fewer than 3 authors"):
        infer_attribute(six, "age", ["x", "x", "x", "y", "y", "y"], authors=["1", "2", "3", "4", "4", "4"])
