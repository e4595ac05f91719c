"""Files as streams: every format in and out, and every way a file can be broken."""

from __future__ import annotations

import csv
import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from tacit.errors import BadInputError
from tacit.text.files import (
    ArrowCell,
    FileFormat,
    OutputError,
    PartialOutput,
    TableReader,
    choose_columns,
    encoder_for,
    format_named,
    format_of,
    open_table,
    read_columns,
    text_value,
    write_columns,
    write_whole,
)
from tacit.text.files.formats import MISSING

SECRET = "ZANZIBAR"


def save(path: Path, data: str | bytes) -> Path:
    raw = data.encode() if isinstance(data, str) else data
    path.write_bytes(gzip.compress(raw) if path.suffix == ".gz" else raw)
    return path


def read(path: Path, *columns: str, format: str | None = None) -> list[list[object]]:
    with open_table(path, format, columns or None) as table:
        return [values for _, values in table.rows()]


def failure(path: Path, format: str | None = None) -> str:
    """The sentence that reading the whole file ends with; never with a word of the text in it."""
    with pytest.raises(BadInputError) as caught, open_table(path, format) as table:
        for _ in table.rows():
            pass
    message = str(caught.value)
    assert SECRET not in message
    return message


# Formats ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a.txt", FileFormat("txt")),
        ("a.CSV", FileFormat("csv")),
        ("a.b.csv.gz", FileFormat("csv", gzip=True)),
        ("a.tab", FileFormat("tsv")),
        ("a.ndjson.gz", FileFormat("jsonl", gzip=True)),
        ("folder.csv/a.pq", FileFormat("parquet")),
    ],
)
def test_format_by_suffix(name: str, expected: FileFormat) -> None:
    assert format_of(name) == expected


def test_format_by_name() -> None:
    assert format_of("whatever.csv", "jsonl.gz") == FileFormat("jsonl", gzip=True)
    with pytest.raises(BadInputError, match="did you mean jsonl"):
        format_named("json")
    with pytest.raises(BadInputError, match="add format, such as format=csv"):
        format_of("-")
    with pytest.raises(BadInputError, match="add format with one of"):
        format_of("reviews")
    with pytest.raises(BadInputError, match="compresses by itself"):
        format_of("a.parquet.gz")


# Columns ----------------------------------------------------------------------------------------------------


def test_columns_by_default() -> None:
    assert choose_columns(["review"], (), ()).texts == ("review",)
    chosen = choose_columns(["id", "text", "label"], (), ("label",))
    assert (chosen.texts, chosen.kept, chosen.dropped) == (("text",), ("label",), ("id",))
    with pytest.raises(BadInputError, match=r"columns=NAME.*'a', 'b'"):
        choose_columns(["a", "b"], (), ())


def test_columns_keep_the_order_of_the_file() -> None:
    chosen = choose_columns(["id", "b", "x", "a"], ("a", "b"), ("id",))
    assert chosen.written == ("id", "b", "a")
    assert chosen.texts == ("b", "a")


def test_missing_column_lists_what_there_is() -> None:
    with pytest.raises(BadInputError, match=r"no column 'txet' \(did you mean 'text'\?\).*'id', 'text'"):
        choose_columns(["id", "text"], ("txet",), ())
    with pytest.raises(BadInputError, match=r"did you mean 'TEXT'"):
        choose_columns(["id", "TEXT"], ("text",), ())


@pytest.mark.parametrize(
    ("mark", "advice"), [(";", "csv-semicolon"), ("\t", "name the file .tsv"), ("|", "convert the file")]
)
def test_columns_that_another_mark_separates_are_not_taken_for_one(mark: str, advice: str) -> None:
    for texts in (("text",), ()):  # a whole row would be taken for the text
        with pytest.raises(BadInputError, match=advice):
            choose_columns([f"id{mark}text{mark}label"], texts, ())


def test_columns_of_json_rows_are_those_of_the_first_one(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    for first, seen in (('{"text": "a"}', "the column 'text' in its first row"), ("{}", "no column in its first row")):
        path.write_text(first + '\n{"text": "b", "label": "x"}\n')
        with pytest.raises(BadInputError, match=f"no column 'label': this file has {seen}"):
            open_table(path, columns=["label"])


def test_semicolons_separate_columns_where_the_format_says_so(tmp_path: Path) -> None:
    path = tmp_path / "excel.csv"
    path.write_text('\ufeffid;text;price\n1;"one; two";3,50\n2;"a ""word""\nmore";4\n', encoding="utf-8")
    with open_table(path, "csv-semicolon", ["text", "price"]) as table:
        assert [values for _, values in table.rows()] == [["one; two", "3,50"], ['a "word"\nmore', "4"]]
    write_columns(tmp_path / "out.csv", {"text": ["a;b", "c"]}, format="csv-semicolon")
    assert (tmp_path / "out.csv").read_text() == 'text\n"a;b"\nc\n'


@pytest.mark.parametrize("suffix", ["csv", "tsv", "csv.gz"])
@pytest.mark.parametrize("first", ["Anna Smith,hiv positive,7", "alice,flu,m", "text,Anna Smith,7"])
def test_b8_the_first_line_of_a_file_without_a_header_is_never_quoted(tmp_path: Path, first: str, suffix: str) -> None:
    """It is a row with private texts. Usual names of columns, from a public list, are shown all the same."""
    path = tmp_path / f"in.{suffix}"
    content = (first.replace(",", "\t" if suffix == "tsv" else ",") + "\nBob Jones,healthy,8\n").encode()
    path.write_bytes(gzip.compress(content) if suffix.endswith("gz") else content)
    with open_table(path) as table:
        said = []
        for texts, kept in ((("review",), ()), (("text",), ("sex",)), ((), ("sex",)), (("Anne Smyth",), ())):
            with pytest.raises(BadInputError) as refused:
                choose_columns(table.columns, texts, kept)
            said.append(str(refused.value))
        with pytest.raises(BadInputError) as refused:
            open_table(path, columns=("nothing",))
        said.append(str(refused.value))
    for sentence in said:
        assert not any(word in sentence for word in ("Anna", "Smith", "hiv", "alice", "flu", "'m'", "7"))
    assert any("which may be text and is not shown" in sentence for sentence in said)


def test_b8_names_of_a_schema_and_usual_names_are_listed(tmp_path: Path) -> None:
    path = tmp_path / "in.jsonl"
    path.write_text('{"weird name": "a", "x": 1}\n')
    with pytest.raises(BadInputError, match=r"this file has the columns 'weird name', 'x' in its first row$"):
        open_table(path, columns=("text",))
    path = tmp_path / "in.csv"
    path.write_text("user_id,review,weird name\n1,2,3\n")
    with pytest.raises(BadInputError, match=r"'review' and 2 other columns in its first line, which may be text"):
        open_table(path, columns=("nothing",))


def test_ambiguous_columns() -> None:
    with pytest.raises(BadInputError, match="2 columns are called 'a'"):
        choose_columns(["a", "a", "b"], ("a",), ())
    with pytest.raises(BadInputError, match="one use"):
        choose_columns(["a", "b"], ("a",), ("a",))


# Reading ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_txt(tmp_path: Path, suffix: str) -> None:
    path = save(tmp_path / f"a.txt{suffix}", "\ufeffone\r\n\nthree\u2028still three\x85\nlast")
    assert read(path) == [["one"], [""], ["three\u2028still three\x85"], ["last"]]


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_csv(tmp_path: Path, suffix: str) -> None:
    data = '\ufeffid,text\r\n1,"two\nlines, and ""quotes"""\r\n\r\n2,5" disk\r\n'
    path = save(tmp_path / f"a.csv{suffix}", data)
    assert read(path, "text", "id") == [['two\nlines, and "quotes"', "1"], ['5" disk', "2"]]


def test_csv_of_one_column_keeps_empty_rows(tmp_path: Path) -> None:
    assert read(save(tmp_path / "a.csv", "text\na\n\nb\n")) == [["a"], [""], ["b"]]


def test_tsv_with_and_without_quoting(tmp_path: Path) -> None:
    path = save(tmp_path / "a.tsv", 'text\tlabel\n"a\tb"\t1\n')
    assert read(path) == [["a\tb", "1"]]
    path = save(tmp_path / "b.tsv", 'text\tlabel\n"an open quote\t1\nnext\t0\n')
    assert "tsv-raw" in failure(path)
    assert read(path, format="tsv-raw") == [['"an open quote', "1"], ["next", "0"]]


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_jsonl(tmp_path: Path, suffix: str) -> None:
    data = '{"text": "a", "n": 1.5}\n\n{"n": null, "text": null}\n{"text": "\\u00e9", "more": []}'
    path = save(tmp_path / f"a.jsonl{suffix}", data)
    assert read(path, "text", "n") == [["a", 1.5], [None, None], ["é", MISSING]]


def test_parquet_keeps_types(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    table = pa.table(
        {
            "text": ["a", None, "c"],
            "when": pa.array([1, None, 3], pa.timestamp("ns")),
            "tags": pa.array([["x"], None, []], pa.list_(pa.string())),
            "kind": pa.array(["u", "v", "u"]).dictionary_encode(),
        }
    )
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=2)
    rows = read(tmp_path / "a.parquet", "text", "when", "kind")
    assert [row[0] for row in rows] == ["a", None, "c"]
    assert isinstance(rows[0][1], ArrowCell)
    assert [row[2] for row in rows] == ["u", "v", "u"]


def test_rows_come_lazily(tmp_path: Path) -> None:
    path = save(tmp_path / "a.csv", b"text\n" + b"ok\n" * 5 + b"\xff\n")
    with open_table(path) as table:
        rows = table.rows()
        assert next(rows) == (1, ["ok"])
        assert table.size_bytes == path.stat().st_size
        assert 0 < table.bytes_read() <= path.stat().st_size


def test_texts_and_other_values() -> None:
    assert text_value(None, 1, "text") == ""
    with pytest.raises(BadInputError, match="row 7 has no 'text'"):
        text_value(MISSING, 7, "text")
    for value in (3, True, ["a"], {"a": 1}, 2.5):
        with pytest.raises(BadInputError, match="row 7, column 'text' holds"):
            text_value(value, 7, "text")


# Broken files -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["a.txt", "a.csv", "a.tsv", "a.jsonl", "a.txt.gz", "a.parquet"])
def test_empty_file(tmp_path: Path, name: str) -> None:
    assert "is empty" in failure(save(tmp_path / name, b""))
    if not name.endswith("parquet"):
        assert "is empty" in failure(save(tmp_path / name, b"\xef\xbb\xbf"))


@pytest.mark.parametrize("name", ["a.txt", "a.csv", "a.tsv", "a.tsv-raw", "a.jsonl", "a.csv.gz"])
def test_broken_utf8_says_where(tmp_path: Path, name: str) -> None:
    line = b'{"text": "%s"}\n' % SECRET.encode() if "jsonl" in name else SECRET.encode() + b"\n"
    path = save(tmp_path / name, line * 3 + line[:4] + b"\xe9" + line[4:])
    format = "tsv-raw" if name.endswith("raw") else None
    assert f"line 4 is not valid UTF-8 (byte {3 * len(line) + 4}" in failure(path, format)


def test_other_encodings_and_kinds(tmp_path: Path) -> None:
    assert "UTF-16" in failure(save(tmp_path / "a.csv", "text\na".encode("utf-16")))
    assert "compressed with gzip" in failure(save(tmp_path / "b.csv", gzip.compress(b"text\na\n")))
    assert "parquet file" in failure(save(tmp_path / "c.csv", b"PAR1..."))
    assert "not a complete parquet file" in failure(save(tmp_path / "d.parquet", b"PAR1..."))


def test_no_such_file(tmp_path: Path) -> None:
    assert "there is no file" in failure(tmp_path / "a.csv")
    assert "is a folder" in failure(tmp_path, "csv")


def test_truncated_gzip(tmp_path: Path) -> None:
    whole = gzip.compress(b"text\n" + f"{SECRET}\n".encode() * 2000 + bytes(range(32, 127)))
    path = tmp_path / "a.csv.gz"
    path.write_bytes(whole[:-20])
    assert "not a complete gzip file" in failure(path)
    path.write_bytes(b"no gzip at all")
    assert "not a complete gzip file" in failure(path)


@pytest.mark.parametrize(
    ("data", "row", "line"),
    [
        (f'text,n\na,1\n"{SECRET},2\nb,3\nc,4\n', 2, 3),  # never closed
        (f'text,n\na,1\n"{SECRET},2\nb,"3"\nc,4\n', 2, 3),  # closed by the next quote
        (f'text,n\na,1\n"{SECRET}" x,2\n', 2, 3),  # text after the quote
        (f'text,n\n"a\nb",1\n"{SECRET},2\n', 2, 4),  # rows of several lines are counted
    ],
)
def test_unbalanced_quotes_say_the_row(tmp_path: Path, data: str, row: int, line: int) -> None:
    message = failure(save(tmp_path / "a.csv", data))
    assert message.startswith(f"row {row} (line {line})")
    assert "quote" in message


def test_an_open_quote_does_not_swallow_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("sources", "tables"):
        monkeypatch.setattr(f"tacit.text.files.{module}.RECORD_LIMIT", 1000)
    path = save(tmp_path / "a.csv", 'text,n\na,1\n"open,2\n' + f"{SECRET},3\n" * 1000)
    with open_table(path) as table:
        rows = table.rows()
        next(rows)
        with pytest.raises(BadInputError, match=r"row 2 \(line 3\) opens a quote.*after 1,000 characters"):
            next(rows)


def test_open_quote_in_the_header(tmp_path: Path) -> None:
    assert failure(save(tmp_path / "a.csv", f'"text,n\n{SECRET},1\n')).startswith("the header opens a quote")


def test_wrong_number_of_fields(tmp_path: Path) -> None:
    message = failure(save(tmp_path / "a.csv", f"text,n\na,1\n{SECRET},b,2\n"))
    assert message.startswith("row 2 (line 3) has 3 fields where the header has 2")
    assert "row 1 (line 2) has 1 fields" in failure(save(tmp_path / "b.csv", f"text,n\n{SECRET}\n"))


def test_old_line_ends(tmp_path: Path) -> None:
    assert "carriage return" in failure(save(tmp_path / "a.csv", f"text,n\n{SECRET}\r b,1\n"))


@pytest.mark.parametrize(
    "line",
    [f"{{{SECRET}", f'["{SECRET}"]', f'"{SECRET}"', "3", f'{{"text": "{SECRET}\\ud800"}}', "[" * 100_000],
)
def test_bad_json(tmp_path: Path, line: str) -> None:
    message = failure(save(tmp_path / "a.jsonl", f'{{"text": "a"}}\n\n{line}\n'))
    assert message.startswith("row 2 (line 3)")


def test_long_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("sources", "tables"):
        monkeypatch.setattr(f"tacit.text.files.{module}.RECORD_LIMIT", 100)
    assert "line 2 is longer than 100 bytes" in failure(save(tmp_path / "a.txt", "a\n" + SECRET * 20))


def test_missing_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    from tacit.errors import MissingExtraError

    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'tacit-dp\[parquet\]'"):
        open_table(tmp_path / "a.parquet")


# Writing ----------------------------------------------------------------------------------------------------

ROWS = [['a "b",\n\tc', "1"], ["", "é"], ["last", ""]]


def written(tmp_path: Path, format: str, blocks: list[list[list[object]]], source: TableReader | None = None) -> Path:
    """A file made the way the engine makes it."""
    encoder = encoder_for(format_named(format), ("text", "n"), source, ("text",))
    partial = PartialOutput(tmp_path / f"out.{format}")
    partial.create()
    partial.append(encoder.head())
    for block in blocks:
        partial.append(encoder.block(block))
    partial.close()
    partial.release(encoder.finish(partial.path))
    assert not partial.path.exists()
    return partial.output


@pytest.mark.parametrize("format", ["csv", "csv.gz", "tsv", "jsonl", "jsonl.gz", "parquet"])
def test_what_is_written_can_be_read(tmp_path: Path, format: str) -> None:
    assert read(written(tmp_path, format, [ROWS[:2], ROWS[2:]]), format=format) == ROWS


def test_formats_without_quoting_stay_line_by_line(tmp_path: Path) -> None:
    assert written(tmp_path, "tsv-raw", [ROWS]).read_text() == 'text\tn\na "b",  c\t1\n\té\nlast\t\n'
    encoder = encoder_for(format_named("txt"), ("text",))
    assert encoder.block([["two\r\nlines"], ["x"]]) == b"two lines\nx\n"
    with pytest.raises(BadInputError, match="one column, not 2"):
        encoder_for(format_named("txt"), ("text", "n"))


def test_each_block_is_a_gzip_member(tmp_path: Path) -> None:
    encoder = encoder_for(format_named("csv.gz"), ("text", "n"))
    head, first = encoder.head(), encoder.block(ROWS[:1])
    assert gzip.decompress(head) == b"text,n\n"
    assert next(csv.reader([gzip.decompress(first).decode()])) == ROWS[0]
    assert encoder.block(ROWS[:1]) == first  # no time stamp in it


def test_cut_back_and_go_on(tmp_path: Path) -> None:
    for format in ("csv", "csv.gz", "jsonl", "parquet"):
        expected = written(tmp_path, format, [ROWS[:1], ROWS[1:]]).read_bytes()
        encoder = encoder_for(format_named(format), ("text", "n"))
        partial = PartialOutput(tmp_path / f"again.{format}")
        partial.create()
        partial.append(encoder.head())
        end = partial.append(encoder.block(ROWS[:1]))
        partial.append(encoder.block(ROWS)[:-3])
        partial.close()
        resumed = PartialOutput(tmp_path / f"again.{format}")
        resumed.reopen(end)
        resumed.append(encoder.block(ROWS[1:]))
        resumed.release(encoder.finish(resumed.path))
        assert resumed.output.read_bytes() == expected


def test_values_cross_formats(tmp_path: Path) -> None:
    values = [["a", None], ["b", MISSING], ["c", 1.5], ["d", {"x": [1, "é"]}], ["e", True]]
    assert read(written(tmp_path, "csv", [values]), "n") == [[""], [""], ["1.5"], ['{"x": [1, "é"]}'], ["true"]]
    lines = written(tmp_path, "jsonl", [values]).read_text().splitlines()
    assert [json.loads(line) for line in lines][1] == {"text": "b"}
    assert [json.loads(line)["n"] for line in lines if "n" in json.loads(line)] == [None, 1.5, {"x": [1, "é"]}, True]
    assert read(written(tmp_path, "parquet", [values]), "n")[:3] == [[None], [None], ["1.5"]]


def test_parquet_values_are_copied_exactly(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    columns = [
        pa.array([1, None, 3, 1_700_000_000_123_456_789], pa.timestamp("ns")),
        pa.array([["x"], None, [], ["y", None]], pa.list_(pa.string())),
        pa.array([{"a": 1}, None, {"a": None}, {"a": 2}]),
        pa.array([b"\xff", None, b"", b"z"]),
        pa.array(["u", None, "v", "u"]),
        pa.array([1, 2, None, 2]).dictionary_encode(),
        pa.array([None, None, None, None], pa.string()),
    ]
    for number, column in enumerate(columns):
        path = tmp_path / f"{number}.parquet"
        pq.write_table(pa.table({"text": ["a"] * 4, "n": column}), path, row_group_size=3)
        with open_table(path, columns=("text", "n")) as table:
            rows = [values for _, values in table.rows()]
            out = written(tmp_path, "parquet", [rows[:1], rows[1:]], table)
        copied = pq.read_table(out)["n"].combine_chunks()
        assert copied.to_pylist() == column.to_pylist() or copied.equals(column)
        if not pa.types.is_dictionary(column.type):
            assert copied.equals(column)
        out.unlink()
        if number == 0:
            with open_table(path, columns=("text", "n")) as table:
                rows = [values for _, values in table.rows()]
            assert b"2023-11-14" in encoder_for(format_named("csv"), ("text", "n")).block(rows)


def test_the_folder_must_exist(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="does not exist"):
        PartialOutput(tmp_path / "nowhere" / "a.csv").create()


def test_two_runs_never_share_a_partial_file(tmp_path: Path) -> None:
    first = PartialOutput(tmp_path / "a.csv")
    first.create()
    with pytest.raises(OutputError, match="add resume"):
        PartialOutput(tmp_path / "a.csv").create()
    first.discard()


def test_full_disk_while_appending(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import errno

    partial = PartialOutput(tmp_path / "a.csv")
    partial.create()
    partial.append(b"one\n")

    def half(file: Any, offset: int, data: bytes) -> None:
        file.seek(offset)
        file.write(data[: len(data) // 2])
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("tacit.text.files.partial.write_at", half)
        with pytest.raises(OutputError, match="disk is full"):
            partial.append(b"two\n")
    assert partial.path.read_bytes() == b"one\n"
    partial.append(b"three\n")
    partial.close()
    assert partial.path.read_bytes() == b"one\nthree\n"


def test_small_files_are_written_whole(tmp_path: Path) -> None:
    write_whole(tmp_path / "a.md", "card")
    assert [path.name for path in tmp_path.iterdir()] == ["a.md"]
    with pytest.raises(OutputError):
        write_whole(tmp_path / "none" / "a.md", "card")


@pytest.mark.parametrize(
    "line", ["i met Dr Smith secretly in Paris", "a" * 60, "Never again!", "one two three four five"]
)
def test_a_text_in_the_first_line_is_not_taken_for_a_column_name(line: str) -> None:
    with pytest.raises(BadInputError, match="does not look like column names") as caught:
        choose_columns((line,), (), ())
    assert line not in str(caught.value)
    assert choose_columns((line,), (line,), ()).texts == (line,)
    assert choose_columns(("review text",), (), ()).texts == ("review text",)


# Whole files ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.jsonl", "a.csv.gz", "a.parquet"])
def test_columns_written_whole_are_read_back(name, tmp_path):
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow")
    columns = {"text": ["one, two", 'a "quote"', ""], "label": ["x", "y", "z"]}
    write_columns(tmp_path / name, columns)
    assert read_columns(tmp_path / name, ["label"], rest=True) == columns
    assert read_columns(tmp_path / name, ["label"]) == {"label": ["x", "y", "z"]}
    with pytest.raises(BadInputError, match="exists"):
        write_columns(tmp_path / name, columns)
    write_columns(tmp_path / name, {"only": ["1"]}, force=True)
    assert read_columns(tmp_path / name, ["only"]) == {"only": ["1"]}
    assert [path.name for path in tmp_path.iterdir()] == [name], "no draft is left"


def test_a_list_of_words_is_one_string(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"words": ["a", "b"], "n": 3, "none": null}\n')
    assert read_columns(tmp_path / "a.jsonl", ["words", "n", "none"]) == {"words": ["a b"], "n": ["3"], "none": [""]}


def test_a_name_on_the_hub_that_cannot_be_read_is_one_sentence(monkeypatch):
    pytest.importorskip("datasets")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(BadInputError, match="cannot read hf:no/such"):
        read_columns("hf:no/such:train", ["text"])


COLUMNS = 60_000
"""So many columns took minutes, because each was looked for among all others."""


@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
def test_b3_tens_of_thousands_of_columns_are_no_harder_than_their_bytes(tmp_path, suffix):
    names = [f"c{i}" for i in range(COLUMNS)]
    path = tmp_path / f"wide.{suffix}"
    if suffix == "csv":
        path.write_text(",".join(names) + "\n" + ",".join("x" for _ in names) + "\n")
    else:
        path.write_text(json.dumps(dict.fromkeys(names, "x")) + "\n")
    with open_table(path) as table:
        selection = choose_columns(table.columns, names[:2], names[2:])
        table.select(selection.written)
        ((row, values),) = table.rows()
    assert (row, len(values)) == (1, COLUMNS)
    assert (len(selection.texts), len(selection.kept)) == (2, COLUMNS - 2)
    with pytest.raises(BadInputError, match="2 columns are called 'c0'"):
        choose_columns([*names, "c0"], ["c0"], names[1:])
