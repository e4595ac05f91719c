"""Scores of a trained model from its predictions: see `tacit.experiments.steps.train` for what they mean."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np

from tacit.arrays import Floats, Integers
from tacit.card import Card
from tacit.evaluation import scores
from tacit.evaluation.collapse import MAJORITY_SHARE, majority_voting
from tacit.experiments.raw import read_json, read_lines
from tacit.experiments.steps.downstream import RESAMPLES, with_interval

LOST: Final = 0.01
"""The F1 up to which a class is said to be lost, as in the thesis."""


def score(folder: Path) -> dict[str, float]:
    about = read_json(folder / "about.json")
    rows = list(read_lines(folder / "predictions.jsonl"))
    truth, said = [row["true"] for row in rows], [row["predicted"] for row in rows]
    if about["task"] == "answering":
        numbers = answer_scores(truth, said)
    else:
        split = about["task"] == "tagging"
        true_labels, labels = ([text.split() if split else [text] for text in texts] for texts in (truth, said))
        numbers = class_scores(true_labels, labels, about["train labels"])
        if split:
            numbers |= tag_scores([t.split() for t in truth], [p.split() for p in said])
    if (folder / "card.json").is_file():
        card = Card.of_file(folder / "card.json")
        if card.guarantee.is_private:
            numbers |= {"epsilon of the card": card.guarantee.epsilon, "delta of the card": card.guarantee.delta}
    return numbers


def class_scores(
    truth: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]], train: Mapping[str, int]
) -> dict[str, float]:
    """Scores over the labels of each row (one, or one for each word); rows are resampled for the intervals."""
    flat = [label for row in truth for label in row]
    seen = list(Counter(train).elements())
    macro = scores.bootstrap_interval(scores.token_f1_of_items(truth, [predicted]), len(truth), resamples=RESAMPLES)
    counts = np.array([len(row) for row in truth])
    hits = np.array([sum(a == b for a, b in zip(t, p, strict=True)) for t, p in zip(truth, predicted, strict=True)])
    accuracy = scores.bootstrap_interval(
        lambda at: float(hits[at].sum() / max(1, counts[at].sum())), len(truth), resamples=RESAMPLES
    )
    majority = scores.most_frequent(seen)
    blind = float(np.mean([label == majority for label in flat]))
    floor = scores.classification_floor(seen, flat).value
    numbers = {**with_interval("score", macro, floor), **with_interval("macro-F1", macro, floor),
             **with_interval("accuracy", accuracy, blind)}  # fmt: skip
    if scores.marks_entities(truth):
        of_items = scores.entity_f1_of_items(truth, [predicted])
        numbers |= with_interval("entity F1", scores.bootstrap_interval(of_items, len(truth), resamples=RESAMPLES), 0.0)
    return {**numbers, **signs_of_collapse(truth, predicted)}


def signs_of_collapse(truth: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]]) -> dict[str, float]:
    """Whether the model has collapsed, and the shares of the classes that occur which are never named, and which have
    hardly any F1. Whether a rare one is among them may hang on one row."""
    labels, confusion = scores.confusion_of_items(truth, predicted)

    def signs(at: Integers) -> Floats:
        matrix = confusion(at)
        occurs, named = matrix.sum(axis=1) > 0, matrix.sum(axis=0) > 0
        collapsed = majority_voting(scores.scores_of_confusion(matrix, labels)) is not None
        return np.array([collapsed, np.mean(~named[occurs]), np.mean(scores.class_f1(matrix)[occurs] <= LOST)])

    collapsed, never, lost = scores.bootstrap_intervals(signs, len(truth), resamples=RESAMPLES)
    return {**collapsed.named("collapsed"), **never.named("never predicted"), **lost.named("lost classes")}


def tag_scores(truth: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]]) -> dict[str, float]:
    """The F1 of each tag that occurs."""
    labels, confusion = scores.confusion_of_items(truth, predicted)
    occurring = np.flatnonzero(confusion(np.arange(len(truth))).sum(axis=1))

    def f1(at: Integers) -> Floats:
        return np.nan_to_num(scores.class_f1(confusion(at))[occurring])

    intervals = scores.bootstrap_intervals(f1, len(truth), resamples=RESAMPLES)
    numbers: dict[str, float] = {}
    for place, interval in zip(occurring, intervals, strict=True):
        numbers |= interval.named(f"F1 of {labels[place]}")
    return numbers


def answer_scores(truth: Sequence[str], predicted: Sequence[str]) -> dict[str, float]:
    """Word overlap and exact match as in the evaluation of SQuAD, the best over the right answers of a cell; always
    saying nothing is the floor."""
    pairs = [scores.scores_of_answer(cell, said) for cell, said in zip(truth, predicted, strict=True)]
    overlap = np.array([f1 for _, f1 in pairs])
    interval = scores.mean_interval(overlap, resamples=RESAMPLES)
    answered = [scores.right_answers(cell) != [""] for cell in truth]
    floor = float(np.mean([not has for has in answered]))
    silent = np.array([float(not scores.plain_answer(said)) for said in predicted])
    unanswered = scores.mean_interval(silent, resamples=RESAMPLES)
    collapsed = scores.bootstrap_interval(
        lambda at: float(silent[at].mean() >= MAJORITY_SHARE), len(pairs), resamples=RESAMPLES
    )
    exact = scores.mean_interval([right for right, _ in pairs], resamples=RESAMPLES)
    answerable = overlap[answered]
    nothing = scores.Interval(math.nan, math.nan, math.nan, 0)
    there = scores.mean_interval(answerable, resamples=RESAMPLES) if len(answerable) else nothing
    return {
        **with_interval("score", interval, floor),
        **with_interval("word F1", interval, floor),
        **exact.named("exact match"),
        **there.named("F1 where there is an answer"),
        **unanswered.named("unanswered"),
        **collapsed.named("collapsed"),
    }
