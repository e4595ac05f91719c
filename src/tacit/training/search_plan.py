"""The plan of a search: every trial has the same steps, sampling and noise, and the best one has one promise.

The noise is that with which the *whole search* stays within epsilon (`account.selection`): the card of a trial is the
card of the search, so whichever trial is released, nothing has to be added up afterwards.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

from tacit.account.delta import automatic_delta
from tacit.account.selection import Trial, TrialLaw, search_epsilon, search_noise_multiplier
from tacit.guarantee import Adjacency
from tacit.training.plan import TrainingPlan, check_noise, steps_of


@dataclass(frozen=True)
class SearchPlan(TrainingPlan):
    """A plan of trials, of which the best of a secret number is kept.

    score_noise   of the count of right predictions on the private records; None where public rows give the score
    settings      how many settings a trial is drawn from
    """

    law: TrialLaw = field(default_factory=TrialLaw)
    score_noise: float | None = None
    settings: int = 1

    @classmethod
    def searching(
        cls,
        *,
        epsilon: float,
        records: int,
        batch: int,
        epochs: float,
        law: TrialLaw,
        settings: int,
        score_noise: float | None = None,
        delta: float | None = None,
        adjacency: Adjacency = Adjacency.ADD_REMOVE,
        releases: int = 1,
    ) -> SearchPlan:
        """The plan with the least noise for which the whole search stays within epsilon."""
        chosen = automatic_delta(records, releases) if delta is None else delta
        steps = steps_of(epochs, records, batch)
        draft = cls(records, batch, steps, 1.0, chosen, adjacency, law=law, score_noise=score_noise, settings=settings)
        multiplier = search_noise_multiplier(
            draft.trial(steps), law, epsilon=epsilon, delta=chosen, adjacency=adjacency
        )
        check_noise(epsilon, multiplier)
        return replace(draft, multiplier=multiplier)

    def trial(self, steps: int) -> Trial:
        """The first so many steps of a trial, as they are accounted."""
        return Trial(self.rate, steps, self.score_noise)

    def epsilon(self, steps: int | None = None) -> float:
        done = self.steps if steps is None else steps
        if not self.private:
            return math.inf
        if not done:
            return 0.0
        return search_epsilon(
            self.trial(done), self.law, noise_multiplier=self.multiplier, delta=self.delta, adjacency=self.adjacency
        )

    def epsilon_at_most(self, steps: int) -> float:
        """That of the whole search: a part of it is never released."""
        return self.epsilon()

    @property
    def not_covered(self) -> tuple[str, ...]:
        return (*super().not_covered, "how long the search took: it grows with the number of trials, which is secret")

    @property
    def _noise_assumptions(self) -> tuple[str, ...]:
        return (*super()._noise_assumptions, "nobody learns how many trials there were, or sees another one than this")

    def _noise_parameters(self, steps: int) -> dict[str, object]:
        score = (
            "a score on public rows"
            if self.score_noise is None
            else f"a count of right predictions on the records, with noise of deviation {self.score_noise:g}"
        )
        return {
            **super()._noise_parameters(steps),
            "search": f"the best of a secret number of trials ({self.law.label}) from {self.settings} settings, "
            f"by {score}",
        }
