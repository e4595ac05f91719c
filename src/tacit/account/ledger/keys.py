"""The key of a ledger: it turns names into hashes that nobody can guess back, and seals the chain of events.

Without the key a hash of a name is of no use; with the key (and the ledger) anybody can test whether a name or text
is in it. So the key never lies in the database. It comes from the argument, from TACIT_LEDGER_KEY, or from a file of
its own that only its owner may read, made together with the ledger.

A key that was changed holds all secrets it ever had, one per line, oldest first. Names are not stored, so their hashes
cannot be made anew from them; they are hashed once more, under the new secret:

    name = HMAC(newest, ... HMAC(second, HMAC(first, name)))

Whoever has an older secret only can neither test a name nor seal an event. The lines before the last one are the key
of copies that were made before the change.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Final

from tacit.account.ledger.charges import DOCUMENT, HASH_BYTES, USER
from tacit.account.ledger.database import LedgerError
from tacit.atomic import create_file, sync_folder
from tacit.errors import BadParameterError
from tacit.text.identity import document_identity, name_identity, user_name

VARIABLE: Final = "TACIT_LEDGER_KEY"
KEY_BYTES: Final = 32
SHORTEST: Final = 16
CHECK_LENGTH: Final = 32
_NAMES: Final = b"tacit ledger: names"
_CHAIN: Final = b"tacit ledger: chain"


class _Layer:
    """HMAC-SHA256 (RFC 2104) with the two padded keys hashed once: twice as fast as starting over for each of 100,000
    names. Cut to 128 bits, which keeps equal hashes of different names out of reach."""

    def __init__(self, secret: bytes) -> None:
        key = hmac.digest(secret, _NAMES, "sha256")
        self._inner = hashlib.sha256(_padded(key, 0x36))
        self._outer = hashlib.sha256(_padded(key, 0x5C))

    def hashed(self, message: bytes) -> bytes:
        inner = self._inner.copy()
        inner.update(message)
        outer = self._outer.copy()
        outer.update(inner.digest())
        return outer.digest()[:HASH_BYTES]


Recognizes = Callable[[str, str], str]
"""(kind of a subject, its identity) to what is hashed of it."""


class LedgerKey:
    """One secret, or all that a ledger ever had, oldest first."""

    def __init__(self, *secrets: bytes, recognizes: Recognizes | None = None) -> None:
        self._secrets = secrets
        first, *later = map(_Layer, secrets)
        self._first, self._later = first, later
        # The older secrets are part of what seals, so that a key with a wrong one among them is recognized.
        before = b"".join(hmac.digest(secret, _NAMES, "sha256") for secret in secrets[:-1])
        self._chain = hmac.digest(secrets[-1], _CHAIN + before, "sha256")
        self.recognizes: Recognizes = recognizes or to_the_letter
        """What tells a subject of a kind from others: set to `recognized` by a ledger, unless it was made before that,
        because hashes cannot be made anew."""

    def __repr__(self) -> str:
        return "LedgerKey(...)"

    def name(self, kind: str, identity: str) -> bytes:
        """The keyed hash of a subject, token or job."""
        hashed = self._first.hashed(f"{kind}\0{self.recognizes(kind, identity)}".encode("utf-8", "surrogatepass"))
        for layer in self._later:
            hashed = layer.hashed(hashed)
        return hashed

    def renamed(self, hashed: bytes) -> bytes:
        """A hash under the key before this one, as a hash under this one."""
        return self._later[-1].hashed(hashed)

    def seal(self, message: bytes) -> bytes:
        """The keyed hash of an event of the chain."""
        return hmac.digest(self._chain, message, "sha256")

    def check(self, ledger: str) -> str:
        """The mark by which a ledger notices that its key, or its way to recognize documents, is a wrong one:
        whoever made it recognize them to the letter, in a table that is not sealed, would make every document a new
        one."""
        return self.seal(f"key of {ledger}{RULES[self.recognizes]}".encode()).hex()[:CHECK_LENGTH]

    def changed(self) -> LedgerKey:
        """The key with a new secret."""
        return LedgerKey(*self._secrets, secrets.token_hex(KEY_BYTES).encode(), recognizes=self.recognizes)

    def earlier(self) -> list[LedgerKey]:
        """The keys that this one was before, latest first."""
        return [
            LedgerKey(*self._secrets[:count], recognizes=self.recognizes)
            for count in range(len(self._secrets) - 1, 0, -1)
        ]

    def fitting(self, ledger: str, check: str) -> LedgerKey | None:
        """This key, or the one that it was when a copy of the ledger was made; None if neither fits."""
        return next((key for key in (self, *self.earlier()) if key.check(ledger) == check), None)

    def text(self) -> bytes:
        """The content of its file."""
        if any(b"\n" in secret or secret != secret.strip() for secret in self._secrets):
            raise LedgerError(
                "bad-ledger-key", "this key holds a line break or begins or ends with a space, so no file can keep it"
            )
        return b"".join(secret + b"\n" for secret in self._secrets)


def recognized(kind: str, identity: str) -> str:
    """The form by which a subject is recognized: a text by what a mechanism reads of it, a user by what all spellings
    of a name have in common.

    A document that was given a name has a zero between its data set and its name, and is kept as it is; no text comes
    with a zero in it.
    """
    return user_name(identity) if kind == USER else by_tokens(kind, identity)


def by_tokens(kind: str, identity: str) -> str:
    """The form by which ledgers recognize subjects that were made before users had all spellings of their names."""
    if kind == DOCUMENT:
        return identity if "\0" in identity else document_identity(identity)
    return name_identity(identity) if kind == USER else identity


def to_the_letter(kind: str, identity: str) -> str:
    """The form by which the oldest ledgers recognize subjects."""
    return identity


RULES: Final[dict[Recognizes, str]] = {
    recognized: ", documents by their tokens, users by all spellings of their names",
    by_tokens: ", documents by their tokens",
    to_the_letter: "",
}
"""The ways to recognize subjects, with what the mark of a key says of each."""


def _padded(key: bytes, pad: int) -> bytes:
    return bytes(byte ^ pad for byte in key.ljust(hashlib.sha256().block_size, b"\0"))


def given_key(key: bytes | str | None) -> LedgerKey | None:
    """The key that the caller or the environment gives; lines of a text are the secrets of a key that was changed."""
    origin = "the key"
    if key is None:
        key, origin = os.environ.get(VARIABLE) or None, VARIABLE
    if key is None:
        return None
    parts = [line.encode() for line in key.split("\n") if line] if isinstance(key, str) else [bytes(key)]
    shortest = min(map(len, parts), default=0)
    if shortest < SHORTEST:
        raise BadParameterError(
            "ledger-key-too-short",
            "{origin} has {characters} characters, which can be guessed: use {least} or more, for example what "
            "'openssl rand -hex 32' prints",
            origin=origin,
            characters=shortest,
            least=SHORTEST,
        )
    return LedgerKey(*parts)


# Files --------------------------------------------------------------------------------------------------------------


def key_file(ledger: str) -> Path:
    """The file of the key of a ledger, unless the key is given: one file for each ledger, outside of it."""
    base = os.environ.get("XDG_CONFIG_HOME")
    folder = Path(base) if base else Path.home() / ".config"
    return folder / "tacit" / "ledger-keys" / f"{ledger}.key"


def make_key(ledger: str) -> LedgerKey:
    """A new key in a new file."""
    key = LedgerKey(secrets.token_hex(KEY_BYTES).encode())
    _write(key_file(ledger), key, "the key of the new ledger")
    return key


def kept_key(ledger: str) -> LedgerKey:
    """The key in the file of a ledger."""
    path = key_file(ledger)
    key = _read(path)
    if key is None:
        raise LedgerError(
            "unreadable-ledger-key",
            "the key of this ledger cannot be read from '{path}': bring it back from where the ledger was made, or "
            "set {variable}",
            path=path,
            variable=VARIABLE,
        )
    return key


def prepare_key(ledger: str, key: LedgerKey) -> None:
    """Write a changed key beside the one it will replace, before the ledger is changed: whatever happens, the key that
    fits is there."""
    path = _next_file(ledger)
    path.unlink(missing_ok=True)  # of a change that was never finished, or `prepared_key` would have taken it
    _write(path, key, "the changed key")


def prepared_key(ledger: str) -> LedgerKey | None:
    """The changed key of a change that may have been stopped before its last step."""
    return _read(_next_file(ledger))


def take_prepared_key(ledger: str) -> Path:
    """The last step of a change: its key takes the place of the former one."""
    path = key_file(ledger)
    _next_file(ledger).replace(path)
    sync_folder(path.parent)
    return path


def _next_file(ledger: str) -> Path:
    return key_file(ledger).with_suffix(".key.next")


def _read(path: Path) -> LedgerKey | None:
    try:
        parts = [line.strip() for line in path.read_bytes().split(b"\n") if line.strip()]
    except OSError:
        return None
    return LedgerKey(*parts) if parts else None


def _write(path: Path, key: LedgerKey, what: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        create_file(path, key.text(), private=True)
    except OSError as error:
        raise LedgerError(
            "ledger-key-not-written",
            "{what} cannot be written to '{path}' ({reason}): make the folder writable, or set {variable}",
            what=what,
            path=path,
            reason=error.strerror,
            variable=VARIABLE,
        ) from None
