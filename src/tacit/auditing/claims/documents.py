"""Checks of document mechanisms: exact laws of texts and tokens, samples of noisy latents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Ids
from tacit.auditing.claims.claim import Claim
from tacit.auditing.claims.exact import (
    ExactResult,
    check_all,
    check_pairs,
)
from tacit.auditing.claims.laws import MatrixLaw, matrix_law
from tacit.auditing.claims.noise import NoiseResult, noise_check, noise_section, opposite_latents
from tacit.auditing.claims.sampling import SampledResult, ceiling, sampled_check, sampled_section
from tacit.auditing.claims.scores import MeanDirection, NearerTo, Samples
from tacit.auditing.claims.settings import ClaimAuditSettings, listed
from tacit.checks import (
    LatentSamples,
    TextLaw,
    TokenLaw,
)
from tacit.documents.language_models import PUBLIC_SENTENCES
from tacit.errors import BadParameterError
from tacit.noise.source import Source, new_source
from tacit.report import Section

if TYPE_CHECKING:
    from tacit.arrays import Floats
    from tacit.checks import Check
    from tacit.documents.bounds import Bound


class NoisyLatents(Protocol):
    """A mechanism that bounds some numbers of a document and adds noise to them: what its audit needs of it."""

    @property
    def latent_shape(self) -> tuple[int, int]: ...

    @property
    def bound(self) -> Bound: ...

    def checks(self) -> tuple[Check, ...]: ...

    def noisy_latents(self, latents: NDArray[np.floating], source: Source) -> Floats: ...


FEW_SAMPLES = 800
LATENT_SAMPLES = 4_000
LATENT_NUMBERS = 20_000_000
SENTENCES = 40
TOKEN_TEXTS = 8
TOKEN_TURNS = 2


# Documents ------------------------------------------------------------------------------------------------------------


def exact_texts(check: TextLaw, settings: ClaimAuditSettings) -> ExactResult:
    """The law of one draw, for texts of a file, for all inputs that there are, or for public texts."""
    claim = Claim(check.epsilon, delta=check.delta, slack=check.slack)
    outputs = list(check.outputs)
    if settings.words is None and check.matrix is not None:
        return check_all(matrix_law(check.matrix(), outputs, outputs), claim, tolerance=settings.tolerance)
    if settings.words is None or settings.words.isdigit():
        texts = list(check.texts(SENTENCES if settings.words is None else int(settings.words)))
    else:
        texts = listed(settings.words)
    rows = []
    bar = settings.bar("exact law")
    for number, text in enumerate(texts):
        rows.append(check.law(text))
        if bar is not None:
            bar(number + 1, len(texts))
    law = MatrixLaw(np.stack(rows), texts, outputs)
    return check_all(law, claim, tolerance=settings.tolerance)


def exact_tokens(check: TokenLaw, settings: ClaimAuditSettings) -> list[ExactResult]:
    """Mechanisms that draw token by token: the law of the next token, for different documents after the same released
    tokens. The promise for a document is the sum over its tokens, so each of them must stay within its share."""
    claim = Claim(check.epsilon, slack=check.slack)
    if settings.words is None or settings.words.isdigit():
        count = TOKEN_TEXTS if settings.words is None else max(2, int(settings.words))
        texts = [*PUBLIC_SENTENCES[: count - 1], ""]
    else:
        texts = listed(settings.words)
    support = check.support
    bar = settings.bar("exact law of a token")
    results = []
    released: list[int] = []
    for turn in range(TOKEN_TURNS):
        rows = []
        for number, text in enumerate(texts):
            rows.append(check.law(text, released))
            if bar is not None:
                bar(turn * len(texts) + number + 1, TOKEN_TURNS * len(texts))
        outputs = [str(name) for name in support.tolist()]
        outputs += ["nothing"] * (len(rows[0]) - len(outputs))
        scope = f"{len(texts)} documents, the law of token {turn + 1} after the same released tokens, all outputs"
        law = MatrixLaw(np.stack(rows), [text or "(an empty text)" for text in texts], outputs)
        pairs = np.array([(i, j) for i in range(len(texts)) for j in range(i + 1, len(texts))])
        results.append(check_pairs(law, claim, pairs, scope=scope, tolerance=settings.tolerance))
        best = int(rows[0][: len(support)].argmax())
        released.append(int(support[best]))
    return results


def audit_latents(mechanism: NoisyLatents, claim: Claim, settings: ClaimAuditSettings | None = None) -> list[Section]:
    """The two inputs that are farthest apart, by counting and by the size of the noise. The claim is separate, so that
    a mechanism whose own card is void can be held against what a paper claims for it."""
    settings = settings or ClaimAuditSettings()
    counted, measured = check_latents(mechanism, claim, settings)
    text = "The two latents that the bound leaves farthest apart were released again and again."
    return [sampled_section(counted, text=text), noise_section(measured)]


def check_latents(
    mechanism: NoisyLatents, claim: Claim, settings: ClaimAuditSettings
) -> tuple[SampledResult, NoiseResult]:
    positions, width = mechanism.latent_shape
    family = next(check.family for check in mechanism.checks() if isinstance(check, LatentSamples))
    if family is None:
        raise BadParameterError(
            "no-noise-to-audit", "there is no noise to audit (noise=none): choose gaussian or laplace"
        )
    columns = mechanism.bound.columns(width)
    pair = mechanism.bound.apply(opposite_latents(mechanism.bound, positions, width))
    n = positions * len(columns)
    samples = min(settings.samples or LATENT_SAMPLES, max(40, LATENT_NUMBERS // n))
    if claim.epsilon + claim.slack >= ceiling(samples, claim.delta, 1.0 - settings.confidence):
        samples = min(samples, FEW_SAMPLES)  # counting has no power here, the size of the noise has
    source = new_source(settings.seed)
    flat = pair[:, :, columns].reshape(2, n)
    residuals: list[NDArray[np.float64]] = []

    def sample(which: int, count: int) -> Samples:
        drawn = np.concatenate(
            [_released(mechanism, pair[which], part, source, columns) for part in _parts(count, max(1, 500_000 // n))]
        )
        residuals.append((drawn[: max(1, 200_000 // n)] - flat[which]).ravel())
        return drawn

    counted = sampled_check(
        sample,
        claim,
        np.array([[0, 1]]),
        [MeanDirection(), NearerTo(1, flat)],
        samples=samples,
        confidence=settings.confidence,
        names=["one corner", "the opposite corner"],
        progress=settings.bar("sampling latents"),
    )
    measured = noise_check(
        np.concatenate(residuals),
        flat[0] - flat[1],
        family,
        claim.epsilon + claim.slack,
        delta=claim.delta,
        confidence=settings.confidence,
    )
    return counted, measured


def _released(mechanism: NoisyLatents, latent: Samples, count: int, source: Source, columns: Ids) -> Samples:
    noisy = mechanism.noisy_latents(np.broadcast_to(latent, (count, *latent.shape)), source)
    return np.asarray(noisy[:, :, columns].reshape(count, -1))


def _parts(count: int, size: int) -> Sequence[int]:
    return [size] * (count // size) + ([count % size] if count % size else [])
