"""The catalog of the service and its calculations without private text: `/v1/mechanisms`, `/v1/calibrate`, `/v1/curve`
and `/v1/audit/exact`. None of these spends budget."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import lru_cache
from typing import Final

import numpy as np

from tacit import needs
from tacit.arrays import Floats, Ids
from tacit.card import Card
from tacit.catalog import DEFAULT_OF_LEVEL, described, mechanism_classes
from tacit.errors import NoGuaranteeError
from tacit.guarantee import Guarantee, Notion
from tacit.mechanism import Mechanism
from tacit.noise.source import Source
from tacit.serve.answers import (
    AuditReport,
    Calibrated,
    Curve,
    CurvePoint,
    EpsilonFacts,
    MechanismFacts,
    Mechanisms,
    OptionFacts,
    Scalar,
)
from tacit.serve.errors import RequestError, ServiceError
from tacit.serve.messages import AuditRequest, CalibrateRequest, CurveRequest
from tacit.serve.pool import Pool, document_promise, known_mechanism
from tacit.words.base import WordMechanism

CURVE_WORDS: Final = 80
CURVE_DRAWS: Final = 20
GUESSED_WORDS: Final = 300
AUDIT_PAIRS: Final = 100
AUDIT_WORDS: Final = 100
BLOCK_WORDS: Final = 32


def mechanisms(pool: Pool) -> Mechanisms:
    """All mechanisms, with the range a slider should have, and whether this installation can run them."""
    return Mechanisms(default=dict(DEFAULT_OF_LEVEL), mechanisms=[_entry(cls, pool) for cls in mechanism_classes()])


def default_epsilon(name: str) -> float:
    return known_mechanism(name).epsilon_range.default


def _entry(cls: type[Mechanism], pool: Pool) -> MechanismFacts:
    facts = described(cls)
    failure = pool.failures.get(cls.name) or needs.why_not(cls.name, cls.abilities_for({}))
    return MechanismFacts(
        name=facts["name"],
        title=facts["title"],
        level=facts["level"],
        notion=facts["notion"],
        unit=facts["unit"],
        paper=facts["paper"],
        summary=facts["summary"],
        available=failure is None,
        why_not=None if failure is None else str(failure),
        epsilon=EpsilonFacts.model_validate(asdict(cls.epsilon_range)),
        options=[
            OptionFacts(
                name=item["name"],
                default=_plain(item["default"]),
                help=item["meaning"],
                choices=item["choices"],
                low=item["low"],
                high=item["high"],
            )
            for item in facts["parameters"]
            if item["name"] not in ("epsilon", "batch_size", "device")
        ],
    )


def _plain(value: object) -> Scalar:
    return value if isinstance(value, str | int | float | bool) or value is None else str(value)


def word_mechanism(mechanism: Mechanism, refusal: ServiceError) -> WordMechanism:
    """The mechanism, if it rewrites word by word over a vocabulary; others are refused."""
    if not isinstance(mechanism, WordMechanism):
        raise refusal
    return mechanism


# From a document to a unit ------------------------------------------------------------------------------------------


def calibrate(pool: Pool, request: CalibrateRequest) -> Calibrated:
    """The largest epsilon of one unit with which a text of so many tokens keeps within `document_epsilon`."""

    loaded = pool.get(request.mechanism, default_epsilon(request.mechanism), request.options)

    def promised(epsilon: float) -> Guarantee:
        unit = pool.sibling(request.mechanism, epsilon, request.options, loaded).guarantee(secure=True)
        whole, why_not = document_promise(unit, request.tokens)
        if whole is None:
            raise NoGuaranteeError(
                "no-conversion-to-documents",
                "{reason}",
                reason=why_not or "there is no proven conversion to documents",
            )
        return whole

    epsilon = _largest_within(promised, request.document_epsilon, loaded.mechanism.epsilon)
    whole = promised(epsilon)
    return Calibrated(epsilon=epsilon, guarantee=Card(whole).to_dict())


def _largest_within(promised: Callable[[float], Guarantee], budget: float, start: float, steps: int = 4) -> float:
    """The largest epsilon of a unit at which a document loses at most `budget`. The loss of a document is affine in it,
    up to arithmetic, so a few steps of the secant find it from below."""
    low, high = start, 2 * start
    for _ in range(steps):
        first, second = promised(low).exponent(), promised(high).exponent()
        slope = (second - first) / (high - low)
        if slope <= 0 or not math.isfinite(slope):
            raise NoGuaranteeError(
                "epsilon-does-not-matter",
                "the guarantee of a document does not depend on epsilon here: there is none to find",
            )
        guess = low + (budget - first) / slope
        if guess <= 0:
            raise NoGuaranteeError(
                "epsilon-out-of-reach",
                "even the smallest epsilon spends more than {budget:g} on a text of this length",
                budget=budget,
            )
        guess = float(f"{guess * (1 - 1e-9):.12g}")
        if promised(guess).exponent() <= budget:
            return guess
        low, high = guess * 0.9, guess
    raise NoGuaranteeError(
        "epsilon-out-of-reach", "no epsilon was found that keeps within this budget: choose another one"
    )


# The curve ----------------------------------------------------------------------------------------------------------


def curve(pool: Pool, request: CurveRequest) -> Curve:
    """Expected share of words that change at each epsilon, for public words as often as they occur in public text; and
    the share that an attacker guesses right who knows the mechanism and how frequent words are."""
    from tacit.auditing.text.inversion import guessing

    refusal = ServiceError(
        422, RequestError("no-curve", "the curve counts changed words: choose a word-level mechanism"), "no_curve"
    )
    if known_mechanism(request.mechanism).level != "word":
        raise refusal
    loaded = pool.get(request.mechanism, default_epsilon(request.mechanism), request.options)
    vocabulary = word_mechanism(loaded.mechanism, refusal).vocabulary
    ids, times = usual_words(vocabulary)
    prior = _prior(tuple(vocabulary))
    points: list[CurvePoint] = []
    exact, blind = True, None
    for epsilon in request.epsilons:
        sibling = pool.sibling(request.mechanism, epsilon, request.options, loaded)
        mechanism = word_mechanism(sibling, refusal)
        guessed = None
        try:
            stays = _exact_stays(mechanism, ids)
            success = guessing(mechanism, prior, GUESSED_WORDS)
            guessed, blind = round(success.seeing, 6), round(success.blind, 6)
        except NoGuaranteeError:
            mechanism.prepare()
            stays, exact = _counted_stays(mechanism, ids), False
        changed = round(1.0 - float(np.average(stays, weights=times)), 6)
        points.append(CurvePoint(epsilon=epsilon, changed=changed, guessed=guessed))
    how = "expected share of words that change, over the public vocabulary by frequency"
    if not exact:
        how += f" (estimated from {CURVE_DRAWS} draws of each of {len(ids)} public words)"
    return Curve(points=points, how=how, blind=blind, guessed_how=None if blind is None else GUESSED_HOW)


GUESSED_HOW: Final = (
    f"the best guess of one word by itself, from one draw, when it is one of the {GUESSED_WORDS} most frequent words; "
    "the words around it help an attacker further"
)


def usual_words(vocabulary: Sequence[str]) -> tuple[Ids, Floats]:
    """Words of the vocabulary at equal steps of their public frequency, and how often each was met."""
    prior = _prior(tuple(vocabulary))
    steps = (np.arange(CURVE_WORDS) + 0.5) / CURVE_WORDS
    drawn = np.searchsorted(np.cumsum(prior) / prior.sum(), steps)
    ids, times = np.unique(drawn, return_counts=True)
    return ids.astype(np.int64), times.astype(np.float64)


@lru_cache(maxsize=4)
def _prior(vocabulary: tuple[str, ...]) -> Floats:
    from tacit.auditing.text.inversion import frequency_prior

    return frequency_prior(vocabulary)


def _exact_stays(mechanism: WordMechanism, ids: Ids) -> Floats:
    blocks = [ids[start : start + BLOCK_WORDS] for start in range(0, len(ids), BLOCK_WORDS)]
    return np.concatenate([mechanism.laws(block)[np.arange(len(block)), block] for block in blocks])


def _counted_stays(mechanism: WordMechanism, ids: Ids) -> Floats:
    drawn = mechanism.released_ids(np.repeat(ids, CURVE_DRAWS), Source.from_os()).reshape(len(ids), CURVE_DRAWS)
    stays: Floats = (drawn == ids[:, None]).mean(axis=1)
    return stays


# The audit ----------------------------------------------------------------------------------------------------------


def audit_exact(pool: Pool, request: AuditRequest) -> AuditReport:
    """The report of an exact check: the law of each word against what is claimed, worst pair first."""
    from tacit.auditing.claims.claim import claim_of
    from tacit.auditing.claims.exact import check_all, exact_section
    from tacit.auditing.claims.laws import MechanismLaw
    from tacit.auditing.claims.settings import ClaimAuditSettings
    from tacit.auditing.claims.words import exact_words, word_law_of
    from tacit.report import Report

    refusal = ServiceError(
        422,
        RequestError(
            "no-exact-law", "no quick exact check: run 'tacit audit mechanism {mechanism}'", mechanism=request.mechanism
        ),
        "no_exact_law",
    )
    if known_mechanism(request.mechanism).level != "word":
        raise refusal
    mechanism = word_mechanism(pool.get(request.mechanism, request.epsilon, request.options).mechanism, refusal)
    law = word_law_of(mechanism)
    if law is None:
        raise ServiceError(
            422,
            RequestError(
                "no-exact-law",
                "{mechanism} has no law in closed form: 'tacit audit mechanism {mechanism}' checks samples",
                mechanism=request.mechanism,
            ),
            "no_exact_law",
        )
    claim = claim_of(mechanism)
    if request.words is not None:
        ids = np.unique([mechanism.lexicon.id(word.lower()) for word in request.words]).astype(np.int64)
        if len(ids) < 2:
            raise ServiceError(
                422,
                RequestError("one-word-only", "these words are treated as one vocabulary word: give different words"),
            )
        exact = check_all(MechanismLaw(mechanism), claim, ids)
    else:
        metric = mechanism.notion in (Notion.METRIC.value, Notion.UTILITY_OPTIMIZED_METRIC.value)
        settings = ClaimAuditSettings(f"closest:{AUDIT_PAIRS}" if metric else str(AUDIT_WORDS))
        exact = exact_words(mechanism, law, claim, settings)
    report = Report(f"Audit of {request.mechanism}", [exact_section(exact)], {"epsilon": request.epsilon})
    return AuditReport.model_validate(report.to_dict())
