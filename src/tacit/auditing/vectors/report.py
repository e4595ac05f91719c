"""All attacks on released vectors, in one report with floors and ceilings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from tacit.arrays import Floats, Floats32
from tacit.auditing.text import attacker, attributes, linkage
from tacit.auditing.text.pairs import TextPairs
from tacit.auditing.vectors.claim import claim_section
from tacit.auditing.vectors.inversion import by_nearest, by_training, inversion_section
from tacit.auditing.vectors.words import WordRows, aligned, clean_words, word_attacks, word_claim, word_section
from tacit.embeddings.base import VectorMechanism
from tacit.embeddings.projection import pool_sentences
from tacit.embeddings.words import WordVectorMechanism
from tacit.errors import BadInputError
from tacit.noise.source import public_generator
from tacit.progress import WorkProgress
from tacit.report import Report, Section

LEAST_ROWS = 10
POOL_SENTENCES = 4_000
"""Of each pool, in which the nearest public sentence is looked for."""
NOT_SHOWN = "(a vector)"


@dataclass(frozen=True)
class ReleasedVectors:
    """Original texts with what was released for them, row by row, columns of the original to infer, and the numbers of
    the rows in the files."""

    texts: Sequence[str]
    vectors: Floats32
    attributes: Mapping[str, Sequence[str]] = field(default_factory=dict)
    numbers: Sequence[int] = ()

    def __post_init__(self) -> None:
        if not self.numbers:
            object.__setattr__(self, "numbers", range(1, len(self.texts) + 1))

    @property
    def pairs(self) -> TextPairs:
        """The rows as an attack on texts knows them: it quotes the original, and no vector."""
        return TextPairs(self.texts, [NOT_SHOWN] * len(self.texts), rows=self.numbers)

    def some(self, count: int, seed: int) -> ReleasedVectors:
        """A random part of the rows, in their order; all of them if there are no more."""
        if count >= len(self.texts):
            return self
        places = np.sort(public_generator(seed).choice(len(self.texts), size=count, replace=False))
        return ReleasedVectors(
            [self.texts[place] for place in places.tolist()],
            self.vectors[places],
            {name: [values[place] for place in places.tolist()] for name, values in self.attributes.items()},
            [self.numbers[place] for place in places.tolist()],
        )


def audit_vectors(
    rows: ReleasedVectors, mechanism: VectorMechanism, *, sample: int, seed: int, progress: WorkProgress | None = None
) -> Report:
    """The report of all attacks; the claim is checked on all rows, the attacks use at most `sample` of them."""
    _check_rows(len(rows.texts))
    tell = progress or (lambda what, done, total: None)
    mechanism.prepare()
    tell("encoding the originals", 0, len(rows.texts))
    clean = mechanism.clean_vectors(rows.texts)
    _check_width(clean, rows.vectors)
    report = Report(f"Audit of vectors released by {mechanism.name}")
    report.facts = {"mechanism": mechanism.name, "epsilon": mechanism.epsilon, "rows": len(rows.texts), "seed": seed}
    if (claim := claim_section(mechanism, clean, rows.vectors)) is not None:
        report.sections.append(claim)
    part = rows.some(sample, seed)
    tell("attacks", 1, 4)
    clean = mechanism.clean_vectors(part.texts)
    report.sections.append(_linkage(part, clean))
    tell("attacks", 2, 4)
    sentences = pool_sentences(POOL_SENTENCES)
    nearest = by_nearest(part.texts, part.vectors, clean, sentences, mechanism.clean_vectors(sentences), looks=2)
    report.sections.append(inversion_section(nearest, by_training(part.texts, part.vectors, clean, seed=seed, looks=2)))
    tell("attacks", 3, 4)
    report.sections += [_attribute(part, clean, name, values, seed) for name, values in part.attributes.items()]
    tell("attacks", 4, 4)
    return report


def audit_words(
    rows: WordRows, mechanism: WordVectorMechanism, *, sample: int, seed: int, progress: WorkProgress | None = None
) -> Report:
    """The report of all attacks on a release with a vector for each word; linkage and attributes use at most `sample`
    rows."""
    _check_rows(len(rows.texts))
    tell = progress or (lambda what, done, total: None)
    mechanism.prepare()
    tell("reading the words", 0, 4)
    words = aligned(rows, mechanism)
    report = Report(f"Audit of vectors released by {mechanism.name}")
    report.facts = {"mechanism": mechanism.name, "epsilon": mechanism.epsilon, "rows": len(rows.texts), "seed": seed}
    if (claim := word_claim(words, mechanism)) is not None:
        report.sections.append(claim)
    tell("attacks", 1, 4)
    report.sections.append(word_section(*word_attacks(words, mechanism, seed=seed)))
    tell("attacks", 2, 4)
    clean = words.means(clean_words(mechanism)[words.ids])
    means = ReleasedVectors(rows.texts, words.means(words.released).astype(np.float32), rows.attributes)
    part = means.some(sample, seed)
    clean = clean[np.array(part.numbers) - 1]
    report.sections.append(_linkage(part, clean))
    tell("attacks", 3, 4)
    report.sections += [_attribute(part, clean, name, values, seed) for name, values in part.attributes.items()]
    tell("attacks", 4, 4)
    return report


def _check_rows(rows: int) -> None:
    if rows < LEAST_ROWS:
        raise BadInputError(
            "too-few-rows", "attacks need at least {least} rows, not {rows}", least=LEAST_ROWS, rows=rows
        )


def _check_width(clean: Floats, released: Floats32) -> None:
    if clean.shape != released.shape:
        raise BadInputError(
            "other-vectors-than-the-card",
            "the released vectors have {width} numbers, and the mechanism of the card makes {expected}: give the file "
            "that belongs to the card",
            width=released.shape[1],
            expected=clean.shape[1],
        )


def _unit(vectors: Floats) -> Floats32:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return (vectors / np.where(lengths > 0, lengths, 1.0)).astype(np.float32)


def _linkage(rows: ReleasedVectors, clean: Floats) -> Section:
    """Each released vector against the clean vectors of all originals."""
    originals = _unit(clean)
    ceiling = linkage.by_vectors(originals, originals)
    linked = linkage.summary(
        "vectors",
        linkage.by_vectors(originals, _unit(rows.vectors.astype(np.float64))),
        float(ceiling.top(1).mean()),
        float(ceiling.top(10).mean()),
        looks=1,
    )
    return linkage.section([linked], rows.pairs, linkage.VECTOR_ATTACKER)


def _attribute(rows: ReleasedVectors, clean: Floats, name: str, values: Sequence[str], seed: int) -> Section:
    attacker.check_labels(values, f"'{name}'", rows.numbers, least=attributes.LEAST_TEXTS)
    identified = attacker.identify_vectors(clean.astype(np.float32), rows.vectors, values, seed=seed)
    return attributes.section(identified, name, rows.pairs, features="the vectors")
