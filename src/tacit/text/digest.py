"""A digest of what was released, so that a card can be told from the card of another output of the same name."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

from tacit.errors import BadInputError

PIECE = 1 << 20


def file_digest(path: str | Path) -> str:
    """SHA-256 of the bytes of a file."""
    digest = hashlib.sha256()
    with Path(path).open("rb") as file:
        while piece := file.read(PIECE):
            digest.update(piece)
    return digest.hexdigest()


def folder_digest(files: Mapping[str, str]) -> str:
    """SHA-256 over the names and digests of the files of a folder, in the order of their names."""
    lines = "".join(f"{files[name]}  {name}\n" for name in sorted(files))
    return hashlib.sha256(lines.encode("utf-8")).hexdigest()


def output_digest(path: str | Path) -> str:
    """The digest of an output: a file, or a folder with all files in it."""
    place = Path(path)
    try:
        if place.is_dir():
            files = [file for file in place.rglob("*") if file.is_file()]
            return folder_digest({file.relative_to(place).as_posix(): file_digest(file) for file in files})
        return file_digest(place)
    except OSError as error:
        raise BadInputError(
            "unreadable-file",
            "'{path}' cannot be read ({error}): check the name",
            path=place,
            error=type(error).__name__,
        ) from error
