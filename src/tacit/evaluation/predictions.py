"""How good the predictions of a trained model are, in the measure of its task, with what looks like collapse flagged.

classify    macro-F1, accuracy, each class      tag    entity F1 or macro-F1 over words, each tag
regress     Spearman, Pearson, mean error       answer word overlap and exact match (SQuAD 2)
translate   BLEU and chrF (sacrebleu)           write  perplexity          fill  share of masked pieces guessed
exact       the share that equals the truth, for tasks of plug-ins that say nothing else
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from tacit.errors import BadInputError, BadParameterError, require
from tacit.evaluation.collapse import prediction_flags
from tacit.evaluation.scores import (
    ClassificationScores,
    answer_scores,
    classification_scores,
    similarity_scores,
    tagging_scores,
)
from tacit.report import Finding, Light, Section, Table

MOST_CLASSES = 40


def prediction_section(
    task: str, truth: Sequence[str], predicted: Sequence[str], *, known: Sequence[str] = (), title: str = "Predictions"
) -> Section:
    """The scores of a task. `known` are the labels that the model can give: others in the truth are counted wrong."""
    if len(truth) != len(predicted):
        raise BadInputError(
            "wrong-number-of-predictions",
            "there are {truth:,} true values and {predicted:,} predictions",
            truth=len(truth),
            predicted=len(predicted),
        )
    if task == "classify":
        scores = classification_scores(truth, predicted)
        return _classes(title, scores, "class", known, _both(scores))
    if task == "tag":
        return _tags(title, truth, predicted, known)
    if task == "regress":
        return _numbers(title, truth, predicted)
    if task == "answer":
        return _answers(title, truth, predicted)
    if task == "translate":
        return _translations(title, truth, predicted)
    if task in ("write", "fill"):
        return _language(title, task, predicted)
    if task == "exact":
        equal = sum(a == b for a, b in zip(truth, predicted, strict=True))
        return measured_section(title, {"exact match": equal / max(1, len(truth))})
    raise BadParameterError("unknown-task", "there is no measure for the task '{task}'", task=task)


def measured_section(title: str, measures: Mapping[str, float]) -> Section:
    """Measures that were worked out already, the most important one first."""
    return Section(title, findings=[_score(name, value) for name, value in measures.items()])


def main_score(section: Section) -> float:
    """The first number of a section: the measure of the task."""
    return float(str(next(iter(section.findings[0].numbers.values()))))


def _score(name: str, value: float, sentence: str = "") -> Finding:
    return Finding(name, Light.NONE, sentence or f"{value:.4f}", numbers={name: value})


def _both(scores: ClassificationScores) -> list[Finding]:
    return [_score("macro-F1", scores.macro_f1), _score("accuracy", scores.accuracy)]


def _classes(
    title: str, scores: ClassificationScores, what: str, known: Sequence[str], first: list[Finding]
) -> Section:
    findings = [*first, *(flag.finding() for flag in prediction_flags(scores, what))]
    unseen = [c for c in scores.classes if c.support and known and c.label not in set(known)]
    if unseen:
        items = sum(c.support for c in unseen)
        findings.append(
            Finding(
                "Labels unseen in training",
                Light.AMBER,
                f"{len(unseen)} labels of the test rows were not in training; their {items:,} items count as wrong",
                numbers={"labels": len(unseen), "items": items},
            )
        )
    shown = sorted(scores.classes, key=lambda c: -c.support)
    table = Table(
        f"Each {what}",
        (what, "F1", "precision", "recall", "items", "predicted"),
        [(str(c.label), c.f1, c.precision, c.recall, c.support, c.predicted) for c in shown[:MOST_CLASSES]],
        note=f"the {MOST_CLASSES} most frequent of {len(shown)}" if len(shown) > MOST_CLASSES else "",
    )
    return Section(title, findings=findings, tables=[table])


def _tags(title: str, truth: Sequence[str], predicted: Sequence[str], known: Sequence[str]) -> Section:
    true, answers = [line.split() for line in truth], [line.split() for line in predicted]
    for number, (a, b) in enumerate(zip(true, answers, strict=True), 1):
        if len(a) != len(b):
            raise BadInputError(
                "wrong-number-of-tags",
                "row {number} has {tags} tags and {predicted} predicted ones: each word needs one tag",
                number=number,
                tags=len(a),
                predicted=len(b),
            )
    scores = tagging_scores(true, answers)
    first = _both(scores.tokens)
    if scores.entities is not None:
        first.insert(0, _score("entity F1", scores.entities.f1))
    return _classes(title, scores.tokens, "tag", known, first)


def _numbers(title: str, truth: Sequence[str], predicted: Sequence[str]) -> Section:
    true, answers = _floats(truth), _floats(predicted)
    scores = similarity_scores(true, answers)
    error = float(np.abs(np.asarray(true) - np.asarray(answers)).mean())
    return Section(
        title,
        findings=[
            _score("Spearman", scores.spearman),
            _score("Pearson", scores.pearson),
            _score("mean absolute error", error),
        ],
    )


def _floats(values: Sequence[str]) -> list[float]:
    try:
        return [float(value) for value in values]
    except ValueError:
        raise BadInputError("not-a-number", "a value to compare with is not a number") from None


def _answers(title: str, truth: Sequence[str], predicted: Sequence[str]) -> Section:
    scores = answer_scores(truth, predicted)
    findings = [_score("word F1", scores.f1), _score("exact match", scores.exact)]
    without = scores.questions - scores.with_answer
    if scores.with_answer and without:
        findings += [
            _score("word F1 with an answer", scores.f1_with),
            _score("exact match with an answer", scores.exact_with),
            _score("right without an answer", scores.exact_without),
            _score("always no answer", without / scores.questions),
        ]
    return Section(title, findings=findings)


def _translations(title: str, truth: Sequence[str], predicted: Sequence[str]) -> Section:
    sacrebleu = require("sacrebleu", extra="documents", purpose="scoring translations")
    bleu = float(sacrebleu.corpus_bleu(list(predicted), [list(truth)]).score)
    chrf = float(sacrebleu.corpus_chrf(list(predicted), [list(truth)]).score)
    return Section(title, findings=[_score("BLEU", bleu), _score("chrF", chrf)])


def _language(title: str, task: str, predicted: Sequence[str]) -> Section:
    values = _floats(predicted)
    if task == "fill":
        return Section(title, findings=[_score("masked pieces guessed", float(np.mean(values)))])
    # The geometric mean of the perplexities of the texts: exp of the mean over texts of their mean loss.
    perplexity = math.exp(float(np.mean(np.log(np.maximum(values, 1e-12)))))
    return Section(title, findings=[_score("perplexity", perplexity)])
