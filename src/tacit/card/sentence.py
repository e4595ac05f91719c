"""A guarantee in one sentence."""

from __future__ import annotations

import math

from tacit.card.strength import odds
from tacit.card_words import unit_name
from tacit.guarantee import Adjacency, Guarantee, Notion
from tacit.rounding import rounded_down, rounded_up

ODDS_MARGIN = math.log(2.0)
TAIL = 3.0


def plain_sentence(g: Guarantee) -> str:
    """One sentence a data steward can repeat to a lawyer.

    With a delta, e^epsilon bounds the probabilities of events, not the odds. Two given possibilities x, x', the
    likelihood ratio r(y) = Pr[M(x) = y] / Pr[M(x') = y], and the outputs S = {y: r(y) > 2 e^epsilon}: from
    Pr[M(x) in S] <= e^epsilon Pr[M(x') in S] + delta and Pr[M(x') in S] <= Pr[M(x) in S] / (2 e^epsilon) follows
    Pr[M(x) in S] <= 2 delta. The outputs with r(y) < 1 / (2 e^epsilon) have probability at most 2 delta under x' by the
    same argument, and so at most 2 delta / (2 e^epsilon) <= delta under x. So the odds move by more than a factor of
    2 e^epsilon, to either side, with probability at most 3 delta. (That they move by more than e^epsilon may well be
    more probable than delta: for Gaussian noise at epsilon 1 and delta 1e-6 it is 2e-5.)
    """
    thing = unit_name(g.unit)
    if g.notion is Notion.NONE:
        return f"This release carries no privacy guarantee: {g.void}."
    where = ""
    if g.adjacency is Adjacency.SAME_SPANS:
        where = (
            " This is for words inside the detected spans only, between texts in which the detector finds the same "
            "spans. All other text, with whatever the detector missed, is not protected at all."
        )
    if g.adjacency.keeps_punctuation:
        where = " Punctuation marks that are kept are copied: what they are and where they stand is not hidden at all."
    if g.notion in (Notion.PURE, Notion.APPROXIMATE):
        if g.adjacency.within_sets:
            where = f" Which set a word belongs to is not hidden at all.{where}"
        if g.adjacency is Adjacency.SAME_REDACTED:
            return (
                f"Whatever stood in the redacted places of one {thing}, seeing the output {_odds_bound(g, '')}. All "
                f"other text of the {thing}, with whatever the redaction missed, is not protected at all."
            )
        return f"Whatever one {thing} was, seeing the output {_odds_bound(g, f' ({g.adjacency.value})')}.{where}"
    assert g.metric is not None
    examples = [
        f"{odds(g.exponent(distance))} at {name} distance {shown(distance, 3)}"
        for name, distance, shown in (
            ("the typical", g.metric.typical, rounded_down),
            ("the largest", g.metric.diameter, rounded_up),
        )
        if distance is not None
    ]
    constant = f" + {rounded_up(g.offset + g.slack, 3)}" if g.offset + g.slack else ""
    bound = f"e^({rounded_up(g.epsilon)} x distance{constant})"
    bound += f": {', '.join(examples)}" if examples else ""
    if g.notion is Notion.UTILITY_OPTIMIZED_METRIC:
        share = f" ({g.sensitive_share:.1%} of the vocabulary)" if g.sensitive_share is not None else ""
        hidden = f"an output from the sensitive part multiplies the odds between any two words by at most {bound}"
        if g.delta:
            hidden = (
                f"no event in the sensitive part is more probable for one word than for another by more than {bound}"
            )
        return (
            f"A sensitive word{share} is hidden among the others: {hidden}{_plus_delta(g)}. A common word may stay "
            f"as it is, and whoever sees one in the output knows that it stood there.{where}"
        )
    if g.delta:
        return (
            f"No event is more probable for one {thing} than for another by more than a factor of {bound}"
            f"{_plus_delta(g)}.{where}"
        )
    return f"Seeing the output multiplies the odds between any two {thing}s by at most {bound}.{where}"


def _odds_bound(g: Guarantee, neighbors: str) -> str:
    """The bound of plain differential privacy on odds, without and with a delta."""
    if not g.delta:
        return f"multiplies the odds between any two possibilities{neighbors} by at most {odds(g.exponent())}"
    event = f"no event is more than {odds(g.exponent())} times as probable under one of them as under the other"
    if TAIL * g.delta >= 1:
        return f"tells two possibilities{neighbors} apart in so far as {event}{_plus_delta(g)}"
    factor = odds(g.exponent() + ODDS_MARGIN)
    return (
        f"multiplies the odds between two given possibilities{neighbors} by at most {factor}, "
        f"except with probability {rounded_up(TAIL * g.delta, 3)}; {event}{_plus_delta(g)}"
    )


def _plus_delta(g: Guarantee) -> str:
    return f", plus {rounded_up(g.delta, 3)} on every probability" if g.delta else ""
