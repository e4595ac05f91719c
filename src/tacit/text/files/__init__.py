"""Tables of text as streams: one row at a time in, one block at a time out, memory independent of the file's size.

Formats: `txt` (a line is a document), `csv`, `csv-semicolon`, `tsv`, `tsv-raw` (tabs without any quoting), `jsonl` and
`parquet`; all but parquet also gzipped (`.gz`). `-` is standard input.
"""

from tacit.text.files.arrow import ArrowCell
from tacit.text.files.encoders import RowEncoder, encoder_for
from tacit.text.files.formats import (
    STANDARD_STREAM,
    SUPPORTED,
    ColumnSelection,
    FileFormat,
    check_column,
    check_columns,
    choose_columns,
    format_named,
    format_of,
    other_kind,
    suffix_format,
    text_value,
    unambiguous,
)
from tacit.text.files.partial import (
    SHUFFLED,
    OutputError,
    PartialOutput,
    block_digest,
    partial_path,
    storage_error,
    write_at,
    write_whole,
)
from tacit.text.files.tables import TableReader, allow_long_cells, open_table
from tacit.text.files.whole import cell_string, read_columns, write_columns

__all__ = [
    "SHUFFLED",
    "STANDARD_STREAM",
    "SUPPORTED",
    "ArrowCell",
    "ColumnSelection",
    "FileFormat",
    "OutputError",
    "PartialOutput",
    "RowEncoder",
    "TableReader",
    "allow_long_cells",
    "block_digest",
    "cell_string",
    "check_column",
    "check_columns",
    "choose_columns",
    "encoder_for",
    "format_named",
    "format_of",
    "open_table",
    "other_kind",
    "partial_path",
    "read_columns",
    "storage_error",
    "suffix_format",
    "text_value",
    "unambiguous",
    "write_at",
    "write_columns",
    "write_whole",
]
