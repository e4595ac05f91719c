"""Another key: the same ledger, in which the former key finds nobody and seals nothing."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tacit.account.ledger import KeyChangedError, Ledger, LedgerError, RolledBackError, Subject, keys, open_ledger
from tacit.account.ledger.keys import LedgerKey, key_file

from .conftest import KEY, pure
from .test_verify import fill

SHARED = Subject("document", "shared")


def facts(ledger: Ledger) -> list[object]:
    """What must be the same before and after."""
    return [
        ledger.spent(SHARED),
        ledger.spent(Subject("user", "u")),
        ledger.spent(Subject("key", "team")),
        ledger.limit_of(Subject("document", "named"))._replace(name=""),  # type: ignore[union-attr]
        ledger.datasets(),
        [(record.id, record.state, record.created, record.epsilon) for record in ledger.releases()],
        [record.id for record in ledger.releases(commands=[command(ledger)])],
        [record.id for record in ledger.releases(dataset="d", job="j")],
    ]


def command(ledger: Ledger) -> str:
    return f"tacit serve: key {ledger.hash_of(Subject('key', 'team'))}"


@pytest.fixture
def full(place: str) -> str:
    with open_ledger(place) as ledger:
        fill(ledger)
        ledger.set_limit("document", epsilon=7, name="named")
        ledger.set_limit("user", epsilon=70, name="gone")
        ledger.remove_limit("user", name="gone")
        subjects = [Subject("key", "team", 3), Subject("document", "served", 3)]
        ledger.reserve(pure(), dataset="service", subjects=subjects, token="s", command=command(ledger)).commit()
    return place


def test_b10_a_changed_key_finds_everybody_and_the_former_one_nobody(full: str) -> None:
    with open_ledger(full) as ledger:
        before, hashes = facts(ledger), {row[0] for row in ledger._database.rows("SELECT subject FROM balances")}
        former = key_file(ledger.id).read_text()
        path = ledger.change_key()
        assert facts(ledger) == before
        assert ledger.verify().ok
        assert ledger.verify().compared_with_anchor
        assert "the key was changed" in ledger.verify().notes[0]
        assert not hashes & {row[0] for row in ledger._database.rows("SELECT subject FROM balances")}
    assert path.read_text().startswith(former)
    assert len(path.read_text().split()) == 2
    with open_ledger(full) as ledger:
        assert facts(ledger) == before
        subjects = [Subject("document", "text 0"), SHARED, Subject("user", "u", 2)]
        again = ledger.reserve(pure(1.5), dataset="d", subjects=subjects, token="0", command="c", job="j")
        assert again.release == 1  # a run that goes on finds its reservation
        ledger.reserve(pure(), dataset="d", subjects=[SHARED], token="new").commit()
        ledger.change_key()
        assert ledger.verify().ok
        assert ledger.spent(SHARED).epsilon == before[0].epsilon + 1  # type: ignore[attr-defined]
    with pytest.raises(LedgerError, match="not the key of"):
        open_ledger(full, former.strip())
    with open_ledger(full, path.read_text()) as ledger:  # as TACIT_LEDGER_KEY would give it
        assert ledger.verify().ok


def test_b10_a_wrong_former_line_is_a_wrong_key(full: str) -> None:
    with open_ledger(full) as ledger:
        ledger.change_key()
        path = key_file(ledger.id)
    first, second = path.read_text().split()
    path.write_text(f"{'0' * len(first)}\n{second}\n")
    with pytest.raises(LedgerError, match="not the key of"):
        open_ledger(full)


def test_b10_whoever_has_the_ledger_open_is_told_to_open_it_again(full: str) -> None:
    """Under the former key he would charge nobody, and break the chain."""
    with open_ledger(full) as busy:
        with open_ledger(full) as ledger:
            ledger.change_key()
        with pytest.raises(KeyChangedError, match="open it again"):
            busy.reserve(pure(), dataset="d", subjects=[SHARED], token="late")
        with pytest.raises(KeyChangedError):
            busy.spent(SHARED)
    with open_ledger(full) as ledger:
        assert ledger.verify().ok


@pytest.mark.parametrize("step", ["prepare_key", "change_key", "take_prepared_key"])
def test_b10_a_change_that_is_stopped_leaves_a_ledger_with_its_key(
    full: str, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tacit.account.ledger import custody

    original = getattr(custody, step)

    def stop(*arguments: object) -> None:
        if step != "take_prepared_key":
            original(*arguments)
        raise KeyboardInterrupt

    with open_ledger(full) as ledger:
        before = facts(ledger)
        with monkeypatch.context() as patch:
            patch.setattr(custody, step, stop)
            with pytest.raises(KeyboardInterrupt):
                ledger.change_key()
    for _ in range(2):
        with open_ledger(full) as ledger:
            assert facts(ledger) == before
            assert ledger.verify().ok
            ledger.reserve(pure(0), dataset="e", subjects=[Subject("document", "e")], token="e").commit()
            before = facts(ledger)
            ledger.change_key()
    assert keys.prepared_key(ledger.id) is None


def test_b10_a_copy_of_before_opens_with_the_changed_key_and_is_not_spent_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, copy = tmp_path / "budget.db", tmp_path / "copy.db"
    with open_ledger(path) as ledger:
        fill(ledger)
        ledger.copy_to(copy)
        ledger.change_key()
    with open_ledger(copy) as ledger:
        assert ledger.spent(SHARED).releases == 3
        assert "before its key was changed" in ledger.verify().problems[0]
        with pytest.raises(RolledBackError):
            ledger.reserve(pure(), dataset="d", subjects=[SHARED], token="x")


def test_b10_another_machine_goes_on_with_the_changed_key(
    full: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its anchor is of before the change, which the chain knows of."""
    with open_ledger(full) as ledger:
        own_keys = key_file(ledger.id).parents[2]
    shutil.copytree(own_keys, tmp_path / "other")
    with open_ledger(full) as ledger:
        ledger.reserve(pure(), dataset="d", subjects=[SHARED], token="x").commit()
        path = ledger.change_key()
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "other"))
    shutil.copy(path, key_file(ledger.id))
    with open_ledger(full) as ledger:
        ledger.reserve(pure(), dataset="d", subjects=[SHARED], token="y").commit()
    with open_ledger(full) as ledger:
        assert ledger.verify().ok
        assert ledger.verify().compared_with_anchor


def test_b10_a_changed_ledger_does_not_get_a_new_key(tmp_path: Path) -> None:
    """It would seal the change."""
    path = tmp_path / "budget.db"
    with open_ledger(path) as ledger:
        fill(ledger)
        with ledger._database.writing():
            ledger._database.run("UPDATE balances SET epsilon = 0")
        with pytest.raises(LedgerError, match="the key is not changed"):
            ledger.change_key()
    with open_ledger(path) as ledger:
        assert not ledger.verify().ok


def test_b10_nothing_of_the_former_hashes_is_left_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "budget.db"
    with open_ledger(path) as ledger:
        fill(ledger)
        hashed = bytes.fromhex(ledger.hash_of(SHARED))
        ledger.change_key()
    assert all(hashed not in file.read_bytes() for file in tmp_path.glob("budget.db*"))


def test_b10_hashes_under_a_changed_key_are_hashes_of_hashes() -> None:
    first, both = LedgerKey(b"0123456789abcdef"), LedgerKey(b"0123456789abcdef", b"fedcba9876543210")
    assert both.name("document", "x") == both.renamed(first.name("document", "x"))
    assert both.name("document", "x") == LedgerKey(b"fedcba9876543210")._first.hashed(first.name("document", "x"))
    assert both.fitting("l", first.check("l")).text() == first.text()  # type: ignore[union-attr]


# Copies -------------------------------------------------------------------------------------------------------------


def test_b10_a_backup_is_whole_and_can_be_brought_back(full: str, tmp_path: Path) -> None:
    copy, back = tmp_path / "copy.db", tmp_path / "back.db"
    with open_ledger(full) as ledger:
        before = facts(ledger)
        verification = ledger.copy_to(copy)
        assert verification.anchor == ledger.anchor()
        with pytest.raises(LedgerError, match="is there already"):
            ledger.copy_to(copy)
    assert [path.name for path in tmp_path.glob("copy.db*")] == ["copy.db"]
    assert copy.stat().st_mode & 0o777 == 0o600
    with open_ledger(copy, create=False) as ledger:
        assert facts(ledger) == before
        assert ledger.verify(verification.anchor).ok
        ledger.copy_to(back)
    with open_ledger(back, create=False) as ledger:
        assert facts(ledger) == before
        ledger.reserve(pure(), dataset="d", subjects=[SHARED], token="more").commit()


def test_b10_a_file_moves_into_postgresql(tmp_path: Path, postgres: str) -> None:
    import psycopg

    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute("CREATE DATABASE moved")
    target = postgres.replace("/postgres?", "/moved?")
    with open_ledger(tmp_path / "budget.db", KEY) as ledger:
        fill(ledger)
        spent = ledger.spent(SHARED)
        ledger.copy_to(target)
    with open_ledger(target, KEY, create=False) as ledger:
        assert ledger.spent(SHARED) == spent
        assert ledger.verify().ok
        assert ledger.verify().compared_with_anchor
        with pytest.raises(LedgerError, match="is there already"):
            ledger.copy_to(target)


def test_b10_a_damaged_ledger_is_not_copied_as_if_it_were_whole(tmp_path: Path) -> None:
    with open_ledger(tmp_path / "budget.db", KEY) as ledger:
        fill(ledger)
        with ledger._database.writing():
            ledger._database.run("UPDATE balances SET epsilon = 0")
        with pytest.raises(LedgerError, match="as damaged as the ledger"):
            ledger.copy_to(tmp_path / "copy.db")
    assert list(tmp_path.glob("copy*")) == []


@pytest.mark.parametrize(
    "change",
    [
        "DELETE FROM meta WHERE name = 'documents'",
        "UPDATE meta SET value = '' WHERE name = 'documents'",
        "DELETE FROM meta WHERE name = 'users'",
    ],
)
def test_b10_how_documents_are_recognized_cannot_be_changed_without_the_key(full: str, change: str) -> None:
    """A ledger that took documents to the letter from now on would know none of those that it has charged."""
    with open_ledger(full) as ledger:
        spent = ledger.spent(SHARED)
        assert ledger.spent(Subject("document", " Shared ")) == spent
        ledger.change_key()
        assert ledger.spent(Subject("document", " Shared ")) == spent
        with ledger._database.writing():
            ledger._database.run(change)
    with pytest.raises(LedgerError, match="recognizes documents"):
        open_ledger(full)


def test_b10_a_ledger_of_before_goes_on_to_the_letter_under_another_key(full: str) -> None:
    with open_ledger(full) as ledger:  # as it was made before documents were recognized by their tokens
        ledger._key.recognizes = keys.to_the_letter
        with ledger._database.writing():
            ledger._database.run("DELETE FROM meta WHERE name = 'documents'")
            ledger._database.run("UPDATE meta SET value = ? WHERE name = 'key'", (ledger._key.check(ledger.id),))
        key_file(ledger.id).with_suffix(".anchor").unlink()
    with open_ledger(full) as ledger:
        assert not ledger.spent(Subject("document", " shared")).releases
        ledger.change_key()
        assert ledger.spent(SHARED).releases
        with ledger._database.writing():
            ledger._database.run("INSERT INTO meta VALUES ('documents', 'by their tokens')")
    with pytest.raises(LedgerError, match="recognizes documents"):
        open_ledger(full)
