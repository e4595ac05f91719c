"""Learners of a plain installation, and the scores of a synthetic corpus beside the originals."""

from __future__ import annotations

import numpy as np
import pytest

from tacit.errors import BadInputError
from tacit.evaluation.corpus import Labeled, corpus_scores, rows_by_name
from tacit.evaluation.corpus.learning import learner_of
from tacit.evaluation.learners.plain import LetterLearner, WordLearner, logistic_regression

TOPICS = {
    "weather": ("rain", "snow", "storm", "sunny", "cloud", "wind", "cold", "forecast"),
    "music": ("song", "play", "guitar", "band", "album", "singer", "melody", "concert"),
    "food": ("soup", "bread", "cheese", "dinner", "restaurant", "cook", "lunch", "table"),
}
FILLERS = ("the", "a", "please", "today", "my", "some", "now", "very", "this", "old")


def rows(count: int, seed: int) -> Labeled:
    """Made-up sentences: three words of a topic among others."""
    generator = np.random.default_rng(seed)
    labels = [sorted(TOPICS)[place] for place in generator.integers(3, size=count)]
    texts = [
        " ".join(generator.permutation([*generator.choice(TOPICS[label], 3), *generator.choice(FILLERS, 4)]))
        for label in labels
    ]
    return Labeled(texts, labels)


def test_a_release_that_is_as_good_as_the_originals_scores_like_them() -> None:
    scores = corpus_scores(rows(200, 1), rows(200, 2), rows(100, 3))
    assert [each.learner for each in scores.learners] == ["words", "letters", "static vectors"]
    for each in scores.learners:
        assert each.original.macro_f1.value > 0.95
        assert each.released.macro_f1.value > 0.95
        assert each.share_kept(scores.floor.value) > 0.95
    assert scores.worst.released.macro_f1.value == min(e.released.macro_f1.value for e in scores.learners)


def test_labels_in_random_order_score_like_chance() -> None:
    real = rows(300, 1)
    shuffled = Labeled(real.texts, np.random.default_rng(0).permutation(real.labels).tolist())
    scores = corpus_scores(real, shuffled, rows(200, 3), learners=("words",))
    assert scores.worst.released.macro_f1.low < 0.45
    assert scores.worst.original.macro_f1.value > 0.95


def test_the_worst_learner_counts() -> None:
    """Rows whose words are right and whose spelling is foreign: letters fail, words of the test set are not seen."""
    real, test = rows(200, 1), rows(100, 3)
    released = Labeled([text.upper()[::-1] for text in real.texts], real.labels)
    scores = corpus_scores(real, released, test, learners=("words", "letters"))
    assert scores.worst.released.macro_f1.value < 0.6


def test_logistic_regression_is_that_of_scikit_learn() -> None:
    linear = pytest.importorskip("sklearn.linear_model")
    generator = np.random.default_rng(4)
    centers = generator.standard_normal((4, 12))
    targets = generator.integers(4, size=400)
    features = centers[targets] + 1.5 * generator.standard_normal((400, 12))
    weights, offsets = logistic_regression(features, targets, 4)
    theirs = linear.LogisticRegression(C=10, max_iter=300).fit(features, targets)
    mine = (features @ weights + offsets).argmax(axis=1)
    assert np.mean(mine == theirs.predict(features)) > 0.99


def test_learners_take_texts_without_words_and_long_ones() -> None:
    texts, labels = ["", "?!", "ü" * 20_000, "snow snow", "song"], ["a", "a", "b", "a", "b"]
    for learner in (WordLearner(), LetterLearner(), learner_of("static")):
        assert set(learner.fit(texts, labels).predict(["", "snow", "\ud800"[:0] + "x"])) <= {"a", "b"}
        assert learner.predict([]) == []


def test_public_rows_know_the_names_of_the_labels() -> None:
    sentences = [f"{word} {filler}" for words in TOPICS.values() for word in words for filler in FILLERS]
    named = rows_by_name(["PlayMusic", "get_weather"], sentences, rows=20)
    music = [text for text, label in zip(named.texts, named.labels, strict=True) if label == "PlayMusic"]
    assert len(music) == 10
    assert sum(text.split()[0] in TOPICS["music"] for text in music) >= 8


def test_a_corpus_with_one_label_is_an_error() -> None:
    with pytest.raises(BadInputError) as error:
        corpus_scores(rows(50, 1), Labeled(["a", "b"], ["music", "music"]), rows(20, 3))
    assert error.value.code == "released-one-label"
