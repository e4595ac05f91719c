"""When two texts are one document: what a ledger recognizes a text by.

A limit per document would be worth nothing if the same text with one more space were another document. So a document is
recognized by what is left when everything is taken away that a mechanism does not read: white space, case, the forms of
quotes and dashes (`tacit.text.tokens.normalize`), and, because encoders drop them as well, accents, control and format
characters and the compatibility forms of Unicode.

Guaranteed: texts with the same tokens (`tacit.text.tokens.split`) have the same identity, because the tokens of a text
one after the other are its normalized characters without white space, and the identity is a function of these. It is
coarser than the tokens ("the rapist", "therapist"): merging two documents counts too much, never too little. A text
with another word, or one letter more, is another document; so is one that differs where a model has stopped reading.
"""

from __future__ import annotations

import re
import unicodedata
from decimal import Decimal
from typing import Final

from tacit.text.tokens import normalize


class _Read(dict[int, int | None]):
    """Characters by number: itself, or nothing for those that are not read. Filled as they are met."""

    def __missing__(self, code: int) -> int | None:
        character = chr(code)
        kind = unicodedata.category(character)
        dropped = kind[0] in "CZ" or kind == "Mn" or character == "\ufffd"
        self[code] = None if dropped else code
        return self[code]


_READ: Final = _Read()
_ASCII: Final = {code: None if code <= 0x20 or code == 0x7F else ord(chr(code).lower()) for code in range(128)}


def document_identity(text: str) -> str:
    """The same for all texts that are one document."""
    if text.isascii():
        return text.translate(_ASCII)
    letters = "".join(normalize(text).split())
    folded = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", letters).casefold())
    return folded.translate(_READ)


def name_identity(name: str) -> str:
    """The same for all spellings of one name: white space around it, and how Unicode composes it, make no other."""
    return unicodedata.normalize("NFC", name).strip()


def user_name(name: str) -> str:
    """The same for all spellings of one user, and "" where no user is named.

    White space in and around a name, capitals, what nobody sees of it (characters without a width), and the forms that
    Unicode has for the same letters make no second person. Nor does it how a number was stored: a column with a missing
    value becomes one of floating-point numbers in some libraries. Two people whose names differ only so are one unit
    and share its promise.

    >>> user_name("7.0"), user_name(" 7 "), user_name("1e3"), user_name("Ann  Lee\u200b"), user_name("nan")
    ('7', '7', '1000', 'ann lee', '')
    """
    seen = name.translate(_SEEN)
    if seen.strip() == "nan":
        return ""
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKD", seen).casefold())
    cleaned = " ".join(folded.split())
    if cleaned == "nan":  # a person called so, and no number that is missing
        return "Nan"
    if not WRITTEN_AS_FLOAT.fullmatch(cleaned):
        return cleaned
    whole = Decimal(cleaned)
    return str(int(whole)) if whole == whole.to_integral_value() else cleaned


class _Seen(dict[int, int | None]):
    """Characters by number: itself, or nothing for those without a width. Filled as they are met."""

    def __missing__(self, code: int) -> int | None:
        character = chr(code)
        kind = unicodedata.category(character)
        unseen = kind == "Cf" or (kind == "Cc" and not character.isspace()) or code in _FILLERS
        self[code] = None if unseen else code
        return self[code]


_FILLERS: Final = frozenset(
    (0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x3164, 0xFFA0,
     *range(0x180B, 0x1810), *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0))
)  # fmt: skip
"""Letters and marks that are drawn as nothing: fillers, and what only chooses how the letter before is drawn."""
_SEEN: Final = _Seen()
WRITTEN_AS_FLOAT: Final = re.compile(r"-?[0-9]{1,30}(\.[0-9]{1,30}([eE][+-]?[0-9]{1,2})?|[eE][+-]?[0-9]{1,2})")
