"""A job with a ledger: every block is charged before its noise is drawn, once, whoever works on it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tacit.account.ledger import BudgetExceededError, Ledger, Subject, open_ledger
from tacit.account.ledger.keys import by_tokens, to_the_letter
from tacit.engines.blocks import Block
from tacit.engines.charging import Charging, job_name, subjects_of
from tacit.engines.job import RewriteJob
from tacit.engines.local import rewrite_file
from tacit.engines.users import UserRule
from tacit.errors import BadInputError, NoGuaranteeError, StoppedError
from tacit.guarantee import Guarantee, Unit
from tacit.mechanism import Mechanism
from tacit.noise.source import StreamKey
from tacit.words.tem import TEM

from .fakes import NoiseShown, draws_by_text
from .test_local import StopAt, make_csv, mechanism_with

KEY = "a key that is only used in tests"


class Whole(NoiseShown):
    """The same for whole documents."""

    def guarantee(self, *, secure: bool = True) -> Guarantee:
        return replace(super().guarantee(secure=secure), unit=Unit.DOCUMENT)

    def count_units(self, texts: Sequence[str]) -> list[int]:
        return [1] * len(texts)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with open_ledger(tmp_path / "budget.db", KEY) as opened:
        yield opened


@pytest.fixture
def job(tmp_path: Path, ledger: Ledger) -> RewriteJob:
    """120 rows of 7 words in about 12 blocks."""
    return RewriteJob(
        mechanism=NoiseShown(log=str(tmp_path / "log")),
        input=str(make_csv(tmp_path / "in.csv")),
        output=str(tmp_path / "out.csv"),
        columns=("text",),
        charging=Charging(ledger, "d"),
    )


def text(row: int) -> Subject:
    return Subject("document", f"text number {row}, with word and more")


# Whom a block is charged to -------------------------------------------------------------------------------------


def test_subjects_of_a_block() -> None:
    block = Block(0, 1, texts=["a b", "c", "", "d e f"], kept=[[], []], users=["u", "u"])
    assert subjects_of(block, [2, 1, 0, 3], 2, "d") == [
        Subject("document", "a b", 2),
        Subject("document", "c", 1),
        Subject("document", "", 0),
        Subject("document", "d e f", 3),
        Subject("user", "u", 6),
        Subject("dataset", "d", 3),
    ]
    named = replace(block, documents=["1", "2"], users=[])
    assert subjects_of(named, [2, 1, 0, 3], 2, "d")[:2] == [
        Subject("document", "d\0" + "1", 3),
        Subject("document", "d\0" + "2", 3),
    ]


def test_the_units_are_known_before_the_draw(default_table: object) -> None:
    texts = [
        "It's a charming, often affecting journey (1,000 km).",
        "",
        "don't!! www.example.org",
        "\u201cquoted\u201d",
    ]
    for punctuation in ("rewrite", "drop", "keep"):
        mechanism = TEM(epsilon=2.0, punctuation=punctuation)
        assert mechanism.count_units(texts) == mechanism.rewrite(texts).units


def test_a_mechanism_that_does_not_tell_its_units_cannot_be_charged() -> None:
    with pytest.raises(NoGuaranteeError, match="does not tell beforehand"):
        Mechanism.count_units(NoiseShown(), ["a"])


def test_the_name_of_a_job_does_not_tell_its_key() -> None:
    key = StreamKey.from_os()
    assert job_name(key) == job_name(StreamKey(key.key, secure=True))
    assert job_name(key) != job_name(StreamKey.from_os())
    assert job_name(key) not in key.key.hex()


# The job --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("workers", [1, 2])
def test_every_text_is_charged_once(job: RewriteJob, ledger: Ledger, workers: int) -> None:
    rewrite_file(replace(job, workers=workers))
    assert {ledger.spent(text(row)).epsilon for row in range(120)} == {7.0}
    assert (ledger.spent(Subject("dataset", "d")).epsilon, ledger.spent(Subject("dataset", "d")).releases) == (7.0, 1)
    assert {record.state for record in ledger.releases()} == {"committed"}
    assert len(ledger.releases()) > 5
    assert ledger.verify().ok


@pytest.mark.parametrize("blocks", [1, 4])
def test_a_stopped_run_counts_no_block_twice(job: RewriteJob, ledger: Ledger, blocks: int) -> None:
    with pytest.raises(StoppedError):
        rewrite_file(job, on_block=StopAt(blocks))
    rewrite_file(replace(job, resume=True))
    assert {ledger.spent(text(row)).epsilon for row in range(120)} == {7.0}
    assert {record.state for record in ledger.releases()} == {"committed"}
    assert ledger.verify().ok


def test_no_noise_is_drawn_for_a_block_that_is_refused(job: RewriteJob, ledger: Ledger, tmp_path: Path) -> None:
    ledger.set_limit("document", epsilon=10)
    ledger.reserve(job.mechanism.guarantee(), dataset="e", subjects=[text(100)._replace(units=7)], token="before")
    with pytest.raises(BudgetExceededError):
        rewrite_file(job)
    drawn = len(draws_by_text(tmp_path / "log"))
    assert 80 < drawn <= 100
    assert ledger.spent(text(100)).epsilon == 7.0
    assert ledger.spent(text(99)).epsilon in (0.0, 7.0)
    assert not Path(job.output).exists()
    ledger.set_limit("document", epsilon=14)
    rewrite_file(replace(job, resume=True))
    assert ledger.spent(text(100)).epsilon == 14.0
    assert ledger.spent(text(1)).epsilon == 7.0
    assert all(len(draws) == 1 for draws in draws_by_text(tmp_path / "log").values())


def test_users_pay_for_the_rows_that_are_used(job: RewriteJob, ledger: Ledger, tmp_path: Path) -> None:
    rows = "".join(f"{row},text number {row},{row % 5}\n" for row in range(20))
    Path(job.input).write_text("id,text,stars\n" + rows)
    whole = Whole(epsilon=2.0, log=str(tmp_path / "log"))
    rewrite_file(replace(job, mechanism=whole, users=UserRule("stars", "divide", 3), keep=("id",)))
    assert ledger.spent(Subject("user", "4")).epsilon == 6.0
    assert ledger.spent(Subject("document", "text number 1")).epsilon == 2.0
    assert ledger.spent(Subject("document", "text number 19")).releases == 0  # left out
    assert Path(job.output).read_text().splitlines()[0] == "id,text"


def test_named_documents(job: RewriteJob, ledger: Ledger) -> None:
    rewrite_file(replace(job, charging=Charging(ledger, "d", "id"), keep=("stars",)))
    assert ledger.spent(Subject("document", "d\0" + "17")).epsilon == 7.0
    assert ledger.spent(text(17)).releases == 0
    together = replace(job, mechanism=Whole(), users=UserRule("stars", "concatenate"), keep=(), force=True)
    with pytest.raises(BadInputError, match="does not go with"):
        rewrite_file(replace(together, charging=Charging(ledger, "d", "id")))


def test_a_changed_block_is_charged_again(job: RewriteJob, ledger: Ledger, tmp_path: Path) -> None:
    """A block that was reserved and not finished may be corrected: its new text has new noise, and is charged."""
    failing = mechanism_with(job, mark="number 100,", deed="fail")
    with pytest.raises(Exception, match="Please report this"):
        rewrite_file(failing)
    open_before = [record.id for record in ledger.releases(state="reserved")]
    assert len(open_before) == 1
    content = Path(job.input).read_text()
    Path(job.input).write_text(content.replace("text number 100,", "text number one hundred,"))
    rewrite_file(replace(failing, resume=True))
    assert [record.id for record in ledger.releases(state="reserved")] == open_before  # counted, as it may be drawn
    assert ledger.spent(text(99)).epsilon in (7.0, 14.0)
    assert ledger.verify().ok


# What makes two texts one document --------------------------------------------------------------------------------


def test_a13_spaces_do_not_make_another_document(job: RewriteJob, ledger: Ledger) -> None:
    """The same text in 20 forms is one document, in one file and over several."""
    Path(job.input).write_text("text\n" + "".join(f'"One  TEXT, twice{" " * i}"\n' for i in range(10)))
    rewrite_file(replace(job, mechanism=Whole()))
    Path(job.input).write_text("text\n" + "".join(f'"{chr(9) * i}one text,\u200b twice"\n' for i in range(1, 11)))
    rewrite_file(replace(job, mechanism=Whole(), force=True))
    assert ledger.spent(Subject("document", "one text, twice")).epsilon == 20.0
    ledger.set_limit("document", epsilon=20)
    Path(job.input).write_text('text\n"one text, twice \0 "\n')
    with pytest.raises(BudgetExceededError, match="one document"):
        rewrite_file(replace(job, mechanism=Whole(), force=True))
    Path(job.input).write_text('text\n"one text, thrice"\n')
    rewrite_file(replace(job, mechanism=Whole(), force=True))


def test_a13_names_of_documents_and_users_are_not_told_apart_by_white_space(job: RewriteJob, ledger: Ledger) -> None:
    Path(job.input).write_text("id,text\n7,one\n 7,two\n7\t,three\nA,four\na,five\n")
    rewrite_file(replace(job, mechanism=Whole(), charging=Charging(ledger, "d", "id")))
    assert ledger.spent(Subject("document", "d\0" + "7")).epsilon == 3.0
    assert ledger.spent(Subject("document", "d\0" + "A")).epsilon == 1.0, "a name is kept as it is"
    ledger.reserve(Whole().guarantee(), dataset="d", subjects=[Subject("user", "Jos\u00e9 ", 1)], token="1")
    assert ledger.spent(Subject("user", "Jose\u0301")).epsilon == 1.0


def test_a_user_has_one_account_under_all_spellings_of_a_name(job: RewriteJob, ledger: Ledger) -> None:
    Path(job.input).write_text("who,text\nAnn Lee,one\nann  lee,two\n7,three\n7.0,four\n")
    charged = Charging(ledger, "d")
    rewrite_file(replace(job, mechanism=Whole(), charging=charged, users=UserRule("who", documents=2)))
    assert ledger.spent(Subject("user", "ANN\u00a0LEE")).epsilon == 2.0
    assert ledger.spent(Subject("user", "7")).epsilon == 2.0


def test_a13_a_ledger_of_before_keeps_its_documents(tmp_path: Path) -> None:
    """Its hashes cannot be made anew, so what was spent must be found under them."""
    place = tmp_path / "old.db"
    with open_ledger(place, KEY) as opened:
        opened._key.recognizes = to_the_letter
        check = opened._key.check(opened.id)
        opened._database.connection.execute("DELETE FROM meta WHERE name = 'documents'")
        opened._database.connection.execute("UPDATE meta SET value = ? WHERE name = 'key'", (check,))
    with open_ledger(place, KEY) as old:
        old.reserve(Whole().guarantee(), dataset="d", subjects=[Subject("document", "A text", 1)], token="1")
        assert old.spent(Subject("document", "A text")).epsilon == 1.0
        assert old.spent(Subject("document", "a text")).epsilon == 0.0
        assert old.verify().ok


def test_a_ledger_of_before_keeps_its_users(tmp_path: Path) -> None:
    place = tmp_path / "old.db"
    with open_ledger(place, KEY) as opened:
        opened._key.recognizes = by_tokens
        check = opened._key.check(opened.id)
        opened._database.connection.execute("DELETE FROM meta WHERE name = 'users'")
        opened._database.connection.execute("UPDATE meta SET value = ? WHERE name = 'key'", (check,))
    with open_ledger(place, KEY) as old:
        old.reserve(Whole().guarantee(), dataset="d", subjects=[Subject("user", " Ann", 1)], token="1")
        assert old.spent(Subject("user", "Ann")).epsilon == 1.0
        assert old.spent(Subject("user", "ann")).epsilon == 0.0
        assert old.verify().ok
