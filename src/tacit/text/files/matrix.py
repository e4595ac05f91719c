"""Writing vectors as one numpy matrix (`.npy`), which has no room for other columns."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tacit.atomic import sync
from tacit.errors import BadInputError
from tacit.text.files.encoders import RowEncoder
from tacit.text.files.formats import FileFormat

if TYPE_CHECKING:
    from tacit.arrays import Floats32

MATRIX: Final = "npy"


class MatrixEncoder(RowEncoder):
    """Each block is a whole matrix; they become one at the end."""

    def __init__(self, format: FileFormat, columns: Sequence[str]) -> None:
        super().__init__(format, columns)
        if len(columns) != 1:
            raise BadInputError(
                "several-columns-in-npy",
                "a npy file holds one matrix, not {columns} columns: choose a parquet, jsonl or csv output",
                columns=len(columns),
            )

    def _block(self, rows: Sequence[Sequence[object]]) -> bytes:
        import numpy as np

        buffer = io.BytesIO()
        np.save(buffer, np.array([row[0] for row in rows], dtype="<f4"), allow_pickle=False)
        return buffer.getvalue()

    def finish(self, partial: Path) -> Path:
        from numpy.lib import format as layout

        final = partial.with_name(f"{partial.name}.{MATRIX}")
        rows, width = 0, 0
        for block in _stored(partial):
            rows, width = rows + len(block), block.shape[1]
        with final.open("wb") as file:
            layout.write_array_header_1_0(file, {"descr": "<f4", "fortran_order": False, "shape": (rows, width)})
            for block in _stored(partial):
                file.write(block.tobytes())
        sync(final)
        return final


def _stored(path: Path) -> Iterator[Floats32]:
    """The blocks of an unfinished file."""
    import numpy as np

    with path.open("rb") as file:
        while file.peek(1):
            yield np.load(file, allow_pickle=False)
