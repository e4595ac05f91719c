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

from tacit.errors import BadInputError
from tacit.text.files import choose_columns, text_value
from tacit.text.files.memory import is_in_memory, memory_table

JOINED_AT_MOST = 6


class NotPublicError(BadInputError):
    """Text that was not declared public was to be learned from."""

    def __init__(self) -> None:
        super().__init__(
            "text-not-public",
            "this text is not declared public, and a rewriting model must not learn from private text: it would repeat "
            "it. Declare public text by its name ({option.public[NAME]}, or PublicText(texts, name=...)); a BART "
            "learns from private text with DP-SGD, which spends budget: 'tacit train rewrite'",
        )


@dataclass(frozen=True, kw_only=True)
class PublicText:
    """Texts that anybody may see, with the name they are known by. Making one declares them public."""

    texts: Sequence[str]
    name: str

    def __post_init__(self) -> None:
        if not self.name.strip():
            raise NotPublicError
        if not any(text.strip() for text in self.texts):
            raise BadInputError("no-text", "'{name}' has no text: give a file with one text per line", name=self.name)

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
    documents: list[str] = []
    parts: list[str] = []
    wanted = 1
    for text in texts:
        if parts and (len(parts) == wanted or not fits(" ".join([*parts, text]))):
            documents.append(" ".join(parts))
            parts, wanted = [], wanted % most + 1
        parts.append(text)
    return [*documents, " ".join(parts)] if parts else documents


def declared(corpus: object) -> PublicText:
    """The corpus, if it was declared public."""
    if not isinstance(corpus, PublicText):
        raise NotPublicError
    return corpus


def read_public(source: object, name: str | None) -> PublicText:
    """Public texts: of a file with one text per line, or in memory.

    >>> read_public(["one text", "another"], "two made-up texts").texts
    ['one text', 'another']
    """
    if name is None:
        raise NotPublicError
    if is_in_memory(source):
        with memory_table(source) as table:
            column = choose_columns(table.columns, (), ()).texts[0]
            table.select((column,))
            return PublicText(texts=[text_value(values[0], row, column) for row, values in table.rows()], name=name)
    try:
        lines = Path(str(source)).read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise BadInputError(
            "unreadable-file",
            "'{path}' cannot be read: {reason}",
            path=source,
            reason=error.strerror or "check the name",
        ) from error
    except UnicodeDecodeError as error:
        raise BadInputError(
            "not-utf-8", "'{path}' is not UTF-8 text: convert it first, one text per line", path=source
        ) from error
    return PublicText(texts=lines, name=name)


def _place(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
