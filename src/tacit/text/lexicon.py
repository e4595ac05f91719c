"""Every string has a place: a fixed public rule that maps any token to a word of the public vocabulary.

A mechanism works on vocabulary words. A token outside the vocabulary (a name, a code, a typo: what needs protection
most) is never passed through and never dropped: `Lexicon` assigns it a vocabulary word by a rule that depends on the
token and on public data only, and the mechanism then treats it as that word. So every token has the same outputs, and
a string outside the vocabulary cannot come out at all.

Rules:
    spelling   the longest vocabulary word that begins or ends the token (at least four characters; two for numbers),
               or is one of its hyphenated parts; failing that, the hash rule
    hash       a vocabulary word chosen by a hash of the token
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tacit.errors import BadParameterError, check_choice

RULES = ("spelling", "hash")
_REMEMBERED = 1_000_000
_LONGEST_REMEMBERED = 100
"""Longer tokens are looked up again, so that what is remembered stays small."""


class Lexicon:
    """Words and ids of a public vocabulary, and the rule for everything else.

    `unknown_ids` restricts what an unknown token may be treated as (for example to sensitive words).
    """

    def __init__(
        self, words: Sequence[str], *, rule: str = "spelling", unknown_ids: NDArray[np.int64] | None = None
    ) -> None:
        check_choice(rule, RULES, code="unknown-word-rule", what="rule for unknown words")
        self.words = words
        self.rule = rule
        self._ids = {word: i for i, word in enumerate(words)}
        # Tokens are lower case; a vocabulary with capitals is found all the same.
        for i, word in enumerate(words):
            self._ids.setdefault(word.lower(), i)
        if unknown_ids is None:
            self._allowed = self._ids
            self._targets: Sequence[int] = range(len(words))
        else:
            self._targets = [int(i) for i in unknown_ids]
            self._allowed = {words[i]: i for i in self._targets}
        if not self._targets:
            raise BadParameterError("no-word-left", "no word is left that an unknown token could be treated as")
        # No part of a token that is longer than every word can be one: so the work for a token grows with its length,
        # not with the square of it.
        self._longest = max(map(len, self._allowed))
        self._resolved: dict[str, int] = {}

    def __contains__(self, token: str) -> bool:
        return token in self._ids

    def __len__(self) -> int:
        return len(self.words)

    def ids(self, tokens: Sequence[str]) -> list[int]:
        ids = list(map(self._ids.get, tokens))
        if None in ids:
            return [self.unknown(token) if i is None else i for i, token in zip(ids, tokens, strict=True)]
        return ids  # type: ignore[return-value]

    def id(self, token: str) -> int:
        known = self._ids.get(token)
        return self.unknown(token) if known is None else known

    def unknown(self, token: str) -> int:
        """The vocabulary word an unknown token is treated as: a function of the token alone."""
        resolved = self._resolved.get(token)
        if resolved is None:
            resolved = self._by_spelling(token) if self.rule == "spelling" else None
            if resolved is None:
                resolved = self._by_hash(token)
            if len(self._resolved) < _REMEMBERED and len(token) <= _LONGEST_REMEMBERED:
                self._resolved[token] = resolved
        return resolved

    def _by_spelling(self, token: str) -> int | None:
        allowed = self._allowed
        shortest = 2 if token[:1].isdigit() else 4
        for length in range(min(len(token) - 1, self._longest), shortest - 1, -1):
            for part in (token[:length], token[-length:]):
                if part in allowed:
                    return allowed[part]
        for part in sorted(token.replace("'", "-").split("-"), key=len, reverse=True):
            if part in allowed:
                return allowed[part]
        return None

    def _by_hash(self, token: str) -> int:
        digest = hashlib.blake2b(token.encode("utf-8", "surrogatepass"), digest_size=8, person=b"tacit-unknown")
        return self._targets[int.from_bytes(digest.digest(), "little") % len(self._targets)]
