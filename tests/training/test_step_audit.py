"""The step that trains, audited from outside: sampling, per-example gradients, clipping, summing and noise together.

A canary is a record whose gradient points along a coordinate of its own, far longer than the clipping bound. The
auditor sees every released gradient and guesses which canaries were among the records (Steinke et al. 2023).
"""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from tacit.account.sgd import sgd_epsilon  # noqa: E402
from tacit.auditing.models.gradient_canaries import observe_steps  # noqa: E402
from tacit.auditing.models.one_run import audit_observations  # noqa: E402
from tacit.noise.source import Source, StreamKey  # noqa: E402
from tacit.training.clipping import AutomaticClipping, FlatClipping, QuantileClipping  # noqa: E402
from tacit.training.gradients import choose  # noqa: E402
from tacit.training.plan import TrainingPlan  # noqa: E402
from tacit.training.step import PrivateStep  # noqa: E402

DIMENSION, CANARIES, ORDINARY, DELTA = 700, 600, 100, 1e-5


def loss(model, batch):
    """The gradient of an example is its row."""
    return model(batch["rows"])[:, 0]


def audited_step(multiplier, rate, steps, clipping, seed, *, broken=None):
    """Our step over ordinary records and the included canaries, as a function of the canaries' gradients."""
    model = torch.nn.Linear(DIMENSION, 1, bias=False)
    probes = [{"rows": torch.randn(size, DIMENSION, generator=torch.Generator().manual_seed(size))} for size in (3, 5)]
    engine, _ = choose(model, loss, probes)
    ordinary = torch.randn(ORDINARY, DIMENSION, generator=torch.Generator().manual_seed(seed)) / DIMENSION
    key, number = StreamKey.from_test_seed(seed), iter(range(steps))

    def step(canaries):
        rows = torch.cat([ordinary, canaries])
        plan = TrainingPlan(len(rows), max(1, round(rate * len(rows))), steps, multiplier, DELTA)
        private = PrivateStep(
            plan, lambda ids: {"rows": rows[list(ids)]}, 64, engine=engine, clipping=broken or clipping
        )
        private.run(next(number), key)
        return model.weight.grad[0] * plan.batch

    return step


@pytest.mark.parametrize(
    ("multiplier", "rate", "steps", "clipping", "share"),
    [
        (1.0, 1.0, 1, FlatClipping(1.0), 0.2),
        (2.0, 1.0, 10, AutomaticClipping(1.0), 0.2),
        (0.5, 0.5, 4, FlatClipping(1.0), 0.1),
        (1.0, 1.0, 1, QuantileClipping(1.0), 0.2),
    ],
)
def test_the_step_keeps_its_promise_and_the_audit_sees_a_useful_share_of_it(multiplier, rate, steps, clipping, share):
    """Six audits at confidence .95 whose bound Gaussian noise stays far below: false alarms are below 1e-3."""
    claimed = sgd_epsilon(sampling_rate=rate, noise_multiplier=multiplier, steps=steps, delta=DELTA)
    results = []
    for seed in range(6):
        seen = observe_steps(
            audited_step(multiplier, rate, steps, clipping, seed),
            dimension=DIMENSION,
            canaries=CANARIES,
            steps=steps,
            norm=50.0,
            source=Source.from_test_seed(seed),
        )
        results.append(audit_observations(seen, delta=DELTA, confidence=0.95).epsilon)
    assert max(results) < claimed
    assert np.median(results) > share * claimed


class Unclipped(FlatClipping):
    def clip(self, squared_norms):
        clipped = super().clip(squared_norms)
        return type(clipped)({name: torch.ones_like(f) for name, f in clipped.factors.items()}, 0, clipped.norms)


@pytest.mark.parametrize("mistake", [Unclipped(1.0), FlatClipping(1.0)])
def test_a_step_that_forgets_to_clip_or_takes_a_twentieth_of_the_noise_is_caught(mistake):
    multiplier = 2.0 if isinstance(mistake, Unclipped) else 0.1
    seen = observe_steps(
        audited_step(multiplier, 1.0, 1, FlatClipping(1.0), 0, broken=mistake),
        dimension=DIMENSION,
        canaries=CANARIES,
        steps=1,
        norm=50.0,
        source=Source.from_test_seed(0),
    )
    claimed = sgd_epsilon(sampling_rate=1.0, noise_multiplier=2.0, steps=1, delta=DELTA)
    assert audit_observations(seen, delta=DELTA, confidence=0.99).refutes(claimed)
