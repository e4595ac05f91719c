"""Verdicts on statements about results: agree, disagree, undecided, not testable."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Final

from tacit.experiments.declared import Strict
from tacit.report import Light


class Word(StrEnum):
    """The four verdicts on a statement."""

    AGREE = "agree"
    DISAGREE = "disagree"
    UNDECIDED = "undecided"
    NOT_TESTABLE = "not testable"


TESTED: Final = (Word.AGREE, Word.DISAGREE)
OWN_WORDS: Final = {Word.AGREE: "holds", Word.DISAGREE: "does not hold"}
"""What is said of a statement of our own: only with somebody else one can agree."""


class Judgment(Strict):
    """The outcome of checking a statement.

    detail   what was measured, or why it cannot be tested
    leaning  of an undecided one: whether the means stand as stated
    check    what was compared, in words
    """

    word: Word
    detail: str
    leaning: bool | None = None
    check: str = ""


def not_testable(reason: str, check: str = "") -> Judgment:
    return Judgment(word=Word.NOT_TESTABLE, detail=reason, check=check)


def all_of(*judgments: Judgment) -> Judgment:
    """The judgment on a statement of several parts: it agrees if all of them do, and disagrees if one of them does."""
    words = [judgment.word for judgment in judgments]
    detail = "; ".join(judgment.detail for judgment in judgments)
    check = "; ".join(judgment.check for judgment in judgments if judgment.check)
    if Word.NOT_TESTABLE in words:
        return not_testable(next(j.detail for j in judgments if j.word is Word.NOT_TESTABLE), check)
    if Word.DISAGREE in words:
        return Judgment(word=Word.DISAGREE, detail=detail, check=check)
    if Word.UNDECIDED in words:
        leaning = all(judgment.leaning is not False for judgment in judgments)
        return Judgment(word=Word.UNDECIDED, detail=detail, leaning=leaning, check=check)
    return Judgment(word=Word.AGREE, detail=detail, check=check)


class FindingVerdict(Judgment):
    """A judgment with the statement it is about.

    ours         nobody has published the statement: it is counted apart
    explanation  why we do not agree, where that is known
    mixed        why epsilons that mean different things are compared, where they are
    """

    statement: str
    source: str
    ours: bool = False
    explanation: str = ""
    mixed: str = ""

    @property
    def shown(self) -> str:
        """The verdict in words."""
        return OWN_WORDS.get(self.word, self.word.value) if self.ours else self.word.value

    @property
    def light(self) -> Light:
        if self.word is Word.AGREE:
            return Light.GREEN
        if self.word not in TESTED:
            return Light.NONE
        return Light.AMBER if self.explanation else Light.RED


def of_source(verdicts: Sequence[FindingVerdict], *, ours: bool) -> list[FindingVerdict]:
    """Those on published statements, or those on our own."""
    return [verdict for verdict in verdicts if verdict.ours is ours]


def summary(verdicts: Sequence[FindingVerdict]) -> str:
    """How many published findings hold, and how many the sample is too small for; apart from them, those of ours."""
    published, own = (of_source(verdicts, ours=ours) for ours in (False, True))
    parts = [_counted(published, "testable published findings agree")] if published or not own else []
    parts += [_counted(own, "testable findings of our own hold")] if own else []
    return "; ".join(parts)


def _counted(verdicts: Sequence[FindingVerdict], what: str) -> str:
    agreed = sum(verdict.word is Word.AGREE for verdict in verdicts)
    tested = sum(verdict.word in TESTED for verdict in verdicts)
    undecided = [verdict for verdict in verdicts if verdict.word is Word.UNDECIDED]
    share = f" ({agreed / tested:.0%})" if tested else ""
    leaning = sum(bool(verdict.leaning) for verdict in undecided)
    chance = f", {len(undecided)} undecided (chance could have made the difference; {leaning} lean this way)"
    counted = f"{agreed} of {tested} {what}{share}{chance if undecided else ''}"
    return f"{counted}, {len(verdicts) - tested - len(undecided)} not testable"
