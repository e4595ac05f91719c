"""Where all-MiniLM-L6-v2 lies: a public model (Apache-2.0) that comes in a package, so that no network is needed.

Its input vectors are word vectors, its last layer encodes sentences, and it is the usual start of a training run.
"""

from __future__ import annotations

from pathlib import Path

from tacit.errors import package_folder
from tacit.needs import MINILM_INSTALL, MINILM_PACKAGE

__all__ = ["MINILM_INSTALL", "MINILM_PACKAGE", "minilm_folder"]


def minilm_folder(what: str = "the model 'minilm' comes") -> Path:
    """The files of the model inside their package, which is not imported."""
    return package_folder(MINILM_PACKAGE, what, MINILM_INSTALL) / "model"
