"""Several label columns: text sums per value of each column, tables of all pairs, and one joint law that fits them.

A row adds its features and its count to one line per column, and 1 to one cell of the table of each pair of columns
(`tacit.matching.sides` has the proof of what this costs). Weights are public constants: with K columns and
T = K (K - 1) / 2 tables, every line has the weight u = 1 / sqrt(K + T c^2), where c is the weight of the count in a
line, and a cell of a table has the weight c u. So a pair is counted as exactly as a value.

Afterwards everything is free. The joint law of all columns is the one of greatest entropy that fits the noisy tables:

    p = softmax of (one number per cell of every table), with the least squared distance of its tables to the noisy ones

by mirror descent from the uniform law (as in Private-PGM; McKenna, Sheldon & Miklau 2019). Inconsistent and negative
noisy counts need no repair: no law has such tables, and the nearest one is taken.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats, Ids, Integers
from tacit.errors import BadParameterError
from tacit.guarantee import Provenance
from tacit.matching.documents import DocumentMap
from tacit.matching.features import FeatureMap
from tacit.matching.labels import NO_LABEL, Bins, ListedLabels
from tacit.matching.sides import SideEntries
from tacit.matching.whole_numbers import bound_of

MOST_CELLS = 1 << 20
"""Of the joint law of all columns."""
MOST_COLUMNS = 8
ROUNDS = 400
TOLERANCE = 1e-7

ColumnRule = ListedLabels | Bins


@dataclass(frozen=True)
class JointLabels:
    """Labels in several columns.

    columns      names of the columns with the labels of each
    pair_weight  what a row adds to a cell of the table of two columns
    """

    columns: tuple[tuple[str, ColumnRule], ...]
    pair_weight: float

    kind: ClassVar[str] = "columns"

    def __post_init__(self) -> None:
        names = [name for name, _ in self.columns]
        if not 2 <= len(names) <= MOST_COLUMNS or len(set(names)) < len(names):
            raise BadParameterError(
                "bad-label-columns",
                "{option.label_columns} may be given up to {most} times, each time with another column",
                most=MOST_COLUMNS,
            )
        if math.prod(self.sizes) > MOST_CELLS:
            raise BadParameterError(
                "too-many-combinations",
                "these label columns have {cells:,} combinations of values, and {most:,} can be fitted: leave a column "
                "out, or give it fewer values",
                cells=math.prod(self.sizes), most=MOST_CELLS,
            )  # fmt: skip
        if not 0 < self.pair_weight <= 1 or bound_of(self.pair_weight) < 1:
            raise BadParameterError("bad-weights", "all weights of a feature map lie between 0 and 1")

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(len(rule.names) for _, rule in self.columns)

    @property
    def names(self) -> tuple[str, ...]:
        """The lines of the sums: every value of every column."""
        return tuple(f"{column}={value}" for column, rule in self.columns for value in rule.names)

    def lines_of(self, column: int) -> slice:
        """The lines of the sums that belong to a column."""
        start = sum(self.sizes[:column])
        return slice(start, start + self.sizes[column])

    @property
    def pairs(self) -> list[tuple[int, int]]:
        return list(itertools.combinations(range(len(self.columns)), 2))

    # What a row adds to

    @property
    def lines_per_row(self) -> int:
        return len(self.columns)

    @property
    def side_size(self) -> int:
        return sum(self.sizes[first] * self.sizes[second] for first, second in self.pairs)

    @property
    def side_squares(self) -> int:
        return len(self.pairs) * bound_of(self.pair_weight) ** 2

    def places(self, texts: Sequence[str], values: Sequence[object]) -> Ids:
        """Lines (rows, columns); a row without a value in one column has none at all. `values` hold one per column."""
        lines = np.empty((len(values), len(self.columns)), dtype=np.int64)
        for column, (_, rule) in enumerate(self.columns):
            of_column = [value[column] for value in values]  # type: ignore[index]
            places = rule.places(texts, of_column)
            lines[:, column] = np.where(places == NO_LABEL, NO_LABEL, places + self.lines_of(column).start)
        lines[(lines == NO_LABEL).any(axis=1)] = NO_LABEL
        return lines

    def side_entries(self, lines: Integers) -> SideEntries:
        parts, offset = [], 0
        for first, second in self.pairs:
            places = [lines[:, column] - self.lines_of(column).start for column in (first, second)]
            parts.append(offset + places[0] * self.sizes[second] + places[1])
            offset += self.sizes[first] * self.sizes[second]
        rows = np.tile(np.arange(len(lines)), len(parts))
        return SideEntries(rows, np.concatenate(parts), np.full(len(rows), bound_of(self.pair_weight)))

    # What is released

    def pair_tables(self, side: Integers, step: int) -> dict[tuple[int, int], Floats]:
        """Noisy numbers of rows for every pair of values, by the numbers beside the sums."""
        tables, start = {}, 0
        for first, second in self.pairs:
            size = self.sizes[first] * self.sizes[second]
            cells = side[start : start + size] * (step / bound_of(self.pair_weight))
            tables[first, second] = np.asarray(cells).reshape(self.sizes[first], self.sizes[second])
            start += size
        return tables

    def to_dict(self) -> dict[str, object]:
        columns = [{"column": name, **rule.to_dict()} for name, rule in self.columns]
        return {"kind": self.kind, "columns": columns, "pair_weight": self.pair_weight}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> JointLabels:
        columns: list[tuple[str, ColumnRule]] = []
        for each in values["columns"]:
            if each["kind"] == Bins.kind:
                columns.append((each["column"], Bins(tuple(each["edges"]))))
            else:
                columns.append((each["column"], ListedLabels.from_dict(each)))
        return cls(tuple(columns), values["pair_weight"])

    def arrays(self) -> dict[str, NDArray[np.int16]]:
        return {}

    def provenance(self) -> tuple[Provenance, ...]:
        return ()

    @property
    def lists(self) -> list[ListedLabels]:
        """The columns that have a list of labels."""
        return [rule for _, rule in self.columns if isinstance(rule, ListedLabels)]


def joint_labels(columns: Sequence[tuple[str, ColumnRule]], usual: FeatureMap) -> JointLabels:
    """Labels of several columns beside the features of a map that is made smaller for them (`map_beside`)."""
    return JointLabels(tuple(columns), usual.count_weight * _scale(len(columns), usual))


def map_beside(rule: JointLabels, usual: FeatureMap) -> FeatureMap:
    """The usual features, so small that a row may add them to every column."""
    return scaled_map(usual, _scale(len(rule.columns), usual))


def _scale(columns: int, usual: FeatureMap) -> float:
    return 1 / math.sqrt(columns + math.comb(columns, 2) * usual.count_weight**2)


def scaled_map(usual: FeatureMap, scale: float) -> FeatureMap:
    """The same features, all of them smaller."""
    blocks = tuple(replace(block, weight=block.weight * scale) for block in usual.blocks)
    scaled = replace(usual, blocks=blocks, count_weight=usual.count_weight * scale)
    return replace(scaled, length_weight=scaled.length_weight * scale) if isinstance(scaled, DocumentMap) else scaled


# The joint law ------------------------------------------------------------------------------------------------------


def fitted_joint(
    sizes: Sequence[int], tables: Mapping[tuple[int, ...], Floats], variances: Mapping[tuple[int, ...], float]
) -> Floats:
    """The law over all combinations of values (one axis per column) whose tables are nearest to noisy ones.

    tables      numbers of rows by column (k,) or by pair of columns (k, l)
    variances   of the noise in each cell of a table
    """
    total = _total(tables, variances)
    exponents = {axes: np.zeros(table.shape) for axes, table in tables.items()}
    weights = {axes: total / max(variances[axes], total * 1e-9) for axes in tables}
    wanted = {axes: table / total for axes, table in tables.items()}
    step = 1.0 / max(weights.values())
    law = _law(sizes, exponents)
    loss = _loss(law, wanted, weights)
    for _ in range(ROUNDS):
        moved = {axes: exponents[axes] - step * weights[axes] * (marginal(law, axes) - wanted[axes]) for axes in tables}
        candidate = _law(sizes, moved)
        changed = _loss(candidate, wanted, weights)
        if changed > loss:
            step /= 2
            continue
        improved = loss - changed
        law, exponents, loss = candidate, moved, changed
        step *= 1.1
        if improved <= TOLERANCE * max(loss, 1e-12):
            break
    return law


def marginal(law: Floats, axes: tuple[int, ...]) -> Floats:
    """The table of some columns of a joint law."""
    return np.asarray(law.sum(axis=tuple(axis for axis in range(law.ndim) if axis not in axes)))


def _law(sizes: Sequence[int], exponents: Mapping[tuple[int, ...], Floats]) -> Floats:
    scores = np.zeros(tuple(sizes))
    for axes, values in exponents.items():
        scores += values.reshape([size if axis in axes else 1 for axis, size in enumerate(sizes)])
    scores = np.exp(scores - scores.max())
    return np.asarray(scores / scores.sum())


def _loss(law: Floats, wanted: Mapping[tuple[int, ...], Floats], weights: Mapping[tuple[int, ...], float]) -> float:
    return math.fsum(0.5 * weights[axes] * float(((marginal(law, axes) - wanted[axes]) ** 2).sum()) for axes in wanted)


def _total(tables: Mapping[tuple[int, ...], Floats], variances: Mapping[tuple[int, ...], float]) -> float:
    """The number of rows: the mean of the sums of all tables, each by how sure it is."""
    sure = {axes: 1 / (table.size * max(variances[axes], 1e-12)) for axes, table in tables.items()}
    mean = math.fsum(sure[axes] * float(table.sum()) for axes, table in tables.items()) / math.fsum(sure.values())
    return max(mean, 1.0)
