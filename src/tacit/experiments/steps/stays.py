"""`stays`: which words come back as they are, when noise is mapped to the words nearest to it (Xu et al. 2021b).

Public words are drawn again and again, without any text; a word is rare if it stands in the rarer half of the
vocabulary, and alone if its nearest neighbor is farther away than that of the median word looked at.

    stays           share of the draws in which a word comes back, with a 95 % interval over words
    stays, alone    the same of the words that are rare and stand alone
    stays, others   the same of all others
    together        Spearman's correlation of a word's share with the distance of its nearest neighbor
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from pydantic import Field

from tacit.errors import BadInputError
from tacit.evaluation.deniability import deniability
from tacit.evaluation.scores import t_interval
from tacit.experiments.chance import rank_correlation
from tacit.experiments.raw import read_lines, write_lines
from tacit.experiments.steps import Kind, Progress
from tacit.experiments.steps.rewrite import Rewrite, content, meaning
from tacit.experiments.steps.rewrite import check as check_mechanism
from tacit.text.lexicon import Lexicon
from tacit.words.noisy import NoisyWords


class Stays(Rewrite):
    words: int = Field(default=400, ge=8)
    runs: int = Field(default=100, ge=1)


def run(parameters: Stays, inputs: Mapping[str, Path], folder: Path, progress: Progress) -> None:
    mechanism = parameters.build()
    assert isinstance(mechanism, NoisyWords)  # `check` lets nothing else pass
    measured = deniability(mechanism, words=parameters.words, runs=parameters.runs, seed=parameters.seed)
    ids = np.array([Lexicon(mechanism.table.words).ids([word])[0] for word in measured.words], dtype=np.int64)
    _, distances = mechanism.search.nearest_words_of(ids, 2)
    rows = zip(measured.words, measured.stays, ids / len(mechanism.table), distances[:, 1], strict=True)
    names = ("word", "stays", "rank", "distance")
    write_lines(
        folder / "words.jsonl",
        (dict(zip(names, (row[0], *map(float, row[1:])), strict=True)) for row in rows),
    )
    progress(1, 1)


def score(folder: Path) -> dict[str, float]:
    rows = list(read_lines(folder / "words.jsonl"))
    share, rank, distance = (np.array([row[name] for row in rows]) for name in ("stays", "rank", "distance"))
    alone = (rank >= 0.5) & (distance > np.median(distance))
    numbers = t_interval(share.tolist()).named("stays")
    for name, which in (("alone", alone), ("others", ~alone)):
        if which.any():
            numbers |= t_interval(share[which].tolist()).named(f"stays, {name}")
    return numbers | {"together": rank_correlation(share.tolist(), distance.tolist())}


def check(parameters: Stays, inputs: frozenset[str] = frozenset()) -> None:
    check_mechanism(parameters, inputs)
    if not isinstance(parameters.build(), NoisyWords):
        raise BadInputError(
            "no-noise-on-vectors",
            "'{mechanism}' adds no noise to word vectors: which words come back is asked of one that does",
            mechanism=parameters.mechanism,
        )


KIND = Kind(
    "stays", 1, Stays, run, score, {}, check, content, meaning,
    measures=("stays", "stays, alone", "stays, others", "together"),
)  # fmt: skip
