"""Names say what a thing is, and each thing has one name: the rules of CONTRIBUTING.md about the source text."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "tacit"
TESTS = ROOT / "tests"

NO_NAMES = {"found", "told", "asked", "here", "one"}

SHARED_TYPES = ("arrays.py", "progress.py")

MOST_LINES = 400
LONG_FILES = {
    "documents/codebook.py": "the codebook mechanism with its laws and their proofs",
    "documents/codebook_public.py": "the public codebook and its file, with the derivation of every number in it",
}
"""Files above 400 lines that hold one idea, with the reason."""

DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def modules(folder: Path) -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(folder.rglob("*.py")):
        yield str(path.relative_to(folder)), ast.parse(path.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def package() -> list[tuple[str, ast.Module]]:
    """The modules of the package, parsed once for all rules of this file."""
    return list(modules(PACKAGE))


def bindings(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Names of variables, parameters, functions, classes, attributes and imports, with their lines."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id, node.lineno
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr, node.lineno
        elif isinstance(node, ast.arg):
            yield node.arg, node.lineno
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name, node.lineno
        elif isinstance(node, ast.alias):
            yield node.asname or node.name, node.lineno
        elif isinstance(node, ast.ExceptHandler | ast.MatchAs) and node.name is not None:
            yield node.name, node.lineno


@pytest.mark.parametrize("folder", [PACKAGE, TESTS], ids=["package", "tests"])
def test_no_name_says_only_that_there_is_something(folder: Path) -> None:
    bad = [
        f"{place}:{line} {name}"
        for place, tree in modules(folder)
        for name, line in bindings(tree)
        if name.strip("_").lower() in NO_NAMES
    ]
    assert not bad, "say what the thing is: " + ", ".join(bad)


def test_docstrings_begin_with_what_is_returned_or_represented(package: list[tuple[str, ast.Module]]) -> None:
    """A docstring that begins with "What" leaves out the noun: the guarantee, the settings, the error."""
    riddles = [
        f"{place}:{node.body[0].lineno}"
        for place, tree in package
        for node in ast.walk(tree)
        if isinstance(node, DOCUMENTED) and (ast.get_docstring(node) or "").startswith("What ")
    ]
    assert not riddles, "say what the function returns or the class represents: " + ", ".join(riddles)


def test_no_two_classes_share_a_name(package: list[tuple[str, ast.Module]]) -> None:
    places = defaultdict(list)
    for place, tree in package:
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                places[node.name].append(place)
    shared = {name: files for name, files in places.items() if len(files) > 1}
    assert not shared


def test_types_of_arrays_and_of_progress_are_defined_once(package: list[tuple[str, ast.Module]]) -> None:
    shared = re.compile(r"NDArray\[np\.(float64|float32|int64|int32|bool_)\]|Callable\[\[(str, )?int, int\], None\]")
    again = [
        f"{place}:{node.lineno}"
        for place, tree in package
        if place not in SHARED_TYPES
        for node in tree.body
        if isinstance(node, ast.Assign) and shared.fullmatch(ast.unparse(node.value))
    ]
    assert not again, "use tacit.arrays or tacit.progress: " + ", ".join(again)


def test_drafts_of_files_are_written_in_one_module(package: list[tuple[str, ast.Module]]) -> None:
    writers = {
        place
        for place, tree in package
        for node in ast.walk(tree)
        if (isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.endswith(".draft"))
        or (isinstance(node, ast.Attribute) and node.attr in ("mkstemp", "NamedTemporaryFile"))
    }
    assert writers == {"atomic.py", "serve/jobs.py"}, "use tacit.atomic (serve/jobs.py only looks for what is left)"


def test_progress_bars_are_drawn_in_one_module(package: list[tuple[str, ast.Module]]) -> None:
    drawing = {
        place
        for place, tree in package
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "rich.progress"
    }
    assert drawing == {"cli/bars.py"}


def test_files_hold_one_idea() -> None:
    long = {
        str(path.relative_to(PACKAGE))
        for path in PACKAGE.rglob("*.py")
        if len(path.read_text(encoding="utf-8").splitlines()) > MOST_LINES
    }
    assert long <= set(LONG_FILES), f"split them: {sorted(long - set(LONG_FILES))}"
    assert set(LONG_FILES) <= long, f"they are short: {sorted(set(LONG_FILES) - long)}"
