"""`accounting`: the epsilon of a DP-SGD run from its numbers, in every way in which it is counted. No data is read.

    q = lot / records,   T = epochs x records / lot,   sigma = noise multiplier,   delta

    epsilon            integer-order Renyi bound with the classic conversion, the formula behind the printed budgets
                       (Mironov 2017), adding or removing one record, Poisson sampling
    tight              privacy-loss distributions; exact for q = 1
    replaced           the bound of `epsilon` when one record is replaced (sensitivity 2 C); q = 1 only, where it is
                       proven
    tight, replaced    privacy-loss distributions for replacing one record
    visits             `epsilon` when each record is visited once per epoch in a fixed order: T = epochs, q = 1
    tight, visits      the same, exactly

A lot that is not drawn by Poisson sampling has no `epsilon`: look at `visits`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pydantic import Field

from tacit.account.sgd import classic_rdp_epsilon, sgd_epsilon
from tacit.errors import BadInputError, require
from tacit.experiments.config import Parameters
from tacit.experiments.raw import read_json, write_json
from tacit.experiments.steps import Kind, Progress
from tacit.guarantee import Adjacency


class Accounting(Parameters):
    noise_multiplier: float = Field(gt=0)
    epochs: int = Field(ge=1)
    records: int = Field(default=1, ge=1)
    lot: int = Field(default=1, ge=1)
    delta: float = Field(default=1e-5, gt=0, lt=1)

    @property
    def rate(self) -> float:
        return self.lot / self.records

    @property
    def steps(self) -> int:
        return round(self.epochs * self.records / self.lot)


def run(parameters: Accounting, inputs: Mapping[str, Path], folder: Path, progress: Progress) -> None:
    write_json(folder / "epsilons.json", epsilons(parameters))


def epsilons(parameters: Accounting) -> dict[str, float]:
    sigma, delta, rate, steps = parameters.noise_multiplier, parameters.delta, parameters.rate, parameters.steps

    def bound(rate: float, steps: int, sigma: float) -> float:
        return classic_rdp_epsilon(sampling_rate=rate, noise_multiplier=sigma, steps=steps, delta=delta)

    def tight(rate: float, steps: int, adjacency: Adjacency = Adjacency.ADD_REMOVE) -> float:
        return sgd_epsilon(sampling_rate=rate, noise_multiplier=sigma, steps=steps, delta=delta, adjacency=adjacency)

    counted = {
        "epsilon": bound(rate, steps, sigma),
        "tight": tight(rate, steps),
        "tight, replaced": tight(rate, steps, Adjacency.REPLACE_ONE),
        "visits": bound(1.0, parameters.epochs, sigma),
        "tight, visits": tight(1.0, parameters.epochs),
    }
    return counted if rate < 1 else {**counted, "replaced": bound(1.0, steps, sigma / 2)}


def score(folder: Path) -> dict[str, float]:
    return {name: float(value) for name, value in read_json(folder / "epsilons.json").items()}


def check(parameters: Accounting, inputs: frozenset[str] = frozenset()) -> None:
    require("dp_accounting", extra="accounting", purpose="accounting for DP-SGD")
    if parameters.lot > parameters.records:
        raise BadInputError(
            "lot-larger-than-data",
            "a lot of {lot:,} is larger than the {records:,} records",
            lot=parameters.lot,
            records=parameters.records,
        )


KIND = Kind(
    "accounting", 1, Accounting, run, score, {}, check,
    measures=("epsilon", "tight", "replaced", "tight, replaced", "visits", "tight, visits"),
)  # fmt: skip
