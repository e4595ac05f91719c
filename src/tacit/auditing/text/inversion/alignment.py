"""The tokens of originals and releases, position by position."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Ids
from tacit.auditing.text.pairs import TextPairs
from tacit.errors import BadInputError
from tacit.text.tokens import is_punctuation, join, split
from tacit.words.base import KEPT_PUNCTUATION, WordMechanism

MOST_UNKNOWN = 0.01


@dataclass(frozen=True)
class Aligned:
    """Tokens of both texts, position by position.

    original released   vocabulary ids
    rows positions      where each pair stands: index of the row, index of the token in the row
    copied              positions whose token is copied by a stated rule (punctuation kept as it is)
    left_out            rows whose released text has another number of tokens
    outside             original tokens outside the vocabulary, treated as one of its words
    """

    original: Ids
    released: Ids
    rows: Ids
    positions: Ids
    copied: NDArray[np.bool_]
    left_out: int
    outside: int


def released_tokens(text: str, mechanism: WordMechanism, expected: int) -> list[str]:
    """The words that were drawn, from the text they were joined to.

    `split` is the inverse of `join` for its own tokens, but a vocabulary can hold words that `split` would cut or
    change ("&amp;", "inc."). Such a word stays whole. Where it could as well be two words ("inc" and "."), the number
    of tokens decides, which a word mechanism does not hide.
    """
    if mechanism.joining == "spaces":
        return text.split(" ") if text else []
    tokens = [token for piece in text.split() for token in _piece_tokens(piece, mechanism, whole=False)]
    if len(tokens) != expected:
        tokens = [token for piece in text.split() for token in _piece_tokens(piece, mechanism, whole=True)]
    return tokens


def _piece_tokens(piece: str, mechanism: WordMechanism, *, whole: bool) -> list[str]:
    tokens = split(piece)
    if tokens != [piece] and piece in mechanism.lexicon and (whole or join(tokens) != piece):
        return [piece]
    return tokens


def align(pairs: TextPairs, mechanism: WordMechanism) -> Aligned:
    """Vocabulary ids of both texts where they have the same number of tokens."""
    mechanism.prepare()
    lexicon = mechanism.lexicon
    before: list[int] = []
    after: list[int] = []
    rows: list[int] = []
    positions: list[int] = []
    copied: list[bool] = []
    left_out = outside = unknown = seen = 0
    keeps = mechanism.punctuation == "keep"
    for row, (original, released) in enumerate(zip(pairs.originals, pairs.released, strict=True)):
        old = split(original)
        if mechanism.punctuation == "drop":
            old = [token for token in old if not is_punctuation(token)]
        new = released_tokens(released, mechanism, len(old))
        seen += len(new)
        strange = sum(token not in lexicon and not (keeps and token in KEPT_PUNCTUATION) for token in new)
        unknown += strange
        if len(old) != len(new) or strange:
            left_out += 1
            continue
        before += lexicon.ids(old)
        after += lexicon.ids(new)
        rows += [row] * len(old)
        positions += range(len(old))
        copied += [keeps and a == b and a in KEPT_PUNCTUATION for a, b in zip(old, new, strict=True)]
        outside += sum(token not in lexicon for token in old)
    if unknown > MOST_UNKNOWN * max(1, seen):
        raise BadInputError(
            "words-of-another-mechanism",
            "{unknown:.0%} of the released words are not in the vocabulary of {mechanism} with these vectors, so it "
            "did not make this file: give the mechanism and the vectors that did, or leave the attack 'inversion' "
            "out with {option.attacks}",
            unknown=unknown / seen,
            mechanism=mechanism.name,
        )
    if not before:
        raise BadInputError(
            "no-row-aligns",
            "no released row has as many words as its original, so words cannot be attacked one by one: check that "
            "the files belong together, or leave the attack 'inversion' out with {option.attacks}",
        )
    return Aligned(
        np.array(before, dtype=np.int64),
        np.array(after, dtype=np.int64),
        np.array(rows, dtype=np.int64),
        np.array(positions, dtype=np.int64),
        np.array(copied, dtype=bool),
        left_out,
        outside,
    )
