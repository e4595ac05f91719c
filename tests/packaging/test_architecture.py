"""docs/architecture.md names what is there: the functions and classes of its flows, its paths, and all rooms."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "tacit"
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
MOST_BOXES = 10
NAMES_OF_FILES = {"__init__.py", "__main__.py", "version.py", "py.typed"}
"""Files of every package: the page does not explain them."""


def section(title: str) -> str:
    return PAGE.partition(f"## {title}\n")[2].partition("\n## ")[0]


def flows() -> dict[str, str]:
    """The picture of each flow by its name."""
    return dict(re.findall(r"^\*\*(\w+)\*\* [^\n]*\n\n```\n(.*?)```", section("Five flows"), re.MULTILINE | re.DOTALL))


def boxes(picture: str) -> list[str]:
    """The names in a picture, without what stands in parentheses."""
    return re.findall(r"[A-Za-z_][\w.]*\w", re.sub(r"\([^)]*\)", "", picture))


@cache
def defined() -> frozenset[str]:
    """All functions and classes of the package, and with the name of their class those inside of one."""
    return frozenset(name for path in PACKAGE.rglob("*.py") for name in _names(path.read_text(encoding="utf-8")))


def _names(source: str) -> Iterator[str]:
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        if isinstance(node, ast.ClassDef):
            methods = (inner for inner in node.body if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef))
            yield from (f"{node.name}.{method.name}" for method in methods)


def in_backticks(text: str) -> set[str]:
    return set(re.findall(r"`([^`\n]+)`", text.replace("```", "")))


def test_names_are_found_and_missing_ones_are_noticed() -> None:
    assert boxes("A1 (a note) --> b_c / D.e <-- f2") == ["A1", "b_c", "D.e", "f2"]
    assert {"rewrite_file", "Mechanism.checks"} <= defined()
    assert "no_such_function" not in defined()


def test_there_are_five_flows() -> None:
    assert list(flows()) == ["Rewrite", "Train", "Synthesize", "Audit", "Serve"]


@pytest.mark.parametrize("name", list(flows()))
def test_a_flow_has_few_boxes_and_each_is_in_the_code(name: str) -> None:
    shown = boxes(flows()[name])
    assert 3 < len(shown) <= MOST_BOXES
    assert [box for box in shown if box not in defined()] == []


@pytest.mark.parametrize("title", ["Five flows", "Where does my change go?"])
def test_names_and_paths_beside_the_flows_are_there(title: str) -> None:
    quoted = in_backticks(section(title))
    paths = {text for text in quoted if re.fullmatch(r"[\w./]+(/|\.py)|[a-z]+/[\w/]+", text)}
    missing = [path for path in paths if not any((base / path).exists() for base in (PACKAGE, ROOT))]
    assert [path for path in missing if path != "cli/NAME.py"] == []
    names = {text for text in quoted - paths if re.fullmatch(r"[A-Za-z]+_\w+|[A-Z][a-z]+[A-Z]\w+", text)}
    assert names
    assert [name for name in names if name not in defined()] == []


def test_every_room_is_on_the_map() -> None:
    rooms = section("The rooms")
    there = {path.name for path in PACKAGE.iterdir() if not path.name.startswith("__pycache")} - NAMES_OF_FILES
    listed = set(re.findall(r"^  (?:[a-z_./]+  )?([a-z_]+)(?:/|\.py)", rooms, re.MULTILINE))
    listed |= set(re.findall(r"^  ([a-z_]+)(?:/|\.py)", rooms, re.MULTILINE))
    assert sorted(name for name in there if name.removesuffix(".py") not in listed) == []
    assert [name for name in listed if not (PACKAGE / name).exists() and not (PACKAGE / f"{name}.py").exists()] == []
