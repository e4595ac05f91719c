"""Batches by a keyed hash, plans, and the writing itself: tokens counted, restarts, the law that is drawn from."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.account.zcdp import rho_of_epsilon
from tacit.arrays import Ids, Mask
from tacit.errors import NoGuaranteeError
from tacit.noise.source import StreamKey
from tacit.training.prompting.batches import PrivateRecord, digest_of_records, first_of_users, in_batches
from tacit.training.prompting.generation import Writing, waves, write_wave
from tacit.training.prompting.law import AveragedLaw
from tacit.training.prompting.plan import plan_label
from tacit.training.prompting.reading import check_rows
from tests.training.prompting.test_law import law_after
from tests.training.prompting.toy import OUTPUTS, ToyReader, ToyReading

KEY = b"k" * 32
TEXTS = st.lists(st.sampled_from(["a", "b", "c", "d", ""]), max_size=12)


# Batches ------------------------------------------------------------------------------------------------------------


@settings(max_examples=80, deadline=None)
@given(TEXTS, st.sampled_from(["a", "e", ""]), st.integers(0, 12), st.integers(1, 5))
def test_a_record_more_changes_one_batch_by_that_record(texts: list[str], extra: str, place: int, count: int) -> None:
    """Wherever it stands in the file, and also if it is a copy of another one."""
    before = [PrivateRecord(text) for text in texts]
    after = [*before[:place], PrivateRecord(extra), *before[place:]]
    old, new = in_batches(before, count, KEY), in_batches(after, count, KEY)
    changed = [(Counter(a), Counter(b)) for a, b in zip(old, new, strict=True) if a != b]
    assert len(changed) == 1
    assert changed[0][1] - changed[0][0] == Counter([PrivateRecord(extra)])
    assert not changed[0][0] - changed[0][1]


def test_batches_by_position_are_refuted() -> None:
    """A record at the top of the file moves every other one to the next place, and every batch changes."""

    def wrong(records: list[PrivateRecord], count: int) -> list[list[PrivateRecord]]:
        return [records[start::count] for start in range(count)]

    records = [PrivateRecord(text) for text in "abcdef"]
    changed = [a != b for a, b in zip(wrong(records, 3), wrong([PrivateRecord("new"), *records], 3), strict=True)]
    assert sum(changed) == 3


def test_copies_spread_over_the_batches() -> None:
    sizes = [len(batch) for batch in in_batches([PrivateRecord("the same")] * 400, 4, KEY)]
    assert min(sizes) > 60  # 100 expected each, deviation 8.7: below 60 once in 400,000 keys


@given(st.lists(st.tuples(st.sampled_from("uvw"), st.sampled_from("abc")), max_size=10), st.sampled_from("uvwx"))
def test_a_user_more_or_less_is_one_record_more_or_less(rows: list[tuple[str, str]], user: str) -> None:
    records = [PrivateRecord(text, user=owner) for owner, text in rows]
    without = [record for record in records if record.user != user]
    all_users, others = Counter(first_of_users(records, KEY)), Counter(first_of_users(without, KEY))
    assert sum((all_users - others).values()) <= 1
    assert not others - all_users


def test_records_are_known_again_in_any_order_and_no_others() -> None:
    records = [PrivateRecord("a"), PrivateRecord("b"), PrivateRecord("b")]
    assert digest_of_records(records, KEY) == digest_of_records(records[::-1], KEY)
    assert digest_of_records(records, KEY) != digest_of_records(records[:2], KEY)
    assert digest_of_records(records, KEY) != digest_of_records(records, b"q" * 32)


# Plans --------------------------------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 5_000), st.integers(1, 2_000), st.integers(2, 64), st.floats(0.2, 16.0),
    st.sampled_from([0.5, 2.0, 10.0]), st.sampled_from([None, 5, 100]),
)  # fmt: skip
def test_a_plan_never_costs_more_than_the_budget(
    count: int, rows: int, length: int, epsilon: float, clip: float, batch: int | None
) -> None:
    law, rho = AveragedLaw(clip, 1.0, 1), rho_of_epsilon(epsilon, 1e-6)
    plan = plan_label("x", law, count=count, rows=rows, length=length, candidates=50, rho=rho, batch=batch)
    if plan is not None:
        assert plan.rho <= rho
        assert plan.tokens >= length
        assert plan.rows <= rows
    else:
        whole = AveragedLaw(clip, 1.0, batch or count)
        assert length * whole.rho(50) > rho * 0.999


def test_the_plan_takes_the_smallest_batches_that_suffice() -> None:
    law, rho = AveragedLaw(2.0, 1.0, 1), rho_of_epsilon(4.0, 1e-6)
    plan = plan_label("x", law, count=2000, rows=100, length=24, candidates=200, rho=rho, batch=None)
    assert plan is not None
    assert 10 <= plan.law.batch <= 20
    smaller = AveragedLaw(2.0, 1.0, plan.law.batch - 1)
    assert plan.tokens * smaller.rho(200) > rho


# Writing ------------------------------------------------------------------------------------------------------------


def writing(law: AveragedLaw, *, tokens: int, length: int, stops: tuple[int, ...] = (), shortest: int = 0) -> Writing:
    ends = np.zeros(OUTPUTS, dtype=bool)
    ends[list(stops)] = True
    return Writing(law, np.arange(OUTPUTS), ends, tokens, length, shortest, OUTPUTS)


def test_drawn_pairs_follow_the_exact_law() -> None:
    """A chi-square test of 1,800 pairs of tokens over the batches of a wave; false alarm once in a million seeds."""
    from scipy.stats import chi2

    law = AveragedLaw(2.0, 1.0, 2)
    batches = [[PrivateRecord("a"), PrivateRecord("b"), PrivateRecord("c")]] * 12
    seen: Counter[tuple[int, ...]] = Counter()
    for turn in range(3):
        sources = [StreamKey.from_test_seed(3).stream(turn, bytes([number])) for number in range(12)]
        drawn = write_wave(batches, sources, ToyReader(4), writing(law, tokens=100, length=2))
        seen.update(tuple(text) for texts in drawn for text in texts)
    total = sum(seen.values())
    assert total == 3 * 12 * 50
    statistic = 0.0
    for first, second in itertools.product(range(OUTPUTS), repeat=2):
        chance = law_after(law, "abc", [])[first] * law_after(law, "abc", [first])[second]
        statistic += (seen[first, second] - total * chance) ** 2 / (total * chance)
    assert chi2.sf(statistic, OUTPUTS**2 - 1) > 1e-6


def test_every_batch_draws_exactly_its_tokens() -> None:
    """Texts end at stops, or at the longest length; a last one that is not finished is left out."""
    law = AveragedLaw(1.0, 1.0, 2)
    drawn = 0

    class Counting(AveragedLaw):
        def draw(self, *arguments: object) -> int:
            nonlocal drawn
            drawn += 1
            return super().draw(*arguments)  # type: ignore[arg-type]

    batches = [[PrivateRecord(text) for text in "ab"], [], [PrivateRecord(text) for text in "cdabc"]]
    sources = [StreamKey.from_test_seed(1).stream(0, bytes([number])) for number in range(3)]
    counted = writing(Counting(1.0, 1.0, 2), tokens=23, length=4, stops=(0,), shortest=2)
    texts = write_wave(batches, sources, ToyReader(4), counted)
    assert drawn == 3 * 23
    for of_batch in texts:
        assert 20 <= sum(map(len, of_batch)) <= 23
        assert all(2 < len(text) <= 4 for text in of_batch)
        assert all(0 not in text[:-1] for text in of_batch)
        assert all(text[-1] == 0 or len(text) == 4 for text in of_batch)
    assert law.width(OUTPUTS) == counted.law.width(OUTPUTS)


def test_other_batches_of_a_wave_do_not_matter() -> None:
    """A batch writes the same beside others, in other rows and readings, and alone."""
    law = AveragedLaw(3.0, 1.0, 3)
    own = [PrivateRecord(text) for text in "abca"]
    others = [[PrivateRecord(text) for text in texts] for texts in ("ddb", "", "aabbccdd")]
    rules = writing(law, tokens=40, length=5, stops=(1,))

    def key(number: int):  # type: ignore[no-untyped-def]
        return StreamKey.from_test_seed(5).stream(number, b"")

    alone = write_wave([own], [key(9)], ToyReader(4), rules)[0]
    beside = write_wave([*others, own], [key(0), key(1), key(2), key(9)], ToyReader(3), rules)[-1]
    assert alone == beside


def test_waves_are_cut_by_public_numbers() -> None:
    assert [len(wave) for wave in waves(20, 10)] == [16, 4]
    assert [len(wave) for wave in waves(3, 100_000)] == [1, 1, 1]
    assert waves(0, 5) == []


# The check of rows --------------------------------------------------------------------------------------------------


class NeighborReading(ToyReading):
    """A model whose numbers hang on the row: what the check must notice."""

    def _predict(self) -> None:
        super()._predict()
        self.logits = (self.logits + np.arange(len(self.texts), dtype=np.float32)[:, None] * 1e-3).astype(np.float32)


class NeighborReader(ToyReader):
    def read(self, texts: object) -> NeighborReading:
        assert isinstance(texts, list)
        return NeighborReading(texts)


def test_a_model_whose_rows_differ_is_refused() -> None:
    assert check_rows(ToyReader(4), ["a", "b", "c"]) == 0.0
    with pytest.raises(NoGuaranteeError) as refused:
        check_rows(NeighborReader(4), ["a", "b", "c"])
    assert refused.value.code == "rows-differ"


def test_a_row_that_begins_anew_forgets() -> None:
    reading = ToyReader(2).read(["a", "b"])
    start = reading.logits.copy()
    first: Ids = np.array([1, 2])
    nothing: Mask = np.zeros(2, dtype=bool)
    reading.extend(first, nothing)
    after = reading.logits.copy()
    reading.extend(np.array([3, 4]), nothing)
    reading.extend(first, np.ones(2, dtype=bool))
    assert np.array_equal(reading.logits, after)
    assert not np.array_equal(start, after)
