"""The folder where parsed vector files and expensive exact numbers are kept between runs.

Only public things go here: vectors, vocabularies, distances between public vectors. A cache that cannot be
written is never an error; the work is then done again next time.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path


def cache_folder() -> Path:
    """`TACIT_CACHE` if set, else `tacit` in the XDG cache folder (`~/.cache` unless set)."""
    chosen = os.environ.get("TACIT_CACHE")
    if chosen:
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "tacit"


def key_of(*parts: object) -> str:
    """A short stable name for what is kept: a hash of everything it depends on."""
    return hashlib.blake2b(repr(parts).encode(), digest_size=16).hexdigest()


def keep_folder(kind: str, key: str, write: Callable[[Path], None]) -> Path | None:
    """Write a finished folder under its key, or return None where the cache cannot be written.

    The folder is written beside its place and renamed, so a reader never sees half of it.
    """
    target = cache_folder() / kind / key
    try:
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        draft = Path(tempfile.mkdtemp(prefix=".draft-", dir=target.parent))
    except OSError:
        return None
    try:
        write(draft)
        with contextlib.suppress(OSError):  # another process may have put the same content there first
            draft.rename(target)
        return target if target.is_dir() else None
    except OSError:
        return None
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def keep_text(kind: str, name: str, text: str) -> None:
    """Write one small file atomically; silently do nothing where the cache cannot be written."""
    target = cache_folder() / kind / name
    try:
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle, draft = tempfile.mkstemp(prefix=".draft-", dir=target.parent)
    except OSError:
        return
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        Path(draft).replace(target)
    except OSError:
        Path(draft).unlink(missing_ok=True)


def kept_text(kind: str, name: str) -> str | None:
    try:
        return (cache_folder() / kind / name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None
