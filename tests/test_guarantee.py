from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.errors import BadParameterError, NoGuaranteeError
from tacit.guarantee import (
    Adjacency,
    Guarantee,
    Metric,
    Model,
    Notion,
    Provenance,
    Unit,
    check_epsilon,
    group_delta,
)

EUCLIDEAN = Metric("Euclidean distance of toy vectors", diameter=10.0, typical=4.0)


def pure(epsilon=1.0, **more):
    defaults = {"unit": Unit.TOKEN, "adjacency": Adjacency.ANY_TWO, "mechanism": "toy"}
    return Guarantee(notion=Notion.PURE, epsilon=epsilon, **{**defaults, **more})


def approximate(epsilon=1.0, delta=1e-6, **more):
    defaults = {
        "unit": Unit.RECORD, "adjacency": Adjacency.ADD_REMOVE, "model": Model.CENTRAL, "mechanism": "toy",
    }  # fmt: skip
    return Guarantee(notion=Notion.APPROXIMATE, epsilon=epsilon, delta=delta, **{**defaults, **more})


def metric(epsilon=2.0, **more):
    return Guarantee(
        notion=Notion.METRIC, epsilon=epsilon, metric=EUCLIDEAN, unit=Unit.TOKEN, adjacency=Adjacency.ANY_TWO,
        mechanism="toy", **more,
    )  # fmt: skip


def optimized(**more):
    return Guarantee(
        notion=Notion.UTILITY_OPTIMIZED_METRIC, epsilon=2.0, offset=1.2, metric=EUCLIDEAN, sensitive_share=0.9,
        unit=Unit.TOKEN, adjacency=Adjacency.ANY_TWO, mechanism="toy", **more,
    )  # fmt: skip


def test_sequential_composition_adds():
    total = pure(1.0, slack=1e-6).then(pure(2.0), pure(0.5))
    assert total.epsilon == pytest.approx(3.5)
    assert total.slack == pytest.approx(1e-6)
    assert total.notion is Notion.PURE
    both = approximate(1, 1e-6).then(approximate(2, 1e-5))
    assert both.delta == pytest.approx(1.1e-5)
    record = pure(1.0, unit=Unit.RECORD, adjacency=Adjacency.ADD_REMOVE, model=Model.CENTRAL)
    assert record.then(approximate()).notion is Notion.APPROXIMATE
    assert metric(2.0, offset=1.0).then(metric(3.0)).exponent(1.0) == pytest.approx(6.0)


def test_parallel_composition_takes_the_weakest():
    total = approximate(1, 1e-5).beside(approximate(3, 1e-7))
    assert (total.epsilon, total.delta) == (3, 1e-5)
    assert any("exactly one" in item for item in total.assumptions)


@pytest.mark.parametrize(
    ("left", "right", "says"),
    [
        (pure(), metric(), "different things"),
        (metric(), optimized(), "different things"),
        (pure(), pure(unit=Unit.DOCUMENT), "different unit"),
        (pure(), pure(adjacency=Adjacency.SAME_SET), "different adjacency"),
        (pure(), pure(model=Model.CENTRAL), "different model"),
        (metric(), Guarantee.from_dict({**metric().to_dict(), "metric": {"name": "other"}}), "different metric"),
    ],
)
def test_what_has_no_proof_is_refused(left, right, says):
    for operation in (left.then, left.beside, left.__lt__, left.__le__, left.__gt__, left.__ge__):
        with pytest.raises(NoGuaranteeError, match=says):
            operation(right)


def test_pure_and_approximate_compose_but_do_not_compare():
    record = pure(1.0, unit=Unit.RECORD, adjacency=Adjacency.ADD_REMOVE, model=Model.CENTRAL)
    assert record.then(approximate()).epsilon == 2.0
    with pytest.raises(NoGuaranteeError):
        assert record < approximate()


def test_order_within_one_notion():
    assert pure(1) < pure(2)
    assert pure(2) > pure(1)
    assert pure(1) <= pure(1)
    assert not pure(1) < pure(1)
    # Less epsilon but more delta: neither is stronger.
    a, b = approximate(1, 1e-5), approximate(2, 1e-6)
    assert not a <= b
    assert not b <= a
    with pytest.raises(TypeError):
        assert pure(1) < 3


def test_tokens_add_up_to_a_document():
    document = pure(2.0, slack=1e-6).for_document(50)
    assert document.unit is Unit.DOCUMENT
    assert document.adjacency is Adjacency.EQUAL_LENGTH
    assert document.epsilon == 100.0
    assert document.slack == pytest.approx(5e-5)
    spread = metric(2.0, offset=0.5).for_document(10)
    assert spread.epsilon == 2.0
    assert spread.metric.diameter == 100.0
    assert spread.exponent() == pytest.approx(2.0 * 100 + 5.0)
    assert pure(adjacency=Adjacency.SAME_SET).for_document(3).adjacency is Adjacency.EQUAL_LENGTH_SAME_SETS
    with pytest.raises(NoGuaranteeError, match="per document"):
        document.for_document(2)
    for bad in (0, -1, 2.5):
        with pytest.raises(BadParameterError):
            pure().for_document(bad)


def test_metric_over_the_diameter():
    plain = metric(2.0, offset=0.5).over_diameter()
    assert plain.notion is Notion.PURE
    assert plain.epsilon == pytest.approx(20.5)
    assert plain.metric is None
    assert metric().for_document(3).over_diameter().epsilon == pytest.approx(60.0)
    assert metric(delta=1e-6).over_diameter().notion is Notion.APPROXIMATE
    with pytest.raises(NoGuaranteeError, match="reveals its input"):
        optimized().over_diameter()
    with pytest.raises(NoGuaranteeError, match="no metric"):
        pure().over_diameter()
    unknown = Guarantee.from_dict({**metric().to_dict(), "metric": {"name": "unbounded"}})
    with pytest.raises(NoGuaranteeError, match="no proven largest distance"):
        unknown.over_diameter()


def test_distance_one_everywhere_is_plain_local_privacy():
    hamming = Guarantee.from_dict({**metric(3.0).to_dict(), "metric": {"name": "discrete", "diameter": 1.0}})
    assert hamming.over_diameter().epsilon == 3.0


def test_users_and_groups():
    document = pure(2.0).for_document(1)
    assert document.for_user(5).epsilon == 10.0
    assert document.for_user(5).unit is Unit.USER
    with pytest.raises(NoGuaranteeError, match="for_document"):
        pure().for_user(2)
    group = approximate(0.5, 1e-6).for_group(3)
    assert group.epsilon == 1.5
    assert group.delta == pytest.approx(1e-6 * (1 + math.exp(0.5) + math.exp(1.0)))
    assert group_delta(10.0, 1e-5, 100) == 1.0
    assert group_delta(1.0, 0.0, 100) == 0.0
    with pytest.raises(NoGuaranteeError, match="central"):
        Guarantee.from_dict({**metric().to_dict(), "model": "central"}).for_group(2)


@given(epsilon=st.floats(1e-6, 50), tokens=st.integers(1, 1000), documents=st.integers(1, 50))
def test_adding_up_in_any_order_agrees(epsilon, tokens, documents):
    """A user with k documents of L tokens has released k L tokens."""
    total = pure(epsilon).for_document(tokens).for_user(documents)
    assert total.epsilon == pytest.approx(epsilon * tokens * documents)
    assert metric(epsilon).for_document(tokens).for_user(documents).exponent() == pytest.approx(
        epsilon * EUCLIDEAN.diameter * tokens * documents
    )


def test_nothing_repairs_a_void_guarantee():
    void = pure().voided("it was a test")
    assert void.exponent() == math.inf
    for result in (void.then(pure()), pure().then(void), pure().beside(void), void.for_document(3)):
        assert result.notion is Notion.NONE
        assert result.void == "it was a test"


def test_private_origin_must_be_paid_for():
    with pytest.raises(NoGuaranteeError, match="no private step paid"):
        pure(provenance=(Provenance("vocabulary", "the clinic's notes", public=False),))
    paid = Provenance("vocabulary", "the clinic's notes", public=False, paid_by="DP histogram, epsilon 0.5")
    assert pure(provenance=(paid,)).provenance == (paid,)


@pytest.mark.parametrize(
    "broken",
    [
        {"epsilon": math.nan}, {"epsilon": -1.0}, {"epsilon": math.inf}, {"delta": 0.1}, {"offset": 1.0},
        {"slack": -1e-9}, {"notion": Notion.METRIC}, {"notion": Notion.NONE},
        {"notion": Notion.APPROXIMATE, "delta": 1.5},
    ],
)  # fmt: skip
def test_impossible_guarantees_cannot_be_made(broken):
    values = {
        "notion": Notion.PURE,
        "epsilon": 1.0,
        "unit": Unit.TOKEN,
        "adjacency": Adjacency.ANY_TWO,
        "mechanism": "x",
    }
    with pytest.raises(BadParameterError):
        Guarantee(**{**values, **broken})


@pytest.mark.parametrize("guarantee", [pure(), approximate(), metric(), optimized(), pure().voided("why")])
def test_round_trip_through_plain_data(guarantee):
    assert Guarantee.from_dict(guarantee.to_dict()) == guarantee


@pytest.mark.parametrize(("value", "says"), [("x", "a number"), (None, "a number"), (0, "positive"), (1e7, "nothing")])
def test_check_epsilon(value, says):
    with pytest.raises(BadParameterError, match=says):
        check_epsilon(value)


def test_tokens_add_up_only_in_the_local_model():
    with pytest.raises(NoGuaranteeError, match="local model"):
        pure(model=Model.CENTRAL).for_document(3)


def test_composition_keeps_slack_and_the_parameters_of_all():
    first, second = pure(1.0, slack=1e-3, parameters={"k": 1}), pure(1.0, slack=2e-3, parameters={"k": 2})
    assert first.then(second).slack == pytest.approx(3e-3)
    assert first.beside(second).slack == pytest.approx(2e-3)
    assert first.then(second).parameters == {"release 1": {"k": 1}, "release 2": {"k": 2}}
    assert first.then(first).parameters == {"k": 1}
    group = approximate(0.5, 1e-6, slack=0.1).for_group(2)
    assert group.delta == pytest.approx(1e-6 * (1 + math.exp(0.6)))
