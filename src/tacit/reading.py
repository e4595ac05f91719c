"""How much of some texts a mechanism takes in: words it does not know, and documents it does not read to the end.

A language that the vectors or the model do not cover, or documents far longer than the model reads, are no matter of
privacy: the promise holds. But the release is worth little, and nobody would know. So a sample is looked at, and the
holder of the texts is told.

These numbers are computed from private text. They go to the terminal of whoever holds it and nowhere else: never onto a
card, into a report or a ledger.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from tacit.text.tokens import split

FAR_LONGER: Final = 2
"""A document is far longer than what is read of it from so many times on."""
LEAST_WORDS: Final = 50
"""Fewer words say nothing about a language."""
LEAST_DOCUMENTS: Final = 0.05
"""The share of documents that are far too long from which it is said."""
MOST_UNKNOWN_WORDS: Final = 0.35
"""English text of any kind that we measured has at most 22 % of words outside 30,000 of word vectors, German 66 %."""
MOST_SPLIT_WORDS: Final = 0.4
SMALL_VOCABULARY, MOST_SPLIT_BY_FEW_PIECES = 20_000, 0.65
"""Of 30,000 pieces, English splits at most 22 % of its words and German 59 %; of 8,000 pieces 49 % and 83 %."""
FOR_YOUR_EYES: Final = "(computed from your texts: for your eyes, not on the card)"


@dataclass(frozen=True)
class Reading:
    """Counts over some texts.

    words       words with a letter in them
    unknown     those of them that the mechanism does not know as a whole
    allowed     the share of unknown words up to which a text counts as of a language that it knows
    documents   texts
    cut         texts that are far longer than what is read of them
    limit       how many pieces of a text are read; None: all
    """

    words: int = 0
    unknown: int = 0
    allowed: float = MOST_UNKNOWN_WORDS
    documents: int = 0
    cut: int = 0
    limit: int | None = None

    def plus(self, other: Reading) -> Reading:
        """The counts of both; what is allowed and read is that of the mechanism, the same in both."""
        return Reading(
            self.words + other.words,
            self.unknown + other.unknown,
            other.allowed,
            self.documents + other.documents,
            self.cut + other.cut,
            other.limit,
        )

    def warnings(self) -> list[str]:
        """Warnings for the holder of the texts, as sentences."""
        warnings = []
        if self.words >= LEAST_WORDS and self.unknown > self.allowed * self.words:
            warnings.append(
                f"{self.unknown / self.words:.0%} of the words are not known to the vectors or the model: are the "
                "texts in a language that these cover? The promise holds, but the output can say little about them "
                f"{FOR_YOUR_EYES}"
            )
        if self.limit is not None and self.cut and self.cut >= LEAST_DOCUMENTS * self.documents:
            warnings.append(
                f"{self.cut:,} of {self.documents:,} texts are more than {FAR_LONGER} times as long as the "
                f"{self.limit:,} pieces that the model reads; what stands behind them has no influence on the output "
                f"{FOR_YOUR_EYES}"
            )
        return warnings


def words_of(texts: Sequence[str]) -> Counter[str]:
    """How often each word with a letter in it occurs."""
    return Counter(token for text in texts for token in split(text) if any(map(str.isalpha, token)))


def read_by_pieces(tokenizer: Any, limit: int, texts: Sequence[str]) -> Reading:
    """The same for a model: a word is known if it is one piece, and a text is read up to `limit` pieces."""
    # Nobody writes words of 40 letters only: what is cut here is far longer in any case.
    shortened = [text[: 40 * FAR_LONGER * limit] for text in texts]
    words = words_of(shortened)
    pieces = _pieces(tokenizer, [f" {word}" for word in words])
    nothing = _unknown_piece(tokenizer)
    unknown = sum(
        count for count, ids in zip(words.values(), pieces, strict=True) if len(ids) != 1 or ids[0] == nothing
    )
    lengths = [len(ids) for ids in _pieces(tokenizer, shortened)]
    return Reading(
        words=words.total(),
        unknown=unknown,
        allowed=MOST_SPLIT_WORDS if _size(tokenizer) >= SMALL_VOCABULARY else MOST_SPLIT_BY_FEW_PIECES,
        documents=len(texts),
        cut=sum(length > FAR_LONGER * limit for length in lengths),
        limit=limit,
    )


def _pieces(tokenizer: Any, texts: list[str]) -> list[list[int]]:
    """Own vocabularies are `tokenizers.Tokenizer` objects, those of the hub `transformers` tokenizers."""
    if not texts:
        return []
    if hasattr(tokenizer, "encode_batch"):
        return [pieces.ids for pieces in tokenizer.encode_batch(texts, add_special_tokens=False)]
    pieces: list[list[int]] = tokenizer(texts, add_special_tokens=False, verbose=False)["input_ids"]
    return pieces


def _unknown_piece(tokenizer: Any) -> int | None:
    if hasattr(tokenizer, "encode_batch"):
        name = getattr(tokenizer.model, "unk_token", None)
        return None if name is None else tokenizer.token_to_id(name)
    unknown: int | None = tokenizer.unk_token_id
    return unknown


def _size(tokenizer: Any) -> int:
    return int(tokenizer.get_vocab_size()) if hasattr(tokenizer, "get_vocab_size") else len(tokenizer)
