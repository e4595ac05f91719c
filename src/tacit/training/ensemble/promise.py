"""The guarantee of tokens that an ensemble gives, and the band that a budget allows.

A token is pure e0 differentially private (`band`), also given all tokens before it: whoever asks may choose the next
prompt by what came out. T tokens are T e0^2 / 2 zero-concentrated private, or T e0 pure where that is less. Every token
that may be drawn counts, those behind a token that ends an answer too: how many there are is fixed before.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from tacit.account.zcdp import epsilon_of_rho, pure_rho, repeated_rho, rho_of_epsilon
from tacit.errors import BadParameterError
from tacit.guarantee import Adjacency, Guarantee, Model, Notion, Unit
from tacit.training.ensemble.band import NARROWEST, WIDEST, Band

CHANGED = {Adjacency.ADD_REMOVE: 1, Adjacency.REPLACE_ONE: 2}
"""How many shards differ between neighbors: another user in the place of one may belong to another shard."""


@dataclass(frozen=True)
class TokenBudget:
    """So many tokens of an ensemble, and what they cost one unit of its data."""

    band: Band
    tokens: int
    delta: float
    unit: Unit
    adjacency: Adjacency = Adjacency.ADD_REMOVE

    def __post_init__(self) -> None:
        if self.tokens < 1:
            raise BadParameterError("impossible-count", "at least 1 token is drawn, not {count}", count=self.tokens)

    @property
    def token_epsilon(self) -> float:
        return self.band.token_epsilon(CHANGED[self.adjacency])

    def cost(self) -> tuple[float, float]:
        """Epsilon and delta of all tokens."""
        pure = self.tokens * self.token_epsilon * (1 + 1e-12)
        concentrated = epsilon_of_rho(repeated_rho(pure_rho(self.token_epsilon), self.tokens), self.delta)
        return (pure, 0.0) if pure <= concentrated else (concentrated, self.delta)

    def guarantee(self) -> Guarantee:
        epsilon, delta = self.cost()
        unit = self.unit.value
        return Guarantee(
            notion=Notion.APPROXIMATE if delta else Notion.PURE,
            epsilon=epsilon,
            delta=delta,
            model=Model.CENTRAL,
            unit=self.unit,
            adjacency=self.adjacency,
            mechanism="tokens of an ensemble inside a band",
            parameters={
                "shards": self.band.shards,
                "tokens in all": self.tokens,
                "up": self.band.up,
                "down": self.band.down,
                "way": self.band.way,
                "epsilon of a token": self.token_epsilon,
            },
            not_covered=(
                "the prompts: they are read as they are, and whoever sees the answers may see them",
                "the models of the shards and their folder, which stay with whoever trained them",
                "how long an answer takes to draw",
                f"other answers about the same data: each call adds up, and a ledger counts them per {unit}",
            ),
            assumptions=(
                f"one {unit} has one name, or one text, by which the shard is chosen",
                "the number of shards and all options were chosen without looking at the private text",
            ),
        )


def band_for(epsilon: float, shards: int, *, tokens: int, delta: float, adjacency: Adjacency, like: Band) -> Band:
    """The widest band, as far up as down, whose tokens together cost at most epsilon; otherwise as `like`."""
    pure = epsilon / tokens
    concentrated = math.sqrt(2 * rho_of_epsilon(epsilon, delta) / tokens)
    changed = CHANGED[adjacency]
    # (N - K + K e^w) / N = e^e0 for the whole width w = u + d.
    width = math.log1p(shards * math.expm1(max(pure, concentrated)) / changed)
    half = min(WIDEST, width / 2)
    while half >= NARROWEST:
        band = replace(like, shards=shards, up=half, down=half)
        if TokenBudget(band, tokens, delta, Unit.RECORD, adjacency).cost()[0] <= epsilon:
            return band
        half *= 1 - 1e-6  # the factors of a band are rounded, and so are all bounds
    raise BadParameterError(
        "budget-below-band",
        "epsilon {epsilon:g} is too little for {tokens:,} tokens of {shards} shards: ask for fewer tokens, or train "
        "more shards",
        epsilon=epsilon,
        tokens=tokens,
        shards=shards,
    )
