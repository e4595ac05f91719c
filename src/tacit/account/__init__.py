"""Adding up what was spent.

compose   basic and advanced composition, amplification by sampling, groups of records
delta     how small delta has to be
sgd       DP-SGD: from noise to epsilon and back
zcdp      zero-concentrated accounting: rho adds up and becomes (epsilon, delta) at the end
"""

from tacit.account.compose import (
    advanced_composition,
    basic_composition,
    group_privacy,
    poisson_amplification,
)
from tacit.account.delta import check_delta, leak_probability
from tacit.account.sgd import classic_rdp_epsilon, sgd_epsilon, sgd_noise_multiplier
from tacit.account.zcdp import choice_rho, composed_rho, epsilon_of_rho, rho_of_epsilon

__all__ = [
    "advanced_composition",  # k uses of one mechanism, about sqrt(k) * epsilon
    "basic_composition",  # epsilons and deltas add up
    "check_delta",  # refuses delta >= 1 / records
    "choice_rho",  # zero-concentrated price of an exponential choice
    "classic_rdp_epsilon",  # the integer-order Renyi bound that papers print
    "composed_rho",  # rhos add up
    "epsilon_of_rho",  # from rho to (epsilon, delta)
    "group_privacy",  # k records of one person
    "leak_probability",  # what a delta allows in the worst case
    "poisson_amplification",  # a mechanism on a random sample
    "rho_of_epsilon",  # the rho that (epsilon, delta) allows
    "sgd_epsilon",  # epsilon of a DP-SGD run
    "sgd_noise_multiplier",  # noise for a target epsilon
]
