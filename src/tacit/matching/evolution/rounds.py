"""The rounds of an evolution: vary the best sentences of every label, judge them by the release, keep what is better.

A new sentence is kept for a label if

    its fit is above that of the sentence it was made from, and of the last of the label's parents (`fit`)
    it reads as usual as half of the public sentences do (`phrases`)
    no other label fits it better
    no sentence with the same words is there yet
    and not too many of its kind were kept: of one parent, of one word

What a language model wrote only has to fit no other label better: it knows phrases that the pool does not, and the draw
of the rows decides how often it is used.

Each round keeps the best of them; they are parents of the next round, beside the best public sentences. What comes out
is a pool: its sentences name the public sentences that they were made from, as the licenses of those ask.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from tacit.matching.artifact import content_digest
from tacit.matching.evolution.fit import Fit, fit_of
from tacit.matching.evolution.phrases import PublicPhrases, tokens_of
from tacit.matching.evolution.sources import evolved_sources
from tacit.matching.evolution.variations import (
    REPLACED,
    WRITTEN,
    Candidate,
    Parent,
    WordVectors,
    filled,
    replaced,
)
from tacit.matching.pool import LONGEST, SentencePool, words_key
from tacit.matching.record import WorkRecord, record_key
from tacit.matching.sketch import Sketch
from tacit.matching.words import load_vocabulary
from tacit.noise.source import public_generator
from tacit.progress import WorkProgress

PARENTS = 100
KEY_WORDS = 60
RAREST_KEY_WORD = 3
"""Times that a word must occur in public sentences to come in."""
CANDIDATES = 60_000
"""Sentences that are tried in a round, over all labels."""
FEWEST_CANDIDATES, MOST_CANDIDATES = 60, 2_000
"""Of one label."""
KEPT_PER_LABEL = 60
KEPT_PER_PARENT = 3
KEPT_PER_WORD = 20
EXAMPLES, OF_OWN_LABEL = 3, 8
"""Sentences of a label that a language model is shown, and of how many of the best they are chosen."""
OTHER_LABELS, OF_OTHER_LABELS = 3, 3
"""The same for other labels, of each of which one sentence is shown."""
LONGEST_SHOWN = 90


class SentenceWriter(Protocol):
    """A language model that writes sentences like some others."""

    @property
    def name(self) -> str: ...

    @property
    def source(self) -> str:
        """The line of an attribution and of a card that names the model."""

    def like(self, examples: Sequence[str], label: str, seed: int, others: Sequence[tuple[str, str]] = ()) -> list[str]:
        """New sentences like the examples, which fit a label of a public name; `others` are other labels, each with a
        sentence of it."""


@dataclass(frozen=True)
class Evolution:
    """The settings of an evolution.

    rounds    how often sentences are varied
    seed      public: it repeats the choice
    writer    a language model that takes part
    folder    where the record goes; without it nothing can be continued
    stem      how the name of the record begins
    """

    rounds: int
    seed: int = 0
    writer: SentenceWriter | None = None
    folder: Path | None = None
    stem: str = "corpus"

    def record_path(self, key: str) -> Path | None:
        """The file of what is done."""
        return None if self.folder is None else self.folder / f"{self.stem}-evolution-{key}.jsonl"

    def facts(self, sketch: Sketch, pools: Sequence[SentencePool]) -> dict[str, Any]:
        """All that decides about the result but the number of rounds: more rounds go on with those that are done."""
        return {
            "sketch": content_digest(sketch),
            "pools": [pool.digest for pool in pools],
            "seed": self.seed,
            "writer": None if self.writer is None else [self.writer.name, self.writer.source],
            "settings": [
                PARENTS, KEY_WORDS, CANDIDATES, KEPT_PER_LABEL, KEPT_PER_PARENT, KEPT_PER_WORD, EXAMPLES,
                OF_OWN_LABEL, OTHER_LABELS, OF_OTHER_LABELS, LONGEST_SHOWN,
            ],
        }  # fmt: skip


@dataclass
class _Population:
    """The best public sentences of every label, and all that was kept."""

    fit: Fit
    phrases: PublicPhrases
    parents: list[list[Parent]]
    key_words: list[list[str]]
    known: set[bytes]
    kept: list[Candidate] = field(default_factory=list)


def evolved_pool(
    sketch: Sketch, pools: Sequence[SentencePool], evolution: Evolution, progress: WorkProgress | None = None
) -> SentencePool | None:
    """A pool of new sentences, to be drawn from beside those that it was made from; None if nothing was better."""
    facts = evolution.facts(sketch, pools)
    key = record_key(facts)
    record = WorkRecord(evolution.record_path(key), facts)
    sentences = [sentence for pool in pools for sentence in pool.sentences]
    population = _first_population(sketch, sentences, progress)
    vectors = WordVectors()
    for number in range(evolution.rounds):
        done = record.done(f"round {number}")
        if done is None:
            candidates = _candidates(population, vectors, number, evolution, record, progress)
            kept = _selected(population, candidates)
            record.add(f"round {number}", [[each.text, each.label, list(each.origins), each.way] for each in kept])
        else:
            kept = [Candidate(text, label, tuple(origins), way) for text, label, origins, way in done]
        _advance(population, kept)
        if progress is not None:
            progress("evolving", number + 1, evolution.rounds)
    if not population.kept:
        return None
    writer = None if evolution.writer is None else evolution.writer.source
    return evolved_sources(pools, population.kept, writer, key)


def _first_population(sketch: Sketch, sentences: Sequence[str], progress: WorkProgress | None) -> _Population:
    fit = fit_of(sketch, sentences, progress)
    phrases = PublicPhrases(sentences)
    parents = [
        [Parent(sentences[place], value, (place,)) for value, place in best] for best in fit.best(sentences, PARENTS)
    ]
    usual = [word for word in load_vocabulary().words if phrases.words[word] >= RAREST_KEY_WORD]
    key_words = [[usual[place] for _, place in best] for best in fit.best(usual, KEY_WORDS)]
    return _Population(fit, phrases, parents, key_words, {words_key(sentence) for sentence in sentences})


def _candidates(
    population: _Population,
    vectors: WordVectors,
    number: int,
    evolution: Evolution,
    record: WorkRecord,
    progress: WorkProgress | None,
) -> list[Candidate]:
    """New sentences of a round for all labels."""
    labels = population.fit.sketch.labels
    most = min(MOST_CANDIDATES, max(FEWEST_CANDIDATES, CANDIDATES // len(labels)))
    candidates: list[Candidate] = []
    for label, parents in enumerate(population.parents):
        generator = public_generator(_seed(evolution.seed, number, label))
        words = population.key_words[label]
        if evolution.writer is not None:
            candidates += _written(evolution.writer, population, label, number, generator, record)
            if progress is not None:
                progress(f"writing, round {number + 1}, labels", label + 1, len(labels))
            continue
        made = [
            *replaced(parents, label, words, population.phrases, vectors),
            *(filled(label, words, population.phrases) if number == 0 else ()),
        ]
        if len(made) > most:
            made = [made[place] for place in sorted(generator.choice(len(made), most, replace=False).tolist())]
        candidates += made
    return candidates


def _seed(seed: int, number: int, label: int) -> int:
    """A public seed of its own for every label of every round, so that a continued evolution draws the same."""
    return int(hashlib.sha256(f"{seed} {number} {label}".encode()).hexdigest()[:12], 16)


def _written(
    writer: SentenceWriter,
    population: _Population,
    label: int,
    number: int,
    generator: np.random.Generator,
    record: WorkRecord,
) -> list[Candidate]:
    """The sentences that the language model writes for a label in a round; kept at once, because it takes long.

    It is shown some of the best sentences of the label, and before them one of each of some other labels.
    """
    names = population.fit.sketch.labels
    best = [_shown(parents) for parents in population.parents]
    apart = [place for place in generator.permutation(len(names)).tolist() if place != label][:OTHER_LABELS]
    others = [(place, best[place][int(generator.integers(OF_OTHER_LABELS)) % len(best[place])]) for place in apart]
    order = generator.permutation(min(OF_OWN_LABEL, len(best[label]))).tolist()
    examples = [best[label][place] for place in order[:EXAMPLES]]
    work = f"round {number} label {label}"
    texts = record.done(work)
    if texts is None:
        texts = writer.like(
            [parent.text for parent in examples],
            names[label],
            int(generator.integers(1 << 31)),
            [(names[place], parent.text) for place, parent in others],
        )
        record.add(work, texts)
    shown = [*examples, *(parent for _, parent in others)]
    origins = tuple(dict.fromkeys(place for parent in shown for place in parent.origins))
    return [Candidate(text, label, origins, WRITTEN) for text in texts if len(text) <= LONGEST]


def _shown(parents: Sequence[Parent]) -> Sequence[Parent]:
    """The parents that may stand in a prompt: short, and without a colon, which has a meaning there."""
    return [each for each in parents if len(each.text) <= LONGEST_SHOWN and ":" not in each.text] or parents


def _selected(population: _Population, candidates: Sequence[Candidate]) -> list[Candidate]:
    """The candidates of a round that are kept, by label, best first."""
    own, first = population.fit.judged(
        [each.text for each in candidates], np.array([each.label for each in candidates], dtype=np.int64)
    )
    kept: list[Candidate] = []
    of_label: Counter[int] = Counter()
    of_parent: Counter[tuple[int, tuple[int, ...]]] = Counter()
    of_word: Counter[tuple[int, str]] = Counter()
    floor = [parents[-1].fit if parents else float("-inf") for parents in population.parents]
    for place in np.argsort(-own, kind="stable").tolist():
        each = candidates[place]
        parent, word = (each.label, each.origins), (each.label, each.word)
        crowded = each.way != WRITTEN and (
            of_label[each.label] >= KEPT_PER_LABEL
            or (bool(each.origins) and of_parent[parent] >= KEPT_PER_PARENT)
            or of_word[word] >= KEPT_PER_WORD
        )
        least = max(each.least, floor[each.label]) if each.way == REPLACED else each.least
        if crowded or not first[place] or own[place] <= least:
            continue
        key = words_key(each.text)
        if key in population.known or not _reads_well(population.phrases, each):
            continue
        population.known.add(key)
        of_label[each.label] += 1
        of_parent[parent] += 1
        of_word[word] += 1
        kept.append(each)
    return kept


def _reads_well(phrases: PublicPhrases, candidate: Candidate) -> bool:
    """A language model writes words that the pool does not know, and has a sense of phrases of its own."""
    return candidate.way == WRITTEN or phrases.reads_well(tokens_of(candidate.text))


def _advance(population: _Population, kept: Sequence[Candidate]) -> None:
    """The kept sentences join the parents of their labels, of which the best stay; none of one origin too often."""
    own, _ = population.fit.judged(
        [each.text for each in kept], np.array([each.label for each in kept], dtype=np.int64)
    )
    population.kept += kept
    population.known.update(words_key(each.text) for each in kept)
    for each, value in zip(kept, own.tolist(), strict=True):
        population.parents[each.label].append(Parent(each.text, value, each.origins))
    for label, parents in enumerate(population.parents):
        population.parents[label] = _not_crowded(sorted(parents, key=lambda parent: -parent.fit))


def _not_crowded(parents: Sequence[Parent]) -> list[Parent]:
    counts: Counter[tuple[int, ...]] = Counter()
    chosen: list[Parent] = []
    for parent in parents:
        if counts[parent.origins] < KEPT_PER_PARENT or not parent.origins:
            counts[parent.origins] += 1
            chosen.append(parent)
    return chosen[:PARENTS]
