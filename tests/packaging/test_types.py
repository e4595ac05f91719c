"""How much of the package and of its tests is typed: `Any` is the exception, room by room."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]
PACKAGE = TESTS.parent / "src" / "tacit"
MOST_PER_THOUSAND_LINES = 8.0
UNTYPED_BY_NATURE = {"integrations"}
"""Other libraries hand in what they like."""
TOP = "the modules at the top"


def rooms(folder: Path) -> dict[str, list[Path]]:
    """The modules of each folder of the package or its tests; those beside the folders count together."""
    by_room: dict[str, list[Path]] = {}
    for path in sorted(folder.rglob("*.py")):
        parts = path.relative_to(folder).parts
        by_room.setdefault(parts[0] if len(parts) > 1 else TOP, []).append(path)
    return {room: paths for room, paths in by_room.items() if room not in UNTYPED_BY_NATURE}


ROOMS = [(folder, room) for folder in (PACKAGE, TESTS) for room in sorted(rooms(folder))]


def uses_of_any(source: str) -> int:
    """How often the name stands in annotations and aliases; the import does not count."""
    return sum(isinstance(node, ast.Name) and node.id == "Any" for node in ast.walk(ast.parse(source)))


@cache
def measured(path: Path) -> tuple[int, int]:
    """Uses of `Any` in a file, and its lines."""
    source = path.read_text(encoding="utf-8")
    return uses_of_any(source), source.count("\n")


def density(paths: list[Path]) -> float:
    counts = [measured(path) for path in paths]
    return 1000.0 * sum(uses for uses, _ in counts) / sum(lines for _, lines in counts)


def test_uses_are_counted() -> None:
    assert uses_of_any("from typing import Any\ndef f(x: Any, y: 'int') -> dict[str, Any]: ...\n") == 2


@pytest.mark.parametrize(("folder", "room"), ROOMS, ids=[f"{folder.name}-{room}" for folder, room in ROOMS])
def test_any_is_rare(folder: Path, room: str) -> None:
    assert density(rooms(folder)[room]) < MOST_PER_THOUSAND_LINES


@pytest.mark.parametrize("folder", [PACKAGE, TESTS], ids=["package", "tests"])
def test_any_is_rare_everywhere_together(folder: Path) -> None:
    assert density([path for paths in rooms(folder).values() for path in paths]) < MOST_PER_THOUSAND_LINES
