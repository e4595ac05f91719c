"""The base of word-level mechanisms: text to vocabulary ids, one private draw per token, ids to text.

    text -- split -> tokens -- Lexicon -> ids -- draw -> ids -- words -> tokens -- join -> text

Only `draw` is private. Everything before it is a fixed public function of one text, everything after it sees nothing
but the drawn ids. So the guarantee of `draw` for one id is the guarantee of the release for one token, for *all*
strings: two tokens are as far apart as the vocabulary words they are treated as.

Punctuation marks that are kept (`punctuation="keep"`) are the exception: they are copied, not drawn. A copied mark says
what it was with certainty, so the promise then holds between texts that have the same kept marks in the same places,
and it says so: with such neighbors the copied places are equal in both releases and all others are drawn, each by
`draw`. `laws`, `distribution` and the audit speak of the pipeline with the copy in it.
"""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats, Ids
from tacit.checks import Check, MadeUpWords, WordLaw, WordSamples
from tacit.errors import BadParameterError, NoGuaranteeError
from tacit.guarantee import (
    Adjacency,
    Exclusion,
    ExclusionKind,
    Guarantee,
    Metric,
    Notion,
    Provenance,
    Unit,
    VoidReason,
)
from tacit.mechanism import TEST_SEED_REASON, Mechanism, Rewritten
from tacit.needs import ALL_OF_GLOVE, MINILM_VECTORS, MOST_DEFAULT_WORDS, Ability
from tacit.noise.source import Source
from tacit.parameters import parameter
from tacit.reading import Reading, words_of
from tacit.text.lexicon import RULES, Lexicon
from tacit.text.tokens import chunks, is_punctuation, join, split
from tacit.vectors import KNOWN_VECTORS, VectorTable, load_vectors
from tacit.vectors.distance import Distance, VectorDistance

BLOCK_CELLS = 4_000_000
"""How many distances or coordinates are worked on at a time: 32 MB of double precision."""

REMEMBERED_CHUNKS = 200_000
"""Distinct pieces of text between white space whose ids are remembered: some 40 MB when full."""

KEPT_PUNCTUATION = frozenset(".,;:!?\"'()-") | {"...", "--"}


@dataclass(kw_only=True, eq=False)
class WordMechanism(Mechanism):
    """Parameters of all word mechanisms.

    epsilon       the budget of one token
    vectors       public word vectors: a name ("default", "minilm"), a file, or a VectorTable
    limit         how many of the most frequent words to use (default: all of a file, 30,000 of "default")
    unknown       what a token outside the vocabulary is treated as: "spelling" or "hash"
    punctuation   "rewrite" like any word, "drop", or "keep" (then the marks are copied, and only texts with the same
                  marks are hidden among each other)
    joining       "natural" text or tokens separated by "spaces"
    """

    vectors: str | VectorTable = parameter("default", service_values=tuple(KNOWN_VECTORS))
    limit: int | None = parameter(None, service_most=MOST_DEFAULT_WORDS)
    unknown: str = parameter("spelling", choices=RULES)
    punctuation: str = parameter("rewrite", choices=("rewrite", "drop", "keep"))
    joining: str = parameter("natural", choices=("natural", "spaces"))

    told_elsewhere: ClassVar[frozenset[str]] = frozenset()
    level: ClassVar[str] = "word"
    unit: ClassVar[str] = "token"
    model_needed: ClassVar[str] = "word vectors (included)"

    @classmethod
    def abilities_for(cls, options: Mapping[str, object]) -> list[Ability]:
        needed = super().abilities_for(options)
        vectors, limit = str(options.get("vectors", "default")), str(options.get("limit", ""))
        if vectors == "minilm":
            needed.append(MINILM_VECTORS)
        elif vectors in ("default", "glove-6b-50d") and limit.isdigit() and int(limit) > MOST_DEFAULT_WORDS:
            needed.append(ALL_OF_GLOVE)
        return needed

    # To write in a mechanism ----------------------------------------------------------------------------------

    @abstractmethod
    def draw(self, ids: Ids, source: Source) -> Ids:
        """The only private step: an output id for each input id, drawn independently."""

    @abstractmethod
    def promise(self) -> Guarantee:
        """The guarantee of `draw` for one token, from the numbers `draw` uses."""

    def laws_of_draw(self, ids: Ids) -> Floats:
        """Exact output probabilities of `draw`, one row per input id, one column per vocabulary word."""
        raise NoGuaranteeError(
            "no-closed-law", "{name} has no closed form; its law can only be sampled", name=self.name
        )

    @property
    def has_law(self) -> bool:
        """Whether `laws_of_draw` can be computed with these parameters."""
        return type(self).laws_of_draw is not WordMechanism.laws_of_draw

    @property
    def law_check(self) -> WordLaw:
        """The check of the exact law, where there is one."""
        return WordLaw()

    def checks(self) -> tuple[Check, ...]:
        exact = (self.law_check,) if self.has_law else ()
        return (*exact, WordSamples(), MadeUpWords())

    def distance(self) -> Distance:
        """The distance between vocabulary words that a metric promise of this mechanism is stated in."""
        return self._euclidean_distance()

    @property
    def outputs(self) -> Ids:
        """The vocabulary ids that can come out; with a utility-optimized promise, those that are protected."""
        return np.arange(len(self.table), dtype=np.int64)

    @property
    def set_of(self) -> Ids:
        """The set of each vocabulary word, for a mechanism that promises something only between words of one set."""
        return np.zeros(len(self.table), dtype=np.int64)

    # Public data ----------------------------------------------------------------------------------------------

    @cached_property
    def table(self) -> VectorTable:
        table = load_vectors(self.vectors, limit=self.limit)
        if len(table) < 2:
            raise BadParameterError(
                "too-few-words", "{vectors} has one word only: a word needs others to hide among", vectors=table.name
            )
        return table

    @cached_property
    def lexicon(self) -> Lexicon:
        return Lexicon(self.table.words, rule=self.unknown)

    def prepare(self) -> None:
        self._load("lexicon")

    def _load(self, *properties: str) -> None:
        """Work out what is cached now, rather than in the middle of the first text."""
        for name in properties:
            getattr(self, name)

    @property
    def vocabulary(self) -> Sequence[str]:
        return self.table.words

    # Law of one word ------------------------------------------------------------------------------------------

    @cached_property
    def kept_ids(self) -> Ids:
        """The vocabulary words that are copied instead of drawn: kept punctuation marks, if the vocabulary has them."""
        marks = (
            [mark for mark in sorted(KEPT_PUNCTUATION) if mark in self.lexicon] if self.punctuation == "keep" else []
        )
        return np.array(sorted(self.lexicon.id(mark) for mark in marks), dtype=np.int64)

    def laws(self, ids: Ids) -> Floats:
        """Exact output probabilities of the pipeline for these vocabulary words, each standing in a text as a token:
        the law of `draw`, and certainty for a punctuation mark that is copied."""
        result = self.laws_of_draw(ids)
        copied = np.flatnonzero(self._is_kept(ids))
        result[copied] = 0.0
        result[copied, ids[copied] % len(self.table)] = 1.0
        return result

    def released_ids(self, ids: Ids, source: Source) -> Ids:
        """The words that the pipeline releases for these vocabulary words: drawn from `laws`."""
        return np.where(self._is_kept(ids), ids % len(self.table), self.draw(ids, source))

    def _is_kept(self, ids: Ids) -> NDArray[np.bool_]:
        # An id beyond the vocabulary is a word that a detector marked (see two_classes).
        return np.isin(ids % len(self.table), self.kept_ids)

    def distribution(self, word: str) -> Floats:
        """Exact probability of each vocabulary word as output for this input token (any string)."""
        tokens = split(word)
        if len(tokens) != 1:
            raise BadParameterError(
                "several-tokens",
                "give one token, not {count}: the tokens are {tokens}",
                count=len(tokens),
                tokens=tokens,
            )
        token = tokens[0]
        if self.punctuation == "drop" and is_punctuation(token):
            raise BadParameterError(
                "token-has-no-law", "this token is punctuation, which is left out (punctuation=drop): it has no output"
            )
        copied = self._is_copied(token)
        if copied and token not in self.lexicon:
            raise BadParameterError(
                "token-has-no-law",
                "this punctuation mark is copied (punctuation=keep) and is no word of the vocabulary: its output is "
                "itself, always, and has no place among the probabilities of vocabulary words",
            )
        ids = np.array([self.lexicon.id(token)], dtype=np.int64)
        # An unknown token that is treated as a mark is drawn like that mark, never copied.
        law: Floats = (self.laws(ids) if copied else self.laws_of_draw(ids))[0]
        return law

    def _is_copied(self, token: str) -> bool:
        return self.punctuation == "keep" and token in KEPT_PUNCTUATION

    # The pipeline ---------------------------------------------------------------------------------------------

    def rewrite_texts(self, texts: Sequence[str], source: Source) -> Rewritten:
        self.prepare()
        ids, lengths = self._encode(texts)
        drawn = self.draw(ids, source)
        return Rewritten(self._decode(drawn, self._kept(texts), lengths), lengths)

    def _encode(self, texts: Sequence[str]) -> tuple[Ids, list[int]]:
        """The tokens of all texts as one array of ids, and how many tokens each text has."""
        # Splitting and looking up each distinct chunk once is three times as fast as splitting every text.
        known = self._known_chunks
        everything: list[int] = []
        lengths = []
        for text in texts:
            before = len(everything)
            for chunk in chunks(text):
                everything += known.get(chunk) or self._chunk_ids(chunk)
            lengths.append(len(everything) - before)
        return np.array(everything, dtype=np.int64), lengths

    def token_ids(self, texts: Sequence[str]) -> tuple[Ids, list[int]]:
        """The vocabulary words that all tokens of the texts are treated as, and how many tokens each text has."""
        return self._encode(texts)

    def count_units(self, texts: Sequence[str]) -> list[int]:
        """The number of tokens, by the same public rule as `rewrite_texts`, without the vocabulary."""
        known = self._known_counts
        counts = []
        for text in texts:
            count = 0
            for chunk in chunks(text):
                known_count = known.get(chunk)
                count += self._chunk_count(chunk) if known_count is None else known_count
            counts.append(count)
        return counts

    def reading(self, texts: Sequence[str]) -> Reading:
        """The number of words of these texts that are in the vocabulary. Every token of a text is read."""
        words = words_of(texts)
        unknown = sum(count for word, count in words.items() if word not in self.lexicon)
        return Reading(words=words.total(), unknown=unknown, documents=len(texts))

    @cached_property
    def _known_counts(self) -> dict[str, int]:
        return {}

    def _chunk_count(self, chunk: str) -> int:
        count = len(self._chunk_tokens(chunk))
        if len(self._known_counts) < REMEMBERED_CHUNKS and len(chunk) < 100:
            self._known_counts[chunk] = count
        return count

    @cached_property
    def _known_chunks(self) -> dict[str, list[int]]:
        return {}

    def _chunk_ids(self, chunk: str) -> list[int]:
        ids = self.lexicon.ids(self._chunk_tokens(chunk))
        if len(self._known_chunks) < REMEMBERED_CHUNKS and len(chunk) < 100:
            self._known_chunks[chunk] = ids
        return ids

    def _chunk_tokens(self, chunk: str) -> list[str]:
        tokens = split(chunk)
        if self.punctuation == "drop":
            return [token for token in tokens if not is_punctuation(token)]
        return tokens

    def _kept(self, texts: Sequence[str]) -> dict[int, str]:
        """The punctuation marks that stay, by position among all tokens."""
        if self.punctuation != "keep":
            return {}
        everything = (token for text in texts for token in split(text))
        return {i: token for i, token in enumerate(everything) if self._is_copied(token)}

    def _decode(self, ids: Ids, kept: dict[int, str], lengths: Sequence[int]) -> list[str]:
        words = self.vocabulary
        tokens = [words[i] for i in ids.tolist()]
        for position, mark in kept.items():
            tokens[position] = mark
        texts = []
        start = 0
        for length in lengths:
            texts.append(join(tokens[start : start + length], self.joining))
            start += length
        return texts

    # The guarantee --------------------------------------------------------------------------------------------

    def guarantee(self, *, secure: bool | None = None) -> Guarantee:
        return self._unless_seeded(self.promise(), secure)

    def _unless_seeded(self, promised: Guarantee, secure: bool | None) -> Guarantee:
        is_secure = self.seed is None if secure is None else secure
        return promised if is_secure else promised.voided(TEST_SEED_REASON, VoidReason.TEST_SEED)

    def _promise(self, notion: Notion, epsilon: float, **more: Any) -> Guarantee:
        """A guarantee with everything that is the same for all word mechanisms filled in."""
        counted = "tokens other than punctuation" if self.punctuation == "drop" else "tokens"
        length = f"how many {counted} a text has, and which output belongs to which position"
        not_covered: list[str] = [Exclusion(length, ExclusionKind.LENGTH)]
        if self.punctuation == "drop":
            not_covered.append(
                "which tokens are punctuation marks: they are left out, so a mark in place of a word, or the other way "
                "round, changes how many words come out"
            )
        adjacency: Adjacency = more.pop("adjacency", Adjacency.ANY_TWO)
        if self.punctuation == "keep":
            adjacency = adjacency.with_kept_punctuation
            not_covered.append(
                f"the punctuation marks {' '.join(sorted(KEPT_PUNCTUATION))} and where they stand: they are copied"
            )
        defaults: dict[str, Any] = {
            "unit": Unit.TOKEN,
            "adjacency": adjacency,
            "mechanism": f"{self.title} ({self.name}; {self.paper})",
            "parameters": self._shown_parameters(),
            "not_covered": (*not_covered, *more.pop("not_covered", ())),
            "assumptions": (
                "the vectors and their vocabulary are public and were chosen without looking at the text",
                f"tokens outside the vocabulary are treated as a vocabulary word by the public '{self.unknown}' rule",
                "the noise comes from a secret random key of the operating system",
                *more.pop("assumptions", ()),
            ),
            "provenance": (
                Provenance(
                    f"word vectors ({len(self.table):,} words, {self.table.dimension} dimensions)",
                    self.table.source,
                ),
                *more.pop("provenance", ()),
            ),
        }
        return Guarantee(notion=notion, epsilon=epsilon, **{**defaults, **more})

    def _shown_parameters(self) -> dict[str, object]:
        hidden = {"epsilon", "seed", "vectors", "limit", *self.told_elsewhere}
        given = ((item.name, getattr(self, item.name)) for item in fields(self) if item.name not in hidden)
        return {"vectors": self.table.name, **{name: value for name, value in given if value is not None}}

    def _euclidean_distance(self) -> VectorDistance:
        return VectorDistance(self.table.vectors, f"Euclidean distance of {self.table.name} vectors")

    def _euclidean(self) -> Metric:
        return self._euclidean_distance().metric(self.table.fingerprint)


def by_word(ids: Ids, block: int) -> Iterator[tuple[Ids, Ids, Ids]]:
    """Tokens grouped by word, `block` words at a time: the words, how often each occurs, and the positions of all their
    tokens in the same order."""
    # Small integers are sorted by counting, which is ten times faster.
    largest = int(ids.max(initial=0))
    order = np.argsort(ids.astype(np.uint16) if largest < 2**16 else ids, kind="stable")
    occurrences = np.bincount(ids, minlength=1)
    words = np.flatnonzero(occurrences)
    counts = occurrences[words]
    start = 0
    for first in range(0, len(words), block):
        block_words, repeats = words[first : first + block], counts[first : first + block]
        stop = start + int(repeats.sum())
        yield block_words, repeats, order[start:stop]
        start = stop


def digest_of(values: NDArray[np.generic]) -> str:
    """A short hash of public sets, so that promises about different ones cannot be mixed up."""
    return hashlib.blake2b(np.ascontiguousarray(values).tobytes(), digest_size=6).hexdigest()
