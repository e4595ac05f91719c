"""Counts of topics: what a unit adds is bounded exactly, every cell gets noise, and words pass a threshold only."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.errors import BadInputError
from tacit.guarantee import Notion, Unit
from tacit.noise.source import Source
from tacit.training.topics.counts import STEPS, ExactCounts, UnitCounts
from tacit.training.topics.release import CELL_SHARE, TopicNoise, TopicTerms, topic_noise

CELLS = 3
WORDS = st.lists(st.sampled_from(["card", "bank", "rain", "sun", "train", "bus", "fee"]), max_size=7, unique=True)
ROWS = st.lists(
    st.tuples(st.sampled_from(["ann", "bob", "cem"]), st.integers(-1, CELLS - 1), WORDS), min_size=1, max_size=9
)


def counted(rows: list[tuple[str, int, list[str]]], *, by_user: bool) -> ExactCounts:
    counts = UnitCounts(CELLS, 3, by_user=by_user)
    counts.add(np.array([cell for _, cell, _ in rows]), [words for _, _, words in rows], [user for user, _, _ in rows])
    return counts.finish()


def merged_words(exact: ExactCounts, topics: list[int]) -> dict[tuple[int, str], int]:
    sums: dict[tuple[int, str], int] = {}
    for (cell, word), steps in exact.words.items():
        sums[topics[cell], word] = sums.get((topics[cell], word), 0) + steps
    return sums


@given(rows=ROWS, topics=st.lists(st.integers(0, 1), min_size=CELLS, max_size=CELLS), by_user=st.booleans())
@settings(max_examples=150, deadline=None)
def test_a_unit_moves_counts_by_no_more_than_was_promised(
    rows: list[tuple[str, int, list[str]]], topics: list[int], by_user: bool
) -> None:
    """All neighbors of the drawn data: each unit taken away, however cells are joined to topics afterwards."""
    everything = counted(rows, by_user=by_user)
    units = sorted({user for user, _, _ in rows}) if by_user else list(range(len(rows)))
    for unit in units:
        rest = [row for place, row in enumerate(rows) if (row[0] if by_user else place) != unit]
        if not rest:
            continue
        without = counted(rest, by_user=by_user)
        assert np.abs(everything.cells - without.cells).sum() <= STEPS
        mine, others = merged_words(everything, topics), merged_words(without, topics)
        moved = [mine.get(entry, 0) - others.get(entry, 0) for entry in {*mine, *others}]
        assert sum(step * step for step in moved) <= STEPS * STEPS
        assert sum(step != 0 for step in moved) <= 3


def test_a_user_who_is_not_bounded_would_break_the_promise() -> None:
    """The mistake that the bound is there for: one count for each text of a user."""
    rows = [("ann", 0, ["card"])] * 50 + [("bob", 1, ["rain"])]
    by_text = counted(rows, by_user=False).cells - counted(rows[50:], by_user=False).cells
    by_user = counted(rows, by_user=True).cells - counted(rows[50:], by_user=True).cells
    assert np.abs(by_text).sum() == 50 * STEPS
    assert np.abs(by_user).sum() == STEPS


def noise_for(epsilon: float, cells: int = CELLS, units: int = 1000) -> TopicNoise:
    return topic_noise(TopicTerms(epsilon, 1e-6), cells, units, secure=True)


@pytest.mark.parametrize("epsilon", [0.1, 0.7, 1.0, 3.0, 11.0])
def test_counts_keep_epsilon_exactly_for_all_neighbors(epsilon: float) -> None:
    """ln Pr[k] of the discrete Laplace is linear in |k|, so the worst loss over all outputs is distance / scale."""
    noise = noise_for(epsilon)
    loss = Fraction(STEPS, noise.cell_scale)
    assert loss <= CELL_SHARE * Fraction(epsilon) * (1 + Fraction(1, 2**50))
    assert loss > CELL_SHARE * Fraction(epsilon) * (1 - Fraction(1, 2**15))
    assert noise.guarantee.epsilon <= epsilon
    assert noise.guarantee.notion is Notion.APPROXIMATE


def test_noise_on_used_cells_alone_is_refuted() -> None:
    """A count of exactly 0 for a cell that nobody uses: one text more, and an output appears that was impossible."""
    exact, neighbor = np.array([4, 0, 0]) * STEPS, np.array([4, 1, 0]) * STEPS
    source = Source.from_test_seed(3)
    noisy = noise_for(1.0).noisy_cells(ExactCounts(exact, {}, 4), source)
    assert (noisy != 0).all()  # probability of an exact 0 in a cell: 1 in 10 million
    only_used = np.where(exact > 0, noisy, 0.0)
    assert only_used[1] == 0.0
    assert (neighbor > 0).sum() != (exact > 0).sum()


def test_words_below_the_threshold_stay_hidden() -> None:
    """A word of one text passes with probability below delta; words of thousands pass."""
    words = {(0, "bank"): 3000 * STEPS, (1, "bank"): 2000 * STEPS, (2, "secret"): STEPS}
    exact = ExactCounts(np.array([3000, 2000, 1]) * STEPS, words, 5001)
    noise = noise_for(1.0, units=5001)
    shown = noise.shown_words(exact, np.array([0, 0, 1]), 2, Source.from_test_seed(1))
    assert set(shown[0]) == {"bank"}
    assert shown[1] == {}
    assert abs(shown[0]["bank"] - 5000) < 10 * noise.words.scale


def test_the_law_of_the_cells_is_that_of_the_claim() -> None:
    """Mean absolute noise of 20,000 cells: b within 4 standard errors (false alarm below 1 in 10,000)."""
    noise = noise_for(1.0, cells=20_000)
    noisy = noise.noisy_cells(ExactCounts(np.zeros(20_000, dtype=np.int64), {}, 10), Source.from_test_seed(5))
    assert noise.scale == pytest.approx(5.0, rel=1e-5)
    assert abs(np.abs(noisy).mean() - 5.0) < 4 * 5.0 / math.sqrt(20_000)


def test_the_promise_names_its_unit_and_a_seed_voids_it() -> None:
    terms = TopicTerms(1.0, None, 4, by_user=True)
    assert topic_noise(terms, 10, 100, secure=True).guarantee.unit is Unit.USER
    assert not topic_noise(terms, 10, 100, secure=False).guarantee.is_private


def test_one_name_in_two_spellings_is_one_user() -> None:
    """White space, and how Unicode composes a letter, make no second person with a budget of its own."""
    spellings = ["Ren\u00e9", " Rene\u0301 "]
    twice = counted([(name, 0, ["bank"]) for name in spellings], by_user=True)
    assert twice.units == 1
    assert twice.cells.sum() == STEPS


def test_rows_without_a_user_or_at_all_are_refused() -> None:
    with pytest.raises(BadInputError) as raised:
        counted([("  ", 0, [])], by_user=True)
    assert raised.value.code == "no-user"
    with pytest.raises(BadInputError) as raised:
        UnitCounts(3, 3).finish()
    assert raised.value.code == "no-rows"
