"""The setting of a learner, searched on validation rows (Igamberdiev 2023, section 6.4.3).

The thesis tunes the downstream model on *rewritten* validation rows and tests it on original ones: up to 50 passes, and
five without a smaller loss end the training. Here every learner is fitted with a third of its usual rate (networks) or
strength (linear models), the usual one and three times as much; networks stop early. The setting with the best score on
the validation rows is taken. Test rows have no say.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit.errors import BadParameterError
from tacit.evaluation.learners.base import Learner, Task, Text, flat_labels
from tacit.evaluation.learners.linear import LinearLearner
from tacit.evaluation.learners.neural import NeuralLearner, Validation

FACTORS = (1.0, 1.0 / 3.0, 3.0)
"""Of the usual setting; the first of equally good ones is taken."""


@dataclass(frozen=True)
class SearchedLearner:
    """The learner that was best on validation rows, the factor of its setting, and the scores of all factors."""

    learner: Learner
    factor: float
    scores: dict[float, float]


def searched(
    make: Callable[[], Learner],
    task: Task,
    texts: Sequence[Text],
    labels: Sequence[Any],
    validation: Validation,
    seed: int = 0,
) -> SearchedLearner:
    """The best of several settings, fitted."""
    fitted: dict[float, Learner] = {}
    scores: dict[float, float] = {}
    for factor in FACTORS:
        learner = make()
        if isinstance(learner, NeuralLearner):
            learner.learning_rate *= factor
            learner.validation = validation
        elif isinstance(learner, LinearLearner):
            learner.strength *= factor
        else:
            raise BadParameterError(
                "learner-without-setting", "'{learner}' has no setting to search: choose another", learner=learner.name
            )
        fitted[factor] = learner.fit(texts, labels, seed)
        scores[factor] = validation_score(task, validation.labels, learner.predict(validation.texts))
    best = max(FACTORS, key=lambda factor: scores[factor])
    return SearchedLearner(fitted[best], best, scores)


def validation_score(task: Task, truth: Sequence[Any], predicted: Sequence[Any]) -> float:
    """The share of right labels; of numbers the mean squared error, with a minus."""
    gold, said = flat_labels(task, truth), flat_labels(task, predicted)
    if task == "similarity":
        return -float(np.mean(np.square(np.asarray(gold, dtype=np.float64) - np.asarray(said, dtype=np.float64))))
    return float(np.mean([str(a) == str(b) for a, b in zip(gold, said, strict=True)]))
