"""The plan of a private training run: sampling, noise and accounting that cannot disagree.

Each step takes every record independently with probability q = batch / records (Poisson sampling), clips its gradient
to C, adds N(0, (sigma C)^2) to the sum, and divides by the *planned* batch size, a public number: the size of the batch
that was drawn is private. The plan is fixed before the first step, from public numbers only, and the sampler, the noise
and the card read it from the same place.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from tacit.account.delta import automatic_delta, check_delta, check_trials
from tacit.account.matrix import Toeplitz
from tacit.account.sgd import sgd_epsilon, sgd_noise_multiplier
from tacit.errors import BadParameterError
from tacit.guarantee import Adjacency, Guarantee, Model, Notion, Provenance, Unit, VoidReason
from tacit.noise.source import StreamKey

SECRET_KEY = "the noise comes from a secret random key of the operating system, which is not shown"
GAUSSIAN_NOISE = ("the noise is Gaussian in the real numbers; single precision approximates it", SECRET_KEY)


@dataclass(frozen=True)
class TrainingPlan:
    """records and batch: sizes (public); steps; multiplier: sigma; delta; adjacency; unit: what one record is.

    Without `private` there is neither clipping nor noise, and no guarantee: for baselines and for public text.
    """

    records: int
    batch: int
    steps: int
    multiplier: float
    delta: float
    adjacency: Adjacency = Adjacency.ADD_REMOVE
    unit: Unit = Unit.RECORD
    private: bool = True

    def __post_init__(self) -> None:
        if self.records < 1:
            raise BadParameterError("no-rows", "there is no record to train on")
        if not 1 <= self.batch <= self.records:
            raise BadParameterError(
                "batch-does-not-fit",
                "a batch of {batch:,} does not fit {records:,} records: give a batch size between 1 and {records:,}",
                batch=self.batch,
                records=self.records,
            )
        if self.steps < 1:
            raise BadParameterError(
                "impossible-number-of-steps", "a run has at least 1 step, not {steps}", steps=self.steps
            )
        if not self.private:
            return
        if not self.multiplier > 0:
            raise BadParameterError(
                "impossible-noise-multiplier",
                "the noise multiplier must be positive, not {multiplier}",
                multiplier=self.multiplier,
            )
        check_delta(self.delta, self.units)

    @classmethod
    def calibrated(
        cls,
        *,
        epsilon: float,
        records: int,
        batch: int,
        epochs: float,
        delta: float | None = None,
        adjacency: Adjacency = Adjacency.ADD_REMOVE,
        unit: Unit = Unit.RECORD,
        releases: int = 1,
    ) -> TrainingPlan:
        """The plan with the least noise that stays within epsilon. Without a delta, 1 / records^1.5 or less, shared by
        all `releases` about the same records (trials, phases)."""
        chosen = automatic_delta(records, releases) if delta is None else delta
        draft = cls(records, batch, steps_of(epochs, records, batch), 1.0, chosen, adjacency, unit)
        multiplier = least_noise(epsilon, draft.rate, draft.steps, chosen, adjacency)
        check_noise(epsilon, multiplier)
        return replace(draft, multiplier=multiplier)

    @classmethod
    def without_privacy(cls, *, records: int, batch: int, epochs: float, unit: Unit = Unit.RECORD) -> TrainingPlan:
        """Plain training, for baselines, for public text, and for text that a mechanism has released already."""
        return cls(records, batch, steps_of(epochs, records, batch), 0.0, 0.0, unit=unit, private=False)

    @property
    def rate(self) -> float:
        return self.batch / self.records

    @property
    def units(self) -> int:
        """How many units the promise is made to: those that are drawn, unless a plan says otherwise."""
        return self.records

    @property
    def words(self) -> tuple[str, str]:
        """The names of the drawn and of a step, for people: users meet in rounds in federated training."""
        return ("users", "rounds") if self.unit is Unit.USER else ("records", "steps")

    def batch_at(self, step: int) -> int:
        """The planned batch size of a step, the first of which is 0: a public number."""
        return self.batch

    @property
    def correlation(self) -> Toeplitz | None:
        """How the noise of a step follows from that of earlier ones; None where it is independent."""
        return None

    @property
    def noise_scale(self) -> float:
        """The standard deviation of the numbers that noise is made from, in units of the clipping bound."""
        return self.multiplier

    def noise_deviation(self, step: int) -> float:
        """The standard deviation of the noise of a step by itself, in units of the clipping bound."""
        return self.noise_scale

    def epsilon(self, steps: int | None = None) -> float:
        """Epsilon after so many steps (all of them unless given)."""
        done = self.steps if steps is None else steps
        if not self.private:
            return math.inf
        return spent_by_steps(self.rate, self.multiplier, done, self.delta, self.adjacency) if done else 0.0

    def epsilon_at_most(self, steps: int) -> float:
        """A bound on epsilon after so many steps, for progress bars: computed at 20 points of the run, coarsely, since
        exact accounting takes a second each time; between them the next one counts."""
        if not self.private:
            return math.inf
        part = max(1, math.ceil(self.steps / 20))
        point = min(self.steps, math.ceil(steps / part) * part)
        return (
            spent_by_steps(self.rate, self.multiplier, point, self.delta, self.adjacency, coarse=True) if point else 0.0
        )

    def sample(self, step: int, key: StreamKey) -> NDArray[np.int64]:
        """The records of this step; the same ones whenever the step is repeated with this key."""
        uniform = key.stream(step, b"records").generator.random(self.records)
        return np.flatnonzero(uniform < self.batch_at(step) / self.records)

    @property
    def not_covered(self) -> tuple[str, ...]:
        return (
            f"how many {self.unit.value}s there are, and the names of the columns and labels",
            "what the pre-trained weights knew before",
        )

    @property
    def _secret_sample(self) -> tuple[str, ...]:
        """The assumption of amplification by sampling: the attacker does not know the sample."""
        return () if self.batch == self.records else (f"nobody learns which {self.unit.value}s were drawn for a step",)

    @property
    def _noise_assumptions(self) -> tuple[str, ...]:
        """The assumptions about how noise is drawn and added."""
        return GAUSSIAN_NOISE

    def _noise_parameters(self, steps: int) -> dict[str, object]:
        """How noise and sampling are shown on the card."""
        return {
            "noise multiplier": round(self.multiplier, 4),
            "sampling rate": f"{self.rate:.4g} (Poisson)",
            "steps": steps,
        }

    def guarantee(
        self, *, steps: int, secure: bool, what: str, parameters: Mapping[str, object], trials: int = 1
    ) -> Guarantee:
        """The guarantee of the weights after so many steps, for each record. `trials` runs on the same records, of
        which one was picked by looking at all of them, add up."""
        check_trials(trials)
        if not self.private:
            return Guarantee(
                notion=Notion.NONE,
                epsilon=math.inf,
                model=Model.CENTRAL,
                unit=self.unit,
                adjacency=self.adjacency,
                mechanism=what,
                parameters={"steps": steps, **parameters},
                void="it was trained without noise: the model may repeat what it has read",
                void_reason=VoidReason.NO_NOISE,
            )
        check_delta(self.delta * trials, self.units)
        promised = Guarantee(
            notion=Notion.APPROXIMATE,
            epsilon=self.epsilon(steps) * trials,
            delta=self.delta * trials,
            model=Model.CENTRAL,
            unit=self.unit,
            adjacency=self.adjacency,
            mechanism=what,
            parameters={**self._noise_parameters(steps), **parameters},
            not_covered=self.not_covered,
            assumptions=(f"the number of {self.unit.value}s is public", *self._secret_sample, *self._noise_assumptions),
            history=() if trials == 1 else (f"{trials} runs on the same {self.unit.value}s, added up",),
        )
        return unless_seeded(promised, secure=secure)


def unless_seeded(promised: Guarantee, *, secure: bool) -> Guarantee:
    """The promise of a training; void if its noise was drawn from a test seed."""
    if secure:
        return promised
    return promised.voided("it was trained with a test seed, which undoes the noise", VoidReason.TEST_SEED)


MOST_NOISE = 1_000.0


def check_noise(epsilon: float, multiplier: float) -> None:
    """Refuse a plan whose noise leaves nothing to learn."""
    if multiplier > MOST_NOISE:
        raise BadParameterError(
            "noise-drowns-learning",
            "epsilon {epsilon:g} needs noise of {multiplier:.3g} times the clipping bound, in which nothing can "
            "be learned: raise epsilon, train for fewer epochs, or gather more records",
            epsilon=epsilon,
            multiplier=multiplier,
        )


def steps_of(epochs: float, records: int, batch: int) -> int:
    """The steps of so many passes over the records."""
    if batch < 1:
        raise BadParameterError(
            "impossible-count", "a batch takes at least 1 record, not {count:,}: give a larger one", count=batch
        )
    if not 0 < epochs < math.inf:
        raise BadParameterError(
            "impossible-number-of-steps",
            "the number of passes (epochs) is a number above 0, not {epochs:g}: give 5, or 0.5",
            epochs=epochs,
        )
    return max(1, math.ceil(epochs * records / batch))


def check_composed(promise: Guarantee, records: int) -> Guarantee:
    """A promise that is made of several has a delta of its own, which must be below one over the records too."""
    if promise.is_private:
        check_delta(promise.delta, records)
    return promise


@lru_cache(maxsize=64)
def least_noise(epsilon: float, rate: float, steps: int, delta: float, adjacency: Adjacency) -> float:
    """The least noise multiplier within epsilon. Finding it takes seconds, and all models that are compared on the same
    rows need the same."""
    return sgd_noise_multiplier(epsilon=epsilon, sampling_rate=rate, steps=steps, delta=delta, adjacency=adjacency)


@lru_cache(maxsize=4096)
def spent_by_steps(
    rate: float, multiplier: float, steps: int, delta: float, adjacency: Adjacency, coarse: bool = False
) -> float:
    """Epsilon of so many sampled steps, remembered: progress bars and cards ask for the same ones."""
    return sgd_epsilon(
        sampling_rate=rate,
        noise_multiplier=multiplier,
        steps=steps,
        delta=delta,
        adjacency=adjacency,
        coarse=coarse,
    )


def pretrained(name: str) -> Provenance:
    return Provenance("pre-trained weights", f"{name}, assumed to be trained on public text")
