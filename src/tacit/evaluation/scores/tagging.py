"""Scores of predicted tags, over tokens and over whole entities."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from tacit.arrays import Integers
from tacit.errors import BadInputError
from tacit.evaluation.scores.classification import (
    ClassificationScores,
    ClassScore,
    Floor,
    classification_floor,
    classification_scores,
    confusion_of_items,
    macro_f1,
    most_frequent,
    same_length,
)

OUTSIDE = "O"
_BEGIN, _END = frozenset("BSU"), frozenset("ESLU")


@dataclass(frozen=True)
class TaggingScores:
    """Scores over tokens, and over whole entities where the tags mark entities (None where they do not)."""

    tokens: ClassificationScores
    entities: EntityScores | None

    @property
    def main(self) -> float:
        """Entity F1 where there are entities, else macro-F1 over tokens."""
        return self.tokens.macro_f1 if self.entities is None else self.entities.f1


@dataclass(frozen=True)
class EntityScores:
    """An entity counts when its first token, its last token and its type are all right (Tjong Kim Sang, CoNLL 2003)."""

    precision: float
    recall: float
    f1: float
    true: int
    predicted: int
    by_type: tuple[ClassScore, ...]


def marks_entities(sequences: Sequence[Sequence[str]]) -> bool:
    """Whether the tags look like B-PER, I-PER, O rather than like NOUN, VERB."""
    tags = {tag for tags in sequences for tag in tags}
    marked = {tag for tag in tags if tag != OUTSIDE}
    return bool(marked) and all(len(tag) > 2 and tag[1] == "-" and tag[0] in "BIESLUM" for tag in marked)


def entities(tags: Sequence[str]) -> set[tuple[int, int, str]]:
    """(first token, token after the last, type), by the rule of conlleval: reads BIO, IO and BIOES alike."""
    spans: set[tuple[int, int, str]] = set()
    start, kind = 0, ""
    for place, tag in enumerate([*tags, OUTSIDE]):
        mark, _, name = tag.partition("-")
        if kind and (tag == OUTSIDE or mark in _BEGIN or name != kind):
            spans.add((start, place, kind))
            kind = ""
        if tag == OUTSIDE:
            continue
        if not kind:
            start, kind = place, name
        if mark in _END:
            spans.add((start, place + 1, kind))
            kind = ""
    return spans


def entity_scores(truth: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]]) -> EntityScores:
    same_length(truth, predicted)
    gold = [(i, *e) for i, tags in enumerate(truth) for e in entities(tags)]
    predicted_spans = [(i, *e) for i, tags in enumerate(predicted) for e in entities(tags)]
    hits = set(gold) & set(predicted_spans)
    right = Counter(e[-1] for e in hits)
    per_true, per_said = Counter(e[-1] for e in gold), Counter(e[-1] for e in predicted_spans)
    by_type = tuple(
        ClassScore(name, *_prf(right[name], per_true[name], per_said[name]), per_true[name], per_said[name])
        for name in sorted(per_true.keys() | per_said.keys())
    )
    return EntityScores(*_prf(len(hits), len(gold), len(predicted_spans)), len(gold), len(predicted_spans), by_type)


def entity_counts(truth: Sequence[str], predicted: Sequence[str]) -> tuple[int, int, int]:
    """Right, true and predicted entities of one text."""
    gold, predicted_spans = entities(truth), entities(predicted)
    return len(gold & predicted_spans), len(gold), len(predicted_spans)


def tagging_scores(truth: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]]) -> TaggingScores:
    for row, (true, predicted_tags) in enumerate(zip(truth, predicted, strict=True), start=1):
        if len(true) != len(predicted_tags):
            raise BadInputError(
                "wrong-number-of-tags",
                "text {row} has {tags} tags but {predicted} predicted ones: give one per token",
                row=row,
                tags=len(true),
                predicted=len(predicted_tags),
            )
    flat = classification_scores([t for tags in truth for t in tags], [t for tags in predicted for t in tags])
    return TaggingScores(flat, entity_scores(truth, predicted) if marks_entities(truth) else None)


def tagging_floor(train: Sequence[Sequence[str]], truth: Sequence[Sequence[str]]) -> Floor:
    """One tag for all; for entities that is nearly always "O" and finds none of them.

    Guessed tags find entities only by luck, and how many has no closed form: that floor is left out (NaN) for entities.
    """
    flat = [tag for tags in train for tag in tags]
    majority = most_frequent(flat)
    if marks_entities(truth):
        constant = [[str(majority)] * len(tags) for tags in truth]
        return Floor(entity_scores(truth, constant).f1, math.nan, majority)
    return classification_floor(flat, [tag for tags in truth for tag in tags])


def _prf(hits: int, true: int, predicted: int) -> tuple[float, float, float]:
    precision = hits / predicted if predicted else 0.0
    recall = hits / true if true else 0.0
    return precision, recall, 2 * hits / (true + predicted) if true + predicted else 0.0


def entity_f1_of_items(
    truth: Sequence[Sequence[str]], runs: Sequence[Sequence[Sequence[str]]]
) -> Callable[[Integers], float]:
    tables = [np.array([entity_counts(t, p) for t, p in zip(truth, run, strict=True)]) for run in runs]
    return lambda at: float(np.mean([_prf(*table[at].sum(axis=0).tolist())[2] for table in tables]))


def token_f1_of_items(
    truth: Sequence[Sequence[str]], runs: Sequence[Sequence[Sequence[str]]]
) -> Callable[[Integers], float]:
    """Macro-F1 over tokens; whole texts are resampled, since the tokens of a text belong together."""
    tables = [confusion_of_items(truth, run)[1] for run in runs]
    return lambda at: float(np.mean([macro_f1(table(at)) for table in tables]))
