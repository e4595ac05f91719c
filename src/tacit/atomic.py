"""Files and folders that appear complete or not at all.

All data goes to a draft beside its place, and the draft takes the final name when it is complete. A reader therefore
sees the old content or the new, never a part, even if the process is killed in between.

The draft of ``name`` is called ``.name.draft``. A draft that a killed process has left is removed by the next write to
the same place. Where several processes may write to one place at the same time, ``shared=True`` gives each draft a
name of its own. Drafts are always new files: a link that somebody has put in their place is never followed.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path


def write_file(path: Path, data: bytes, *, private: bool = False, shared: bool = False) -> None:
    """Write a file, down to the disk. With ``private`` only its owner may read it, from its first byte on."""
    write_files({path: data}, private=private, shared=shared)


def write_files(contents: Mapping[Path, bytes], *, private: bool = False, shared: bool = False) -> None:
    """Write several files. None of them gets its name before all of them are on the disk.

    An OSError carries the path that could not be written as its ``filename``.
    """
    drafts: list[tuple[Path, Path]] = []
    path = Path()
    try:
        for path, data in contents.items():
            draft = _new_file(path, private=private, shared=shared)
            drafts.append((draft, path))
            draft.write_bytes(data)
            sync(draft)
        for draft, path in drafts:
            draft.replace(path)
    except OSError as error:
        error.filename = str(path)
        raise
    finally:
        for draft, _ in drafts:
            draft.unlink(missing_ok=True)
    for folder in {path.parent for path in contents}:
        sync_folder(folder)


@contextlib.contextmanager
def draft_file(
    path: Path, *, private: bool = False, shared: bool = False, replace_existing: bool = True
) -> Iterator[Path]:
    """An empty file to write to, which takes the name ``path`` when the block ends, and goes if it ends in an error.

    With ``replace_existing=False`` a file that has appeared at ``path`` meanwhile is kept: FileExistsError.
    """
    draft = _new_file(path, private=private, shared=shared)
    try:
        yield draft
        sync(draft)
        if replace_existing:
            draft.replace(path)
        else:
            _rename_to_new(draft, path)
    finally:
        draft.unlink(missing_ok=True)
    sync_folder(path.parent)


@contextlib.contextmanager
def draft_folder(path: Path, *, private: bool = False) -> Iterator[Path]:
    """An empty folder to write to, which takes the name ``path`` when the block ends, and goes if it ends in an error.

    OSError if there is a folder with content at ``path`` by then. The files in it are not forced to the disk.
    """
    draft = _draft_name(path, shared=True)
    draft.mkdir(mode=0o700 if private else 0o777)
    try:
        yield draft
        draft.rename(path)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def create_file(path: Path, data: bytes, *, private: bool = False) -> None:
    """Write a new file, down to the disk; FileExistsError if the name is taken, by whatever it is."""
    with draft_file(path, private=private, shared=True, replace_existing=False) as draft:
        draft.write_bytes(data)


def sync(path: Path) -> None:
    """Wait until the content of a file is on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_folder(folder: Path) -> None:
    """Wait until the names in a folder are on the disk, where the system can promise that."""
    with contextlib.suppress(OSError):
        sync(folder)


def _draft_name(path: Path, *, shared: bool) -> Path:
    own = f".{secrets.token_hex(8)}" if shared else ""
    return path.with_name(f".{path.name}{own}.draft")


def _new_file(path: Path, *, private: bool, shared: bool) -> Path:
    draft = _draft_name(path, shared=shared)
    if not shared:
        draft.unlink(missing_ok=True)  # a draft that a killed process has left keeps its mode
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    os.close(os.open(draft, flags, 0o600 if private else 0o666))
    return draft


def _rename_to_new(draft: Path, path: Path) -> None:
    try:
        os.link(draft, path)  # unlike renaming, this never replaces a file
    except FileExistsError:
        raise
    except OSError:  # a file system without links
        if os.path.lexists(path):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path)) from None
        draft.rename(path)
