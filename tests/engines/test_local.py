"""The job: no row is ever released with two different draws, whatever happens in between."""

from __future__ import annotations

import errno
import json
import os
import random
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tacit.card import Card
from tacit.engines import local, outputs, release
from tacit.engines.blocks import Block, content_digest, cut_blocks, fingerprint
from tacit.engines.job import RewriteJob, RewriteProgress
from tacit.engines.local import rewrite_file
from tacit.engines.output_errors import AlreadyCompleteError
from tacit.engines.processes import THREAD_VARIABLES
from tacit.engines.resume import resume_path
from tacit.engines.workers import WorkerDiedError
from tacit.errors import BadInputError, BadParameterError, StoppedError, TacitError, TacitWarning
from tacit.noise.source import StreamKey
from tacit.text import files
from tacit.text.digest import file_digest
from tacit.text.files import OutputError, choose_columns, open_table, partial, partial_path, write_columns
from tacit.text.identity import document_identity
from tacit.text.tokens import split

from .fakes import LargeBlocks, NoiseShown, draws_by_text, processes

ROOT = Path(__file__).parent.parent.parent
SECRET = "ZANZIBAR"


def make_csv(path: Path, rows: int = 120, mark_row: int = -1) -> Path:
    lines = ["id,text,stars"]
    for row in range(rows):
        word = SECRET if row == mark_row else "word"
        lines.append(f'{row},"text number {row}, with {word} and more",{row % 5}')
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def job(tmp_path: Path) -> RewriteJob:
    """120 rows in about 12 blocks."""
    return RewriteJob(
        mechanism=NoiseShown(log=str(tmp_path / "log")),
        input=str(make_csv(tmp_path / "in.csv")),
        output=str(tmp_path / "out.csv"),
        columns=("text",),
        keep=("stars",),
    )


def mechanism_with(job: RewriteJob, **parameters: Any) -> RewriteJob:
    return replace(job, mechanism=NoiseShown(**{**job.mechanism.get_params(), **parameters}))


def output_bytes(job: RewriteJob) -> bytes:
    return Path(job.output).read_bytes()


def left_over(job: RewriteJob) -> list[str]:
    """The output and what an unfinished run leaves beside it; cards are there where the output is."""
    names = sorted(path.name for path in Path(job.output).parent.glob("out*"))
    cards = [name for name in names if ".card." in name]
    assert len(cards) == 2 * Path(job.output).exists() or not cards
    return [name for name in names if name not in cards]


def reference(job: RewriteJob, key: bytes, monkeypatch: pytest.MonkeyPatch) -> bytes:
    """What an uninterrupted run with this key writes."""
    with monkeypatch.context() as patch:
        patch.setattr(outputs, "new_key", lambda seed: StreamKey(key, secure=True))
        whole = replace(job, output=str(Path(job.output).with_name(f"reference-{Path(job.output).name}")), resume=False)
        rewrite_file(whole)
    return output_bytes(whole)


def saved_key(job: RewriteJob) -> bytes:
    return bytes.fromhex(json.loads(resume_path(Path(job.output)).read_text().splitlines()[0])["key"])


class StopAt:
    """Presses Ctrl-C after some blocks."""

    def __init__(self, blocks: int) -> None:
        self.left = blocks

    def __call__(self, originals: list[str], released: list[str] | None) -> None:
        if released is not None:
            self.left -= 1
            if self.left == 0:
                raise KeyboardInterrupt


# Blocks -----------------------------------------------------------------------------------------------------


def blocks_of(job: RewriteJob) -> Iterator[Block]:
    with open_table(job.input) as table:
        selection = choose_columns(table.columns, job.columns, job.keep)
        yield from cut_blocks(table, selection, job.mechanism.block_characters, b"job")


def test_blocks_are_cut_by_text(job: RewriteJob) -> None:
    blocks = list(blocks_of(job))
    assert [block.index for block in blocks] == list(range(len(blocks)))
    assert sum(block.rows for block in blocks) == 120
    assert [block.first_row for block in blocks][:2] == [1, 1 + blocks[0].rows]
    for block in blocks[:-1]:
        size = sum(map(len, block.texts))
        assert 400 <= size < 400 + len(block.texts[-1]) + 1


def test_large_copied_columns_also_cut(job: RewriteJob, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tacit.engines.blocks.BLOCK_KEPT_CHARACTERS", 3)
    assert [block.rows for block in blocks_of(job)] == [3] * 40


def test_a_digest_covers_every_boundary() -> None:
    first = content_digest(["ab", "c"], b"job")
    others = [(["a", "bc"], b"job"), (["ab", "c", ""], b"job"), (["abc"], b"job"), (["b", "c"], b"joba")]
    assert all(first != content_digest(texts, job) for texts, job in others)
    assert first == content_digest(("ab", "c"), b"job")


def test_other_parameters_draw_other_noise() -> None:
    first = fingerprint(NoiseShown(epsilon=1.0), ("text",))
    assert first != fingerprint(NoiseShown(epsilon=2.0), ("text",))
    assert first != fingerprint(NoiseShown(epsilon=1.0), ("title",))


# A plain run ------------------------------------------------------------------------------------------------


def test_facts_and_columns(job: RewriteJob, tmp_path: Path) -> None:
    facts = rewrite_file(replace(job, command="tacit rewrite")).facts
    assert (facts.rows, facts.documents, facts.units) == (120, 120, 120 * 7)
    assert (facts.longest_document, facts.longest_row) == (7, 7)
    assert (facts.columns, facts.kept_columns, facts.dropped_columns) == (("text",), ("stars",), 1)
    assert (facts.output, facts.command) == ("out.csv", "tacit rewrite")
    with open_table(job.output) as table:
        assert table.columns == ("text", "stars")
        assert [values[1] for _, values in table.rows()] == [str(row % 5) for row in range(120)]
    assert left_over(job) == ["out.csv"]


def test_several_text_columns(job: RewriteJob) -> None:
    facts = rewrite_file(replace(job, columns=("text", "id"))).facts
    assert (facts.documents, facts.units) == (240, 120 * 8)
    assert (facts.longest_document, facts.longest_row) == (7, 8)
    with open_table(job.output) as table:
        assert table.columns == ("id", "text", "stars")


def test_two_runs_draw_differently(job: RewriteJob) -> None:
    rewrite_file(job)
    first = output_bytes(job)
    rewrite_file(replace(job, force=True))
    assert output_bytes(job) != first


def test_equal_blocks_draw_differently(job: RewriteJob, tmp_path: Path) -> None:
    (tmp_path / "same.txt").write_text("exactly the same words every time\n" * 200)
    rewrite_file(replace(job, input=str(tmp_path / "same.txt"), columns=(), keep=()))
    lines = Path(job.output).read_text().splitlines()[1:]
    assert len(set(lines)) == 200


def test_seeded_runs_repeat_with_any_number_of_workers(job: RewriteJob, tmp_path: Path) -> None:
    outputs = set()
    for number, workers in enumerate((1, 1, 2)):
        path = tmp_path / f"seeded{number}.csv"
        rewrite_file(replace(job, seed=7, workers=workers, output=str(path)))
        outputs.add(path.read_bytes())
    assert len(outputs) == 1


def test_progress_reaches_the_end(job: RewriteJob) -> None:
    seen: list[RewriteProgress] = []
    rewrite_file(job, progress=seen.append)
    assert seen[0].rows == 0
    assert [progress.rows for progress in seen] == sorted(progress.rows for progress in seen)
    assert seen[-1].rows == 120
    assert seen[-1].bytes_done == seen[-1].bytes_total == Path(job.input).stat().st_size


def test_the_card_comes_before_the_output(job: RewriteJob, monkeypatch: pytest.MonkeyPatch) -> None:
    written = partial.write_together

    def look(texts: Any) -> None:
        assert [path.name for path in texts] == ["out.csv.card.json", "out.csv.card.md"]
        assert not Path(job.output).exists()
        assert partial_path(Path(job.output)).exists()
        written(texts)

    monkeypatch.setattr(release, "write_together", look)
    published = rewrite_file(job)
    assert Path(job.output).exists()
    card = Card.from_json(Path(f"{job.output}.card.json").read_text())
    assert card == published.card
    assert card.facts.digest == file_digest(job.output)


@pytest.mark.parametrize("broken", ["out.csv.card.json", "out.csv.card.md"])
def test_a_card_that_cannot_be_written_stops_the_release(job: RewriteJob, broken: str) -> None:
    """A folder in the place of a card: no texts without it, and the run goes on when the place is free."""
    place = Path(job.output).with_name(broken)
    (place / "within").mkdir(parents=True)
    with pytest.raises(OutputError):
        rewrite_file(job)
    assert not Path(job.output).exists()
    shutil.rmtree(place)
    assert rewrite_file(replace(job, resume=True)).facts.rows == 120
    assert Path(job.output).exists()
    assert place.is_file()


def test_the_promise_is_worked_out_once(job: RewriteJob, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    original = NoiseShown.guarantee
    monkeypatch.setattr(NoiseShown, "guarantee", lambda self, **more: calls.append(1) or original(self, **more))
    rewrite_file(replace(job, refuse_nominal=True, mechanism=mechanism_with(job, epsilon=0.01).mechanism))
    assert len(calls) == 1


# Stop and go on ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", ["csv", "csv.gz", "jsonl", "parquet"])
def test_resumed_output_is_the_uninterrupted_one(
    job: RewriteJob, tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = replace(job, output=str(tmp_path / f"out.{suffix}"))
    luck = random.Random(suffix)
    for stop in range(3):
        with pytest.raises(StoppedError, match=rf"rows are in out.{suffix}.partial; .* resume") as stopped:
            rewrite_file(replace(job, resume=stop > 0), on_block=StopAt(luck.randint(1, 3)))
        assert stopped.value.exit_code == 130
    key = saved_key(job)
    facts = rewrite_file(replace(job, resume=True)).facts
    assert facts.rows == 120
    assert facts.units == 840
    assert output_bytes(job) == reference(job, key, monkeypatch)
    assert all(len(draws) == 1 for draws in draws_by_text(tmp_path / "log").values())
    assert left_over(job) == [f"out.{suffix}"]


def test_interrupt_in_the_middle_of_a_block(job: RewriteJob, tmp_path: Path) -> None:
    make_csv(tmp_path / "in.csv", mark_row=70)
    broken = mechanism_with(job, mark=SECRET, deed="interrupt")
    with pytest.raises(StoppedError, match="rows are in"):
        rewrite_file(broken)
    with pytest.raises(BadInputError, match="deed was interrupt and is now"):
        rewrite_file(replace(job, resume=True))


def test_state_is_secret_and_goes_away(job: RewriteJob) -> None:
    with pytest.raises(StoppedError):
        rewrite_file(job, on_block=StopAt(2))
    state = resume_path(Path(job.output))
    assert stat.S_IMODE(state.stat().st_mode) == 0o600
    assert "word" not in state.read_text()
    rewrite_file(replace(job, resume=True))
    assert not state.exists()


def test_torn_tails_are_cut(job: RewriteJob, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As after a power failure: half a block in the output, half a line in the state."""
    with pytest.raises(StoppedError):
        rewrite_file(job, on_block=StopAt(5))
    key = saved_key(job)
    with partial_path(Path(job.output)).open("ab") as file:
        file.write(b'"half a row')
    with resume_path(Path(job.output)).open("ab") as file:
        file.write(b'{"block": 5, "ro')
    rewrite_file(replace(job, resume=True))
    assert output_bytes(job) == reference(job, key, monkeypatch)


@pytest.mark.parametrize("size", [0, 5, 700])
def test_lost_output_is_made_again_with_the_same_noise(
    job: RewriteJob, tmp_path: Path, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The state promises more than the output holds: the blocks in between are repeated, not drawn anew."""
    with pytest.raises(StoppedError):
        rewrite_file(job, on_block=StopAt(5))
    key = saved_key(job)
    os.truncate(partial_path(Path(job.output)), size)
    with pytest.warns(TacitWarning, match="is damaged after"):
        rewrite_file(replace(job, resume=True))
    assert output_bytes(job) == reference(job, key, monkeypatch)
    assert all(len(draws) == 1 for draws in draws_by_text(tmp_path / "log").values())


def test_stopped_after_the_last_block(job: RewriteJob) -> None:
    def stop(*_: Any) -> None:
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(local, "write_cards", stop)
        with pytest.raises(StoppedError, match="120 rows"):
            rewrite_file(job)
    drawn = partial_path(Path(job.output)).read_bytes()
    assert rewrite_file(replace(job, resume=True)).facts.rows == 120
    assert output_bytes(job) == drawn


def test_resume_checks_the_command(job: RewriteJob) -> None:
    with pytest.raises(StoppedError):
        rewrite_file(job, on_block=StopAt(2))
    for other, what in [
        (mechanism_with(job, epsilon=3.0), "epsilon was 1.0 and is now 3.0"),
        (replace(job, keep=()), "kept columns was stars and is now none"),
        (replace(job, columns=("id",)), "columns was text and is now id"),
        (replace(job, seed=1), "seed was not set and is now 1"),
    ]:
        with pytest.raises(BadInputError, match=what):
            rewrite_file(replace(other, resume=True))
    assert rewrite_file(replace(job, resume=True, workers=2)).facts.rows == 120


def test_resume_checks_the_finished_rows(job: RewriteJob) -> None:
    with pytest.raises(StoppedError):
        rewrite_file(job, on_block=StopAt(3))
    original = Path(job.input).read_text()
    Path(job.input).write_text(original.replace("number 3,", "number three,"))
    with pytest.raises(BadInputError, match="the input has changed between row 1 and row"):
        rewrite_file(replace(job, resume=True))
    Path(job.input).write_text("".join(original.splitlines(keepends=True)[:5]))
    with pytest.raises(BadInputError, match="the input has changed"):
        rewrite_file(replace(job, resume=True))
    Path(job.input).write_text(original)
    assert rewrite_file(replace(job, resume=True)).facts.rows == 120


def test_a_corrected_file_goes_on(job: RewriteJob, tmp_path: Path) -> None:
    """Nothing is lost to a broken row: correct it and resume."""
    good = Path(job.input).read_text()
    Path(job.input).write_text(good.replace("\n90,", '\n90,"'))
    with pytest.raises(BadInputError, match=r"row 91 \(line 92\)") as caught:
        rewrite_file(job)
    assert any("rows are in out.csv.partial" in note for note in caught.value.__notes__)
    Path(job.input).write_text(good)
    assert rewrite_file(replace(job, resume=True)).facts.rows == 120
    assert all(len(draws) == 1 for draws in draws_by_text(tmp_path / "log").values())


def test_output_that_exists(job: RewriteJob) -> None:
    rewrite_file(job)
    first = output_bytes(job)
    with pytest.raises(OutputError, match="exists: add force"):
        rewrite_file(job)
    with pytest.raises(AlreadyCompleteError, match="already complete"):
        rewrite_file(replace(job, resume=True))
    assert output_bytes(job) == first


def test_unfinished_runs_are_not_overwritten(job: RewriteJob) -> None:
    with pytest.raises(StoppedError):
        rewrite_file(job, on_block=StopAt(2))
    with pytest.raises(OutputError, match="add resume to go on with it, or force"):
        rewrite_file(job)
    assert rewrite_file(replace(job, force=True)).facts.rows == 120
    assert left_over(job) == ["out.csv"]


def test_forced_runs_can_be_resumed(job: RewriteJob) -> None:
    rewrite_file(job)
    first = output_bytes(job)
    with pytest.raises(StoppedError):
        rewrite_file(replace(job, force=True), on_block=StopAt(2))
    assert output_bytes(job) == first
    rewrite_file(replace(job, resume=True))
    assert output_bytes(job) != first
    assert left_over(job) == ["out.csv"]


def test_stale_state_beside_a_finished_output(job: RewriteJob) -> None:
    """Killed between the renaming of the output and the deletion of its state."""
    with pytest.raises(StoppedError):
        rewrite_file(job, on_block=StopAt(2))
    state = resume_path(Path(job.output)).read_bytes()
    rewrite_file(replace(job, resume=True))
    resume_path(Path(job.output)).write_bytes(state)
    with pytest.raises(AlreadyCompleteError):
        rewrite_file(replace(job, resume=True))
    assert left_over(job) == ["out.csv"]


def test_resume_without_anything_starts(job: RewriteJob) -> None:
    assert rewrite_file(replace(job, resume=True)).facts.rows == 120


def test_resume_without_its_state(job: RewriteJob) -> None:
    with pytest.raises(StoppedError):
        rewrite_file(job, on_block=StopAt(2))
    state = resume_path(Path(job.output))
    state.write_text("nonsense\n")
    with pytest.raises(BadInputError, match="cannot be read"):
        rewrite_file(replace(job, resume=True))
    state.unlink()
    with pytest.raises(BadInputError, match="is missing"):
        rewrite_file(replace(job, resume=True))


def test_one_run_at_a_time(job: RewriteJob) -> None:
    def meanwhile(originals: list[str], released: list[str] | None) -> None:
        with pytest.raises(OutputError, match="another run is writing"):
            rewrite_file(replace(job, resume=True))
        with pytest.raises(OutputError, match="another run is writing"):
            rewrite_file(replace(job, force=True))

    assert rewrite_file(job, on_block=meanwhile).facts.rows == 120


# Bad input --------------------------------------------------------------------------------------------------


def test_header_without_rows(job: RewriteJob, tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("id,text,stars\n")
    with pytest.raises(BadInputError, match="has no rows"):
        rewrite_file(job)
    assert left_over(job) == []


def test_places_that_cannot_be_written(job: RewriteJob, tmp_path: Path) -> None:
    for output, message in [
        (tmp_path / "none" / "out.csv", "does not exist"),
        (tmp_path, "is a folder"),
        (Path(job.input), "the output is the input"),
    ]:
        with pytest.raises(OutputError, match=message):
            rewrite_file(replace(job, output=str(output), force=True))
    with pytest.raises(BadParameterError, match="at least 1"):
        rewrite_file(replace(job, workers=0))
    with pytest.raises(BadInputError, match="can be resumed"):
        rewrite_file(replace(job, output="-", resume=True))


def test_wrong_values_in_rows(job: RewriteJob, tmp_path: Path) -> None:
    path = tmp_path / "in.jsonl"
    path.write_text('{"text": "a b"}\n{"text": null}\n{"text": ""}\n{"text": 3}\n')
    wrong = replace(job, input=str(path), keep=(), output=str(tmp_path / "out.jsonl"))
    with pytest.raises(BadInputError, match="row 4, column 'text' holds a number"):
        rewrite_file(wrong)
    path.write_text('{"text": "a b"}\n{"text": null}\n{"text": ""}\n')
    rewrite_file(replace(wrong, force=True))
    texts = [json.loads(line)["text"] for line in Path(wrong.output).read_text().splitlines()]
    assert texts[1:] == ["", ""]


@pytest.mark.parametrize(("deed", "workers"), [("fail", 1), ("memory", 1), ("fail", 2)])
def test_errors_of_a_mechanism_do_not_quote_text(job: RewriteJob, tmp_path: Path, deed: str, workers: int) -> None:
    make_csv(tmp_path / "in.csv", mark_row=70)
    with pytest.raises(TacitError) as caught:
        rewrite_file(replace(mechanism_with(job, mark=SECRET, deed=deed), workers=workers))
    message = str(caught.value) + "".join(getattr(caught.value, "__notes__", ()))
    assert SECRET not in message
    assert ("KeyError in fakes.py" if deed == "fail" else "memory") in message
    assert "with resume" in message
    if deed == "fail":
        assert caught.value.__cause__ is None or SECRET not in str(caught.value.__cause__)


@pytest.mark.parametrize("victim", ["out.csv.partial", "out.csv.resume"])
def test_full_disk(job: RewriteJob, tmp_path: Path, victim: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Writes stop half way through a block; afterwards the run goes on as if nothing had happened."""
    original = files.write_at
    writes = 0

    def limited(file: Any, offset: int, data: bytes) -> None:
        nonlocal writes
        if Path(file.name).name == victim:
            writes += 1
            if writes == 5:
                original(file, offset, data[: len(data) // 2])
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        original(file, offset, data)

    with monkeypatch.context() as patch:
        patch.setattr("tacit.text.files.partial.write_at", limited)
        patch.setattr("tacit.engines.resume.write_at", limited)
        with pytest.raises(OutputError, match="the disk is full") as caught:
            rewrite_file(job)
    assert caught.value.exit_code == 2
    assert any("with resume" in note for note in caught.value.__notes__)
    key = saved_key(job)
    assert rewrite_file(replace(job, resume=True)).facts.rows == 120
    assert output_bytes(job) == reference(job, key, monkeypatch)


def test_full_disk_at_the_very_start(job: RewriteJob, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(file: Any, offset: int, data: bytes) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    for place in ("tacit.text.files.partial.write_at", "tacit.engines.resume.write_at"):
        with monkeypatch.context() as patch:
            patch.setattr(place, full)
            with pytest.raises(OutputError, match="the disk is full"):
                rewrite_file(job)
        assert left_over(job) == []


# Workers ----------------------------------------------------------------------------------------------------


def test_workers_share_the_work_and_no_noise(job: RewriteJob, tmp_path: Path) -> None:
    job = replace(mechanism_with(job, pause=0.02), workers=2)
    rewrite_file(job)
    assert len(processes(tmp_path / "log")) == 2
    assert os.getpid() not in processes(tmp_path / "log")
    numbers = [number for draws in draws_by_text(tmp_path / "log").values() for draw in draws for number in draw]
    assert len(numbers) == 840
    assert len(set(numbers)) == 840
    assert all(name not in os.environ or os.environ[name] for name in THREAD_VARIABLES)


def test_workers_write_in_order(job: RewriteJob, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(StoppedError):
        rewrite_file(replace(job, workers=2), on_block=StopAt(4))
    key = saved_key(job)
    rewrite_file(replace(job, workers=2, resume=True))
    assert output_bytes(job) == reference(job, key, monkeypatch)


def test_a_killed_worker_is_replaced(job: RewriteJob, tmp_path: Path) -> None:
    """kill -9 in the middle of a block: the block is repeated with the same noise, and nobody notices."""
    make_csv(tmp_path / "in.csv", mark_row=30)
    deadly = replace(mechanism_with(job, mark=SECRET, deed="kill", times=2), workers=2)
    assert rewrite_file(deadly).facts.rows == 120
    assert (tmp_path / "log.deaths").stat().st_size == 2
    assert all(len(draws) == 1 for draws in draws_by_text(tmp_path / "log").values())


def test_a_block_that_kills_every_worker(job: RewriteJob, tmp_path: Path) -> None:
    make_csv(tmp_path / "in.csv", mark_row=50)
    deadly = replace(mechanism_with(job, mark=SECRET, deed="kill", times=3), workers=2)
    with pytest.raises(
        WorkerDiedError, match=r"3 worker processes died .* rows \d+ to \d+, ended by SIGKILL"
    ) as caught:
        rewrite_file(deadly)
    assert any("with resume" in note for note in caught.value.__notes__)
    assert (tmp_path / "log.deaths").stat().st_size == 3
    assert rewrite_file(replace(deadly, resume=True)).facts.rows == 120
    assert all(len(draws) == 1 for draws in draws_by_text(tmp_path / "log").values())


def test_workers_that_cannot_be_reached_are_replaced(job: RewriteJob, monkeypatch: pytest.MonkeyPatch) -> None:
    """The pipe breaks while a block is sent: the worker counts as dead, and the run ends with a sentence."""
    from multiprocessing.connection import Connection

    def broken(self: Connection, item: object) -> None:
        raise BrokenPipeError

    monkeypatch.setattr(Connection, "send", broken)
    with pytest.raises(WorkerDiedError, match="3 worker processes died"):
        rewrite_file(replace(job, workers=2))


def test_rows_before_a_broken_one_are_finished(job: RewriteJob, tmp_path: Path) -> None:
    whole = list(blocks_of(job))
    with (tmp_path / "in.csv").open("a") as file:
        file.write("broken\n")
    with pytest.raises(BadInputError, match=r"row 121 \(line 122\)") as caught:
        rewrite_file(replace(job, workers=2))
    assert f"{sum(block.rows for block in whole[:-1])} rows are in out.csv.partial" in caught.value.__notes__[0]


SCRIPT = """
import os
import sys
from tacit.engines.job import RewriteJob
from tacit.engines.local import rewrite_file
from tacit.errors import TacitError
from tests.engines.fakes import LargeBlocks, NoiseShown

if __name__ == "__main__":
    kind, source, target, log, workers, pause, resume = sys.argv[1:]
    made = (NoiseShown if kind == "small" else LargeBlocks)(log=log, pause=float(pause))
    job = RewriteJob(made, source, target, workers=int(workers), resume=resume == "resume")
    try:
        rewrite_file(job)
    except TacitError as error:
        print(error, file=sys.stderr)
        sys.exit(error.exit_code)
    status = open("/proc/self/status").read() if os.path.exists("/proc/self/status") else "VmHWM: 0 kB"
    print(status.partition("VmHWM:")[2].split()[0])
"""


def start(tmp_path: Path, *arguments: str) -> subprocess.Popen[str]:
    script = tmp_path / "run.py"
    script.write_text(SCRIPT)
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    return subprocess.Popen(
        [sys.executable, str(script), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": path, "OPENBLAS_NUM_THREADS": "1"},
        start_new_session=True,
        # A shell starts background jobs deaf to Ctrl-C; the program under test must hear it.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )


def wait_for_rows(output: Path, blocks: int) -> None:
    for _ in range(1000):
        state = resume_path(output)
        if state.exists() and state.read_bytes().count(b"\n") > blocks:
            return
        time.sleep(0.01)
    raise AssertionError("the run did not get going")


@pytest.mark.parametrize(("workers", "ending"), [(1, signal.SIGINT), (2, signal.SIGINT), (2, signal.SIGKILL)])
def test_a_real_signal_to_the_whole_group(tmp_path: Path, workers: int, ending: signal.Signals) -> None:
    source = make_csv(tmp_path / "in.csv", rows=200)
    output, log = tmp_path / "out.csv", tmp_path / "log"
    arguments = [str(source), str(output), str(log), str(workers), "0.03"]
    process = start(tmp_path, "small", *arguments, "fresh")
    wait_for_rows(output, 4)
    if ending is signal.SIGKILL:
        process.kill()  # the workers notice by themselves
    else:
        os.killpg(process.pid, ending)
    _, complaint = process.communicate(timeout=20)
    if ending is signal.SIGINT:
        assert process.returncode == 130
        assert complaint.startswith("stopped: ")
        assert complaint.count("\n") == 1, complaint
    for _ in range(200):
        try:
            os.killpg(process.pid, 0)
        except ProcessLookupError:
            break
        time.sleep(0.01)
    else:
        raise AssertionError("a worker outlived the run")
    again = start(tmp_path, "small", *arguments, "resume")
    _, complaint = again.communicate(timeout=30)
    assert again.returncode == 0, complaint
    assert len(output.read_text().splitlines()) == 201
    assert all(len(draws) == 1 for draws in draws_by_text(log).values())


def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    """24 MB take as much memory as 4 MB; a file that was read at once would take 6 times as much."""
    line = "some words of a document that is neither long nor short, again and again\n"
    peaks = []
    for megabytes in (4, 24):
        source = tmp_path / f"{megabytes}.txt"
        source.write_text(line * (megabytes * 1_000_000 // len(line)))
        process = start(tmp_path, "large", str(source), str(tmp_path / f"out{megabytes}.txt"), "", "1", "0", "fresh")
        output, complaint = process.communicate(timeout=120)
        assert process.returncode == 0, complaint
        peaks.append(int(output))
    assert peaks[1] - peaks[0] < 8_000, peaks


def test_a_run_that_fails_before_its_first_row_leaves_nothing_behind(tmp_path: Path) -> None:
    source, output = tmp_path / "in.csv", tmp_path / "out.csv"
    source.write_text('text\n"open quote\n')
    job = RewriteJob(NoiseShown(), str(source), str(output))
    for _ in range(2):
        with pytest.raises(BadInputError):
            rewrite_file(job)
        assert sorted(path.name for path in tmp_path.iterdir()) == ["in.csv"]
    source.write_text("text\nfixed\n")
    assert rewrite_file(job).facts.rows == 1


@pytest.mark.parametrize("suffix", ["txt", "csv", "jsonl", "parquet"])
def test_c7_a_word_of_a_million_characters_goes_through(tmp_path: Path, suffix: str) -> None:
    """Reading, tokens, the ledger's identity, the engine and writing are linear in it: what is quadratic would take
    hours here."""
    if suffix == "parquet":
        pytest.importorskip("pyarrow")
    source = tmp_path / f"in.{suffix}"
    words = [letters * (1_000_000 // len(letters)) for letters in ("a", "\u00e9", "a.", "a-", "1,", "a'", "n't", "a@-")]
    write_columns(source, {"text": words})
    run = RewriteJob(
        mechanism=LargeBlocks(), input=str(source), output=str(tmp_path / f"out.{suffix}"), columns=("text",)
    )
    assert rewrite_file(run).facts.rows == len(words)
    for word in words:
        assert "".join(split(word)) == word
        assert document_identity(word)
