"""`cost`: what a step of training costs with and without privacy, in processor seconds (Igamberdiev 2023, table 4.13).

With `memory` also in megabytes of tensors: the most at one time after the first step, of weights, states of the
optimizer and what a step keeps.

Two short trainings of one strategy on the same rows, one with DP-SGD and one without, with batches of one size: `steps`
steps are timed in each, after one that is not. An epoch has the same number of steps in both, so the ratio of two steps
is that of two epochs. What frozen layers say is computed once, before the first step, and is not in it.

Times are measurements: equal steps differ in them, and the intervals say by how much. A finished cell is never measured
again, but a cell that was killed and is run again has other numbers than an undisturbed one would have had.

`shape` times a network of the shape of BERT-base or of GPT-2 with random weights in place of `model`: what a step costs
does not depend on what the weights know.
"""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final, Literal

import numpy as np
from pydantic import Field

from tacit.errors import require
from tacit.evaluation.scores import Interval, t_interval
from tacit.experiments.config import Parameters
from tacit.experiments.inputs import data_in
from tacit.experiments.raw import read_json, read_part, write_json
from tacit.experiments.steps import RUN_FOLDER, Input, Kind, PlannedCell, Progress
from tacit.experiments.task_rows import TaskName, check_rows, task_of, task_rows
from tacit.experiments.training import check_network, seconds_of_steps, training_config
from tacit.jobs.train import TrainConfig
from tacit.training.start import check_strategy

SHAPES: Final[dict[str, tuple[str, str, dict[str, int]]]] = {
    "bert-base": (
        "BertConfig",
        "BertModel",
        {"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 3072},
    ),
    "gpt2": ("GPT2Config", "GPT2Model", {"n_embd": 768, "n_layer": 12, "n_head": 12}),
}
EPSILON = 1.0
"""Whatever it is, a step costs the same; a small one needs less of the accountant."""


class TimedSteps(Parameters):
    """The network, its trained part and the batches whose `steps` are timed, with privacy and without."""

    model: str = "minilm"
    shape: Literal["", "bert-base", "gpt2"] = ""
    strategy: str = "no-embeddings"
    task: TaskName | None = None
    batch: int = Field(default=32, ge=1)
    steps: int = Field(default=6, ge=2)
    memory: bool = False
    length: int = Field(default=64, ge=4)
    train: str = "train"
    seed: int = 1


def run(parameters: TimedSteps, inputs: Mapping[str, Path], folder: Path, progress: Progress) -> None:
    from tacit.experiments.tensor_memory import most_megabytes

    name = parameters.task or task_of(inputs["data"])
    part = read_part(inputs["data"], parameters.train)
    rows, _ = task_rows(name, part, part, parameters.seed)
    work = folder / RUN_FOLDER
    model = parameters.model if not parameters.shape else random_model(work / "shape", parameters.shape)
    seconds: dict[str, list[float]] = {}
    megabytes: dict[str, float] = {}

    def fresh(config: TrainConfig, name: str) -> TrainConfig:
        # With what a training that was killed left beside its folder.
        shutil.rmtree(work / name, ignore_errors=True)
        return config.model_copy(update={"output": work / name / "training"})

    for label, epsilon in (("private", EPSILON), ("plain", math.inf)):
        config = training_config(
            name, rows, folder, model=model, strategy=parameters.strategy, epsilon=epsilon, delta="auto",
            epochs=(parameters.steps + 1) * parameters.batch / len(rows), batch=parameters.batch, optimizer="adamw",
            learning_rate=1e-4, bound=1.0, length=parameters.length, start_seed=parameters.seed,
        )  # fmt: skip
        seconds[label] = seconds_of_steps(fresh(config, label))
        if parameters.memory:
            megabytes[label] = most_megabytes(partial(seconds_of_steps, fresh(config, f"{label}-memory")))
        progress(len(seconds), 2)
    write_json(folder / "seconds.json", seconds)
    write_json(folder / "megabytes.json", megabytes)


def random_model(folder: Path, shape: str) -> str:
    """A folder with a network of this shape and random weights, which reads the word pieces of MiniLM."""
    transformers = require("transformers", extra="documents", purpose="a network of that shape")
    from tacit.training.models import model_folder

    shutil.rmtree(folder, ignore_errors=True)
    pieces = Path(model_folder("minilm"))
    known = json.loads((pieces / "config.json").read_text(encoding="utf-8"))
    config_name, model_name, sizes = SHAPES[shape]
    config = getattr(transformers, config_name)(
        vocab_size=known["vocab_size"], pad_token_id=known.get("pad_token_id", 0), **sizes
    )
    getattr(transformers, model_name)(config).save_pretrained(folder)
    for file in pieces.iterdir():
        if file.is_file() and ("token" in file.name or file.name in ("vocab.txt", "special_tokens_map.json")):
            shutil.copyfile(file, folder / file.name)
    return str(folder)


def score(folder: Path) -> dict[str, float]:
    seconds = read_json(folder / "seconds.json")
    private, plain = seconds["private"], seconds["plain"]
    megabytes = read_json(folder / "megabytes.json")
    memory = {f"{label} megabytes": float(most) for label, most in megabytes.items()}
    if megabytes:
        memory["memory ratio"] = megabytes["private"] / megabytes["plain"]
    return {
        **ratio_of_means(private, plain).named("ratio"),
        **t_interval(private).named("private seconds"),
        **t_interval(plain).named("plain seconds"),
        **memory,
    }


def ratio_of_means(above: Sequence[float], below: Sequence[float]) -> Interval:
    """The ratio of two means, with a 95 % interval from the relative errors of both (of its logarithm)."""
    value = float(np.mean(above) / np.mean(below))
    relative = [(t_interval(list(x)).high - np.mean(x)) / np.mean(x) for x in (above, below)]
    reach = math.hypot(*relative)
    return Interval(value, value * math.exp(-reach), value * math.exp(reach), min(len(above), len(below)))


def check(parameters: TimedSteps, inputs: frozenset[str] = frozenset()) -> None:
    check_strategy(parameters.strategy)
    require("torch", extra="training", purpose="training a model")
    require("dp_accounting", extra="accounting", purpose="accounting for DP-SGD")
    if not parameters.shape:
        check_network(parameters.model)


def fits(parameters: TimedSteps, inputs: Mapping[str, PlannedCell]) -> None:
    data = data_in(inputs)
    check_rows(data, parameters.task or data.task, parameters.train, "test")


KIND = Kind(
    "cost", 2, TimedSteps, run, score, {"data": Input(("data",))}, check,
    measures=("ratio", "private seconds", "plain seconds", "memory ratio"), fits=fits,
    further=("private megabytes", "plain megabytes"),
)  # fmt: skip
