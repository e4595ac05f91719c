"""How much of the package is typed: `Any` is the exception, room by room."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[2] / "src" / "tacit"
MOST_PER_THOUSAND_LINES = 8.0
UNTYPED_BY_NATURE = {"integrations"}
"""Other libraries hand in what they like."""
TOP = "the modules at the top"


def rooms() -> dict[str, list[Path]]:
    """The modules of each folder of the package; those beside the folders count together."""
    results: dict[str, list[Path]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).parts
        results.setdefault(parts[0] if len(parts) > 1 else TOP, []).append(path)
    return {room: paths for room, paths in results.items() if room not in UNTYPED_BY_NATURE}


def uses_of_any(source: str) -> int:
    """How often the name stands in annotations and aliases; the import does not count."""
    return sum(isinstance(node, ast.Name) and node.id == "Any" for node in ast.walk(ast.parse(source)))


def density(paths: list[Path]) -> float:
    sources = [path.read_text(encoding="utf-8") for path in paths]
    return 1000.0 * sum(map(uses_of_any, sources)) / sum(source.count("\n") for source in sources)


def test_uses_are_counted() -> None:
    assert uses_of_any("from typing import Any\ndef f(x: Any, y: 'int') -> dict[str, Any]: ...\n") == 2


@pytest.mark.parametrize("room", sorted(rooms()))
def test_any_is_rare(room: str) -> None:
    assert density(rooms()[room]) < MOST_PER_THOUSAND_LINES


def test_any_is_rare_in_the_whole_package() -> None:
    assert density([path for paths in rooms().values() for path in paths]) < MOST_PER_THOUSAND_LINES
