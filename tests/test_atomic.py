"""Files and folders that appear complete or not at all."""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path

import pytest

from tacit import atomic
from tacit.atomic import create_file, draft_file, draft_folder, write_file, write_files


@pytest.fixture(autouse=True)
def _usual_umask():
    before = os.umask(0o022)
    yield
    os.umask(before)


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_file_is_replaced_and_has_the_mode_that_was_chosen(tmp_path):
    path = tmp_path / "a"
    write_file(path, b"open")
    assert mode_of(path) == 0o644
    write_file(path, b"private", private=True)
    assert (path.read_bytes(), mode_of(path)) == (b"private", 0o600)
    assert names(tmp_path) == ["a"]


def test_no_file_of_several_is_named_before_all_are_stored(tmp_path):
    write_file(tmp_path / "a", b"old")
    with pytest.raises(OSError) as caught:
        write_files({tmp_path / "a": b"new", tmp_path / "none" / "b": b"new"})
    assert caught.value.filename == str(tmp_path / "none" / "b")
    assert (tmp_path / "a").read_bytes() == b"old"
    assert names(tmp_path) == ["a"]


@pytest.mark.parametrize("shared", [False, True])
def test_the_draft_of_a_killed_process_is_not_followed_and_lends_no_mode(tmp_path, shared):
    (tmp_path / "victim").write_text("kept")
    (tmp_path / ".a.draft").symlink_to(tmp_path / "victim")
    write_file(tmp_path / "a", b"text", private=True, shared=shared)
    assert mode_of(tmp_path / "a") == 0o600
    assert (tmp_path / "victim").read_text() == "kept"
    assert (".a.draft" in names(tmp_path)) == shared


def test_a_shared_draft_has_a_name_of_its_own(tmp_path):
    with draft_file(tmp_path / "a", shared=True) as first, draft_file(tmp_path / "a", shared=True) as second:
        assert first != second
        first.write_text("first")
        second.write_text("second")
    assert (tmp_path / "a").read_text() == "first"
    assert names(tmp_path) == ["a"]


def test_an_error_leaves_what_was_before(tmp_path):
    write_file(tmp_path / "a", b"old")
    with contextlib.suppress(ZeroDivisionError), draft_file(tmp_path / "a") as draft:
        draft.write_bytes(b"half")
        raise ZeroDivisionError
    with contextlib.suppress(ZeroDivisionError), draft_folder(tmp_path / "b") as folder:
        (folder / "half").touch()
        raise ZeroDivisionError
    assert (tmp_path / "a").read_bytes() == b"old"
    assert names(tmp_path) == ["a"]


def test_a_folder_appears_with_all_its_files(tmp_path):
    with draft_folder(tmp_path / "b", private=True) as folder:
        (folder / "c").touch()
        assert not (tmp_path / "b").exists()
    assert names(tmp_path / "b") == ["c"]
    assert mode_of(tmp_path / "b") == 0o700
    with pytest.raises(OSError), draft_folder(tmp_path / "b") as folder:
        (folder / "d").touch()
    assert names(tmp_path / "b") == ["c"]
    assert names(tmp_path) == ["b"]


@pytest.mark.parametrize("links", [True, False])
def test_a_new_file_never_replaces_another(tmp_path, monkeypatch, links):
    if not links:

        def refuse(source, target):
            raise PermissionError("no links here")

        monkeypatch.setattr(atomic.os, "link", refuse)
    create_file(tmp_path / "a", b"key", private=True)
    assert mode_of(tmp_path / "a") == 0o600
    with pytest.raises(FileExistsError):
        create_file(tmp_path / "a", b"other")
    assert (tmp_path / "a").read_bytes() == b"key"
    assert names(tmp_path) == ["a"]
