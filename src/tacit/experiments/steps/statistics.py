"""`statistics`: what a word mechanism does to single words, without any text (Yue et al. 2021, figure 5).

    N_x     probability that a word stays as it is          S_x    number of different outputs in `runs` runs
    S*_y    number of different inputs that give one output

Exact sums where the law of the mechanism is known, counts of a simulation elsewhere (`tacit.evaluation.deniability`).
The scores are means and medians over the same public choice of words, with 95 % intervals over them.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from pydantic import Field

from tacit.catalog import find
from tacit.errors import BadInputError
from tacit.evaluation.deniability import deniability
from tacit.evaluation.scores import bootstrap_intervals, t_interval
from tacit.experiments.raw import read_json, read_lines, write_json, write_lines
from tacit.experiments.steps import Kind, Progress
from tacit.experiments.steps.downstream import RESAMPLES
from tacit.experiments.steps.rewrite import NONE, Rewrite, content, meaning
from tacit.experiments.steps.rewrite import check as check_mechanism


class Statistics(Rewrite):
    words: int = Field(default=200, ge=2)
    runs: int = Field(default=1000, ge=1)


def run(parameters: Statistics, inputs: Mapping[str, Path], folder: Path, progress: Progress) -> None:
    # The simulation tells something about a public law and releases no text, so its seed may be public.
    measured = deniability(parameters.build(), words=parameters.words, runs=parameters.runs, seed=parameters.seed)
    rows = zip(
        measured.words,
        measured.stays,
        measured.outputs,
        measured.inputs,
        measured.effective,
        measured.entropy,
        strict=True,
    )
    names = ("word", "N", "S", "S*", "effective", "bits")
    write_lines(folder / "words.jsonl", (dict(zip(names, row, strict=True)) for row in rows))
    write_json(folder / "about.json", {"exact": measured.exact, "runs": measured.runs})


def score(folder: Path) -> dict[str, float]:
    rows = list(read_lines(folder / "words.jsonl"))
    result: dict[str, float] = {"exact": float(read_json(folder / "about.json")["exact"])}
    shown = {"N": "word stays", "S": "outputs of a word", "S*": "inputs of a word", "effective": "effective outputs",
             "bits": "bits of an output"}  # fmt: skip
    for key, name in shown.items():
        result |= t_interval([float(row[key]) for row in rows]).named(name)
    table = np.array([[float(row[key]) for key in shown] for row in rows])
    medians = bootstrap_intervals(lambda at: np.median(table[at], axis=0), len(rows), resamples=RESAMPLES)
    for name, interval in zip(shown.values(), medians, strict=True):
        result |= interval.named(f"median of {name}")
    return result


def check(parameters: Statistics, inputs: frozenset[str] = frozenset()) -> None:
    if parameters.mechanism == NONE or find(parameters.mechanism).level != "word":
        raise BadInputError(
            "no-word-mechanism",
            "'{mechanism}' is no word mechanism: statistics are about words",
            mechanism=parameters.mechanism,
        )
    check_mechanism(parameters, inputs)


KIND = Kind(
    "statistics",
    2,
    Statistics,
    run,
    score,
    {},
    check,
    content,
    meaning,
    measures=("word stays", "outputs of a word"),
    further=("exact", "median of *", "inputs of a word", "effective outputs", "bits of an output"),
)
