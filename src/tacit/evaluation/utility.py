"""How useful releases are: similarity to the originals, a downstream task, and the trade-off with their promises."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tacit.card import plain_sentence
from tacit.errors import MissingExtraError
from tacit.evaluation.collapse import text_flags
from tacit.evaluation.downstream import DownstreamResult, evaluate_downstream
from tacit.evaluation.downstream_groups import sections_by_group
from tacit.evaluation.downstream_report import downstream_section
from tacit.evaluation.learners import make_learner
from tacit.evaluation.releases import ComparedRows, Splits, split_comparison
from tacit.evaluation.rows import TextRows
from tacit.evaluation.similarity import LIT, Measure, SimilarityResult, measure_similarity, similarity_section
from tacit.evaluation.tradeoff import Point, compare_arms, measure_tradeoff, points_of
from tacit.evaluation.tradeoff_report import tradeoff_section
from tacit.evaluation.vectors import TextVectors
from tacit.progress import WorkProgress
from tacit.report import Finding, Light, Report, Section

MOST_TEXTS_FOR_PERPLEXITY = 200


MeasuredMetric = tuple[list[Measure], MissingExtraError | None]
"""The measures of one metric, or the sentence that says which library it lacks."""


@dataclass(frozen=True)
class UtilityPlan:
    """The plan of an evaluation: what is measured, and with what.

    strict    a metric whose library is missing is an error, not a remark
    measured  metrics by release and name that other machines have measured already
    group_column, by_class    the groups of test rows whose scores are compared
    """

    metrics: Sequence[str]
    strict: bool
    learner: str
    vectors: TextVectors
    language_model: str
    seeds: int
    sample: int
    measured: Mapping[tuple[str, str], MeasuredMetric] | None = None
    group_column: str | None = None
    by_class: bool = False
    progress: WorkProgress | None = None


def utility_report(comparison: ComparedRows, plan: UtilityPlan, encoder: str) -> Report:
    """All sections: similarity of each release, the downstream task, and with several cards the trade-off."""
    label = comparison.label_column
    splits = None if label is None else split_comparison(comparison, label)
    report = Report("How useful the released texts are")
    similar: dict[str, SimilarityResult] = {}
    for name, released in comparison.releases.items():
        section, similar[name] = _similarity(comparison.original, name, released, plan)
        report.sections.append(section)
    task = None
    if splits is not None:
        task = _downstream(comparison, splits, plan)
        report.sections.append(_with_findings(downstream_section(task), splits.remarks))
        report.sections += sections_by_group(comparison, splits, task, plan.group_column, by_class=plan.by_class)
    if len(comparison.releases) > 1 and comparison.cards:
        report.sections.append(_tradeoff(comparison, task, similar))
    report.facts = _facts(comparison, encoder)
    return report


def _facts(comparison: ComparedRows, encoder: str) -> dict[str, object]:
    promises = {
        f"promise of {name}": plain_sentence(comparison.cards[name].guarantee)
        if name in comparison.cards
        else "no privacy card beside it"
        for name in [*comparison.cards, *(name for name in comparison.releases if name not in comparison.cards)]
    }
    return {
        "original": comparison.original.name,
        "rows": len(comparison.original),
        **promises,
        "test texts": "a fifth of the rows, split by a fixed public seed"
        if comparison.test is None
        else comparison.test.name,
        "task": "none (no column of labels)" if comparison.label_column is None else comparison.task,
        "encoder": encoder,
    }


def _similarity(
    original: TextRows, name: str, released: TextRows, plan: UtilityPlan
) -> tuple[Section, SimilarityResult]:
    """Similarity of one release, and what is wrong with its texts."""
    before, after = original.all_texts, released.all_texts
    measures: list[Measure] = []
    remarks = [flag.finding(name) for flag in text_flags(before, after)]
    for metric in plan.metrics:
        if plan.progress is not None:
            plan.progress(f"{metric} of {name}", 0, 1)
        try:
            measures += _measures(before, after, name, metric, plan)
        except MissingExtraError as error:
            if plan.strict:
                raise
            remarks.append(Finding(f"{metric} was left out", Light.NONE, str(error)))
    similar = SimilarityResult(tuple(measures), before, after)
    return _with_findings(similarity_section(similar, name), remarks), similar


def _measures(
    before: Sequence[str], after: Sequence[str], name: str, metric: str, plan: UtilityPlan
) -> Sequence[Measure]:
    if plan.measured is None:
        return measure_similarity(
            before, after, (metric,), vectors=plan.vectors, language_model=plan.language_model, limit=plan.sample,
            perplexity_limit=min(plan.sample, MOST_TEXTS_FOR_PERPLEXITY), progress=plan.progress,
        ).measures  # fmt: skip
    measures, missing = plan.measured[name, metric]
    if missing is not None:
        raise missing
    return measures


def _downstream(comparison: ComparedRows, splits: Splits, plan: UtilityPlan) -> DownstreamResult:
    progress = plan.progress

    def steps(done: int, total: int) -> None:
        if progress is not None:
            progress("training steps", done, total)

    learner = make_learner(plan.learner, comparison.task, plan.vectors, progress=None if progress is None else steps)
    return evaluate_downstream(
        comparison.task, learner, splits.train, splits.releases, splits.test, splits.released_tests,
        seeds=range(1, plan.seeds + 1), progress=progress,
    )  # fmt: skip


def _tradeoff(comparison: ComparedRows, task: DownstreamResult | None, similar: dict[str, SimilarityResult]) -> Section:
    guarantees = {name: card.guarantee for name, card in comparison.cards.items()}
    tokens = {name: card.facts.longest_document if card.facts else None for name, card in comparison.cards.items()}
    if task is not None:
        metric, points, comparisons = task.metric, points_of(task, guarantees, tokens), compare_arms(task)
    else:
        known = [measure.name for similarity in similar.values() for measure in similarity.measures]
        metric = next((name for name in (*LIT, *known) if name in known), "")
        comparisons = []
        points = [
            Point(name, guarantees[name], similarity[metric].interval, similarity[metric].floor,
                  similarity[metric].ceiling, tokens=tokens[name])
            for name, similarity in similar.items()
            if name in guarantees and metric
        ]  # fmt: skip
    section = tradeoff_section(measure_tradeoff(metric, points, comparisons))
    missing = [name for name in comparison.releases if name not in guarantees]
    if not missing:
        return section
    sentence = f"{', '.join(missing)}: no FILE.card.json beside it, so nothing is known about its privacy"
    return _with_findings(section, [Finding("Without a card", Light.AMBER, sentence)])


def _with_findings(section: Section, more: Sequence[Finding]) -> Section:
    return replace(section, findings=(*section.findings, *more))
