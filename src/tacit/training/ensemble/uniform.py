"""DP decoding (Majmudar et al. 2022), for comparison: each token of one private model is mixed with a uniform one.

    q'(y) = l q(y) + (1 - l) / V

Between any two models q'(y) lies between (1 - l) / V and l + (1 - l) / V, both of which are reached, so a token costs

    ln((1 + (V - 1) l) / (1 - l)),    10.8 for l = 1/2 and a vocabulary of 50,000,

and a small epsilon leaves nothing but random tokens: l = (e^epsilon - 1) / (V - 1 + e^epsilon).
"""

from __future__ import annotations

import math

from tacit.arrays import Floats


def uniform_mixture(law: Floats, share: float) -> Floats:
    """The law of a token that comes from the model with probability `share`, and otherwise from anywhere."""
    mixed: Floats = share * law + (1 - share) / law.shape[-1]
    return mixed


def uniform_mixture_epsilon(share: float, vocabulary: int) -> float:
    """The pure epsilon of one token.

    >>> round(uniform_mixture_epsilon(0.5, 50_000), 2)
    10.82
    """
    return math.log1p((vocabulary - 1) * share) - math.log1p(-share)


def uniform_mixture_share(epsilon: float, vocabulary: int) -> float:
    """The largest share of the model that costs at most epsilon for a token.

    >>> f"{uniform_mixture_share(1.0, 50_000):.1e}"
    '3.4e-05'
    """
    return math.expm1(epsilon) / (vocabulary + math.expm1(epsilon))
