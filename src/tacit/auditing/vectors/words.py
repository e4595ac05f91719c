"""Attacks on released word vectors: which word was it, and what do the vectors of a text say together?

    nearest    the attacker takes the vocabulary word whose vector is nearest (Qu et al. 2021)
    trained    the attacker knows the words of other rows, so how frequent each is, and takes the likeliest word by
               Bayes's rule; the law of the noise is public

Floor: the most frequent word of the other rows. Ceiling: the nearest word without noise. The mean of a text's vectors
has less noise than each of them, so linkage and attribute inference use the means.

The claim is checked with the lengths of the residuals (released - clean vector): for 'word-laplace' they have a gamma
law, and lengths that are too small refute it (one-sided Kolmogorov-Smirnov test); for 'word-gaussian' the residuals
bound the noise from above (`tacit.auditing.claims.noise`). Both are wrong about a true claim with a probability of at
most 1 - confidence.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from tacit.arrays import Floats, Floats32, Ids
from tacit.auditing.claims.noise import noise_check, noise_section, opposite_latents
from tacit.auditing.text import scale
from tacit.auditing.text.attacker import FOLDS
from tacit.auditing.text.scale import Success
from tacit.auditing.vectors.claim import CONFIDENCE
from tacit.documents.bounds import ClipL2
from tacit.embeddings.shared_noise import LARGEST_LENGTH, SharedNoise
from tacit.embeddings.words import WordVectorMechanism
from tacit.errors import BadInputError
from tacit.noise.source import public_generator
from tacit.report import Finding, Light, Section, Table

MOST_WORDS = 4_000
FEWEST_RESIDUALS = 100
BLOCK_CELLS = 8_000_000


@dataclass(frozen=True)
class WordRows:
    """Original texts with the vectors released for their words, row by row, and columns of the original to infer."""

    texts: Sequence[str]
    words: Sequence[Floats32]
    attributes: Mapping[str, Sequence[str]] = field(default_factory=dict)


@dataclass(frozen=True)
class AlignedWords:
    """All words of all rows: what they are treated as, their released vectors, and the rows they stand in."""

    ids: Ids
    released: Floats
    rows: Ids
    count: int

    def means(self, vectors: Floats) -> Floats:
        """The mean of the vectors of each row; 0 where a row has no word."""
        sums = np.zeros((self.count, vectors.shape[1]))
        np.add.at(sums, self.rows, vectors)
        return np.asarray(sums / np.maximum(np.bincount(self.rows, minlength=self.count), 1)[:, np.newaxis])


def aligned(rows: WordRows, mechanism: WordVectorMechanism) -> AlignedWords:
    """Words and vectors beside each other; refused where the numbers of words differ."""
    ids, lengths = mechanism.words.token_ids(rows.texts)
    dimension = mechanism.dimension
    for number, (vectors, length) in enumerate(zip(rows.words, lengths, strict=True), start=1):
        shape = vectors.shape if len(vectors) else (0, dimension)
        if shape != (length, dimension):
            raise BadInputError(
                "other-words-than-the-card",
                "row {row:,} has not one vector of {dimension} numbers for each word of its original: give the file "
                "that belongs to the card, and the column it was made from",
                row=number,
                dimension=dimension,
            )
    parts = [vectors.reshape(-1, dimension).astype(np.float64) for vectors in rows.words]
    return AlignedWords(
        ids, np.concatenate(parts), np.repeat(np.arange(len(lengths)), np.array(lengths, dtype=np.int64)), len(lengths)
    )


def clean_words(mechanism: WordVectorMechanism) -> Floats:
    """The vectors of all words before the noise, (words, dimension)."""
    if isinstance(mechanism, SharedNoise):
        return mechanism.bounded_vectors
    return np.asarray(mechanism.words.space, dtype=np.float64)


def likeliest(released: Floats, vectors: Floats, mechanism: WordVectorMechanism, log_prior: Floats) -> Ids:
    """The likeliest word of each released vector for an attacker with these log-frequencies of words."""
    squares = np.square(vectors).sum(axis=1)
    step = max(1, BLOCK_CELLS // len(vectors))
    chosen = []
    for start in range(0, len(released), step):
        part = released[start : start + step]
        squared = np.maximum(np.square(part).sum(axis=1)[:, np.newaxis] - 2.0 * part @ vectors.T + squares, 0.0)
        if isinstance(mechanism, SharedNoise):
            loss = squared / (2.0 * mechanism.noise_scale**2)
        else:
            loss = mechanism.words.noise_epsilon * np.sqrt(squared)
        chosen.append(np.argmax(log_prior - loss, axis=1))
    return np.concatenate(chosen).astype(np.int64) if chosen else np.empty(0, dtype=np.int64)


def word_attacks(words: AlignedWords, mechanism: WordVectorMechanism, *, seed: int) -> tuple[Success, Success]:
    """The successes of the nearest word and of the likeliest word, on at most `MOST_WORDS` words."""
    generator = public_generator(seed)
    places = np.sort(generator.permutation(len(words.ids))[:MOST_WORDS])
    truth, released, rows = words.ids[places], words.released[places], words.rows[places]
    vectors = clean_words(mechanism)
    folds = generator.permutation(words.count) % FOLDS
    flat = np.zeros(len(vectors))
    nearest = likeliest(released, vectors, mechanism, flat) == truth
    ceiling = float((likeliest(vectors[truth], vectors, mechanism, flat) == truth).mean())
    trained, blind = np.zeros(len(truth), dtype=bool), np.zeros(len(truth), dtype=bool)
    for fold in range(FOLDS):
        test = np.flatnonzero(folds[rows] == fold)
        counts = np.bincount(words.ids[folds[words.rows] != fold], minlength=len(vectors))
        prior = np.log((counts + 1.0 / len(vectors)) / (counts.sum() + 1.0))
        trained[test] = likeliest(released[test], vectors, mechanism, prior) == truth[test]
        blind[test] = counts.argmax() == truth[test]
    floor = float(blind.mean())
    return (
        scale.of_trials(nearest, floor=floor, ceiling=ceiling, rows=rows, looks=2),
        scale.of_trials(trained, floor=floor, ceiling=ceiling, rows=rows, looks=2),
    )


def word_section(nearest: Success, trained: Success) -> Section:
    """Both attacks beside each other."""
    text = (
        "The attacker wants each word from its vector: the nearest word of the vocabulary, and the likeliest one for "
        "somebody who knows how frequent words are in other rows."
    )
    without = "the nearest word without noise is right in"
    findings = [
        scale.finding("words by the nearest vector", nearest, "The word is right", without=without),
        scale.finding("words by Bayes's rule", trained, "The word is right", without=without),
    ]
    rows = [
        [name, each.floor, each.rate, each.low, each.high, each.ceiling]
        for name, each in (("nearest word", nearest), ("likeliest word", trained))
    ]
    columns = ("attacker", "blind", "right", "low", "high", "without noise")
    return Section("Inversion: which word was it?", text, findings, [Table("Inversion", columns, rows)])


def word_claim(words: AlignedWords, mechanism: WordVectorMechanism) -> Section | None:
    """The check of the size of the noise; None where there are too few words."""
    if len(words.ids) < FEWEST_RESIDUALS:
        return None
    residuals = words.released - clean_words(mechanism)[words.ids]
    if isinstance(mechanism, SharedNoise):
        pair = opposite_latents(ClipL2(LARGEST_LENGTH), 1, mechanism.dimension)
        difference = (pair[0] - pair[1]).ravel()
        return noise_section(
            noise_check(
                residuals, difference, "normal", mechanism.epsilon, delta=mechanism.delta, confidence=CONFIDENCE
            )
        )
    from scipy.stats import gamma, kstest

    lengths = np.linalg.norm(residuals, axis=1)
    law = gamma(mechanism.dimension, scale=1.0 / mechanism.words.noise_epsilon)
    p_value = float(kstest(law.cdf(lengths), "uniform", alternative="greater").pvalue)
    refuted = p_value < 1.0 - CONFIDENCE
    sentence = (
        f"the noise has a length of {lengths.mean():.4g} on average, where {law.mean():.4g} is expected; lengths as "
        f"small as these have probability {p_value:.2g} under the noise that the card claims."
    )
    finding = Finding(
        "Size of the noise",
        Light.RED if refuted else Light.GREEN,
        f"Refuted: {sentence}" if refuted else f"Not refuted: {sentence}",
        f"Confidence {CONFIDENCE:g}; one-sided Kolmogorov-Smirnov test.",
        refuted=refuted,
        numbers={"mean_length": float(lengths.mean()), "p_value": p_value, "claimed_epsilon": mechanism.epsilon},
    )
    return Section("Noise on the vectors", f"{len(lengths):,} vectors were measured.", [finding])
