"""Fixtures that all rooms share: small vocabularies, the real vectors, a small public pool, the data sets."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import settings

from tacit.errors import MissingExtraError
from tacit.matching.pool import PoolSource, load_pool, write_pool
from tacit.vectors import VectorTable, load_vectors

ROOT = Path(__file__).parent.parent

# A loaded machine makes no failures: examples may take as long as they take.
settings.register_profile("without deadline", deadline=None)
settings.load_profile("without deadline")

# Whichever test imports Ray first: it stays on this machine (tacit.engines.cluster.session).
os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"


def small_table(words: int = 40, dimension: int = 2, seed: int = 0, scale: float = 1.0) -> VectorTable:
    rng = np.random.default_rng(seed)
    vectors = (scale * rng.standard_normal((words, dimension))).astype(np.float32)
    return VectorTable([f"w{i}" for i in range(words)], vectors, name="small", source="drawn for a test")


@pytest.fixture(scope="session", autouse=True)
def _private_cache(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Tests neither read nor fill the user's cache, nor the keys and anchors of his ledgers."""
    os.environ["TACIT_CACHE"] = str(tmp_path_factory.mktemp("cache"))
    os.environ["XDG_CONFIG_HOME"] = str(tmp_path_factory.mktemp("config"))


@pytest.fixture(autouse=True)
def _usual_umask() -> Iterator[None]:
    """A service that runs in this process makes files for its owner only; the next test has the mask of before."""
    before = os.umask(0o022)
    os.umask(before)
    yield
    os.umask(before)


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Debian's Chromium; one for all tests of a process, because two drivers in one process get in each other's way."""
    playwright = pytest.importorskip("playwright.sync_api", reason="pages are tested with playwright (pip)")
    chromium = shutil.which("chromium") or "/usr/bin/chromium"
    if not Path(chromium).is_file():
        pytest.skip("pages are tested in Debian's Chromium: apt-get install chromium")
    with playwright.sync_playwright() as running:
        launched = running.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        yield launched
        launched.close()


@pytest.fixture(scope="session")
def default_table() -> VectorTable:
    try:
        return load_vectors("default")
    except MissingExtraError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def data_folder() -> Path:
    folder = Path(os.environ.get("TACIT_DATA", ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"the data sets are not at {folder}; set TACIT_DATA to their folder")
    return folder


@pytest.fixture(scope="session")
def small_pool(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A pool for tests of what is not about the pools: those that come with Tacit take ten seconds to read. Every
    thirtieth sentence of the general pool, and all that speak of rain and songs."""
    sentences = load_pool().sentences
    chosen = [
        sentence
        for place, sentence in enumerate(sentences)
        if place % 30 == 0 or any(word in sentence for word in (" rain", " song", "snow", "music"))
    ]
    path = tmp_path_factory.mktemp("pool") / "small.tacit"
    write_pool(path, "small", [PoolSource("Tatoeba", "CC BY 2.0 FR")], ((sentence, 0, "") for sentence in chosen))
    return path
