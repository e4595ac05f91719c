"""Numbers for people that stay true: an upper bound is rounded up, a lower bound down.

A bound on a privacy loss that is shown smaller than it is promises more than was proven. So every such number (odds,
epsilon, delta, slack, totals) goes through `rounded_up`, and what is only known to be at least so large (what an
attack has shown, what is left of a budget) through `rounded_down`.

A float stands for the shortest decimal number that reads back as the same float: 0.1 is shown as 0.1, not as the 0.101
that its binary digits would ask for. So `float(rounded_up(x)) >= x` and `float(rounded_down(x)) <= x` for every x.
"""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal

DIGITS = 6
SMALLEST_POSITIONAL, LARGEST_POSITIONAL = -4, 14
"""Numbers below 10^-4 or of more than 15 digits are written with an exponent."""
_EXACT = Context(prec=800)
"""Enough digits for any double in positional notation, so that nothing is rounded but where it is meant to be."""
_TRANSCENDENT = Context(prec=60)


def rounded_up(value: float, digits: int = DIGITS) -> str:
    """The smallest number of so many significant digits that is not below the value (whole units at least)."""
    return _rounded(value, digits, ROUND_CEILING)


def rounded_down(value: float, digits: int = DIGITS) -> str:
    """The largest number of so many significant digits that is not above the value (whole units at least)."""
    return _rounded(value, digits, ROUND_FLOOR)


def exact(value: float) -> str:
    """The number with all its digits, as a command takes it: nothing is rounded."""
    return repr(float(value)).removesuffix(".0")


def exponential_up(exponent: float, digits: int) -> str:
    """e^exponent, rounded up."""
    if exponent == 0:
        return "1"
    # e to a rational power other than 0 is irrational, so 60 digits are never exact; the last one is moved up.
    power = _TRANSCENDENT.exp(Decimal(float(exponent)))
    return _shown(_cut(_TRANSCENDENT.next_plus(power), digits, ROUND_CEILING))


def power_of_ten_up(exponent: float) -> str:
    """The smallest power of ten that is not below e^exponent."""
    log = _TRANSCENDENT.divide(Decimal(float(exponent)), _TRANSCENDENT.ln(Decimal(10)))
    return f"10^{int(_TRANSCENDENT.next_plus(log).to_integral_value(ROUND_CEILING))}"


def _rounded(value: float, digits: int, rounding: str) -> str:
    value = float(value)
    if math.isnan(value):
        return "not a number"
    if math.isinf(value):
        return "infinite" if value > 0 else "-infinite"
    return _shown(_cut(Decimal(repr(value)), digits, rounding))


def _cut(number: Decimal, digits: int, rounding: str) -> Decimal:
    if number == 0:
        return Decimal(0)
    last = number.adjusted() - digits + 1
    if number.adjusted() <= LARGEST_POSITIONAL:
        last = min(0, last)
    return number.quantize(Decimal(1).scaleb(last), rounding=rounding, context=_EXACT)


def _shown(number: Decimal) -> str:
    if number == 0:
        return "0"
    power = number.adjusted()
    if SMALLEST_POSITIONAL <= power <= LARGEST_POSITIONAL:
        text = f"{number:,f}"
        return text.rstrip("0").rstrip(".") if "." in text else text
    mantissa = f"{number.scaleb(-power, context=_EXACT):f}"
    if "." in mantissa:
        mantissa = mantissa.rstrip("0").rstrip(".")
    return f"{mantissa}e{power:+03d}"
