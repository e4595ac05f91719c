"""`make readme-check` sees every command and block of the pages that it goes through."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


def program(name: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.setattr(sys, "path", [str(ROOT / ".ci"), *sys.path])
    return importlib.import_module(name)


def test_every_command_of_the_readme_is_run(monkeypatch: pytest.MonkeyPatch) -> None:
    readme = ROOT / "README.md"
    pieces = program("page_blocks", monkeypatch).pieces_of(readme)
    lines = re.findall(r"^tacit .*$", readme.read_text(encoding="utf-8"), flags=re.MULTILINE)
    shell = [piece.code for piece in pieces if piece.kind == "shell"]
    assert len(shell) == len(lines) >= 20
    assert all(line.startswith(code) for line, code in zip(lines, shell, strict=True))
    assert [piece.kind for piece in pieces].count("python") == 1


def test_commands_are_whole_and_what_they_print_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    commands = program("page_blocks", monkeypatch).commands
    assert commands("tacit a \\\n    --b c   # why\nother\n") == ["tacit a --b c"]
    assert commands("$ tacit a\ntacit is printed\n$ tacit b\n") == ["tacit a", "tacit b"]
    assert commands("zcat x.gz | tacit rewrite - > y.csv\n") == ["zcat x.gz | tacit rewrite - > y.csv"]


def test_the_files_of_a_page_hold_what_its_commands_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    page_files, blocks = program("page_files", monkeypatch), program("page_blocks", monkeypatch)
    names = [page.name for page in page_files.PAGES]
    assert len(names) == len(set(names)) >= 10
    for page in page_files.PAGES:
        folder = tmp_path / page.name.replace("/", "-")
        for name, columns in page.files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            page_files.write_table(folder / name, columns)
        page.also(folder) if page.files else None
        assert blocks.pieces_of(ROOT / page.name), page.name
        for piece in blocks.pieces_of(ROOT / page.name):
            assert all(part not in piece.code for part in page.exits) or piece.kind == "shell"
        for command in page.typed:
            assert command in [piece.code for piece in blocks.pieces_of(ROOT / page.name)]
