"""The decision table of the guide: which way is recommended for which answers, and what each way promises.

Everything here is data. `way_for` reads the table; a test goes through all combinations of answers and compares every
promise with that of the code that keeps it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from tacit.guarantee import Model, Notion, Unit
from tacit.jobs.guide.questions import Purpose, Reader, Secret


class Way(StrEnum):
    """The ways that can be recommended."""

    MATCHING = "matching"
    SKETCH = "sketch"
    TOPICS = "topics"
    TRAINING = "training"
    FEDERATED = "federated"
    CODEBOOK = "codebook"
    WORDS = "words"


@dataclass(frozen=True)
class WayRule:
    """Answers that lead to a way; `several`: whether the person whom the promise is made to has several rows."""

    way: Way
    secrets: frozenset[Secret]
    readers: frozenset[Reader]
    purposes: frozenset[Purpose]
    several: frozenset[bool] = frozenset({False, True})

    def fits(self, secret: Secret, reader: Reader, purpose: Purpose, *, several: bool) -> bool:
        return (
            secret in self.secrets and reader in self.readers and purpose in self.purposes and several in self.several
        )


ANY_READER: Final = frozenset(Reader)
ANY_PURPOSE: Final = frozenset(Purpose)
WHOLE_TEXTS: Final = frozenset({Secret.TEXT, Secret.PERSON})
CURATOR: Final = frozenset({Reader.CURATOR})

RULES: Final = (
    WayRule(Way.WORDS, frozenset({Secret.WORD}), ANY_READER, ANY_PURPOSE),
    WayRule(Way.CODEBOOK, WHOLE_TEXTS, frozenset({Reader.NOBODY}), ANY_PURPOSE),
    WayRule(Way.MATCHING, WHOLE_TEXTS, CURATOR, frozenset({Purpose.SHARE})),
    WayRule(Way.SKETCH, WHOLE_TEXTS, CURATOR, frozenset({Purpose.COLLECT})),
    WayRule(Way.TOPICS, WHOLE_TEXTS, CURATOR, frozenset({Purpose.TOPICS})),
    WayRule(Way.TRAINING, frozenset({Secret.TEXT}), CURATOR, frozenset({Purpose.CLASSIFIER})),
    WayRule(Way.TRAINING, frozenset({Secret.PERSON}), CURATOR, frozenset({Purpose.CLASSIFIER}), frozenset({False})),
    WayRule(Way.FEDERATED, frozenset({Secret.PERSON}), CURATOR, frozenset({Purpose.CLASSIFIER}), frozenset({True})),
)
"""For every combination of answers exactly one rule fits."""


def way_for(secret: Secret, reader: Reader, purpose: Purpose, *, several: bool) -> Way:
    """The way that the table recommends.

    >>> way_for(Secret.TEXT, Reader.CURATOR, Purpose.SHARE, several=False).value
    'matching'
    """
    (rule,) = [rule for rule in RULES if rule.fits(secret, reader, purpose, several=several)]
    return rule.way


# Budgets --------------------------------------------------------------------------------------------------------------

EPSILON: Final = {
    Way.MATCHING: 1.0,
    Way.SKETCH: 1.0,
    Way.TOPICS: 1.0,
    Way.TRAINING: 3.0,
    Way.FEDERATED: 2.0,
    Way.CODEBOOK: 3.0,
    Way.WORDS: 2.0,
}
"""The budget that a command gets if nobody names one. Of a text or a person at most 4, which can still be explained to
the person concerned; of a word, per unit of distance, the one at which the best attacker names a word in ten."""
TOPIC_COUNT: Final = 64
FEWEST_ROWS: Final = 500
"""The smallest file that was measured: below, a warning stands in place of an expectation."""


# Promises -------------------------------------------------------------------------------------------------------------


class Gap(StrEnum):
    """The gaps that promises have, as code knows them."""

    LABEL_LIST = "label-list"
    ROW_COUNT = "row-count"
    SEVERAL_ROWS = "several-rows"
    CURATOR_SEES = "curator-sees"
    LABELS = "labels"
    LENGTHS = "lengths"
    WHOLE_TEXT = "whole-text"
    WEIGHTS = "weights"
    WHICH_ROW = "which-row"


GAPS: Final = {
    Gap.LABEL_LIST: "which labels there are: their names are taken as public knowledge",
    Gap.ROW_COUNT: "roughly how many {units} there are, because delta is chosen by their number",
    Gap.SEVERAL_ROWS: "a person with several rows: the budgets of the rows add up ({total} for {rows} rows)",
    Gap.CURATOR_SEES: "the file itself: whoever holds it sees everything, before and after",
    Gap.LABELS: "the column '{label}', which is copied as it is",
    Gap.LENGTHS: "how many words each text has",
    Gap.WHOLE_TEXT: "a whole text: its words add up, and for a text of 20 words the formal bound protects nothing",
    Gap.WEIGHTS: "what the public model had read before it was trained here",
    Gap.WHICH_ROW: "how many rows there are and in which order: every row of the release stands for one original",
}
"""Each gap in words."""


@dataclass(frozen=True)
class Promise:
    """The promise of a way.

    model, notion  of the guarantee that the command makes
    unit           what one secret is, where no person is named; `person_unit`, where a column names them
    covered        the promise in words
    gaps           what is not covered, always; gaps that depend on options are added when the command is known
    """

    model: Model
    notion: Notion
    unit: Unit
    covered: str
    gaps: tuple[Gap, ...]
    person_unit: Unit | None = Unit.USER


_CENTRAL_GAPS: Final = (Gap.ROW_COUNT, Gap.CURATOR_SEES)
_SEES: Final = "Whoever sees {result}, and whatever else they know, can hardly tell whether {unit} was in the file: "
_ODDS: Final = "the odds change by at most a factor of {odds}, up to a small delta. "

PROMISES: Final = {
    Way.MATCHING: Promise(
        Model.CENTRAL, Notion.APPROXIMATE, Unit.RECORD,
        _SEES + _ODDS + "Text, length and label are covered. All sentences are public ones, none is of the file.",
        _CENTRAL_GAPS,
    ),
    Way.SKETCH: Promise(
        Model.CENTRAL, Notion.APPROXIMATE, Unit.RECORD,
        _SEES + _ODDS + "Text, length and label are covered, and so is whatever is made of the sketch later.",
        _CENTRAL_GAPS,
    ),
    Way.TOPICS: Promise(
        Model.CENTRAL, Notion.APPROXIMATE, Unit.RECORD,
        _SEES + _ODDS + "Text, length and topic are covered; the topics themselves are public.",
        _CENTRAL_GAPS,
    ),
    Way.TRAINING: Promise(
        Model.CENTRAL, Notion.APPROXIMATE, Unit.RECORD,
        _SEES + _ODDS + "Text and label are covered, for the model and everything that it predicts.",
        (*_CENTRAL_GAPS, Gap.WEIGHTS), person_unit=None,
    ),
    Way.FEDERATED: Promise(
        Model.CENTRAL, Notion.APPROXIMATE, Unit.USER,
        _SEES + _ODDS + "All rows of a person are covered together.",
        (*_CENTRAL_GAPS, Gap.WEIGHTS),
    ),
    Way.CODEBOOK: Promise(
        Model.LOCAL, Notion.PURE, Unit.DOCUMENT,
        "Whatever {unit}, seeing what is released in its place changes the odds between any two possibilities by "
        "at most a factor of {odds}. Nobody but the author has to be trusted; what a text says, its length, style and "
        "names are covered.",
        (Gap.WHICH_ROW,),
    ),
    Way.WORDS: Promise(
        Model.LOCAL, Notion.METRIC, Unit.TOKEN,
        "Seeing the output changes the odds between two words by at most e^({epsilon} x their distance), each word by "
        "itself: similar words hide each other, and words that have nothing in common do not. Nobody but the author "
        "has to be trusted.",
        (Gap.WHOLE_TEXT, Gap.LENGTHS, Gap.WHICH_ROW), person_unit=None,
    ),
}  # fmt: skip
"""What each way promises."""
