"""Checks of word mechanisms: exact laws, samples of released words and noisy vectors, made-up words."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tacit.arrays import Ids
from tacit.auditing.claims.claim import Claim, VectorDistance
from tacit.auditing.claims.exact import (
    ExactResult,
    check_all,
    check_pairs,
)
from tacit.auditing.claims.laws import MechanismLaw
from tacit.auditing.claims.radial import check_vocabulary
from tacit.auditing.claims.sampling import SampledResult, sampled_check
from tacit.auditing.claims.scores import Along, NearerTo, OutputRatio, Samples
from tacit.auditing.claims.secrets import SecretsResult, secrets_check
from tacit.auditing.claims.settings import SAMPLES, ClaimAuditSettings, listed
from tacit.checks import (
    EVERY_WORD,
    MadeUpWords,
    WordLaw,
)
from tacit.errors import BadInputError, BadParameterError
from tacit.mechanism import Mechanism
from tacit.noise.source import new_source, public_generator
from tacit.text.tokens import is_punctuation, split

if TYPE_CHECKING:
    from tacit.words.base import WordMechanism
    from tacit.words.noisy import NoisyWords

SAMPLED_PAIRS = 5


# Words ----------------------------------------------------------------------------------------------------------------


def word_law_of(mechanism: Mechanism) -> WordLaw | None:
    """The check of the exact law of a word; None where there is no such law."""
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
