"""Inversion of words: which word stood where the release shows y?

Two attackers, both of whom see the release, position by position, and know the mechanism:

    nearest   the released word itself (for released vectors: the word with the nearest vector)
    Bayes     x(y) = argmax_x  prior(x) P(y | x),  the most probable word given y

P(y | x) is the exact law of the mechanism, the prior is public (word frequencies). For a mechanism that treats every
token on its own, no attacker who looks at one position and holds this prior can be right more often: the Bayes guess is
optimal, and its expected success under the prior is the posterior Bayes vulnerability  sum_y max_x prior(x) P(y | x)
(Alvim et al., The Science of Quantitative Information Flow, 2020, chapter 5). An attacker who also reads the context
can do better; `mask_inference` tries that.

One pass over the input words in blocks, with a running maximum for each output word: never a |V| x |V| array. Where a
mechanism has no closed form, its law is sampled; the guess is then only close to optimal, and the report says so.

The same pass gives P(x | x), hence how many words the mechanism leaves as they are. If a release has so many unchanged
words that the claimed law gives at least that many with a chance below `REFUTED_BELOW`, it was not made by that
mechanism with that epsilon. The chance is bounded, not approximated: exp(-n KL(q || p)) for the mean p of n independent
chances and a share q > p (Hoeffding 1963, theorem 1).
"""

from __future__ import annotations

from tacit.auditing.text.inversion.alignment import MOST_UNKNOWN, Aligned, align, released_tokens
from tacit.auditing.text.inversion.attack import (
    SENSITIVE_SHARE,
    WORST,
    Inversion,
    chance_of_at_least,
    invert,
    sensitive_words,
)
from tacit.auditing.text.inversion.bayes import (
    SAMPLED_DRAWS,
    SAMPLED_WORDS,
    GuessingRates,
    Posterior,
    guessing,
    posterior,
)
from tacit.auditing.text.inversion.priors import MARKS, OTHER_MARK, corpus_prior, frequency_prior, normalized
from tacit.auditing.text.inversion.report import REFUTED_BELOW, UNCHANGED, section, stronger

__all__ = [
    "MARKS",
    "MOST_UNKNOWN",
    "OTHER_MARK",
    "REFUTED_BELOW",
    "SAMPLED_DRAWS",
    "SAMPLED_WORDS",
    "SENSITIVE_SHARE",
    "UNCHANGED",
    "WORST",
    "Aligned",
    "GuessingRates",
    "Inversion",
    "Posterior",
    "align",
    "chance_of_at_least",
    "corpus_prior",
    "frequency_prior",
    "guessing",
    "invert",
    "normalized",
    "posterior",
    "released_tokens",
    "section",
    "sensitive_words",
    "stronger",
]
