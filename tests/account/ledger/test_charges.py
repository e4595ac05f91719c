"""What a release costs: the numbers are those of the guarantee's own conversions, and unlike things stay apart."""

from __future__ import annotations

import hashlib
import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.account.ledger.charges import PLAIN, PRESENCE, Charges, Subject, charges_of, digest_of, rate_of
from tacit.errors import BadParameterError
from tacit.guarantee import Adjacency, Guarantee, Metric, Model, Notion, Unit

from .conftest import pure

LENGTHS = st.integers(1, 500)
EPSILONS = st.floats(1e-3, 100, allow_nan=False)


def hashed(kind: str, identity: str) -> bytes:
    return hashlib.sha256(f"{kind}\0{identity}".encode()).digest()[:16]


def charge(charges: Charges, kind: str, identity: str, measure: str = PLAIN) -> tuple[int, float, float, float]:
    units, result = charges[kind, measure][hashed(kind, identity)]
    return units, *result


def metric(**more: object) -> Guarantee:
    chosen = {"name": "Euclidean", "diameter": 8.0, "fingerprint": "abc", **more}
    return replace(pure(unit=Unit.TOKEN), notion=Notion.METRIC, epsilon=2.0, offset=0.25, metric=Metric(**chosen))  # type: ignore[arg-type]


# One subject ----------------------------------------------------------------------------------------------------


@given(EPSILONS, LENGTHS)
def test_a_text_costs_the_sum_of_its_tokens(epsilon: float, tokens: int) -> None:
    promised = replace(pure(epsilon, Unit.TOKEN), slack=1e-9)
    price = rate_of(promised).of(tokens)
    assert price.epsilon == pytest.approx(promised.for_document(tokens).exponent())
    assert price.epsilon == pytest.approx(tokens * (epsilon + 1e-9))


@given(LENGTHS)
def test_a_metric_costs_its_largest_distance(tokens: int) -> None:
    rate = rate_of(metric())
    assert rate.measure == PLAIN
    assert rate.of(tokens).epsilon == pytest.approx(tokens * (2.0 * 8.0 + 0.25))


@given(EPSILONS, st.floats(1e-12, 1e-4), st.integers(1, 50))
def test_documents_of_a_user_add_up_with_their_deltas(epsilon: float, delta: float, documents: int) -> None:
    promised = replace(pure(epsilon), notion=Notion.APPROXIMATE, delta=delta)
    price = rate_of(promised).of(documents)
    assert price.epsilon == pytest.approx(documents * epsilon)
    assert price.delta == pytest.approx(min(1.0, documents * delta))


def test_adding_or_removing_counts_twice_for_replacing() -> None:
    """By group privacy of two records: 2 epsilon, and delta (1 + e^epsilon)."""
    model = replace(
        pure(3.0, Unit.RECORD),
        notion=Notion.APPROXIMATE,
        delta=1e-6,
        model=Model.CENTRAL,
        adjacency=Adjacency.ADD_REMOVE,
    )
    price = rate_of(model).of(1)
    assert price.epsilon == 6.0
    assert price.delta == pytest.approx(1e-6 * (1 + math.exp(3.0)))
    charges = charges_of(model, "d", [], hashed)
    assert charge(charges, "dataset", "d", PRESENCE) == (1, 3.0, 0.0, 1e-6)


@pytest.mark.parametrize(
    ("promised", "reason"),
    [
        (metric(diameter=None), "no proven largest distance"),
        (replace(metric(), notion=Notion.UTILITY_OPTIMIZED_METRIC, sensitive_share=0.5), "reveals its input"),
        (replace(pure(unit=Unit.TOKEN), adjacency=Adjacency.SAME_SET, domain="sets"), "position by position"),
        (replace(pure(), adjacency=Adjacency.SAME_REDACTED, model=Model.CENTRAL), "same redacted text"),
        (replace(pure(unit=Unit.SENTENCE), adjacency=Adjacency.REPLACE_ONE, model=Model.CENTRAL), "one sentence"),
        (pure().voided("it was drawn with a test seed"), "test seed"),
    ],
)
def test_without_a_proven_conversion_there_is_no_plain_epsilon(promised: Guarantee, reason: str) -> None:
    rate = rate_of(promised)
    assert rate.measure != PLAIN
    assert reason in rate.reason


def test_different_metrics_have_different_accounts() -> None:
    names = [rate_of(metric(diameter=None, fingerprint=name)).measure for name in ("abc", "abd")]
    assert names[0] != names[1]


# One release ----------------------------------------------------------------------------------------------------


def test_everybody_in_a_release() -> None:
    subjects = [
        Subject("document", "a", 3),
        Subject("document", "b", 5),
        Subject("document", "a", 3),
        Subject("document", "empty", 0),
        Subject("user", "u", 11),
        Subject("key", "k"),
    ]
    charges = charges_of(pure(1.0, Unit.TOKEN), "d", subjects, hashed)
    assert charge(charges, "document", "a") == (6, 6.0, 0.0, 0.0)  # the same text twice
    assert charge(charges, "document", "b") == (5, 5.0, 0.0, 0.0)
    assert hashed("document", "empty") not in charges["document", PLAIN]
    assert charge(charges, "user", "u") == (11, 11.0, 0.0, 0.0)
    assert charge(charges, "key", "k") == (11, 11.0, 0.0, 0.0)  # without units: all documents of the release
    assert charge(charges, "dataset", "d") == (6, 6.0, 0.0, 0.0)  # the largest one


def test_the_data_set_is_charged_the_largest_row_if_the_caller_knows_it() -> None:
    subjects = [Subject("document", "a", 3), Subject("document", "b", 4), Subject("dataset", "d", 7)]
    assert charge(charges_of(pure(1.0, Unit.TOKEN), "d", subjects, hashed), "dataset", "d") == (7, 7.0, 0.0, 0.0)


def test_a_trained_model_is_about_everybody() -> None:
    model = replace(pure(2.0, Unit.RECORD), adjacency=Adjacency.REPLACE_ONE, model=Model.CENTRAL)
    charges = charges_of(model, "d", [], hashed)
    assert charges["every document", PLAIN] == charges["dataset", PLAIN]
    assert ("every user", PLAIN) not in charges
    for_users = charges_of(replace(model, unit=Unit.USER), "d", [], hashed)
    assert for_users["every user", PLAIN] == for_users["every document", PLAIN]


def test_at_the_word_level_nobody_is_charged_for_a_guessed_length() -> None:
    for kind in ("document", "user"):
        with pytest.raises(BadParameterError, match="number of tokens"):
            charges_of(pure(1.0, Unit.TOKEN), "d", [Subject(kind, "a")], hashed)
    empty = [Subject("document", "", 0), Subject("key", "k")]
    assert set(charges_of(pure(1.0, Unit.TOKEN), "d", empty, hashed)) == {("dataset", PLAIN)}


def test_negative_units_are_refused() -> None:
    with pytest.raises(BadParameterError, match="0 units or more"):
        charges_of(pure(), "d", [Subject("document", "a", -1)], hashed)


@given(st.permutations([("a", 3), ("b", 5), ("c", 1)]))
def test_the_digest_does_not_depend_on_the_order(listed: list[tuple[str, int]]) -> None:
    subjects = [Subject("document", name, units) for name, units in listed]
    charges = charges_of(pure(1.0, Unit.TOKEN), "d", subjects, hashed)
    expected = charges_of(pure(1.0, Unit.TOKEN), "d", sorted(subjects), hashed)
    assert digest_of(charges) == digest_of(expected)
    fewer = charges_of(pure(1.0, Unit.TOKEN), "d", subjects[:2], hashed)
    assert digest_of(fewer) != digest_of(expected)
