"""`word_cost`: what a word mechanism costs in processor seconds, for the first words of a data set.

Public data are loaded beforehand and not counted. Each of `rounds` rounds draws all words anew and releases nothing.

    seconds           of the whole mechanism
    noise seconds     of the noise on the vectors alone (mechanisms that add some)
    mapping seconds   of the search for the words nearest to the noisy vectors
    map seconds       of the bounding map, applied to the vector of each word

Times are measurements, as those of the kind `cost`: the intervals say how they differ between equal rounds.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import Field

from tacit.errors import BadInputError
from tacit.evaluation.scores import t_interval
from tacit.experiments.inputs import check_part, check_texts, data_in
from tacit.experiments.raw import read_json, read_part, write_json
from tacit.experiments.steps import Input, Kind, PlannedCell, Progress
from tacit.experiments.steps.rewrite import Rewrite, content, meaning, prepare
from tacit.experiments.steps.rewrite import check as check_mechanism
from tacit.noise.source import new_source
from tacit.text.lexicon import Lexicon
from tacit.text.tokens import split
from tacit.words.base import WordMechanism
from tacit.words.multivariate_laplace import MultivariateLaplace
from tacit.words.noisy import NoisyWords


class WordCost(Rewrite):
    part: str = "train"
    words: int = Field(default=20_000, ge=1)
    rounds: int = Field(default=5, ge=2)


def run(parameters: WordCost, inputs: Mapping[str, Path], folder: Path, progress: Progress) -> None:
    mechanism: Any = parameters.build()
    prepare(mechanism)
    words = [word for text in read_part(inputs["data"], parameters.part).joined for word in split(text)]
    ids = np.array(Lexicon(mechanism.table.words).ids(words[: parameters.words]), dtype=np.int64)
    source = new_source(None)
    measured = {"seconds": _rounds(parameters.rounds, lambda: mechanism.draw(ids, source))}
    if isinstance(mechanism, NoisyWords):
        noisy = mechanism.noisy_vectors(ids, source).astype(np.float32)
        measured["noise seconds"] = _rounds(parameters.rounds, lambda: mechanism.noisy_vectors(ids, source))
        measured["mapping seconds"] = _rounds(parameters.rounds, lambda: mechanism.search.nearest(noisy))
    if isinstance(mechanism, MultivariateLaplace):
        fitted, vectors = mechanism.bounding_map, np.asarray(mechanism.table.vectors)[ids]
        measured["map seconds"] = _rounds(parameters.rounds, lambda: fitted.transform(vectors))
    write_json(folder / "seconds.json", measured)
    progress(1, 1)


def _rounds(rounds: int, work: Callable[[], object]) -> list[float]:
    """Processor seconds of each round after one that is not counted."""
    seconds = []
    for _ in range(rounds + 1):
        start = time.process_time()
        work()
        seconds.append(time.process_time() - start)
    return seconds[1:]


def score(folder: Path) -> dict[str, float]:
    numbers: dict[str, float] = {}
    for name, seconds in read_json(folder / "seconds.json").items():
        numbers |= t_interval(seconds).named(name)
    return numbers


def check(parameters: WordCost, inputs: frozenset[str] = frozenset()) -> None:
    check_mechanism(parameters, inputs)
    if not isinstance(parameters.build(), WordMechanism):
        raise BadInputError(
            "no-word-mechanism-to-time",
            "'{mechanism}' is no word mechanism: its words cannot be drawn one by one",
            mechanism=parameters.mechanism,
        )


def fits(parameters: WordCost, inputs: Mapping[str, PlannedCell]) -> None:
    check_texts(data_in(inputs))
    check_part(data_in(inputs), parameters.part, "part")


KIND = Kind(
    "word_cost", 1, WordCost, run, score, {"data": Input(("data",))}, check, content, meaning,
    measures=("seconds", "noise seconds", "mapping seconds", "map seconds"), fits=fits,
)  # fmt: skip
