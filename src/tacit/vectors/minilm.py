"""Where all-MiniLM-L6-v2 lies: a public model (Apache-2.0) that comes in a package, so that no network is needed.

Its input vectors are word vectors, its last layer encodes sentences, and it is the usual start of a training run.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

from tacit.errors import MissingExtraError
from tacit.needs import MINILM_INSTALL, MINILM_PACKAGE

__all__ = ["MINILM_INSTALL", "MINILM_PACKAGE", "minilm_folder"]


def minilm_folder(what: str = "the model 'minilm' comes") -> Path:
    """The files of the model inside their package, which is not imported."""
    package = importlib.util.find_spec(MINILM_PACKAGE)
    if package is None or not package.submodule_search_locations:
        raise MissingExtraError(
            "package-not-installed",
            "{what} in a package that is not installed: {install}",
            what=what,
            install=MINILM_INSTALL,
        )
    return Path(package.submodule_search_locations[0]) / "model"
