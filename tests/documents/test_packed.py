"""Models that come with Tacit lie packed: the same files, byte for byte, while they are loaded."""

from __future__ import annotations

from pathlib import Path

import pytest

from tacit.documents.autoencoders.built_in import built_in_models, model_folders
from tacit.documents.autoencoders.packed import LARGE, PACKED, pack, unpacked
from tacit.errors import BadInputError


@pytest.mark.parametrize("size", [0, 1, 7, 4096])
def test_a_packed_folder_gives_its_files_back(tmp_path: Path, size: int) -> None:
    folder = tmp_path / "a-model"
    folder.mkdir()
    contents = {name: bytes((3 * place + len(name)) % 256 for place in range(size)) for name in LARGE}
    for name, content in {**contents, "tacit.json": b"{}"}.items():
        (folder / name).write_bytes(content)
    with unpacked(folder) as whole:
        assert whole == folder, "a folder that is not packed is used as it is"
    pack(folder)
    assert sorted(path.name for path in folder.iterdir()) == sorted([PACKED, "tacit.json"])
    with unpacked(folder) as whole:
        assert {path.name: path.read_bytes() for path in whole.iterdir()} == {**contents, "tacit.json": b"{}"}
    assert not whole.exists()


def test_a_damaged_archive_is_an_error_of_its_own(tmp_path: Path) -> None:
    (tmp_path / PACKED).write_bytes(b"not an archive")
    with pytest.raises(BadInputError) as raised, unpacked(tmp_path):
        pass
    assert raised.value.code == "damaged-model"


def test_all_models_that_come_with_tacit_are_packed() -> None:
    assert len(built_in_models()) == 7
    for folder in model_folders().values():
        assert (folder / PACKED).is_file()
        assert not any((folder / large).exists() for large in LARGE)
