"""Inversion of released vectors: which words did the text have?

    nearest    the attacker looks up the public sentence whose vector is nearest, and guesses its words
    trained    the attacker knows other rows with their released vectors and, since the encoder is public, their clean
               ones. From these it learns what noise does, takes as much of it out as a linear filter can (Wiener), and
               guesses the five likeliest words by ridge regression. A filter that knows the noise shrinks to the mean
               where a vector says nothing: so the attack does not fall below the floor by fitting noise

Success in a row is the share of guessed words that the text has. Floors: the guess for another row (nearest), and the
five words that most texts have (trained), which need no vector. Ceilings: the same attacks on vectors without noise.
Words are those of at least three letters, in small letters.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

import numpy as np

from tacit.arrays import Floats, Floats32, Ids
from tacit.auditing.text import scale
from tacit.auditing.text.attacker import FOLDS
from tacit.auditing.text.scale import Success
from tacit.noise.source import public_generator
from tacit.report import Section, Table

GUESSES = 5
MOST_WORDS = 2_000
RIDGE = 1.0
BLOCK_CELLS = 8_000_000
TINY = 1e-12
_WORD = re.compile(r"[^\W\d_]{3,}")


def words_in(text: str) -> frozenset[str]:
    """The words of a text that an attacker wants to know."""
    return frozenset(word.lower() for word in _WORD.findall(text))


def nearest_places(vectors: Floats, public: Floats) -> Ids:
    """The public vector with the largest cosine for each vector."""
    lengths = np.linalg.norm(public, axis=1, keepdims=True)
    right = (public / np.where(lengths > 0, lengths, 1.0)).T
    step = max(1, BLOCK_CELLS // max(1, len(public)))
    parts = [np.argmax(vectors[start : start + step] @ right, axis=1) for start in range(0, len(vectors), step)]
    return np.concatenate(parts).astype(np.int64)


def by_nearest(
    texts: Sequence[str], released: Floats32, clean: Floats, sentences: Sequence[str], public: Floats, *, looks: int
) -> Success:
    """The success of guessing the words of the nearest public sentence."""
    wanted = [words_in(text) for text in texts]
    offered = [words_in(sentence) for sentence in sentences]

    def rates(places: Sequence[int]) -> Floats:
        return np.array([_share(offered[place], own) for place, own in zip(places, wanted, strict=True)])

    guessed = nearest_places(released.astype(np.float64), public)
    blind = np.roll(guessed, 1 + int(public_generator(0).integers(0, max(1, len(guessed) - 1))))
    ceiling = rates(nearest_places(clean, public).tolist())
    return scale.of_trials(
        rates(guessed.tolist()), floor=float(rates(blind.tolist()).mean()), ceiling=float(ceiling.mean()), looks=looks
    )


def _share(guess: frozenset[str], truth: frozenset[str]) -> float:
    return len(guess & truth) / len(guess) if guess else 0.0


def by_training(texts: Sequence[str], released: Floats32, clean: Floats, *, seed: int, looks: int) -> Success:
    """The success of guessing the likeliest words of a vector, learned from other rows."""
    wanted = [words_in(text) for text in texts]
    counts = Counter(word for words in wanted for word in sorted(words))
    vocabulary = [word for word, _ in counts.most_common(MOST_WORDS)]
    place = {word: number for number, word in enumerate(vocabulary)}
    bags = np.zeros((len(texts), len(vocabulary)), dtype=np.float32)
    for row, words in enumerate(wanted):
        bags[row, [place[word] for word in words if word in place]] = 1.0
    folds = public_generator(seed).permutation(len(texts)) % FOLDS
    right = {name: np.zeros(len(texts)) for name in ("released", "clean", "blind")}
    for fold in range(FOLDS):
        test, train = np.flatnonzero(folds == fold), np.flatnonzero(folds != fold)
        if not (len(test) and len(train)):
            continue
        prior = bags[train].mean(axis=0)
        right["blind"][test] = _hits(np.tile(prior, (len(test), 1)), bags[test])
        for name, vectors in (("released", released.astype(np.float64)), ("clean", clean)):
            filtered = wiener_filtered(vectors, clean, train, test)
            right[name][test] = _hits(_predicted(clean[train], bags[train], filtered) + prior, bags[test])
    return scale.of_trials(
        right["released"], floor=float(right["blind"].mean()), ceiling=float(right["clean"].mean()), looks=looks
    )


def wiener_filtered(vectors: Floats, clean: Floats, train: Ids, test: Ids) -> Floats:
    """The best linear guess of the clean vectors of the rows `test`, from the rows `train`, whose clean vectors are
    known: noise of one size in every direction, around a multiple of the clean vector."""
    known, seen = clean[train] - clean[train].mean(axis=0), vectors[train] - vectors[train].mean(axis=0)
    factor = max(0.0, float((known * seen).sum() / max(float((known * known).sum()), TINY)))
    noise = float(np.square(seen - factor * known).mean())
    covariance = known.T @ known / len(train)
    noisy = factor**2 * covariance + (noise + TINY) * np.eye(known.shape[1])
    weights = np.linalg.solve(noisy, factor * covariance)
    return np.asarray((vectors[test] - vectors[train].mean(axis=0)) @ weights + clean[train].mean(axis=0))


def _predicted(clean: Floats, bags: Floats32, wanted: Floats) -> Floats:
    """How much likelier each word is than in all texts for the wanted vectors, by ridge regression on clean ones."""
    mean = clean.mean(axis=0)
    known = clean - mean
    gram = known.T @ known + RIDGE * np.eye(known.shape[1])
    weights = np.linalg.solve(gram, known.T @ (bags - bags.mean(axis=0)))
    return np.asarray((wanted - mean) @ weights)


def _hits(scores: Floats, truth: Floats32) -> Floats:
    """The share of the likeliest words that are right."""
    most = min(GUESSES, scores.shape[1])
    if most == 0:
        return np.zeros(len(scores))
    best = np.argpartition(-scores, most - 1, axis=1)[:, :most]
    return np.asarray(np.take_along_axis(truth, best, axis=1).mean(axis=1), dtype=np.float64)


def inversion_section(nearest: Success, trained: Success) -> Section:
    """Both inversions beside each other."""
    text = (
        "The attacker wants the words of a text from its vector: those of the nearest public sentence, and the "
        f"{GUESSES} likeliest by a regression learned from other rows. Counted is the share of guessed words that the "
        "text has."
    )
    without = "the same attack on vectors without noise reaches"
    findings = [
        scale.finding("words by the nearest public sentence", nearest, "Guessed words are right", without=without),
        scale.finding("words by a trained inversion", trained, "Guessed words are right", without=without),
    ]
    rows = [
        [name, each.floor, each.rate, each.low, each.high, each.ceiling]
        for name, each in (("nearest public sentence", nearest), ("trained", trained))
    ]
    columns = ("attacker", "blind", "right", "low", "high", "without noise")
    return Section("Inversion: which words did the text have?", text, findings, [Table("Inversion", columns, rows)])
