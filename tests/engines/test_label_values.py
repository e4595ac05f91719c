"""The type of a randomized label is that of the drawn label, whatever stood in the cell."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from tacit.engines.job import RewriteJob
from tacit.engines.label_values import json_value
from tacit.engines.local import rewrite_file
from tacit.labels import LabelRule

from .test_users import Counted

SMALL = 0.1


def released(path: Path, labels: tuple[str, ...], suffix: str, *, seed: int | None = 5) -> list[Any]:
    out = path.with_name(f"out{suffix}")
    rule = LabelRule(labels, SMALL, "label")
    rewrite_file(
        RewriteJob(
            mechanism=Counted(epsilon=1.0), input=str(path), output=str(out), columns=("text",), labels=rule,
            seed=seed, force=True,
        )
    )  # fmt: skip
    if suffix == ".jsonl":
        return [json.loads(line)["label"] for line in out.read_text().splitlines()]
    if suffix == ".parquet":
        return pytest.importorskip("pyarrow.parquet").read_table(out)["label"].to_pylist()
    return [line.partition(",")[2] for line in out.read_text().splitlines()[1:]]


def jsonl(path: Path, labels: list[Any]) -> Path:
    path.write_text("".join(json.dumps({"text": f"text {i}", "label": label}) + "\n" for i, label in enumerate(labels)))
    return path


def parquet(path: Path, labels: list[Any], kind: Any = None) -> Path:
    arrow = pytest.importorskip("pyarrow")
    columns = {"text": [f"text {i}" for i in range(len(labels))], "label": arrow.array(labels, kind)}
    pytest.importorskip("pyarrow.parquet").write_table(arrow.table(columns), path)
    return path


MIXED = [
    (("0", "1"), [0, "1"]),
    (("True", "False", "unknown"), [True, False, "unknown"]),
    (("0", "1", "unknown"), [0, 1, "unknown"]),
    (("1.5", "2"), ["1.5", 2]),
    (("a b", "c"), [["a", "b"], "c"]),
]


@pytest.mark.parametrize(("labels", "cells"), MIXED)
@pytest.mark.parametrize("suffix", [".jsonl", ".parquet", ".csv"])
def test_a2_the_type_of_a_label_tells_nothing_of_the_true_one(tmp_path, labels, cells, suffix):
    """One type for each drawn label over 400 rows of every true label: none of (200 per true label, drawn nearly
    uniformly) would be missed with a chance above 1e-30."""
    if suffix == ".parquet":
        pytest.importorskip("pyarrow")
    values = released(jsonl(tmp_path / "in.jsonl", cells * 200), labels, suffix)
    seen = {(json.dumps(value), type(value)) for value in values}
    assert len(seen) == len(labels), "every label has one value of one type"
    for start in range(len(cells)):
        own = {(json.dumps(value), type(value)) for value in values[start :: len(cells)]}
        assert own == seen, "whatever the true label was, all values are possible"


@pytest.mark.parametrize("suffix", [".jsonl", ".csv"])
def test_a2_files_that_differ_in_types_only_are_released_alike(tmp_path, suffix):
    """The same noise and the same labels in other types: not one byte differs."""
    labels = ("0", "1.5", "True", "x")
    plain = [0, 1.5, True, "x"] * 20
    numbers = released(jsonl(tmp_path / "in.jsonl", plain), labels, suffix)
    texts = released(jsonl(tmp_path / "in.jsonl", [str(value) for value in plain]), labels, suffix)
    assert numbers == texts
    assert list(map(type, numbers)) == list(map(type, texts))


def test_a2_a_column_of_a_parquet_file_has_the_type_that_all_labels_fit(tmp_path):
    arrow = pytest.importorskip("pyarrow")
    path = tmp_path / "in.parquet"
    for kind, cells in ((arrow.int8(), [0, 1]), (arrow.bool_(), [True, False]), (arrow.float64(), [0.5, 2.0])):
        labels = tuple(map(str, cells))
        assert set(released(parquet(path, cells * 50, kind), labels, ".parquet")) == set(cells)
        assert {type(value) for value in released(path, labels, ".jsonl")} == {type(cells[0])}
        assert set(released(path, labels, ".csv")) == set(labels), "spelled as the list spells them"
    # A label that is no number: strings, for every row, and no crash in the middle of a run.
    values = released(parquet(path, [0, 1] * 50, arrow.int64()), ("0", "1", "unknown"), ".parquet")
    assert set(values) == {"0", "1", "unknown"}
    # 0.1 is spelled anew in 32 bits: strings again.
    values = released(parquet(path, [0.5, 2.0] * 50, arrow.float32()), ("0.5", "2.0", "0.1"), ".parquet")
    assert set(values) == {"0.5", "2.0", "0.1"}
    coded = arrow.array([3, 4] * 50).dictionary_encode()
    assert {str(value) for value in released(parquet(path, coded), ("3", "4"), ".parquet")} == {"3", "4"}
    words = arrow.array(["x", "y"] * 50).dictionary_encode()
    assert set(released(parquet(path, words), ("x", "y", "z"), ".parquet")) == {"x", "y", "z"}


def test_a2_the_value_of_a_label_is_what_it_spells():
    for value in (
        0,
        -3,
        12,
        0.5,
        -0.0,
        1e300,
        True,
        False,
        "x",
        "",
        "1_000",
        "007",
        " 1",
        "nan",
        "inf",
        "true",
        "9" * 5000,
    ):
        assert json_value(str(value)) == value
        assert type(json_value(str(value))) is type(value)
    assert math.copysign(1.0, json_value("-0.0")) == -1.0
