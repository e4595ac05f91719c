"""The joint code: a label and a text of one record become a pair (label, public sentence), by one choice.

Public, fixed before any private record is seen: L labels and the k cells of a codebook (`codebook`), so L k pairs.

    near(y, x)  =  the s pairs of the label y with one of the s cells nearest to x       exactly s, whatever y and x are
    (z, c)      ~  Pr[z, c | y, x] = t / Z  if (z, c) in near(y, x),  else  w / Z,        Z = s t + (L k - s) w

Guarantee: epsilon-differential privacy, delta = 0, for one whole record (text, its length and its label) against any
other record.

Proof. y and x enter the release only through (z, c). For all records (y, x), (y', x') and all pairs (z, c), both
probabilities are t / Z or w / Z with the *same* Z, because near(y, x) and near(y', x') both have exactly s of the L k
pairs. So their ratio is at most t / w, and t, w are integers with t <= w e^epsilon (`staircase_shares` for L k cells).
The draw compares one uniform integer below Z with exact integer thresholds, so this law is the law, without slack.

One choice is better than two (a response for the label and a staircase for the text, which share epsilon): what is
drawn from near(y, x) has the right label *and* a near sentence, and what is not is spread evenly, which
`tacit.matching.decoding` takes out again.

s is chosen on public text, in closed form. The part of the releases that have the label y and lean towards x is

    E[ 1(z = y) (cos(f(x), f(c)) - chance) ]  =  (e^epsilon - 1) (N_k(s) - s chance) / ((e^epsilon - 1) s + L k)

with N_k(s) as in `codebook_public`; for L = 1 it is the gain that is maximized there. The standard error of the mean of
a label's vectors, estimated from all releases, is proportional to one over it where labels are equally frequent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tacit.arrays import Floats, Integers
from tacit.documents.staircase import staircase_law, staircase_shares
from tacit.guarantee import Guarantee, Unit
from tacit.labels import GIVEN
from tacit.noise.source import Source


def draw_pairs(
    order: Integers, labels: Integers, count: int, s: int, epsilon: float, source: Source
) -> tuple[Integers, Integers]:
    """A label and a cell for each row: `order` has all cells of a row with the s nearest first, `labels` its label as a
    number below `count`."""
    rows, k = order.shape
    t, w = staircase_shares(epsilon, count * k, s)
    ticket = source.generator.integers(0, s * t + (count * k - s) * w, size=rows)
    # The places of a row: s near cells and k - s others with its own label, then all cells with each other label.
    place = np.where(ticket < s * t, ticket // t, s + (ticket - s * t) // w)
    other, cell = np.divmod(place - k, k)
    own = place < k
    drawn = np.where(own, labels, other + (other >= labels))
    return drawn, np.where(own, order[np.arange(rows), np.minimum(place, k - 1)], cell)


def pair_law(near: Sequence[int] | Integers, label: int, count: int, k: int, epsilon: float) -> Floats:
    """The exact probabilities of all pairs, label by label, for a record with this label and these near cells."""
    return staircase_law(np.asarray(near, dtype=np.int64) + label * k, count * k, epsilon)


def of_record(promised: Guarantee, count: int) -> Guarantee:
    """The promise of a codebook for a text and its label, one of `count`, which are one choice."""
    covered = f"{count:,}, given publicly; text, length and label are one choice and covered by one epsilon"
    return replace(
        promised,
        unit=Unit.RECORD,
        parameters={**promised.parameters, "labels": covered},
        not_covered=("columns left beside the text and its label",),
        assumptions=(*promised.assumptions, GIVEN),
    )


# Records as lines, for an audit ---------------------------------------------------------------------------------------


def named_records(names: Sequence[str], texts: Sequence[str]) -> list[str]:
    """Public records: texts with the labels in turn."""
    return [f"{names[place % len(names)]}: {text}" for place, text in enumerate(texts)]


def label_and_text(names: Sequence[str], record: str) -> tuple[int, str]:
    """The number of the label and the text of such a record."""
    fitting = [place for place, name in enumerate(names) if record.startswith(f"{name}: ")]
    label = max(fitting, key=lambda place: len(names[place]))
    return label, record.removeprefix(f"{names[label]}: ")
