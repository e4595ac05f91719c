"""Small public vectors in a file: settings of other libraries can name a file, and not hold an object."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import small_table


@pytest.fixture(scope="session")
def vectors(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Forty words w0 … w39 in two dimensions."""
    table = small_table()
    path: Path = tmp_path_factory.mktemp("vectors") / "small.vec"
    lines = [
        " ".join([word, *(repr(float(x)) for x in row)]) for word, row in zip(table.words, table.vectors, strict=True)
    ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)
