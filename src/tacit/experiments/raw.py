"""The raw files of a step: JSON lines and JSON, in a form that gives the same bytes for the same content."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tacit.atomic import write_file
from tacit.errors import BadInputError
from tacit.report.parts import plain


def write_json(path: Path, value: object) -> None:
    """Whole or not at all."""
    text = json.dumps(plain(value), indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    write_file(path, text.encode("utf-8"))


def read_json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def write_lines(path: Path, rows: Iterable[object]) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(plain(row), ensure_ascii=False, allow_nan=False) + "\n" for row in rows)
        file.flush()
        os.fsync(file.fileno())


def read_lines(path: Path) -> Iterator[Any]:
    with path.open(encoding="utf-8") as file:
        for line in file:
            yield json.loads(line)


@dataclass(frozen=True)
class Rows:
    """Rows of one part of a data set: the texts of each row (one or two), its label, its further columns."""

    texts: list[list[str]] = field(repr=False)
    labels: list[str | None] = field(repr=False)
    columns: list[dict[str, str]] = field(repr=False)

    def __len__(self) -> int:
        return len(self.texts)

    @property
    def joined(self) -> list[str]:
        """Each row as one text, for measures that look at rows."""
        return [" ".join(texts) for texts in self.texts]


def parts_of(folder: Path) -> list[str]:
    """The parts that a folder of a `data` or `rewrite` step holds."""
    return list(read_json(folder / "parts.json"))


def read_part(folder: Path, part: str) -> Rows:
    """One part of a `data` step."""
    path = folder / f"{part}.jsonl"
    if not path.is_file():
        raise BadInputError(
            "no-such-part",
            "the data has no part '{part}': it has {parts}",
            part=part,
            parts=", ".join(parts_of(folder)),
        )
    rows = list(read_lines(path))
    return Rows([row["texts"] for row in rows], [row["label"] for row in rows], [row["columns"] for row in rows])


def read_released(folder: Path, part: str) -> list[list[str]]:
    """The texts of one part as a `rewrite` step released them, row by row."""
    path = folder / f"{part}.jsonl"
    if not path.is_file():
        raise BadInputError(
            "part-not-rewritten",
            "the part '{part}' was not rewritten: name it in 'parts' of the rewrite step",
            part=part,
        )
    return [row["texts"] for row in read_lines(path)]
