"""The law of one token: the models of N shards answer together, each held inside a band around a public model.

    p_0   the public model's next-token probabilities         p_i   those of the model of shard i
    q_i   p_i, moved until  e^-d p_0 <= q_i <= e^u p_0  holds for every token
    a token is drawn from  q = (q_1 + ... + q_N) / N

**Guarantee.** Let one shard be anything else, hence any user or record in it: only its q_i changes, and it stays in the
band. For every token y, with L = e^-d p_0(y) and U = e^u p_0(y),

    q(y) / q'(y)  <=  ((N - 1) s + U) / ((N - 1) s + L),   s >= L the mean of the other q_k(y),
                  <=  ((N - 1) L + U) / (N L)  <=  (N - 1 + e^(u + d)) / N,

because the quotient falls when s grows. So a token is pure ln((N - 1 + e^(u + d)) / N) differentially private, and the
bound is reached. K shards that change give (N - K + K e^(u + d)) / N in the same way: two for a user who is replaced by
another one, since the hash of the other may choose another shard. T tokens compose, each given those before it
(`account.zcdp`). Nothing is asked of the p_i: they may be overfitted, wrong, not even numbers.

**Whole numbers.** The law that is drawn is exactly  (1/N) sum of Q_i(y) / TOTAL  with whole numbers Q_i(y). Public
whole numbers W(y) >= 1 that add up to TOTAL stand for p_0, and

    ceil(W * down / 2^20) <= Q_i <= floor(W * up / 2^20),    sum of Q_i = TOTAL,

for whole numbers  down = ceil(2^20 e^-d)  and  up = floor(2^20 e^u),  so U / L <= up / down holds for the whole numbers
themselves and the promise is made from them: nothing of floating point is left in it. A Q_i with these two properties
always exists (W is one), and `held` repairs whatever rounding has done to its sum inside the band. The one thing that
must not hang on the private data is W: the caller computes p_0 alone, from the public model and the tokens so far.

**Drawing.** A token of a shard that was drawn uniformly and secretly has the law q: one shard has to be asked, not N.

Two ways into the band: `nearest` takes min(max(c p_i, L), U) with the c that makes it add up to one: of all laws in the
band it is the one nearest to p_i (in Kullback-Leibler divergence, by its optimality conditions). `mixed` is the line
from p_0 to p_i (after SubMix and PMixED), q_i = l p_i + (1 - l) p_0 with the largest l that fits: a single token whose
probability grows a lot then takes everything back to the public model.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Literal, get_args

import numpy as np

from tacit.arrays import Floats, Integers
from tacit.errors import BadParameterError, check_choice
from tacit.noise.choice import draw_rows
from tacit.noise.source import Source

TOTAL_BITS: Final = 38
TOTAL: Final = 1 << TOTAL_BITS
"""Weights of a law add up to this. A token has at least the weight 1: it may always come out."""
FACTOR_BITS: Final = 20
WIDEST: Final = 3.0
"""The widest half of a band: W * up stays below 2^63."""
NARROWEST: Final = 1e-3
"""The narrowest half of a band: e^0.001 is well apart from 1 in steps of 2^-20."""
HALVINGS: Final = 64
LEAST_SHARE: Final = 1e-9

Way = Literal["nearest", "mixed"]


@dataclass(frozen=True)
class Band:
    """How far the model of a shard may pull a token: up by e^`up`, down by e^-`down`, around the public model.

    shards   the number N of models, a public number
    way      how a law is brought into the band
    """

    shards: int
    up: float = 0.5
    down: float = 0.5
    way: Way = "nearest"

    def __post_init__(self) -> None:
        if self.shards < 2:
            raise BadParameterError(
                "impossible-count", "an ensemble has at least 2 shards, not {count}", count=self.shards
            )
        for half in (self.up, self.down):
            if not NARROWEST <= half <= WIDEST:
                raise BadParameterError(
                    "impossible-band",
                    "a band reaches up and down by numbers from {narrowest:g} to {widest:g}, not {half}",
                    narrowest=NARROWEST,
                    widest=WIDEST,
                    half=half,
                )
        check_choice(self.way, get_args(Way), code="unknown-way", what="way into the band")

    @property
    def up_factor(self) -> int:
        """Not above 2^20 e^up."""
        return math.floor(math.exp(self.up) * (1 - 1e-12) * 2**FACTOR_BITS)

    @property
    def down_factor(self) -> int:
        """Not below 2^20 e^-down."""
        return math.ceil(math.exp(-self.down) * (1 + 1e-12) * 2**FACTOR_BITS)

    def largest_ratio(self, changed: int = 1) -> Fraction:
        """The largest quotient of two probabilities of a token when so many shards change: a proven bound, exact."""
        if not 1 <= changed <= self.shards:
            raise BadParameterError("impossible-count", "{count} shards cannot change", count=changed)
        return (self.shards - changed + changed * Fraction(self.up_factor, self.down_factor)) / self.shards

    def token_epsilon(self, changed: int = 1) -> float:
        """The pure epsilon of one token, rounded up."""
        growth = self.largest_ratio(changed) - 1
        return math.log1p(float(growth)) * (1 + 1e-12)

    # Whole numbers ----------------------------------------------------------------------------------------------

    def lowest(self, public: Integers) -> Integers:
        result: Integers = -((-public * self.down_factor) >> FACTOR_BITS)
        return result

    def highest(self, public: Integers) -> Integers:
        result: Integers = (public * self.up_factor) >> FACTOR_BITS
        return result

    def held(self, public: Integers, law: Floats) -> Integers:
        """The weights of a shard: those of its law, inside the band around the public weights, adding up to `TOTAL`.

        law   its probabilities, of which nothing is assumed: what is no law becomes the public one
        """
        low, high = self.lowest(public), self.highest(public)
        total = float(law.sum()) if law.shape == public.shape and bool(np.isfinite(law).all()) else 0.0
        if not (total > 0 and math.isfinite(total) and float(law.min()) >= 0):
            return public.copy()
        wanted = law * (TOTAL / total)
        moved = self._nearest(wanted, public, low, high) if self.way == "nearest" else self._mixed(wanted, public)
        weights = np.clip(np.floor(np.clip(moved, 0.0, 2.0**TOTAL_BITS)).astype(np.int64), low, high)
        return with_total(weights, low, high)

    def _nearest(self, wanted: Floats, public: Integers, low: Integers, high: Integers) -> Floats:
        """min(max(c * wanted, low), high) for the c that makes it add up, found by halving an interval of ln c."""
        lowest, highest = low.astype(np.float64), high.astype(np.float64)
        # Where a law has zeros, the rest is spread as the public model would.
        positive = wanted + LEAST_SHARE * public
        begin = float(np.log(lowest / positive).min())  # here all tokens lie at the low end of the band
        end = float(np.log(highest / positive).max())
        for _ in range(HALVINGS):
            middle = (begin + end) / 2
            if float(np.clip(positive * math.exp(middle), lowest, highest).sum()) > TOTAL:
                end = middle
            else:
                begin = middle
        result: Floats = np.clip(positive * math.exp(begin), lowest, highest)
        return result

    def _mixed(self, wanted: Floats, public: Integers) -> Floats:
        ratios = wanted / public
        most, least = float(ratios.max()), float(ratios.min())
        up, down = self.up_factor / 2**FACTOR_BITS, self.down_factor / 2**FACTOR_BITS
        share = min(
            1.0,
            (up - 1) / (most - 1) if most > 1 else 1.0,
            (1 - down) / (1 - least) if least < 1 else 1.0,
        )
        result: Floats = share * wanted + (1 - share) * public
        return result

    # Laws -------------------------------------------------------------------------------------------------------

    def mixture(self, public: Integers, laws: Floats) -> Integers:
        """The law of a token times N `TOTAL`, from the laws of all shards, one in a row."""
        sums: Integers = np.sum([self.held(public, law) for law in laws], axis=0)
        return sums


def public_weights(law: Floats) -> Integers:
    """Whole numbers of at least 1 that add up to `TOTAL`, for the probabilities of the public model."""
    outcomes = law.shape[0]
    if not 2 <= outcomes <= 1 << (TOTAL_BITS - 8):
        raise BadParameterError("too-many-outcomes", "a vocabulary of {count} tokens is not possible", count=outcomes)
    total = float(law.sum())
    if not (math.isfinite(total) and total > 0 and float(law.min()) >= 0):
        raise BadParameterError(
            "not-finite", "the public model gives numbers that are no probabilities: check its files"
        )
    weights: Integers = np.floor(law * ((TOTAL - outcomes) / total * (1 - 1e-9))).astype(np.int64) + 1
    weights[int(weights.argmax())] += TOTAL - int(weights.sum())
    return weights


def with_total(weights: Integers, low: Integers, high: Integers) -> Integers:
    """The weights moved inside [low, high] until they add up to `TOTAL`, which must lie between the sums of both."""
    missing = TOTAL - int(weights.sum())
    room = high - weights if missing > 0 else weights - low
    before = np.cumsum(room) - room
    change = np.clip(abs(missing) - before, 0, room)
    repaired: Integers = weights + change if missing > 0 else weights - change
    return repaired


def drawn_token(weights: Integers, source: Source) -> int:
    """A token with the probability weights / sum, by whole numbers."""
    return int(draw_rows(weights[np.newaxis].copy(), np.ones(1, dtype=np.int64), source)[0])


def drawn_shard(shards: int, source: Source) -> int:
    """The shard that answers for the next token: secret, each with the same probability."""
    return int(source.generator.integers(0, shards))
