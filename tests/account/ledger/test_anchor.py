"""The anchor beside the key: a cut tail and an older file are noticed, by `verify` and before anything is spent."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import stat
import threading
from pathlib import Path

import pytest

from tacit.account.ledger import Ledger, LedgerError, RolledBackError, Subject, open_ledger
from tacit.account.ledger.anchor import Anchor, KeptAnchor
from tacit.errors import BadParameterError

from .conftest import KEY, pure
from .test_verify import cut_the_end, fill

A = Subject("document", "a")


def spend(ledger: Ledger, token: str) -> None:
    ledger.reserve(pure(), dataset="d", subjects=[A], token=token).commit()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "budget.db"


@pytest.fixture
def older(path: Path, tmp_path: Path) -> Path:
    """A copy of a ledger that has grown since."""
    with open_ledger(path, KEY) as ledger:
        spend(ledger, "1")
    copy = tmp_path / "older.db"
    shutil.copy(path, copy)
    with open_ledger(path, KEY) as ledger:
        spend(ledger, "2")
        assert ledger.spent(A).epsilon == 2
    return copy


def test_b10_a_cut_tail_is_noticed_without_giving_an_anchor(path: Path) -> None:
    with open_ledger(path, KEY) as ledger:
        fill(ledger)
        assert ledger.verify().ok
        assert ledger.verify().compared_with_anchor
    assert any("the newest lines were cut off" in problem for problem in cut_the_end(path))
    with open_ledger(path, KEY) as ledger, pytest.raises(RolledBackError, match="is older than it was"):
        spend(ledger, "more")


def test_b10_nothing_is_spent_from_an_older_file(path: Path, older: Path) -> None:
    shutil.copy(older, path)
    with open_ledger(path, KEY) as ledger:
        assert ledger.spent(A).epsilon == 1  # one can look
        assert "the newest lines were cut off" in ledger.verify().problems[0]
        for change in (
            lambda: spend(ledger, "3"),
            lambda: ledger.set_limit("document", epsilon=9),
            ledger.change_key,
        ):
            with pytest.raises(RolledBackError, match="tacit ledger accept"):
                change()


def test_b10_a_ledger_that_went_on_from_an_older_file_is_noticed(path: Path, older: Path, tmp_path: Path) -> None:
    """As many events as before, and another one at the end: written where there was no anchor to stop it."""
    elsewhere = KeptAnchor(open_ledger(path, KEY).id).path
    assert elsewhere is not None
    kept = elsewhere.read_bytes()
    elsewhere.unlink()
    with open_ledger(older, KEY) as ledger:
        for token in ("x", "y", "z"):
            spend(ledger, token)
    elsewhere.write_bytes(kept)
    shutil.copy(older, path)
    with open_ledger(path, KEY) as ledger:
        assert "is not the one that the anchor knows" in ledger.verify().problems[0]
        with pytest.raises(RolledBackError, match="another one"):
            spend(ledger, "3")


def test_b10_an_older_file_under_a_running_ledger_is_noticed(path: Path, older: Path) -> None:
    with open_ledger(path, KEY) as ledger:
        spend(ledger, "3")
        older.replace(path)
        with pytest.raises(LedgerError, match="removed, emptied or replaced"):
            spend(ledger, "4")


def test_b10_a_backup_can_be_accepted_and_the_chain_tells(path: Path, older: Path) -> None:
    shutil.copy(older, path)
    with open_ledger(path, KEY) as ledger:
        assert "1 event of before is missing" in ledger.accept()
        spend(ledger, "3")
        verification = ledger.verify()
        assert verification.ok
        assert "an older copy was accepted" in verification.notes[0]
        with pytest.raises(BadParameterError, match="nothing to accept"):
            ledger.accept()
    with open_ledger(path, KEY) as ledger:
        spend(ledger, "4")
        assert ledger.verify().ok


def test_b10_a_changed_ledger_cannot_be_accepted(path: Path, older: Path) -> None:
    shutil.copy(older, path)
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE balances SET epsilon = 0")
    connection.close()
    with open_ledger(path, KEY) as ledger, pytest.raises(LedgerError, match="cannot be accepted"):
        ledger.accept()


def test_b10_the_anchor_lies_beside_the_key_for_its_owner_only(path: Path) -> None:
    with open_ledger(path) as ledger:
        spend(ledger, "1")
        place = ledger.anchor_place
    assert place is not None
    assert place.parent == Path(ledger.new_key_place or "").parent
    assert stat.S_IMODE(place.stat().st_mode) == 0o600


def test_b10_both_databases_keep_an_anchor(place: str) -> None:
    with open_ledger(place, KEY) as ledger:
        spend(ledger, "1")
    with open_ledger(place, KEY) as ledger:
        assert ledger.verify().compared_with_anchor
        database = ledger._database
        with database.writing():
            for statement in ("DELETE FROM charges", "DELETE FROM releases", "DELETE FROM balances"):
                database.run(statement)
            database.run("DELETE FROM chain")
        assert "only 0 are left" in ledger.verify().problems[0]
        with pytest.raises(RolledBackError):
            spend(ledger, "2")


@pytest.mark.parametrize("content", [b"nonsense", b"0" * 119])
def test_b10_a_damaged_anchor_is_a_problem_and_no_permission(path: Path, content: bytes) -> None:
    with open_ledger(path, KEY) as ledger:
        spend(ledger, "1")
        anchor = ledger.anchor_place
    assert anchor is not None
    anchor.write_bytes(content)
    with open_ledger(path, KEY) as ledger:
        assert "is damaged" in ledger.verify().problems[0]
        with pytest.raises(RolledBackError, match="is damaged"):
            spend(ledger, "2")
        ledger.accept()
        spend(ledger, "2")


def test_b10_where_no_anchor_can_be_kept_the_ledger_works_and_says_so(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "file"))
    with open_ledger(path, KEY) as ledger:
        spend(ledger, "1")
        assert ledger.anchor_place is None
    with open_ledger(path, KEY) as ledger:
        assert not ledger.verify().compared_with_anchor


def test_b10_an_anchor_only_moves_forward(path: Path) -> None:
    kept = KeptAnchor("some-ledger")
    anchors = [Anchor(number, f"{number:064x}", "f" * 32) for number in range(1, 200)]
    threads = [threading.Thread(target=lambda part=part: [kept.advance(anchor) for anchor in part])  # type: ignore[misc]
               for part in (anchors[::2], anchors[1::2])]  # fmt: skip
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert kept.read() == anchors[-1]
    kept.advance(anchors[3])
    assert kept.read() == anchors[-1]
    kept.replace(anchors[3])
    assert kept.read() == anchors[3]


def test_b10_the_anchor_is_never_ahead_of_a_killed_process(path: Path) -> None:
    """Killed at any moment, what the anchor knows is in the ledger."""
    open_ledger(path, KEY).close()
    for run in range(5):
        child = os.fork()
        if child == 0:
            with open_ledger(path, KEY) as ledger:
                for number in range(10_000):
                    spend(ledger, f"{run} {number}")
            os._exit(0)
        threading.Event().wait(0.05 + 0.03 * run)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        with open_ledger(path, KEY) as ledger:
            assert ledger.verify().ok
            spend(ledger, f"after {run}")
    with open_ledger(path, KEY) as ledger:
        assert ledger.verify().compared_with_anchor
