from __future__ import annotations

import os
from pathlib import Path

import pytest

from tacit.vectors import VectorTable, load_vectors

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def shared_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def _own_cache(shared_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TACIT_CACHE", str(shared_cache))


@pytest.fixture
def default_table() -> VectorTable:
    return load_vectors("default")


@pytest.fixture
def glove_subset() -> Path:
    folder = Path(os.environ.get("TACIT_DATA", REPOSITORY.parent / "shared" / "data")) / "glove-subset"
    if not folder.is_dir():
        pytest.skip("the GloVe subset is not here: set TACIT_DATA to the folder that holds glove-subset")
    return folder
