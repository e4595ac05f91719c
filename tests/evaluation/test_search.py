"""The setting of a learner is chosen on validation rows, and a network stops early by them."""

from __future__ import annotations

import pytest

from tacit.errors import BadParameterError
from tacit.evaluation.learners.linear import WordProbe
from tacit.evaluation.learners.lstm import Lstm
from tacit.evaluation.learners.neural import Validation
from tacit.evaluation.learners.search import FACTORS, searched, validation_score
from tests.evaluation.test_downstream import small_vectors, toy


@pytest.mark.parametrize("task", ["classification", "tagging", "similarity", "pairs"])
def test_the_strength_of_a_linear_model_is_the_best_on_validation_rows(task):
    data = toy(task)
    train, held = data.at(range(80)), data.at(range(80, 120))
    best = searched(lambda: WordProbe(task), task, train.texts, train.labels, Validation(held.texts, held.labels))
    assert set(best.scores) == set(FACTORS)
    assert best.scores[best.factor] == max(best.scores.values())
    alone = WordProbe(task)
    alone.strength *= best.factor
    predicted = alone.fit(train.texts, train.labels).predict(held.texts)
    assert validation_score(task, held.labels, predicted) == pytest.approx(best.scores[best.factor])


def small_lstm() -> Lstm:
    pytest.importorskip("torch")
    return Lstm("classification", small_vectors(), hidden=12, batch_size=16)


def test_a_network_stops_early_and_keeps_the_weights_of_its_smallest_loss():
    data = toy("classification")
    train, held = data.at(range(80)), data.at(range(80, 120))
    turned = ["food" if label == "color" else "color" for label in held.labels]
    losses = {}
    for passes in (1, 2):
        longer = small_lstm()
        longer.validation = Validation(held.texts, turned, epochs=passes, patience=5)
        longer.fit(train.texts, train.labels)
        losses[passes] = longer.loss_on(held.texts, turned)
    # The better it learns the task, the worse it is on labels that are turned around.
    stopped = small_lstm()
    stopped.validation = Validation(held.texts, turned, epochs=50, patience=3)
    stopped.fit(train.texts, train.labels)
    assert stopped.passes < 50
    assert stopped.loss_on(held.texts, turned) == pytest.approx(min(losses.values()), rel=1e-5)
    right = small_lstm()
    right.validation = Validation(held.texts, held.labels, epochs=12, patience=3)
    assert (
        validation_score("classification", held.labels, right.fit(train.texts, train.labels).predict(held.texts)) > 0.9
    )


def test_labels_that_no_training_row_had_do_not_stop_it():
    data = toy("classification", 60)
    learner = small_lstm()
    learner.validation = Validation(["the soup", "the red"], ["unheard of", "color"], epochs=2)
    learner.fit(data.texts, data.labels)
    assert learner.loss_on(["the soup"], ["unheard of"]) == 0.0
    assert learner.passes == 2


class Guesser:
    name, random = "a guess", False


def test_a_learner_without_a_setting_is_refused():
    with pytest.raises(BadParameterError) as refused:
        searched(Guesser, "classification", ["a"], ["b"], Validation(["a"], ["b"]))
    assert refused.value.code == "learner-without-setting"
