"""One public tokenization and its inverse.

`split` is a fixed function of one text: it lower-cases, straightens quotes and dashes, and cuts the text into words,
numbers, clitics ('s, n't), web and mail addresses and runs of punctuation, close to the tokenization that GloVe was
trained on. Every character that is not white space lands in some token, so nothing can slip past a mechanism.

`join` looks at the tokens it is given and at nothing else: it never sees the original text, so case, spacing and
layout of the original cannot come back.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_STRAIGHT = str.maketrans(
    {"‘": "'", "’": "'", "‛": "'", "“": '"', "”": '"', "„": '"', "«": '"', "»": '"',
     "–": "-", "—": "--", "‐": "-", "‑": "-", "…": "...", "\u00a0": " ", "\u00ad": None, "\u200b": None}
)  # fmt: skip

_CLITIC = r"'(?:s|re|ve|ll|d|m)(?![^\W_])"
_TOKEN = re.compile(
    rf"""
      [^\W\d_]+(?=[\s,;!?)"]|$)                             # most words, first because it is fast
    | https?://\S*[^\W_]                                   # a web address is one token
    | [^\W_][\w.+-]{{0,63}}@[\w-]+(?:\.[\w-]+)*[^\W_]      # and so is a mail address (64 characters before the @)
    | (?:[^\W\d_]\.){{2,}}                                 # u.s.  e.g.
    | n't(?![^\W_])
    | {_CLITIC}
    | \d+(?:[.,:]\d+)+(?![^\W_])                           # 1,000.50  10:30
    | [^\W_]+?(?=n't(?![^\W_]))                            # the "do" of "don't"
    | [^\W_]+(?:-[^\W_]+|(?!{_CLITIC}|n't(?![^\W_]))'[^\W_]+)*
    | \.+ | -+ | !+ | \?+ | `+ | '+ | \*+ | =+ | ~+        # a run of one punctuation mark: ...  --
    | _+
    | \S
    """,
    re.VERBOSE,
)

CLITICS = frozenset({"n't", "'s", "'re", "'ve", "'ll", "'d", "'m"})
_CLOSING = frozenset(".,;:!?)]}%") | {"...", "!!", "??"}
_OPENING = frozenset("([{$#")


def normalize(text: str) -> str:
    # No character of the table is ASCII, and most texts are.
    return text.lower() if text.isascii() else text.translate(_STRAIGHT).lower()


def split(text: str) -> list[str]:
    """The tokens of a text, by the fixed public rule."""
    return _TOKEN.findall(normalize(text))


def chunks(text: str) -> list[str]:
    """The text cut at white space. No token reaches over white space, and the rule treats it like the end of a text, so
    the tokens of the chunks, one chunk after the other, are the tokens of the text."""
    return normalize(text).split()


def join(tokens: Sequence[str], style: str = "natural") -> str:
    """Text from tokens: "spaces" puts one space between any two, "natural" attaches punctuation and clitics.

    `split(join(tokens)) == tokens` for all tokens that `split` makes, in both styles.
    """
    if style == "spaces":
        return " ".join(tokens)
    pieces: list[str] = []
    before = ""
    for token in tokens:
        if pieces and not _attached(before, token):
            pieces.append(" ")
        pieces.append(token)
        before = token
    return "".join(pieces)


def _attached(before: str, token: str) -> bool:
    if token in CLITICS or token in _CLOSING:
        return before.isalnum()
    return before in _OPENING and token.isalnum()


def is_punctuation(token: str) -> bool:
    """Whether a token has no letter or digit in it."""
    return not any(character.isalnum() for character in token)
