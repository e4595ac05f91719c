"""A corpus from a sketch: public sentences with labels, chosen by the release and never by the private rows.

Everything here is post-processing of a sketch (`tacit.matching.sketch`), so the promise of the sketch is that of the
corpus, whatever pool, number of rows or seed is chosen, and as often as one likes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np

from tacit.arrays import Floats, Floats32, Ids, Integers
from tacit.errors import BadInputError
from tacit.guarantee import Guarantee
from tacit.matching.composing import (
    LARGEST_PART,
    DrawnDocuments,
    PublicSentences,
    drawn_documents,
    joined,
    public_directions,
)
from tacit.matching.discriminant import Discriminant, NoisySums, fitted_discriminant, sample_places, steadied_counts
from tacit.matching.documents import ONE_SENTENCE_EACH, TextLengths, text_lengths
from tacit.matching.drawing import DOMAIN, SHARPNESS, DrawnRows, best_first, lifted_shares, rows_per_label
from tacit.matching.features import FeatureMap
from tacit.matching.marginals import JointLabels
from tacit.matching.pool import SentencePool, attribution_of
from tacit.matching.sides import map_side_size
from tacit.matching.sketch import Sketch
from tacit.matching.subjects import with_subjects
from tacit.noise.source import public_generator
from tacit.progress import WorkProgress
from tacit.text.spoken import spoken_label

MECHANISM = "matching (public sentences drawn by noisy sums of private rows)"
USUAL_ROWS = 30_000
USUAL_ROWS_OF_LABEL = 500
USUAL_CHARACTERS = 20_000_000
"""Of long texts fewer rows are drawn by default, about so many characters in all."""
FEWEST_SENTENCES = 1_000
BLOCK = 20_000
KEPT_SENTENCES = 5_000
"""The features of pools up to this size are kept: an audit draws hundreds of corpora from the same small pool."""


@dataclass(frozen=True)
class MatchedCorpus:
    """Rows of public sentences, those that fit their label best first (`tacit.matching.drawing.best_first`).

    texts        one or several sentences each
    labels       one label each
    sentences    the public sentences of each text
    guarantee    the promise of the sketch
    attribution  what the licenses of the sentences ask for
    columns      with several label columns: the labels of each, by its name
    """

    texts: Sequence[str]
    labels: Sequence[str]
    guarantee: Guarantee
    attribution: str
    sentences: Sequence[Sequence[str]] = ()
    columns: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.texts)


def usual_rows(sketch: Sketch, lengths: TextLengths = ONE_SENTENCE_EACH) -> int:
    """As many rows as the sketch is of, and at least 30,000 and 500 a label: learners profit, and rows cost nothing. Of
    long texts at least 20 million characters are enough."""
    least = max(USUAL_ROWS, USUAL_ROWS_OF_LABEL * len(sketch.labels))
    if not lengths.one_sentence:
        least = min(least, math.ceil(USUAL_CHARACTERS / lengths.mean_characters))
    return max(least, round(float(steadied_counts(sketch).sum())))


def matched_corpus(
    sketch: Sketch,
    pools: Sequence[SentencePool],
    *,
    rows: int | None = None,
    keep_proportions: bool = False,
    seed: int = 0,
    sentences: int | None = None,
    subject_lines: float = 0.0,
    progress: WorkProgress | None = None,
) -> MatchedCorpus:
    """Public sentences of the pools with the labels of a sketch.

    keep_proportions   the labels in their noisy proportions; otherwise rare ones are lifted (`lifted_shares`), unless
                       there are several label columns
    seed               public: it repeats the choice, and has nothing to do with the noise
    sentences          of a text, a public number; without it texts are as long as the release says, or one sentence
                       each where it does not count lengths
    subject_lines      the share of rows of one sentence that begin with the public name of their label
                       (`tacit.matching.subjects`), where there is one label column
    """
    if isinstance(sketch.rule, JointLabels):
        from tacit.matching.joint_corpus import joint_corpus  # it is made of the functions of this module

        return joint_corpus(sketch, pools, rows=rows, seed=seed, sentences=sentences, progress=progress)
    places, public = pool_places(pools)
    lengths = corpus_lengths(sketch, sentences)
    scores = scored_pool(sketch, public, progress, topics=not lengths.one_sentence)
    generator = public_generator(seed)
    shares = scores.discriminant.shares if keep_proportions else lifted_shares(scores.discriminant.shares)
    wanted = rows_per_label(shares, usual_rows(sketch, lengths) if rows is None else rows, generator)
    repeats = most_repeats(wanted, len(public))
    known = public_sentences(public, scores)
    drawn = [
        weighed(drawn_documents(column, scores.domain, int(count), lengths, known, generator, repeats), fit)
        for column, fit, count in zip(scores.log_probabilities.T, fits_of_labels(scores).T, wanted, strict=True)
    ]
    labels = np.repeat(np.arange(len(drawn)), [len(each) for each in drawn])
    chosen, order = in_order(drawn, labels)
    texts = [joined([public[place] for place in document]) for document in chosen]
    named = [sketch.labels[label] for label in labels[order]]
    guarantee = corpus_guarantee(sketch, pools, lengths)
    if subject_lines and any(map(spoken_label, sketch.labels)):
        texts = with_subjects(texts, named, [len(document) for document in chosen], subject_lines, generator)
        said = {"rows after the name of their label": f"a share of {subject_lines:g} of those of one sentence"}
        guarantee = replace(guarantee, parameters={**guarantee.parameters, **said})
    return MatchedCorpus(
        texts=texts,
        labels=named,
        guarantee=guarantee,
        attribution=attribution_of([(pools[places[place][0]], places[place][1]) for place in used_places(chosen)]),
        sentences=[[public[place] for place in document] for document in chosen],
    )


def corpus_lengths(sketch: Sketch, sentences: int | None) -> TextLengths:
    """How long texts of a corpus are: so many public sentences, or what the sketch tells."""
    if sentences is not None:
        return TextLengths(sentences)
    side = sketch.side[len(sketch.side) - map_side_size(sketch.feature_map) :]
    return text_lengths(sketch.feature_map, side, sketch.step, sketch.noise_deviation)


def fits_of_labels(scores: PoolScores) -> Floats:
    """How well every sentence fits every label (sentences, labels), for the order of rows.

    The weight that it is drawn by, and how far its label stands above the average label: a probability near 1 cannot
    rise any further, and would leave the order to how much a sentence looks like the private text as a whole.
    """
    above = scores.log_probabilities - scores.log_probabilities.mean(axis=1, keepdims=True)
    return np.asarray(DOMAIN * scores.domain[:, None] + SHARPNESS * scores.log_probabilities + above)


def weighed(drawn: DrawnDocuments, fit: Floats) -> DrawnDocuments:
    """The same documents, each with the mean fit of its sentences as its weight."""
    return DrawnDocuments(drawn.documents, np.array([float(fit[document].mean()) for document in drawn.documents]))


def in_order(drawn: Sequence[DrawnDocuments], labels: Ids) -> tuple[list[Ids], Ids]:
    """All documents, those that fit their label best first, and the order that makes them so."""
    documents = [document for each in drawn for document in each.documents]
    weights = np.concatenate([each.weights for each in drawn])
    order = best_first(DrawnRows(np.arange(len(documents)), labels, weights))
    return [documents[place] for place in order], order


def used_places(documents: Sequence[Ids]) -> list[int]:
    """The places of all sentences of documents, each once."""
    places: list[int] = np.unique(np.concatenate(documents)).tolist()
    return places


def most_repeats(wanted: Integers, sentences: int) -> int:
    """How often a sentence may stand in one label, so that the largest label uses a small part of the pool."""
    return max(1, math.ceil(int(wanted.max()) / (LARGEST_PART * sentences)))


def pool_places(pools: Sequence[SentencePool]) -> tuple[list[tuple[int, int]], list[str]]:
    """All sentences of the pools, each with the number of its pool and its place in it; too few are refused."""
    places = [(number, place) for number, pool in enumerate(pools) for place in range(len(pool))]
    check_pool_size(len(places))
    return places, [pools[number].sentences[place] for number, place in places]


def check_pool_size(sentences: int) -> None:
    """Refuse too few public sentences."""
    if sentences < FEWEST_SENTENCES:
        raise BadInputError(
            "pool-too-small",
            "the pools hold {sentences:,} sentences, and matching needs {fewest:,}: add public sentences",
            sentences=sentences, fewest=FEWEST_SENTENCES,
        )  # fmt: skip


def corpus_guarantee(sketch: Sketch, pools: Sequence[SentencePool], lengths: TextLengths) -> Guarantee:
    """The promise of a sketch for what is made of it, with the origin of the sentences."""
    promised = sketch.guarantee
    return replace(
        promised,
        mechanism=MECHANISM,
        parameters={**promised.parameters, "length of texts": lengths.described()},
        provenance=(*promised.provenance, *(line for pool in pools for line in pool.provenance())),
    )


@dataclass(frozen=True)
class PoolScores:
    """The scores of the sentences of a pool by a sketch.

    log_probabilities   (sentences, labels)
    domain              (sentences,): how much each looks like the private text
    topics              (sentences, directions): where each lies among public sentences, if that is needed
    """

    discriminant: Discriminant
    log_probabilities: Floats
    domain: Floats
    topics: Floats32


def scored_pool(
    sketch: Sketch,
    sentences: Sequence[str],
    progress: WorkProgress | None = None,
    *,
    topics: bool = False,
    judge: NoisySums | None = None,
) -> PoolScores:
    """The scores of all sentences; features are forgotten block by block, so that large pools need little memory.

    topics   whether it is needed where sentences lie
    judge    another version of the sketch, by which the sentences are scored
    """
    sample = _public_features(sketch, [sentences[place] for place in sample_places(len(sentences))])
    discriminant = fitted_discriminant(sketch if judge is None else judge, sample)
    directions = public_directions(sample) if topics else sample[:0].T
    blocks = [
        (discriminant.log_probabilities(features), discriminant.domain_scores(features), features @ directions)
        for features in _public_blocks(sketch, sentences, progress)
    ]
    labels, domain, lying = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
    return PoolScores(discriminant, labels, domain, lying.astype(np.float32))


def public_sentences(sentences: Sequence[str], scores: PoolScores) -> PublicSentences:
    """Lengths of sentences, and where they lie."""
    return PublicSentences(np.array([len(sentence) for sentence in sentences]), scores.topics)


def pool_features(sketch: Sketch, sentences: Sequence[str], progress: WorkProgress | None = None) -> Floats32:
    """The dense features of public sentences under the map of a sketch."""
    return np.concatenate(list(_feature_blocks(sketch, sentences, progress)))


def _public_features(sketch: Sketch, sentences: Sequence[str]) -> Floats32:
    """The same of a pool, never of private texts: a small one is read once."""
    if len(sentences) > KEPT_SENTENCES:
        return pool_features(sketch, sentences)
    return _kept_features(sketch.feature_map, tuple(sentences))


@lru_cache(maxsize=2)
def _kept_features(feature_map: FeatureMap, sentences: tuple[str, ...]) -> Floats32:
    features = feature_map.features(sentences).dense_values()
    features.flags.writeable = False
    return features


def _public_blocks(sketch: Sketch, sentences: Sequence[str], progress: WorkProgress | None) -> Iterator[Floats32]:
    if len(sentences) > KEPT_SENTENCES:
        yield from _feature_blocks(sketch, sentences, progress)
        return
    yield _public_features(sketch, sentences)
    if progress is not None:
        progress("reading the pool", len(sentences), len(sentences))


def _feature_blocks(
    sketch: Sketch, sentences: Sequence[str], progress: WorkProgress | None = None
) -> Iterator[Floats32]:
    for start in range(0, len(sentences), BLOCK):
        block = sentences[start : start + BLOCK]
        yield sketch.feature_map.features(block).dense_values()
        if progress is not None:
            progress("reading the pool", start + len(block), len(sentences))
