"""The key of a ledger: it turns names into hashes that nobody can guess back, and seals the chain of events.

Without the key a hash of a name is of no use; with the key (and the ledger) anybody can test whether a name or text
is in it. So the key never lies in the database. It comes from the argument, from TACIT_LEDGER_KEY, or from a file of
its own that only its owner may read, made together with the ledger.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from pathlib import Path
from typing import Final

from tacit.account.ledger.charges import DOCUMENT, HASH_BYTES, USER
from tacit.account.ledger.database import LedgerError
from tacit.errors import BadParameterError
from tacit.text.identity import document_identity, name_identity

VARIABLE: Final = "TACIT_LEDGER_KEY"
KEY_BYTES: Final = 32
SHORTEST: Final = 16


class LedgerKey:
    """HMAC-SHA256 (RFC 2104). Names are cut to 128 bits, which keeps equal hashes of different names out of reach."""

    def __init__(self, secret: bytes) -> None:
        self._names = hmac.digest(secret, b"tacit ledger: names", "sha256")
        self._chain = hmac.digest(secret, b"tacit ledger: chain", "sha256")
        self._inner = hashlib.sha256(_padded(self._names, 0x36))
        self._outer = hashlib.sha256(_padded(self._names, 0x5C))
        self.recognizes = to_the_letter
        """What tells a subject of a kind from others: set to `recognized` by a ledger, unless it was made before that,
        because hashes cannot be made anew."""

    def __repr__(self) -> str:
        return "LedgerKey(...)"

    def name(self, kind: str, identity: str) -> bytes:
        """The keyed hash of a subject, token or job."""
        # HMAC with the two padded keys hashed once: twice as fast as starting over for each of 100,000 names.
        inner = self._inner.copy()
        inner.update(f"{kind}\0{self.recognizes(kind, identity)}".encode("utf-8", "surrogatepass"))
        outer = self._outer.copy()
        outer.update(inner.digest())
        return outer.digest()[:HASH_BYTES]

    def seal(self, message: bytes) -> bytes:
        """The keyed hash of an event of the chain."""
        return hmac.digest(self._chain, message, "sha256")

    def check(self, ledger: str) -> str:
        """What a ledger remembers of its key, to recognize a wrong one."""
        return self.seal(f"key of {ledger}".encode()).hex()[:32]


def recognized(kind: str, identity: str) -> str:
    """What a subject is recognized by: a text by what a mechanism reads of it, a name without white space around it.

    A document that was given a name has a zero between its data set and its name, and is kept as it is; no text comes
    with a zero in it.
    """
    if kind == DOCUMENT:
        return identity if "\0" in identity else document_identity(identity)
    return name_identity(identity) if kind == USER else identity


def to_the_letter(kind: str, identity: str) -> str:
    """How subjects were recognized in ledgers of before."""
    return identity


def _padded(key: bytes, pad: int) -> bytes:
    return bytes(byte ^ pad for byte in key.ljust(hashlib.sha256().block_size, b"\0"))


def given_key(key: bytes | str | None) -> LedgerKey | None:
    """The key that the caller or the environment gives."""
    origin = "the key"
    if key is None:
        key, origin = os.environ.get(VARIABLE) or None, VARIABLE
    if key is None:
        return None
    secret = key.encode() if isinstance(key, str) else bytes(key)
    if len(secret) < SHORTEST:
        raise BadParameterError(
            f"{origin} has {len(secret)} characters, which can be guessed: use {SHORTEST} or more, for example what "
            "'openssl rand -hex 32' prints"
        )
    return LedgerKey(secret)


def key_file(ledger: str) -> Path:
    """Where the key of a ledger lies, unless it is given: one file for each ledger, outside of it."""
    base = os.environ.get("XDG_CONFIG_HOME")
    folder = Path(base) if base else Path.home() / ".config"
    return folder / "tacit" / "ledger-keys" / f"{ledger}.key"


def make_key(ledger: str) -> LedgerKey:
    """A new key in a new file."""
    path, secret = key_file(ledger), secrets.token_hex(KEY_BYTES)
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(secret + "\n")
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise LedgerError(
            f"the key of the new ledger cannot be written to '{path}' ({error.strerror}): make the folder writable, "
            f"or set {VARIABLE}"
        ) from None
    return LedgerKey(secret.encode())


def kept_key(ledger: str) -> LedgerKey:
    """The key in the file of a ledger."""
    path = key_file(ledger)
    try:
        secret = path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        raise LedgerError(
            f"the key of this ledger cannot be read from '{path}': bring it back from where the ledger was made, or "
            f"set {VARIABLE}"
        ) from None
    return LedgerKey(secret.encode())
