"""What all word-level mechanisms share: text to vocabulary ids, one private draw per token, ids to text.

    text --split--> tokens --Lexicon--> ids --draw--> ids --words--> tokens --join--> text

Only `draw` is private. Everything before it is a fixed public function of one text, everything after it sees nothing
but the drawn ids. So the guarantee of `draw` for one id is the guarantee of the release for one token, for *all*
strings: two tokens are as far apart as the vocabulary words they are treated as.
"""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tacit.errors import BadParameterError, NoGuaranteeError
from tacit.guarantee import Adjacency, Guarantee, Metric, Notion, Provenance, Unit
from tacit.mechanism import TEST_SEED_REASON, Mechanism, Rewritten
from tacit.noise.source import Source
from tacit.text.lexicon import RULES, Lexicon
from tacit.text.tokens import chunks, is_punctuation, join, split
from tacit.vectors import VectorTable, load_vectors
from tacit.vectors.geometry import diameter, median_distance

Ids = NDArray[np.int64]
Floats = NDArray[np.float64]

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
    punctuation   "rewrite" like any word, "drop", or "keep" (then it is not covered)
    joining       "natural" text or tokens separated by "spaces"
    """

    vectors: str | VectorTable = "default"
    limit: int | None = None
    unknown: str = "spelling"
    punctuation: str = "rewrite"
    joining: str = "natural"

    told_elsewhere: ClassVar[frozenset[str]] = frozenset()
    level: ClassVar[str] = "word"
    unit: ClassVar[str] = "token"
    needs: ClassVar[str] = "word vectors (included)"

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of("unknown", self.unknown, RULES)
        one_of("punctuation", self.punctuation, ("rewrite", "drop", "keep"))
        one_of("joining", self.joining, ("natural", "spaces"))

    # To write in a mechanism ----------------------------------------------------------------------------------

    @abstractmethod
    def draw(self, ids: Ids, source: Source) -> Ids:
        """The only private step: an output id for each input id, drawn independently."""

    @abstractmethod
    def promise(self) -> Guarantee:
        """The guarantee of `draw` for one token, from the numbers `draw` uses."""

    def laws(self, ids: Ids) -> Floats:
        """Exact output probabilities, one row per input id, one column per vocabulary word."""
        raise NoGuaranteeError(f"{self.name} has no closed form; its law can only be sampled")

    # Public data ----------------------------------------------------------------------------------------------

    @cached_property
    def table(self) -> VectorTable:
        table = load_vectors(self.vectors, limit=self.limit)
        if len(table) < 2:
            raise BadParameterError(f"{table.name} has one word only: a word needs others to hide among")
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

    def distribution(self, word: str) -> Floats:
        """Exact probability of each vocabulary word as output for this input token (any string)."""
        tokens = split(word)
        if len(tokens) != 1:
            raise BadParameterError(f"give one token, not {len(tokens)}: the tokens are {tokens}")
        law: Floats = self.laws(np.array([self.lexicon.id(tokens[0])], dtype=np.int64))[0]
        return law

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

    def count_units(self, texts: Sequence[str]) -> list[int]:
        """The number of tokens, by the same public rule as `rewrite_texts`, without the vocabulary."""
        known = self._known_counts
        counts = []
        for text in texts:
            count = 0
            for chunk in chunks(text):
                found = known.get(chunk)
                count += self._chunk_count(chunk) if found is None else found
            counts.append(count)
        return counts

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
        return {i: token for i, token in enumerate(everything) if token in KEPT_PUNCTUATION}

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
        promised = self.promise()
        is_secure = self.seed is None if secure is None else secure
        return promised if is_secure else promised.voided(TEST_SEED_REASON)

    def _promise(self, notion: Notion, epsilon: float, **more: Any) -> Guarantee:
        """A guarantee with everything that is the same for all word mechanisms filled in."""
        not_covered = ["how many tokens a text has, and which output belongs to which position"]
        if self.punctuation == "keep":
            not_covered.append("punctuation marks, which are copied")
        defaults: dict[str, Any] = {
            "unit": Unit.TOKEN,
            "adjacency": Adjacency.ANY_TWO,
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

    def _shown_parameters(self) -> dict[str, Any]:
        hidden = {"epsilon", "seed", "vectors", "limit", *self.told_elsewhere}
        given = ((item.name, getattr(self, item.name)) for item in fields(self) if item.name not in hidden)
        return {"vectors": self.table.name, **{name: value for name, value in given if value is not None}}

    def _euclidean(self) -> Metric:
        return self._metric(f"Euclidean distance of {self.table.name} vectors", self.table)

    def _metric(self, name: str, points: VectorTable | NDArray[Any]) -> Metric:
        """A Euclidean distance; the largest one is rounded up by more than its arithmetic can be off."""
        return Metric(name, diameter(points) * (1.0 + 1e-12), median_distance(points), self.table.fingerprint)


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
        here, repeats = words[first : first + block], counts[first : first + block]
        stop = start + int(repeats.sum())
        yield here, repeats, order[start:stop]
        start = stop


def digest_of(values: NDArray[Any]) -> str:
    """A short hash of public sets, so that promises about different ones cannot be mixed up."""
    return hashlib.blake2b(np.ascontiguousarray(values).tobytes(), digest_size=6).hexdigest()


def one_of(name: str, value: str, choices: Sequence[str]) -> None:
    if value not in choices:
        raise BadParameterError(f"{name} must be one of {', '.join(choices)}, not '{value}'")


def between(name: str, value: float, low: float, high: float) -> None:
    """low <= value <= high, refusing NaN."""
    if not low <= value <= high:
        raise BadParameterError(f"{name} must lie between {low:g} and {high:g}, not {value:g}")
