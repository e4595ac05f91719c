"""What only adapters know: flags of a command line, terminals and web servers. import-linter checks imports as well
(pyproject.toml); here every room is seen to be in its list, and no string names a flag."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "tacit"
ADAPTERS = ("cli", "serve", "integrations")
FLAG = re.compile(r"(?:^|(?<=[\s'\"`(\[]))--[a-z][a-z-]*")
OTHER_PROGRAMS = ("pip install ", "pip download ", "hf download ", "--hash=")
"""Commands of other programs, quoted with their flags."""
RESULTS_PAGES = Path("experiments/pages.py")
"""Pages of the documentation that say by which command their results were made."""
STYLE_SHEET = re.compile(r":root\s*\{|var\(--")


def strings_of(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Every string of a module, the parts of a formatted one together, docstrings included."""
    inner = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts = [part.value if isinstance(part, ast.Constant) else "{}" for part in node.values]
            yield node.lineno, "".join(str(part) for part in parts)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inner:
            yield node.lineno, node.value


def flags_in(source: str) -> list[tuple[int, str]]:
    """Line and flag of each string that tells somebody to type one."""
    return [
        (line, match.group())
        for line, text in strings_of(ast.parse(source))
        if not STYLE_SHEET.search(text) and not any(command in text for command in OTHER_PROGRAMS)
        for match in FLAG.finditer(text)
    ]


def test_flags_are_seen_and_other_dashes_are_not() -> None:
    assert flags_in('raise E("c", "give --batch")') == [(1, "--batch")]
    assert flags_in('f"{name}: use --force, or (--output)"') == [(1, "--force"), (1, "--output")]
    assert flags_in('x = "--epsilon"') == [(1, "--epsilon")]
    assert flags_in('"""Doc with `--resume`."""') == [(1, "--resume")]
    assert flags_in('"text -- split -> tokens"; "a--b"; "pip install --no-deps x"; ":root { --ink:#111 }"') == []


def test_only_the_command_line_names_flags() -> None:
    """An error names an option as `{option.batch}`, everything else by the field of its configuration."""
    flags = [
        f"src/tacit/{path.relative_to(PACKAGE)}:{line}: {flag}"
        for path in sorted(PACKAGE.rglob("*.py"))
        if path.relative_to(PACKAGE).parts[0] != "cli" and path.relative_to(PACKAGE) != RESULTS_PAGES
        for line, flag in flags_in(path.read_text(encoding="utf-8"))
    ]
    assert flags == [], "flags outside src/tacit/cli; write {option.NAME} in an error, or the name of the field"


def test_every_room_below_the_adapters_is_kept_from_terminals_and_web_servers() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    (contract,) = [each for each in contracts if "rich" in each.get("forbidden_modules", ())]
    rooms = {path.stem for path in PACKAGE.iterdir() if path.is_dir() or path.suffix == ".py"}
    rooms -= {"__init__", "__main__", "__pycache__", *ADAPTERS}
    assert {f"tacit.{room}" for room in rooms} == set(contract["source_modules"]), "name the room in pyproject.toml"
    assert {"rich", "click", "typer", "fastapi", "starlette", "uvicorn"} <= set(contract["forbidden_modules"])
