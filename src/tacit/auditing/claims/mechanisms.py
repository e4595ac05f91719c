"""Runs of the checks that a mechanism says can be made of it (`Mechanism.checks`), as sections of a report.

    exponential family    exact, all pairs of the vocabulary (`radial`)
    other exact laws      exact, all pairs within each set (CusText), or the closest pairs
    noise family          samples of the released words, and of the noisy vectors behind them; closest and random pairs
    codebook              exact, the law of the first released cell for public sentences, or for all cells
    paraphrase, dp-mlm    exact, the law of a token for public sentences after the same released tokens
    latent mechanisms     samples of the noisy latents of the two inputs that are farthest apart; the size of the noise

Words are checked as the pipeline releases them, with its options: punctuation marks that are copied are in the law, in
the samples, and in the pairs that are looked at. Every word mechanism is also given made-up words (`secrets`). Only
public words, sentences and latents are used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from tacit.auditing.claims.claim import Claim, claim_of
from tacit.auditing.claims.documents import audit_latents, exact_texts, exact_tokens
from tacit.auditing.claims.exact import (
    exact_section,
)
from tacit.auditing.claims.sampling import sampled_section
from tacit.auditing.claims.secrets import secrets_section
from tacit.auditing.claims.settings import ClaimAuditSettings
from tacit.auditing.claims.words import exact_words, sampled_vectors, sampled_words, secret_words
from tacit.checks import (
    EXACT,
    ONLY_WITHOUT_EXACT,
    Check,
    LatentSamples,
    MadeUpWords,
    TextLaw,
    TokenLaw,
    VectorSamples,
    WordLaw,
    WordSamples,
)
from tacit.guarantee import Notion
from tacit.mechanism import Mechanism
from tacit.report import Finding, Light, Section

if TYPE_CHECKING:
    from tacit.auditing.claims.documents import NoisyLatents
    from tacit.words.base import WordMechanism
    from tacit.words.noisy import NoisyWords


def audit_mechanism(mechanism: Mechanism, settings: ClaimAuditSettings | None = None) -> list[Section]:
    """All checks that fit this mechanism, as sections of a report."""
    settings = settings or ClaimAuditSettings()
    mechanism.prepare()
    promised = mechanism.guarantee(secure=True)
    if promised.notion is Notion.NONE:
        sentence = f"Nothing is promised with these options, so there is no claim to check: {promised.void}."
        return [Section("Claim", findings=[Finding("Claim", Light.AMBER, sentence)])]
    checks = mechanism.checks()
    if not checks:
        sentence = f"{mechanism.name} does not say how its promise can be checked, so nothing was checked."
        return [Section("Claim", findings=[Finding("Claim", Light.AMBER, sentence)])]
    has_exact = any(isinstance(check, EXACT) for check in checks)
    wanted = [
        check
        for check in checks
        if not (isinstance(check, ONLY_WITHOUT_EXACT) and has_exact and settings.samples is None)
    ]
    return [section for check in wanted for section in _sections(mechanism, check, settings)]


def _sections(mechanism: Mechanism, check: Check, settings: ClaimAuditSettings) -> list[Section]:
    """The sections of one check. Each check names the methods of a mechanism that it needs (`tacit.checks`)."""
    words = cast("WordMechanism", mechanism)
    match check:
        case WordLaw():
            return [exact_section(exact_words(words, check, claim_of(words), settings))]
        case WordSamples():
            text = "Words were drawn as for a release."
            return [sampled_section(sampled_words(words, claim_of(words), settings), text=text)]
        case VectorSamples():
            text = "The noisy vectors say at least as much as the words that are chosen from them."
            result = sampled_vectors(cast("NoisyWords", mechanism), claim_of(words), settings)
            return [sampled_section(result, title="Statistical lower bound, noisy vectors", text=text)]
        case MadeUpWords():
            return [secrets_section(secret_words(mechanism, check, settings))]
        case TextLaw():
            return [exact_section(exact_texts(check, settings))]
        case TokenLaw():
            return [exact_section(result) for result in exact_tokens(check, settings)]
        case LatentSamples():
            latent = cast("NoisyLatents", mechanism)
            return audit_latents(latent, Claim(check.epsilon, delta=check.delta, slack=check.slack), settings)
