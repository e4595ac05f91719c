"""Tables that are in memory already: lists of texts, lists of rows, pandas frames, Arrow tables, `datasets`.

They are read through the same `TableReader` as files, so that a job takes either.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, cast

from tacit.errors import BadInputError
from tacit.text.files.formats import STANDARD_STREAM, TEXT_COLUMN
from tacit.text.files.tables import TableReader

NAME = "the data in memory"


class MemoryTable(TableReader):
    """Columns of equal length."""

    def __init__(self, columns: Mapping[str, Sequence[object]], name: str = NAME) -> None:
        super().__init__(name)
        self.columns = tuple(columns)
        self._values = columns
        lengths = {len(values) for values in columns.values()}
        if len(lengths) > 1:
            raise BadInputError("unequal-columns", "the columns of {name} are not equally long", name=name)
        if not lengths or lengths == {0}:
            raise self._empty()
        self.size_bytes = lengths.pop()
        self._read = 0
        self.select(self.columns)

    def rows(self) -> Iterator[tuple[int, list[object]]]:
        selected = [self._values[column] for column in self.selected]
        pandas = sys.modules.get("pandas")
        missing = () if pandas is None else (pandas.NA, pandas.NaT)
        for row, values in enumerate(zip(*selected, strict=True), start=1):
            self._read = row
            yield row, [None if any(value is each for each in missing) else _plain(value) for value in values]

    def bytes_read(self) -> int:
        """Rows in place of bytes, in `size_bytes` as well."""
        return self._read

    def close(self) -> None:
        return


def is_in_memory(source: object) -> bool:
    """Whether a source is data and not the name of a file."""
    return not isinstance(source, str) and not hasattr(source, "__fspath__")


def is_standard_input(source: object) -> bool:
    """Whether a source is standard input, which can be read only once; a frame is never compared with its name."""
    return not is_in_memory(source) and str(source) == STANDARD_STREAM


def name_of(source: object) -> str:
    """The name of a source in a report: its file, without folders, or data in memory."""
    return NAME if is_in_memory(source) else Path(str(source)).name


def source_name(source: object) -> str:
    """The name of a source in sentences: its path, and never what is in it.

    >>> source_name(["a private text"])
    'the data in memory'
    """
    return NAME if is_in_memory(source) else str(source)


def memory_table(data: object, name: str = NAME) -> MemoryTable:
    """Data of the usual libraries as a table.

    >>> memory_table(["a text", "another"]).columns
    ('text',)
    >>> memory_table([{"text": "good", "label": 1}]).columns
    ('text', 'label')
    """
    if isinstance(data, MemoryTable):
        return data
    return MemoryTable(memory_columns(data), name)


def memory_columns(data: object) -> Mapping[str, Sequence[object]]:
    """The columns of data in memory, by name."""
    # Data can only be of a library that has been imported already.
    for library, convert in (("pandas", _pandas), ("pyarrow", _arrow), ("datasets", _datasets)):
        module = sys.modules.get(library)
        if module is not None and (columns := convert(module, data)) is not None:
            return columns
    if isinstance(data, Mapping):
        return {str(column): list(values) for column, values in data.items()}
    items = list(cast("Iterable[object]", data))
    rows = [item for item in items if isinstance(item, Mapping)]
    if len(rows) == len(items):
        names = list(dict.fromkeys(str(name) for row in rows for name in row))
        return {name: [row.get(name) for row in rows] for name in names}
    return {TEXT_COLUMN: items}


def _pandas(pandas: ModuleType, data: object) -> Mapping[str, Sequence[object]] | None:
    if isinstance(data, pandas.Series):
        data = data.to_frame(TEXT_COLUMN if data.name is None else str(data.name))
    if not isinstance(data, pandas.DataFrame):
        return None
    names = [str(name) for name in data.columns]
    if len(set(names)) < len(names):
        raise BadInputError("column-twice", "two columns of the frame have one name: rename one of them")
    objects = data.astype(object).where(data.notna(), None)
    return {name: objects.iloc[:, place].tolist() for place, name in enumerate(names)}


def _arrow(pyarrow: ModuleType, data: object) -> Mapping[str, Sequence[object]] | None:
    if isinstance(data, pyarrow.Table | pyarrow.RecordBatch):
        return {str(name): data.column(name).to_pylist() for name in data.schema.names}
    if isinstance(data, pyarrow.Array | pyarrow.ChunkedArray):
        return {TEXT_COLUMN: data.to_pylist()}
    return None


def _datasets(datasets: ModuleType, data: object) -> Mapping[str, Sequence[object]] | None:
    if isinstance(data, datasets.DatasetDict):
        raise BadInputError(
            "several-data-sets", "this holds several data sets ({names}): give one of them", names=", ".join(data)
        )
    if not isinstance(data, datasets.Dataset):
        return None
    return {name: [named_class(data.features[name], value) for value in data[name]] for name in data.column_names}


def named_class(feature: object, value: object) -> object:
    """A cell of a data set of the library `datasets`, classes by their names in place of their numbers."""
    if isinstance(value, list):
        inner = getattr(feature, "feature", None)
        return [named_class(inner, item) for item in value]
    if hasattr(feature, "int2str") and isinstance(value, int):
        return feature.int2str(value) if value >= 0 else None  # -1 stands for no class
    return value


# The way back ---------------------------------------------------------------------------------------------------------


def in_kind_of(data: Any, columns: Mapping[str, list[object]], copied: Collection[str] = ()) -> Any:
    """Columns in the kind of container that `data` is: texts as texts, rows as rows, a frame as a frame.

    Columns that were `copied` keep the types they had, except categories, which would name all original values. A frame
    gets a new index: the old one is a column like any other, and was not asked for.

    >>> in_kind_of(["a text"], {"text": ["another"]})
    ['another']
    """
    if isinstance(data, Mapping):
        return dict(columns)
    for library, convert in (("pandas", _as_pandas), ("pyarrow", _as_arrow), ("datasets", _as_data_set)):
        module = sys.modules.get(library)
        if module is not None and (container := convert(module, data, columns, copied)) is not None:
            return container
    items = () if isinstance(data, str) or hasattr(data, "__fspath__") else data
    if len(columns) == 1 and any(not isinstance(item, Mapping) for item in items):
        return next(iter(columns.values()))
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _as_pandas(pandas: ModuleType, data: object, columns: Mapping[str, list[object]], copied: Collection[str]) -> Any:
    if isinstance(data, pandas.Series):
        (values,) = columns.values()
        return pandas.Series(values, name=data.name, dtype=object)
    if not isinstance(data, pandas.DataFrame):
        return None
    kinds = {str(name): kind for name, kind in zip(data.columns, data.dtypes, strict=True)}
    names = {str(name): name for name in data.columns}

    def series(name: str, values: list[object]) -> Any:
        kind = kinds[name] if name in copied and not isinstance(kinds[name], pandas.CategoricalDtype) else None
        return pandas.Series(values, dtype=kind)

    return pandas.DataFrame({names[name]: series(name, values) for name, values in columns.items()})


def _as_arrow(pyarrow: ModuleType, data: object, columns: Mapping[str, list[object]], copied: Collection[str]) -> Any:
    if isinstance(data, pyarrow.Array | pyarrow.ChunkedArray):
        return pyarrow.array(next(iter(columns.values())), pyarrow.string())
    if not isinstance(data, pyarrow.Table | pyarrow.RecordBatch):
        return None

    def array(name: str, values: list[object]) -> Any:
        kind = data.schema.field(name).type
        return pyarrow.array(values, kind if name in copied and not pyarrow.types.is_dictionary(kind) else None)

    return pyarrow.table({name: array(name, values) for name, values in columns.items()})


def _as_data_set(
    datasets: ModuleType, data: object, columns: Mapping[str, list[object]], copied: Collection[str]
) -> Any:
    if not isinstance(data, datasets.Dataset):
        return None
    kinds = datasets.Dataset.from_dict({name: values[:1] for name, values in columns.items()}).features
    kept = {name: data.features[name] for name in columns if name in copied}
    return datasets.Dataset.from_dict(dict(columns), features=datasets.Features({**kinds, **kept}))


def _plain(value: object) -> object:
    """A value of numpy as one of Python, as files give them."""
    return value.item() if hasattr(value, "item") and getattr(value, "shape", None) == () else value
