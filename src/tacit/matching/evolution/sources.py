"""The pool of evolved sentences: each names the public sentences that it was made from, and who or what made it."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np

from tacit.matching.evolution.variations import FILLED, WRITTEN, Candidate
from tacit.matching.pool import PoolSource, SentencePool

NAME = "evolved"
FRAMES_SOURCE = PoolSource("sentence frames of Tacit, filled in with public words", "CC0 1.0")


def evolved_sources(
    pools: Sequence[SentencePool], kept: Sequence[Candidate], writer: str | None, key: str
) -> SentencePool:
    """The kept sentences as a pool with the sources and credits of what they were made from."""
    ends = np.cumsum([0, *map(len, pools)])
    sources: dict[PoolSource, int] = {}
    numbers, credits = [], []
    for candidate in kept:
        source, credit = _source_of(candidate, pools, ends.tolist(), writer)
        numbers.append(sources.setdefault(source, len(sources)))
        credits.append(credit)
    digest = hashlib.sha256("\n".join([key, *(each.text for each in kept)]).encode("utf-8")).hexdigest()[:32]
    return SentencePool(
        NAME, [each.text for each in kept], tuple(sources), np.array(numbers, dtype=np.int64), credits, digest
    )


def _source_of(
    candidate: Candidate, pools: Sequence[SentencePool], ends: Sequence[int], writer: str | None
) -> tuple[PoolSource, str]:
    """The source of an evolved sentence, and the credit of all that it was made from."""
    if candidate.way == FILLED:
        return FRAMES_SOURCE, ""
    origins: list[tuple[PoolSource, str]] = []
    for place in candidate.origins:
        number = int(np.searchsorted(ends, place, side="right")) - 1
        pool = pools[number]
        origins.append((pool.source_of(place - ends[number]), pool.credits[place - ends[number]]))
    before = list(dict.fromkeys(source for source, _ in origins))
    if not before:
        made = f"written by {writer}" if candidate.way == WRITTEN and writer else "sentence frames of Tacit, changed"
        return PoolSource(made, FRAMES_SOURCE.license), ""
    how = f"written by {writer} after" if candidate.way == WRITTEN and writer else "changed by Tacit from"
    source = PoolSource(
        f"{how}: " + "; ".join(each.name for each in before),
        "; ".join(dict.fromkeys(each.license for each in before)),
        " ".join(dict.fromkeys(each.attribution for each in before if each.attribution)),
        any(each.declared for each in before),
    )
    return source, "; ".join(dict.fromkeys(credit for _, credit in origins if credit))
