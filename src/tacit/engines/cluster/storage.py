"""Folders on this machine or anywhere fsspec reaches (s3://, gs://, abfs://, sftp:// ...).

A file gets its name when it is complete, or not at all: on this machine by a rename, in an object store because an
object appears when its upload is finished. Errors say which place failed and with what kind of error, nothing else.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, TypeVar

from tacit.atomic import sync, write_file
from tacit.errors import BadInputError, TacitError, require
from tacit.noise.kept_key import erase
from tacit.text.digest import file_digest
from tacit.text.files.partial import OutputError, storage_error

LOCAL: Final = ("file://", "local://")
Result = TypeVar("Result")


def local_path(url: str) -> Path | None:
    """The path on this machine that a place stands for, if it is one."""
    for prefix in LOCAL:
        if url.startswith(prefix):
            return Path(url.removeprefix(prefix)).absolute()
    return None if "://" in url else Path(url).absolute()


def remote_system(url: str) -> tuple[Any, str]:
    """The fsspec file system of a place, and its path in it."""
    protocol = url.partition("://")[0]
    if protocol == "memory":
        raise BadInputError(
            "store-of-one-process",
            "'{url}' lives in the memory of one process, where the workers of a cluster cannot see it: use a folder "
            "or a store that all of them reach",
            url=url,
        )
    fsspec = require("fsspec", extra="ray", purpose=f"reading {protocol}://")
    try:
        system, path = fsspec.core.url_to_fs(url)
    except ImportError as error:
        raise BadInputError(
            "missing-library", "'{url}' needs one more library on every machine: {reason}", url=url, reason=str(error)
        ) from None
    except ValueError:
        raise BadInputError(
            "unknown-protocol",
            "'{url}' begins with '{protocol}://', which fsspec does not know: check the path",
            url=url,
            protocol=protocol,
        ) from None
    except Exception as error:
        raise _unreachable(url, error) from error
    return system, str(path)


def _unreachable(url: str, error: BaseException) -> BadInputError:
    return BadInputError(
        "not-reached",
        "'{url}' cannot be reached ({error}): check the path, the network and the access",
        url=url,
        error=type(error).__name__,
    )


class Folder:
    """One folder. Names are those of files directly in it."""

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/") or "/"
        self.path = local_path(self.url)

    def __truediv__(self, name: str) -> Folder:
        return Folder(f"{self.url}/{name}")

    def make(self, *, secret: bool = False) -> None:
        if self.path is None:
            return  # object stores have no folders, other systems make them with the first file
        try:
            self.path.mkdir(mode=0o700 if secret else 0o777, parents=False, exist_ok=True)
        except OSError as error:
            raise storage_error(error, self.path) from error

    def exists(self) -> bool:
        return (
            self.path.exists() if self.path is not None else self._call(lambda system, path: bool(system.exists(path)))
        )

    def holds(self, name: str) -> bool:
        return (self / name).exists()

    def sizes(self) -> dict[str, int]:
        """The files in the folder, whole ones only, with their sizes."""
        if self.path is not None:
            if not self.path.is_dir():
                return {}
            return {entry.name: entry.stat().st_size for entry in os.scandir(self.path) if _is_whole(entry.name)}
        sizes = self._call(_listed)
        return {name: size for name, size in sizes.items() if _is_whole(name)}

    def read(self, name: str) -> bytes:
        if self.path is not None:
            return (self.path / name).read_bytes()
        return bytes((self / name)._call(lambda system, path: system.cat_file(path)))

    def digest(self, name: str) -> str:
        """SHA-256 of a file."""
        if self.path is not None:
            return file_digest(self.path / name)
        return hashlib.sha256(self.read(name)).hexdigest()

    def write(self, name: str, data: bytes, *, secret: bool = False) -> None:
        """A small file, whole or not at all."""
        if self.path is None:
            (self / name)._call(lambda system, path: system.pipe_file(path, data))
            return
        try:
            write_file(self.path / name, data, private=secret, shared=True)
        except OSError as error:
            raise storage_error(error, self.path / name) from error

    def take(self, file: Path, name: str) -> None:
        """Give a finished file of this machine its name here."""
        if self.path is None:
            (self / name)._call(lambda system, path: system.put_file(str(file), path))
            return
        try:
            sync(file)
            file.replace(self.path / name)
        except OSError as error:
            raise storage_error(error, self.path / name) from error

    def remove(self, name: str) -> None:
        if self.path is not None:
            (self.path / name).unlink(missing_ok=True)
            return
        (self / name)._call(lambda system, path: system.exists(path) and system.rm_file(path))

    def erase(self, name: str) -> None:
        """Remove a file that holds a secret; on this machine its bytes are overwritten first."""
        if self.path is None:
            self.remove(name)
            return
        with contextlib.suppress(OSError):  # in a folder of somebody else, which is refused when it is to be used
            erase(self.path / name)

    def remove_all(self) -> None:
        """The folder with everything in it."""
        if self.path is not None:
            shutil.rmtree(self.path, ignore_errors=True)
            return
        self._call(lambda system, path: system.exists(path) and system.rm(path, recursive=True))

    def move_to(self, other: Folder) -> None:
        """Rename the folder: at once on this machine, file by file elsewhere (repeating it continues)."""
        if self.path is not None and other.path is not None:
            try:
                self.path.rename(other.path)
                sync(other.path.parent)
            except OSError as error:
                raise storage_error(error, other.path) from error
            return
        for name in self.sizes():
            self.give(name, other / name)

    def give(self, name: str, other: Folder) -> None:
        """One file of this folder gets the name `other`."""
        if self.path is not None and other.path is not None:
            try:
                (self.path / name).replace(other.path)
                sync(other.path.parent)
            except OSError as error:
                raise storage_error(error, other.path) from error
            return
        (self / name)._call(lambda system, path: system.mv(path, other._place(), recursive=False))

    def _place(self) -> str:
        return remote_system(self.url)[1]

    def _call(self, operation: Callable[..., Result]) -> Result:
        system, path = remote_system(self.url)
        try:
            return operation(system, path)
        except TacitError:
            raise
        except Exception as error:
            raise OutputError.of(_unreachable(self.url, error)) from error


@contextlib.contextmanager
def scratch(folder: Folder) -> Iterator[Path]:
    """A private place on this machine for a file that is being made: in `folder`, if that is here."""
    place = Path(tempfile.mkdtemp(prefix="tacit-", dir=folder.path))
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _listed(system: Any, path: str) -> dict[str, int]:
    system.invalidate_cache()
    try:
        entries = system.ls(path, detail=True)
    except FileNotFoundError:
        return {}
    return {
        str(entry["name"]).rpartition("/")[2]: int(entry["size"] or 0) for entry in entries if entry["type"] == "file"
    }


def _is_whole(name: str) -> bool:
    return not name.startswith(".")
