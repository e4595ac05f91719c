"""Jobs take data in memory in any container: lists of rows, pandas frames, Arrow tables and `datasets`."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import tacit

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


CONTAINERS: list[Callable[[], object]] = [lambda: list(ROWS), frame, table, data_set]
IDS = ["rows", "frame", "table", "data set"]


@pytest.mark.parametrize("container", CONTAINERS, ids=IDS)
def test_a_sketch(container: Callable[[], object]) -> None:
    built = tacit.sketch(container(), column="text", label_columns="label", labels=["good", "bad"], epsilon=8.0)
    assert built.card.guarantee.epsilon == 8.0


@pytest.mark.parametrize("container", CONTAINERS, ids=IDS)
def test_a_report_about_released_texts(container: Callable[[], object]) -> None:
    released = tacit.rewrite(container(), columns="text", keep="label", mechanism="random", epsilon=1.0)
    report = tacit.evaluate(container(), released.data, columns="text", metrics="kept-words")
    assert report.sections
    attacked = tacit.audit(container(), released.data, column="text", attacks="linkage", encoder="static")
    assert attacked.sections
