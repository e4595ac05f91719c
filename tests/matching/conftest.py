"""A pool of a few thousand public sentences in a file, for tests of commands that draw from one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tacit.matching.pool import PoolSource, load_pool, write_pool


@pytest.fixture(scope="session")
def small_pool(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every thirtieth sentence of the general pool, and all that speak of rain and songs."""
    sentences = load_pool().sentences
    chosen = [
        sentence
        for place, sentence in enumerate(sentences)
        if place % 30 == 0 or any(word in sentence for word in (" rain", " song", "snow", "music"))
    ]
    path = tmp_path_factory.mktemp("pool") / "small.tacit"
    write_pool(path, "small", [PoolSource("Tatoeba", "CC BY 2.0 FR")], ((sentence, 0, "") for sentence in chosen))
    return path
