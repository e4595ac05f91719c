"""`digits`: DP-SGD on pictures of digits, by the size of the lot and the noise (Igamberdiev 2023, table 3.5).

A network with one hidden layer and dropout, plain SGD: each example is drawn with the probability `share`, gradients
are cut to `bound`, noise of `noise_multiplier` times that is added to their sum, and it is divided by the expected lot.
The pictures are the 1,797 of 8 x 8 pixels that come with scikit-learn (UCI, Alpaydin & Kaynak 1998), in place of MNIST.
They are public, and the model is thrown away: there is no card. What such a run promises is worked out by `accounting`.

F1 is macro-F1 on a fifth of the pictures, with a 95 % interval over them.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from pydantic import Field

from tacit.arrays import Floats, Ids
from tacit.errors import require
from tacit.evaluation.downstream import item_statistic
from tacit.evaluation.scores import bootstrap_interval
from tacit.experiments.config import Parameters
from tacit.experiments.raw import read_lines, write_lines
from tacit.experiments.steps import Kind, Progress
from tacit.experiments.steps.downstream import RESAMPLES, with_interval
from tacit.noise.source import public_generator

CLASSES = 10
TESTED = 0.2


class Digits(Parameters):
    """share: of the training pictures in a lot; hidden, dropout, learning_rate: those of the thesis."""

    share: float = Field(gt=0, le=1)
    noise_multiplier: float = Field(ge=0)
    epochs: int = Field(default=100, ge=1)
    hidden: int = Field(default=512, ge=1)
    dropout: float = Field(default=0.5, ge=0, lt=1)
    learning_rate: float = Field(default=0.01, gt=0)
    bound: float = Field(default=1.0, gt=0)
    seed: int = 1


def run(parameters: Digits, inputs: Mapping[str, Path], folder: Path, progress: Progress) -> None:
    from sklearn.datasets import load_digits

    pictures, labels = load_digits(return_X_y=True)
    x, y = (pictures / 16.0).astype(np.float32), labels.astype(np.int64)
    order = public_generator(0).permutation(len(x))
    cut = round((1 - TESTED) * len(x))
    train, test = order[:cut], order[cut:]
    network = Network(x.shape[1], parameters)
    steps = round(parameters.epochs / parameters.share)
    for step in range(steps):
        network.step(x[train], y[train])
        if step % 100 == 99 or step + 1 == steps:
            progress(step + 1, steps)
    said = network.predicted(x[test])
    write_lines(
        folder / "predictions.jsonl",
        ({"true": str(a), "predicted": str(b)} for a, b in zip(y[test], said, strict=True)),
    )


class Network:
    """One hidden layer with rectified units, and its private steps. All randomness is public: so are the pictures."""

    def __init__(self, width: int, parameters: Digits) -> None:
        self.parameters = parameters
        self.random = public_generator(parameters.seed)
        sizes = ((width, parameters.hidden), (parameters.hidden, CLASSES))
        self.weights = [
            (self.random.standard_normal(size) * np.sqrt(2.0 / size[0])).astype(np.float32) for size in sizes
        ]
        self.biases = [np.zeros(size[1], dtype=np.float32) for size in sizes]

    def step(self, x: Floats, y: Ids) -> None:
        """Cut the gradients of a lot, add noise to their sum, and move."""
        settings = self.parameters
        drawn = np.flatnonzero(self.random.random(len(x)) < settings.share)
        gradients = self.sum_of_cut_gradients(x[drawn], y[drawn])
        lot = settings.share * len(x)
        spread = settings.noise_multiplier * settings.bound
        for values, gradient in zip((*self.weights, *self.biases), gradients, strict=True):
            noise = self.random.standard_normal(values.shape, dtype=np.float32)
            values -= np.float32(settings.learning_rate / lot) * (gradient + np.float32(spread) * noise)

    def sum_of_cut_gradients(self, x: Floats, y: Ids) -> list[Floats]:
        """Of weights and biases. The length of the gradient of one example of a linear layer is that of its input times
        that of what comes back, so that no gradient of a single example is made."""
        kept = (self.random.random((len(x), self.parameters.hidden)) >= self.parameters.dropout).astype(np.float32)
        kept /= 1 - self.parameters.dropout
        hidden = np.maximum(x @ self.weights[0] + self.biases[0], 0)
        shown = hidden * kept
        out = _softmax(shown @ self.weights[1] + self.biases[1])
        out[np.arange(len(y)), y] -= 1
        back = (out @ self.weights[1].T) * kept * (hidden > 0)
        squares = [
            (np.square(given).sum(axis=1) + 1) * np.square(returned).sum(axis=1)
            for given, returned in ((x, back), (shown, out))
        ]
        factors = np.minimum(1.0, self.parameters.bound / np.maximum(np.sqrt(squares[0] + squares[1]), 1e-12))
        back, out = back * factors[:, None], out * factors[:, None]
        return [x.T @ back, shown.T @ out, back.sum(axis=0), out.sum(axis=0)]

    def predicted(self, x: Floats) -> Ids:
        hidden = np.maximum(x @ self.weights[0] + self.biases[0], 0)
        likeliest: Ids = np.argmax(hidden @ self.weights[1] + self.biases[1], axis=1)
        return likeliest


def _softmax(values: Floats) -> Floats:
    powers = np.exp(values - values.max(axis=1, keepdims=True))
    shares: Floats = powers / powers.sum(axis=1, keepdims=True)
    return shares


def score(folder: Path) -> dict[str, float]:
    rows = list(read_lines(folder / "predictions.jsonl"))
    truth, said = ([row[name] for row in rows] for name in ("true", "predicted"))
    statistic = item_statistic("classification", truth, [said])
    return with_interval("F1", bootstrap_interval(statistic, len(truth), resamples=RESAMPLES), 1 / CLASSES)


def check(parameters: Digits, inputs: frozenset[str] = frozenset()) -> None:
    require("sklearn", extra="audit", purpose="pictures of digits")


KIND = Kind("digits", 1, Digits, run, score, {}, check, measures=("F1",))
