"""`data`: take rows of files and freeze them, so that all later steps see the same ones.

Rows that match `where` are shuffled by a public seed; `skip` and `rows` then cut out a part. Two parts of one file with
the same seed and `skip` of the second at least `rows` of the first have no row in common. The key of the step holds the
hash of each file, not its place.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Mapping
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any, Final

from tacit.errors import BadInputError
from tacit.experiments.config import DataSet, Part
from tacit.experiments.inputs import check_apart
from tacit.experiments.raw import parts_of, read_lines, write_json, write_lines
from tacit.experiments.steps import Kind, PlannedCell, Progress
from tacit.noise.source import public_generator
from tacit.text.files import cell_string, check_column, format_of, open_table, text_value


def run(data: DataSet, inputs: Mapping[str, Path], folder: Path, progress: Progress) -> None:
    for number, (name, part) in enumerate(data.parts.items()):
        write_lines(folder / f"{name}.jsonl", taken_rows(data, part, name))
        progress(number + 1, len(data.parts))
    for name, file in data.files.items():
        shutil.copyfile(file, folder / f"{name}{''.join(Path(file).suffixes[-2:])}")
    write_json(folder / "parts.json", list(data.parts))
    write_json(folder / "about.json", {"task": data.task, "label": data.label, "text": data.text_columns,
                                       "access": data.access})  # fmt: skip


def taken_rows(data: DataSet, part: Part, name: str) -> list[dict[str, Any]]:
    texts, columns = data.text_columns, _columns(data, part)
    matching: list[dict[str, Any]] = []
    with open_table(part.file, format_of(part.file, part.format)) as table:
        table.select(columns)
        for row, values in table.rows():
            cells = dict(zip(columns, values, strict=True))
            if not part.matches({column: cell_string(cells[column]) for column in part.where}):
                continue
            matching.append(
                {
                    "texts": [text_value(cells[column], row, column) for column in texts],
                    "label": cell_string(cells[data.label]) if data.label is not None else None,
                    "columns": {column: cell_string(cells[column]) for column in data.keep},
                }
            )
    order = public_generator(part.seed).permutation(len(matching))[part.skip :][: part.rows]
    if not len(order):
        raise BadInputError(
            "part-without-rows",
            "the part '{name}' has no rows: {matching:,} rows match, and {skip:,} of them are skipped",
            name=name,
            matching=len(matching),
            skip=part.skip,
        )
    return [matching[i] for i in sorted(order.tolist())]


ROWS: Final = "rows in "


def score(folder: Path) -> dict[str, float]:
    scores: dict[str, float] = {}
    for part in parts_of(folder):
        rows = list(read_lines(folder / f"{part}.jsonl"))
        scores[f"{ROWS}{part}"] = len(rows)
        scores[f"words per row in {part}"] = sum(len(t.split()) for row in rows for t in row["texts"]) / len(rows)
    return scores


def row_counts(scores: Mapping[str, float]) -> dict[str, int]:
    """How many rows each part has, from the scores of a step."""
    return {name.removeprefix(ROWS): int(count) for name, count in scores.items() if name.startswith(ROWS)}


def content(data: DataSet) -> dict[str, Any]:
    """The parameters with the hash of each file in place of its name."""
    values = data.model_dump(exclude={"about"})
    for part in values["parts"].values():
        part["file"] = file_digest(part["file"])
    values["files"] = {name: file_digest(file) for name, file in data.files.items()}
    return values


def check(data: DataSet, inputs: frozenset[str] = frozenset()) -> None:
    if data.parts and not data.text_columns:
        raise BadInputError(
            "missing-text-column",
            "'text' is missing: name the column (or two) with the texts",
        )
    if data.task in ("pairs", "similarity") and len(data.text_columns) != 2:
        raise BadInputError(
            "task-of-two-texts",
            "the task '{task}' is about two texts: give two columns in 'text'",
            task=data.task,
        )
    if not data.parts and not data.files:
        raise BadInputError(
            "empty-data-set",
            "there is nothing in it: give 'parts' (rows of texts) or 'files'",
        )
    for part in data.parts.values():
        with open_table(part.file, format_of(part.file, part.format)) as table:
            for column in _columns(data, part):
                check_column(column, table.columns)


def fits(data: DataSet, inputs: Mapping[str, PlannedCell]) -> None:
    """Refuse a data set by its rows; only as many are read as it takes."""
    if {"train", "test"} <= set(data.parts):
        check_apart(data, "train", "test")
    for name, part in data.parts.items():
        if data.task == "similarity" and data.label is not None:
            if not all(_is_number(row["label"]) for row in taken_rows(data, part, name)):
                raise BadInputError(
                    "labels-not-numbers",
                    "not all labels of the part '{name}' are numbers, which the task 'similarity' is about: name "
                    "another column in 'label'",
                    name=name,
                )
        elif not _has_rows(data, part):
            skipped = f" after the {part.skip:,} that are skipped" if part.skip else ""
            raise BadInputError(
                "part-without-rows",
                "the part '{name}' has no rows: none matches{skipped}; correct 'where' or 'skip'",
                name=name,
                skipped=skipped,
            )


def _is_number(label: str) -> bool:
    try:
        float(label)
    except ValueError:
        return False
    return True


def _has_rows(data: DataSet, part: Part) -> bool:
    with open_table(part.file, format_of(part.file, part.format)) as table:
        table.select(list(part.where) or data.text_columns)
        matching = (
            row
            for row, values in table.rows()
            if part.matches(dict(zip(part.where, map(cell_string, values), strict=False)))
        )
        return next(islice(matching, part.skip, None), None) is not None


def _columns(data: DataSet, part: Part) -> list[str]:
    label = [data.label] if data.label is not None else []
    return list(dict.fromkeys([*data.text_columns, *label, *data.keep, *part.where]))


@lru_cache(maxsize=256)
def _digest(path: str, size: int, changed: int) -> str:
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()


def file_digest(path: str | Path) -> str:
    status = Path(path).stat()
    return _digest(str(path), status.st_size, status.st_mtime_ns)


KIND = Kind(
    "data", 1, DataSet, run, score, check=check, content=content, fits=fits, further=("rows in *", "words per row in *")
)
