"""The folder where parsed vector files and expensive exact numbers are kept between runs.

Only public things go here: vectors, vocabularies, distances between public vectors. A cache that cannot be
written is never an error; the work is then done again next time.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Callable
from pathlib import Path

from tacit.atomic import draft_folder, write_file


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
    """The folder of this key after ``write`` has filled it, or None where the cache cannot be written."""
    target = cache_folder() / kind / key
    with contextlib.suppress(OSError):  # another process may have put the same content there first
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with draft_folder(target, private=True) as draft:
            write(draft)
    return target if target.is_dir() else None


def keep_text(kind: str, name: str, text: str) -> None:
    """Write one small file; do nothing where the cache cannot be written."""
    target = cache_folder() / kind / name
    with contextlib.suppress(OSError):
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_file(target, text.encode(), private=True, shared=True)


def kept_text(kind: str, name: str) -> str | None:
    try:
        return (cache_folder() / kind / name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None
