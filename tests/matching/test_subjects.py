"""Rows after the name of their label: which rows, how they begin, and that the sentences drawn stay the same."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tacit.matching.corpus import matched_corpus
from tacit.matching.features import default_map
from tacit.matching.labels import ListedLabels
from tacit.matching.pool import SentencePool, load_pool
from tacit.matching.sketch import build_sketch
from tacit.matching.subjects import with_subjects, without_subjects
from tacit.matching.sums import rows_in_memory
from tacit.noise.source import public_generator

LABELS = ["card_arrival", "PlayMusic", "3"]


@given(st.lists(st.tuples(st.text(max_size=20), st.sampled_from(LABELS), st.integers(1, 3)), max_size=30))
def test_only_single_sentences_of_labels_that_say_something_are_changed(rows):
    texts, labels, sentences = ([row[column] for row in rows] for column in range(3))
    made = with_subjects(texts, labels, sentences, 1.0, public_generator(0))
    names = {"card_arrival": "card arrival: ", "PlayMusic": "play music: ", "3": ""}
    assert made == [(names[label] if count == 1 else "") + text for text, label, count in rows]
    assert with_subjects(texts, labels, sentences, 0.0, public_generator(0)) == texts


def test_the_share_of_rows_is_the_one_that_was_asked_for():
    """A binomial number of 10,000 rows; 5 deviations are left once in two million times."""
    made = with_subjects(["x"] * 10_000, ["PlayMusic"] * 10_000, [1] * 10_000, 0.1, public_generator(4))
    assert abs(sum(text != "x" for text in made) - 1_000) < 5 * (10_000 * 0.1 * 0.9) ** 0.5


def test_a_subject_is_taken_off_again_and_nothing_else():
    texts = ["card arrival: Where is it?", "Note: Where is it?", "card arrival"]
    assert without_subjects(texts, LABELS) == ["Where is it?", "Note: Where is it?", "card arrival"]


def corpus_of(labels, share):
    general = load_pool("general")
    places = np.arange(0, len(general), 60)
    pool = SentencePool(
        "part", [general.sentences[place] for place in places], general.sources, general.source_ids[places],
        [general.credits[place] for place in places], "part",
    )  # fmt: skip
    rows = rows_in_memory(["Will it rain tomorrow?", "The bank closed."] * 200, list(labels) * 200)
    sketch = build_sketch(rows, ListedLabels(tuple(labels)), default_map(), epsilon=2.0, delta=1e-6, seed=5).sketch
    return matched_corpus(sketch, [pool], rows=200, seed=3, subject_lines=share)


def test_the_sentences_are_those_of_a_corpus_without_subjects_and_the_card_says_it():
    plain, half = corpus_of(["weather", "bankMoney"], 0.0), corpus_of(["weather", "bankMoney"], 0.5)
    assert half.sentences == plain.sentences
    assert half.labels == plain.labels
    begins = [text.startswith(("weather: ", "bank money: ")) for text in half.texts]
    assert 60 < sum(begins) < 140
    assert without_subjects(half.texts, half.labels) == list(plain.texts)
    named = "rows after the name of their label"
    assert named in half.guarantee.parameters
    assert named not in plain.guarantee.parameters


def test_numbers_as_labels_change_nothing():
    plain, half = corpus_of(["0", "1"], 0.0), corpus_of(["0", "1"], 0.5)
    assert (half.texts, half.guarantee) == (plain.texts, plain.guarantee)
