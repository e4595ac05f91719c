"""Public text. Weights, vocabularies, clipping constants and pruned neurons may depend on nothing else (pitfall P3).

An autoencoder that is trained on private text memorizes it and writes it into its outputs: Igamberdiev 2023, section
5.4, shows an ADePT that answers with its training sentences. Clipping without noise does not prevent that. So training
asks for `PublicText`, which somebody has to declare by name; the other way is DP-SGD, which pays for private text
(`tacit train rewrite`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tacit.errors import BadInputError

REFUSAL = (
    "this text is not declared public, and a rewriting model must not learn from private text: it would repeat it. "
    "Declare public text by its name (--public NAME, or PublicText(texts, name=...)); a BART learns from private text "
    "with DP-SGD, which spends budget: tacit train rewrite DATA --epsilon 8 -o FOLDER"
)

JOINED_AT_MOST = 6


class NotPublicError(BadInputError):
    """Text that was not declared public was to be learned from."""


@dataclass(frozen=True, kw_only=True)
class PublicText:
    """Texts that anybody may see, with the name they are known by. Whoever makes one declares them public."""

    texts: Sequence[str]
    name: str

    def __post_init__(self) -> None:
        if not self.name.strip():
            raise NotPublicError(REFUSAL)
        if not any(text.strip() for text in self.texts):
            raise BadInputError(f"'{self.name}' has no text: give a file with one text per line")

    def split(self, held_out: int) -> tuple[list[str], list[str]]:
        """Different texts for training and for measuring, by a hash of each text: adding texts moves no other."""
        texts = sorted({text for text in self.texts if text.strip()}, key=_place)
        if len(texts) < 2 * held_out:
            held_out = max(1, len(texts) // 10)
        return texts[held_out:] or texts, texts[:held_out]


def joined(texts: Sequence[str], fits: Callable[[str], bool], most: int = JOINED_AT_MOST) -> list[str]:
    """Longer texts from short ones, each used once: 1, 2, ..., `most`, 1, 2, ... neighbors, as far as they fit.

    Joining comes after `split`, so that a text for measuring holds no sentence of a text for training.
    """
    found: list[str] = []
    parts: list[str] = []
    wanted = 1
    for text in texts:
        if parts and (len(parts) == wanted or not fits(" ".join([*parts, text]))):
            found.append(" ".join(parts))
            parts, wanted = [], wanted % most + 1
        parts.append(text)
    return [*found, " ".join(parts)] if parts else found


def declared(corpus: Any) -> PublicText:
    """The corpus, if it was declared public."""
    if not isinstance(corpus, PublicText):
        raise NotPublicError(REFUSAL)
    return corpus


def read_public(path: Path, name: str | None) -> PublicText:
    """A file with one text per line."""
    if name is None:
        raise NotPublicError(REFUSAL)
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise BadInputError(f"'{path}' cannot be read: {error.strerror or 'check the name'}") from error
    except UnicodeDecodeError as error:
        raise BadInputError(f"'{path}' is not UTF-8 text: convert it first, one text per line") from error
    return PublicText(texts=lines, name=name)


def _place(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
