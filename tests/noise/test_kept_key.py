"""Files that hold a key: made exclusively, believed only if nobody else can have touched them, then overwritten."""

from __future__ import annotations

import os
import stat

import pytest

from tacit.errors import BadInputError
from tacit.noise.kept_key import NotPrivateError, check_private_folder, create_private, erase, keep_key, kept_key

KEY = bytes(range(32))


@pytest.fixture
def place(tmp_path):
    return tmp_path / "noise.key"


def test_a12_a_key_is_kept_for_its_owner_alone(place):
    keep_key(place, KEY)
    assert stat.S_IMODE(place.stat().st_mode) == 0o600
    assert kept_key(place, 32) == KEY
    with pytest.raises(FileExistsError):
        keep_key(place, KEY)


@pytest.mark.parametrize("mode", [0o666, 0o640, 0o604, 0o602])
def test_a12_a_key_that_others_can_read_or_write_is_refused(place, mode):
    keep_key(place, KEY)
    place.chmod(mode)
    with pytest.raises(NotPrivateError, match="others may read or write it"):
        kept_key(place, 32)


def test_a12_a_key_of_somebody_else_is_refused(place, monkeypatch):
    keep_key(place, KEY)
    mine = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: mine + 1)
    with pytest.raises(NotPrivateError, match="belongs to another user"):
        kept_key(place, 32)
    erase(place)
    assert not place.exists(), "its name may be removed"


def test_a12_no_link_is_followed(place, tmp_path):
    target = tmp_path / "target"
    keep_key(target, KEY)
    place.symlink_to(target)
    with pytest.raises(NotPrivateError, match="is a link"):
        kept_key(place, 32)
    with pytest.raises(FileExistsError):
        create_private(place)
    place.unlink()
    place.symlink_to(tmp_path / "not there")
    with pytest.raises(FileExistsError):
        create_private(place)
    place.unlink()
    place.symlink_to(target)
    erase(place)
    assert (place.is_symlink(), target.read_bytes()) == (False, KEY), "what a link points to is not written to"


def test_a12_pipes_and_folders_are_refused_without_waiting(place):
    os.mkfifo(place, 0o600)
    with pytest.raises(NotPrivateError):
        kept_key(place, 32)
    place.unlink()
    place.mkdir()
    with pytest.raises(NotPrivateError):
        kept_key(place, 32)


def test_a12_an_erased_key_is_overwritten_in_place(place, tmp_path):
    keep_key(place, KEY)
    os.link(place, tmp_path / "other name")
    erase(place)
    assert not place.exists()
    assert (tmp_path / "other name").read_bytes() == bytes(32)
    with pytest.raises(BadInputError, match="holds no key any more"):
        kept_key(tmp_path / "other name", 32)
    erase(place)  # nothing to do


def test_a12_a_folder_is_private_or_refused(tmp_path, monkeypatch):
    folder = tmp_path / "private"
    folder.mkdir(mode=0o700)
    check_private_folder(folder)
    (tmp_path / "link").symlink_to(folder)
    with pytest.raises(NotPrivateError, match="is a link"):
        check_private_folder(tmp_path / "link")
    mine = os.geteuid()
    with monkeypatch.context() as patch:
        patch.setattr(os, "geteuid", lambda: mine + 1)
        with pytest.raises(NotPrivateError, match="another user"):
            check_private_folder(folder)
    folder.chmod(0o755)
    with pytest.raises(NotPrivateError, match="mode 755"):
        check_private_folder(folder)
