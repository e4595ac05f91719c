"""Places to write to, refused before hours of work, not after."""

from __future__ import annotations

from pathlib import Path

from tacit.errors import BadInputError


def refuse_taken_file(path: Path, *, force: bool) -> None:
    """Refuse a file that exists, unless it may be replaced."""
    if path.exists() and not force:
        raise BadInputError(
            "file-exists", "{path} exists: give another name, or {option.force} to replace it", path=path
        )


def refuse_existing(path: Path, *, force: bool) -> None:
    """Refuse a name at which no file can be written: a folder, a file that may not be replaced, a missing folder."""
    if path.is_dir():
        raise BadInputError("is-a-folder", "{path} is a folder: give a file name for the report", path=path)
    refuse_taken_file(path, force=force)
    if not path.parent.is_dir():
        raise BadInputError("no-such-folder", "the folder {path} does not exist: create it first", path=path.parent)


def refuse_taken_folder(path: Path) -> None:
    """Refuse a folder that exists."""
    if path.exists():
        raise BadInputError(
            "folder-exists", "'{path}' exists already: choose another folder, or remove it first", path=path
        )
