"""Whoever changes a ledger without the key is found out; what only an anchor shows is shown by the anchor."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from tacit.account.ledger import Ledger, Subject, open_ledger

from .conftest import KEY, pure


def fill(ledger: Ledger) -> None:
    ledger.set_limit("document", epsilon=50)
    for number in range(4):
        subjects = [Subject("document", f"text {number}"), Subject("document", "shared"), Subject("user", "u", 2)]
        reservation = ledger.reserve(pure(1.5), dataset="d", subjects=subjects, token=str(number), command="c", job="j")
        reservation.cancel() if number == 3 else reservation.commit()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with open_ledger(tmp_path / "budget.db", KEY) as ledger:
        fill(ledger)
        assert ledger.verify().ok
    return tmp_path / "budget.db"


def tamper(path: Path, *statements: str) -> tuple[str, ...]:
    connection = sqlite3.connect(path)
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()
    with open_ledger(path, KEY) as ledger:
        return ledger.verify().problems


@pytest.mark.parametrize(
    ("statement", "sentence"),
    [
        ("UPDATE releases SET dataset = 'e' WHERE id = 2", "release 2 was changed"),
        ("UPDATE releases SET command = 'tacit rewrite --epsilon 1' WHERE id = 2", "release 2 was changed"),
        ("UPDATE releases SET created = '2020-01-01' WHERE id = 2", "release 2 was changed"),
        ("UPDATE releases SET state = 'canceled' WHERE id = 2", "its last event says committed"),
        ("UPDATE charges SET epsilon = 0.1 WHERE release = 2", "the charges of release 2 were changed"),
        ("DELETE FROM charges WHERE release = 2", "the charges of release 2 were changed"),
        ("UPDATE guarantees SET body = replace(body, '1.5', '0.5')", "the guarantee of release 1 was changed"),
        ("DELETE FROM releases WHERE id = 2", "release 2 was removed"),
        ("UPDATE balances SET epsilon = epsilon / 2", "running sums"),
        ("DELETE FROM balances", "running sums"),
        # Edits that lift a limit without touching a line: spent elsewhere, less than nothing, a job that was paid for.
        ("UPDATE accounts SET dataset = 'elsewhere' WHERE kind = 'document'", "moved to another data set"),
        ("UPDATE accounts SET dataset = 'elsewhere' WHERE kind = 'job'", "running sums"),
        (
            "INSERT INTO balances SELECT subject, (SELECT id FROM accounts WHERE kind = 'user'), -100, 0, 0, 0 "
            "FROM balances WHERE account = (SELECT id FROM accounts WHERE kind = 'document') LIMIT 1",
            "running sums",
        ),
        ("UPDATE balances SET epsilon = -9e999 WHERE releases = 0", "running sums"),
        ("UPDATE balances SET epsilon = -9e999 WHERE releases > 0", "running sums"),
        ("UPDATE balances SET epsilon = -100 WHERE releases = 0", "running sums"),
        (
            "UPDATE balances SET epsilon = 100 WHERE account = (SELECT id FROM accounts WHERE kind = 'job')",
            "1 running sums",
        ),
        (
            "UPDATE balances SET releases = 0 WHERE account = (SELECT id FROM accounts WHERE kind = 'job')",
            "1 running sums",
        ),
        ("DELETE FROM balances WHERE account = (SELECT id FROM accounts WHERE kind = 'job')", "1 running sums"),
        (
            "INSERT INTO balances SELECT x'00', id, 100, 0, 0, 1 FROM accounts WHERE kind = 'job'",
            "1 running sums",
        ),
        ("UPDATE limits SET epsilon = 1e9", "the limits were changed"),
        ("DELETE FROM limits", "the limits were changed"),
        ("DELETE FROM chain WHERE position = 3", "event 3 is missing"),
        ("DELETE FROM chain WHERE position > 5", "added without the key"),
        ("UPDATE chain SET body = replace(body, '50', '90') WHERE position = 1", "event 1 (limit) was changed"),
        ("UPDATE chain SET event = 'canceled' WHERE position = 3", "event 3 (canceled) was changed"),
        (
            "UPDATE chain SET body = (SELECT body FROM chain c WHERE c.position = 6 - chain.position) "
            "WHERE position IN (2, 4)",
            "event 2 (reserve) was changed",
        ),
    ],
)
def test_a_change_is_found(path: Path, statement: str, sentence: str) -> None:
    assert any(sentence in problem for problem in tamper(path, statement))


def test_lines_that_are_added_without_the_key(path: Path) -> None:
    added = (
        "INSERT INTO releases SELECT 9, 'token', job, dataset, unit, guarantee, command, version, created, state, "
        "subjects, content FROM releases WHERE id = 1"
    )
    assert any("release 9 was added without the key" in problem for problem in tamper(path, added))


def cut_the_end(path: Path) -> tuple[str, ...]:
    """Everything after the first release, in all tables, as if it had never been."""
    return tamper(
        path,
        "DELETE FROM chain WHERE position > 3",
        "DELETE FROM charges WHERE release > 1",
        "DELETE FROM releases WHERE id > 1",
        "DELETE FROM balances WHERE subject NOT IN (SELECT subject FROM charges) AND account IN "
        "(SELECT id FROM accounts WHERE kind <> 'job')",
        "UPDATE balances SET epsilon = 1.5, releases = 1 WHERE releases > 1",
        "UPDATE balances SET epsilon = (SELECT epsilon FROM charges c WHERE c.subject = balances.subject "
        "AND c.account = balances.account) WHERE subject IN (SELECT subject FROM charges)",
    )


def test_a_cut_at_the_end_is_shown_by_an_anchor_only(path: Path, tmp_path: Path) -> None:
    with open_ledger(path, KEY) as ledger:
        early, late = "3:" + ledger.verify().anchor.partition(":")[2], ledger.anchor()
        assert ledger.verify(late).ok
    for kept in tmp_path.rglob("*.anchor"):
        kept.unlink()
    assert cut_the_end(path) == ()
    with open_ledger(path, KEY) as ledger:
        assert "the newest lines were cut off" in ledger.verify(late).problems[0]
        assert "is not the one that the anchor knows" in ledger.verify(early).problems[0]
        assert ledger.verify(ledger.anchor()).ok


def test_an_anchor_stays_good_while_the_ledger_grows(file_ledger: Ledger) -> None:
    assert file_ledger.verify("0:").ok
    fill(file_ledger)
    anchor = file_ledger.anchor()
    file_ledger.set_limit("user", epsilon=80)
    assert file_ledger.verify(anchor).ok
    assert file_ledger.verify(anchor).compared_with_anchor


def test_both_databases_verify(ledger: Ledger) -> None:
    fill(ledger)
    verification = ledger.verify(ledger.anchor())
    assert verification.ok
    assert (verification.events, verification.releases) == (9, 4)


def test_what_was_taken_back_leaves_nothing_to_complain_about(ledger: Ledger) -> None:
    """Sums go up and down by numbers of very different size, and rounding is no change."""
    open_ones = []
    for number, epsilon in enumerate((1e12, 0.1, 3e-7, 7e8)):
        subjects = [Subject("document", "shared"), Subject("user", "u")]
        for job in (None, "j"):
            token = f"{number} {job}"
            open_ones.append(
                ledger.reserve(pure(epsilon), dataset="d", subjects=subjects, token=token, command="c", job=job)
            )
    for reservation in open_ones:
        reservation.cancel()
    assert ledger.verify().problems == ()
