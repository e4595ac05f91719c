"""Values of delta that are small enough for a number of records.

(epsilon, delta)-DP allows a mechanism that publishes every record, in full and on its own, with probability
delta. Among n records somebody is then exposed with probability 1 - (1 - delta)**n: 63 % at delta = 1/n, next to
nothing at 1/n**2. So delta belongs well below 1/n.
"""

from __future__ import annotations

import math
from decimal import Decimal

from tacit.errors import BadParameterError
from tacit.noise.parameters import proper_delta


def leak_probability(delta: float, records: int) -> float:
    """1 - (1 - delta)**records: the chance that the worst mechanism with this delta publishes somebody."""
    return -math.expm1(check_records(records) * math.log1p(-proper_delta(delta)))


def check_delta(delta: float, records: int) -> float:
    """Refuse a delta of 1 / records or more."""
    if proper_delta(delta) * check_records(records) >= 1:
        raise BadParameterError(
            "delta-too-large",
            "delta {delta:g} is not below one over the {records:,} records, so publishing a random record in full "
            "would be allowed: give a delta well below {limit:.1g}, for example {example:.1g}",
            delta=delta,
            records=records,
            limit=1 / records,
            example=records ** (-1.5),
        )
    return delta


LEAST_DELTA = 1e-11
"""No smaller delta is chosen by itself: below it the tight accountant has too few digits for long runs and a looser one
takes its place (`account/sgd.py`). It is far below 1 / records for any data."""


def automatic_delta(records: int, releases: int = 1) -> float:
    """Well below 1 / records: records^-1.5, rounded down to one digit, for all releases about these records together.

    The worst mechanism with this delta publishes somebody with probability records^-0.5 at most: one in 260 for 67,349
    records, where records^-1.1 would allow one in four.
    """
    count = float(max(records, 2))
    value = max(count**-1.5, min(LEAST_DELTA, count**-1.1)) / check_trials(releases)
    # Of its shortest decimal digits the first: 3e-05, and not 3.0000000000000004e-05.
    digit, _, place = f"{Decimal(repr(value)):E}".partition("E")
    return float(f"{digit[0]}e{place}")


def check_trials(trials: int) -> int:
    if trials < 1:
        raise BadParameterError(
            "too-few-trials", "{option.trials} counts runs, so it is at least 1, not {trials}", trials=trials
        )
    return trials


def check_records(records: int) -> int:
    """The number of records; none are refused."""
    if records < 1:
        raise BadParameterError(
            "impossible-count", "the number of records must be at least 1, not {records}", records=records
        )
    return records
