"""Which two inputs a guarantee keeps apart, and what is left of that for whole texts and with copied punctuation."""

from __future__ import annotations

from enum import Enum

from tacit.errors import NoGuaranteeError


class Adjacency(Enum):
    """Which two inputs an observer is kept from telling apart."""

    ANY_TWO = "any two inputs"
    SAME_SET = "any two words of the same public output set"
    SAME_MARKS = "any two words, as long as the detector marks the other words of the text alike"
    SAME_PUNCTUATION = "any two words, neither of them a punctuation mark that is kept"
    SAME_SET_AND_PUNCTUATION = (
        "any two words of the same public output set, neither of them a punctuation mark that is kept"
    )
    SAME_MARKS_AND_PUNCTUATION = (
        "any two words, neither of them a punctuation mark that is kept, as long as the detector marks the other words "
        "of the text alike"
    )
    EQUAL_LENGTH = "any two texts with the same number of tokens"
    EQUAL_LENGTH_SAME_SETS = "any two texts whose words lie in the same public output sets, position by position"
    EQUAL_LENGTH_SAME_PUNCTUATION = (
        "any two texts with the same number of tokens and the same kept punctuation marks in the same places"
    )
    EQUAL_LENGTH_SAME_SETS_AND_PUNCTUATION = (
        "any two texts with the same kept punctuation marks in the same places, whose other words lie in the same "
        "public output sets, position by position"
    )
    ONE_SENTENCE = "any two documents with the same number of sentences that differ in one of them"
    EQUAL_SENTENCES = "any two documents with the same number of sentences"
    ADD_REMOVE = "data sets that differ by adding or removing one unit"
    REPLACE_ONE = "data sets that differ by replacing one unit"
    SAME_REDACTED = "data sets that differ by replacing one unit with another that has the same redacted text"
    SAME_SPANS = "any two words inside a detected span, as long as the detector finds the same spans in both texts"

    @property
    def within_sets(self) -> bool:
        """Whether a word hides only among the words of its own public output set."""
        return self in _WITHIN_SETS

    @property
    def keeps_punctuation(self) -> bool:
        """Whether punctuation marks are copied, so that only texts with the same marks are hidden among each other."""
        return self in _KEPT_PUNCTUATION

    @property
    def with_kept_punctuation(self) -> Adjacency:
        """The adjacency that remains of this one between words when punctuation marks are copied."""
        if self.keeps_punctuation:
            return self
        if self not in _SAME_PUNCTUATION:
            raise NoGuaranteeError(
                "punctuation-not-proven",
                "nothing is proven about copied punctuation marks between {adjacency}",
                adjacency=self.value,
            )
        return _SAME_PUNCTUATION[self]


TEXT_ADJACENCY = {
    Adjacency.ANY_TWO: Adjacency.EQUAL_LENGTH,
    Adjacency.SAME_SET: Adjacency.EQUAL_LENGTH_SAME_SETS,
    Adjacency.SAME_MARKS: Adjacency.EQUAL_LENGTH,
    Adjacency.SAME_PUNCTUATION: Adjacency.EQUAL_LENGTH_SAME_PUNCTUATION,
    Adjacency.SAME_SET_AND_PUNCTUATION: Adjacency.EQUAL_LENGTH_SAME_SETS_AND_PUNCTUATION,
    Adjacency.SAME_MARKS_AND_PUNCTUATION: Adjacency.EQUAL_LENGTH_SAME_PUNCTUATION,
    Adjacency.ONE_SENTENCE: Adjacency.EQUAL_SENTENCES,
}
_SAME_PUNCTUATION = {
    Adjacency.ANY_TWO: Adjacency.SAME_PUNCTUATION,
    Adjacency.SAME_SET: Adjacency.SAME_SET_AND_PUNCTUATION,
    Adjacency.SAME_MARKS: Adjacency.SAME_MARKS_AND_PUNCTUATION,
    Adjacency.EQUAL_LENGTH: Adjacency.EQUAL_LENGTH_SAME_PUNCTUATION,
    Adjacency.EQUAL_LENGTH_SAME_SETS: Adjacency.EQUAL_LENGTH_SAME_SETS_AND_PUNCTUATION,
}
_KEPT_PUNCTUATION = frozenset(_SAME_PUNCTUATION.values())
_WITHIN_SETS = frozenset(
    {
        Adjacency.SAME_SET,
        Adjacency.SAME_SET_AND_PUNCTUATION,
        Adjacency.EQUAL_LENGTH_SAME_SETS,
        Adjacency.EQUAL_LENGTH_SAME_SETS_AND_PUNCTUATION,
    }
)
