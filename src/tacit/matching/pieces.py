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
from collections.abc import Iterator, Mapping

LONGEST_WORD = 100
"""Characters; a longer word is unknown."""
MOST_REMEMBERED = 1 << 18

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
        self._known: dict[str, tuple[int, ...]] = {}

    def ids(self, text: str) -> list[int]:
        """The pieces of a text, in their order."""
        if len(self._known) > MOST_REMEMBERED:
            self._known.clear()
        return [piece for word in words_of_text(text) for piece in self._known.get(word) or self._cut(word)]

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
        self._known[word] = tuple(pieces)
        return self._known[word]


def words_of_text(text: str) -> list[str]:
    """Words and punctuation marks in lower case, without accents.

    >>> words_of_text("Où est l'Hôtel?")
    ['ou', 'est', 'l', "'", 'hotel', '?']
    """
    if text.isascii():
        return _ASCII_WORD.findall(text.translate(_CONTROL).lower())
    plain = unicodedata.normalize("NFD", "".join(_cleaned(text)))
    lower = "".join(mark.lower() for mark in plain if unicodedata.category(mark) != "Mn")
    return _WORD.findall("".join(f" {mark} " if _is_punctuation(mark) else mark for mark in lower))


def _cleaned(text: str) -> Iterator[str]:
    for mark in text:
        if mark.isspace():
            yield " "
        elif mark != "\ufffd" and unicodedata.category(mark)[0] != "C":
            yield f" {mark} " if _is_chinese(mark) else mark


def _is_chinese(mark: str) -> bool:
    code = ord(mark)
    return code >= _FIRST_CHINESE and any(low <= code <= high for low, high in _CHINESE)


def _is_punctuation(mark: str) -> bool:
    if mark.isascii():
        return not mark.isalnum() and not mark.isspace()
    return unicodedata.category(mark)[0] == "P"
