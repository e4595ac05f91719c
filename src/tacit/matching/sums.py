"""Exact sums of features per label: private, and only ever used to be released with noise.

Rows come in blocks and are forgotten after they are added: memory does not grow with their number. Sums are whole
numbers, so neither their order nor the blocks matter.

Per record, the vector of one row has length 1 at most (`tacit.matching.features`). Per user, all that a user's rows add
to all labels together is one long vector; where it is longer than 1 (in the norm of the feature map: Euclidean, or the
sum of absolute values) it is shortened to that, in integer arithmetic. The sums of a user have to be complete before
they can be shortened, so users are worked on in groups, by a hash of their names: the rows are read once to count the
users and once for every group. A group holds about `GROUP_NUMBERS` numbers.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from tacit.arrays import Integers
from tacit.errors import BadInputError, BadParameterError
from tacit.matching.features import L1, FeatureMap, TextFeatures
from tacit.matching.labels import NO_LABEL, PublicLabels
from tacit.matching.sides import check_room, lines_per_row, side_entries, side_size
from tacit.matching.whole_numbers import GRID
from tacit.text.identity import user_name

BLOCK_ROWS = 4_096
MOST_NUMBERS = 1 << 26
"""Of the sums of all labels together: half a gigabyte."""
GROUP_NUMBERS = 1 << 24
"""Of the sums of a group of users: 128 megabytes, twice that while the table grows."""
MOST_ROWS_OF_USER = 1 << 16
"""A user with more rows has the sums divided first, so that their squares fit into 64 bits."""
ENTRIES_AT_ONCE = 1 << 22

Entries = tuple[Integers, Integers]
"""Places, and the steps that are added to each."""


@dataclass(frozen=True)
class RowBlock:
    """Some rows: texts, the values of the label column (or nothing), and the names of users (or nothing)."""

    texts: Sequence[str]
    labels: Sequence[object] = ()
    users: Sequence[str] = ()


RowSource = Callable[[], Iterable[RowBlock]]
"""Reads all rows from the beginning, each time it is called."""


def rows_in_memory(
    texts: Sequence[str], labels: Sequence[object] | None = None, users: Sequence[str] | None = None
) -> RowSource:
    """Rows that are in memory as a source of blocks."""
    for column in (labels, users):
        if column is not None and len(column) != len(texts):
            raise BadInputError("uneven-columns", "there must be as many labels and users as texts")

    def blocks() -> Iterator[RowBlock]:
        for start in range(0, len(texts), BLOCK_ROWS):
            part = slice(start, start + BLOCK_ROWS)
            yield RowBlock(texts[part], () if labels is None else labels[part], () if users is None else users[part])

    return blocks


@dataclass(frozen=True)
class PrivateFindings:
    """Counts of the rows that were read: for the eyes of their holder only, never for a card.

    rows       all rows that were read
    unlabeled  rows whose label is not in the public list, and which add nothing
    empty      rows without a text, which are only counted
    users      different users, where the promise is made to them
    """

    rows: int = 0
    unlabeled: int = 0
    empty: int = 0
    users: int | None = None


@dataclass(frozen=True)
class ExactSums:
    """Sums in steps, one line per label: all features, then the count; and the numbers beside them
    (`tacit.matching.sides`). Private."""

    totals: Integers = field(repr=False)
    side: Integers = field(repr=False)
    findings: PrivateFindings = field(repr=False)

    @property
    def units(self) -> int:
        """Records, or users."""
        return self.findings.rows if self.findings.users is None else self.findings.users


def exact_sums(rows: RowSource, rule: PublicLabels, features: FeatureMap, *, by_user: bool = False) -> ExactSums:
    """The sums of all rows, without any noise."""
    width = features.dimension + 1
    if len(rule.names) * width > MOST_NUMBERS:
        raise BadParameterError(
            "too-many-labels",
            "{labels:,} labels with {width:,} features each are more than fit into memory: give at most {most:,} "
            "labels, or a smaller {option.vocabulary}",
            labels=len(rule.names), width=width, most=MOST_NUMBERS // width,
        )  # fmt: skip
    check_room(rule, features)
    totals = np.zeros((len(rule.names), width), dtype=np.int64)
    side = np.zeros(side_size(rule, features), dtype=np.int64)
    added = _by_user if by_user else _by_record
    findings = added(rows, rule, features, totals, side)
    if findings.rows == 0:
        raise BadInputError("no-rows", "{name} has no rows", name="the data")
    return ExactSums(totals, side, findings)


# Records ------------------------------------------------------------------------------------------------------------


def _by_record(
    rows: RowSource, rule: PublicLabels, features: FeatureMap, totals: Integers, side: Integers
) -> PrivateFindings:
    seen = unlabeled = empty = 0
    for block in rows():
        lines, kept, texts = _labeled(block, rule)
        seen += len(block.texts)
        unlabeled += len(block.texts) - len(kept)
        empty += sum(not text.strip() for text in block.texts)
        if texts:
            added = features.features(texts, alone=True)
            for column in range(lines.shape[1]):
                _add(totals, lines[:, column], added, features.count_steps)
            beside = side_entries(rule, lines, features, added)
            np.add.at(side, beside.places, beside.steps)
    return PrivateFindings(seen, unlabeled, empty)


def _labeled(block: RowBlock, rule: PublicLabels) -> tuple[Integers, Integers, list[str]]:
    """Lines of the sums (rows, label columns), the rows that have labels, and their texts."""
    lines = rule.places(block.texts, block.labels).reshape(len(block.texts), lines_per_row(rule))
    kept = np.flatnonzero((lines != NO_LABEL).all(axis=1))
    return lines[kept], kept, [block.texts[row] for row in kept.tolist()]


def _add(totals: Integers, lines: Integers, added: TextFeatures, count_steps: int) -> None:
    """Add the features of rows to their lines of the totals."""
    dense = added.dense.shape[1]
    order = np.argsort(lines, kind="stable")
    ordered = lines[order]
    starts = np.flatnonzero(np.diff(ordered, prepend=-1))
    totals[ordered[starts], :dense] += np.add.reduceat(added.dense[order], starts, axis=0, dtype=np.int64)
    width = totals.shape[1]
    np.add.at(totals.reshape(-1), lines[added.rows] * width + dense + added.words, added.word_steps)
    totals[:, -1] += np.bincount(lines, minlength=len(totals)) * count_steps


# Users --------------------------------------------------------------------------------------------------------------


def _by_user(
    rows: RowSource, rule: PublicLabels, features: FeatureMap, totals: Integers, side: Integers
) -> PrivateFindings:
    users: set[bytes] = set()
    seen = empty = unlabeled = 0
    for block in rows():
        for row, user in enumerate(block.users, seen + 1):
            users.add(_user_key(user, row))
        seen += len(block.texts)
        empty += sum(not text.strip() for text in block.texts)
    pairs = min(seen * lines_per_row(rule), len(users) * len(rule.names))
    groups = max(1, math.ceil(pairs * max(1, features.dense_dimension) / GROUP_NUMBERS))
    for group in range(groups):
        collected = _UserSums(features, rule)
        for block in rows():
            keys = [_user_key(user, 0) for user in block.users]
            mine = [row for row, key in enumerate(keys) if int.from_bytes(key[:8], "little") % groups == group]
            part = RowBlock(
                [block.texts[row] for row in mine], [block.labels[row] for row in mine] if len(block.labels) else ()
            )
            lines, kept, texts = _labeled(part, rule)
            unlabeled += len(mine) - len(kept)
            collected.add([keys[mine[row]] for row in kept.tolist()], lines, texts)
        collected.finish(totals, side)
    return PrivateFindings(seen, unlabeled, empty, len(users))


def _user_key(user: str, row: int) -> bytes:
    name = user_name(user)
    if not name:
        raise BadInputError("no-user", "row {row:,} has no user: every row must belong to one", row=row)
    return hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=16).digest()


class _UserSums:
    """The sums of a group of users: one line for every pair of a user and a label that occurs."""

    def __init__(self, features: FeatureMap, rule: PublicLabels) -> None:
        self._features = features
        self._rule = rule
        self._labels = len(rule.names)
        self._side_size = side_size(rule, features)
        self._users: dict[bytes, int] = {}
        self._lines: dict[int, int] = {}
        self._dense: Integers = np.zeros((64, features.dense_dimension), dtype=np.int64)
        self._rows: Integers = np.zeros(64, dtype=np.int64)
        self._words: list[Entries] = []
        self._beside: list[Entries] = []

    def add(self, keys: Sequence[bytes], lines_of_rows: Integers, texts: Sequence[str]) -> None:
        """Add rows of these users with these labels."""
        if not texts:
            return
        users = np.array([self._users.setdefault(key, len(self._users)) for key in keys], dtype=np.int64)
        added = self._features.features(texts, alone=True)
        for column in range(lines_of_rows.shape[1]):
            self._add_column(users, lines_of_rows[:, column], added)
        beside = side_entries(self._rule, lines_of_rows, self._features, added)
        if self._side_size:
            self._beside.append((users[beside.rows] * self._side_size + beside.places, beside.steps))
        self._words, self._beside = _gathered_if_many(self._words), _gathered_if_many(self._beside)

    def _add_column(self, users: Integers, places: Integers, added: TextFeatures) -> None:
        pairs = (users * self._labels + places).tolist()
        lines = np.array([self._lines.setdefault(pair, len(self._lines)) for pair in pairs], dtype=np.int64)
        while len(self._dense) < len(self._lines):
            self._dense = np.concatenate([self._dense, np.zeros_like(self._dense)])
            self._rows = np.concatenate([self._rows, np.zeros_like(self._rows)])
        np.add.at(self._dense, lines, added.dense)
        np.add.at(self._rows, lines, 1)
        if self._features.vocabulary:
            self._words.append((lines[added.rows] * self._features.vocabulary + added.words, added.word_steps))

    def finish(self, totals: Integers, side: Integers) -> None:
        """Shorten what each user adds, and add it to the totals."""
        if not self._lines:
            return
        count = len(self._lines)
        users, labels = np.divmod(np.fromiter(self._lines, dtype=np.int64, count=count), self._labels)
        places, word_steps = _gathered(self._words)
        word_lines, words = np.divmod(places, max(1, self._features.vocabulary))
        places, side_steps = _gathered(self._beside)
        side_users, side_places = np.divmod(places, max(1, self._side_size))
        counts = self._rows[:count] * self._features.count_steps
        parts = -(-np.bincount(users, weights=self._rows[:count]).astype(np.int64) // MOST_ROWS_OF_USER)
        counts, word_steps = counts // parts[users], word_steps // parts[users[word_lines]]
        side_steps = side_steps // parts[side_users]
        measured = np.abs if self._features.norm == L1 else np.square
        sizes = np.zeros(len(self._users), dtype=np.int64)
        np.add.at(sizes, users, measured(counts))
        np.add.at(sizes, users[word_lines], measured(word_steps))
        np.add.at(sizes, side_users, measured(side_steps))
        for lines in _slices(count):  # some lines at a time: the copies that arithmetic makes stay small
            dense = self._dense[lines]
            dense[:] = _divided(dense, parts[users[lines]][:, None])
            np.add.at(sizes, users[lines], measured(dense).sum(axis=1))
        # A user whose vector is longer than GRID is divided by at least its length / GRID; others stay as they are.
        above = sizes if self._features.norm == L1 else np.array([math.isqrt(int(s)) + 1 for s in sizes])
        above = np.where(sizes > (GRID if self._features.norm == L1 else GRID**2), above, GRID)
        counts, word_steps = counts * GRID // above[users], word_steps * GRID // above[users[word_lines]]
        width = self._dense.shape[1]
        for lines in _slices(count):
            np.add.at(
                totals[:, :width], labels[lines], _divided(self._dense[lines] * GRID, above[users[lines]][:, None])
            )
        np.add.at(totals[:, -1], labels, counts)
        np.add.at(side, side_places, side_steps * GRID // above[side_users])
        flat = labels[word_lines] * totals.shape[1] + width + words
        np.add.at(totals.reshape(-1), flat, word_steps)


def _gathered_if_many(entries: list[Entries]) -> list[Entries]:
    return [_gathered(entries)] if sum(len(places) for places, _ in entries) > ENTRIES_AT_ONCE else entries


def _gathered(entries: list[Entries]) -> Entries:
    """Entries with each place once."""
    if not entries:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    places, inverse = np.unique(np.concatenate([each for each, _ in entries]), return_inverse=True)
    steps = np.zeros(len(places), dtype=np.int64)
    np.add.at(steps, inverse.ravel(), np.concatenate([each for _, each in entries]))
    return places, steps


def _slices(count: int) -> Iterator[slice]:
    return (slice(start, min(start + BLOCK_ROWS, count)) for start in range(0, count, BLOCK_ROWS))


def _divided(values: Integers, parts: Integers) -> Integers:
    """Whole numbers divided toward zero."""
    return np.asarray(np.sign(values) * (np.abs(values) // parts))
