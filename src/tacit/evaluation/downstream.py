"""What the released texts are still good for: a model is trained on them and tested on original text.

The protocol of DP-BART (Igamberdiev & Habernal 2023): train on the rewritten training (and validation) texts with their
labels, test on the *original* test set. Beside it stand

    ceiling   the same learner, trained on the original texts
    floor     the better of the majority class and of guessing, both exact (`scores`)
    also      the rewritten test set, if there is one: what a user sees who rewrites at prediction time too

    share kept = (score - floor) / (ceiling - floor)

Main scores: macro-F1 (classification, pairs), Spearman's rho (similarity), F1 over entities or macro-F1 over tokens
(tagging). Each comes as a mean over seeds with Student's interval and with a bootstrap interval over test items.
Nothing is tuned, so no budget is spent on choosing settings.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tacit.arrays import Integers
from tacit.errors import BadInputError, BadParameterError
from tacit.evaluation import scores as score
from tacit.evaluation.collapse import Flag, at_floor, prediction_flags, scheme_flags
from tacit.evaluation.learners import Learner, Task
from tacit.evaluation.learners.base import Text, flat_labels
from tacit.evaluation.scores import ClassificationScores, Floor, Interval, Label, SimilarityScores, TaggingScores
from tacit.evaluation.similarity import share_kept, shortened
from tacit.noise.source import public_generator
from tacit.progress import WorkProgress
from tacit.report import Figure, Finding, Light, Section, Table

GREEN_FROM, AMBER_FROM = 0.8, 0.4
LARGEST_CONFUSION = 25
Details = ClassificationScores | SimilarityScores | TaggingScores


@dataclass(frozen=True)
class Labeled:
    """Texts (strings, pairs of strings, or token lists) with their labels (names, numbers, or tag lists)."""

    texts: Sequence[Text]
    labels: Sequence[Any]

    def __len__(self) -> int:
        return len(self.texts)

    def at(self, places: Sequence[int]) -> Labeled:
        return Labeled([self.texts[i] for i in places], [self.labels[i] for i in places])


@dataclass(frozen=True)
class Arm:
    """One training set, tested on one test set.

    runs         predictions, one list per seed
    over_seeds   mean of the main score and Student's interval
    over_items   the same mean, with the bootstrap interval over test items
    details      every score, over all runs together
    """

    name: str
    tested_on: str
    truth: Sequence[Any] = field(repr=False)
    runs: tuple[Sequence[Any], ...] = field(repr=False)
    over_seeds: Interval
    over_items: Interval
    details: Details = field(repr=False)
    flags: tuple[Flag, ...] = ()

    @property
    def value(self) -> float:
        return self.over_seeds.value


@dataclass(frozen=True)
class DownstreamResult:
    """The result of one task with one learner: the ceiling, and an arm or two for each release."""

    task: Task
    learner: str
    metric: str
    seeds: tuple[int, ...]
    train_rows: int
    test_rows: int
    floor: Floor
    ceiling: Arm
    arms: tuple[Arm, ...]
    test: Labeled = field(repr=False)

    def kept(self, arm: Arm) -> float:
        return share_kept(arm.value, self.floor.value, self.ceiling.value)

    @property
    def on_originals(self) -> tuple[Arm, ...]:
        return tuple(arm for arm in self.arms if arm.tested_on == "original test texts")


# Checking and splitting -------------------------------------------------------------------------------------------


def check_task(task: Task, train: Labeled, test: Labeled) -> None:
    """Errors that would otherwise come out as a strange score."""
    for name, part in (("training", train), ("test", test)):
        if not len(part):
            raise BadInputError("no-rows", "there are no {name} rows: give a file with labeled texts", name=name)
        if len(part.texts) != len(part.labels):
            raise BadInputError(
                "wrong-number-of-labels",
                "there are {texts:,} {name} texts but {labels:,} labels",
                texts=len(part.texts),
                name=name,
                labels=len(part.labels),
            )
    if task == "similarity":
        _check_numbers(train, test)
        return
    if task == "tagging":
        for name, part in (("training", train), ("test", test)):
            for row, (tokens, tags) in enumerate(zip(part.texts, part.labels, strict=True), start=1):
                if len(tokens) != len(tags):
                    raise BadInputError(
                        "wrong-number-of-tags",
                        "{name} row {row} has {tokens} tokens but {tags} tags: tagging needs one tag per token",
                        name=name,
                        row=row,
                        tokens=len(tokens),
                        tags=len(tags),
                    )
    known, wanted = set(flat_labels(task, train.labels)), set(flat_labels(task, test.labels))
    # Counts, never the labels themselves: a message is kept and printed, and a label can be a private text.
    if len(known) < 2:
        only = "one label only" if known else "no label at all"
        raise BadInputError(
            "too-few-classes",
            "the training rows have {labels}: a task needs at least two different labels",
            labels=only,
        )
    if task != "tagging" and len(wanted) < 2:
        raise BadInputError(
            "too-few-classes", "the test rows have one label only: scores need at least two different labels there"
        )
    if unseen := len(wanted - known):
        are, them = ("is", "it") if unseen == 1 else ("are", "them")
        raise BadInputError(
            "labels-not-in-training",
            "{unseen:,} of the {wanted:,} labels of the test rows {are} not in the training rows, so nothing can "
            "learn {them}: leave such rows out, or add training rows",
            unseen=unseen,
            wanted=len(wanted),
            are=are,
            them=them,
        )


def _check_numbers(train: Labeled, test: Labeled) -> None:
    for name, part in (("training", train), ("test", test)):
        if len({float(label) for label in part.labels}) < 2:
            raise BadInputError(
                "too-few-classes", "all {name} rows have the same similarity: give rows that differ", name=name
            )


def split_rows(task: Task, labels: Sequence[object], share: float = 0.2, seed: int = 0) -> tuple[list[int], list[int]]:
    """(training places, test places): a fixed public split, class by class for classes.

    A class with a single row goes to training, since nothing can be tested that was not learned.
    """
    if len(labels) < 5:
        raise BadInputError(
            "too-few-rows",
            "{rows} labeled rows are too few to split: give at least 5, or a test file ({option.test})",
            rows=len(labels),
        )
    order = public_generator(seed).permutation(len(labels)).tolist()
    if task in ("similarity", "tagging"):
        count = max(1, round(share * len(labels)))
        return sorted(order[count:]), sorted(order[:count])
    groups: dict[object, list[int]] = {}
    for place in order:
        groups.setdefault(labels[place], []).append(place)
    test = [
        place for group in groups.values() if len(group) > 1 for place in group[: max(1, round(share * len(group)))]
    ]
    chosen = set(test)
    return sorted(place for place in order if place not in chosen), sorted(test)


# Running ----------------------------------------------------------------------------------------------------------


def evaluate_downstream(
    task: Task,
    learner: Learner,
    original: Labeled,
    releases: Mapping[str, Labeled],
    test: Labeled,
    released_tests: Mapping[str, Labeled] | None = None,
    seeds: Sequence[int] = (1, 2, 3),
    progress: WorkProgress | None = None,
    resamples: int = score.RESAMPLES,
) -> DownstreamResult:
    """Train on the originals and on each release, test on original text (and on rewritten text where it is given)."""
    if not seeds:
        raise BadParameterError("no-seed", "give at least one seed")
    if "original" in releases:
        raise BadParameterError(
            "release-name-taken", "'original' is the name of the original texts: call the release otherwise"
        )
    check_task(task, original, test)
    for part in releases.values():
        check_task(task, part, test)
    used = tuple(seeds) if learner.random else (seeds[0],)
    released_tests = released_tests or {}
    floor = floor_of(task, original.labels, test.labels)
    total, done = (1 + len(releases)) * len(used), 0
    arms: list[Arm] = []
    ceiling: Arm | None = None
    for name, part in (("original", original), *releases.items()):
        tests = {"original test texts": test}
        if name in released_tests:
            tests["rewritten test texts"] = released_tests[name]
        predictions: dict[str, list[Sequence[Any]]] = {where: [] for where in tests}
        for seed in used:
            if progress is not None:
                progress(f"training on {name}", done, total)
            learner.fit(part.texts, part.labels, seed)
            for where, tested in tests.items():
                predictions[where].append(learner.predict(tested.texts))
            done += 1
        for where, tested in tests.items():
            arm = make_arm(task, name, where, part.labels, tested.labels, predictions[where], floor, resamples)
            if ceiling is None:
                ceiling = arm
            else:
                arms.append(arm)
    assert ceiling is not None
    return DownstreamResult(
        task, learner.name, metric_name(task, test.labels), used, len(original), len(test), floor, ceiling,
        tuple(arms), test,
    )  # fmt: skip


def metric_name(task: Task, truth: Sequence[Any]) -> str:
    if task == "similarity":
        return "Spearman"
    if task == "tagging":
        return "entity F1" if score.marks_entities(truth) else "macro-F1 of tokens"
    return "macro-F1"


def floor_of(task: Task, train: Sequence[Any], truth: Sequence[Any]) -> Floor:
    if task == "similarity":
        return score.SIMILARITY_FLOOR
    return score.tagging_floor(train, truth) if task == "tagging" else score.classification_floor(train, truth)


def item_statistic(task: Task, truth: Sequence[Any], runs: Sequence[Sequence[Any]]) -> Callable[[Integers], float]:
    """The main score on some of the test items, mean over the runs: what a bootstrap over items needs."""
    if task == "similarity":
        return score.spearman_of_items(truth, runs)
    if task == "tagging":
        by_entity = score.marks_entities(truth)
        return score.entity_f1_of_items(truth, runs) if by_entity else score.token_f1_of_items(truth, runs)
    return score.macro_f1_of_items(truth, runs)


def make_arm(
    task: Task,
    name: str,
    tested_on: str,
    train: Sequence[Any],
    truth: Sequence[Any],
    runs: Sequence[Sequence[Any]],
    floor: Floor,
    resamples: int = score.RESAMPLES,
) -> Arm:
    """Scores, intervals and flags of some runs."""
    everything = np.arange(len(truth))
    values = [item_statistic(task, truth, [run])(everything) for run in runs]
    statistic = item_statistic(task, truth, runs)
    over_items = score.bootstrap_interval(statistic, len(truth), resamples=resamples)
    pooled_truth = [label for _ in runs for label in truth]
    pooled = [label for run in runs for label in run]
    details: Details
    flags: list[Flag] = []
    if task == "similarity":
        details = score.similarity_scores(pooled_truth, pooled)
    elif task == "tagging":
        details = score.tagging_scores(pooled_truth, pooled)
        flags += [*scheme_flags(train, truth), *prediction_flags(details.tokens, "tag")]
    else:
        details = score.classification_scores(pooled_truth, pooled)
        flags += prediction_flags(details)
    low = at_floor(over_items.low, over_items.value, floor)
    flags += [low] if low is not None and not any(flag.severe for flag in flags) else []
    return Arm(name, tested_on, truth, tuple(runs), score.t_interval(values), over_items, details, tuple(flags))


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
    from tacit.report.plot import axes, figure

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
