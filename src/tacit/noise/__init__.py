"""The only place where randomness is made.

source        where random streams come from, and what they refuse to do
choice        exponential choice with exact integer thresholds
laplace       the Laplace mechanism on a public grid (pure DP, l1 sensitivity)
gaussian      the Gaussian mechanism, analytically calibrated (approximate DP, l2 sensitivity)
multivariate  multivariate Laplace noise (metric DP, Euclidean distance)
gumbel        Gumbel and truncated Gumbel noise, truncated Poisson counts
response      binary and k-ary randomized response
rare          normal noise on very many zeros, of which only those above a threshold are looked at
skellam       noise in whole numbers that adds up over many clients
"""

from tacit.noise.choice import (
    draw_rows,
    exponent_cap,
    exponential_choice,
    exponential_probabilities,
    integer_weights,
    probabilities,
    rounding_slack,
    weight_bits,
)
from tacit.noise.gaussian import (
    add_gaussian,
    analytic_gaussian_sigma,
    classical_gaussian_sigma,
    gaussian_delta,
    gaussian_epsilon,
)
from tacit.noise.gumbel import (
    gumbel,
    gumbel_cdf,
    gumbel_density,
    truncated_gumbel,
    truncated_gumbel_cdf,
    truncated_gumbel_density,
    truncated_poisson,
    truncated_poisson_pmf,
)
from tacit.noise.laplace import add_laplace, laplace_epsilon, laplace_grid, laplace_noise, laplace_scale
from tacit.noise.multivariate import multivariate_laplace
from tacit.noise.response import (
    estimate_frequencies,
    estimate_share,
    flip_bits,
    respond,
    response_epsilon,
    response_matrix,
    response_p,
)
from tacit.noise.source import RandomnessError, Source, StreamKey, new_source, public_generator, seed_key

__all__ = [
    "RandomnessError",  # randomness would have been shared between two places
    "Source",  # one stream of random numbers
    "StreamKey",  # the key of one job, from which each block derives its own stream
    "add_gaussian",  # values + normal noise, on a public grid
    "add_laplace",  # values + discrete Laplace noise, on a public grid
    "analytic_gaussian_sigma",  # smallest sigma for (epsilon, delta), any epsilon
    "classical_gaussian_sigma",  # the textbook sigma, epsilon below 1 only
    "draw_rows",  # draw outcomes from integer weights, many rows at once
    "estimate_frequencies",  # unbiased frequencies behind k-ary responses
    "estimate_share",  # unbiased share of ones behind binary responses
    "exponent_cap",  # the exponent from which on all outcomes weigh the same
    "exponential_choice",  # the exponential mechanism
    "exponential_probabilities",  # its exact law
    "flip_bits",  # binary randomized response
    "gaussian_delta",  # delta of a sigma at an epsilon
    "gaussian_epsilon",  # epsilon of a sigma at a delta
    "gumbel",  # Gumbel noise
    "gumbel_cdf",  # its distribution function
    "gumbel_density",  # its density
    "integer_weights",  # exact weights from exponents
    "laplace_epsilon",  # epsilon of a Laplace scale
    "laplace_grid",  # the public grid of add_laplace
    "laplace_noise",  # continuous Laplace noise, not for release
    "laplace_scale",  # Laplace scale of an epsilon
    "multivariate_laplace",  # noise with density ~ exp(-epsilon * norm)
    "new_source",  # a secure stream, or a test stream from a seed
    "probabilities",  # the exact law of draw_rows
    "public_generator",  # reproducible randomness for public choices
    "respond",  # k-ary randomized response
    "response_epsilon",  # epsilon from the thesis' p
    "response_matrix",  # exact probabilities of randomized response
    "response_p",  # the thesis' p from epsilon
    "rounding_slack",  # what rounding adds to a log-ratio at most
    "seed_key",  # the key behind a test seed
    "truncated_gumbel",  # Gumbel noise conditioned on [-bound, bound]
    "truncated_gumbel_cdf",  # its distribution function
    "truncated_gumbel_density",  # its density
    "truncated_poisson",  # Poisson counts conditioned on 1..upper
    "truncated_poisson_pmf",  # their probabilities
    "weight_bits",  # bits of an integer weight
]
