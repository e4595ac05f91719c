"""Labels of all kinds of cells, bins and topics."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from tacit.errors import BadInputError, BadParameterError
from tacit.matching.labels import Bins, ListedLabels, Topics, label_name, public_topics, rule_from
from tacit.matching.pool import load_pool
from tacit.text.files import open_table


def places(rule: ListedLabels | Bins, values: list[object]) -> list[int]:
    return rule.places([""] * len(values), values).tolist()


def test_cells_of_any_type_find_their_label() -> None:
    rule = ListedLabels(("1", "2", "True", "two words", "01"))
    assert places(rule, [1, 1.0, "1", " 1 ", "1.0", np.int64(1), np.float32(2), "2.000"]) == [0] * 6 + [1, 1]
    assert places(rule, [True, "True", "two  words", "\ttwo words\n", "01"]) == [2, 2, 3, 3, 4]
    assert places(rule, [None, math.nan, math.inf, "", "  ", "nan", 1.5, "two", [1]]) == [-1] * 9


def test_other_labels_are_left_out_or_counted_as_one_of_the_list() -> None:
    assert places(ListedLabels(("a", "b")), ["a", "c", None]) == [0, -1, -1]
    assert places(ListedLabels(("a", "b"), other="b"), ["a", "c", None]) == [0, 1, 1]
    with pytest.raises(BadParameterError, match="one of"):
        ListedLabels(("a",), other="z")


@pytest.mark.parametrize("names", [(), ("",), ("a", " a "), ("1", "1.0"), ("a", "  ")])
def test_lists_that_name_a_label_twice_or_not_at_all_are_refused(names: tuple[str, ...]) -> None:
    with pytest.raises(BadParameterError):
        ListedLabels(names)


def test_bins_hold_their_lower_edge_and_everything_beyond_the_ends() -> None:
    rule = Bins((0, 2, 4))
    assert rule.names == ("0 to 2", "2 to 4")
    assert places(rule, [0, 1.99, 2, "3", " 4 ", 99, -5, True, None, "x", math.nan, ""]) == [
        0, 0, 1, 1, 1, 1, 0, -1, -1, -1, -1, -1,
    ]  # fmt: skip
    for edges in ((), (1,), (1, 1), (2, 1), (0, math.inf), (math.nan, 1)):
        with pytest.raises(BadParameterError):
            Bins(edges)


def test_topics_are_fixed_and_every_text_has_one() -> None:
    topics = public_topics(16)
    texts = [*load_pool().sentences[:2_000], "", "🙂"]
    cells = topics.places(texts, ())
    assert set(cells.tolist()) <= set(range(16))
    assert np.bincount(cells, minlength=16).min() > 10
    for place in (0, 5, -1, -2):
        assert topics.places([texts[place]], ())[0] == cells[place]
    public_topics.cache_clear()
    assert (public_topics(16).centers == topics.centers).all()
    again = rule_from(topics.to_dict(), topics.arrays())
    assert isinstance(again, Topics)
    assert (again.places(texts, ()) == cells).all()
    with pytest.raises(BadInputError):
        rule_from(topics.to_dict(), {"centers": topics.centers + 1})
    with pytest.raises(BadParameterError):
        public_topics(5_000)


def test_rules_are_the_same_after_a_way_through_json() -> None:
    for rule in (ListedLabels(("a", "b"), other="a"), ListedLabels(("a",), declared=True), Bins((0, 0.5, 1))):
        assert rule_from(rule.to_dict(), {}) == rule


def test_cells_of_a_parquet_file_are_understood(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    import pyarrow.parquet as parquet

    table = pyarrow.table({
        "flag": pyarrow.array([True, False, None]),
        "stars": pyarrow.array([1.0, 2.0, math.nan]),
        "code": pyarrow.array([7, 8, None], pyarrow.int8()),
        "name": pyarrow.array(["x", " y", None]).dictionary_encode(),
    })  # fmt: skip
    parquet.write_table(table, tmp_path / "rows.parquet")
    with open_table(tmp_path / "rows.parquet") as rows:
        names = [[label_name(value) for value in values] for _, values in rows.rows()]
    assert names == [["True", "1", "7", "x"], ["False", "2", "8", "y"], ["", "", "", ""]]
