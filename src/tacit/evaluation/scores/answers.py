"""Scores of answers as the evaluation of SQuAD 2 defines them (Rajpurkar et al. 2018), without its percentages.

    plain(a)     lower case, without punctuation, without the words a, an and the, white space made one blank
    exact        1 if plain(prediction) = plain(gold)
    F1           over the words of both; of two answers without a word 1, of one 0

A question with several right answers counts by the best of them; answers that are nothing once they are plain do not
count as right answers, and a question without any has the right answer "". `threshold` is the one of the official
script: from which score of "no answer" on nothing should be answered, so that F1 is as large as it can be.
"""

from __future__ import annotations

import math
import re
import string
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from tacit.errors import BadInputError
from tacit.text.gold_answers import gold_answers


@dataclass(frozen=True)
class AnswerScores:
    """The mean exact match and F1 over all questions, and over those with and without an answer; NaN where there are
    none."""

    exact: float
    f1: float
    exact_with: float
    f1_with: float
    exact_without: float
    f1_without: float
    questions: int
    with_answer: int


def plain_answer(answer: str) -> str:
    """An answer in lower case, without punctuation and articles, as the SQuAD evaluation compares it."""
    bare = "".join(c for c in answer.lower() if c not in string.punctuation)
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", bare).split())


def right_answers(cell: str) -> list[str]:
    """The right answers of a cell that count; "" alone if the question has none."""
    return [answer.text for answer in gold_answers(cell) if plain_answer(answer.text)] or [""]


def word_overlap(true: Sequence[str], answer: Sequence[str]) -> float:
    """F1 over words; two empty answers agree."""
    if not true or not answer:
        return float(not true and not answer)
    shared = sum((Counter(true) & Counter(answer)).values())
    return 2 * shared / (len(true) + len(answer))


def scores_of_answer(cell: str, predicted: str) -> tuple[float, float]:
    """Exact match and F1 of one prediction: the best over the right answers of the cell."""
    plain = plain_answer(predicted)
    golds = [plain_answer(gold) for gold in right_answers(cell)]
    return max(float(gold == plain) for gold in golds), max(word_overlap(gold.split(), plain.split()) for gold in golds)


def answer_scores(truth: Sequence[str], predicted: Sequence[str]) -> AnswerScores:
    """The scores of all predictions; each cell of the truth may hold several right answers."""
    pairs = [scores_of_answer(cell, answer) for cell, answer in zip(truth, predicted, strict=True)]
    answered = [right_answers(cell) != [""] for cell in truth]
    having = [pair for pair, has in zip(pairs, answered, strict=True) if has]
    lacking = [pair for pair, has in zip(pairs, answered, strict=True) if not has]
    return AnswerScores(
        exact=_mean([exact for exact, _ in pairs]),
        f1=_mean([f1 for _, f1 in pairs]),
        exact_with=_mean([exact for exact, _ in having]),
        f1_with=_mean([f1 for _, f1 in having]),
        exact_without=_mean([exact for exact, _ in lacking]),
        f1_without=_mean([f1 for _, f1 in lacking]),
        questions=len(pairs),
        with_answer=sum(answered),
    )


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else math.nan


NEVER = -1e9
"""A threshold at which nothing is answered, whatever the scores are."""


def best_threshold(truth: Sequence[str], answers: Sequence[str], differences: Sequence[float]) -> float:
    """The threshold with the largest F1: an answer is given where its difference, the score of "no answer" less its
    own, is at most that. Of several, the lowest.

    truth        cells of right answers
    answers      the best answer to each question, whether or not it would be given

    It is a difference that occurs, as in the official script; of questions with equal differences all are answered, or
    none.
    """
    if not truth:
        raise BadInputError("no-rows", "there are no rows to choose a threshold on")
    gains = []
    for cell, answer, difference in zip(truth, answers, differences, strict=True):
        if plain_answer(answer):
            gains.append((difference, scores_of_answer(cell, answer)[1] - scores_of_answer(cell, "")[1]))
    best, total, threshold = 0.0, 0.0, NEVER
    gains.sort()
    for place, (difference, gain) in enumerate(gains):
        total += gain
        last_of_its_kind = place + 1 == len(gains) or gains[place + 1][0] != difference
        if last_of_its_kind and total > best + 1e-12:
            best, threshold = total, difference
    return threshold
