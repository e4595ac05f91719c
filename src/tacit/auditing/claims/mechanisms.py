"""What the checks find that a mechanism says can be made (`Mechanism.checks`).

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

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Ids
from tacit.auditing.claims.claim import Claim, VectorDistance, claim_of
from tacit.auditing.claims.exact import (
    TOLERANCE,
    ExactResult,
    check_all,
    check_pairs,
    exact_section,
)
from tacit.auditing.claims.laws import MatrixLaw, MechanismLaw, matrix_law
from tacit.auditing.claims.noise import NoiseResult, noise_check, noise_section, opposite_latents
from tacit.auditing.claims.radial import check_vocabulary
from tacit.auditing.claims.sampling import CONFIDENCE, SampledResult, ceiling, sampled_check, sampled_section
from tacit.auditing.claims.scores import Along, MeanDirection, NearerTo, OutputRatio, Samples
from tacit.auditing.claims.secrets import SecretsResult, secrets_check, secrets_section
from tacit.checks import (
    EVERY_WORD,
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
from tacit.documents.language_models import PUBLIC_SENTENCES
from tacit.errors import BadInputError, BadParameterError
from tacit.guarantee import Notion
from tacit.mechanism import Mechanism
from tacit.noise.source import Source, new_source, public_generator
from tacit.progress import StepProgress
from tacit.report import Finding, Light, Section
from tacit.text.tokens import is_punctuation, split

if TYPE_CHECKING:
    from tacit.documents.latent import LatentMechanism
    from tacit.words.base import WordMechanism
    from tacit.words.noisy import NoisyWords

SAMPLES = 20_000
SAMPLED_PAIRS = 5
FEW_SAMPLES = 800
LATENT_SAMPLES = 4_000
LATENT_NUMBERS = 20_000_000
SENTENCES = 40
TOKEN_TEXTS = 8
TOKEN_TURNS = 2


@dataclass(frozen=True)
class ClaimAuditSettings:
    """How thorough an audit is.

    words        "all", a number of words (a public random choice), a file with words, "closest:K"; None: what fits
    samples      how many samples of each input; None: only where there is no exact law
    """

    words: str | None = None
    samples: int | None = None
    confidence: float = CONFIDENCE
    tolerance: float = TOLERANCE
    seed: int | None = None
    progress: Callable[[str], StepProgress] | None = None

    def bar(self, what: str) -> StepProgress | None:
        return None if self.progress is None else self.progress(what)


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
    """What one check finds. Each check names the methods of a mechanism that it needs (`tacit.checks`)."""
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
            latent = cast("LatentMechanism", mechanism)
            return audit_latents(latent, Claim(check.epsilon, delta=check.delta, slack=check.slack), settings)


# Words ----------------------------------------------------------------------------------------------------------------


def word_law_of(mechanism: Mechanism) -> WordLaw | None:
    """How the exact law of a word is checked; None where there is no such law."""
    return next((check for check in mechanism.checks() if isinstance(check, WordLaw)), None)


def exact_words(mechanism: WordMechanism, check: WordLaw, claim: Claim, settings: ClaimAuditSettings) -> ExactResult:
    law, bar = MechanismLaw(mechanism), settings.bar("exact law")
    words = settings.words or check.words
    if words == EVERY_WORD:
        if check.radial:
            return check_vocabulary(mechanism, claim, tolerance=settings.tolerance, progress=bar)
        return check_all(law, claim, tolerance=settings.tolerance, progress=bar)
    chosen = chosen_words(mechanism, claim, words)
    if chosen.ndim == 2:
        scope = f"the {len(chosen):,} closest pairs of {len(mechanism.table):,} words, all outputs"
        marks = _claimed(claim, marks_and_words(mechanism))
        if len(marks):
            scope += f", and {len(marks):,} pairs of a copied punctuation mark and a word"
            chosen = np.concatenate([chosen, marks])
        return check_pairs(law, claim, chosen, scope=scope, tolerance=settings.tolerance, progress=bar)
    return check_all(law, claim, chosen, tolerance=settings.tolerance, progress=bar)


def chosen_words(mechanism: WordMechanism, claim: Claim, words: str) -> Ids:
    """Numbers of words (n,), or pairs of them (n, 2), from what the user wrote."""
    kind, colon, number = words.partition(":")
    if kind == "closest" and colon:
        distance = claim.distance or VectorDistance(mechanism.table.vectors)
        return distance.closest(_count(number, "closest:", least=1))
    if words.isdigit():
        count = min(_count(words, "", least=2), len(mechanism.table))
        chosen = public_generator(0).choice(len(mechanism.table), size=count, replace=False)
        return np.sort(chosen).astype(np.int64)
    tokens = listed(words)
    ids = np.array([mechanism.lexicon.id(token) for token in tokens], dtype=np.int64)
    if len(np.unique(ids)) < 2:
        raise BadInputError(
            "words-are-one",
            "the words of {words} are treated as one vocabulary word: give different words",
            words=words,
        )
    return ids


def listed(path: str) -> list[str]:
    """The words of a file, one per line."""
    place = Path(path)
    if not place.is_file():
        raise BadInputError(
            "no-such-words",
            "{option.words} takes all, a number, closest:K or a file of words, and there is no file '{path}'",
            path=path,
        )
    try:
        lines = place.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError):
        raise BadInputError(
            "unreadable-word-list",
            "{path} cannot be read as UTF-8 text: save the words as plain text, one per line",
            path=path,
        ) from None
    words = list(dict.fromkeys(line.strip() for line in lines if line.strip()))
    if len(words) < 2:
        raise BadInputError(
            "too-few-words", "{path} holds fewer than two different words: a privacy claim compares two", path=path
        )
    return words


def _count(text: str, where: str, *, least: int) -> int:
    if not text.isdigit() or int(text) < least:
        raise BadParameterError(
            "too-few-words",
            "{option.words} takes '{where}' and a whole number of at least {least}, such as {where}500, not '{text}'"
            if where
            else "{option.words} takes a whole number of at least {least}, such as 500, not '{text}'",
            where=where, text=text, least=least,
        )  # fmt: skip
    return int(text)


def sampled_pairs(mechanism: WordMechanism, claim: Claim) -> Ids:
    """The closest pairs, where a metric claim allows least, and as many random ones, of words with different laws."""
    distance = claim.distance or VectorDistance(mechanism.table.vectors)
    close = distance.closest(min(50 * SAMPLED_PAIRS, len(mechanism.table)))
    generator = public_generator(1)
    left = generator.integers(0, len(mechanism.table), size=50 * SAMPLED_PAIRS)
    right = (left + generator.integers(1, len(mechanism.table), size=len(left))) % len(mechanism.table)
    known = (_without_dropped(mechanism, pairs) for pairs in (close, np.stack([left, right], axis=1)))
    chosen = [_claimed(claim, pairs)[:SAMPLED_PAIRS] for pairs in known]
    chosen.append(_claimed(claim, marks_and_words(mechanism)))
    pairs = np.unique(np.sort(np.concatenate(chosen), axis=1), axis=0)
    if not len(pairs):
        raise BadInputError(
            "no-claim-about-pairs",
            "no pair of words was found about which anything is claimed: give words that share a set",
        )
    return np.asarray(pairs)


def _without_dropped(mechanism: WordMechanism, pairs: Ids) -> Ids:
    """The pairs of words that can stand in a text: punctuation cannot, where the pipeline drops it."""
    if mechanism.punctuation != "drop":
        return pairs
    words = mechanism.vocabulary
    left_out = np.array([[is_punctuation(words[i]) for i in pair] for pair in pairs.tolist()], dtype=bool)
    return np.asarray(pairs[~left_out.reshape(pairs.shape).any(axis=1)])


def marks_and_words(mechanism: WordMechanism) -> Ids:
    """Pairs of a punctuation mark that the pipeline copies and its nearest word that is none: where a claim that forgot
    the copy breaks. A claim that knows it says nothing about them."""
    marks = mechanism.kept_ids
    words = np.setdiff1d(np.arange(len(mechanism.table)), marks)
    if not len(marks) or not len(words):
        return np.empty((0, 2), dtype=np.int64)
    vectors = np.asarray(mechanism.table.vectors, dtype=np.float64)
    nearest = [words[int(((vectors[words] - vectors[mark]) ** 2).sum(axis=1).argmin())] for mark in marks]
    return np.stack([marks, np.array(nearest, dtype=np.int64)], axis=1)


def _claimed(claim: Claim, pairs: Ids) -> Ids:
    bounds = claim.bounds(pairs[:, 0], pairs[:, 1])
    return np.asarray(pairs[np.isfinite(bounds)])


def sampled_words(mechanism: WordMechanism, claim: Claim, settings: ClaimAuditSettings) -> SampledResult:
    source = new_source(settings.seed)
    points = mechanism.table.vectors

    def sample(word: int, count: int) -> Samples:
        drawn: Samples = mechanism.released_ids(np.full(count, word, dtype=np.int64), source)
        return drawn

    return sampled_check(
        sample,
        claim,
        sampled_pairs(mechanism, claim),
        [OutputRatio(), Along(points)],
        samples=settings.samples or SAMPLES,
        confidence=settings.confidence,
        names=mechanism.vocabulary,
        progress=settings.bar("sampling words"),
    )


def sampled_vectors(mechanism: NoisyWords, claim: Claim, settings: ClaimAuditSettings) -> SampledResult:
    """Noisy vectors, scored by their likelihood ratio."""
    words = mechanism.vocabulary

    def sample(word: int, count: int) -> Samples:
        vectors, _ = mechanism.release_vectors(" ".join([words[word]] * count))
        drawn: Samples = vectors[0]
        return drawn

    pairs = sampled_pairs(mechanism, claim)
    single = np.array([split(words[i]) == [words[i]] for i in pairs.ravel().tolist()]).reshape(pairs.shape).all(axis=1)
    if not single.any():
        raise BadInputError(
            "no-word-is-a-token", "no word of the pairs is one token of text: give vectors of ordinary words"
        )
    return sampled_check(
        sample,
        claim,
        pairs[single],
        [NearerTo(2, mechanism.space)],
        samples=settings.samples or SAMPLES,
        confidence=settings.confidence,
        names=words,
        progress=settings.bar("sampling vectors"),
    )


def secret_words(mechanism: Mechanism, check: MadeUpWords, settings: ClaimAuditSettings) -> SecretsResult:
    promised = mechanism.guarantee(secure=True)
    source = new_source(settings.seed)
    return secrets_check(
        lambda texts: mechanism.rewrite_texts(texts, source).texts,
        promised.exponent(),
        delta=promised.delta,
        sets=check.sets,
        confidence=settings.confidence,
        seed=settings.seed,
    )


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


def audit_latents(
    mechanism: LatentMechanism, claim: Claim, settings: ClaimAuditSettings | None = None
) -> list[Section]:
    """The two inputs that are farthest apart, by counting and by the size of the noise. The claim is separate, so that
    a mechanism whose own card is void can be held against what a paper claims for it."""
    settings = settings or ClaimAuditSettings()
    counted, measured = check_latents(mechanism, claim, settings)
    text = "The two latents that the bound leaves farthest apart were released again and again."
    return [sampled_section(counted, text=text), noise_section(measured)]


def check_latents(
    mechanism: LatentMechanism, claim: Claim, settings: ClaimAuditSettings
) -> tuple[SampledResult, NoiseResult]:
    positions, width = mechanism.autoencoder.positions, mechanism.autoencoder.width
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


def _released(mechanism: LatentMechanism, latent: Samples, count: int, source: Source, columns: Ids) -> Samples:
    noisy = mechanism.noisy_latents(np.broadcast_to(latent, (count, *latent.shape)), source)
    return np.asarray(noisy[:, :, columns].reshape(count, -1))


def _parts(count: int, size: int) -> Sequence[int]:
    return [size] * (count // size) + ([count % size] if count % size else [])
