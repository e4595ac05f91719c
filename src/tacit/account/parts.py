"""A budget in two parts, which together are never more than the whole."""

from __future__ import annotations

import math
from fractions import Fraction


def in_two_parts(whole: float, share: float | Fraction) -> tuple[float, float]:
    """About `share` of a budget, and the rest. Their sum, exact or in double precision, is not above the whole: a fifth
    of 2.85 and what is left of it would add up to more, and the card of both would say so.

    >>> in_two_parts(2.0, 0.25)
    (0.5, 1.5)
    """
    first = float(Fraction(share) * Fraction(whole))
    rest = whole - first
    while Fraction(first) + Fraction(rest) > Fraction(whole):
        rest = math.nextafter(rest, 0.0)
    return first, rest
