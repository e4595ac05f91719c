"""Common words as features: bounded, and a function of one text alone."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.matching.blocks import CommonWordsBlock
from tacit.matching.common_words import known_common_words, occurrences
from tacit.matching.features import default_map
from tacit.matching.whole_numbers import GRID, bound_of

WORDS = known_common_words().words
texts = st.lists(
    st.one_of(st.text(max_size=60), st.lists(st.sampled_from(WORDS), max_size=30).map(" ".join)), max_size=6
)


@settings(max_examples=60)
@given(texts, st.floats(0.01, 1.0))
def test_no_text_is_longer_than_its_weight(batch, weight):
    steps = CommonWordsBlock.of(weight).steps(batch).astype(np.int64)
    assert ((steps * steps).sum(axis=1) <= bound_of(weight) ** 2).all()


@settings(max_examples=40)
@given(texts)
def test_a_row_does_not_depend_on_the_rows_beside_it(batch):
    block = CommonWordsBlock.of(0.5)
    together = block.steps(batch)
    for place, text in enumerate(batch):
        assert (together[place] == block.steps([text])[0]).all()


def test_a_text_without_common_words_adds_nothing():
    assert not CommonWordsBlock.of(0.5).steps(["", "xylophone zeppelin", "12345"]).any()


def test_the_words_of_a_text_count_once_and_share_its_length():
    marks = occurrences(["Who is who, and WHO is not?"], WORDS)[0]
    present = {WORDS[place] for place in np.flatnonzero(marks)}
    assert present == {"who", "is", "and", "not", "?"}
    assert np.allclose(marks[marks > 0], 1 / np.sqrt(5))


def test_the_form_of_a_question_is_in_the_usual_map():
    """The encoder adds up words, and these two questions share all the rare ones."""
    usual = default_map()
    place = next(columns for block, columns in usual.places() if isinstance(block, CommonWordsBlock))
    who, how = usual.features(["Who built the tower of Babel?", "How was the tower of Babel built?"]).dense_values()
    alike = who[place] @ how[place] / np.linalg.norm(who[place]) / np.linalg.norm(how[place])
    assert alike < 0.7


@settings(max_examples=40)
@given(texts)
def test_a_row_of_the_usual_map_with_its_count_is_no_longer_than_one(batch):
    usual = default_map()
    lengths = usual.features(batch, alone=True).squared_lengths()
    assert (lengths + usual.count_steps**2 <= GRID**2).all()
