"""API keys: who may use the service, and how often.

A key is 256 random bits. The file `keys.json` in the state folder holds a SHA-256 hash of each (a slow hash would
protect nothing more: nobody guesses 256 bits). The budget of a key is a limit in the ledger, under the key's name.

A wrong key must teach nothing: whatever is presented is hashed and compared with the hash of every key, revoked ones
included, in constant time and without stopping early; unknown, malformed, missing and revoked keys get the same
answer.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import secrets
import threading
import time
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from tacit.errors import BadInputError, BadParameterError
from tacit.serve.errors import UnavailableError
from tacit.serve.settings import make_private_folder, write_private

PREFIX = "tacit_"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_NO_HASH = "0" * 64
REREAD_SECONDS = 0.5
"""How long a key that was revoked by another process may still work."""


@dataclass(frozen=True)
class Key:
    name: str
    hash: str
    requests_per_minute: int
    created: str
    revoked: str | None = None
    refuse_nominal: bool = False
    """Whether releases whose formal bound no longer protects are refused to this key."""


class Keys:
    """The keys of a state folder. `tacit serve keys` changes the file; a running service notices by itself."""

    def __init__(self, state: Path) -> None:
        self._path = state / "keys.json"
        self._lock = threading.Lock()
        self._seen: tuple[int, int] | None = None
        self._checked = -1.0
        self._keys: list[Key] = []

    def all(self) -> list[Key]:
        with self._lock:
            now = time.monotonic()
            if now - self._checked >= REREAD_SECONDS:
                self._read()
                self._checked = now
            return self._keys

    def works(self) -> bool:
        """Whether the file can be read, or is not there."""
        try:
            self.all()
        except UnavailableError:
            return False
        return True

    def active(self) -> list[Key]:
        return [key for key in self.all() if key.revoked is None]

    def find(self, presented: str) -> Key | None:
        """The key that was presented, if it is valid; the work is the same whatever was presented."""
        digest = digest_of(presented)
        found: Key | None = None
        for key in self.all() or [Key("", _NO_HASH, 0, "")]:
            if hmac.compare_digest(key.hash, digest) and key.revoked is None:
                found = key
        return found

    def is_active(self, name: str) -> bool:
        return any(key.name == name for key in self.active())

    def refuses_nominal(self, name: str | None) -> bool:
        """Whether a key asks for nominal releases to be refused."""
        return any(key.refuse_nominal for key in self.all() if key.name == name)

    def check_new(self, name: str, requests_per_minute: int) -> None:
        """Whether a key of this name can be made."""
        if not _NAME.fullmatch(name):
            raise BadParameterError("the name of a key has 1 to 64 letters, digits, dots, dashes or underscores")
        if requests_per_minute < 1:
            raise BadParameterError(f"--requests-per-minute must be at least 1, not {requests_per_minute}")
        self._read()
        if any(key.name == name for key in self._keys):
            raise BadInputError(f"there is or was a key '{name}', and its budget stays its own: choose another name")

    def add(self, name: str, requests_per_minute: int, *, refuse_nominal: bool = False) -> str:
        """Make a key and return it: it is shown once and kept nowhere."""
        self.check_new(name, requests_per_minute)
        secret = PREFIX + secrets.token_urlsafe(32)
        made = Key(name, digest_of(secret), requests_per_minute, _now(), refuse_nominal=refuse_nominal)
        self._write([*self._keys, made])
        return secret

    def revoke(self, name: str) -> None:
        self._read()
        if not any(key.name == name and key.revoked is None for key in self._keys):
            raise BadInputError(f"there is no active key '{name}': 'tacit serve keys list' shows them")
        self._write([replace(key, revoked=_now()) if key.name == name else key for key in self._keys])

    def _read(self) -> None:
        try:
            facts = self._path.stat()
        except FileNotFoundError:
            self._keys, self._seen = [], None
            return
        except OSError as error:
            raise UnavailableError(f"{self._path} cannot be read ({error.strerror}): check its folder") from None
        seen = (facts.st_mtime_ns, facts.st_ino)
        if seen == self._seen:
            return
        try:
            self._keys = [Key(**item) for item in json.loads(self._path.read_bytes())["keys"]]
        except (OSError, ValueError, KeyError, TypeError):
            raise UnavailableError(
                f"{self._path} cannot be read: restore it, or delete it and make new keys"
            ) from None  # the cause could quote the file
        self._seen = seen

    def _write(self, keys: list[Key]) -> None:
        make_private_folder(self._path.parent)
        data = json.dumps({"keys": [asdict(key) for key in keys]}, indent=1)
        write_private(self._path, data.encode())
        self._seen = None
        self._read()


def digest_of(presented: str) -> str:
    return hashlib.sha256(presented.encode("utf-8", "replace")).hexdigest()


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


class RateLimit:
    """A bucket of tokens per key: it holds a minute's worth and fills up steadily."""

    def __init__(self) -> None:
        self._buckets: dict[str, tuple[float, float]] = {}

    def wait(self, key: Key) -> float:
        """0 when the request may go on, otherwise the seconds until one may. Called from the event loop only."""
        now, rate = time.monotonic(), key.requests_per_minute / 60.0
        tokens, before = self._buckets.get(key.name, (float(key.requests_per_minute), now))
        tokens = min(float(key.requests_per_minute), tokens + (now - before) * rate)
        allowed = tokens >= 1.0
        self._buckets[key.name] = (tokens - 1.0 if allowed else tokens, now)
        return 0.0 if allowed else (1.0 - tokens) / rate
