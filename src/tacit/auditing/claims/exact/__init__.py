"""Exact checks: the law of a mechanism against its claim, over all given pairs of inputs and all outputs.

For two inputs x, x' the loss of an output y is ln(Pr[M(x) = y] / Pr[M(x') = y]).

    tightest epsilon   the largest loss; with a delta, the smallest epsilon for which
                       sum over y of max(0, Pr[M(x) = y] - e^epsilon Pr[M(x') = y])  <=  delta      (hockey stick)
    tightest metric    the largest (loss - offset) / d(x, x')
    excess             the largest loss minus its bound; with a delta, the hockey stick at the bound minus delta

Three ways to the same numbers:

    columns   a plain claim without delta needs no pairs at all: the largest loss of an output is the logarithm of the
              largest over the smallest probability in its column
    radial    see `radial`: all pairs of a large vocabulary, for laws that depend on a distance
    pairs     every pair and output, for all others

A positive excess refutes the claim, and the witness can be checked by hand. None proves it for the pairs that were
checked, and for no others. Probabilities are doubles and their logarithms are right to about 1e-15; `tolerance` is far
above that.
"""

from __future__ import annotations

from tacit.auditing.claims.exact.checks import BLOCK_CELLS, MOST_CELLS, check_all, check_pairs, shared_output, words_of
from tacit.auditing.claims.exact.losses import Worst, hockey_stick, log_ratios, result_of, slopes, smallest_epsilon
from tacit.auditing.claims.exact.report import exact_section
from tacit.auditing.claims.exact.result import TOLERANCE, ClaimVerdict, ExactResult, Witness

__all__ = [
    "BLOCK_CELLS",
    "MOST_CELLS",
    "TOLERANCE",
    "ClaimVerdict",
    "ExactResult",
    "Witness",
    "Worst",
    "check_all",
    "check_pairs",
    "exact_section",
    "hockey_stick",
    "log_ratios",
    "result_of",
    "shared_output",
    "slopes",
    "smallest_epsilon",
    "words_of",
]
