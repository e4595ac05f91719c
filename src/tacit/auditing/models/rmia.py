"""RMIA: membership as a test against other texts of the population (Zarifzadeh, Liu & Shokri, ICML 2024).

    ratio(x) = p(x | model) / p(x),     score(x) = share of texts z of the population with ratio(x) >= gamma ratio(z)

p(x) is the mean over models with and without x. From a reference without x alone it is approximated by
((1 + a) p_reference(x) + (1 - a)) / 2, which takes hard texts for easier than the reference does. The probability of a
text is that of a token of it on average, e**-(mean loss), so that long texts compare with short ones.

The population here is both files together: who is a member has no say in it.
"""

from __future__ import annotations

import numpy as np

from tacit.arrays import Floats
from tacit.auditing.models.scores import TextLosses

EASIER = 0.33
GAMMA = 1.0


def rmia_log_ratio(own: TextLosses, reference: TextLosses, easier: float = EASIER) -> Floats:
    """ln of the ratio for each text."""
    ratio: Floats = -own.mean - np.log(((1 + easier) * np.exp(-reference.mean) + (1 - easier)) / 2)
    return ratio


def rmia_signals(members: Floats, non_members: Floats, gamma: float = GAMMA) -> tuple[Floats, Floats]:
    """The scores of both sides from their log ratios: each between 0 and 1."""
    population = np.sort(np.concatenate([members, non_members]))

    def scores(ratios: Floats) -> Floats:
        # The relative room keeps a text from losing against itself by rounding.
        limit = ratios - np.log(gamma) + 1e-12 * np.abs(ratios)
        shares: Floats = np.searchsorted(population, limit, side="right") / len(population)
        return shares

    return scores(members), scores(non_members)
