"""Numbers beside the sums of a sketch: tables of pairs of labels, and what is counted of texts.

The sums of a sketch belong to one label each. Some numbers belong to none: how many rows have a *pair* of values of two
label columns (`tacit.matching.marginals`), how many texts are about so long (`tacit.matching.documents`). They
stand beside the sums, as one list of whole numbers, in the same release with the same noise.

Theorem. Adding or removing one row moves the sums and the numbers beside them together by at most 1 in length.

Proof. A row adds its features and its count to K lines of the sums (one per label column, so K = 1 with one column),
P steps to one cell of each of its T tables, and D steps to the number of texts of its length. With the bounds B_b of
the blocks and A of the count in steps, the squared length of all of it is at most

    K (A^2 + sum of B_b^2) + T P^2 + D^2

and `check_room` refuses, in integer arithmetic, whatever makes this larger than GRID^2. A user's rows are shortened
together, numbers beside the sums included (`tacit.matching.sums`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from tacit.arrays import Integers
from tacit.errors import BadParameterError
from tacit.matching.features import L1, FeatureMap, TextFeatures
from tacit.matching.labels import PublicLabels
from tacit.matching.whole_numbers import GRID, bound_of


@dataclass(frozen=True)
class SideEntries:
    """Steps that rows add to numbers beside the sums: (row, place, steps), one each."""

    rows: Integers
    places: Integers
    steps: Integers

    @classmethod
    def none(cls) -> SideEntries:
        empty = np.zeros(0, dtype=np.int64)
        return cls(empty, empty, empty)


@runtime_checkable
class SidedLabels(Protocol):
    """Labels in several columns: a row adds to a line of each, and to tables of pairs."""

    @property
    def lines_per_row(self) -> int: ...

    @property
    def side_size(self) -> int: ...

    @property
    def side_squares(self) -> int:
        """The largest squared length of what a row adds to the tables, in steps."""
        ...

    def side_entries(self, lines: Integers) -> SideEntries: ...


@runtime_checkable
class SidedMap(Protocol):
    """A feature map that also counts something of each text."""

    @property
    def side_size(self) -> int: ...

    @property
    def side_squares(self) -> int: ...

    def side_entries(self, added: TextFeatures) -> SideEntries: ...


def side_size(rule: PublicLabels, feature_map: FeatureMap) -> int:
    """How many numbers stand beside the sums: those of the labels first, then those of the map."""
    return sum(each.side_size for each in _sided(rule, feature_map))


def map_side_size(feature_map: FeatureMap) -> int:
    """How many of them belong to the feature map: the last ones."""
    return feature_map.side_size if isinstance(feature_map, SidedMap) else 0


def lines_per_row(rule: PublicLabels) -> int:
    """To how many lines of the sums a row is added."""
    return rule.lines_per_row if isinstance(rule, SidedLabels) else 1


def side_entries(rule: PublicLabels, lines: Integers, feature_map: FeatureMap, added: TextFeatures) -> SideEntries:
    """The steps that rows with these lines and features add beside the sums."""
    parts, offset = [], 0
    if isinstance(rule, SidedLabels):
        parts.append(rule.side_entries(lines))
        offset = rule.side_size
    if isinstance(feature_map, SidedMap):
        entries = feature_map.side_entries(added)
        parts.append(SideEntries(entries.rows, entries.places + offset, entries.steps))
    if not parts:
        return SideEntries.none()
    return SideEntries(
        np.concatenate([part.rows for part in parts]),
        np.concatenate([part.places for part in parts]),
        np.concatenate([part.steps for part in parts]),
    )


def check_room(rule: PublicLabels, feature_map: FeatureMap) -> None:
    """Refuse features, labels and numbers beside them that one row could move by more than 1; proof in the module."""
    sided = _sided(rule, feature_map)
    if feature_map.norm == L1:
        if sided:
            raise BadParameterError(
                "pure-has-one-column",
                "{option.pure} has room for one label column with a public list: leave {option.pure} out, or name the "
                "labels of one column",
            )
        return
    weights = (feature_map.count_weight, *(block.weight for block in feature_map.blocks))
    of_a_line = sum(bound_of(weight) ** 2 for weight in weights)
    if lines_per_row(rule) * of_a_line + sum(each.side_squares for each in sided) > GRID**2:
        raise BadParameterError(
            "weights-too-large",
            "the squares of all weights of a feature map must add up to at most 1, or one row could move the sums by "
            "more than that",
        )


def _sided(rule: PublicLabels, feature_map: FeatureMap) -> list[SidedLabels | SidedMap]:
    parts: list[SidedLabels | SidedMap] = []
    if isinstance(rule, SidedLabels):
        parts.append(rule)
    if isinstance(feature_map, SidedMap):
        parts.append(feature_map)
    return parts
