"""Lower bounds on the loss of a black box, from samples.

For inputs x, x' draw from M(x) and M(x'). On the first half of the samples choose an event E (a score and a threshold,
see `scores`) and a direction; on the second half count how often E happens, k of n and k' of n. Clopper and Pearson
(1934) give exact one-sided bounds

    Pr[M(x) in E] >= p,    Pr[M(x') in E] <= q        each wrong with probability at most alpha / 2,

and a claim (epsilon, delta) is refuted if p > e^bound q + delta, that is if ln((p - delta) / q) > bound. Because E was
chosen without the second half, no correction for the search is needed; the alpha of a run, 1 - confidence, is divided
by the number of pairs (Bonferroni). So if the claim is true, the chance that *any* pair of a run is called refuted is
at most 1 - confidence.

There are two verdicts: refuted, with the witness, and not refuted at this sample size. n samples can show at most
ln(p / q) with k = n, k' = 0, which is about ln(n / ln(2 / alpha)): a claim above that `ceiling` cannot be refuted by
counting, and the report says so.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats, Ids
from tacit.auditing.binomial import at_least, at_most
from tacit.auditing.claims.claim import Claim
from tacit.auditing.claims.scores import Samples, Score
from tacit.errors import BadInputError, BadParameterError
from tacit.progress import StepProgress
from tacit.report import AtLeast, AtMost, Finding, Light, Section, Table
from tacit.rounding import rounded_down, rounded_up

Sampler = Callable[[int, int], Samples]
"""(input, count) -> that many independent outputs."""

CONFIDENCE = 0.999
THRESHOLDS = 512
NEVER = -1e300
"""The score of an output about which nothing is claimed."""


def epsilon_at_least(k: Floats | int, other: Floats | int, trials: int, delta: float, alpha: float) -> Floats:
    """The lower bound on epsilon at this delta from k and k' of n; minus infinity if there is none."""
    low, high = at_least(k, trials, alpha / 2) - delta, at_most(other, trials, alpha / 2)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(low > 0, np.log(np.maximum(low, 0.0)) - np.log(high), -math.inf)


def ceiling(trials: int, delta: float, alpha: float) -> float:
    """The largest epsilon that so many counted samples can show."""
    return float(epsilon_at_least(trials, 0, trials, delta, alpha))


@dataclass(frozen=True)
class PairBound:
    """The lower bound that the samples of one pair show: with the confidence of the run, the loss is at least
    `epsilon`."""

    left: str
    right: str
    event: str
    hits: int
    other_hits: int
    trials: int
    epsilon: float
    bound: float
    distance: float | None = None

    @property
    def refuted(self) -> bool:
        return self.epsilon > self.bound


@dataclass(frozen=True)
class SampledResult:
    claim: Claim
    pairs: tuple[PairBound, ...]
    confidence: float
    ceiling: float

    @property
    def refuted(self) -> bool:
        return any(pair.refuted for pair in self.pairs)

    @property
    def worst(self) -> PairBound:
        """The pair that comes nearest to refuting the claim, or exceeds it most."""
        return max(self.pairs, key=lambda pair: pair.epsilon - pair.bound)

    @property
    def powerless(self) -> bool:
        """No outcome of this run could have refuted the claim."""
        return all(pair.bound >= self.ceiling for pair in self.pairs)


def sampled_check(
    sample: Sampler,
    claim: Claim,
    pairs: Ids,
    scores: Sequence[Score],
    *,
    samples: int,
    confidence: float = CONFIDENCE,
    names: Sequence[str] | None = None,
    progress: StepProgress | None = None,
) -> SampledResult:
    """Draw `samples` outputs of each input of each pair, choose an event on one half, count it on the other."""
    pairs = np.asarray(pairs, dtype=np.int64).reshape(-1, 2)
    if not 0.5 <= confidence < 1:
        raise BadParameterError(
            "impossible-confidence",
            "confidence lies between 0.5 and 1, for example 0.999, not {confidence:g}",
            confidence=confidence,
        )
    if samples < 20:
        raise BadParameterError(
            "too-few-samples", "{samples} samples show nothing: take at least 20, better 10,000", samples=samples
        )
    if not len(pairs):
        raise BadInputError("too-few-inputs", "give at least one pair of inputs to check")
    alpha = (1.0 - confidence) / len(pairs)
    bounds = claim.bounds(pairs[:, 0], pairs[:, 1])
    distances = None if claim.distance is None else claim.distance.between(pairs[:, 0], pairs[:, 1])
    pair_results = []
    for number, (left, right) in enumerate(pairs.tolist()):
        drawn = _drawn(sample, left, samples), _drawn(sample, right, samples)
        pair_results.append(
            _pair_bound(
                drawn,
                (left, right),
                scores,
                claim.delta,
                alpha,
                names=(_name(names, left), _name(names, right)),
                bound=float(bounds[number]),
                covered=claim.protected,
                distance=None if distances is None else float(distances[number]),
            )
        )
        if progress is not None:
            progress(number + 1, len(pairs))
    return SampledResult(claim, tuple(pair_results), confidence, ceiling(samples - samples // 2, claim.delta, alpha))


def _drawn(sample: Sampler, input: int, count: int) -> Samples:
    drawn = np.asarray(sample(input, count))
    if len(drawn) != count:
        raise BadInputError(
            "wrong-number-of-outputs",
            "the mechanism gave {outputs} outputs where {count} were asked for",
            outputs=len(drawn),
            count=count,
        )
    if drawn.dtype.kind == "f" and not np.isfinite(drawn).all():
        raise BadInputError("not-finite", "the mechanism gave an output that is infinite or not a number")
    return drawn


def _name(names: Sequence[str] | None, input: int) -> str:
    return f"input {input}" if names is None else str(names[input])


def _pair_bound(
    drawn: tuple[Samples, Samples],
    inputs: tuple[int, int],
    scores: Sequence[Score],
    delta: float,
    alpha: float,
    *,
    names: tuple[str, str],
    bound: float,
    distance: float | None,
    covered: NDArray[np.bool_] | None = None,
) -> PairBound:
    half = len(drawn[0]) // 2
    choice = max(
        (
            (
                *_best_threshold(fitted(order[0][:half]), fitted(order[1][:half]), delta, alpha),
                swapped,
                score,
                fitted,
            )
            for score in scores
            for fitted in [score.fit(*inputs, drawn[0][:half], drawn[1][:half])]
            # In the other direction large values of the negative score speak for the second input.
            for swapped, order, fitted in (
                (False, drawn, _among(fitted, covered)),
                (True, drawn[::-1], _among(_negative(fitted), covered)),
            )
        ),
        key=lambda item: item[0],
    )
    _, threshold, swapped, score, fitted = choice
    order = drawn[::-1] if swapped else drawn
    hits, other = (int((fitted(part[half:]) >= threshold).sum()) for part in order)
    trials = len(drawn[0]) - half
    shown = names[::-1] if swapped else names
    return PairBound(
        *shown,
        f"{score.name} {'≤' if swapped else '≥'} {-threshold if swapped else threshold:.4g}",
        hits,
        other,
        trials,
        float(epsilon_at_least(hits, other, trials, delta, alpha)),
        bound,
        distance,
    )


def _negative(fitted: Callable[[Samples], Floats]) -> Callable[[Samples], Floats]:
    return lambda samples: -fitted(samples)


def _among(fitted: Callable[[Samples], Floats], covered: NDArray[np.bool_] | None) -> Callable[[Samples], Floats]:
    """The score among the outputs that the claim covers; all others come last, so that no event is made of them."""
    if covered is None:
        return fitted
    return lambda samples: np.where(covered[samples], fitted(samples), NEVER)


def _best_threshold(first: Floats, second: Floats, delta: float, alpha: float) -> tuple[float, float]:
    """The threshold with the largest lower bound on the samples that choose it, and that bound."""
    values = np.unique(np.concatenate([first, second]))
    if len(values) > THRESHOLDS:
        # Quantiles of each side, so that the tails are well covered.
        ranks = np.linspace(0, 1, THRESHOLDS // 2)
        values = np.unique(np.concatenate([np.quantile(first, ranks), np.quantile(second, ranks)]))
    first, second = np.sort(first), np.sort(second)
    hits = len(first) - np.searchsorted(first, values, side="left")
    other = len(second) - np.searchsorted(second, values, side="left")
    epsilons = epsilon_at_least(hits.astype(np.float64), other.astype(np.float64), len(first), delta, alpha)
    best = int(np.argmax(epsilons))
    return float(epsilons[best]), float(values[best])


# For the report -------------------------------------------------------------------------------------------------------


def sampled_section(result: SampledResult, *, title: str = "Statistical lower bound", text: str = "") -> Section:
    w = result.worst
    trials = w.trials
    sure = f"{100 * result.confidence:g} %"
    counts = f"the event happened {w.hits:,} of {trials:,} times for '{w.left}' and {w.other_hits:,} for '{w.right}'"
    if result.refuted:
        light, sentence = (
            Light.RED,
            (
                f"Refuted: with confidence {sure} the loss between '{w.left}' and '{w.right}' is at least "
                f"{rounded_down(w.epsilon, 4)}, and {rounded_up(w.bound, 4)} is claimed; {counts}."
            ),
        )
    elif result.powerless:
        light, sentence = (
            Light.NONE,
            (
                f"Not refuted, and it could not have been: {trials:,} counted samples can show a loss of at most "
                f"{rounded_up(result.ceiling, 3)}, and the claim allows {rounded_down(w.bound, 4)} or more for every "
                "pair."
            ),
        )
    else:
        light, sentence = (
            Light.GREEN,
            (
                f"Not refuted at this sample size: the largest loss shown with confidence {sure} is "
                f"{rounded_down(max(0.0, max(p.epsilon for p in result.pairs)), 4)}; nearest to its bound came "
                f"'{w.left}' and "
                f"'{w.right}' with {rounded_down(max(0.0, w.epsilon), 4)} of {rounded_up(w.bound, 4)}. That "
                "is no proof of the claim."
            ),
        )
    finding = Finding(
        "Claim against samples",
        light,
        sentence,
        f"If the claim is true, this check calls it refuted with probability at most {1 - result.confidence:.2g} "
        f"(Clopper-Pearson, events chosen on other samples, corrected for {len(result.pairs):,} pairs).",
        refuted=result.refuted,
        numbers={
            "verdict": "refuted" if result.refuted else "not refuted at this sample size",
            "confidence": result.confidence,
            "samples_counted": trials,
            "pairs": len(result.pairs),
            "epsilon_at_least": w.epsilon,
            "allowed": w.bound,
            "delta": result.claim.delta,
            "ceiling": result.ceiling,
            "powerless": result.powerless,
            "witness": {"left": w.left, "right": w.right, "event": w.event, "hits": w.hits, "other_hits": w.other_hits},
        },
    )
    shown = sorted(result.pairs, key=lambda pair: pair.bound - pair.epsilon)[:10]
    table = Table(
        "Pairs nearest to their bound",
        ["input x", "input x'", "event", "times for x", "times for x'", "loss at least", "allowed"],
        [
            [p.left, p.right, p.event, p.hits, p.other_hits, AtLeast(max(0.0, p.epsilon)), AtMost(p.bound)]
            for p in shown
        ],
        note=f"of {trials:,} counted samples each",
    )
    return Section(title, f"{text} Claim: {result.claim}.".strip(), [finding], [table])
