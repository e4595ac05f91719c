"""`overlap`: are the nodes that a private network gets wrong the hard ones? (Igamberdiev 2023, section 3.6)

    overlap = |errors of the setting and of the full network without privacy| / |errors of the full network|

Both have been tested on the same nodes. A setting that errs at random would have its own error rate as overlap: that is
the floor, and "beyond chance" is what lies above it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tacit.errors import BadInputError
from tacit.evaluation.scores import bootstrap_interval
from tacit.experiments.config import Parameters
from tacit.experiments.raw import read_json, read_lines, write_json
from tacit.experiments.steps import Input, Kind, Progress
from tacit.experiments.steps.downstream import RESAMPLES, with_interval


class Overlap(Parameters):
    """Nothing to choose: `setting` and `full` name the two graph steps."""


def run(parameters: Overlap, inputs: Mapping[str, Path], folder: Path, progress: Progress) -> None:
    wrong = {
        name: {row["node"]: row["true"] != row["predicted"] for row in read_lines(inputs[name] / "predictions.jsonl")}
        for name in ("setting", "full")
    }
    if wrong["setting"].keys() != wrong["full"].keys():
        raise BadInputError(
            "other-test-nodes",
            "the two were tested on different nodes: give both the same 'nodes', data and seed",
        )
    nodes = sorted(wrong["full"])
    write_json(folder / "wrong.json", {name: [int(wrong[name][node]) for node in nodes] for name in wrong})


def score(folder: Path) -> dict[str, float]:
    wrong = read_json(folder / "wrong.json")
    setting, full = (np.array(wrong[name], dtype=bool) for name in ("setting", "full"))
    if not full.any():
        return {"hard cases": 0.0}
    on_hard = setting[full].astype(np.float64)
    interval = bootstrap_interval(lambda at: float(on_hard[at].mean()), len(on_hard), resamples=RESAMPLES)
    beyond = bootstrap_interval(lambda at: beyond_chance(setting[at], full[at]), len(full), resamples=RESAMPLES)
    return {**with_interval("overlap", interval, float(setting.mean())), **beyond.named("beyond chance"),
            "hard cases": float(full.sum())}  # fmt: skip


def beyond_chance(setting: NDArray[np.bool_], full: NDArray[np.bool_]) -> float:
    """How much more often the setting errs on the hard nodes than on all; nothing where no node is hard."""
    return float(setting[full].mean() - setting.mean()) if full.any() else 0.0


KIND = Kind(
    "overlap", 1, Overlap, run, score, {"setting": Input(("graph",)), "full": Input(("graph",))},
    measures=("overlap", "beyond chance", "hard cases"),
)  # fmt: skip
