"""A comparison of training sets as a section of a report."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np

from tacit.evaluation import scores as score
from tacit.evaluation.downstream import Arm, Details, DownstreamResult
from tacit.evaluation.learners.base import Text
from tacit.evaluation.scores import Label, SimilarityScores, TaggingScores
from tacit.evaluation.similarity import shortened
from tacit.report import Figure, Finding, Light, Section, Table
from tacit.report.plot import axes, figure

GREEN_FROM, AMBER_FROM = 0.8, 0.4
LARGEST_CONFUSION = 25


# Reporting --------------------------------------------------------------------------------------------------------


def utility_light(kept: float, low: float, floor: float) -> Light:
    if math.isnan(kept):
        return Light.NONE
    if low <= floor or kept < AMBER_FROM:
        return Light.RED
    return Light.GREEN if kept >= GREEN_FROM else Light.AMBER


WHY = (
    f"share kept = (score - floor) / (ceiling - floor); good from {GREEN_FROM:.0%}, look from {AMBER_FROM:.0%}, bad "
    "below or when the interval over test items reaches the floor. The floor needs no text at all; the ceiling is the "
    "same learner trained on the originals"
)


def downstream_section(downstream: DownstreamResult, title: str = "Downstream task", worst: int = 8) -> Section:
    findings = [_finding(downstream, arm) for arm in downstream.on_originals]
    findings += [
        flag.finding(f"trained on {arm.name}")
        for arm in (downstream.ceiling, *downstream.arms)
        for flag in arm.flags
        if arm.tested_on == "original test texts"
    ]
    tables = [_scores_table(downstream)]
    figures: list[Figure] = []
    for arm in (downstream.ceiling, *downstream.on_originals):
        tables += list(_detail_tables(arm))
        if figure := _confusion_figure(arm):
            figures.append(figure)
    tables += [table for arm in downstream.on_originals if (table := worst_cases(downstream, arm, worst)) is not None]
    seeds = (
        f"{len(downstream.seeds)} seeds"
        if len(downstream.seeds) > 1
        else "one run (equal data and seed give an equal result)"
    )
    return Section(
        title,
        f"{downstream.task.capitalize()} with a {downstream.learner}: trained on {downstream.train_rows:,} texts, "
        f"tested on {downstream.test_rows:,} original texts, {seeds}.",
        findings,
        tables,
        figures,
    )


def _finding(downstream: DownstreamResult, arm: Arm) -> Finding:
    kept, floor, top = downstream.kept(arm), downstream.floor.value, downstream.ceiling.value
    numbers = {"value": arm.value, "low": arm.over_items.low, "high": arm.over_items.high, "floor": floor,
               "ceiling": top, "kept": kept, "metric": downstream.metric}  # fmt: skip
    name = f"Usefulness of {arm.name}"
    if downstream.ceiling.over_items.low <= floor or top <= floor:
        return Finding(
            name, Light.AMBER,
            f"this learner does not get beyond the floor of {floor:.3f} even from the originals ({downstream.metric} "
            f"{top:.3f}), so nothing can be said about the release: use more rows or another learner",
            WHY, numbers=numbers,
        )  # fmt: skip
    return Finding(
        name,
        utility_light(kept, arm.over_items.low, floor),
        f"{downstream.metric} {arm.value:.3f} (95 % over items: {arm.over_items.low:.3f} to "
        f"{arm.over_items.high:.3f}), "
        f"{top:.3f} when trained on the originals, floor {floor:.3f}: {kept:.0%} of the gap is kept",
        WHY,
        numbers=numbers,
    )


def _scores_table(downstream: DownstreamResult) -> Table:
    rows: list[list[object]] = [
        ["majority floor", "", downstream.floor.majority, None, None, None, None, None, None],
        ["random floor", "", downstream.floor.random, None, None, None, None, None, None],
    ]
    for arm in (downstream.ceiling, *downstream.arms):
        kept = downstream.kept(arm)
        rows.append([arm.name, arm.tested_on, arm.value, arm.over_seeds.low, arm.over_seeds.high, arm.over_items.low,
                     arm.over_items.high, kept, _second_score(arm.details)])  # fmt: skip
    columns = ["trained on", "tested on", downstream.metric, "seeds from", "seeds to", "items from", "items to",
               "gap kept",
               {"similarity": "Pearson"}.get(downstream.task, "accuracy")]  # fmt: skip
    return Table(
        "Scores", columns, rows,
        "95 % intervals: of the mean over seeds (Student's t), and over test items (bootstrap). The floors are exact.",
    )  # fmt: skip


def _second_score(details: Details) -> float:
    if isinstance(details, SimilarityScores):
        return details.pearson
    return details.tokens.accuracy if isinstance(details, TaggingScores) else details.accuracy


def _detail_tables(arm: Arm) -> list[Table]:
    where = f"trained on {arm.name}, tested on {arm.tested_on}"
    if isinstance(arm.details, SimilarityScores):
        return []
    columns = ["label", "precision", "recall", "F1", "support", "predicted"]
    tables = []
    if isinstance(arm.details, TaggingScores) and arm.details.entities is not None:
        tables.append(Table(f"Entities by type, {where}", columns, _class_rows(arm.details.entities.by_type)))
    tokens = arm.details.tokens if isinstance(arm.details, TaggingScores) else arm.details
    tables.append(Table(f"Scores by class, {where}", columns, _class_rows(tokens.classes)))
    if len(tokens.labels) <= LARGEST_CONFUSION:
        rows = [[str(label), *map(int, row)] for label, row in zip(tokens.labels, tokens.confusion, strict=True)]
        heads = ["truth \\ predicted", *map(str, tokens.labels)]
        tables.append(Table(f"Confusion matrix, {where}", heads, rows, "Counts over all runs."))
    return tables


def _class_rows(classes: Sequence[score.ClassScore]) -> list[list[object]]:
    return [[str(c.label), c.precision, c.recall, c.f1, c.support, c.predicted] for c in classes]


def _confusion_figure(arm: Arm) -> Figure | None:
    details = arm.details.tokens if isinstance(arm.details, TaggingScores) else arm.details
    if isinstance(details, SimilarityScores) or len(details.labels) > LARGEST_CONFUSION:
        return None

    size = 2.6 + 0.32 * len(details.labels)
    canvas, area = axes(size + 0.8, size)
    shares = details.confusion / np.maximum(details.confusion.sum(axis=1, keepdims=True), 1)
    image = area.imshow(shares, cmap="Blues", vmin=0, vmax=1)
    area.grid(False)
    names = [shortened(str(label), 18) for label in details.labels]
    area.set_xticks(range(len(names)), names, rotation=60, ha="right", fontsize=7)
    area.set_yticks(range(len(names)), names, fontsize=7)
    area.set_xlabel("predicted")
    area.set_ylabel("truth")
    canvas.colorbar(image, ax=area, fraction=0.04)
    return figure(
        canvas,
        f"Confusion, trained on {arm.name}",
        "Each row shows how the items of one class were predicted, as shares; a single dark column is a collapse.",
    )


def worst_cases(downstream: DownstreamResult, arm: Arm, count: int) -> Table | None:
    """Test texts that the model trained on originals gets right and the one trained on the release does not."""
    if downstream.task == "tagging" or not count:
        return None
    truth, best, other = downstream.test.labels, downstream.ceiling.runs[0], arm.runs[0]
    if downstream.task == "similarity":
        errors = np.abs(np.asarray(other) - truth) - np.abs(np.asarray(best) - truth)
        places = np.argsort(-errors, kind="stable")[:count].tolist()
    else:
        lost = [i for i in range(len(truth)) if best[i] == truth[i] != other[i]]
        # Frequent confusions first, but one text of each before a second one of any.
        often = Counter((truth[i], other[i]) for i in lost)
        seen: Counter[tuple[Label, Label]] = Counter()
        turns = []
        for i in lost:
            kind = truth[i], other[i]
            turns.append((seen[kind], -often[kind], i))
            seen[kind] += 1
        places = [i for _, _, i in sorted(turns)[:count]]
    if not places:
        return None
    rows = [[i + 1, _shown(downstream.test.texts[i]), truth[i], best[i], other[i]] for i in places]
    return Table(
        f"Test texts lost by training on {arm.name}",
        ["test row", "text", "truth", "trained on originals", f"trained on {arm.name}"],
        rows,
        private=True,
    )


def _shown(text: Text) -> str:
    return shortened(text if isinstance(text, str) else " ‖ ".join(text))
