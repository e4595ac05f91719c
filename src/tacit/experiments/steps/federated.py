"""`federated`: a linear model of the texts of many authors, all texts of one author protected together.

    none       federated averaging without privacy
    sampled    DP-FedAvg: a Poisson sample of authors in each round, which amplifies the promise
    ordered    DP-FTRL (Kairouz et al. 2021): authors in a fixed order, no sampling, noise correlated over the rounds
               (`noise`: tree, banded or buffered)

A text is the mean of the public vectors of its words, centered and scaled by what public texts look like. One local
step on all rows of an author, flat clipping and a server with momentum: the arithmetic of `tacit federate`, all authors
of a round at once. Users, noise and multiplier come from its plans. Authors are divided by public randomness: the model
is tested on authors it has not seen.

accuracy has intervals over test texts. Only scores are kept, and no card is made: the model is thrown away.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import Field

from tacit.arrays import Floats
from tacit.errors import BadInputError, require
from tacit.evaluation.scores import mean_interval
from tacit.experiments.config import Parameters
from tacit.experiments.inputs import check_column, check_labeled, check_part, data_in
from tacit.experiments.raw import read_json, read_part, write_json
from tacit.experiments.steps import Input, Kind, PlannedCell, Progress
from tacit.experiments.steps.downstream import RESAMPLES, with_interval
from tacit.experiments.steps.rewrite import step_key
from tacit.experiments.steps.train import repetition_seed
from tacit.noise.source import public_generator
from tacit.text.tokens import split
from tacit.vectors import VectorTable, load_vectors

TRAINED = 0.8


class Federated(Parameters):
    """author     the column that names the author; `posts` of each are read, and who has fewer is left out
    cohort     authors in a round (expected, where they are drawn)
    rate       of the server; it falls to 0 until the end
    """

    method: Literal["none", "sampled", "ordered"]
    noise: Literal["tree", "banded", "buffered"] = "tree"
    epsilon: float = Field(default=math.inf, gt=0)
    author: str = "author"
    posts: int = Field(default=4, ge=1)
    cohort: int = Field(default=160, ge=1)
    passes: float = Field(default=10.0, gt=0)
    bound: float = Field(default=0.5, gt=0)
    momentum: float = Field(default=0.9, ge=0, lt=1)
    rate: float = Field(default=0.25, gt=0)
    vectors: str = "default"
    part: str = "train"
    seed: int = 1
    test_seed: int | None = None

    def plan(self, users: int) -> Any:
        """Who is visited when, and the multiplier of the noise."""
        from tacit.guarantee import Unit
        from tacit.training.federated import VisitPlan
        from tacit.training.plan import TrainingPlan

        if self.method == "none":
            return TrainingPlan.without_privacy(records=users, batch=self.cohort, epochs=self.passes)
        if self.method == "sampled":
            return TrainingPlan.calibrated(
                epsilon=self.epsilon, records=users, batch=self.cohort, epochs=self.passes, unit=Unit.USER
            )
        return VisitPlan.ordered(
            epsilon=self.epsilon, users=users, cohort=self.cohort, epochs=self.passes, noise=self.noise, bands=16,
            momentum=self.momentum,
        )  # fmt: skip


def run(parameters: Federated, inputs: Mapping[str, Path], folder: Path, progress: Progress) -> None:
    rows = read_part(inputs["data"], parameters.part)
    classes = sorted({str(label) for label in rows.labels})
    if len(classes) != 2:
        raise BadInputError(
            "not-two-classes",
            "a linear model with one output needs two labels, and there are {count}",
            count=len(classes),
        )
    places: dict[str, list[int]] = {}
    for place, columns in enumerate(rows.columns):
        places.setdefault(columns[parameters.author], []).append(place)
    authors = sorted(name for name, posts in places.items() if len(posts) >= parameters.posts)
    order = [authors[i] for i in public_generator(parameters.seed).permutation(len(authors))]
    table = load_vectors(parameters.vectors)
    public = means(table, read_part(inputs["public"], "train").joined)
    vectors = scaled(means(table, rows.joined), public)
    labels = np.array([classes.index(str(label)) for label in rows.labels], dtype=np.float64)

    def of(names: list[str]) -> tuple[Floats, Floats]:
        chosen = np.array([places[name][: parameters.posts] for name in names])
        return vectors[chosen], labels[chosen]

    cut = round(TRAINED * len(order))
    weights = trained(parameters, *of(order[:cut]), folder, progress)
    x, y = of(order[cut:])
    right = ((x @ weights > 0) == (y == 1)).reshape(-1).astype(np.float64)
    write_json(folder / "right.json", {"right": right.tolist(), "share": float(max(y.mean(), 1 - y.mean()))})


def trained(parameters: Federated, x: Floats, y: Floats, folder: Path, progress: Progress) -> Floats:
    """The weights after all rounds, from texts (authors, posts, numbers) and their labels."""
    from tacit.account.matrix import Toeplitz
    from tacit.training.correlated_noise import noise_stream

    plan = parameters.plan(len(x))
    key = step_key(folder, repetition_seed(parameters.test_seed, parameters.seed))
    weights = np.zeros(x.shape[2])
    noise = noise_stream(getattr(plan, "factorization", Toeplitz()), plan.steps, len(weights), key, b"updates")
    velocity = np.zeros_like(weights)
    for step in range(plan.steps):
        visited = plan.sample(step, key)
        guesses = 1.0 / (1.0 + np.exp(-(x[visited] @ weights)))
        updates = ((y[visited] - guesses)[:, :, None] * x[visited]).mean(axis=1)
        if plan.private:
            lengths = np.linalg.norm(updates, axis=1, keepdims=True)
            updates *= np.minimum(1.0, parameters.bound / np.maximum(lengths, 1e-30))
            mean = (updates.sum(axis=0) + plan.multiplier * parameters.bound * noise.at(step)) / plan.batch
        else:
            mean = updates.sum(axis=0) / max(1, len(visited))
        velocity = parameters.momentum * velocity + mean
        weights += parameters.rate * (1.0 - step / plan.steps) * velocity
        progress(step + 1, plan.steps)
    return weights


def means(table: VectorTable, texts: list[str]) -> Floats:
    """The mean of the unit vectors of the words of each text that have one; 0 where none has."""
    units = table.vectors / np.linalg.norm(table.vectors, axis=1, keepdims=True)
    place = {word: i for i, word in enumerate(table.words)}
    vectors = np.zeros((len(texts), units.shape[1]))
    for row, text in enumerate(texts):
        known = [place[word] for word in split(text.lower()) if word in place]
        if known:
            vectors[row] = units[known].mean(axis=0)
    return vectors


def scaled(vectors: Floats, public: Floats) -> Floats:
    """Centered and turned by what public texts look like, of length 1 for a typical one of them; with a constant."""
    values, directions = np.linalg.eigh(np.cov(public.T))
    turned = (vectors - public.mean(axis=0)) @ directions / np.sqrt(values + 0.05 * values.mean())
    turned /= math.sqrt(vectors.shape[1])
    return np.hstack([turned, np.ones((len(vectors), 1))])


def score(folder: Path) -> dict[str, float]:
    measured = read_json(folder / "right.json")
    interval = mean_interval(np.array(measured["right"]), resamples=RESAMPLES)
    return with_interval("accuracy", interval, float(measured["share"]))


def check(parameters: Federated, inputs: frozenset[str] = frozenset()) -> None:
    if (parameters.method == "none") != math.isinf(parameters.epsilon):
        raise BadInputError(
            "method-and-epsilon", "the method 'none' has no epsilon, and the other methods need one: change one of them"
        )
    require("dp_accounting", extra="accounting", purpose="accounting for private rounds")


def fits(parameters: Federated, inputs: Mapping[str, PlannedCell]) -> None:
    data = data_in(inputs)
    check_labeled(data)
    check_column(data, parameters.author, "author")
    check_part(data, parameters.part, "part")


def meaning(parameters: Federated) -> str:
    return "per author"


KIND = Kind(
    "federated", 1, Federated, run, score, {"data": Input(("data",)), "public": Input(("data",), public=True)}, check,
    epsilon=meaning, measures=("accuracy",), fits=fits,
)  # fmt: skip
