"""Exact sums: neighbors, users, parts and blocks."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.errors import BadInputError, BadParameterError
from tacit.matching import sums
from tacit.matching.blocks import EncoderBlock, FourierBlock, WordsBlock
from tacit.matching.features import FeatureMap, default_map
from tacit.matching.labels import Bins, ListedLabels, PublicLabels, public_topics
from tacit.matching.pool import load_pool
from tacit.matching.sums import exact_sums, rows_in_memory
from tacit.matching.whole_numbers import GRID

SENTENCES = load_pool().sentences
LABELS = ListedLabels(("a", "b", "c"))
SMALL = default_map(words=500)
RICH = FeatureMap((EncoderBlock.of(weight=0.5), FourierBlock.of(weight=0.5), WordsBlock.of(weight=0.6)), 0.35)
HOSTILE_TEXTS = st.sampled_from([*SENTENCES[::9_000], "", " ", "🙂", "\ud800", "the " * 9_000]) | st.text(max_size=40)
HOSTILE_LABELS = st.sampled_from(["a", " b ", "c", "unknown", None, math.nan, 1.0, True, "", ["a"], {"a": 1}])


def totals(
    texts: list[str], labels: list[Any], features: FeatureMap = SMALL, rule: PublicLabels = LABELS
) -> np.ndarray:
    return exact_sums(rows_in_memory(texts, labels), rule, features).totals


def squared_length(difference: np.ndarray) -> int:
    return sum(int(value) ** 2 for value in difference[difference != 0].tolist())


@settings(max_examples=60)
@given(st.lists(st.tuples(HOSTILE_TEXTS, HOSTILE_LABELS), min_size=2, max_size=8), st.data())
def test_neighbors_differ_by_at_most_the_sensitivity(rows: list[tuple[str, Any]], data: st.DataObject) -> None:
    left_out = data.draw(st.integers(0, len(rows) - 1))
    features, rule = data.draw(st.sampled_from([(SMALL, LABELS), (RICH, LABELS), (RICH, public_topics(8))]))
    others = [row for place, row in enumerate(rows) if place != left_out]
    everything, without = (
        totals([text for text, _ in part], [label for _, label in part], features, rule) for part in (rows, others)
    )
    assert squared_length(everything - without) <= GRID**2


@settings(max_examples=30)
@given(
    st.lists(st.tuples(HOSTILE_TEXTS, HOSTILE_LABELS, st.sampled_from(["u", "v", " u ", "w"])), min_size=2, max_size=14)
)
def test_a_user_moves_the_sums_by_at_most_the_sensitivity(rows: list[tuple[str, Any, str]]) -> None:
    def of(part: list[tuple[str, Any, str]]) -> np.ndarray:
        if not part:
            return np.zeros((3, RICH.dimension + 1), dtype=np.int64)
        return exact_sums(rows_in_memory(*map(list, zip(*part, strict=True))), LABELS, RICH, by_user=True).totals

    assert squared_length(of(rows) - of([row for row in rows if row[2].strip() != "u"])) <= GRID**2


def test_sums_are_those_of_single_rows_whatever_the_order_and_the_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [*SENTENCES[:50], "", "🙂"]
    labels = [("a", "b", "c", "z")[place % 4] for place in range(len(texts))]
    whole = totals(texts, labels, RICH)
    single = np.sum([totals([text], [label], RICH) for text, label in zip(texts, labels, strict=True)], axis=0)
    assert (whole == single).all()
    monkeypatch.setattr(sums, "BLOCK_ROWS", 7)
    order = np.random.default_rng(0).permutation(len(texts))
    assert (totals([texts[i] for i in order], [labels[i] for i in order], RICH) == whole).all()


def test_sums_of_ten_sites_are_those_of_all_rows() -> None:
    texts = list(SENTENCES[:1_000])
    labels = [("a", "b", "c")[place % 3] for place in range(1_000)]
    sites = [totals(texts[site::10], labels[site::10]) for site in range(10)]
    assert (np.sum(sites, axis=0) == totals(texts, labels)).all()


def test_counts_are_whole_rows() -> None:
    exact = exact_sums(rows_in_memory(["x", "", "y", "z"], ["a", "a", "b", "?"]), LABELS, SMALL)
    assert (exact.totals[:, -1] // SMALL.count_steps).tolist() == [2, 1, 0]
    assert exact.findings == sums.PrivateFindings(rows=4, unlabeled=1, empty=1)
    assert "totals" not in repr(exact)


def test_users_in_groups_give_the_same_sums(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = list(SENTENCES[:300])
    labels = [("a", "b", "c")[place % 3] for place in range(300)]
    users = [f"u{place % 41}" for place in range(300)]
    source = rows_in_memory(texts, labels, users)
    whole = exact_sums(source, LABELS, RICH, by_user=True)
    assert whole.findings.users == 41
    monkeypatch.setattr(sums, "GROUP_NUMBERS", 4_000)
    monkeypatch.setattr(sums, "ENTRIES_AT_ONCE", 50)
    assert (exact_sums(source, LABELS, RICH, by_user=True).totals == whole.totals).all()


def test_users_with_one_row_give_the_sums_of_records_and_many_rows_are_shortened(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    texts = list(SENTENCES[:60])
    labels = ["a"] * 60
    records = totals(texts, labels)
    own = exact_sums(rows_in_memory(texts, labels, [f"u{i}" for i in range(60)]), LABELS, SMALL, by_user=True)
    assert (own.totals == records).all()
    alone = exact_sums(rows_in_memory(texts, labels, ["u"] * 60), LABELS, SMALL, by_user=True).totals
    assert 0.99 * GRID**2 < squared_length(alone) <= GRID**2
    cosine = (alone * records).sum() / math.sqrt(squared_length(alone) * squared_length(records))
    assert cosine > 0.999
    monkeypatch.setattr(sums, "MOST_ROWS_OF_USER", 16)
    divided = exact_sums(rows_in_memory(texts, labels, ["u"] * 60), LABELS, SMALL, by_user=True).totals
    assert 0.9 * GRID**2 < squared_length(divided) <= GRID**2


def test_rows_that_cannot_be_used_are_refused() -> None:
    with pytest.raises(BadInputError, match="no rows"):
        totals([], [])
    with pytest.raises(BadInputError, match="as many"):
        rows_in_memory(["a"], ["a", "b"])
    with pytest.raises(BadInputError, match="row 2 has no user"):
        exact_sums(rows_in_memory(["a", "b"], ["a", "b"], ["u", " "]), LABELS, SMALL, by_user=True)
    with pytest.raises(BadParameterError, match="more than fit into memory"):
        exact_sums(rows_in_memory(["a"], ["a"]), ListedLabels(tuple(map(str, range(5_000)))), default_map(words=25_000))


def test_bins_add_up_like_labels() -> None:
    rule = Bins((0, 3, 5))
    assert (totals(["x", "y", "z"], [1, "4.5", None], rule=rule)[:, -1] // SMALL.count_steps).tolist() == [1, 1]
