"""The law of a token: exact for all small data sets, and the published mistakes that it must not make."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from tacit.account.zcdp import choice_rho
from tacit.arrays import Floats
from tacit.errors import BadParameterError
from tacit.training.prompting.law import STEPS, AveragedLaw, Bounding
from tests.training.prompting.toy import OUTPUTS, largest_loss, law_of_two, neighbors, toy_logits

DOMAIN = ("a", "b", "c", "d")


def law_after(law: AveragedLaw, texts: Sequence[str], written: Sequence[int]) -> Floats:
    """The law of the next token of a batch that holds these texts."""
    public = toy_logits("", written)
    rows = np.stack([toy_logits(text, written) for text in texts]) if texts else np.zeros((0, OUTPUTS), np.float32)
    sums = law.bounded(rows, public).sum(axis=0) if len(rows) else np.zeros(OUTPUTS, dtype=np.int64)
    return law.law(sums, public)


@pytest.mark.parametrize("bounding", ["logits", "difference"])
@pytest.mark.parametrize(("clip", "temperature", "batch"), [(10.0, 2.0, 3), (2.0, 1.0, 3), (0.5, 0.7, 1)])
def test_two_tokens_for_all_data_sets_with_a_record_more(
    bounding: Bounding, clip: float, temperature: float, batch: int
) -> None:
    """Batches of up to 4 records, more or fewer than planned: the loss of two tokens is at most twice their price."""
    law = AveragedLaw(clip, temperature, batch, bounding)
    worst = 0.0
    for smaller, larger in neighbors(DOMAIN, 4):
        p, q = (law_of_two(lambda texts, written: law_after(law, texts, written), data) for data in (smaller, larger))
        worst = max(worst, largest_loss(p, q))
    assert 0.3 * 2 * law.width(OUTPUTS) < worst <= 2 * law.width(OUTPUTS)


@pytest.mark.parametrize("bounding", ["logits", "difference"])
def test_the_price_is_reached_by_the_worst_records(bounding: Bounding) -> None:
    """A record that pulls one token up and all others down: 2c / (sT) to a hundredth."""
    law = AveragedLaw(2.0, 1.0, 10, bounding)
    public = np.zeros(OUTPUTS, dtype=np.float32)
    towards = np.full((1, OUTPUTS), -50.0, dtype=np.float32)
    towards[0, 0] = 50.0
    other = np.zeros(OUTPUTS, dtype=np.int64)
    other[0] = -20 * STEPS * law.batch  # token 0 is nearly impossible so far
    p, q = law.law(other, public), law.law(other + law.bounded(towards, public)[0], public)
    ideal = 2 * law.clip / (law.batch * law.temperature)
    assert largest_loss(p, q) == pytest.approx(ideal, rel=0.02)
    assert largest_loss(p, q) <= law.width(OUTPUTS)


def test_the_range_is_what_the_price_says_and_not_only_the_loss() -> None:
    """The zero-concentrated price needs the range of the log-ratio, over all outcomes, in every neighbor."""
    law = AveragedLaw(3.0, 1.0, 2)
    for smaller, larger in neighbors(DOMAIN, 3):
        ratio = np.log(law_after(law, larger, [])) - np.log(law_after(law, smaller, []))
        assert ratio.max() - ratio.min() <= law.width(OUTPUTS)
    assert law.rho(OUTPUTS) == choice_rho(law.width(OUTPUTS))


def test_replacing_a_record_costs_twice_the_range() -> None:
    law = AveragedLaw(3.0, 1.0, 3, "logits", changes=2)
    worst = 0.0
    for smaller, larger in neighbors(DOMAIN, 2):
        for extra in DOMAIN:
            p, q = (law_after(law, data, []) for data in (larger, [*smaller, extra]))
            worst = max(worst, largest_loss(p, q))
    assert AveragedLaw(3.0, 1.0, 3, "logits").width(OUTPUTS) < worst <= law.width(OUTPUTS)


def test_the_numbers_of_a_record_are_its_own() -> None:
    """Bit by bit, whatever stands beside it, and however the array lies in memory."""
    rng = np.random.default_rng(0)
    logits, public = (rng.normal(0, 4, size).astype(np.float32) for size in ((9, 1000), 1000))
    for bounding in ("logits", "difference"):
        law = AveragedLaw(2.0, 1.0, 4, bounding)
        numbers = law.bounded(logits, public)
        for count in (1, 2, 5):
            assert np.array_equal(law.bounded(logits[:count], public), numbers[:count])
        assert np.array_equal(law.bounded(np.asfortranarray(logits), public), numbers)


# Mistakes that the same check must refute ---------------------------------------------------------------------------


def worst_of(law_of: object, domain: Sequence[str] = DOMAIN) -> float:
    assert callable(law_of)
    return max(largest_loss(law_of(smaller, []), law_of(larger, [])) for smaller, larger in neighbors(domain, 4))


def test_division_by_the_real_size_of_the_batch_is_refuted() -> None:
    """With a record more, the numbers of all the others shrink as well."""
    law = AveragedLaw(10.0, 1.0, 3, "logits")

    def wrong(texts: Sequence[str], written: Sequence[int]) -> Floats:
        return law_after(AveragedLaw(10.0, 1.0, max(1, len(texts)), "logits"), texts, written)

    assert worst_of(wrong) > 1.4 * law.width(OUTPUTS)


def test_no_clipping_is_refuted() -> None:
    law = AveragedLaw(3.0, 1.0, 3, "logits")

    def wrong(texts: Sequence[str], written: Sequence[int]) -> Floats:
        scores = sum((toy_logits(text, written).astype(np.float64) for text in texts), np.zeros(OUTPUTS)) / law.batch
        weights = np.exp(scores - scores.max())
        result: Floats = weights / weights.sum()
        return result

    assert worst_of(wrong) > 2 * law.width(OUTPUTS)


def test_a_public_subsample_gives_no_amplification() -> None:
    """Tang et al. draw the records of each token from a public seed and claim the price of a secret sample.

    Two records of four are drawn by seed 0. Whoever knows the seed knows whether a record was drawn: if it was, the
    loss is that of the whole price; the claimed ln(1 + q (e^width - 1)) with q = 1/2 is refuted.
    """
    law = AveragedLaw(10.0, 2.0, 2, "logits")
    claimed = np.log1p(0.5 * np.expm1(law.width(OUTPUTS)))

    def wrong(texts: Sequence[str], written: Sequence[int]) -> Floats:
        drawn = np.random.default_rng(0).random(8)[: len(texts)] < 0.5
        return law_after(law, [text for text, taken in zip(texts, drawn, strict=True) if taken], written)

    assert worst_of(wrong) > claimed


@pytest.mark.parametrize(
    ("clip", "temperature", "batch"), [(0.0, 1.0, 1), (1.0, 0.0, 1), (1.0, 1.0, 0), (1e-9, 1.0, 1)]
)
def test_numbers_that_mean_nothing_are_refused(clip: float, temperature: float, batch: int) -> None:
    with pytest.raises(BadParameterError):
        AveragedLaw(clip, temperature, batch)


def test_logits_that_are_no_numbers_stay_bounded() -> None:
    law = AveragedLaw(2.0, 1.0, 2)
    strange = np.array([[np.nan, np.inf, -np.inf, 0.0, 1e38], [np.nan] * 5], dtype=np.float32)
    public = np.zeros(OUTPUTS, dtype=np.float32)
    bounds: tuple[Bounding, ...] = ("logits", "difference")
    for bounding in bounds:
        steps = AveragedLaw(2.0, 1.0, 2, bounding).bounded(strange, public)
        assert np.abs(steps).max() <= law.bound
