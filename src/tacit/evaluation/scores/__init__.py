"""Scores of predictions, their floors, and how sure they are.

    F1_c = 2 TP_c / (2 TP_c + FP_c + FN_c),      macro-F1 = mean of F1_c

over the classes that occur in the truth or in the predictions (scikit-learn's convention, so that numbers agree with
papers). Micro-averaged scores hide collapse: a tagger that only says "O" has an accuracy of 83 % on CoNLL and a
macro-F1 of 0.10, so macro-F1 comes first and per-class scores always go with it.

Floors are exact, not sampled:

    majority   everybody gets the class that is most frequent in training
    random     every item gets class c with probability q_c:
               E[F1_c] = sum over p of Bin(n, q_c)(p) * 2 p n_c / (n (p + n_c))

The second holds because of p items that are guessed to be c, a hypergeometric share n_c / n is right on average.

Intervals: Student's t over seeds (what another run of the learner would give), and the percentile bootstrap over test
items (what another test set would give). They answer different questions, so both are kept.
"""

from __future__ import annotations

from tacit.evaluation.scores.answers import (
    NEVER,
    AnswerScores,
    answer_scores,
    best_threshold,
    plain_answer,
    right_answers,
    scores_of_answer,
    word_overlap,
)
from tacit.evaluation.scores.classification import (
    ClassificationScores,
    ClassScore,
    Floor,
    Label,
    class_f1,
    classification_floor,
    classification_scores,
    codes,
    confusion_matrix,
    confusion_of_items,
    expected_random_f1,
    label_order,
    macro_f1,
    macro_f1_of_items,
    most_frequent,
    same_length,
    scores_of_confusion,
)
from tacit.evaluation.scores.correlation import (
    SIMILARITY_FLOOR,
    SimilarityScores,
    pearson,
    similarity_scores,
    spearman,
    spearman_of_items,
)
from tacit.evaluation.scores.intervals import (
    CONFIDENCE,
    RESAMPLES,
    Interval,
    bootstrap_interval,
    bootstrap_intervals,
    mean_interval,
    resampled,
    t_interval,
)
from tacit.evaluation.scores.tagging import (
    OUTSIDE,
    EntityScores,
    TaggingScores,
    entities,
    entity_counts,
    entity_f1_of_items,
    entity_scores,
    marks_entities,
    tagging_floor,
    tagging_scores,
    token_f1_of_items,
)

__all__ = [
    "CONFIDENCE",
    "NEVER",
    "OUTSIDE",
    "RESAMPLES",
    "SIMILARITY_FLOOR",
    "AnswerScores",
    "ClassScore",
    "ClassificationScores",
    "EntityScores",
    "Floor",
    "Interval",
    "Label",
    "SimilarityScores",
    "TaggingScores",
    "answer_scores",
    "best_threshold",
    "bootstrap_interval",
    "bootstrap_intervals",
    "class_f1",
    "classification_floor",
    "classification_scores",
    "codes",
    "confusion_matrix",
    "confusion_of_items",
    "entities",
    "entity_counts",
    "entity_f1_of_items",
    "entity_scores",
    "expected_random_f1",
    "label_order",
    "macro_f1",
    "macro_f1_of_items",
    "marks_entities",
    "mean_interval",
    "most_frequent",
    "pearson",
    "plain_answer",
    "resampled",
    "right_answers",
    "same_length",
    "scores_of_answer",
    "scores_of_confusion",
    "similarity_scores",
    "spearman",
    "spearman_of_items",
    "t_interval",
    "tagging_floor",
    "tagging_scores",
    "token_f1_of_items",
    "word_overlap",
]
