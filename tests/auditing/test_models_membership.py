"""Membership inference: exact numbers, both ends, shadow models, files that differ by themselves."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom

from tacit.auditing.models import membership
from tacit.auditing.models.blind import blind
from tacit.auditing.models.membership import attack, caught_at, epsilon_from_rates, membership_section
from tacit.auditing.models.rates import auc, auc_interval, clopper_pearson
from tacit.auditing.models.scores import TextLosses
from tacit.auditing.models.shadows import Shadows, leave_one_out, likelihood_ratio, logit_signal, train_shadows
from tacit.errors import BadInputError, BadParameterError
from tacit.report import Light


def test_clopper_pearson_is_exact():
    rate = clopper_pearson(7, 20, 0.95)
    assert binom.sf(6, 20, rate.low) == pytest.approx(0.025)
    assert binom.cdf(7, 20, rate.high) == pytest.approx(0.025)
    assert clopper_pearson(0, 5).low == 0.0
    assert clopper_pearson(5, 5).high == 1.0
    assert clopper_pearson(0, 100, 0.95).high == pytest.approx(1 - 0.025 ** (1 / 100))


def test_the_area_counts_pairs_and_its_interval_covers():
    members, others = np.array([3.0, 2.0, 2.0]), np.array([1.0, 2.0])
    pairs = [(a > b) + (a == b) / 2 for a in members for b in others]
    assert auc(members, others) == pytest.approx(np.mean(pairs))
    low, high = auc_interval(1.0, 50, 50)
    assert high == 1.0
    assert 0.85 < low < 1.0  # not degenerate at perfect separation
    assert auc_interval(0.0, 50, 50)[0] == 0.0
    # Coverage of the 95 % interval for normal scores with AUC 0.76: 300 runs miss at most 29 (1 in 1,000 by chance).
    generator, missed, truth = np.random.default_rng(0), 0, 0.7602499
    for _ in range(300):
        low, high = auc_interval(auc(generator.normal(1, 1, 40), generator.normal(0, 1, 60)), 40, 60)
        missed += not low <= truth <= high
    assert binom.sf(29, 300, 0.06) < 1e-2
    assert missed <= 29


def test_members_caught_at_a_rate_of_false_alarms():
    others = np.arange(1_000, dtype=float)
    members = np.array([998.5, 990.5, 500.0, 2_000.0])
    strict = caught_at(members, others, 0.001, 0.95)
    assert strict.resolved
    assert strict.rate.hits == 2  # above all non-members but one
    loose = caught_at(members, others, 0.01, 0.95)
    assert loose.rate.hits == 3
    few = caught_at(members, others[:50], 0.001, 0.95)
    assert not few.resolved
    assert caught_at(np.zeros(9), np.zeros(50), 0.01, 0.95).rate.hits == 0  # equal scores accuse nobody


def test_epsilon_from_rates():
    assert epsilon_from_rates(500, 1_000, 500, 1_000) == 0.0
    true, false = clopper_pearson(900, 1_000, 0.975), clopper_pearson(100, 1_000, 0.975)
    expected = max(math.log((true.low - 0.01) / false.high), math.log((1 - false.high - 0.01) / (1 - true.low)))
    assert epsilon_from_rates(900, 1_000, 100, 1_000, delta=0.01) == pytest.approx(expected)
    assert epsilon_from_rates(1_000, 1_000, 0, 1_000) > 5.0
    assert epsilon_from_rates(900, 1_000, 100, 1_000, delta=0.999) == 0.0


def test_randomized_response_is_not_accused():
    """Rates of epsilon = 1 exactly: 300 runs exceed the truth in at most 5 % of them, so in more than 29 with
    probability below 1 in 1,000."""
    generator, q = np.random.default_rng(1), 1 / (1 + math.exp(-1.0))
    results = [
        epsilon_from_rates(int(generator.binomial(500, q)), 500, int(generator.binomial(500, 1 - q)), 500)
        for _ in range(300)
    ]
    assert sum(value > 1.0 for value in results) <= 29
    assert np.median(results) > 0.6


def test_both_ends_of_an_attack():
    generator = np.random.default_rng(2)
    chance = attack("loss", generator.normal(size=400), generator.normal(size=400))
    assert not chance.works
    assert chance.epsilon < 0.1
    assert chance.advantage_low < 0 < chance.advantage_high
    sure = attack("loss", np.arange(400) + 1_000.0, np.arange(400, dtype=float))
    assert sure.auc == 1.0
    assert sure.works
    assert sure.caught[0].rate.share == 1.0
    assert sure.advantage > 0.98
    assert sure.epsilon > 3.0
    with pytest.raises(BadInputError, match="at least 10 members"):
        attack("loss", np.zeros(9), np.zeros(50))
    with pytest.raises(BadInputError, match="not a number"):
        attack("loss", np.full(10, np.nan), np.zeros(50))


def test_signals():
    losses = TextLosses(np.array([8.0, 2.0]), np.array([4, 2]))
    reference = TextLosses(np.array([8.0, 6.0]), np.array([4, 2]))
    assert membership.loss_signal(losses).tolist() == [-2.0, -1.0]
    assert membership.reference_signal(losses, reference).tolist() == [0.0, 2.0]
    assert membership.length_signal(losses, ["abcd", "ab"]).tolist() == [-2.0, -1.0]
    repeated, varied = membership.zlib_signal(
        TextLosses(np.array([10.0, 10.0]), np.array([1, 1])), ["a" * 200, "".join(map(chr, range(40, 240)))]
    )
    assert repeated < varied  # a text that zlib finds easy must be easier for the model to stand out
    p = np.array([0.2, 0.5, 0.9])
    np.testing.assert_allclose(logit_signal(-np.log(p)), np.log(p / (1 - p)))
    assert np.isfinite(logit_signal(np.array([0.0, 800.0]))).all()


def test_files_that_differ_by_themselves_are_noticed():
    generator = np.random.default_rng(3)
    words = [f"w{i}" for i in range(200)]

    def texts(count, favorite):
        return [" ".join([*generator.choice(words, 12), *([favorite] if generator.random() < 0.5 else [])])
                for _ in range(count)]  # fmt: skip

    assert not blind(texts(150, "x"), texts(150, "x")).differs
    blind_test = blind(texts(150, "monday"), texts(150, "x"))
    assert blind_test.differs
    attacks = [attack("loss", generator.normal(2, 1, 200), generator.normal(0, 1, 200))]
    assert membership_section(attacks, blind_test).findings[0].light is Light.AMBER
    section = membership_section(attacks, None, [(0.1, None, "a secret")])
    assert section.findings[0].light is Light.RED
    assert section.tables[1].private
    chance = [attack("loss", generator.normal(size=200), generator.normal(size=200))]
    assert membership_section(chance).findings[0].light is Light.GREEN


# Shadow models ------------------------------------------------------------------------------------------------------


def memorizing(strength: float):
    """Training that adds `strength` to the score of what it has seen, on top of how hard each text is by itself."""

    def train(texts, labels, seed):
        seen = set(texts)
        generator = np.random.default_rng(seed)

        def score(texts_asked, _):
            hard = np.array([sum(map(ord, text)) % 97 for text in texts_asked], dtype=float)
            return (
                -hard
                + strength * np.array([text in seen for text in texts_asked])
                + generator.normal(size=len(texts_asked))
            )

        return score

    return train


TEXTS = [f"text number {i} {'x' * (i % 7)}" for i in range(120)]


@pytest.mark.parametrize("offline", [False, True])
def test_shadow_models_see_what_the_loss_alone_hides(offline):
    shadows = train_shadows(memorizing(3.0), TEXTS, models=16, seed=5)
    assert (shadows.included.sum(axis=0) == 8).all()
    lira = attack("shadow", *leave_one_out(shadows, offline=offline))
    plain = attack("loss", shadows.scores[shadows.included], shadows.scores[~shadows.included])
    assert plain.auc < 0.6  # how hard a text is hides whether it was seen
    assert lira.auc > 0.95
    target = memorizing(3.0)(TEXTS[:60], None, 99)(TEXTS, None)
    ratio = likelihood_ratio(target, shadows, offline=offline)
    assert attack("shadow", ratio[:60], ratio[60:]).auc > 0.95


@pytest.mark.parametrize("offline", [False, True])
def test_shadow_models_are_at_chance_where_nothing_is_memorized(offline):
    shadows = train_shadows(memorizing(0.0), TEXTS, models=8, seed=6)
    success = attack("shadow", *leave_one_out(shadows, offline=offline), confidence=0.999)
    assert success.auc_low < 0.5 < success.auc_high


def test_the_likelihood_ratio_is_that_of_two_gaussians():
    generator = np.random.default_rng(7)
    included = np.tile(np.array([[True], [True], [False], [False]]), (1, 3))
    scores = generator.normal(size=(4, 3)) + 2 * included
    target = np.array([0.5, 1.0, 2.0])
    inside, outside = scores[:2], scores[2:]
    spread = [math.sqrt(((part - part.mean(axis=0)) ** 2).sum() / 3) for part in (inside, outside)]
    expected = (
        -0.5 * ((target - inside.mean(axis=0)) / spread[0]) ** 2 - math.log(spread[0])
        + 0.5 * ((target - outside.mean(axis=0)) / spread[1]) ** 2 + math.log(spread[1])
    )  # fmt: skip
    np.testing.assert_allclose(likelihood_ratio(target, Shadows(scores, included)), expected)


def test_labels_go_with_their_texts_and_bad_shadows_are_refused():
    seen = []

    def train(texts, labels, seed):
        seen.append(all(text == label for text, label in zip(texts, labels, strict=True)))
        return lambda queried, _: np.zeros(len(queried))

    train_shadows(train, TEXTS, TEXTS, models=4)
    assert seen == [True] * 4
    with pytest.raises(BadParameterError, match="even number"):
        train_shadows(train, TEXTS, TEXTS, models=5)
    with pytest.raises(BadInputError, match="one finite score"):
        train_shadows(lambda *_: lambda queried, _: [1.0], TEXTS, models=4)


# A real model -------------------------------------------------------------------------------------------------------


def test_an_overfit_language_model_is_caught_and_an_untrained_one_is_not():
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    from tacit.auditing.models.scores import CausalScorer
    from tests.auditing.test_models_scores import gpt2_for, overfit

    members, others, (model, tokenizer) = overfit()
    scorer = CausalScorer(model, tokenizer, "overfit")
    reference = CausalScorer(*gpt2_for([], epochs=0, seed=3), "untrained")
    inside, outside = scorer.losses(members), scorer.losses(others)
    assert attack("loss", -inside.mean, -outside.mean).auc > 0.99
    calibrated = attack(
        "reference",
        membership.reference_signal(inside, reference.losses(members)),
        membership.reference_signal(outside, reference.losses(others)),
    )
    assert calibrated.auc > 0.99
    floor = attack("loss", -reference.losses(members).mean, -reference.losses(others).mean, confidence=0.999)
    assert floor.auc_low < 0.5 < floor.auc_high
