"""API keys: who may use the service, how often, and on which ledger's account.

A key is 256 random bits. The file `keys.json` in the state folder holds a SHA-256 hash of each (a slow hash would
protect nothing more: nobody guesses 256 bits), its settings, whether it has a budget, and the id of the ledger in which
all of it is counted. The budget itself is a limit in that ledger, under the key's name. It is written down here that
there is one, because the ledger cannot tell by itself that it was lost: a service whose ledger is another one, or has
no limit for a key that must have one, releases nothing (`tacit.serve.budget`).

Every change reads the file, changes it and replaces it as a whole, and holds the lock of `keys.lock` from the first to
the last step. So changes of several commands come one after the other and none is lost, and whoever reads, a running
service above all, finds the file of before or that of after.

A wrong key must teach nothing: whatever is presented is hashed and compared with the hash of every key, revoked ones
included, in constant time and without stopping early; unknown, malformed, missing and revoked keys get the same
answer.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import math
import os
import re
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, TypedDict, Unpack

from pydantic import BaseModel, ConfigDict, with_config

from tacit.atomic import write_file
from tacit.errors import BadInputError, BadParameterError
from tacit.serve.errors import UnavailableError
from tacit.serve.settings import make_private_folder

PREFIX = "tacit_"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_NO_HASH = "0" * 64
REREAD_SECONDS = 0.5
"""How long a key that was revoked by another process may still work."""


_AS_WRITTEN: Final = ConfigDict(extra="forbid", strict=True)


@with_config(_AS_WRITTEN)
@dataclass(frozen=True)
class KeyOptions:
    """Restrictions of a key beyond its budget.

    An option that this version does not know makes the whole file unusable: it could be a restriction.

    refuse_nominal   releases whose card says "nominal" are refused before any noise is drawn
    """

    refuse_nominal: bool = False


NO_OPTIONS = KeyOptions()


@with_config(_AS_WRITTEN)
@dataclass(frozen=True)
class KeyBudget:
    """The budget that a key was given; what counts is the limit in the ledger, which may have been changed since."""

    epsilon: float
    delta: float = 0.0


@with_config(_AS_WRITTEN)
@dataclass(frozen=True)
class Key:
    name: str
    hash: str
    requests_per_minute: int
    created: str
    revoked: str | None = None
    budget: KeyBudget | None = None
    options: KeyOptions = NO_OPTIONS


class KeyChanges(TypedDict, total=False):
    """The changeable part of a key."""

    revoked: str
    options: KeyOptions
    requests_per_minute: int


@dataclass(frozen=True)
class Register:
    """All that the file says.

    ledger        the id of the ledger that counts for this state folder; None as long as none was opened
    is_from_before   a file of a version that did not write down the ledger, so that it must be found, never made
    """

    keys: tuple[Key, ...] = ()
    ledger: str | None = None
    is_from_before: bool = False

    def named(self, name: str) -> Key | None:
        return next((key for key in self.keys if key.name == name), None)


class Keys:
    """The keys of a state folder. `tacit serve keys` changes the file; a running service notices by itself."""

    def __init__(self, state: Path) -> None:
        self._path = state / "keys.json"
        self._lock = threading.RLock()
        self._locked = 0
        self._seen: tuple[int, int, int] | None = None
        self._checked = -math.inf
        self._register = Register()

    # Reading --------------------------------------------------------------------------------------------------

    def register(self) -> Register:
        """The register, at most half a second old."""
        with self._lock:
            now = time.monotonic()
            if now - self._checked >= REREAD_SECONDS:
                self._read()
                self._checked = now
            return self._register

    def forget(self) -> None:
        """Read the file again with the next question."""
        with self._lock:
            self._checked = -math.inf

    def for_writing(self) -> Keys:
        """The same keys, for somebody who may have to wait for the lock of the file: requests that look into this
        object must not wait with him."""
        return self if self._locked else Keys(self._path.parent)

    def all(self) -> list[Key]:
        return list(self.register().keys)

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
        owner: Key | None = None
        for key in self.all() or [Key("", _NO_HASH, 0, "")]:
            if hmac.compare_digest(key.hash, digest) and key.revoked is None:
                owner = key
        return owner

    def named(self, name: str) -> Key | None:
        """A key by its name, revoked or not."""
        return self.register().named(name)

    def is_active(self, name: str) -> bool:
        key = self.named(name)
        return key is not None and key.revoked is None

    # Changing -------------------------------------------------------------------------------------------------

    def check_new(self, name: str, requests_per_minute: int) -> None:
        """Whether a key of this name can be made."""
        if not _NAME.fullmatch(name):
            raise BadParameterError(
                "bad-key-name", "the name of a key has 1 to 64 letters, digits, dots, dashes or underscores"
            )
        _check_rate(requests_per_minute)
        with self._lock:
            self._read()
            if self._register.named(name) is not None:
                raise BadInputError(
                    "key-name-taken",
                    "there is or was a key '{name}', and its budget stays its own: choose another name",
                    name=name,
                )

    def add(
        self,
        name: str,
        requests_per_minute: int,
        *,
        budget: KeyBudget | None = None,
        options: KeyOptions | None = None,
    ) -> str:
        """Make a key and return it: it is shown once and kept nowhere. With a budget, its limit is in the ledger
        already."""
        secret = PREFIX + secrets.token_urlsafe(32)
        with self.exclusively():
            self.check_new(name, requests_per_minute)
            if budget is not None and self._register.ledger is None:
                raise BadInputError(
                    "budget-without-ledger", "a key with a budget needs a ledger that counts it: open the ledger first"
                )
            key = Key(name, digest_of(secret), requests_per_minute, _now(), None, budget, options or NO_OPTIONS)
            self._change(lambda before: replace(before, keys=(*before.keys, key)))
        return secret

    def revoke(self, name: str) -> None:
        self._change_key(name, revoked=_now())

    def set_options(self, name: str, **changes: bool) -> Key:
        """Change options of a key, at once for a running service."""
        with self.exclusively():
            key = self._active_key(name)
            return self._change_key(name, options=replace(key.options, **changes))

    def set_rate(self, name: str, requests_per_minute: int) -> Key:
        _check_rate(requests_per_minute)
        return self._change_key(name, requests_per_minute=requests_per_minute)

    def bind(self, ledger: str, budgets: Mapping[str, KeyBudget | None]) -> None:
        """From now on this ledger counts, and these keys have these budgets."""

        def bound(before: Register) -> Register:
            keys = tuple(replace(key, budget=budgets.get(key.name, key.budget)) for key in before.keys)
            return Register(keys, ledger)

        with self.exclusively():
            self._change(bound)

    @contextlib.contextmanager
    def exclusively(self) -> Iterator[None]:
        """Hold the lock of the file against this and other processes; the file is read again first."""
        with self._lock, contextlib.ExitStack() as stack:
            if self._locked == 0:
                stack.enter_context(_locked(self._path.with_name("keys.lock")))
            self._locked += 1
            stack.callback(self._unlock)
            self._read()
            yield

    def _unlock(self) -> None:
        self._locked -= 1

    def _active_key(self, name: str) -> Key:
        key = self._register.named(name)
        if key is None or key.revoked is not None:
            raise BadInputError(
                "no-such-key", "there is no active key '{name}': 'tacit serve keys list' shows them", name=name
            )
        return key

    def _change_key(self, name: str, **changes: Unpack[KeyChanges]) -> Key:
        with self.exclusively():
            changed = replace(self._active_key(name), **changes)
            self._change(
                lambda before: replace(before, keys=tuple(changed if key.name == name else key for key in before.keys))
            )
        return changed

    def _change(self, change: Callable[[Register], Register]) -> None:
        """Called while the lock is held, with what was just read."""
        assert self._locked
        _write(self._path, change(self._register))
        self._seen = None
        self._read()
        self.forget()

    def _read(self) -> None:
        try:
            facts = self._path.stat()
        except FileNotFoundError:
            if self._seen is not None:  # there were keys before, so requests must not pass as if there were none
                raise UnavailableError(
                    "keys-file-gone", "{path} has disappeared: bring it back", path=self._path
                ) from None
            return
        except OSError as error:
            raise UnavailableError(
                "unreadable-keys-file",
                "{path} cannot be read ({reason}): check its folder",
                path=self._path,
                reason=error.strerror,
            ) from None
        seen = (facts.st_mtime_ns, facts.st_ino, facts.st_size)
        if seen == self._seen:
            return
        try:
            self._register = _parsed(self._path.read_bytes())
        except (OSError, ValueError):
            raise UnavailableError(
                "unreadable-keys-file",
                "{path} cannot be read: restore it, or use the version of Tacit that wrote it",
                path=self._path,
            ) from None  # the cause could quote the file
        self._seen = seen


# The file -----------------------------------------------------------------------------------------------------------


class _File(BaseModel):
    """The file: a list of keys, and the ledger that counts; files of earlier versions do not say which."""

    model_config = _AS_WRITTEN

    keys: list[Key]
    ledger: str | None = None


def _parsed(data: bytes) -> Register:
    """The keys in a file; whatever is not understood to the letter makes the file unusable."""
    content = _File.model_validate_json(data)
    keys = tuple(content.keys)
    if len({key.name for key in keys}) < len(keys) or any(len(key.hash) != len(_NO_HASH) for key in keys):
        raise ValueError
    return Register(keys, content.ledger, is_from_before="ledger" not in content.model_fields_set)


def _write(path: Path, register: Register) -> None:
    """Replace the file as a whole."""
    data = json.dumps({"ledger": register.ledger, "keys": [asdict(key) for key in register.keys]}, indent=1)
    try:
        write_file(path, data.encode(), private=True, shared=True)
    except OSError as error:
        raise UnavailableError(
            "keys-file-not-written",
            "{path} cannot be written ({reason}): nothing was changed",
            path=path,
            reason=error.strerror,
        ) from None


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """The lock of a state folder's keys; it goes with the process, however that ends."""
    make_private_folder(path.parent)
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise UnavailableError(
            "keys-file-not-written",
            "{path} cannot be opened ({reason}): nothing was changed",
            path=path,
            reason=error.strerror,
        ) from None
    try:
        with contextlib.suppress(ImportError):  # a system without this kind of lock
            import fcntl

            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _check_rate(requests_per_minute: int) -> None:
    if requests_per_minute < 1:
        raise BadParameterError(
            "impossible-rate",
            "a key may ask at least once a minute, not {requests_per_minute} times",
            requests_per_minute=requests_per_minute,
        )


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
