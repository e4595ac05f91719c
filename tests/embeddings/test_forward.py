"""DP-Forward, repaired: the residual audit, the published mistake refuted, functions of one text alone."""

from __future__ import annotations

import numpy as np
import pytest

from tacit.auditing.claims.claim import Claim
from tacit.auditing.claims.documents import check_latents
from tacit.auditing.claims.mechanisms import audit_mechanism
from tacit.auditing.claims.published_forward import published_forward, published_noisy_latents
from tacit.auditing.claims.settings import ClaimAuditSettings
from tacit.embeddings.forward import Forward
from tacit.errors import BadParameterError, NoGuaranteeError
from tacit.guarantee import Adjacency, Notion, Unit
from tacit.noise.gaussian import analytic_gaussian_sigma
from tacit.noise.source import new_source

TEXTS = ["", "   ", "play some music", "what is the weather in Rome", "🙂", "word " * 5_000]


class PublishedForward(Forward):
    """Noise for sensitivity C, as published."""

    def noisy_latents(self, latents, source):
        return published_noisy_latents(np.asarray(latents), self.epsilon, self.delta, source)


@pytest.mark.parametrize("epsilon", [1.0, 8.0, 50.0])
def test_the_residual_audit_passes_ours_and_refutes_the_published_one(epsilon):
    settings = ClaimAuditSettings(samples=1_500, seed=4)
    ours = Forward(epsilon=epsilon, delta=1e-5, dimensions=8)
    findings = [finding for section in audit_mechanism(ours, settings) for finding in section.findings]
    assert [finding.name for finding in findings] == ["Claim against samples", "Size of the noise"]
    assert not any(finding.refuted for finding in findings)
    _, measured = check_latents(
        PublishedForward(epsilon=epsilon, delta=1e-5, dimensions=8), Claim(epsilon, delta=1e-5), settings
    )
    assert measured.refuted
    assert measured.epsilon > 1.5 * epsilon


def test_the_published_settings_claim_8_and_spend_104():
    central, local = published_forward(), published_forward(central=False)
    assert central.claimed == 8
    assert central.one_pass == pytest.approx(45.6, abs=0.1)
    assert central.all_passes == pytest.approx(104.4, abs=0.1)
    assert local.sigma == pytest.approx(analytic_gaussian_sigma(8, 1e-5, 1.0))
    assert local.one_pass == pytest.approx(19.1, abs=0.1)
    assert local.all_passes == pytest.approx(40.5, abs=0.1)


def test_laplace_noise_is_pure_and_not_refuted():
    mechanism = Forward(epsilon=4, noise="laplace", dimensions=4)
    promised = mechanism.promise()
    assert (promised.notion, promised.delta) == (Notion.PURE, 0.0)
    assert promised.parameters["l1 sensitivity"] == pytest.approx(4.0)  # 2 C sqrt(4)
    findings = [f for s in audit_mechanism(mechanism, ClaimAuditSettings(samples=500, seed=2)) for f in s.findings]
    assert not any(finding.refuted for finding in findings)


def test_every_text_has_a_vector_in_the_ball_and_on_the_grid():
    mechanism = Forward(epsilon=10)
    clean = mechanism.projection.apply(TEXTS)
    lengths = np.linalg.norm(clean, axis=1)
    assert np.isfinite(clean).all()
    assert ((lengths == 0) | (np.abs(lengths - 1) < 1e-9)).all()
    assert lengths[0] == 0  # nothing is known of an empty text
    release = mechanism.embed(TEXTS)
    assert release.matrix.dtype == np.float32
    assert release.matrix.shape == (len(TEXTS), 64)
    assert release.units == [1] * len(TEXTS)
    promised = release.guarantee
    assert (promised.unit, promised.adjacency, promised.delta) == (Unit.DOCUMENT, Adjacency.ANY_TWO, 1e-6)
    sigma = mechanism.noise_scale
    step = 2.0 ** np.floor(np.log2(sigma * 2.0**-20))
    assert (release.matrix.astype(np.float64) / step % 1 == 0).all()


def test_a_vector_is_a_function_of_its_text_alone():
    """Bit for bit, in any batch and any place."""
    mechanism = Forward(epsilon=10)
    together = mechanism.projection.apply(TEXTS)
    for place, text in enumerate(TEXTS):
        assert (mechanism.projection.apply([text])[0] == together[place]).all()
        assert (mechanism.projection.apply([text, *TEXTS * 7])[0] == together[place]).all()


class WobblyEncoder:
    """An encoder whose last bits depend on the batch, as torch does it."""

    name = "wobbly"
    dimension = 24

    def encode(self, texts, progress=None):
        shift = 4e-7 * np.sin(len(texts) + np.arange(self.dimension))
        return (np.stack([self.encode_alone(text) for text in texts]) + shift).astype(np.float32)

    def encode_alone(self, text):
        generator = np.random.default_rng(sum(map(ord, text)))
        vector = generator.standard_normal(self.dimension)
        return (vector / np.linalg.norm(vector)).astype(np.float32)


def test_an_encoder_whose_last_bits_depend_on_the_batch_gives_the_same_vectors():
    mechanism = Forward(epsilon=10, dimensions=6)
    mechanism.projection.__dict__["encoder"] = WobblyEncoder()
    texts = [f"text number {number}" for number in range(300)]
    together = mechanism.projection.apply(texts)
    assert (np.stack([mechanism.projection.apply([text])[0] for text in texts]) == together).all()


def test_public_texts_of_the_user_choose_the_directions(tmp_path):
    path = tmp_path / "public.txt"
    path.write_text("\n".join(f"flight number {n} to gate {n % 7} is late" for n in range(120)), encoding="utf-8")
    own = Forward(epsilon=10, dimensions=4, public=str(path))
    assert own.projection.digest != Forward(epsilon=10, dimensions=4).projection.digest
    assert "public.txt" in own.promise().provenance[1].source
    path.write_text("too few", encoding="utf-8")
    with pytest.raises(BadParameterError, match="too few"):
        Forward(epsilon=10, public=str(path)).embed(["a"])


def test_what_cannot_be_is_refused():
    with pytest.raises(BadParameterError):
        Forward(epsilon=10, dimensions=0)
    with pytest.raises(BadParameterError, match="256 dimensions"):
        Forward(epsilon=10, dimensions=300).embed(["a"])
    with pytest.raises(BadParameterError):
        Forward(epsilon=10, delta=0.0)
    with pytest.raises(BadParameterError, match="not below"):
        Forward(epsilon=10, delta=0.4).embed(["a", "b", "c"])
    with pytest.raises(NoGuaranteeError, match="embed"):
        Forward(epsilon=10).rewrite(["a"])
    assert not Forward(epsilon=10, seed=3).embed(["a"]).guarantee.is_private


def test_noise_is_new_in_every_call_and_transform_gives_a_matrix():
    mechanism = Forward(epsilon=10, dimensions=3)
    first, second = mechanism.transform(["a text"]), mechanism.fit_transform(["a text"])
    assert first.shape == (1, 3)
    assert (first != second).any()
    assert mechanism.embed([]).matrix.shape == (0, 0)
    source = new_source(1)
    assert (mechanism.noisy_latents(np.zeros((2, 1, 3)), source)[0] != 0).any()
