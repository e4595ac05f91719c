"""Experiment files: what is allowed, and sentences that name the key."""

from __future__ import annotations

from pathlib import Path

import pytest

from tacit.errors import BadInputError
from tacit.experiments.config import data_folders, find_file, load, of_dict
from tests.experiments.small import ExperimentFile, small

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture
def value(tmp_path: Path) -> ExperimentFile:
    return small(tmp_path)


def complaint(value: ExperimentFile, size: str = "quick") -> str:
    with pytest.raises(BadInputError) as error:
        of_dict(value, size)
    text = str(error.value)
    assert "\n" not in text
    return text


def test_an_unknown_key_is_named_with_what_is_allowed(value: ExperimentFile):
    value["data"]["rows"]["lable"] = "label"
    said = complaint(value)
    assert "unknown key 'lable' in data.rows; did you mean 'label'?" in said
    assert "access" in said
    assert "task" in said


def test_an_unknown_key_in_a_list_of_tables(value: ExperimentFile):
    value["figures"] = [{"title": "a", "value": "b.c", "lable": "d"}]
    assert "unknown key 'lable' in figures.0; did you mean 'label'?" in complaint(value)


def test_a_value_outside_its_choices(value: ExperimentFile):
    value["data"]["rows"]["task"] = "summaries"
    assert "'data.rows.task' must be one of 'classification', 'pairs', 'similarity' or 'tagging'" in complaint(value)


def test_a_missing_key(value: ExperimentFile):
    del value["experiment"]["title"]
    assert "the key 'experiment.title' is missing" in complaint(value)


def test_a_wrong_number(value: ExperimentFile):
    value["data"]["rows"]["parts"]["train"]["rows"] = 0
    assert "'data.rows.parts.train.rows' is 0, but input should be greater than or equal to 1" in complaint(value)


def test_a_size_replaces_any_key_and_nothing_else(value: ExperimentFile):
    value["sizes"] = {"full": {"data": {"rows": {"parts": {"train": {"rows": 20}}}},
                               "variants": {"mechanism": {"santext": {"over": {"epsilon": [2]}}}}}}  # fmt: skip
    quick, full = of_dict(value, "quick"), of_dict(value, "full")
    assert (quick.data["rows"].parts["train"].rows, full.data["rows"].parts["train"].rows) == (16, 20)
    assert full.data["rows"].parts["train"].file == "rows.csv"
    assert full.variants["mechanism"]["santext"].over == {"epsilon": [2]}
    assert full.data["rows"].parts["test"] == quick.data["rows"].parts["test"]


def test_a_misspelled_key_in_a_size_is_found(value: ExperimentFile):
    value["sizes"] = {"full": {"data": {"rows": {"partz": {}}}}}
    for size in ("quick", "full"):  # whichever size is asked for
        assert "the experiment, full: unknown key 'partz'" in complaint(value, size)


@pytest.mark.parametrize("sizes", [3, {"full": 3}, ["full"]])
def test_sizes_that_are_no_tables(value: ExperimentFile, sizes: object):
    value["sizes"] = sizes
    assert "'sizes' holds a table for each size" in complaint(value)


@pytest.mark.parametrize("key", ["parts", "files"])
@pytest.mark.parametrize("name", ["../test", "a/b", ".hidden"])
def test_a_part_that_would_be_written_elsewhere(value: ExperimentFile, key: str, name: str):
    value["data"]["rows"][key] = {name: {"file": "rows.csv"} if key == "parts" else "rows.csv"}
    assert f"'data.rows.{key}.{name}' is {name!r}, which is no name: take letters" in complaint(value)


def test_an_unknown_size(value: ExperimentFile):
    assert "no size 'huge': choose from quick, full" in complaint(value, "huge")


@pytest.mark.parametrize("text", [b"[experiment\n", b"\xff\xfe"])
def test_a_file_that_is_no_toml(text: bytes, tmp_path: Path):
    path = tmp_path / "broken.toml"
    path.write_bytes(text)
    with pytest.raises(BadInputError, match=r"is not a TOML file|cannot be read"):
        load(path)


def test_a_file_that_is_not_there(tmp_path: Path):
    with pytest.raises(BadInputError, match="there is no experiment file"):
        load(tmp_path / "nothing.toml")


def test_a_missing_data_file_says_where_it_was_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TACIT_DATA", str(tmp_path / "data"))
    folders = data_folders(tmp_path / "x" / "experiment.toml")
    with pytest.raises(BadInputError, match=r"'data.a.parts.b.file' names the file 'c.csv'.*TACIT_DATA") as error:
        find_file("c.csv", folders, "data.a.parts.b.file")
    assert str(tmp_path / "data") in str(error.value)


@pytest.mark.parametrize("file", sorted((ROOT / "experiments").glob("*.toml")), ids=lambda path: path.stem)
@pytest.mark.parametrize("size", ["quick", "full"])
def test_the_files_that_are_shipped(file: Path, size: str):
    experiment = load(file, size)
    assert experiment.experiment.name == file.stem
    assert experiment.experiment.question
