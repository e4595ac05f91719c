"""The value of a randomized label in the output: a string, a number, true or false.

The guarantee of randomized response holds for what is released, and that is the label with its type. So the type is a
function of the drawn label and of what is public (the list of labels, the format of the files, the schema of a parquet
file), never of the cell that the label replaces: labels `0` and `"1"` of a jsonl file both come out as numbers, drawn
or true. Two files whose true labels differ have the same law over outputs, types included, whenever `draw` has.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from tacit.labels import LabelRule
from tacit.text.files import ArrowCell, FileFormat, TableReader, cell_string
from tacit.text.files.arrow import arrow_library, is_text_type
from tacit.text.files.memory import MemoryTable
from tacit.text.files.parquet import ParquetTable
from tacit.text.files.tables import JsonTable

Values = Mapping[str, object]
"""The value of each label of the public list."""


def label_values(rule: LabelRule, source: TableReader, output: FileFormat) -> Values:
    """The value that each label has in the output, decided before any row is read.

    jsonl to jsonl       a number, true or false where the label is spelled as one, else a string
    parquet onwards      a value of the column's type if all labels of the list are values of it, else strings
    anything else        the label as the list spells it

    Data in memory counts as jsonl: its values have the same types.
    """
    typed: Values | None = None
    if isinstance(source, JsonTable | MemoryTable) and output.kind == "jsonl":
        typed = {label: json_value(label) for label in rule.labels}
    elif isinstance(source, ParquetTable) and output.kind in ("jsonl", "parquet"):
        typed = _arrow_values(rule, source)
    return typed if typed is not None else {label: label for label in rule.labels}


def are_strings(values: Values) -> bool:
    return all(isinstance(value, str) for value in values.values())


def json_value(label: str) -> str | int | float | bool:
    """The JSON value that a label is the spelling of."""
    if label in ("True", "False"):
        return label == "True"
    for kind in (int, float):
        try:
            value = kind(label)
            if math.isfinite(value) and str(value) == label:
                return value
        except (ValueError, OverflowError):
            continue
    return label


def _arrow_values(rule: LabelRule, source: ParquetTable) -> Values | None:
    """The labels as values of their column; None where one of them is not such a value, or would be spelled anew."""
    kind = source.schema.field(rule.column).type
    if is_text_type(kind):
        return None
    arrow = arrow_library()
    try:
        array = arrow.array(rule.labels, arrow.string()).cast(kind)
        values = {label: ArrowCell(array, place) for place, label in enumerate(rule.labels)}
        return values if all(cell_string(value) == label for label, value in values.items()) else None
    except (arrow.ArrowException, ValueError, OverflowError):
        return None
