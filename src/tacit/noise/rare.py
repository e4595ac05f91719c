"""Noise on very many zeros, of which only those that pass a threshold are looked at: simulated, with the same law.

Each of N zeros gets normal noise on a grid, and those that are at least `least` steps are kept. N may be billions, so
they are not drawn one by one. With p = Phi(-(least - 1/2) / sigma), the probability that one passes,

1. the number that pass is Binomial(N, p);
2. their values are independent, each with the law of one that passes (`rounded_normal_above`);
3. which of them pass is, by symmetry, a uniform choice without repetition, which the caller makes.

The binomial number is found by comparing a uniform number of 256 bits with sums of its probabilities, computed with
`DIGITS` digits. The sums begin with (1 - p)^N, which is no number of the computer where N p is above 2.3 million, so
trials are cut into pieces of at most `MOST_EXPECTED` expected successes each and their numbers added: the sum of
binomial numbers with the same p is binomial. The two laws differ by less than 10**-60 in total variation for each
piece, far below what a delta can state.
"""

from __future__ import annotations

import math
from decimal import Context, Decimal
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from tacit.errors import BadParameterError
from tacit.noise.normal import rounded_normal_above, uniform_words
from tacit.noise.source import Source

DIGITS = 100
UNIFORM_WORDS = 4
MOST_EXPECTED = 1_000
HALF = Decimal("0.5")


def passing_zeros(count: int, sigma: float, least: int, source: Source) -> NDArray[np.int64]:
    """The noise, in steps, of those of `count` zeros that are at least `least` with normal noise of `sigma` steps."""
    chosen = binomial(count, upper_tail(Fraction(2 * least - 1, 2) / Fraction(sigma)), source)
    return rounded_normal_above(chosen, sigma, least, uniform_words(source))


@lru_cache(maxsize=64)
def upper_tail(t: Fraction) -> Decimal:
    """Phi(-t), with about `DIGITS` - 20 digits for t up to 12.

    Phi(-t) = 1/2 - phi(t) (t + t^3 / 3 + t^5 / (3 5) + ...), whose terms are all of one sign.
    """
    context = Context(prec=DIGITS + 40)
    x = context.divide(Decimal(t.numerator), Decimal(t.denominator))
    square = context.multiply(x, x)
    term, total, odd = x, x, 1
    while term != 0 and abs(term) > abs(total) * Decimal(10) ** -(DIGITS + 30):
        odd += 2
        term = context.divide(context.multiply(term, square), Decimal(odd))
        total = context.add(total, term)
    root = context.sqrt(context.multiply(Decimal(2), _PI))
    density = context.divide(context.exp(context.divide(-square, Decimal(2))), root)
    tail = context.subtract(Decimal("0.5"), context.multiply(density, total))
    if tail <= 0:
        raise BadParameterError("impossible-scale", "the threshold is too many deviations away to be computed")
    return tail


_PI = Decimal(
    "3.14159265358979323846264338327950288419716939937510582097494459230781640628620899862803482534211706798214808651"
    "328230664709384460955058223172535940812848111745"
)


def binomial(count: int, probability: Decimal, source: Source) -> int:
    """A Binomial(count, probability) number, piece by piece."""
    if count <= 0 or probability <= 0:
        return 0
    if probability > HALF:
        return count - binomial(count, Context(prec=DIGITS).subtract(Decimal(1), probability), source)
    size = math.ceil(MOST_EXPECTED / probability)
    whole, rest = divmod(count, size)
    sizes = [size] * whole + [rest] * (rest > 0)
    return sum(_binomial_piece(trials, probability, source) for trials in sizes)


def _binomial_piece(count: int, probability: Decimal, source: Source) -> int:
    """A Binomial(count, probability) number, by its inverse distribution function."""
    words = uniform_words(source)(UNIFORM_WORDS)
    context = Context(prec=DIGITS)
    uniform = context.divide(
        Decimal(sum(int(word) << (64 * place) for place, word in enumerate(words))), Decimal(2 ** (64 * UNIFORM_WORDS))
    )
    fails = context.subtract(Decimal(1), probability)
    odds = context.divide(probability, fails)
    mass = context.exp(context.multiply(Decimal(count), context.ln(fails)))
    total, drawn = mass, 0
    while uniform >= total and drawn < count:
        mass = context.multiply(
            mass, context.divide(context.multiply(odds, Decimal(count - drawn)), Decimal(drawn + 1))
        )
        total = context.add(total, mass)
        drawn += 1
    return drawn
