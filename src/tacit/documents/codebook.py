"""The private codebook: a document becomes a public sentence, drawn near its meaning.

Public, fixed before any private text is seen: a sentence encoder f, and k public sentences with vectors v_1 .. v_k,
each the center of a cell (see `codebook_public`).

    near(x)  =  the s cells with the largest  [f(x)] . v_c                      exactly s of them, whatever x is
    c        ~  Pr[c | x] = t / Z  if c in near(x),  else  w / Z,    Z = s t + (k - s) w
    out      =  the sentence at the center of cell c, or another one of the cell, drawn without x

Guarantee: epsilon-differential privacy, delta = 0, for one whole document against any other document.

Proof. x enters the release only through c. For all documents x, x' and all cells c, Pr[c | x] and Pr[c | x'] are each
t / Z or w / Z with the *same* Z, because near(x) and near(x') both have exactly s elements. So their ratio is at most
t / w, and t, w are integers with t <= w e^epsilon. The sentence is drawn from c alone (post-processing). Length, order,
style and names of x are covered, because nothing else leaves. The draw compares one uniform integer below Z with exact
integer thresholds, so this law is the law, without slack, and w >= 1 keeps every cell possible.

s = 1 is k-ary randomized response (Kairouz, Bonawitz & Ramage, ICML 2016) on the nearest cell. For s > 1 it is subset
selection (Ye & Barg, ISIT 2017) turned around, and the discrete form of PrivUnit (Bhowmick et al. 2018) on the
sentences that people write instead of on a sphere. Two weights are enough: the extremal local mechanisms are two-valued
(Kairouz, Oh & Viswanath, NIPS 2014), and for the expected similarity, which is linear in the law, more steps can only
lose.

near(x) must be a function of the document alone. Encoders compute in batches, and the last bits of a vector depend on
the shape of the batch, that is on other documents. So f(x) is first rounded, [f(x)], to multiples of 1/25 (in 384
dimensions; it turns by some 13 degrees, far less than a release differs from its document, and that costs about 1 % of
what the releases say); a document with a coordinate so near to
the middle between two multiples that the batch could decide (`BATCH_ERROR`) is encoded again alone; and all that
follows is exact arithmetic on small integers. So near(x) is that of the vector computed alone, whatever the batch, if
the batch moves no coordinate by more than `BATCH_ERROR`. `prepare` measures that, and refuses an encoder that comes
near it (`tacit.documents.apart`).

Several symbols (`symbols` = m > 1) release m sentences, each with epsilon / m: the first is drawn near f(x), each
following one near what the sentences released so far leave over, f(x) - its projection on them. Sequential composition
(adaptive: a later draw may look at earlier releases) gives epsilon in all.

With `labels`, a public list, a record is a text and its label, and the first symbol is a pair of both, drawn by one
choice: `codebook_joint` has the law and its proof. Then epsilon covers the label as well.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Final

import numpy as np

from tacit.account.shuffling import TwoWeights
from tacit.arrays import Floats, Floats32, Integers
from tacit.checks import Check, TextLaw
from tacit.documents.apart import check_batches, rounded_alone
from tacit.documents.base import DocumentMechanism
from tacit.documents.codebook_build import remainder
from tacit.documents.codebook_joint import draw_pairs, label_and_text, named_records, of_record, pair_law
from tacit.documents.codebook_language import LanguageDecoder
from tacit.documents.codebook_public import (
    BUNDLED,
    PROBE,
    Choice,
    Level,
    PublicCodebook,
    encoder_of,
    load_codebook,
)
from tacit.documents.encoder import BATCH_ERROR
from tacit.documents.staircase import draw_cells, nearest_cells, staircase_shares
from tacit.encoders import ENCODERS, Encoder, encoder_needs, encoder_provenance, load_encoder
from tacit.errors import BadInputError, BadParameterError
from tacit.guarantee import Guarantee, Notion, Provenance
from tacit.labels import check_labels
from tacit.lineage import lineage_of
from tacit.mechanism import Rewritten
from tacit.needs import Ability, needs_of_language_model
from tacit.noise.source import Source, public_generator
from tacit.parameters import parameter

DECODERS: Final = ("center", "random", "language-model")
EXAMPLES: Final = 8
MOST_SYMBOLS: Final = 64
MOST_CHECKED_CELLS: Final = 4_096
"""Up to so many cells an audit looks at all of them."""
ROWS: Final = 1 << 22
"""Similarities worked on at a time: 16 MB."""


# The mechanism ----------------------------------------------------------------------------------------------


def _needs_of_encoder(value: str) -> list[Ability]:
    return encoder_needs(value) if value else []


def _needs_of_codebook(value: str) -> list[Ability]:
    encoder = encoder_of(value or "default")
    return [] if encoder is None else encoder_needs(encoder)


def _needs_of_decoder(value: str) -> list[Ability]:
    return needs_of_language_model(value) if value else []


@dataclass(kw_only=True, eq=False)
class Codebook(DocumentMechanism):
    """A document becomes a public sentence, drawn near its meaning; any two documents are neighbors.

    epsilon is the budget of the whole document. At epsilon 1 to 5 a single release says little, but many of them
    together train good classifiers; from 8 on most releases resemble their document. Build a codebook from public text
    of your kind with 'tacit codebook build' if you can.

    codebook         a folder made by 'tacit codebook build', or one that comes with Tacit, of everyday English
                     sentences: "minilm" (the default; near by MiniLM) or "static" (without torch, and much faster)
    k                how many cells (one of the codebook's sizes); by default the best on public text at this epsilon
    s                how many cells near the text share the high weight; by default the best on public text
    symbols          how many sentences are released for a document, with a share of the budget each; by default as many
                     as are best on public text: one up to epsilon 20 or so, then more
    decode           release the sentence at the "center" of the cell, a "random" one of the cell, or what a
                     "language-model" writes when it is shown them
    language_model   folder or hub name of a causal language model, or "smollm2", for decode "language-model"
    encoder          where the codebook's encoder is found, if not under the name the codebook knows
    labels           all labels that exist, from public knowledge, where the label of a text is released by the same
                     choice; a job that releases a column of labels sets it
    """

    codebook: str = parameter("default", service_values=("default", *BUNDLED), needs=_needs_of_codebook)
    k: int | None = None
    s: int | None = None
    symbols: int | None = parameter(None, low=1, high=MOST_SYMBOLS)
    decode: str = parameter("center", choices=DECODERS)
    language_model: str | None = parameter(None, needs=_needs_of_decoder)
    encoder: str | None = parameter(None, needs=_needs_of_encoder)
    labels: tuple[str, ...] | None = None
    batch_size: int = parameter(64, low=1, service_most=256)

    name: ClassVar[str] = "codebook"
    title: ClassVar[str] = "Private codebook"
    paper: ClassVar[str] = "Tacit"
    model_needed: ClassVar[str] = "codebook (included), MiniLM"
    notion: ClassVar[str] = Notion.PURE.value
    joint_labels: ClassVar[bool] = True

    def check_parameters(self) -> None:
        super().check_parameters()
        if self.decode == "language-model" and not self.language_model:
            raise BadParameterError(
                "no-language-model",
                "decode 'language-model' needs a language model: give language_model a folder, a hub name, or "
                "'smollm2'",
            )
        if self.labels is not None:
            check_labels(self.labels)

    # Public parts ---------------------------------------------------------------------------------------------

    @cached_property
    def public(self) -> PublicCodebook:
        return load_codebook(self.codebook)

    @cached_property
    def choice(self) -> Choice:
        """k and s, as given or as chosen on public text."""
        return self.public.choose(
            self.symbol_epsilon, k=self.k, s=self.s, random=self.decode == "random", labels=self.label_count
        )

    @property
    def label_count(self) -> int:
        """How many labels a record can have; 1 where there are none."""
        return 1 if self.labels is None else len(self.labels)

    @cached_property
    def count(self) -> int:
        """The number of sentences that a document becomes, as given or as chosen on public text."""
        return self.public.choose_symbols(self.epsilon) if self.symbols is None else self.symbols

    @cached_property
    def symbol_epsilon(self) -> float:
        """The budget of one symbol. Rounded down where it must be, so that all of them never exceed epsilon."""
        each = self.epsilon / self.count
        return each if Fraction(each) * self.count <= Fraction(self.epsilon) else math.nextafter(each, 0.0)

    @cached_property
    def partition(self) -> Level:
        return self.public.level(self.choice.k)

    @property
    def grid(self) -> int:
        """Vectors are rounded to multiples of 1/grid. A coordinate of a unit vector has 1 / sqrt(dimension) on average;
        a coarser grid would lose meaning, a finer one would have more documents on a border."""
        return math.ceil(1.25 * math.sqrt(self.public.dimension))

    @cached_property
    def sentence_encoder(self) -> Encoder:
        encoder_provenance(self._encoder_name)
        with self.on_device():
            return load_encoder(self._encoder_name, batch_size=self.batch_size)

    @property
    def reader(self) -> tuple[Any, int] | None:
        encoder = self.sentence_encoder  # whatever makes vectors may stand here, with or without a tokenizer
        if not (hasattr(encoder, "tokenizer") and hasattr(encoder, "pieces")):
            return None
        return encoder.tokenizer, encoder.pieces

    @property
    def _encoder_name(self) -> str:
        return str(self.encoder or self.public.encoder)

    @cached_property
    def _decoder(self) -> Any:
        return LanguageDecoder(str(self.language_model))

    def load_public(self) -> None:
        _ = self.choice
        self._check_encoder(self.sentence_encoder)
        check_batches(self.sentence_encoder)
        if self.decode == "language-model":
            self._decoder.prepare()

    def _check_encoder(self, encoder: Encoder) -> None:
        probe = encoder.encode([PROBE])[0]
        if probe.shape != self.public.probe.shape or float(probe @ self.public.probe) < 0.99:
            raise BadInputError(
                "encoder-of-another-codebook",
                "the encoder '{encoder}' is not the one this codebook was built with ('{expected}'): use that one, "
                "or build the codebook again with yours",
                encoder=encoder.name,
                expected=self.public.encoder,
            )

    def _assumed_of_batches(self) -> tuple[str, ...]:
        """The assumptions about the encoder: none, where its vectors are exact in every batch."""
        if self._encoder_name in ENCODERS and getattr(ENCODERS[self._encoder_name], "batch_independent", False):
            return ()
        return (
            f"other texts of its batch move a coordinate of a text's vector by at most {BATCH_ERROR:.0e}, which is "
            "less than the law can notice; measured on public texts before anything is rewritten",
        )

    # The private step -----------------------------------------------------------------------------------------

    def rewrite_texts(self, texts: Sequence[str], source: Source) -> Rewritten:
        # All texts at once, so that the encoder can sort them by length.
        self.prepare()
        return Rewritten(self.rewrite_batch(texts, source), [1] * len(texts))

    def rewrite_batch(self, texts: Sequence[str], source: Source) -> list[str]:
        cells = self.draw(texts, source)
        return self.decoded(cells, source)

    def rewrite_labeled(self, texts: Sequence[str], labels: Sequence[str], source: Source) -> Rewritten:
        self.prepare()
        names = self._names()
        places = np.array([names.index(label) for label in labels], dtype=np.int64)
        drawn, cells = self.draw_records(texts, places, source)
        return Rewritten(self.decoded(cells, source), [1] * len(texts), [names[place] for place in drawn.tolist()])

    def draw(self, texts: Sequence[str], source: Source) -> Integers:
        """The released cells (texts, symbols): all that a release tells about the texts."""
        if self.labels is not None:
            raise BadParameterError(
                "labels-missing",
                "with labels a codebook releases both together: give the label of each text",
            )
        return self.draw_records(texts, np.zeros(len(texts), dtype=np.int64), source)[1]

    def draw_records(self, texts: Sequence[str], labels: Integers, source: Source) -> tuple[Integers, Integers]:
        """The released labels (texts,) as numbers and cells (texts, symbols): all that a release tells about texts and
        labels. The only private step."""
        released = np.empty((len(texts), self.count), dtype=np.int64)
        drawn = np.zeros(len(texts), dtype=np.int64)
        if not len(texts):
            return drawn, released
        vectors = self.sentence_encoder.encode(texts)
        epsilon, s = self.symbol_epsilon, self.choice.s
        step = max(1, ROWS // self.partition.k)
        for start in range(0, len(texts), step):
            rows = slice(start, start + step)
            integers = self._rounded(vectors[rows], texts[rows])
            for symbol in range(self.count):
                order = self._near(integers, released[rows, :symbol])
                if symbol == 0 and self.labels is not None:
                    pairs = draw_pairs(order, labels[rows], self.label_count, s, epsilon, source)
                    drawn[rows], released[rows, symbol] = pairs
                else:
                    released[rows, symbol] = draw_cells(order, s, epsilon, source)
        return drawn, released

    def _names(self) -> tuple[str, ...]:
        if self.labels is None:
            raise BadParameterError(
                "labels-not-listed",
                "this codebook has no list of labels: give all as {option.labels[A,B,C]}",
            )
        return tuple(self.labels)

    def _rounded(self, vectors: Floats32, texts: Sequence[str]) -> Floats32:
        """[f(x)] in units of 1/grid, as a function of each text alone."""
        return rounded_alone(self.sentence_encoder, vectors, texts, self.grid).astype(np.float32)

    def cell_products(self, vectors: Floats32) -> Floats32:
        """(texts, k): the products of public texts, given by their vectors, with the cells: the largest s are near."""
        return self.partition.products(np.rint(vectors.astype(np.float64) * self.grid).astype(np.float32))

    def _near(self, integers: Floats32, released: Integers) -> Integers:
        """near(x) in the first s places of each row, for rounded vectors and the cells released before."""
        if released.shape[1]:
            pairs = zip(integers, self.partition.centers[released], strict=True)
            integers = np.rint(np.stack([remainder(row, centers) for row, centers in pairs]))
        return nearest_cells(self.partition.products(integers), self.choice.s)

    # Post-processing ------------------------------------------------------------------------------------------

    def decoded(self, cells: Integers, source: Source) -> list[str]:
        """Text for released cells (texts, symbols). Sees nothing else."""
        if self.decode == "language-model":
            examples = [self._examples(row) for row in cells.tolist()]
            return list(self._decoder.continued(examples, self.batch_size, source))
        chosen = self.partition.chosen[cells]
        if self.decode == "random":
            chosen = self.partition.pick(cells, source.generator.integers(0, self.partition.counts[cells]))
        return [" ".join(self.public.sentences[place] for place in row) for row in chosen.tolist()]

    def _examples(self, cells: Sequence[int]) -> list[str]:
        """Sentences of the released cells and, where they have few, of the cells around them."""
        centers = self.partition.centers
        around = np.argsort(-(centers @ centers[list(cells)].mean(axis=0)), kind="stable")[: EXAMPLES * 4]
        order = [*cells, *(cell for cell in around.tolist() if cell not in cells)]
        share = max(1, EXAMPLES // len(cells))
        places = [int(place) for cell in order for place in self.partition.members(cell)[:share]]
        return [self.public.sentences[place] for place in places[:EXAMPLES]]

    # What is promised -----------------------------------------------------------------------------------------

    def law(self, text: str, label: int = 0) -> Floats:
        """The exact probabilities of the first released cell for this text; with labels, of all pairs of a label and a
        cell, label by label, for a record with this label."""
        self.prepare()
        integers = self._rounded(self.sentence_encoder.encode([text]), [text])
        near = self._near(integers, np.empty((1, 0), dtype=np.int64))[0, : self.choice.s]
        return pair_law(near, label, self.label_count, self.partition.k, self.symbol_epsilon)

    def matrix(self) -> Floats:
        """The exact matrix of the first symbol for documents that lie on the centers, with every label."""
        integers = np.rint(self.partition.centers * self.grid)
        order = self._near(integers, np.empty((len(integers), 0), dtype=np.int64))[:, : self.choice.s]
        laws = [
            pair_law(near, label, self.label_count, self.partition.k, self.symbol_epsilon)
            for label in range(self.label_count)
            for near in order
        ]
        return np.stack(laws)

    def checks(self) -> tuple[Check, ...]:
        sentences = [self.public.sentences[place] for place in self.partition.chosen.tolist()]
        whole = self.matrix if self.partition.k * self.label_count <= MOST_CHECKED_CELLS else None
        if self.labels is None:
            return (TextLaw(self.symbol_epsilon, self.law, sentences, self._public_sentences, matrix=whole),)
        outputs = [f"{label}: {sentence}" for label in self.labels for sentence in sentences]  # as `named_records`
        return (TextLaw(self.symbol_epsilon, self._law_of_record, outputs, self._public_records, matrix=whole),)

    def _public_sentences(self, count: int) -> list[str]:
        """A fixed public choice of the codebook's sentences."""
        sentences = self.public.sentences
        chosen = public_generator(0).choice(len(sentences), size=min(count, len(sentences)), replace=False)
        return [str(sentences[i]) for i in chosen.tolist()]

    def _public_records(self, count: int) -> list[str]:
        return named_records(self._names(), self._public_sentences(count))

    def _law_of_record(self, record: str) -> Floats:
        label, text = label_and_text(self._names(), record)
        return self.law(text, label)

    def two_weights(self) -> TwoWeights | None:
        return self._first_choice if self.count == 1 else None

    @property
    def _first_choice(self) -> TwoWeights:
        """The law of the first symbol."""
        cells, s = self.choice.k * self.label_count, self.choice.s
        return TwoWeights(s, cells, *staircase_shares(self.symbol_epsilon, cells, s))

    def promise(self) -> Guarantee:
        choice, public, law = self.choice, self.public, self._first_choice
        parts = [
            Provenance(
                "codebook",
                f"{public.provenance.source}{f' ({public.license})' if public.license else ''}; "
                f"{len(public.sentences):,} sentences, digest {public.digest[:16]}",
            ),
            encoder_provenance(self._encoder_name),
        ]
        if self.k is None or self.s is None or self.symbols is None:
            way = "chosen for this epsilon by expected similarity on held-out public sentences"
            parts.append(Provenance("k, s and symbols", way))
        if self.decode == "language-model":
            name = str(self.language_model)
            parts.append(lineage_of(name).provenance("language model", _last_part(name)))
        promised = self._promise(
            Notion.PURE,
            self.epsilon,
            parameters={
                **self._shown_parameters(),
                "codebook": _last_part(self.codebook),
                "codebook digest": public.digest,
                "k": choice.k,
                "s": choice.s,
                "symbols": self.count,
                "near": f"{law.near * law.t / law.total:.1%} of the releases",
            },
            not_covered=("labels and other columns that are left beside the text as they are",),
            assumptions=(
                "the codebook, the encoder and the decoder were made from public data only",
                *self._assumed_of_batches(),
                "one released text for each document; a document that is rewritten again spends its budget again",
            ),
            provenance=tuple(parts),
        )
        return promised if self.labels is None else of_record(promised, len(self.labels))


def _last_part(name: str) -> str:
    return Path(name).name or name
