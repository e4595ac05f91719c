"""Equal promises: which epsilon of a mechanism gives a whole document a wanted, plain epsilon?

A word mechanism promises something for each token. For a document of T tokens the exponents of the positions add up,
and a distance is at most the diameter D of the vocabulary (`Guarantee.for_document`, `Guarantee.over_diameter`):

    document epsilon = T * (epsilon * D + offset + slack)

That holds between texts of T tokens. `fixed_length` makes every text one of T tokens, by a public rule: it is cut
there, or filled up with a public mark. So any two documents are neighbors, as for the document mechanisms, and the
length is hidden as it is there. Nothing is known about what stood behind the cut, because it is never read.

The wanted epsilon is reached from below, to one part in a thousand. A mechanism without a proven conversion raises
`NoGuaranteeError` with the reason.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from tacit import catalog
from tacit.errors import BadParameterError, NoGuaranteeError
from tacit.guarantee import Adjacency, Exclusion, ExclusionKind, Guarantee, Unit
from tacit.mechanism import Mechanism
from tacit.text.tokens import split

FILLING = "."
CLOSE_ENOUGH = 0.999
SMALLEST, LARGEST = 1e-4, 1e6


def fixed_length(text: str, tokens: int) -> str:
    """The first `tokens` tokens of a text; a shorter one is filled up."""
    words = split(text)[:tokens]
    return " ".join([*words, *[FILLING] * (tokens - len(words))])


def of_document(promise: Guarantee, tokens: int) -> Guarantee:
    """The plain guarantee of one document, any two documents being neighbors; refused where none is proven."""
    if promise.unit is not Unit.TOKEN:
        return promise
    whole = promise.for_document(tokens)
    if whole.metric is not None:
        whole = whole.over_diameter()
    if whole.adjacency is not Adjacency.EQUAL_LENGTH:
        raise NoGuaranteeError(
            "not-between-documents",
            "it promises nothing between any two documents, only between {neighbors}",
            neighbors=whole.adjacency.value.removeprefix("any "),
        )
    cut = f"every text is cut or filled up to {tokens:,} tokens by a public rule; what stands behind them is not read"
    covered = tuple(item for item in whole.not_covered if Exclusion.kind_of(item) is not ExclusionKind.LENGTH)
    return replace(whole, adjacency=Adjacency.ANY_TWO, not_covered=covered).also_assuming(cut)


def calibrated(name: str, options: Mapping[str, Any], epsilon: float, tokens: int) -> Mechanism:
    """The mechanism with the largest epsilon of its own that gives a document of `tokens` tokens at most `epsilon`."""
    if catalog.find(name).level != "word":
        return catalog.build(name, {**options, "epsilon": epsilon})
    low, high = math.log(SMALLEST), math.log(LARGEST)
    guess = 0.0
    best: tuple[float, Mechanism] | None = None
    refused = ""
    while high - low > 1e-4 and (best is None or best[0] < CLOSE_ENOUGH * epsilon):
        if not low < guess < high:
            guess = (low + high) / 2
        mechanism = catalog.build(name, {**options, "epsilon": math.exp(guess)})
        try:
            reached = of_document(mechanism.guarantee(secure=True), tokens).exponent()
        except BadParameterError as error:  # a noise that exists for large epsilons only
            low, refused = guess, str(error)
            continue
        if reached <= epsilon:
            low, best = guess, (reached, mechanism)
        else:
            high = guess
        # Most promises are proportional to epsilon; where they are not, the interval is halved.
        guess += math.log((1 + CLOSE_ENOUGH) / 2 * epsilon / reached) if reached else math.inf
    if best is None:
        why = f": {refused}" if refused else ""
        raise NoGuaranteeError(
            "no-fitting-epsilon",
            "no epsilon of '{name}' gives a document {epsilon:g} or less{why}",
            name=name,
            epsilon=epsilon,
            why=why,
        )
    return best[1]


def check_length(mechanism: Mechanism, texts: Sequence[str], tokens: int) -> None:
    """Whether a word mechanism really sees `tokens` tokens in each text, which its promise rests on."""
    if any(count != tokens for count in mechanism.count_units(texts)):
        raise BadParameterError(
            "other-number-of-tokens",
            "'{mechanism}' does not read {tokens} tokens in each text: leave out the option 'punctuation'",
            mechanism=mechanism.name,
            tokens=tokens,
        )
