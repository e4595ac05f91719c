"""Parquet is read by bytes: a small file that stands for gigabytes takes little memory, and loses no type."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tacit.errors import BadInputError
from tacit.text.files import open_table, parquet
from tacit.text.files.parquet import _decoded_sizes

arrow = pytest.importorskip("pyarrow")
store = pytest.importorskip("pyarrow.parquet")


def repeated(path: Path, column: str, text: str | bytes, rows: int, **options: object) -> Path:
    """One value in the dictionary of a column, and in each row by its number."""
    numbers = arrow.array([0] * rows, arrow.int32())
    column_of_numbers = arrow.DictionaryArray.from_arrays(numbers, arrow.array([text]))
    texts = arrow.array(["w1"] * rows)
    table = {"text": texts, column: column_of_numbers} if column != "text" else {"text": column_of_numbers}
    store.write_table(arrow.table(table), path, compression="zstd", **options)
    return path


def largest_decoded(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many bytes were decoded at a time, filled while a table is read."""
    seen: list[int] = []
    original = parquet.ParquetTable._decoded

    def watched(self: Any, batch: Any, row: int, texts: list[bool]) -> Any:
        columns = original(self, batch, row, texts)
        strings = [value for column in columns for value in column if isinstance(value, str)]
        seen.append(sum(map(len, strings)) + sum(cell.size for cell in _cells(columns)))
        return columns

    monkeypatch.setattr(parquet.ParquetTable, "_decoded", watched)
    return seen


def _cells(columns: list[list[object]]) -> list[object]:
    return [value for column in columns for value in column if hasattr(value, "as_py")]


@pytest.mark.parametrize("with_schema", [True, False])
@pytest.mark.parametrize(("column", "value"), [("text", "x" * 1_000_000), ("kept", b"x" * 1_000_000)])
def test_b2_a_dictionary_bomb_is_decoded_a_few_rows_at_a_time(monkeypatch, tmp_path, column, value, with_schema):
    """40 kB of file, 20 GB of text: the old reader decoded 4,096 rows, four gigabytes, before the first came out."""
    path = repeated(tmp_path / "bomb.parquet", column, value, 20_000, store_schema=with_schema)
    assert path.stat().st_size < 100_000
    decoded = largest_decoded(monkeypatch)
    before = arrow.default_memory_pool().max_memory()
    with open_table(path) as table:
        rows = table.rows()
        first = [next(rows)[1] for _ in range(100)]
    last = first[-1][-1]
    assert (last if isinstance(last, str) else last.as_py()) == value
    assert max(decoded) <= parquet.BATCH_BYTES + 20_000
    assert arrow.default_memory_pool().max_memory() - before < 200_000_000


def test_b2_lists_of_numbers_of_a_dictionary_are_cut_as_well(monkeypatch, tmp_path):
    inner = arrow.DictionaryArray.from_arrays(arrow.array([0] * 4_000, arrow.int32()), arrow.array(["x" * 100_000]))
    lists = arrow.ListArray.from_arrays(arrow.array(range(0, 4_001, 2), arrow.int32()), inner)
    table = arrow.table({"text": ["w1"] * 2_000, "tags": lists})
    store.write_table(table, tmp_path / "a.parquet", store_schema=False)
    decoded = largest_decoded(monkeypatch)
    with open_table(tmp_path / "a.parquet") as opened:
        rows = opened.rows()
        values = [next(rows)[1][1] for _ in range(200)]
    assert values[0].array.type == opened.schema.field("tags").type
    assert values[0].as_py() == ["x" * 100_000] * 2
    assert values[0].size == 200_000
    assert max(decoded) <= parquet.BATCH_BYTES + 20_000


def test_b2_a_text_that_is_too_long_is_refused_by_its_row(tmp_path):
    texts = ["short", "x" * 16_000_001, "short"]
    store.write_table(arrow.table({"text": texts}), tmp_path / "a.parquet", compression="zstd")
    with (
        pytest.raises(BadInputError, match=r"row 2 has a text longer than 16,000,000 bytes"),
        open_table(tmp_path / "a.parquet") as table,
    ):
        list(table.rows())


def test_b2_the_file_tells_how_many_rows_are_read_at_a_time(tmp_path):
    """Texts that are not in a dictionary are as large in the file, unpacked, as in memory."""
    texts = [f"{row:06d}" + "x" * 100_000 for row in range(400)]
    store.write_table(arrow.table({"a.b": texts, "text": ["w1"] * 400}), tmp_path / "a.parquet", use_dictionary=False)
    group = store.ParquetFile(tmp_path / "a.parquet").metadata.row_group(0)
    assert parquet._rows_at_a_time(group, frozenset({"a.b"})) == parquet.BATCH_BYTES // 100_015
    assert parquet._rows_at_a_time(group, frozenset({"text"})) == parquet.BATCH_ROWS
    with open_table(tmp_path / "a.parquet", columns=["a.b"]) as table:
        assert [values[0] for _, values in table.rows()] == texts


def test_b2_a_large_index_is_not_read(tmp_path, monkeypatch):
    many = {f"column {number}": [1] for number in range(2_000)}
    store.write_table(arrow.table({"text": ["w1"], **many}), tmp_path / "a.parquet")
    with pytest.raises(BadInputError, match="index"):
        open_table(tmp_path / "a.parquet", most_bytes=10_000)
    open_table(tmp_path / "a.parquet").close()


@pytest.mark.parametrize("name", ["a.csv.gz", "a.jsonl.gz", "a.jsonl", "a.txt"])
def test_b2_a_look_at_a_file_ends_after_so_many_bytes(tmp_path, name):
    """A gzip bomb of empty lines, or one line without an end."""
    import gzip

    content = b"\n" * 3_000_000 if "jsonl" in name else b"x" * 3_000_000
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith("gz") else content)
    with pytest.raises(BadInputError, match="no further than 1,000 bytes"):
        open_table(tmp_path / name, most_bytes=1_000)


KINDS = [
    (arrow.string(), ["a", "bé", None, "a"]),
    (arrow.large_string(), ["a", None, "b", "a"]),
    (arrow.string_view(), ["a", None, "b", "a"]),
    (arrow.binary(), [b"a", None, b"b", b"a"]),
    (arrow.large_binary(), [b"a", None, b"b", b"a"]),
    (arrow.binary_view(), [b"a", None, b"b", b"a"]),
    (arrow.dictionary(arrow.int32(), arrow.string()), ["a", None, "b", "a"]),
    (arrow.dictionary(arrow.int32(), arrow.binary()), [b"a", None, b"b", b"a"]),
    (arrow.dictionary(arrow.int32(), arrow.int64()), [1, None, 2, 1]),
    (arrow.list_(arrow.string()), [["a"], None, ["b", None], []]),
    (arrow.list_(arrow.string_view()), [["a"], None, ["b", None], []]),
    (arrow.list_(arrow.string(), 2), [["a", "b"], None, ["c", "a"], ["", ""]]),
    (arrow.large_list(arrow.large_string()), [["a"], None, ["b", None], []]),
    (arrow.struct([("x", arrow.string()), ("y", arrow.list_(arrow.binary()))]),
     [{"x": "a", "y": [b"b"]}, None, {"x": None, "y": None}, {"x": "c", "y": []}]),
    (arrow.map_(arrow.string(), arrow.string()), [[("a", "b")], None, [], [("c", None)]]),
    (arrow.binary(2), [b"ab", None, b"cd", b"ab"]),
    (arrow.decimal128(5, 2), None),
    (arrow.int64(), [1, None, 2, 3]),
]  # fmt: skip


@pytest.mark.parametrize("options", [{}, {"use_dictionary": False}], ids=["dictionary", "plain"])
@pytest.mark.parametrize(("kind", "values"), KINDS, ids=[str(kind) for kind, _ in KINDS])
def test_b2_values_and_types_come_as_the_file_says(tmp_path, kind, values, options):
    column = arrow.array([1, None, 2, 3] if values is None else values, kind)
    store.write_table(arrow.table({"text": ["q", "w", "e", "r"], "kept": column}), tmp_path / "a.parquet", **options)
    with open_table(tmp_path / "a.parquet") as table:
        read = [row[1] for _, row in table.rows()]
        stored = table.schema.field("kept").type
    assert [cell.as_py() if hasattr(cell, "as_py") else cell for cell in read] == column.to_pylist()
    assert all(cell.array.type == stored for cell in read if hasattr(cell, "as_py"))


def test_b2_sizes_of_slices():
    number = arrow.dictionary(arrow.int32(), arrow.string())
    lists = arrow.array([["aa", "b"], None, ["aa"], []], arrow.list_(number))
    assert _decoded_sizes(lists).tolist() == [3, 0, 2, 0]
    assert _decoded_sizes(lists.slice(2, 1)).tolist() == [2]
    pairs = arrow.array([["aa", "b"], None, ["aa", "b"]], arrow.list_(number, 2))
    assert _decoded_sizes(pairs.slice(1)).tolist() == [0, 3]
    structures = arrow.array([{"x": "aa", "y": ["b"]}, None, {"x": "c", "y": None}],
                             arrow.struct([("x", number), ("y", arrow.list_(number))]))  # fmt: skip
    assert _decoded_sizes(structures.slice(1)).tolist() == [0, 1]
    assert _decoded_sizes(arrow.array([1, 2])) is None
