"""Sketches of several sites as one: sums add up, and so do the variances of their noise.

The promise of the merged sketch, and of all its parts together:

* disjoint: it was declared that every record (or user) is at one site only. Then whichever record is asked about, only
  one part was computed from it, and the largest epsilon and delta of the parts hold (parallel composition).
* otherwise a record may be in every part. The parts are Gaussian mechanisms of sensitivity 1 with independent noise
  sigma_1, sigma_2, …; all of them together are one Gaussian mechanism of sensitivity sqrt(sum of 1 / sigma_i^2) and
  noise 1 (scale every part by its sigma). The epsilon is that of this mechanism at the sum of the deltas; since that
  formula is exact, it is never above the sum of the epsilons. Sketches without delta have Laplace noise; all of them
  together have the sum of their epsilons, and no delta either. So have sketches whose labels were paid for: a list of
  labels is no Gaussian mechanism.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tacit.errors import BadInputError, BadParameterError
from tacit.guarantee import Guarantee, Notion
from tacit.matching.artifact import DIGEST_PARAMETER, content_digest
from tacit.matching.sketch import MECHANISM, SENSITIVITY, Sketch
from tacit.noise.gaussian import analytic_gaussian_sigma, gaussian_epsilon

NOT_DISJOINT = "a record may be in several of the merged sketches: their budgets were composed"
SUMMED = "noise of the parts, added up: deviation {scale:.6g} on every number"


def merge_sketches(sketches: Sequence[Sketch], *, disjoint: bool = False) -> Sketch:
    """The sum of sketches with the same feature map and labels.

    disjoint   whether it is declared that no record (or user) is in two of them
    """
    if len(sketches) < 2:
        raise BadParameterError("nothing-to-merge", "give at least two sketches to merge")
    first = sketches[0]
    _check_same(sketches)
    step = min(sketch.step for sketch in sketches)
    totals = np.sum([sketch.totals * (sketch.step // step) for sketch in sketches], axis=0)
    side = np.sum([sketch.side * (sketch.step // step) for sketch in sketches], axis=0)
    variance = math.fsum(sketch.noise_variance for sketch in sketches)
    guarantee = _promise(sketches, variance, disjoint=disjoint)
    return replace(first, totals=totals, side=side, step=step, noise_variance=variance, guarantee=guarantee)


def _check_same(sketches: Sequence[Sketch]) -> None:
    first = sketches[0]
    for other in sketches[1:]:
        if other.feature_map != first.feature_map:
            raise BadInputError(
                "other-features-of-part", "these sketches have different features: build them with the same options"
            )
        if other.rule.names != first.rule.names or _kind(other) != _kind(first):
            raise BadInputError(
                "other-labels-of-part",
                "these sketches have different labels: build them with the same public list, in the same order",
            )
        if other.guarantee.unit is not first.guarantee.unit:
            raise BadInputError(
                "other-unit-of-part", "one of these sketches protects users and another records: build them alike"
            )
    if len({content_digest(sketch) for sketch in sketches}) < len(sketches):
        raise BadInputError("part-twice", "one sketch is given twice: merge each only once")


def _kind(sketch: Sketch) -> dict[str, object]:
    """The labels of a sketch without what only the site itself did."""
    facts = sketch.rule.to_dict()
    columns = facts.get("columns")
    if isinstance(columns, list):
        facts["columns"] = [_of_all_sites(column) for column in columns]
    return _of_all_sites(facts)


def _of_all_sites(facts: dict[str, object]) -> dict[str, object]:
    return {name: value for name, value in facts.items() if name not in ("declared", "other", "bought")}


def _promise(sketches: Sequence[Sketch], variance: float, *, disjoint: bool) -> Guarantee:
    parts = [sketch.guarantee for sketch in sketches]
    if disjoint:
        whole = parts[0].beside(*parts[1:])
    else:
        whole = parts[0].then(*parts[1:])
        if whole.notion is Notion.APPROXIMATE and all(part.mechanism == MECHANISM for part in parts):
            whole = replace(whole, epsilon=_joint_epsilon(sketches, whole.delta))
        whole = whole.also_assuming(NOT_DISJOINT)
    parameters = {name: value for name, value in parts[0].parameters.items() if name != DIGEST_PARAMETER}
    parameters |= {
        "merged sketches": f"{len(parts):,}, {'of disjoint data' if disjoint else 'composed'}",
        "noise": SUMMED.format(scale=math.sqrt(variance)),
    }
    return replace(whole, parameters=parameters)


def _joint_epsilon(sketches: Sequence[Sketch], delta: float) -> float:
    """The epsilon of all parts together. The noise of a part is taken as its promise says, which is never more than
    what was added."""
    inverse = math.fsum(1 / sketch_sigma(sketch) ** 2 for sketch in sketches)
    return gaussian_epsilon(1.0, delta, SENSITIVITY * math.sqrt(inverse))


def sketch_sigma(sketch: Sketch) -> float:
    """The least noise that the promise of a sketch stands for."""
    return analytic_gaussian_sigma(sketch.guarantee.epsilon, sketch.guarantee.delta, SENSITIVITY)
