"""Data in memory is read like a file."""

from __future__ import annotations

import numpy as np
import pytest

from tacit.errors import BadInputError
from tacit.text.files import open_table
from tacit.text.files.memory import memory_table


def rows_of(data: object) -> tuple[tuple[str, ...], list[list[object]]]:
    with open_table(data) as table:
        return table.columns, [values for _, values in table.rows()]


def test_lists_of_texts_and_of_rows() -> None:
    assert rows_of(["a", "b"]) == (("text",), [["a"], ["b"]])
    assert rows_of([{"text": "a", "n": 1}, {"text": "b"}]) == (("text", "n"), [["a", 1], ["b", None]])
    assert rows_of({"x": ("a", "b"), "y": np.array([1, 2])}) == (("x", "y"), [["a", 1], ["b", 2]])


def test_frames_tables_and_data_sets_are_alike() -> None:
    pandas = pytest.importorskip("pandas")
    pyarrow = pytest.importorskip("pyarrow")
    datasets = pytest.importorskip("datasets")
    columns = {"text": ["a", None], "n": [1, 2]}
    expected = (("text", "n"), [["a", 1], [None, 2]])
    for data in (pandas.DataFrame(columns), pyarrow.table(columns), datasets.Dataset.from_dict(columns)):
        assert rows_of(data) == expected
    assert rows_of(pandas.Series(["a"], name="words")) == (("words",), [["a"]])
    assert all(type(value) is int for _, value in rows_of(pandas.DataFrame({"text": ["a"], "n": [1]}))[1])


@pytest.mark.parametrize(
    ("data", "code"), [({"a": [1], "b": [1, 2]}, "unequal-columns"), ([], "file-is-empty"), ({}, "file-is-empty")]
)
def test_what_is_no_table_is_a_sentence(data: object, code: str) -> None:
    with pytest.raises(BadInputError) as raised:
        rows_of(data)
    assert raised.value.code == code


def test_what_pandas_calls_missing_is_missing_in_rows_too() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"text": ["a", None], "stars": [5, None], "day": pandas.to_datetime(["2026-01-02", None])})
    rows = frame.convert_dtypes().to_dict("records")
    assert [values[:2] for _, values in memory_table(rows).rows()] == [["a", 5], [None, None]]
    assert next(values[2] for row, values in memory_table(rows).rows() if row == 2) is None
