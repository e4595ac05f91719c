"""The trade-off: axes that refuse to mix promises, known answers, and a bootstrap with a known false-alarm rate."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from tacit.errors import BadParameterError, NoGuaranteeError
from tacit.evaluation.downstream import Labeled, evaluate_downstream
from tacit.evaluation.learners.linear import WordProbe
from tacit.evaluation.scores import Interval, macro_f1_of_items
from tacit.evaluation.tradeoff import (
    Point,
    ScaledScore,
    comparable_groups,
    compare_arms,
    converted_axis,
    holm,
    measure_tradeoff,
    paired_bootstrap,
    pareto_front,
    points_of,
    privacy_axis,
    weighted_score,
)
from tacit.evaluation.tradeoff_report import tradeoff_section
from tacit.guarantee import Adjacency, Guarantee, Metric, Notion, Unit

EUCLIDEAN = Metric("Euclidean distance", diameter=5.0, typical=2.0, fingerprint="x")
WORD = Guarantee(notion=Notion.METRIC, epsilon=2.0, unit=Unit.TOKEN, adjacency=Adjacency.ANY_TWO, metric=EUCLIDEAN,
                 mechanism="santext")  # fmt: skip
PLAIN_WORD = Guarantee(notion=Notion.PURE, epsilon=3.0, unit=Unit.TOKEN, adjacency=Adjacency.ANY_TWO,
                       mechanism="response")  # fmt: skip
DOCUMENT = Guarantee(notion=Notion.PURE, epsilon=5.0, unit=Unit.DOCUMENT, adjacency=Adjacency.ANY_TWO,
                     mechanism="codebook")  # fmt: skip
APPROXIMATE = replace(DOCUMENT, notion=Notion.APPROXIMATE, epsilon=100.0, delta=1e-5, mechanism="dp-bart")
UTILITY_OPTIMIZED = replace(WORD, notion=Notion.UTILITY_OPTIMIZED_METRIC, offset=1.2, sensitive_share=0.9,
                            mechanism="santext+")  # fmt: skip


def point(guarantee: Guarantee, value: float = 0.6, name: str = "x", tokens: int | None = None, **more) -> Point:
    return Point(name, guarantee, Interval(value, value - 0.05, value + 0.05, 100), 0.2, 0.9, tokens=tokens, **more)


def test_one_kind_of_promise_makes_an_axis_that_says_which():
    axis = privacy_axis([WORD, replace(WORD, epsilon=8.0)])
    assert axis.values == (2.0, 8.0)
    assert "per token and unit of distance (Euclidean distance)" in axis.label
    assert not axis.converted
    mixed = privacy_axis([DOCUMENT, APPROXIMATE])  # pure holds for any delta
    assert mixed.label == "epsilon per document, with delta at most 1e-05"


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        (PLAIN_WORD, "do not go on one axis"),
        (DOCUMENT, "do not go on one axis"),
        (UTILITY_OPTIMIZED, "do not go on one axis"),
        (replace(WORD, metric=replace(EUCLIDEAN, fingerprint="other vectors")), "different metric"),
        (replace(WORD, adjacency=Adjacency.SAME_SET), "different adjacency"),
        (WORD.voided("a test seed"), "no guarantee"),
    ],
)
def test_different_promises_never_share_an_axis(other, reason):
    with pytest.raises(NoGuaranteeError, match=reason):
        privacy_axis([WORD, other])
    with pytest.raises(NoGuaranteeError):
        privacy_axis([other, WORD])
    assert all(len(group) == 1 for _, group in comparable_groups([point(WORD), point(other)]))


def test_a_converted_axis_is_proven_and_labeled():
    axis = converted_axis([point(WORD), point(PLAIN_WORD)])
    assert axis.values == (pytest.approx(2.0 * 5.0), 3.0)  # over the largest distance
    assert axis.converted
    assert "converted: over the largest distance" in axis.label
    axis = converted_axis([point(WORD, tokens=10), point(DOCUMENT)])
    assert axis.values == (pytest.approx(10 * 2.0 * 5.0), 5.0)
    assert "texts of 10 tokens" in axis.label
    assert "equal length" in axis.label
    same = converted_axis([point(DOCUMENT), point(APPROXIMATE)])
    assert not same.converted


def test_a_conversion_without_a_proof_is_refused():
    with pytest.raises(NoGuaranteeError, match="no plain counterpart"):
        converted_axis([point(UTILITY_OPTIMIZED), point(PLAIN_WORD)])
    with pytest.raises(NoGuaranteeError, match="not known how many"):
        converted_axis([point(WORD), point(DOCUMENT)])
    endless = replace(WORD, metric=replace(EUCLIDEAN, diameter=None))
    with pytest.raises(NoGuaranteeError, match="no proven largest distance"):
        converted_axis([point(endless), point(PLAIN_WORD)])
    user = replace(DOCUMENT, unit=Unit.USER)
    with pytest.raises(NoGuaranteeError, match="different unit"):
        converted_axis([point(user), point(DOCUMENT)])
    with pytest.raises(NoGuaranteeError, match="no guarantee"):
        converted_axis([point(DOCUMENT.voided("a test seed")), point(DOCUMENT)])


def test_scores_of_the_balance():
    attacked = point(DOCUMENT, 0.55, attack=ScaledScore(0.4, floor=0.3, ceiling=0.8))
    assert attacked.normalized == pytest.approx(0.5)
    assert attacked.hidden == pytest.approx(0.8)
    assert attacked.weighted(0.25) == pytest.approx(0.25 * 0.5 + 0.75 * 0.8)
    assert attacked.plain_tradeoff == pytest.approx((0.55 - 0.9) + (0.8 - 0.4))
    # A guesser has a favorable plain trade-off and no normalized utility.
    guesser = point(DOCUMENT, 0.2, attack=ScaledScore(0.0, floor=0.0, ceiling=0.96))
    assert guesser.plain_tradeoff > 0
    assert guesser.normalized == 0.0
    assert math.isnan(point(DOCUMENT).hidden)
    with pytest.raises(BadParameterError, match="between 0 and 1"):
        weighted_score(0.5, 0.5, 1.5)


def test_the_pareto_front():
    assert pareto_front([1, 2, 3, 4], [0.2, 0.5, 0.4, 0.9]) == [0, 1, 3]
    assert pareto_front([1, 1], [0.3, 0.4]) == [1]
    assert pareto_front([1, 1], [0.4, 0.4]) == [0, 1]


def test_holm_by_hand():
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []


def guesses(rng, truth, accuracy):
    wrong = rng.integers(0, 3, len(truth))
    return np.where(rng.random(len(truth)) < accuracy, truth, wrong).tolist()


def test_the_paired_bootstrap_rarely_sees_a_difference_that_is_not_there():
    """Two equally good predictors: a test at 5 % raises at most 20 false alarms in 150 (probability above: 1e-4)."""
    rng, alarms = np.random.default_rng(4), 0
    for seed in range(150):
        truth = rng.integers(0, 3, 120)
        first, second = (macro_f1_of_items(truth.tolist(), [guesses(rng, truth, 0.6)]) for _ in range(2))
        alarms += paired_bootstrap(first, second, 120, resamples=100, seed=seed).p <= 0.05
    assert alarms <= 20


def test_the_paired_bootstrap_sees_a_clear_difference():
    rng = np.random.default_rng(5)
    truth = rng.integers(0, 3, 400)
    good, bad = (macro_f1_of_items(truth.tolist(), [guesses(rng, truth, a)]) for a in (0.8, 0.4))
    difference = paired_bootstrap(good, bad, 400, resamples=500)
    assert difference.p == pytest.approx(2 / 501)
    assert 0 < difference.low < difference.difference < difference.high
    assert paired_bootstrap(good, good, 400, resamples=50).p == 1.0


def test_from_a_task_to_a_section():
    texts = [f"{word} {i}" for i in range(30) for word in ("soup", "rain")]
    train = Labeled(texts, ["food", "weather"] * 30)
    noise = Labeled(["nothing"] * 60, train.labels)
    evaluation = evaluate_downstream("classification", WordProbe("classification"), train,
                                     {"good": train, "bad": noise}, train, resamples=50)  # fmt: skip
    compared = compare_arms(evaluation, resamples=200)
    by_pair = {(c.first, c.second): c for c in compared}
    assert by_pair["original", "bad"].significant
    assert not by_pair["original", "good"].significant
    assert all(c.p_corrected >= c.p for c in compared)
    points = points_of(evaluation, {"good": WORD, "bad": DOCUMENT}, {"good": 2, "bad": None})
    tradeoff = measure_tradeoff(evaluation.metric, points, compared)
    assert len(tradeoff.groups) == 2
    assert tradeoff.together is not None
    section = tradeoff_section(tradeoff)
    assert len(section.figures) == 3
    assert all("<svg" in figure.svg for figure in section.figures)
    assert "converted" in section.figures[-1].description
    apart = measure_tradeoff("macro-F1", [point(UTILITY_OPTIMIZED, name="a"), point(DOCUMENT, name="b"),
                                          point(DOCUMENT.voided("a test seed"), name="c")])  # fmt: skip
    assert apart.together is None
    names = [finding.name for finding in tradeoff_section(apart).findings]
    assert names == ["Different kinds of promises", "Without a guarantee"]
    assert sum(map(len, (group for _, group in apart.groups))) == 2
