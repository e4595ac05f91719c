"""Adding up what was spent.

compose   basic and advanced composition, amplification by sampling, groups of records
delta     how small delta has to be
sgd       DP-SGD: from noise to epsilon and back
"""

from tacit.account.compose import (
    advanced_composition,
    basic_composition,
    group_privacy,
    poisson_amplification,
)
from tacit.account.delta import check_delta, leak_probability
from tacit.account.sgd import classic_rdp_epsilon, sgd_epsilon, sgd_noise_multiplier

__all__ = [
    "advanced_composition",  # k uses of one mechanism, about sqrt(k) * epsilon
    "basic_composition",  # epsilons and deltas add up
    "check_delta",  # refuses delta >= 1 / records
    "classic_rdp_epsilon",  # the integer-order Renyi bound that papers print
    "group_privacy",  # k records of one person
    "leak_probability",  # what a delta allows in the worst case
    "poisson_amplification",  # a mechanism on a random sample
    "sgd_epsilon",  # epsilon of a DP-SGD run
    "sgd_noise_multiplier",  # noise for a target epsilon
]
