"""DeepCandidate (Meehan, Mrini & Chaudhuri, ACL 2022): a document becomes a public sentence deep among its own.

A document has k sentences with vectors s_1 .. s_k. Public: m candidate sentences with vectors f, and p directions v_j.

    h_j(f) = how many s_i have  s_i . v_j >= f . v_j
    u(f)   = - max over j of |h_j(f) - k / 2|             (minus how far f is from the middle; its depth is k / 2 + u)
    f      ~  Pr[f] proportional to exp(epsilon u(f) / 2)

Guarantee: epsilon-differential privacy, delta = 0, for one sentence, between documents with the same number of
sentences that differ in one of them. Proof. Exchanging s_i changes each h_j(f) by at most 1, so each |h_j(f) - k / 2|,
their maximum, and u(f): the sensitivity is 1, and the choice is the exponential mechanism (McSherry & Talwar 2007) with
exact whole weights (`tacit.noise.choice`; `slack` is what rounding adds). A document in which all k sentences differ is
k exchanges away: k epsilon, which the card says for the longest document. (u lies between -k / 2 and 0, so it is also
at most floor(k / 2) epsilon, and a document of one sentence says nothing at all.) k itself is not hidden.

h_j must be a function of each sentence alone. So the vectors of sentences are rounded to multiples of 1/grid in a way
that does not depend on the batch (`tacit.documents.apart`), candidates likewise, directions are whole numbers, and
the comparisons are between exact integers.

Candidates are the cells of a public codebook; directions are differences of two candidates drawn with a public seed.
Few directions: with many, every candidate is outermost in one of them, all depths are 0, and the release says nothing.
On passages of 12 sentences of WikiText-2 at epsilon 10, the gain of the released vector's similarity over chance is
.041 with 8 directions and 512 candidates, .015 with 16 and 0 with 64; the nearest candidate would have .28. Take it for
texts of 8 sentences or more; below that the codebook says more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Final

import numpy as np

from tacit.arrays import Floats, Floats32, Integers
from tacit.documents.apart import check_batches, rounded_alone
from tacit.documents.base import DocumentMechanism
from tacit.documents.codebook_public import BUNDLED, PublicCodebook, encoder_of, load_codebook
from tacit.encoders import Encoder, encoder_needs, encoder_provenance, load_encoder
from tacit.guarantee import Adjacency, Guarantee, Notion, Provenance, Unit
from tacit.mechanism import Rewritten
from tacit.needs import Ability
from tacit.noise.choice import draw_rows, integer_weights, probabilities, rounding_slack
from tacit.noise.source import Source, public_generator
from tacit.parameters import EpsilonRange, parameter
from tacit.text.sentences import split_sentences

GRID: Final = 64
DIRECTION_SEED: Final = 5
VISIBLE: Final = "how many sentences each text has"


def sentences_of(text: str) -> list[str]:
    """The sentences of a document by a public rule; an empty document has one empty sentence."""
    return split_sentences(" ".join(text.split())) or [""]


def depth_scores(heights: Integers, candidate_heights: Integers) -> Floats:
    """u(f) for each candidate, from the whole numbers s_i . v_j (sentences, directions) and f . v_j (candidates,
    directions)."""
    ordered = np.sort(heights, axis=0)
    worst = np.zeros(len(candidate_heights))
    for direction in range(heights.shape[1]):
        below = np.searchsorted(ordered[:, direction], candidate_heights[:, direction], side="left")
        np.maximum(worst, np.abs(len(heights) - below - len(heights) / 2), out=worst)
    return -worst


def depth_weights(scores: Floats, epsilon: float) -> Integers:
    """Whole weights proportional to exp(epsilon u / 2), in one row."""
    return integer_weights(np.ascontiguousarray((scores.max() - scores) * (epsilon / 2))[np.newaxis, :])


def _needs_of_codebook(value: str) -> list[Ability]:
    encoder = encoder_of(value or "static")
    return [] if encoder is None else encoder_needs(encoder)


@dataclass(kw_only=True, eq=False)
class SentenceDepth(DocumentMechanism):
    """A long document becomes one public sentence near the middle of its own; one sentence of it is the secret.

    epsilon      the budget of one sentence; a document of k sentences as a whole has k times that
    codebook     where the candidates come from: a folder made by 'tacit codebook build', "static" (the default, without
                 torch) or "minilm"
    candidates   how many public sentences to choose among: one of the codebook's sizes
    directions   in how many public directions the depth is measured
    """

    codebook: str = parameter("static", service_values=tuple(BUNDLED), needs=_needs_of_codebook)
    candidates: int = 512
    directions: int = parameter(8, low=1, high=4096, service_most=512)
    batch_size: int = parameter(64, low=1, service_most=256)

    name: ClassVar[str] = "depth"
    title: ClassVar[str] = "Sentence depth"
    paper: ClassVar[str] = "Meehan et al. 2022"
    model_needed: ClassVar[str] = "codebook (included)"
    notion: ClassVar[str] = Notion.PURE.value
    unit: ClassVar[str] = "sentence"
    epsilon_range: ClassVar[EpsilonRange] = EpsilonRange(10.0, 1.0, 50.0)

    # Public parts ---------------------------------------------------------------------------------------------

    @cached_property
    def public(self) -> PublicCodebook:
        return load_codebook(self.codebook)

    @cached_property
    def sentence_encoder(self) -> Encoder:
        encoder_provenance(self.public.encoder)
        with self.on_device():
            return load_encoder(self.public.encoder, batch_size=self.batch_size)

    @cached_property
    def candidate_vectors(self) -> Floats32:
        """(candidates, dimension)"""
        return self.public.level(self.candidates).centers

    @cached_property
    def direction_matrix(self) -> Integers:
        """(dimension, directions) in whole numbers: differences of two candidates."""
        vectors = np.rint(self.candidate_vectors.astype(np.float64) * GRID)
        pairs = public_generator(DIRECTION_SEED).integers(0, len(vectors), size=(2, self.directions))
        pairs[1] = np.where(pairs[0] == pairs[1], (pairs[1] + 1) % len(vectors), pairs[1])
        return np.asarray((vectors[pairs[0]] - vectors[pairs[1]]).T, dtype=np.int64)

    @cached_property
    def candidate_heights(self) -> Integers:
        """f . v_j"""
        return self._heights(np.rint(self.candidate_vectors.astype(np.float64) * GRID))

    def _heights(self, integers: Floats) -> Integers:
        """Products of whole vectors with the directions: below 2**53, so exact in double precision."""
        return (integers @ self.direction_matrix.astype(np.float64)).astype(np.int64)

    def load_public(self) -> None:
        _ = self.candidate_heights
        check_batches(self.sentence_encoder)

    # The private step -----------------------------------------------------------------------------------------

    def count_units(self, texts: Sequence[str]) -> list[int]:
        return [len(sentences_of(text)) for text in texts]

    def rewrite_texts(self, texts: Sequence[str], source: Source) -> Rewritten:
        released = super().rewrite_texts(texts, source)
        return Rewritten(released.texts, self.count_units(texts))

    def rewrite_batch(self, texts: Sequence[str], source: Source) -> list[str]:
        chosen = self.public.level(self.candidates).chosen
        return [self.public.sentences[chosen[place]] for place in self.draw(texts, source).tolist()]

    def draw(self, texts: Sequence[str], source: Source) -> Integers:
        """The released candidate of each document. The only private step."""
        weights = [self.weights_of(heights) for heights in self.heights_of(texts)]
        drawn = [draw_rows(row, np.ones(1, dtype=np.int64), source) for row in weights]
        return np.concatenate(drawn) if drawn else np.empty(0, dtype=np.int64)

    def heights_of(self, texts: Sequence[str]) -> list[Integers]:
        """s_i . v_j of each document, (sentences, directions)."""
        documents = [sentences_of(text) for text in texts]
        sentences = [sentence for document in documents for sentence in document]
        if not sentences:
            return []
        vectors = self.sentence_encoder.encode(sentences)
        heights = self._heights(rounded_alone(self.sentence_encoder, vectors, sentences, GRID))
        return np.split(heights, np.cumsum([len(document) for document in documents])[:-1])

    def weights_of(self, heights: Integers) -> Integers:
        """The whole weights of all candidates for one document."""
        return depth_weights(depth_scores(heights, self.candidate_heights), self.epsilon)

    def law(self, text: str) -> Floats:
        """The exact probabilities of all candidates for a document."""
        self.prepare()
        return np.asarray(probabilities(self.weights_of(self.heights_of([text])[0]))[0])

    # What is promised -----------------------------------------------------------------------------------------

    def promise(self) -> Guarantee:
        public = self.public
        return self._promise(
            Notion.PURE,
            self.epsilon,
            slack=rounding_slack(self.candidates),
            unit=Unit.SENTENCE,
            adjacency=Adjacency.ONE_SENTENCE,
            parameters={**self._shown_parameters(), "codebook digest": public.digest},
            not_covered=(VISIBLE, "labels and other columns that are left beside the text as they are"),
            assumptions=(
                "the codebook, the encoder and the directions were made from public data only",
                "one release for each document; a document that is released again spends its budget again",
            ),
            provenance=(
                Provenance("candidates", f"{public.provenance.source}; digest {public.digest[:16]}"),
                encoder_provenance(public.encoder),
            ),
        )
