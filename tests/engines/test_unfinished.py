"""What an unfinished run leaves: a key that nobody can plant, and blocks that nobody can damage unnoticed."""

from __future__ import annotations

import json
import os
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from tacit.engines.job import RewriteJob
from tacit.engines.local import rewrite_file
from tacit.engines.resume import resume_path
from tacit.errors import BadInputError, StoppedError, TacitWarning
from tacit.noise.kept_key import NotPrivateError
from tacit.text.files import OutputError, partial_path

from .fakes import draws_by_text
from .test_local import StopAt, job, output_bytes, reference, saved_key  # noqa: F401

KNOWN = bytes(32 * [7])


def stopped(run: RewriteJob, blocks: int = 5) -> tuple[Path, Path]:
    with pytest.raises(StoppedError):
        rewrite_file(run, on_block=StopAt(blocks))
    return resume_path(Path(run.output)), partial_path(Path(run.output))


def planted(run: RewriteJob) -> Path:
    """A state for this very command with a key that somebody else knows, and no block finished."""
    state, partial = stopped(run, 1)
    header = json.loads(state.read_text().splitlines()[0])
    state.unlink()
    partial.unlink()
    state.write_text(json.dumps({**header, "key": KNOWN.hex()}) + "\n")
    state.chmod(0o666)
    return state


def test_a12_a_planted_key_is_refused(job, monkeypatch):  # noqa: F811
    state = planted(job)
    with pytest.raises(NotPrivateError, match="others may read or write it"):
        rewrite_file(replace(job, resume=True))
    state.chmod(0o600)
    mine = os.geteuid()
    with monkeypatch.context() as patch:
        patch.setattr(os, "geteuid", lambda: mine + 1)
        with pytest.raises(NotPrivateError, match="belongs to another user"):
            rewrite_file(replace(job, resume=True))
    state.rename(state.with_name("elsewhere"))
    state.symlink_to(state.with_name("elsewhere"))
    with pytest.raises(NotPrivateError, match="is a link"):
        rewrite_file(replace(job, resume=True))
    assert not Path(job.output).exists()


def test_a12_starting_over_never_writes_into_what_was_planted(job, tmp_path, monkeypatch):  # noqa: F811
    victim = tmp_path / "victim"
    victim.write_text("precious")
    for place in (resume_path(Path(job.output)), partial_path(Path(job.output))):
        place.symlink_to(victim)
    with pytest.raises(OutputError, match="unfinished run"):
        rewrite_file(job)
    seen: list[int] = []

    def look(originals: list[str], released: list[str] | None) -> None:
        state = resume_path(Path(job.output))
        seen.append(stat.S_IMODE(state.lstat().st_mode))
        assert saved_key(job) != KNOWN
        assert stat.S_ISREG(state.lstat().st_mode)

    rewrite_file(replace(job, force=True), on_block=look)
    assert set(seen) == {0o600}
    assert victim.read_text() == "precious"
    Path(job.output).unlink()
    planted(job)
    rewrite_file(replace(job, force=True), on_block=look)
    assert output_bytes(job) != reference(job, KNOWN, monkeypatch)


def test_a12_a_partial_that_is_a_link_is_not_written_through(job, tmp_path):  # noqa: F811
    _, partial = stopped(job)
    partial.rename(tmp_path / "victim")
    partial.symlink_to(tmp_path / "victim")
    before = (tmp_path / "victim").read_bytes()
    with pytest.raises(OutputError):
        rewrite_file(replace(job, resume=True))
    assert (tmp_path / "victim").read_bytes() == before


def test_a12_the_key_is_written_once_and_overwritten_at_the_end(job, tmp_path):  # noqa: F811
    state, _ = stopped(job)
    key, inode = saved_key(job), state.stat().st_ino
    assert state.read_text().count(key.hex()) == 1
    os.link(state, tmp_path / "other name")  # what stays of the bytes of the file
    rewrite_file(replace(job, resume=True))
    assert not state.exists()
    remains = tmp_path / "other name"
    assert remains.stat().st_ino == inode
    assert not set(remains.read_bytes()) - {0, ord("\n")}
    # Stopped between overwriting and removing: the output is complete, and no known key is ever taken up.
    state.write_bytes(remains.read_bytes())
    state.chmod(0o600)
    with pytest.raises(Exception, match="already complete"):
        rewrite_file(replace(job, resume=True))
    assert not state.exists()
    state.write_bytes(remains.read_bytes())
    state.chmod(0o600)
    Path(job.output).unlink()
    with pytest.raises(BadInputError, match="cannot be read"):
        rewrite_file(replace(job, resume=True))


def changed_byte(partial: Path, place: int) -> None:
    data = bytearray(partial.read_bytes())
    data[place] ^= 1
    partial.write_bytes(data)


def lost_row(partial: Path, row: int) -> None:
    lines = partial.read_bytes().splitlines(keepends=True)
    del lines[row]
    partial.write_bytes(b"".join(lines) + b"0" * 40)  # as long as the state says, and longer


@pytest.mark.parametrize(
    "damage", [lambda p: changed_byte(p, -3), lambda p: changed_byte(p, 2), lambda p: lost_row(p, 12)]
)
def test_a12_a_damaged_partial_is_written_again_with_the_noise_it_had(job, tmp_path, damage, monkeypatch):  # noqa: F811
    _, partial = stopped(job)
    key = saved_key(job)
    damage(partial)
    with pytest.warns(TacitWarning, match=r"is damaged after \d+ rows"):
        facts = rewrite_file(replace(job, resume=True)).facts
    assert facts.rows == 120
    assert output_bytes(job) == reference(job, key, monkeypatch)
    assert all(len(draws) == 1 for draws in draws_by_text(tmp_path / "log").values())


@pytest.mark.parametrize("suffix", ["jsonl", "csv.gz", "parquet"])
def test_a12_every_format_is_checked(job, suffix, monkeypatch):  # noqa: F811
    if suffix == "parquet":
        pytest.importorskip("pyarrow")
    run = replace(job, output=str(Path(job.output).with_suffix(f".{suffix}")))
    _, partial = stopped(run)
    key = saved_key(run)
    changed_byte(partial, len(partial.read_bytes()) // 2)
    with pytest.warns(TacitWarning, match="is damaged after"):
        rewrite_file(replace(run, resume=True))
    assert output_bytes(run) == reference(run, key, monkeypatch)


def test_a12_damage_during_the_run_is_not_released(job, monkeypatch):  # noqa: F811
    partial = partial_path(Path(job.output))
    seen: list[int] = []

    def damage(originals: list[str], released: list[str] | None) -> None:
        seen.append(len(originals))
        if len(seen) == 8:
            changed_byte(partial, 40)

    with pytest.raises(OutputError, match="does not hold what was written"):
        rewrite_file(job, on_block=damage)
    assert not Path(job.output).exists()
    key = saved_key(job)
    with pytest.warns(TacitWarning):
        rewrite_file(replace(job, resume=True))
    assert output_bytes(job) == reference(job, key, monkeypatch)
