"""Reserve, commit, cancel, limits: the same in both databases."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tacit.account.ledger import BudgetExceededError, Ledger, Subject, open_ledger
from tacit.errors import BadInputError, BadParameterError
from tacit.guarantee import Adjacency, Guarantee, Metric, Model, Notion, Unit

from .conftest import KEY, pure

SECRET = "zanzibar"
A, B = Subject("document", "text a"), Subject("document", "text b")


def release(
    ledger: Ledger, token: str, *subjects: Subject, epsilon: float = 1.0, dataset: str = "d", **more: object
) -> None:
    promised = more.pop("guarantee", pure(epsilon))
    ledger.reserve(promised, dataset=dataset, subjects=subjects or (A,), token=token, **more).commit()  # type: ignore[arg-type]


def central(epsilon: float, unit: Unit = Unit.RECORD, adjacency: Adjacency = Adjacency.ADD_REMOVE) -> Guarantee:
    return replace(pure(epsilon, unit), model=Model.CENTRAL, adjacency=adjacency)


# Spending -------------------------------------------------------------------------------------------------------


def test_the_same_text_adds_up_wherever_it_comes_from(ledger: Ledger) -> None:
    release(ledger, "1", A, B, epsilon=2)
    release(ledger, "2", A, epsilon=3, dataset="other")
    assert ledger.spent(A).epsilon == 5
    assert ledger.spent(A, "other").epsilon == 3
    assert ledger.spent(B).epsilon == 2
    assert ledger.spent(Subject("document", "unknown")).releases == 0
    assert ledger.spent(Subject("dataset", "d")).epsilon == 2
    assert ledger.verify().ok


def test_open_reservations_count_and_canceled_ones_do_not(ledger: Ledger) -> None:
    first = ledger.reserve(pure(2), dataset="d", subjects=[A], token="1")
    second = ledger.reserve(pure(3), dataset="d", subjects=[A], token="2")
    assert ledger.spent(A).epsilon == 5
    second.cancel()
    assert ledger.spent(A).epsilon == 2
    assert ledger.spent(A).releases == 1
    first.commit()
    assert [record.state for record in ledger.releases()] == ["committed", "canceled"]
    with pytest.raises(BadParameterError, match="committed already"):
        ledger.reserve(pure(2), dataset="d", subjects=[A], token="1").cancel()
    assert ledger.verify().ok


def test_only_what_could_be_under_counted_waits_for_the_disk(file_ledger: Ledger) -> None:
    statements: list[str] = []
    file_ledger._database.connection.set_trace_callback(statements.append)

    def settings() -> list[str]:
        levels = [line.rpartition(" ")[2] for line in statements if line.startswith("PRAGMA synchronous")]
        statements.clear()
        return levels

    first = file_ledger.reserve(pure(2), dataset="d", subjects=[A], token="1")
    second = file_ledger.reserve(pure(2), dataset="d", subjects=[A], token="2")
    assert settings() == ["FULL", "FULL"]
    first.commit()
    assert settings() == ["NORMAL"], "a commit that is lost leaves a reservation, which counts"
    second.cancel()
    assert settings() == ["FULL"], "a chain that misses a cancellation in its middle could not be told from an edit"


def test_many_subjects_fit_into_the_statements_of_an_older_sqlite(file_ledger: Ledger) -> None:
    file_ledger._database.connection.setlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER, 999)
    subjects = [Subject("document", f"text {number}") for number in range(700)]
    file_ledger.reserve(pure(0.5), dataset="mail", subjects=subjects, token="1").commit()
    assert {file_ledger.spent(subject).epsilon for subject in subjects[::50] + subjects[-1:]} == {0.5}
    assert file_ledger.verify().ok


def test_a_token_counts_once(ledger: Ledger) -> None:
    for _ in range(3):
        ledger.reserve(pure(2), dataset="d", subjects=[A], token="1", command="x")
    assert ledger.spent(A).epsilon == 2
    with pytest.raises(BadInputError, match="another release"):
        ledger.reserve(pure(2), dataset="d", subjects=[A, B], token="1")
    with pytest.raises(BadInputError, match="another release"):
        ledger.reserve(pure(2.5), dataset="d", subjects=[A], token="1")
    ledger.reserve(pure(2), dataset="d", subjects=[A], token="1").cancel()
    ledger.reserve(pure(2), dataset="d", subjects=[A], token="1").commit()  # canceled, then made after all
    assert ledger.spent(A).epsilon == 2
    assert ledger.verify().ok


def test_a_job_charges_its_data_set_the_largest_block(ledger: Ledger) -> None:
    def block(number: int, tokens: int, job: str = "j") -> None:
        subjects = [Subject("document", f"text {number}", tokens)]
        release(ledger, f"{job} {number}", *subjects, guarantee=pure(1.0, Unit.TOKEN), job=job)

    block(1, 5)
    block(2, 9)
    block(3, 2)
    assert ledger.spent(Subject("dataset", "d")).epsilon == 9
    block(4, 3, job="another")
    assert ledger.spent(Subject("dataset", "d")).epsilon == 12
    assert ledger.spent(Subject("dataset", "d")).releases == 2
    assert ledger.verify().ok


def test_canceling_the_largest_block_leaves_the_next_largest(ledger: Ledger) -> None:
    blocks = [
        ledger.reserve(
            pure(float(size)), dataset="d", subjects=[Subject("document", str(size))], token=str(size), job="j"
        )
        for size in (5, 9, 2)
    ]
    blocks[1].cancel()
    assert ledger.spent(Subject("dataset", "d")).epsilon == 5
    blocks[0].cancel()
    blocks[2].cancel()
    assert ledger.spent(Subject("dataset", "d")).releases == 0
    assert ledger.verify().ok


def test_no_text_or_name_is_stored(tmp_path: Path) -> None:
    place = tmp_path / "budget.db"
    with open_ledger(place, KEY) as ledger:
        subjects = [Subject("document", SECRET), Subject("user", f"user {SECRET}")]
        release(ledger, f"token {SECRET}", *subjects, job=f"job {SECRET}")
        ledger.set_limit("user", epsilon=3, name=f"user {SECRET}")
        assert SECRET not in str(ledger.export(subjects=True))
    everything = b"".join(path.read_bytes() for path in tmp_path.glob("budget.db*"))
    assert SECRET.encode() not in everything
    assert KEY.encode() not in everything


# Limits ---------------------------------------------------------------------------------------------------------


def test_a_release_over_the_limit_is_refused_as_a_whole(ledger: Ledger) -> None:
    ledger.set_limit("document", epsilon=5)
    release(ledger, "1", A, epsilon=3)
    with pytest.raises(BudgetExceededError, match="1 of 2 documents: the one with the most has spent epsilon 3"):
        release(ledger, "2", A, B, epsilon=3)
    assert ledger.spent(B).releases == 0
    release(ledger, "3", A, B, epsilon=2)
    assert ledger.spent(A).epsilon == 5
    assert len(ledger.releases()) == 2
    assert ledger.verify().ok


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.floats(0.01, 3), min_size=1, max_size=12), st.floats(0.5, 6))
def test_the_sum_never_exceeds_the_limit(tmp_path: Path, epsilons: list[float], most: float) -> None:
    """Whatever is asked for: what is granted stays within the limit, and what is refused would not have."""
    place = tmp_path / f"{len(list(tmp_path.iterdir()))}.db"
    with open_ledger(place, KEY) as ledger:
        ledger.set_limit("document", epsilon=most)
        total = 0.0
        for number, epsilon in enumerate(epsilons):
            try:
                release(ledger, str(number), epsilon=epsilon)
            except BudgetExceededError:
                assert total + epsilon > most
            else:
                total += epsilon
        assert total <= most * (1 + 1e-9)
        assert ledger.spent(A).epsilon == pytest.approx(total)


def test_what_finite_arithmetic_adds(file_ledger: Ledger) -> None:
    """A limit of 2 allows an epsilon of 2 whose sampler may add 1e-5, and not one whose sampler may add 0.1."""
    file_ledger.set_limit("document", epsilon=2)
    release(file_ledger, "1", A, guarantee=replace(pure(2), slack=1e-5))
    assert file_ledger.spent(A).epsilon == 2 + 1e-5
    with pytest.raises(BudgetExceededError):
        release(file_ledger, "2", B, guarantee=replace(pure(1), slack=0.1))


def test_a_limit_on_delta(ledger: Ledger) -> None:
    ledger.set_limit("document", epsilon=100, delta=1e-6)
    promised = replace(pure(1), notion=Notion.APPROXIMATE, delta=6e-7)
    release(ledger, "1", guarantee=promised)
    with pytest.raises(BudgetExceededError, match="delta 1e-06"):
        release(ledger, "2", guarantee=promised)
    release(ledger, "3", epsilon=1)


def test_users_pay_for_all_their_documents(ledger: Ledger) -> None:
    ledger.set_limit("user", epsilon=5)
    release(ledger, "1", A, B, Subject("user", "u", 2), epsilon=2)
    with pytest.raises(BudgetExceededError, match="one user has spent epsilon 4"):
        release(ledger, "2", Subject("document", "text c"), Subject("user", "u", 1), epsilon=2)
    release(ledger, "3", Subject("document", "text c"), Subject("user", "v", 1), epsilon=2)


def test_a_named_limit_counts_in_place_of_the_general(ledger: Ledger) -> None:
    ledger.set_limit("key", epsilon=2)
    ledger.set_limit("key", epsilon=10, name="partner")
    release(ledger, "1", A, Subject("key", "partner"), epsilon=8)
    with pytest.raises(BudgetExceededError):
        release(ledger, "2", A, Subject("key", "guest"), epsilon=8)
    assert ledger.limit_of(Subject("key", "partner")).epsilon == 10  # type: ignore[union-attr]
    ledger.remove_limit("key", name="partner")
    assert ledger.limit_of(Subject("key", "partner")).epsilon == 2  # type: ignore[union-attr]
    with pytest.raises(BadParameterError, match="no such limit"):
        ledger.remove_limit("key", name="partner")
    assert ledger.verify().ok


def test_limits_within_a_data_set_and_over_all(ledger: Ledger) -> None:
    ledger.set_limit("document", epsilon=5)
    ledger.set_limit("document", epsilon=3, dataset="d")
    release(ledger, "1", epsilon=3)
    with pytest.raises(BudgetExceededError, match="of 'd'"):
        release(ledger, "2", epsilon=1)
    release(ledger, "3", epsilon=2, dataset="other")
    with pytest.raises(BudgetExceededError, match="epsilon 5 per document would"):
        release(ledger, "4", epsilon=1, dataset="third")


def test_a_limit_per_data_set(ledger: Ledger) -> None:
    ledger.set_limit("dataset", epsilon=4)
    ledger.set_limit("dataset", epsilon=6, name="large")
    release(ledger, "1", A, B, epsilon=3)
    with pytest.raises(BudgetExceededError, match="per document of 'd' would be broken: the data set 'd' has"):
        release(ledger, "2", Subject("document", "a new text"), epsilon=3)
    release(ledger, "3", epsilon=3, dataset="large")
    release(ledger, "4", epsilon=3, dataset="large")


def test_blocks_of_a_job_are_within_the_limit_of_the_largest(ledger: Ledger) -> None:
    ledger.set_limit("dataset", epsilon=3)
    for number in range(4):
        release(ledger, str(number), Subject("document", str(number)), epsilon=3, job="j")
    assert ledger.spent(Subject("dataset", "d")).epsilon == 3


@pytest.mark.parametrize(
    ("promised", "reason"),
    [
        (replace(pure(), notion=Notion.METRIC, metric=Metric("a distance")), "no proven largest distance"),
        (pure().voided("it was drawn with a test seed"), "test seed"),
        (replace(pure(1), adjacency=Adjacency.SAME_SET, domain="sets"), "only holds for"),
    ],
)
def test_a_limit_refuses_what_has_no_plain_epsilon(ledger: Ledger, promised: Guarantee, reason: str) -> None:
    release(ledger, "1", guarantee=promised)  # without a limit it is written down, apart
    spent = ledger.spent(A)
    assert (spent.epsilon, spent.releases, len(spent.apart)) == (0, 0, 1)
    ledger.set_limit("document", epsilon=1000)
    with pytest.raises(BudgetExceededError, match=reason):
        release(ledger, "2", B, guarantee=promised)
    with pytest.raises(BudgetExceededError, match="no sum to compare"):
        release(ledger, "3", A, epsilon=1)  # what was spent on this text before has no sum
    release(ledger, "4", B, epsilon=1)
    assert ledger.verify().ok


# Models ---------------------------------------------------------------------------------------------------------


def test_models_alone_add_up_for_the_presence_of_a_record(ledger: Ledger) -> None:
    ledger.set_limit("dataset", epsilon=8)
    release(ledger, "1", guarantee=central(5))
    assert ledger.spent(Subject("dataset", "d")).epsilon == 5
    with pytest.raises(BudgetExceededError):
        release(ledger, "2", guarantee=central(4))
    release(ledger, "3", guarantee=central(3))
    assert ledger.spent(Subject("dataset", "d")).epsilon == 8


def test_a_model_and_a_rewritten_text_add_up_for_replacing_a_record(ledger: Ledger) -> None:
    ledger.set_limit("dataset", epsilon=12)
    ledger.reserve(central(5), dataset="d", subjects=[], token="model").commit()
    release(ledger, "1", epsilon=2)
    assert ledger.spent(Subject("dataset", "d")).epsilon == 12  # 2 * 5 + 2
    with pytest.raises(BudgetExceededError):
        release(ledger, "2", epsilon=0.1)
    assert ledger.verify().ok


def test_documents_pay_for_the_models_of_their_data_set(ledger: Ledger) -> None:
    model = central(5, adjacency=Adjacency.REPLACE_ONE)
    ledger.reserve(model, dataset="d", subjects=[], token="model").commit()
    release(ledger, "1", A, epsilon=2)
    release(ledger, "2", B, epsilon=2, dataset="other")
    assert ledger.spent(A).epsilon == 7
    assert ledger.spent(B).epsilon == 2
    ledger.set_limit("document", epsilon=8)
    with pytest.raises(BudgetExceededError):
        release(ledger, "3", A, epsilon=2)
    with pytest.raises(BudgetExceededError, match="would be broken"):
        ledger.reserve(model, dataset="d", subjects=[], token="model 2")
    ledger.reserve(model, dataset="other", subjects=[], token="model 3")


def test_a_limit_per_user_refuses_a_model_for_records(ledger: Ledger) -> None:
    ledger.set_limit("user", epsilon=8)
    with pytest.raises(BudgetExceededError, match="nobody knows how many of them a user has"):
        ledger.reserve(central(2), dataset="d", subjects=[], token="model")
    ledger.reserve(central(2, Unit.USER), dataset="d", subjects=[], token="model").commit()
    with pytest.raises(BudgetExceededError):
        ledger.reserve(central(3, Unit.USER), dataset="d", subjects=[], token="model 2")


# Lists ----------------------------------------------------------------------------------------------------------


def test_releases_and_export(ledger: Ledger) -> None:
    for number in range(4):
        release(ledger, str(number), A, epsilon=1, dataset="d" if number % 2 else "e", command=f"command {number}")
    assert [record.command for record in ledger.releases(dataset="d")] == ["command 1", "command 3"]
    assert [record.id for record in ledger.releases(last=2)] == [3, 4]
    newest = ledger.releases(last=1)[0]
    assert (newest.epsilon, newest.delta, newest.subjects, newest.unit) == (1.0, 0.0, 1, "document")
    assert newest.guarantee == pure(1)
    exported = ledger.export(subjects=True)
    assert exported["anchor"] == ledger.anchor()
    assert [line["guarantee"]["epsilon"] for line in exported["releases"]] == [1.0] * 4
    assert {row["kind"] for row in exported["releases"][0]["charges"]} == {"document", "dataset"}


@pytest.mark.parametrize(
    "wrong",
    [
        lambda ledger: ledger.reserve(pure(), dataset="", subjects=[A], token="1"),
        lambda ledger: ledger.reserve(pure(), dataset="d", subjects=[], token="1"),
        lambda ledger: ledger.reserve(pure(), dataset="d", subjects=[Subject("A kind", "x")], token="1"),
        lambda ledger: ledger.reserve(pure(), dataset="d", subjects=[Subject("every document", "d")], token="1"),
        lambda ledger: ledger.reserve(pure(), dataset="d", subjects=[Subject("dataset", "e")], token="1"),
        lambda ledger: ledger.set_limit("document", epsilon=float("nan")),
        lambda ledger: ledger.set_limit("document", epsilon=-1),
        lambda ledger: ledger.set_limit("document", epsilon=1e308 * 10),
        lambda ledger: ledger.set_limit("document", epsilon=1, delta=1),
        lambda ledger: ledger.verify("nonsense"),
    ],
)
def test_bad_parameters(file_ledger: Ledger, wrong: Callable[[Ledger], object]) -> None:
    with pytest.raises(BadParameterError):
        wrong(file_ledger)
    assert file_ledger.releases() == []
