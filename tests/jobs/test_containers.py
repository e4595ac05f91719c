"""Jobs take data in memory in any container: lists of rows, pandas frames, Arrow tables and `datasets`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import tacit
from tacit.errors import BadInputError

ROWS = [
    {"text": text, "label": label}
    for text, label in 12 * [("a warm and lovely film", "good"), ("a dull and boring evening", "bad")]
]


def frame() -> object:
    return pytest.importorskip("pandas").DataFrame(ROWS)


def table() -> object:
    return pytest.importorskip("pyarrow").Table.from_pylist(ROWS)


def data_set() -> object:
    return pytest.importorskip("datasets").Dataset.from_list(ROWS)


def named_classes() -> Any:
    datasets = pytest.importorskip("datasets")
    classes = datasets.ClassLabel(names=["bad", "good"])
    features = datasets.Features({"text": datasets.Value("string"), "label": classes})
    return datasets.Dataset.from_list([{**row, "label": classes.str2int(row["label"])} for row in ROWS], features)


CONTAINERS: list[Callable[[], object]] = [lambda: list(ROWS), frame, table, data_set, named_classes]
IDS = ["rows", "frame", "table", "data set", "data set with classes"]


@pytest.mark.parametrize("container", CONTAINERS, ids=IDS)
def test_a_sketch(container: Callable[[], object]) -> None:
    built = tacit.sketch(container(), column="text", label_columns="label", labels=["good", "bad"], epsilon=8.0)
    assert built.card.guarantee.epsilon == 8.0
    assert built.findings.unlabeled == 0


def test_classes_without_a_number_are_no_label_and_stay_what_they_are() -> None:
    rows = named_classes().map(lambda row, number: {"label": -1 if number < 3 else row["label"]}, with_indices=True)
    with pytest.warns(match="3 of 24 rows have a label that is not in the public list"):
        built = tacit.sketch(rows, label_column="label", declare_labels_public=True, epsilon=8.0)
    assert built.sketch.labels == ("bad", "good")
    kept = tacit.rewrite(named_classes(), columns="text", keep="label", mechanism="random", epsilon=1.0).data
    assert kept["label"] == named_classes()["label"]
    assert kept.features["label"] == named_classes().features["label"]


def test_several_data_sets_in_one_are_refused_with_their_names() -> None:
    both = pytest.importorskip("datasets").DatasetDict(train=data_set(), test=data_set())
    with pytest.raises(BadInputError, match="several data sets \\(train, test\\): give one of them"):
        tacit.sketch(both, epsilon=1)


def test_labels_may_be_numbers_as_they_are_in_frames() -> None:
    rows = [{"text": row["text"], "stars": number % 3, "shown": number % 2 == 0} for number, row in enumerate(ROWS)]
    of_stars = tacit.sketch(rows, label_column="stars", labels=[0, 1, 2], epsilon=1)
    of_both = tacit.sketch(
        rows, label_columns=["stars", "shown"], labels_of={"stars": [0, 1, 2], "shown": [True, False]}, epsilon=1
    )
    assert of_stars.findings.unlabeled == of_both.findings.unlabeled == 0


@pytest.mark.parametrize("container", CONTAINERS, ids=IDS)
def test_a_report_about_released_texts(container: Callable[[], object]) -> None:
    released = tacit.rewrite(container(), columns="text", keep="label", mechanism="random", epsilon=1.0)
    report = tacit.evaluate(container(), released.data, columns="text", metrics="kept-words")
    assert report.sections
    attacked = tacit.audit(container(), released.data, column="text", attacks="linkage", encoder="static")
    assert attacked.sections


def test_rows_that_come_once_are_read_as_often_as_a_job_needs() -> None:
    options = {"label_column": "label", "declare_labels_public": True, "user_column": "text", "epsilon": 1}
    built = tacit.sketch(({**row, "body": "a text"} for row in ROWS), column="body", **options)
    assert (built.findings.rows, built.findings.users) == (24, 2)
