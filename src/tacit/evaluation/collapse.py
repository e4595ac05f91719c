"""Flags for results that look like numbers and are nothing: collapse of a model, of a release, of a tag scheme.

A classifier that always gives the majority class, a rewriter that writes one sentence for everybody, a tagger that
only says "O", training tags in IOB2 and test tags in IOB1: each gives a score that can be printed in a table, and
accuracy or micro-F1 hardly shows it. (Such tables were published; the tests use some of them.) Each rule here is a
small pure function with its threshold beside it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from tacit.evaluation.scores import (
    OUTSIDE,
    ClassificationScores,
    Floor,
    Label,
    marks_entities,
    most_frequent,
    scores_of_confusion,
)
from tacit.report import Finding, Light
from tacit.text.tokens import split

MAJORITY_SHARE = 0.95
"""A model that gives one class to this share of the items votes with the majority, unless its score says otherwise."""
NEAR_FLOOR = 0.02
"""A macro-F1 no more than this above the majority floor cannot be told from it in a table with two digits."""
EMPTY_SHARE = 0.05
SAME_OUTPUT_SHARE = 0.5
LOOP_SHARE = 0.05
MIXED_SHARE = 0.02
"""Below this share of the entities, the other scheme counts as slips of the annotators."""

LOOP_TOKENS = 8
LOOP_REPEATS = 4
LONGEST_LOOP = 4


@dataclass(frozen=True)
class Flag:
    """One sign of collapse. `severe`: the numbers beside it mean nothing; else they need a second look."""

    name: str
    sentence: str
    share: float
    severe: bool
    threshold: str

    def finding(self, where: str = "") -> Finding:
        return Finding(
            f"{self.name}{f', {where}' if where else ''}",
            Light.RED if self.severe else Light.AMBER,
            self.sentence,
            self.threshold,
            numbers={"share": self.share},
        )


# Predictions ------------------------------------------------------------------------------------------------------


def prediction_flags(scores: ClassificationScores, what: str = "class") -> list[Flag]:
    """Majority voting and classes that are never predicted, from a confusion matrix."""
    return [flag for flag in (majority_voting(scores, what), never_predicted(scores, what)) if flag is not None]


def majority_voting(scores: ClassificationScores, what: str = "class") -> Flag | None:
    """One label for (nearly) all, and no better for it than a constant answer."""
    present = [c for c in scores.classes if c.support]
    if not scores.items or len(present) < 2:
        return None
    top = max(scores.classes, key=lambda c: c.predicted)
    share = top.predicted / scores.items
    constant = 2 * top.support / (top.support + scores.items) / (len(present) + (top.support == 0))
    if share < MAJORITY_SHARE or scores.macro_f1 > constant + NEAR_FLOOR:
        return None
    name = "All one tag" if what == "tag" else "Majority voting"
    return Flag(
        name,
        f"{share:.1%} of the predictions are '{top.label}', which {top.support / scores.items:.1%} of the items are; "
        f"macro-F1 {scores.macro_f1:.3f}, and {constant:.3f} for that answer alone",
        share,
        True,
        f"flagged from {MAJORITY_SHARE:.0%} of one {what}, when macro-F1 is within {NEAR_FLOOR} of always saying it",
    )


def never_predicted(scores: ClassificationScores, what: str = "class") -> Flag | None:
    missing = scores.never_predicted
    if not missing:
        return None
    present = [c for c in scores.classes if c.support]
    items = sum(c.support for c in present if c.label in missing) / scores.items
    listed = ", ".join(f"'{label}'" for label in missing[:8]) + (" …" if len(missing) > 8 else "")
    plural = f"{what}es" if what == "class" else f"{what}s"
    return Flag(
        f"{plural.capitalize()} never predicted",
        f"{len(missing)} of {len(present)} {plural} are never predicted ({listed}); {items:.1%} of the items have one",
        len(missing) / len(present),
        False,
        f"flagged from one {what} on: accuracy does not show it",
    )


def at_floor(low: float, value: float, floor: Floor) -> Flag | None:
    """A score that was not shown to be better than not looking at the text: its interval reaches down to the floor."""
    lowest = value if low != low else low
    if lowest > floor.value:
        return None
    return Flag(
        "At the floor",
        f"the score {value:.3f} (interval from {lowest:.3f}) was not shown to be better than {floor.value:.3f}, which "
        "needs no text",
        1.0,
        True,
        "flagged when the interval over test items reaches the better of the majority and the random floor",
    )


# Released texts ---------------------------------------------------------------------------------------------------


def text_flags(originals: Sequence[str], releases: Sequence[str]) -> list[Flag]:
    """Flags for faults of the released texts themselves, beyond what the originals do too."""
    flags = (empty_output(originals, releases), one_output(originals, releases), token_loops(originals, releases))
    return [flag for flag in flags if flag is not None]


def empty_output(originals: Sequence[str], releases: Sequence[str]) -> Flag | None:
    before, after = _share_empty(originals), _share_empty(releases)
    if after - before < EMPTY_SHARE:
        return None
    return Flag(
        "Empty output",
        f"{after:.1%} of the released texts are empty or hold punctuation only ({before:.1%} of the originals)",
        after,
        after >= SAME_OUTPUT_SHARE,
        f"flagged from {EMPTY_SHARE:.0%} more than among the originals",
    )


def one_output(originals: Sequence[str], releases: Sequence[str]) -> Flag | None:
    if len(releases) < 2:
        return None
    before, after = _share_commonest(originals), _share_commonest(releases)
    if after < SAME_OUTPUT_SHARE or after <= before:
        return None
    return Flag(
        "One output for all",
        f"{after:.1%} of the released texts are one and the same text; {len(set(releases)):,} different ones for "
        f"{len(set(originals)):,} originals",
        after,
        True,
        f"flagged from {SAME_OUTPUT_SHARE:.0%}",
    )


def token_loops(originals: Sequence[str], releases: Sequence[str]) -> Flag | None:
    before = _mean(map(is_loop, originals), len(originals))
    after = _mean(map(is_loop, releases), len(releases))
    if after - before < LOOP_SHARE:
        return None
    return Flag(
        "Repeated words",
        f"{after:.1%} of the released texts repeat a few words over and over ({before:.1%} of the originals)",
        after,
        after >= SAME_OUTPUT_SHARE,
        f"a text counts if at least half of it is one to {LONGEST_LOOP} words said {LOOP_REPEATS} times or more in a "
        f"row; flagged from {LOOP_SHARE:.0%} more than among the originals",
    )


def is_loop(text: str) -> bool:
    """Whether half of a text of some length is a short phrase said again and again."""
    tokens = split(text)
    if len(tokens) < LOOP_TOKENS:
        return False
    return any(
        run + size >= max(LOOP_REPEATS * size, len(tokens) / 2)
        for size in range(1, LONGEST_LOOP + 1)
        if (run := _longest_run(tokens, size))
    )


def _longest_run(tokens: Sequence[str], period: int) -> int:
    """The longest stretch in which every token equals the one `period` before it."""
    best = run = 0
    for token, before in zip(tokens[period:], tokens, strict=False):
        run = run + 1 if token == before else 0
        best = max(best, run)
    return best


# Tags -------------------------------------------------------------------------------------------------------------


def tag_scheme(sequences: Sequence[Sequence[str]]) -> str:
    """ "IOB2" (each entity begins with B), "IOB1" (B only between two neighbors of one type), "IO" (no B), "BIOES",
    "mixed", or "plain" for tags that mark no entities."""
    if not marks_entities(sequences):
        return "plain"
    if any(tag[:2] in ("E-", "S-", "L-", "U-") for tags in sequences for tag in tags):
        return "BIOES"
    starts: Counter[str] = Counter()
    neighbors = 0
    for tags in sequences:
        for before, tag in pairwise([OUTSIDE, *tags]):
            if tag == OUTSIDE:
                continue
            if before[2:] == tag[2:] and before != OUTSIDE:
                neighbors += tag[0] == "B"
            else:
                starts[tag[0]] += 1
    total = starts["B"] + starts["I"]
    if min(starts["B"], starts["I"]) >= MIXED_SHARE * total:
        return "mixed"
    if starts["B"] > starts["I"]:
        return "IOB2"
    return "IOB1" if neighbors else "IO"


def scheme_flags(train: Sequence[Sequence[str]], test: Sequence[Sequence[str]]) -> Iterator[Flag]:
    first, second = tag_scheme(train), tag_scheme(test)
    if first == second != "mixed" or {first, second} == {"IOB1", "IO"}:
        return
    yield Flag(
        "Mixed tag schemes",
        f"the training tags are written in {_scheme(first)} and the test tags in {_scheme(second)}: a model that is "
        "right about every entity still gets its prefixes wrong; convert both to IOB2",
        1.0,
        True,
        f"flagged when the way in which entities begin differs between the splits, or within one in more than "
        f"{MIXED_SHARE:.0%} of the entities",
    )


def flags_of_confusion(confusion: Sequence[Sequence[int]], labels: Sequence[Label], what: str = "class") -> list[Flag]:
    """The same flags for a table somebody else has printed."""
    return prediction_flags(scores_of_confusion(np.asarray(confusion, dtype=np.int64), labels), what)


def _scheme(name: str) -> str:
    return {"mixed": "two schemes at once", "plain": "no scheme for entities"}.get(name, name)


def _share_empty(texts: Sequence[str]) -> float:
    return _mean((not any(character.isalnum() for character in text) for text in texts), len(texts))


def _share_commonest(texts: Sequence[str]) -> float:
    return texts.count(most_frequent(texts)) / len(texts) if texts else 0.0


def _mean(values: Iterator[bool] | Sequence[bool], count: int) -> float:
    return sum(values) / count if count else 0.0
