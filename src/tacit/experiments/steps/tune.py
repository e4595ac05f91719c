"""`tune`: fine-tune a model on released texts and their labels, and test it on released texts (Yue et al. 2021).

What is learned from a release is post-processing: no noise is added, and the model promises what the card of the texts
promises. Labels are released as they are. Without an input `texts` the originals are read: the ceiling, which promises
nothing. The input `model` starts from a step of the kind `sanitized`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Literal

from pydantic import Field

from tacit.card import Card
from tacit.errors import BadInputError, require
from tacit.experiments.config import Parameters
from tacit.experiments.inputs import data_in
from tacit.experiments.raw import Rows, read_part, read_released, write_json
from tacit.experiments.steps import OF_CLASSES, OF_THE_CARD, Input, Kind, PlannedCell, Progress
from tacit.experiments.steps.rewrite import check_released
from tacit.experiments.steps.sanitized import MODEL
from tacit.experiments.task_rows import check_rows, task_of, task_rows
from tacit.experiments.task_scores import score
from tacit.experiments.training import carry_out, check_network, training_config, write_predictions
from tacit.guarantee import Guarantee
from tacit.training.start import check_strategy


class Tune(Parameters):
    """network: "minilm", a hub name or a folder, unless the input `model` gives one."""

    network: str = "minilm"
    strategy: str = "full"
    epochs: float = Field(default=3.0, gt=0)
    batch: int = Field(default=64, ge=1)
    learning_rate: float = Field(default=5e-4, gt=0)
    length: int = Field(default=48, ge=4)
    test_on: Literal["released", "original"] = "released"
    train: str = "train"
    test: str = "test"
    seed: int = 1


def run(parameters: Tune, inputs: Mapping[str, Path], folder: Path, progress: Progress) -> None:
    data, texts = inputs["data"], inputs.get("texts")
    name = task_of(data)
    _refuse_tags(name)
    train = _shown(data, texts, parameters.train)
    test = _shown(data, texts if parameters.test_on == "released" else None, parameters.test)
    rows, tested = task_rows(name, train, test, parameters.seed)
    of_experiment = "model" in inputs
    config = training_config(
        name, rows, folder, model=str(inputs["model"] / MODEL) if of_experiment else parameters.network,
        strategy=parameters.strategy, epsilon=math.inf, epochs=parameters.epochs, batch=parameters.batch,
        physical=parameters.batch, learning_rate=parameters.learning_rate, length=parameters.length,
        seed=parameters.seed,
    )  # fmt: skip
    released = _promise(texts)
    name_of_model = "a model of this experiment" if of_experiment else None
    promise = carry_out(config, folder, progress, released=released, model_name=name_of_model)
    write_predictions(name, rows, tested, folder, parameters.strategy)
    if released is not None:
        write_json(folder / "card.json", Card(promise).to_dict())


def _shown(data: Path, texts: Path | None, part: str) -> Rows:
    rows = read_part(data, part)
    return rows if texts is None else replace(rows, texts=read_released(texts, part))


def _promise(texts: Path | None) -> Guarantee | None:
    """That of the released texts; a copy of the originals has none."""
    if texts is None or not (texts / "card.json").is_file():
        return None
    return Card.of_file(texts / "card.json").guarantee


def check(parameters: Tune, inputs: frozenset[str] = frozenset()) -> None:
    check_strategy(parameters.strategy)
    require("torch", extra="training", purpose="training a model")
    if "model" not in inputs:
        check_network(parameters.network)


def _refuse_tags(task: str | None) -> None:
    if task == "tagging":
        raise BadInputError(
            "tags-do-not-fit", "a release need not keep the number of words, so tags do not fit: take texts or pairs"
        )


def fits(parameters: Tune, inputs: Mapping[str, PlannedCell]) -> None:
    data = data_in(inputs)
    _refuse_tags(data.task)
    check_rows(data, data.task, parameters.train, parameters.test)
    if "texts" in inputs:
        check_released(inputs["texts"], parameters.train, "train")
        if parameters.test_on == "released":
            check_released(inputs["texts"], parameters.test, "test")


KIND = Kind(
    "tune", 3, Tune, run, score,
    {"data": Input(("data",)), "texts": Input(("rewrite",), required=False),
     "model": Input(("sanitized",), required=False)}, check,
    measures=("accuracy", "macro-F1", "collapsed"), fits=fits,
    further=(*OF_CLASSES, *OF_THE_CARD),
)  # fmt: skip
