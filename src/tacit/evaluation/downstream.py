"""The use of released texts for a downstream task: a model is trained on them and tested on original text.

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
from tacit.evaluation.scores import ClassificationScores, Floor, Interval, SimilarityScores, TaggingScores
from tacit.evaluation.similarity import share_kept
from tacit.noise.source import public_generator
from tacit.progress import WorkProgress

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
