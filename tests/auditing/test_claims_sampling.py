"""Lower bounds from samples: wrong claims are refuted, true ones are not, and the confidence is kept.

All samples have fixed seeds. A test that a true claim is not refuted fails for at most one of a thousand seeds, the
stated confidence."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binomtest

from tacit import build
from tacit.auditing.binomial import at_least, at_most
from tacit.auditing.claims.claim import Claim, VectorDistance, claim_of
from tacit.auditing.claims.noise import laplace_scale_at_most, noise_check, noise_section, normal_scale_at_most
from tacit.auditing.claims.sampling import ceiling, sampled_check, sampled_section
from tacit.auditing.claims.scores import Agreement, MeanDirection, NearerTo, OutputRatio
from tacit.auditing.claims.secrets import secrets_check, secrets_section
from tacit.auditing.claims.settings import ClaimAuditSettings
from tacit.auditing.claims.words import sampled_vectors, sampled_words, secret_words
from tacit.documents.bounds import AnalyticGaussian, ClipL2, Laplace
from tacit.errors import BadInputError, BadParameterError
from tacit.noise.gaussian import analytic_gaussian_sigma, gaussian_delta
from tacit.noise.laplace import add_laplace
from tacit.noise.response import flip_bits
from tacit.noise.source import Source, StreamKey
from tacit.report import Light
from tests.conftest import small_table
from tests.words.exactness import euclidean
from tests.words.test_known_wrong import LINE, tem_with_a_quotient

PAIR = np.array([[0, 1]])


RATIO = (OutputRatio(),)


def check(sample, claim, *, samples=20_000, scores=RATIO, pairs=PAIR, **more):
    return sampled_check(sample, claim, pairs, scores, samples=samples, **more)


def responder(epsilon: float, seed: int = 0):
    source = Source.from_test_seed(seed)
    return lambda bit, count: flip_bits(np.full(count, bit), epsilon, source).astype(np.int64)


# The arithmetic -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("k", "n"), [(0, 50), (1, 50), (17, 50), (49, 50), (50, 50), (3, 100_000)])
def test_clopper_pearson_as_scipy_has_it(k, n):
    interval = binomtest(k, n).proportion_ci(confidence_level=0.98, method="exact")
    assert at_least(k, n, 0.01) == pytest.approx(interval.low, abs=1e-12)
    assert at_most(k, n, 0.01) == pytest.approx(interval.high, abs=1e-12)


def test_no_privacy_reaches_the_ceiling_and_pure_noise_nothing():
    open_door = check(lambda x, count: np.full(count, x), Claim(5.0))
    assert open_door.refuted
    assert open_door.worst.epsilon == pytest.approx(open_door.ceiling)
    assert open_door.ceiling == pytest.approx(ceiling(10_000, 0.0, 0.001))
    rng = np.random.default_rng(1)
    closed = check(lambda x, count: rng.integers(0, 10, count), Claim(0.0))
    assert not closed.refuted
    assert closed.worst.epsilon < 0.05
    assert ceiling(10_000, 0.0, 0.001) == pytest.approx(math.log(10_000 / math.log(2 / 0.001)), abs=0.01)


def test_randomized_response_is_placed_between():
    true = check(responder(1.5), Claim(1.5))
    assert not true.refuted
    assert true.worst.epsilon > 1.3, "and the bound is not far away"
    assert check(responder(2.0), Claim(1.5)).refuted


def test_the_stated_confidence_is_kept():
    """At confidence 0.9 a claim that is exactly true is refuted in at most 10 % of the runs: of 300 runs, more than 52
    would have probability below 1e-6. Here the bound is for three pairs at once."""
    pairs = np.array([[0, 1], [0, 1], [1, 0]])
    false_alarms = sum(
        check(responder(1.0, seed), Claim(1.0), samples=400, pairs=pairs, confidence=0.9).refuted for seed in range(300)
    )
    assert false_alarms <= 52


def test_delta_is_taken_off():
    """With probability 0.2 the input is told: delta 0.2 excuses that, delta 0.1 does not."""
    rng = np.random.default_rng(2)

    def sample(x, count):
        return np.where(rng.random(count) < 0.2, x, 2)

    assert check(sample, Claim(0.5)).refuted
    assert check(sample, Claim(0.5, delta=0.1)).refuted
    assert not check(sample, Claim(0.0, delta=0.2)).refuted


def test_what_cannot_be_refuted_is_said():
    outcome = check(lambda x, count: np.full(count, x), Claim(50.0), samples=1000)
    assert not outcome.refuted
    assert outcome.powerless
    finding = sampled_section(outcome).findings[0]
    assert finding.light is Light.NONE
    assert "could not have been" in finding.sentence
    refuted = sampled_section(check(lambda x, count: np.full(count, x), Claim(1.0))).findings[0]
    assert refuted.refuted
    assert refuted.numbers["witness"]["hits"] == 10_000
    assert (
        "not refuted at this sample size"
        in sampled_section(check(responder(1.0), Claim(2.0))).findings[0].numbers["verdict"]
    )


def test_bad_input():
    with pytest.raises(BadParameterError, match="confidence"):
        check(responder(1.0), Claim(1.0), confidence=1.0)
    with pytest.raises(BadParameterError, match="samples show nothing"):
        check(responder(1.0), Claim(1.0), samples=3)
    with pytest.raises(BadInputError, match="gave 3 outputs"):
        check(lambda x, count: np.zeros(3), Claim(1.0))
    with pytest.raises(BadInputError, match="not a number"):
        check(lambda x, count: np.full(count, np.nan), Claim(1.0), scores=[MeanDirection()])


# The published mistakes -----------------------------------------------------------------------------------------------


def test_tem_with_a_quotient_is_refuted_by_samples():
    distances = euclidean(small_table(40, 2, seed=2).vectors)
    law = tem_with_a_quotient(distances, 8.0, 1.5)
    rng = np.random.default_rng(3)
    i, j = np.unravel_index(
        np.argmax((np.log(law)[:, None] - np.log(law)[None]).max(axis=2) - 8.0 * distances), distances.shape
    )
    claim = Claim(8.0, distance=VectorDistance(small_table(40, 2, seed=2).vectors))

    def sample(x, count):
        return rng.choice(40, size=count, p=law[x])

    assert check(sample, claim, pairs=np.array([[i, j]]), samples=100_000).refuted
    right = np.exp(-4.0 * np.minimum(distances, 1.5))
    law = right / right.sum(axis=1, keepdims=True)
    assert not check(sample, claim, pairs=np.array([[i, j]]), samples=100_000).refuted


def test_workers_that_share_their_noise_are_refuted_and_ours_are_not():
    """Two records of one data set, one per worker. Changing the second must not show beyond epsilon * distance;
    with the same seed in both workers, equal words always give equal outputs."""
    mechanism = build("santext", {"epsilon": 1.0, "vectors": small_table(20, 2)})
    law = mechanism.laws(np.arange(20)).cumsum(axis=1)
    distance = float(np.linalg.norm(mechanism.table.vectors[0] - mechanism.table.vectors[1]))
    claim = Claim(1.0 * distance)

    def seeded_then_forked(second, count):
        uniform = np.random.default_rng(5 + second).random(count)
        return np.stack([law[x].searchsorted(uniform) for x in (0, second)], axis=1)

    key = StreamKey.from_test_seed(9)

    def ours(second, count):
        columns = [
            mechanism.draw(np.full(count, x), key.stream(worker, bytes([second])))
            for worker, x in enumerate((0, second))
        ]
        return np.stack(columns, axis=1)

    assert check(seeded_then_forked, claim, scores=[Agreement()]).refuted
    assert not check(ours, claim, scores=[Agreement()]).refuted

    def noisy(shared):
        def sample(second, count):
            rng = np.random.default_rng(second)
            z = rng.laplace(0, 1, (2, count))
            return np.stack([z[0], second + z[0 if shared else 1]], axis=1)

        return sample

    assert check(noisy(True), Claim(1.0), scores=[Agreement()]).refuted
    assert not check(noisy(False), Claim(1.0), scores=[Agreement()]).refuted


def adept_release(noise_for, epsilon, seed=0, n=64):
    bound = ClipL2(1.0)
    corners = np.stack([np.full((1, n), n**-0.5), np.full((1, n), -(n**-0.5))])
    source = Source.from_test_seed(seed)

    def sample(x, count):
        rows = bound.apply(np.broadcast_to(corners[x], (count, 1, n))).reshape(count, n)
        return noise_for(rows, bound, epsilon, source)

    return sample, corners.reshape(2, n)


def as_published(rows, bound, epsilon, source):
    return add_laplace(rows, epsilon=epsilon, l1_sensitivity=2 * bound.C, source=source)


@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_published_adept_is_refuted_by_counting_and_the_repairs_are_not(epsilon):
    scores = [MeanDirection(), NearerTo(1)]
    broken, _ = adept_release(as_published, epsilon)
    assert check(broken, Claim(epsilon), samples=8_000, scores=scores).refuted
    for noise, delta in ((Laplace(), 0.0), (AnalyticGaussian(1e-5), 1e-5)):
        sample, _ = adept_release(noise.add, epsilon)
        assert not check(sample, Claim(epsilon, delta=delta), samples=300, scores=scores).refuted


@pytest.mark.parametrize("epsilon", [2.0, 500.0])
def test_published_adept_is_refuted_at_any_epsilon_by_its_noise(epsilon):
    broken, corners = adept_release(as_published, epsilon)
    outcome = noise_check((broken(0, 500) - corners[0]), corners[0] - corners[1], "laplace", epsilon)
    assert outcome.refuted
    assert outcome.epsilon == pytest.approx(8 * epsilon, rel=0.05), "sqrt(n) times the claim"
    repaired, _ = adept_release(Laplace().add, epsilon)
    fine = noise_check((repaired(0, 500) - corners[0]), corners[0] - corners[1], "laplace", epsilon)
    assert fine.fits
    assert not fine.refuted
    assert fine.epsilon > 0.9 * epsilon


def test_the_classical_gaussian_at_epsilon_10_is_refuted_and_the_analytic_one_is_not():
    epsilon, delta = 10.0, 1e-5
    classical = math.sqrt(2 * math.log(1.25 / delta)) / epsilon
    analytic = analytic_gaussian_sigma(epsilon, delta, 1.0)
    assert gaussian_delta(epsilon, classical, 1.0) == pytest.approx(2.3e-5, rel=0.03)
    rng = np.random.default_rng(4)
    outcome = noise_check(rng.normal(0, classical, 40_000), [1.0], "normal", epsilon, delta=delta)
    assert outcome.refuted
    assert 1e-5 < outcome.delta < 2.3e-5
    assert noise_section(outcome).findings[0].refuted
    fine = noise_check(rng.normal(0, analytic, 40_000), [1.0], "normal", epsilon, delta=delta)
    assert not fine.refuted
    assert fine.epsilon > 0.95 * epsilon


def test_scales_are_bounded_with_their_confidence():
    """1,000 runs at 10 %: more than 150 misses would have probability below 1e-6; fewer than 50 likewise."""
    rng = np.random.default_rng(6)
    for draw, bound in ((rng.normal, normal_scale_at_most), (rng.laplace, laplace_scale_at_most)):
        misses = sum(bound(draw(0, 2.0, 100), 0.1) < 2.0 for _ in range(1000))
        assert 50 <= misses <= 150


def test_noise_of_another_shape_gives_no_verdict():
    outcome = noise_check(np.random.default_rng(0).uniform(-0.1, 0.1, 5000), [1.0], "normal", 1.0, delta=1e-6)
    assert not outcome.fits
    assert not outcome.refuted
    assert noise_section(outcome).findings[0].light is Light.AMBER
    assert noise_check(np.zeros(1000), [1.0], "laplace", 100.0).refuted, "no noise at all"
    errors = np.random.default_rng(0).uniform(-1e-8, 1e-8, 1000)
    assert noise_check(errors, [1.0], "normal", 100.0, delta=1e-6).refuted, "errors of rounding are no noise of a shape"
    with pytest.raises(BadInputError, match="too few"):
        noise_check([1.0], [1.0], "laplace", 1.0)
    with pytest.raises(BadParameterError, match="normal or laplace"):
        noise_check(np.ones(200), [1.0], "cauchy", 1.0)


# Made-up words --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [1.0, 60.0])
def test_unknown_words_passed_through_are_refuted_at_any_epsilon(epsilon):
    known = {"the", "cat"}
    outcome = secrets_check(lambda texts: [t if t not in known else "cat" for t in texts], epsilon)
    assert outcome.refuted
    assert outcome.epsilon > epsilon + 20
    assert secrets_section(outcome).findings[0].refuted
    rare = secrets_check(lambda texts: [texts[0], *["cat"] * (len(texts) - 1)], epsilon)
    assert rare.returned == 1
    assert rare.refuted, "one return is enough"
    assert not secrets_check(lambda texts: ["cat"] * len(texts), epsilon).refuted


@pytest.mark.parametrize("name", ["santext", "custext", "laplace"])
def test_our_own_let_no_unknown_word_through(name):
    mechanism = build(name, {"epsilon": 8.0, "vectors": small_table(60, 3)})
    outcome = secret_words(mechanism, mechanism.checks()[-1], ClaimAuditSettings(seed=3))
    assert (outcome.returned, outcome.refuted) == (0, False)


# Our noise mechanisms -------------------------------------------------------------------------------------------------


def line_table(shift: float = 0.0):
    from tacit.vectors import VectorTable

    words = ["zero", "one", "left", "right", "up", "down"]
    return VectorTable(words, LINE + np.float32(shift), name="line", source="made for a test")


@pytest.mark.parametrize("epsilon", [0.7, 3.0])
@pytest.mark.parametrize(
    ("name", "options"), [("laplace", {}), ("vickrey", {}), ("mahalanobis", {"lam": 0.9}), ("brr", {"bits": 20})]
)
def test_our_noise_mechanisms_are_not_accused(name, options, epsilon):
    mechanism = build(name, {"epsilon": epsilon, "vectors": line_table(), **options})
    claim = claim_of(mechanism)
    settings = ClaimAuditSettings(samples=20_000, seed=2)
    assert not sampled_words(mechanism, claim, settings).refuted
    if name != "brr":
        assert not sampled_vectors(mechanism, claim, settings).refuted


def test_noise_of_a_third_of_the_size_is_refuted():
    mechanism = build("laplace", {"epsilon": 9.0, "vectors": line_table()})
    honest = claim_of(mechanism)
    claim = Claim(3.0, distance=honest.distance)
    settings = ClaimAuditSettings(samples=40_000, seed=2)
    assert sampled_words(mechanism, claim, settings).refuted
    assert sampled_vectors(mechanism, claim, settings).refuted


def test_excluding_the_input_word_is_refuted():
    mechanism = build("laplace", {"epsilon": 0.7, "vectors": line_table()})
    honest = mechanism.draw

    def drop_the_input(ids, source):
        drawn = honest(ids, source)
        return np.where(drawn == ids, (drawn + 1) % len(LINE), drawn)

    mechanism.draw = drop_the_input
    assert sampled_words(mechanism, claim_of(mechanism), ClaimAuditSettings(samples=40_000, seed=2)).refuted


# Latent mechanisms ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    from tests.documents.test_latent_models import save_tiny

    place = tmp_path_factory.mktemp("models")
    return {kind: save_tiny(kind, place / kind) for kind in ("bart", "adept")}


def test_the_published_adept_is_refuted_and_our_latent_mechanisms_are_not(folders):
    from tacit.auditing.claims.documents import check_latents
    from tacit.auditing.claims.mechanisms import audit_mechanism
    from tacit.documents.adept import Adept, published_adept
    from tacit.documents.dp_bart import DPBart

    settings = ClaimAuditSettings(samples=6_000, seed=5)
    counted, measured = check_latents(published_adept(2.0, model=folders["adept"]), Claim(2.0), settings)
    assert counted.refuted
    assert measured.refuted
    counted, measured = check_latents(published_adept(50.0, model=folders["adept"]), Claim(50.0), settings)
    assert counted.powerless
    assert measured.refuted
    for mechanism in (
        Adept(epsilon=2.0, model=folders["adept"]),
        Adept(epsilon=2.0, model=folders["adept"], noise="laplace"),
        Adept(epsilon=2.0, model=folders["adept"], noise="laplace", norm="l1"),
        DPBart(epsilon=100.0, model=folders["bart"]),
    ):
        few = ClaimAuditSettings(samples=200, seed=5)
        findings = [f for section in audit_mechanism(mechanism, few) for f in section.findings]
        assert [f.name for f in findings] == ["Claim against samples", "Size of the noise"]
        assert not any(f.refuted for f in findings)
        assert findings[1].light is Light.GREEN


@pytest.mark.parametrize("words", [None, "30"])
def test_the_codebook_keeps_its_epsilon_exactly(tmp_path, words):
    from tacit.auditing.claims.documents import exact_texts
    from tacit.auditing.claims.mechanisms import audit_mechanism
    from tacit.documents.codebook_build import build_codebook
    from tacit.guarantee import Provenance
    from tests.documents.test_codebook import WordEncoder, mechanism, sentences

    texts = sentences(120)
    made = build_codebook(texts, Provenance("made-up", "made-up"), WordEncoder(), sizes=(16,), progress=None)
    made.save(tmp_path / "book")
    codebook = mechanism(tmp_path / "book", epsilon=2.0, symbols=1)
    (section,) = audit_mechanism(codebook, ClaimAuditSettings(words=words))
    assert section.findings[0].light is Light.GREEN
    assert exact_texts(codebook.checks()[0], ClaimAuditSettings(words=words)).tightest == pytest.approx(
        2.0, abs=1e-6
    ), "and it is used up"
