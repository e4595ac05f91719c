"""Batches by a keyed hash, plans, and the writing itself: tokens counted, restarts, the law that is drawn from."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.account.zcdp import rho_of_epsilon
from tacit.arrays import Floats, Floats32, Ids, Integers, Mask
from tacit.errors import NoGuaranteeError
from tacit.noise.source import Source, StreamKey
from tacit.training.prompting.batches import (
    PrivateRecord,
    SeatedText,
    digest_of_records,
    first_of_users,
    in_batches,
    seated,
)
from tacit.training.prompting.generation import MOST_BATCHES, Writing, next_wave, write_wave
from tacit.training.prompting.law import AveragedLaw, Bounding
from tacit.training.prompting.plan import plan_label
from tacit.training.prompting.reading import check_rows
from tests.training.prompting.test_law import law_after
from tests.training.prompting.toy import OUTPUTS, ToyReader, ToyReading, largest_loss, neighbors, toy_logits

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


@settings(max_examples=80, deadline=None)
@given(TEXTS, st.sampled_from(["a", "e", ""]), st.integers(0, 12))
def test_a_record_more_moves_no_seat(texts: list[str], extra: str, place: int) -> None:
    before = [PrivateRecord(text) for text in texts]
    after = [*before[:place], PrivateRecord(extra), *before[place:]]
    old, new = Counter(seated(before, KEY)), Counter(seated(after, KEY))
    assert not old - new
    assert sum((new - old).values()) == 1


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


def in_seats(texts: str) -> list[SeatedText]:
    return seated([PrivateRecord(text) for text in texts], KEY)


def test_drawn_pairs_follow_the_exact_law() -> None:
    """A chi-square test of 1,800 pairs of tokens over the batches of a wave; false alarm once in a million seeds."""
    from scipy.stats import chi2

    law = AveragedLaw(2.0, 1.0, 2)
    batches = [in_seats("abc")] * 12
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

    batches = [in_seats("ab"), [], in_seats("cdabc")]
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
    own = in_seats("abca")
    others = [in_seats(texts) for texts in ("ddb", "", "aabbccdd")]
    rules = writing(law, tokens=40, length=5, stops=(1,))

    def key(number: int):  # type: ignore[no-untyped-def]
        return StreamKey.from_test_seed(5).stream(number, b"")

    alone = write_wave([own], [key(9)], ToyReader(4), rules)[0]
    beside = write_wave([*others, own], [key(0), key(1), key(2), key(9)], ToyReader(4), rules)[-1]
    assert alone == beside


def test_waves_are_cut_by_public_numbers() -> None:
    assert next_wave(0, 20, 10, most_rows=160, usual=100) == range(16)
    assert next_wave(16, 20, 10, most_rows=160, usual=100) == range(16, 20)
    assert next_wave(4, 20, 10, most_rows=160, usual=3) == range(4, 7)
    assert next_wave(1, 3, 100_000, most_rows=160, usual=0) == range(1, 2)
    assert len(next_wave(0, 10_000, 1, most_rows=100_000, usual=10_000)) == MOST_BATCHES


# A model whose numbers hang on the row ------------------------------------------------------------------------------


class RowReading(ToyReading):
    """The toy model on a processor at its worst: a text has quite other numbers in each row."""

    def _predict(self) -> None:
        rows = zip(self.texts, self.written, strict=True)
        self.logits = np.stack([toy_logits(f"{row} {text}", written) for row, (text, written) in enumerate(rows)])


class RowReader(ToyReader):
    def read(self, texts: Sequence[str]) -> RowReading:
        assert len(texts) == self.rows
        return RowReading(texts)


def laws_of_tokens(law: AveragedLaw, batches: Sequence[Sequence[SeatedText]], forced: int) -> list[Floats]:
    """The exact laws of the first two tokens of each batch: of the second, after this one has been drawn."""
    laws: list[Floats] = []

    class Noting(AveragedLaw):
        def draw(self, sums: Integers, reference: Floats32 | None, source: Source) -> int:
            laws.append(self.law(sums, reference))
            return forced

    noting = Noting(law.clip, law.temperature, law.batch, law.bounding)
    sources = [StreamKey.from_test_seed(0).stream(number, b"") for number in range(len(batches))]
    write_wave(batches, sources, RowReader(3), writing(noting, tokens=2, length=2))
    return laws


def by_seats(texts: Sequence[str], key: bytes) -> list[list[SeatedText]]:
    return [seated(batch, key) for batch in in_batches([PrivateRecord(text) for text in texts], 2, key)]


def packed(texts: Sequence[str], key: bytes) -> list[list[SeatedText]]:
    """The mistake: the records of a batch in neighboring rows, so that a record more moves those behind it."""
    batches = in_batches([PrivateRecord(text) for text in texts], 2, key)
    return [[SeatedText(record.text, place) for place, record in enumerate(batch)] for batch in batches]


Placing = Callable[[Sequence[str], bytes], list[list[SeatedText]]]


def worst_losses(place: Placing, law: AveragedLaw, key: bytes) -> tuple[float, int]:
    """The largest loss of a token over all neighbors of at most 5 records, and how many batches change at most."""
    worst, most = 0.0, 0
    for smaller, larger in neighbors(("a", "b", "c"), 5):
        for forced in (0, 3):
            before, after = (laws_of_tokens(law, place(data, key), forced) for data in (smaller, larger))
            losses = [largest_loss(p, q) for p, q in zip(before, after, strict=True)]
            changed = {number % 2 for number, loss in enumerate(losses) if loss > 0}
            worst, most = max(worst, *losses), max(most, len(changed))
    return worst, most


@pytest.mark.parametrize("bounding", ["logits", "difference"])
def test_rows_that_differ_break_no_promise(bounding: Bounding) -> None:
    """For all neighbors, however many more records a batch has than the one it was planned for."""
    law = AveragedLaw(2.0, 1.0, 1, bounding)
    worst, batches = worst_losses(by_seats, law, KEY)
    assert 0.3 * law.width(OUTPUTS) < worst <= law.width(OUTPUTS)
    assert batches == 1


def test_packed_rows_are_refuted() -> None:
    law = AveragedLaw(2.0, 1.0, 1, "difference")
    assert worst_losses(packed, law, KEY)[0] > 1.5 * law.width(OUTPUTS)


# The check of rows --------------------------------------------------------------------------------------------------


class NeighborReading(ToyReading):
    """A model whose numbers hang on what the other rows hold: what the check must notice."""

    def _predict(self) -> None:
        super()._predict()
        self.logits = (self.logits + np.float32(1e-6) * sum(map(len, self.texts))).astype(np.float32)


class NeighborReader(ToyReader):
    def read(self, texts: Sequence[str]) -> NeighborReading:
        return NeighborReading(texts)


def test_a_model_whose_rows_hang_on_each_other_is_refused() -> None:
    check_rows(ToyReader(4), ["a", "b", "c"])
    check_rows(RowReader(4), ["a", "b", "c"])
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
