"""Word pieces of a text by the vocabulary of a BERT tokenizer (`tokenizer.json`), in Python alone.

The rules are those of `BertNormalizer` and `BertPreTokenizer` of the library `tokenizers` and of WordPiece (Devlin et
al. 2019): control characters go, accents and capitals too, punctuation marks and Chinese characters stand alone, and
a word is cut into the longest pieces that the vocabulary has. On all sentences of the general pool the pieces are the
same as those of the library. It is not used because it brings 43 MB of other packages; since a word is cut only once
and then remembered, this is several times faster as well.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping
from itertools import chain
from typing import TypeVar

LONGEST_WORD = 100
"""Characters; a longer word is unknown."""
MOST_REMEMBERED = 1 << 18

Key = TypeVar("Key")
Value = TypeVar("Value")

_ASCII_WORD = re.compile(r"[!-/:-@\[-`{-~]|[^\s!-/:-@\[-`{-~]+")
_WORD = re.compile(r"\S+")
_CONTROL = {code: None for code in (*range(32), 127) if chr(code) not in "\t\n\r"}
_CHINESE = (
    (0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F), (0x2B740, 0x2B81F),
    (0x2B920, 0x2CEAF), (0xF900, 0xFAFF), (0x2F800, 0x2FA1F),
)  # fmt: skip
_FIRST_CHINESE = min(low for low, _ in _CHINESE)


class WordPieces:
    """Cuts texts into the numbers of their word pieces; unknown words are left out."""

    def __init__(self, vocabulary: Mapping[str, int]) -> None:
        self._vocabulary = dict(vocabulary)
        self._known = _Remembered(self._cut)

    def ids(self, text: str) -> list[int]:
        """The pieces of a text, in their order."""
        if len(self._known) > MOST_REMEMBERED:
            self._known.clear()
        return list(chain.from_iterable(map(self._known.__getitem__, words_of_text(text))))

    def _cut(self, word: str) -> tuple[int, ...]:
        pieces: list[int] = []
        start = 0
        while start < len(word) <= LONGEST_WORD:
            for end in range(len(word), start, -1):
                part = word[start:end]
                piece = self._vocabulary.get(part if start == 0 else f"##{part}")
                if piece is not None:
                    break
            else:
                pieces = []
                break
            pieces.append(piece)
            start = end
        return tuple(pieces)


class _Remembered(dict[Key, Value]):
    """Values of a function, computed when they are first looked up. Loops over it run at the speed of a dictionary."""

    def __init__(self, compute: Callable[[Key], Value]) -> None:
        super().__init__()
        self._compute = compute

    def __missing__(self, key: Key) -> Value:
        value = self[key] = self._compute(key)
        return value


def words_of_text(text: str) -> list[str]:
    """Words and punctuation marks in lower case, without accents.

    >>> words_of_text("Où est l'Hôtel?")
    ['ou', 'est', 'l', "'", 'hotel', '?']
    """
    if text.isascii():
        return _ASCII_WORD.findall(text.translate(_CONTROL).lower())
    plain = unicodedata.normalize("NFD", text.translate(_CLEANED))
    return _WORD.findall(plain.translate(_SPACED))


def _cleaned(code: int) -> str:
    """A character before accents are taken apart: no control characters, spaces around Chinese ones."""
    mark = chr(code)
    if mark.isspace():
        return " "
    if mark == "\ufffd" or unicodedata.category(mark)[0] == "C":
        return ""
    return f" {mark} " if _is_chinese(mark) else mark


def _spaced(code: int) -> str:
    """A character after that: no accents, no capitals, spaces around punctuation marks."""
    mark = chr(code)
    if unicodedata.category(mark) == "Mn":
        return ""
    return "".join(f" {lower} " if _is_punctuation(lower) else lower for lower in mark.lower())


def _is_chinese(mark: str) -> bool:
    code = ord(mark)
    return code >= _FIRST_CHINESE and any(low <= code <= high for low, high in _CHINESE)


def _is_punctuation(mark: str) -> bool:
    if mark.isascii():
        return not mark.isalnum() and not mark.isspace()
    return unicodedata.category(mark)[0] == "P"


_CLEANED = _Remembered(_cleaned)
_SPACED = _Remembered(_spaced)
