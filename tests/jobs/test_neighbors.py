"""Neighboring files, through every reader: one row, or one user, moves the exact sums by at most 1, whatever it holds.

The proof of the sums is about texts and labels in memory (`tests/matching`). Here they come from files and containers,
which have types, missing values and encodings of their own: a row must not change how another one is read.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tacit.jobs.sketch_input import label_rule, map_for, row_source
from tacit.jobs.sketched_rows import SketchConfig
from tacit.matching.features import L1
from tacit.matching.sums import exact_sums
from tacit.matching.whole_numbers import GRID

Row = dict[str, object]
Mode = dict[str, Any]
ROWS: list[Row] = [
    {"text": f"please cancel order {number}", "label": "ab"[number % 2], "stars": number % 5, "user": number % 3}
    for number in range(9)
]
ODD: list[Row] = [
    {"text": "", "label": "a", "stars": 1, "user": 7},
    {"text": None, "label": "b", "stars": None, "user": "7.0"},
    {"text": "\ufb01n \U0001f642 " * 40, "label": None, "stars": 2.0, "user": " 7\u200b"},
    {"text": "word " * 9_000, "label": "z", "stars": 1e300, "user": 7.0},
    {"text": 'a "quote", and\r\nlines', "label": " a ", "stars": -3, "user": "7"},
]
MODES: list[Mode] = [
    {"label_column": "label", "labels": ["a", "b"], "other": "b"},
    {"label_columns": ["label", "stars"], "labels_of": {"label": ["a", "b"], "stars": [0, 1, 2, 3, 4]}},
    {"label_column": "stars", "bins": [0, 2, 5], "pure": True},
]


def as_csv(rows: list[Row], folder: Path) -> object:
    pytest.importorskip("pandas").DataFrame(rows).to_csv(folder / "rows.csv", index=False)
    return folder / "rows.csv"


def as_jsonl(rows: list[Row], folder: Path) -> object:
    (folder / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    return folder / "rows.jsonl"


def as_parquet(rows: list[Row], folder: Path) -> object:
    """Users as texts: a column of parquet has one type."""
    frame = pytest.importorskip("pandas").DataFrame([{**row, "user": str(row["user"])} for row in rows])
    frame.to_parquet(folder / "rows.parquet")
    return folder / "rows.parquet"


def as_frame(rows: list[Row], folder: Path) -> object:
    return pytest.importorskip("pandas").DataFrame(rows)


def moved(fewer: object, more: object, mode: Mode) -> tuple[int, int]:
    """How far the sums of two inputs are apart, and how far they may be; both exact."""
    both = []
    for data in (fewer, more):
        config = SketchConfig(data=data, column="text", epsilon=1, **mode)
        rule = label_rule(config)
        features = map_for(config, rule)
        sums = exact_sums(row_source(config), rule, features, by_user=config.user_column is not None)
        both.append(np.concatenate([sums.totals.ravel(), sums.side.ravel()]))
    apart = np.abs(both[0] - both[1])
    return (int(apart.sum()), GRID) if features.norm == L1 else (int((apart * apart).sum()), GRID**2)


@pytest.mark.parametrize("kind", [as_csv, as_jsonl, as_parquet, as_frame])
@pytest.mark.parametrize("mode", MODES, ids=["labels", "columns", "pure"])
def test_a_row_or_a_user_more_moves_the_sums_by_at_most_one(
    kind: Callable[[list[Row], Path], object], mode: Mode, tmp_path: Path
) -> None:
    places = [tmp_path / name for name in ("fewer", "more")]
    for place in places:
        place.mkdir()
    fewer = kind(ROWS, places[0])
    for row in ODD:
        apart, most = moved(fewer, kind([*ROWS, row], places[1]), mode)
        assert apart <= most
    of_users = {**mode, "user_column": "user"}
    apart, most = moved(fewer, kind([*ROWS, *ODD], places[1]), of_users)
    assert 0 < apart <= most
