"""A digest tells one output from another."""

from __future__ import annotations

import hashlib

import pytest

from tacit.errors import BadInputError
from tacit.text.digest import file_digest, output_digest


def test_the_digest_of_a_file_is_that_of_its_bytes(tmp_path):
    (tmp_path / "a.csv").write_bytes(b"x" * 3_000_000)
    assert file_digest(tmp_path / "a.csv") == hashlib.sha256(b"x" * 3_000_000).hexdigest()
    assert output_digest(tmp_path / "a.csv") == file_digest(tmp_path / "a.csv")


def test_the_digest_of_a_folder_knows_names_and_contents(tmp_path):
    seen = set()
    for name, text in (("a", "1"), ("a", "2"), ("b", "2")):
        folder = tmp_path / f"{name}{text}"
        folder.mkdir()
        (folder / name).write_text(text)
        (folder / "same").write_text("same")
        seen.add(output_digest(folder))
    assert len(seen) == 3


def test_a_file_that_is_not_there_is_said(tmp_path):
    with pytest.raises(BadInputError, match="cannot be read"):
        output_digest(tmp_path / "none")
