"""Several documents of one person: the promise is made to people, so what they wrote counts together.

    divide        each text gets an equal share of the user's budget; rows beyond a public maximum per user are left
                  out, because a user with more of them would get more than the budget
    concatenate   all rows of a user become one, whose texts share the whole budget; the rows of a user must stand
                  together

A row has one text for each column that is rewritten, and each of them is a release of its own. So a user with n rows of
w texts is promised n * w times what one text is promised: basic composition, since every text has independent noise.

Which rows belong together is read from a column of the input. How many rows a user has (up to the maximum), and that
rows belong to the same user if that column is kept, stays visible.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

from tacit.errors import BadInputError, BadParameterError, NoGuaranteeError
from tacit.guarantee import Guarantee, Unit
from tacit.text.files import cell_string, text_value
from tacit.text.files.formats import MISSING
from tacit.text.identity import name_identity, user_name

MODES = ("divide", "concatenate")
Rows = Iterator[tuple[int, list[object]]]


@dataclass
class UserRule:
    """How the rows of one user are treated. `left_out` counts rows beyond the maximum; it is for the owner's eyes."""

    column: str
    mode: str = "divide"
    documents: int = 1
    left_out: int = field(default=0, compare=False)

    separator: ClassVar[str] = "\n"

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise BadParameterError(
                "bad-option", "{option.user_mode} must be one of {modes}, not '{given}'",
                name="user_mode", modes=", ".join(MODES), given=self.mode,
            )  # fmt: skip
        if self.documents < 1:
            raise BadParameterError(
                "bad-option", "{option.documents_per_user} must be at least 1, not {given}",
                name="documents_per_user", given=self.documents,
            )  # fmt: skip

    @property
    def rows_of_user(self) -> int:
        """The most rows of one user that are released."""
        return self.documents if self.mode == "divide" else 1

    def epsilon_of_document(self, epsilon: float, width: int = 1) -> float:
        """The budget of one text when a user may spend `epsilon` and a row has `width` texts: all of them together, as
        the promise multiplies it out, are never more than was given."""
        texts = self.rows_of_user * width
        share = epsilon / texts
        while share * texts > epsilon:  # 7 / 25 * 25 is more than 7
            share = math.nextafter(share, 0.0)
        return share

    def promise(self, document: Guarantee, width: int = 1) -> Guarantee:
        """From the guarantee of one text to that of a user whose rows have `width` of them (1 for a whole record)."""
        if document.unit not in (Unit.DOCUMENT, Unit.RECORD):
            raise NoGuaranteeError(
                "users-at-the-word-level",
                "{option.user_column} needs a mechanism that protects whole documents, such as 'codebook' for texts or "
                "'forward' for vectors: where a word or a sentence is the secret, the exponents of all of a user add "
                "up, and no budget per user can be kept",
            )
        promised = document.for_user(self.rows_of_user * width)
        if self.mode == "concatenate":
            return promised
        return promised.also_not_covered(f"how many of at most {self.documents:,} rows a user has")

    def describe(self) -> dict[str, object]:
        return {"column": self.column, "mode": self.mode, "documents": self.documents}

    def rows(self, rows: Rows, position: int, texts: int) -> Rows:
        """The rows to rewrite, the user moved from `position` to the end; the first `texts` values are the texts."""
        self.left_out = 0
        chosen = self._at_most(rows, position) if self.mode == "divide" else self._together(rows, position, texts)
        for row, values in chosen:
            yield row, [*values[:position], *values[position + 1 :], name_of(values[position])]

    def _at_most(self, rows: Rows, position: int) -> Rows:
        seen: dict[bytes, int] = {}
        for row, values in rows:
            user = self._key(values[position], row)
            count = seen.get(user, 0)
            if count >= self.documents:
                self.left_out += 1
                continue
            seen[user] = count + 1
            yield row, values

    def _together(self, rows: Rows, position: int, texts: int) -> Rows:
        seen: set[bytes] = set()
        user, last, collected, parts = None, 0, [], [[] for _ in range(texts)]  # type: ignore[var-annotated]
        for row, values in rows:
            key = self._key(values[position], row)
            if key != user:
                if user is not None:
                    yield last, [*map(self.separator.join, parts), *collected[texts:]]
                if key in seen:
                    raise BadInputError(
                        "users-not-sorted",
                        "row {row} belongs to a user whose rows ended earlier: sort the file by '{column}' first, or "
                        "use {option.user_mode[divide]}",
                        row=row,
                        column=self.column,
                    )
                seen.add(key)
                user, collected, parts = key, values, [[] for _ in range(texts)]
            for part, value in zip(parts, values, strict=False):
                part.append(text_value(value, row, self.column))
            last = row
        if user is not None:
            yield last, [*map(self.separator.join, parts), *collected[texts:]]

    def _key(self, value: object, row: int) -> bytes:
        """16 bytes per user, so that millions of them fit in memory."""
        name = user_name(name_of(value))
        if not name:
            raise BadInputError(
                "user-not-named",
                "row {row} has no value in '{column}': every row must belong to a user",
                row=row,
                column=self.column,
            )
        return hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def name_of(value: object) -> str:
    """The user or document that a cell names, empty if there is none. White space and the type of the cell make no
    second person, as in the ledger."""
    return "" if value is MISSING else name_identity(cell_string(value))
