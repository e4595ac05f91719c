"""The law of the next token, from what a language model says after each private record of a batch.

Record i gives one number z_i(v) for each candidate token v: the logits of a public model after a public prompt with
record i in it and the tokens released so far. They are bounded, each record on its own,

    "logits"       w_i = max(z_i - max z_i + c, -c)                              (Amin et al. 2024)
    "difference"   w_i = min(max(2 (l_i - l_0) - c / 2, -c), c),  l = z - ln sum exp z    (after Vinod et al. 2025)

where l_0 comes from the same prompt without a record, rounded to whole steps of the public grid 2^-12, and added up
exactly, as integers. With the *planned* size s of the batch and a temperature T, token v is drawn with probability
proportional to

    exp( (b(v) + (1/s) sum_i w_i(v)) / T ),       b = 0 for "logits", b = l_0 for "difference".

**Guarantee of one token** (add or remove one record, given the tokens before it, which are released). b, the
candidates, s and T are functions of released and public data. One record more adds w(v), between -c and +c, to every
sum, so every log-weight moves between -a and +a with a = c / (s T): a choice of bounded range 2 a, which is
2a-differentially private and (2a)^2 / 8 zero-concentrated (`tacit.account.zcdp`). Division by the number of records
that the batch *has* would break this: all log-weights would then be scaled by another number. Replacing a record moves
every sum by up to 2c: twice the range.

**Rounding.** Sums are exact. The choice among K candidates compares integers; what the rounding of its weights adds to
the range is `rounding_slack(K)`, and it is part of the price. The logits themselves are floating-point numbers, whose
last digits may hang on the row in which a record is computed. The proof needs that the numbers of all *other* records
are bit by bit the same with a record more or less, however many they are. They are, by construction:

- which row a record is computed in is a keyed hash of itself (`tacit.training.prompting.batches.seated`);
- all readings have one constant shape, whatever they hold (`tacit.documents.language_models.reading`), and that the
  numbers of a row do not hang on what other rows hold is checked at the start (`check_rows`);
- a record is bounded on its own (`bounded`), in arrays whose shape is public.

A model whose numbers differ from row to row as much as they can keeps the promise (`tests/training/prompting`). Records
packed one after the other would break it: one at the top moves all others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from tacit.account.zcdp import ROUNDING, choice_rho
from tacit.arrays import Floats, Floats32, Integers
from tacit.errors import BadParameterError
from tacit.noise.choice import draw_rows, integer_weights, probabilities, rounding_slack
from tacit.noise.parameters import positive
from tacit.noise.source import Source

STEPS: Final = 1 << 12
"""Steps of the public grid in a unit of the logits."""
LOWEST: Final = -1e30
GAIN: Final = 2.0
"""By how much the difference to the prediction without a record is enlarged before it is bounded: a small model follows
its prompt too little. On CLINC150, texts that were held out are likelier with it, at the same price."""
CENTER: Final = 0.5
"""Where the middle of the interval for differences lies, in units of the bound: it reaches from -c/2 to 3c/2, because a
record that makes a token likelier says more than one that makes it less likely. Only the width is paid for: a shift of
all tokens alike changes no law."""

Bounding = Literal["logits", "difference"]


@dataclass(frozen=True)
class AveragedLaw:
    """The public numbers of the law of a token.

    clip         c: how far the numbers of a record reach to both sides
    temperature  T
    batch        s: the planned number of records of a batch
    bounding     of the logits themselves, or of their difference to the prediction without a record
    changes      records that differ between neighbors: 1 that comes or goes, 2 where one takes the place of another
    """

    clip: float
    temperature: float
    batch: int
    bounding: Bounding = "difference"
    changes: int = 1

    def __post_init__(self) -> None:
        positive(self.clip, "the bound of the logits")
        positive(self.temperature, "the temperature")
        if self.batch < 1:
            raise BadParameterError(
                "impossible-batch", "a batch is planned for at least 1 record, not {batch}", batch=self.batch
            )
        if self.bound < 1:
            raise BadParameterError(
                "clip-below-grid",
                "a bound of {clip:g} is less than one step of the grid ({step:g}): give a larger one",
                clip=self.clip,
                step=1 / STEPS,
            )

    # The price ------------------------------------------------------------------------------------------------

    @property
    def bound(self) -> int:
        """The largest number of a record, in steps."""
        return int(self.clip * STEPS)

    def width(self, candidates: int) -> float:
        """The range of the choice of one token, and its pure epsilon: never below the truth."""
        steps = self.changes * self.bound
        return (2.0 * steps / (self.batch * self.temperature * STEPS) + rounding_slack(candidates)) * (1 + ROUNDING)

    def rho(self, candidates: int) -> float:
        """The zero-concentrated price of one token."""
        return choice_rho(self.width(candidates))

    # The law --------------------------------------------------------------------------------------------------

    def bounded(self, logits: Floats32, reference: Floats32 | None = None) -> Integers:
        """The numbers of each record (rows, candidates), in whole steps between -bound and +bound.

        A function of each row alone and of public data: `reference`, the logits without a record (candidates). Every
        row is worked on by itself, so that the shape of the arrays does not hang on the number of records.
        """
        base = None if reference is None or self.bounding == "logits" else _log_law(_finite(reference))
        steps: Integers = np.empty(logits.shape, dtype=np.int64)
        for record, row in enumerate(logits):
            steps[record] = self._steps_of_record(np.ascontiguousarray(row), base)
        return steps

    def _steps_of_record(self, logits: Floats32, base: Floats32 | None) -> Integers:
        finite = _finite(logits)
        if self.bounding == "logits":
            numbers = finite - finite.max() + np.float32(self.clip)
        else:
            assert base is not None
            numbers = np.float32(GAIN) * (_log_law(finite) - base) - np.float32(CENTER * self.clip)
        steps = np.rint(np.clip(numbers, -self.clip, self.clip) * np.float32(STEPS)).astype(np.int64)
        clipped: Integers = np.clip(steps, -self.bound, self.bound)
        return clipped

    def weights(self, sums: Integers, reference: Floats32 | None = None) -> Integers:
        """Integer weights (1, candidates) of the next token, from the exact sums of the numbers of all records."""
        totals = sums
        if self.bounding == "difference":
            assert reference is not None
            base = np.rint(_log_law(_finite(reference)).astype(np.float64) * STEPS)
            totals = sums + self.batch * np.maximum(base, -64 * STEPS).astype(np.int64)
        scale = 1.0 / (self.batch * self.temperature * STEPS)
        exponents: Floats = (totals.max() - totals).astype(np.float64) * scale
        return integer_weights(exponents[None])

    def law(self, sums: Integers, reference: Floats32 | None = None) -> Floats:
        """The exact probabilities of `draw`."""
        law: Floats = probabilities(self.weights(sums, reference))[0]
        return law

    def draw(self, sums: Integers, reference: Floats32 | None, source: Source) -> int:
        """The place of a candidate, drawn by integers."""
        return int(draw_rows(self.weights(sums, reference), np.ones(1, dtype=np.int64), source)[0])


def _finite(logits: Floats32) -> Floats32:
    """The logits, with the smallest number in place of one that is none: every record has numbers."""
    clean: Floats32 = np.nan_to_num(
        np.asarray(logits, dtype=np.float32), nan=LOWEST, posinf=-LOWEST, neginf=LOWEST
    ).clip(LOWEST, -LOWEST)
    return clean


def _log_law(logits: Floats32) -> Floats32:
    """Log-probabilities over the candidates."""
    shifted = logits - logits.max()
    law: Floats32 = shifted - np.log(np.exp(shifted).sum())
    return law
