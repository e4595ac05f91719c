"""A file system that only fsspec knows: the files of this machine under bucket://, so that several processes see it."""

from __future__ import annotations

from pathlib import Path

import pytest

fsspec = pytest.importorskip("fsspec")
local = pytest.importorskip("fsspec.implementations.local")


class BucketFileSystem(local.LocalFileSystem):  # type: ignore[misc, name-defined]
    protocol = "bucket"
    local_file = False

    def __init__(self, **options: object) -> None:
        super().__init__(auto_mkdir=True, **options)

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return "/" + str(path).removeprefix("bucket://").strip("/")

    def unstrip_protocol(self, name: str) -> str:
        return "bucket://" + self._strip_protocol(name)


fsspec.register_implementation("bucket", BucketFileSystem, clobber=True)


def bucket_url(path: str | Path) -> str:
    return f"bucket://{path}"
