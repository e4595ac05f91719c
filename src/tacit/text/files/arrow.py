"""Values of parquet files where they lie, and the library that reads them."""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING, Final, NamedTuple

from tacit.errors import require

if TYPE_CHECKING:
    import pyarrow


FIXED_SIZE: Final = 8
"""About what a number takes."""


class ArrowCell(NamedTuple):
    """A value of a parquet file where it lies, so that copying it cannot change its type or precision; `size` is about
    what it takes in memory."""

    array: pyarrow.Array
    position: int
    size: int = FIXED_SIZE

    def as_py(self) -> object:
        return self.array[self.position].as_py()

    def follows(self, first: ArrowCell, distance: int) -> bool:
        return self.array is first.array and self.position == first.position + distance


def is_text_type(kind: pyarrow.DataType) -> bool:
    types = arrow_library().types
    if types.is_dictionary(kind):
        return is_text_type(kind.value_type)
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def arrow_library() -> ModuleType:
    return require("pyarrow", extra="parquet", purpose="parquet")
