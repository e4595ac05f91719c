"""From epsilon, delta and sensitivity to the noise, and back.

>>> run(LaplaceConfig(epsilon=0.5, sensitivity=2))["scale"]
4.0
>>> run(LaplaceConfig(scale=4, sensitivity=2))["epsilon"]
0.5

The libraries behind the numbers are imported when one is computed, so that help is instant.
"""

from __future__ import annotations

from abc import abstractmethod
from math import log
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from tacit.errors import BadParameterError
from tacit.guarantee import Adjacency
from tacit.jobs.config import Config, Group, Option
from tacit.jobs.fields import Delta, Epochs, Epsilon, Steps
from tacit.needs import ACCOUNTING, Ability

Sensitivity = Annotated[
    float,
    Field(description="l1 sensitivity: the most that one change moves all numbers together."),
    Option(Group.PRIVACY),
]


class Calibration(Config):
    """A kind of noise, with its epsilon or with what decides it; the other is computed."""

    epsilon: Annotated[Epsilon[float | None], Field(description="Privacy parameter; smaller is more private.")] = None

    noise: ClassVar[str]
    """The field that is given in place of epsilon."""

    @model_validator(mode="after")
    def _epsilon_or_noise(self) -> Self:
        self.exactly_one("epsilon", self.noise)
        return self

    def exactly_one(self, first: str, second: str) -> None:
        if (getattr(self, first) is None) == (getattr(self, second) is None):
            raise BadParameterError(
                "exactly-one",
                "give exactly one of {option." + first + "} and {option." + second + "}: the other one is computed",
                options=(first, second),
            )

    @abstractmethod
    def result(self) -> dict[str, object]:
        """All numbers by their names."""


class LaplaceConfig(Calibration):
    """Laplace noise (pure DP): scale b = l1 sensitivity / epsilon."""

    job: ClassVar[str] = "calibrate laplace"
    noise: ClassVar[str] = "scale"

    sensitivity: Sensitivity = 1.0
    scale: Annotated[float | None, Field(description="Noise scale b, to get its epsilon."), Option(Group.PRIVACY)] = (
        None
    )

    def result(self) -> dict[str, object]:
        from tacit.noise.laplace import laplace_epsilon, laplace_scale

        epsilon, scale = self.epsilon, self.scale
        if scale is None:
            assert epsilon is not None
            scale = laplace_scale(epsilon, self.sensitivity)
        else:
            epsilon = laplace_epsilon(scale, self.sensitivity)
        return {
            "mechanism": "laplace",
            "notion": "pure",
            "epsilon": epsilon,
            "delta": 0.0,
            "l1_sensitivity": self.sensitivity,
            "scale": scale,
            "standard_deviation": scale * 2**0.5,
        }


class GaussianConfig(Calibration):
    """Gaussian noise (approximate DP), calibrated exactly for every epsilon (Balle & Wang 2018)."""

    job: ClassVar[str] = "calibrate gaussian"
    noise: ClassVar[str] = "sigma"

    delta: Annotated[
        Delta[float],
        Field(description="Probability with which the epsilon bound may fail; well below 1 / records."),
    ] = 1e-6
    sensitivity: Annotated[
        Sensitivity, Field(description="l2 sensitivity: the farthest that one change moves the vector.")
    ] = 1.0
    sigma: Annotated[
        float | None, Field(description="Standard deviation, to get its epsilon."), Option(Group.PRIVACY)
    ] = None

    def result(self) -> dict[str, object]:
        from tacit.noise.gaussian import analytic_gaussian_sigma, classical_gaussian_sigma, gaussian_epsilon

        epsilon, sigma = self.epsilon, self.sigma
        if sigma is None:
            assert epsilon is not None
            sigma = analytic_gaussian_sigma(epsilon, self.delta, self.sensitivity)
        else:
            epsilon = gaussian_epsilon(sigma, self.delta, self.sensitivity)
        numbers: dict[str, object] = {
            "mechanism": "gaussian",
            "notion": "approximate",
            "epsilon": epsilon,
            "delta": self.delta,
            "l2_sensitivity": self.sensitivity,
            "sigma": sigma,
        }
        if 0 < epsilon < 1:
            numbers["classical_sigma"] = classical_gaussian_sigma(epsilon, self.delta, self.sensitivity)
        return numbers


class ResponseConfig(Calibration):
    """Randomized response (pure DP, local): how often to tell the truth."""

    job: ClassVar[str] = "calibrate response"
    noise: ClassVar[str] = "truth"

    categories: Annotated[
        int, Field(description="Number of possible answers; 2 is a yes/no question."), Option(Group.PRIVACY)
    ] = 2
    truth: Annotated[
        float | None,
        Field(description="Probability of the true answer, to get its epsilon."),
        Option(Group.PRIVACY),
    ] = None

    def result(self) -> dict[str, object]:
        from tacit.noise.response import response_shares

        epsilon = self.epsilon if self.truth is None else self._epsilon_of(self.truth)
        assert epsilon is not None
        true_share, false_share = response_shares(epsilon, self.categories)
        total = true_share + (self.categories - 1) * false_share
        return {
            "mechanism": "randomized response",
            "notion": "pure",
            "epsilon": epsilon,
            "delta": 0.0,
            "categories": self.categories,
            "truth_probability": true_share / total,
            "probability_of_each_false_answer": false_share / total,
        }

    def _epsilon_of(self, truth: float) -> float:
        if self.categories < 2 or not 1 / self.categories < truth < 1:
            raise BadParameterError(
                "impossible-truth",
                "with {categories} answers the truth must be told with a probability above 1/{categories} and below 1: "
                "give {option.truth} in between",
                categories=self.categories,
            )
        return log(truth * (self.categories - 1) / (1 - truth))


class SgdConfig(Calibration):
    """DP-SGD with Poisson-sampled lots: noise multiplier and epsilon."""

    job: ClassVar[str] = "calibrate sgd"
    noise: ClassVar[str] = "noise_multiplier"

    records: Annotated[int, Field(description="Number of training records (units of privacy)."), Option(Group.TRAINING)]
    lot_size: Annotated[float, Field(description="Expected number of records in a step."), Option(Group.TRAINING)]
    epochs: Annotated[Epochs[float | None], Field(description="Expected passes over the records.")] = None
    steps: Annotated[Steps[int | None], Field(description="Number of steps, instead of epochs.")] = None
    delta: Annotated[
        Delta[float | None], Field(description="Below 1 / records. Default: records to the power -1.5.")
    ] = None
    noise_multiplier: Annotated[
        float | None,
        Field(description="Noise over clipping norm, to get its epsilon."),
        Option(Group.PRIVACY, old_names=("sigma",)),
    ] = None
    adjacency: Annotated[
        Literal["add-remove", "replace-one"],
        Field(description="Data sets that must look alike: one record more or less, or another."),
        Option(Group.PRIVACY),
    ] = "add-remove"

    def needs(self) -> list[Ability]:
        return [ACCOUNTING]

    @model_validator(mode="after")
    def _lots_fit(self) -> Self:
        if self.records < 2 or not 0 < self.lot_size <= self.records:
            raise BadParameterError(
                "impossible-lot-size",
                "the lot size must be positive and at most the number of records (at least 2)",
            )
        self.exactly_one("epochs", "steps")
        return self

    def result(self) -> dict[str, object]:
        from tacit.account.sgd import sgd_epsilon, sgd_noise_multiplier

        steps = self.steps
        if steps is None:
            assert self.epochs is not None
            steps = max(1, round(self.epochs * self.records / self.lot_size))
        training: dict[str, Any] = {
            "sampling_rate": self.lot_size / self.records,
            "steps": steps,
            "delta": self.records**-1.5 if self.delta is None else self.delta,
            "records": self.records,
            "adjacency": Adjacency.ADD_REMOVE if self.adjacency == "add-remove" else Adjacency.REPLACE_ONE,
        }
        multiplier = self.noise_multiplier
        if multiplier is None:
            assert self.epsilon is not None
            multiplier = sgd_noise_multiplier(epsilon=self.epsilon, **training)
        return {
            "mechanism": "dp-sgd",
            "notion": "approximate",
            "epsilon": sgd_epsilon(noise_multiplier=multiplier, **training),
            "delta": training["delta"],
            "noise_multiplier": multiplier,
            "sampling_rate": training["sampling_rate"],
            "steps": steps,
            "adjacency": self.adjacency,
            "assumes": "Poisson sampling",
        }


def run(config: Calibration) -> dict[str, object]:
    """Noise and promise as numbers by their names."""
    return config.result()
