"""How much of the claimed epsilon of our training step an attacker can really show.

Two audits of `PrivateStep` itself (sampling, per-example gradients, clipping, noise), with gradient canaries that are
far longer than the clipping bound:

* one run: many canaries at once, each in or out by its own coin. Two bounds from the same scores: without assumptions
  (Steinke et al. 2023), and for the curves of this very training with less or more noise (Mahloujifar et al. 2024),
  which is larger;
* many runs (Nasr et al. 2023): one canary, the step repeated with and without it; a threshold is chosen on one half of
  the runs, and Clopper-Pearson bounds on the other half give epsilon >= ln((1 - delta - FNR) / FPR).

    python benchmarks/audit_training.py [--runs 20000] [--canaries 5000]     # --runs 0: only the bounds of one run

Every lower bound has confidence .95; the claim is never to be exceeded.
"""

from __future__ import annotations

import argparse
import math
from typing import Any

import numpy as np
import torch

from tacit.account.sgd import sgd_epsilon
from tacit.auditing.binomial import at_most
from tacit.auditing.models.curve_audit import audit_curves, audit_gaussian
from tacit.auditing.models.gradient_canaries import observe_steps
from tacit.auditing.models.one_run import Observations, audit_observations
from tacit.auditing.models.trade_offs import profile_of_training
from tacit.noise.source import Source, StreamKey
from tacit.training.clipping import FlatClipping
from tacit.training.gradients import Engine, choose
from tacit.training.plan import TrainingPlan
from tacit.training.step import PrivateStep

DELTA = 1e-5
CASES = ((1.0, 1.0, 1), (2.0, 1.0, 10), (0.6, 0.2, 20), (1.0, 0.5, 10))
"""Noise multiplier, sampling rate, steps."""


def loss(model: Any, batch: Any) -> torch.Tensor:
    """The gradient of an example is its row."""
    return model(batch["rows"])[:, 0]  # type: ignore[no-any-return]


def engine_of(dimension: int) -> tuple[torch.nn.Linear, Engine]:
    model = torch.nn.Linear(dimension, 1, bias=False)
    return model, choose(model, loss, [{"rows": torch.randn(size, dimension)} for size in (3, 5)])[0]


def released(
    model: torch.nn.Linear, engine: Engine, rows: torch.Tensor, plan: TrainingPlan, step: int, key: StreamKey
) -> Any:
    PrivateStep(plan, lambda ids: {"rows": rows[list(ids)]}, 64, engine=engine, clipping=FlatClipping(1.0)).run(
        step, key
    )
    assert model.weight.grad is not None
    return model.weight.grad[0] * plan.batch


def one_run(multiplier: float, rate: float, steps: int, canaries: int, claimed: float) -> tuple[float, float]:
    """The bound without assumptions, and that for the curves of this training."""
    dimension = canaries + 100
    model, engine = engine_of(dimension)
    key, number = StreamKey.from_os(), iter(range(steps))

    def step(rows: torch.Tensor) -> Any:
        plan = TrainingPlan(len(rows), max(1, round(rate * len(rows))), steps, multiplier, DELTA)
        return released(model, engine, rows, plan, next(number), key)

    seen = observe_steps(step, dimension=dimension, canaries=canaries, steps=steps, norm=50.0, source=Source.from_os())
    single = audit_observations(seen, delta=DELTA, confidence=0.95).epsilon
    return single, curve_bound(seen, rate, steps, claimed)


def curve_bound(seen: Observations, rate: float, steps: int, claimed: float) -> float:
    """With full batches the curve is Gaussian, and the claim chooses how many coins are guessed; with sampling, the
    family is that of all noise multipliers, and the rules are the usual three."""
    if rate == 1:
        return audit_gaussian(seen, delta=DELTA, claim=claimed).epsilon
    return audit_curves(
        seen,
        lambda inverse: profile_of_training(sampling_rate=rate, noise_multiplier=1 / inverse, steps=steps),
        lambda inverse: sgd_epsilon(sampling_rate=rate, noise_multiplier=1 / inverse, steps=steps, delta=DELTA),
        largest=8.0,
        delta=DELTA,
        tolerance=0.02,
    ).epsilon


def many_runs(multiplier: float, rate: float, steps: int, runs: int) -> float:
    """One canary among 20 records; the score is what its coordinate adds up to, and the batch size is 20 rate."""
    model, engine = engine_of(8)
    rows = torch.zeros(21, 8)
    rows[:20, 1:] = torch.randn(20, 7) / 10.0
    rows[20, 0] = 50.0
    scores = np.zeros((2, runs))
    for member in (0, 1):
        here = rows[: 20 + member]
        # The same public normalizer and rate with and without the canary.
        plan = TrainingPlan(len(here), max(1, round(rate * 20)), steps, multiplier, DELTA)
        for run in range(runs):
            key = StreamKey.from_os()
            scores[member, run] = sum(float(released(model, engine, here, plan, step, key)[0]) for step in range(steps))
    half = runs // 2
    best, threshold = -math.inf, 0.0
    for candidate in np.quantile(scores[:, :half], np.linspace(0.005, 0.995, 199)):
        for sign in (1, -1):
            value = _bound(sign * scores[0, :half], sign * scores[1, :half], sign * candidate)
            if value > best:
                best, threshold, side = value, candidate, sign
    return max(0.0, _bound(side * scores[0, half:], side * scores[1, half:], side * threshold))


def _bound(out: Any, inside: Any, threshold: float) -> float:
    """Guess 'inside' above the threshold: epsilon from the two error rates, each at confidence .975."""
    wrong, missed = int((out > threshold).sum()), int((inside <= threshold).sum())
    fpr, fnr = float(at_most(wrong, len(out), 0.025)), float(at_most(missed, len(inside), 0.025))
    return math.log((1 - DELTA - fnr) / fpr) if 1 - DELTA - fnr > 0 else 0.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=4000)
    parser.add_argument("--canaries", type=int, default=1000)
    given = parser.parse_args()
    torch.set_num_threads(1)
    print(" noise  rate steps  claimed  one run  share   curves  share many runs  share")
    for multiplier, rate, steps in CASES:
        claimed = sgd_epsilon(sampling_rate=rate, noise_multiplier=multiplier, steps=steps, delta=DELTA)
        single, curves = one_run(multiplier, rate, steps, given.canaries, claimed)
        many = many_runs(multiplier, rate, steps, given.runs) if given.runs else 0.0
        verdict = "" if max(single, curves, many) <= claimed else "   EXCEEDED"
        print(
            f"{multiplier:6.2f} {rate:5.2f} {steps:5} {claimed:8.3f} {single:8.3f} {single / claimed:6.2f} "
            f"{curves:8.3f} {curves / claimed:6.2f} {many:9.3f} {many / claimed:6.2f}{verdict}",
            flush=True,
        )


if __name__ == "__main__":
    main()
