"""The price of choosing the best of several private runs: a random, secret number of trials, and Renyi divergences.

Q is one trial: a setting drawn from a public list, a private training with it, and a score that is a function of the
model and of public rows, or has noise of its own. K is drawn from a public law and kept secret, Q is run K times
independently, and the trial with the best score is released, nothing else. If Q has the Renyi divergence e(a) of order
a between neighbors (both ways), the release has at most

    K geometric, mean m     e(a) + 2 min over b of ( (1 - 1/b) e(b) + ln(m) / b ) + ln(m) / (a - 1)
    K Poisson, mean m       e(a) + m d + ln(m) / (a - 1)      where Q is (ln(1 + 1/(a - 1)), d)-private

(Papernot & Steinke, "Hyperparameter tuning with Renyi differential privacy", ICLR 2022, theorem 2 with eta = 1 and
theorem 6; Liu & Talwar, STOC 2019, for pure epsilon). A Poisson K may be 0, and then nothing is released. m is at
least 1. Trials of the same score are told apart by their order, which has the law of a tie-break that Q draws by
itself. Divergences become (epsilon, delta) as in `account.renyi`.

What is *not* covered: somebody who learns K, from a log or from the time that the search took. The epsilon of the best
run alone is no promise about it: see `tacit.auditing.published.tuning`.

Rounding. K is drawn by inverting its distribution function with 53 random bits, which is off by less than `DRAWN` in
total variation whatever the data, so the delta of the search is less by twice that much. d comes from privacy-loss
distributions that are rounded up, plus what their library may lose (`account.sgd.ROUNDING`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal

from tacit.account.renyi import epsilon_of_order, renyi_curve
from tacit.account.sgd import (
    COARSE_INTERVAL,
    FINE_INTERVAL,
    ROUNDING,
    check_run,
    least_multiplier,
    pld_accountant,
    reach,
    renyi_multiplier,
)
from tacit.errors import BadParameterError
from tacit.guarantee import Adjacency
from tacit.noise.gaussian import gaussian_delta
from tacit.noise.parameters import positive
from tacit.noise.source import Source

TrialKind = Literal["poisson", "geometric"]
DRAWN: Final = 2.0**-40
MOST_MEAN: Final = 1000.0
UP: Final = 1.0 + 1e-12


@dataclass(frozen=True)
class TrialLaw:
    """The public law of the secret number of trials."""

    kind: TrialKind = "poisson"
    mean: float = 10.0

    def __post_init__(self) -> None:
        if not 1.0 <= self.mean <= MOST_MEAN:
            raise BadParameterError(
                "impossible-number-of-trials",
                "the mean number of trials lies between 1 and {most:,.0f}, not at {mean:g}",
                most=MOST_MEAN,
                mean=self.mean,
            )
        if self.kind not in ("poisson", "geometric"):
            raise BadParameterError(
                "unknown-law-of-trials",
                "the number of trials is 'poisson' or 'geometric', not '{kind}'",
                kind=self.kind,
            )

    @property
    def label(self) -> str:
        return f"{'Poisson' if self.kind == 'poisson' else 'geometric'}, mean {self.mean:g}"

    @property
    def none(self) -> float:
        """The probability that there is no trial at all."""
        return math.exp(-self.mean) if self.kind == "poisson" else 0.0

    def generating(self, share: float) -> float:
        """The mean of share^K: the probability that all trials fall among outcomes that have this probability."""
        if self.kind == "poisson":
            return math.exp(self.mean * (share - 1.0))
        return share / (self.mean - (self.mean - 1.0) * share)

    def probabilities(self) -> Iterator[float]:
        """Of 0, 1, 2, ... trials."""
        if self.kind == "poisson":
            value, count = math.exp(-self.mean), 0
            while True:
                yield value
                count += 1
                # Far from 0 the first factors underflow: logarithms do not.
                value = math.exp(count * math.log(self.mean) - self.mean - math.lgamma(count + 1))
        yield 0.0
        value = 1.0 / self.mean
        while True:
            yield value
            value *= 1.0 - 1.0 / self.mean

    def draw(self, source: Source) -> int:
        """A number of trials."""
        uniform, reached = float(source.generator.random()), 0.0
        for count, probability in enumerate(self.probabilities()):
            reached += probability
            if uniform < reached or (count > self.mean and probability < 2.0**-60):
                return count
        raise AssertionError("probabilities never end")


def selected_curve(
    law: TrialLaw, curve: Mapping[float, float], delta_at: Callable[[float], float]
) -> dict[float, float]:
    """The Renyi divergences of the best trial, by order, from those of one trial.

    delta_at   a delta for which one trial is private with this epsilon
    """
    extra = math.log(law.mean)
    if law.kind == "poisson":
        return {
            order: (spent + law.mean * delta_at(math.log1p(1.0 / (order - 1.0))) + extra / (order - 1.0)) * UP
            for order, spent in curve.items()
        }
    # Order 1 has a divergence of its own below every other; leaving it out is on the safe side.
    shared = 2.0 * min((1.0 - 1.0 / order) * spent + extra / order for order, spent in curve.items())
    return {order: (spent + shared + extra / (order - 1.0)) * UP for order, spent in curve.items()}


@dataclass(frozen=True)
class Trial:
    """One private run: Poisson-sampled Gaussian steps, and a noisy count of right predictions that scores it.

    score_noise   the deviation of the noise of that count, which a record moves by at most 1; None if the score comes
                  from public rows
    """

    rate: float
    steps: int
    score_noise: float | None = None

    def curve(self, multiplier: float, adjacency: Adjacency) -> dict[float, float]:
        """Renyi divergences by order."""
        counted = 0.0 if self.score_noise is None else 0.5 / self.score_noise**2
        steps = renyi_curve([(self.rate, self.steps)], multiplier, adjacency)
        return {order: spent + order * counted for order, spent in steps.items()}

    def delta_at(self, multiplier: float, adjacency: Adjacency, interval: float) -> Callable[[float], float]:
        """The delta of one trial by epsilon, never below the truth."""
        if self.rate == 1:
            counted = 0.0 if self.score_noise is None else self.score_noise**-2
            distance = math.sqrt(self.steps * (reach(adjacency) / multiplier) ** 2 + counted)
            return lambda epsilon: gaussian_delta(epsilon, 1.0, distance) * UP
        accountant = pld_accountant([(self.rate, self.steps)], multiplier, adjacency, interval)
        if self.score_noise is not None:
            import dp_accounting

            accountant.compose(dp_accounting.GaussianDpEvent(self.score_noise))
        allowance = ROUNDING * (max(self.steps, 16) + 32)
        return lambda epsilon: min(1.0, float(accountant.get_delta(epsilon)) + allowance)


@lru_cache(maxsize=256)
def search_epsilon(
    trial: Trial,
    law: TrialLaw,
    *,
    noise_multiplier: float,
    delta: float,
    adjacency: Adjacency = Adjacency.ADD_REMOVE,
    coarse: bool = False,
) -> float:
    """Epsilon of the best of a secret number of trials, never below the truth."""
    _check(trial, delta, adjacency)
    positive(noise_multiplier, "the noise multiplier")
    return _epsilon(trial, law, noise_multiplier, delta, adjacency, COARSE_INTERVAL if coarse else FINE_INTERVAL)


@lru_cache(maxsize=64)
def search_noise_multiplier(
    trial: Trial,
    law: TrialLaw,
    *,
    epsilon: float,
    delta: float,
    adjacency: Adjacency = Adjacency.ADD_REMOVE,
    tolerance: float = 1e-3,
) -> float:
    """The smallest noise multiplier of the steps for which a search stays within epsilon, rounded up within the
    relative `tolerance`."""
    _check(trial, delta, adjacency)
    positive(epsilon, "epsilon")
    free = _epsilon(trial, law, 1e6, delta, adjacency, COARSE_INTERVAL)
    if free >= epsilon:
        raise BadParameterError(
            "search-out-of-reach",
            "choosing among so many trials costs epsilon {free:.3g} by itself, whatever the noise of the steps: raise "
            "epsilon, lower the mean number of trials, or score on public rows",
            free=free,
        )
    return least_multiplier(
        lambda multiplier, interval: _epsilon(trial, law, multiplier, delta, adjacency, interval),
        epsilon,
        start=renyi_multiplier(epsilon / 2.0, trial.rate, trial.steps, delta),
        tolerance=tolerance,
    )


def _epsilon(
    trial: Trial, law: TrialLaw, multiplier: float, delta: float, adjacency: Adjacency, interval: float
) -> float:
    curve = trial.curve(multiplier, adjacency)
    best = selected_curve(law, curve, trial.delta_at(multiplier, adjacency, interval))
    spent = min(epsilon_of_order(value, order, delta - 2.0 * DRAWN) for order, value in best.items())
    return max(0.0, spent * UP)


def _check(trial: Trial, delta: float, adjacency: Adjacency) -> None:
    check_run(trial.rate, trial.steps, delta, None, adjacency)
    if trial.score_noise is not None:
        positive(trial.score_noise, "the noise of a score")
    if delta <= 4.0 * DRAWN:
        raise BadParameterError(
            "delta-too-small-for-a-search",
            "a search needs a delta above {least:.1g}, because the number of trials is drawn with 53 bits",
            least=4.0 * DRAWN,
        )
