"""The language all rooms speak: what was promised, to whom, and what was not.

A `Guarantee` is made by the code that adds the noise, from the same numbers. It bounds the privacy loss

    ln( Pr[M(x) = y] / Pr[M(x') = y] )  <=  exponent(x, x')        for all outputs y and all adjacent x, x'

where the exponent is

    pure          epsilon + slack
    approximate   epsilon + slack, for probabilities of events instead of outputs, and up to delta:
                  Pr[M(x) in E] <= exp(epsilon + slack) Pr[M(x') in E] + delta  for all events E
    metric        epsilon * d(x, x') + offset + slack
    utility-optimized metric
                  the metric bound, for *protected* outputs only; every other output reveals its input exactly

With a delta the loss itself may exceed the exponent with a probability larger than delta (`card.plain_sentence` says
what follows for it). `slack` is what finite arithmetic can add at most; it is proven by the sampler, not guessed.

`domain` names the public sets a promise refers to (the output sets of CusText, the sensitive words of SanText+), with a
hash of them: promises about different sets do not add up.

Guarantees compose and convert only where a proof exists, and refuse otherwise. Two guarantees of different notions,
units, adjacencies or metrics are never comparable, whatever their epsilons say.
"""

from __future__ import annotations

from tacit.guarantee.adjacency import Adjacency
from tacit.guarantee.conversion import group_delta
from tacit.guarantee.origins import Exclusion, ExclusionKind, Provenance, ProvenanceKind, VoidReason
from tacit.guarantee.promise import NOTE, Guarantee, check_epsilon
from tacit.guarantee.terms import Metric, MetricKind, Model, Notion, Unit

__all__ = [
    "NOTE",
    "Adjacency",
    "Exclusion",
    "ExclusionKind",
    "Guarantee",
    "Metric",
    "MetricKind",
    "Model",
    "Notion",
    "Provenance",
    "ProvenanceKind",
    "Unit",
    "VoidReason",
    "check_epsilon",
    "group_delta",
]
