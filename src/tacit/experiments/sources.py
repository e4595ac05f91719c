"""What the source of a step says: which code made its scores, and whether what it runs has changed.

Scores are kept by a hash of the code that derives them, so that changed code derives them again from the raw files
without running the step: that code is the module of the step, and what it imports from other steps and from
`tacit.evaluation`. Raw results are kept by the version of the kind alone, because an edit that changes nothing must not
cost hours; `run_digest` is what a test compares with the version (tests/experiments/step_sources.json).

Comments, docstrings and layout do not count.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import inspect
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tacit.experiments.steps import Kind, kinds

FOLLOWED = ("tacit.experiments.steps.", "tacit.evaluation.")


@cache
def scoring_digest(name: str) -> str:
    """Changes with the version of a kind and with the code that derives its scores."""
    kind = kinds()[name]
    module = inspect.unwrap(kind.score).__module__
    return _digest([str(kind.version), *(_source(one) for one in sorted(_imported(module)))])


def run_digest(kind: Kind) -> str:
    """Changes with what `run` and the parameters of a kind say in their module, and with what these use of it."""
    tree = _tree(inspect.unwrap(kind.run).__module__)
    known = {name: node for node in tree.body for name in _names(node)}
    wanted: dict[str, ast.stmt] = {}
    waiting = [kind.run.__name__, kind.parameters.__name__]
    while waiting:
        name = waiting.pop()
        if name in known and name not in wanted:
            wanted[name] = known[name]
            waiting += [node.id for node in ast.walk(known[name]) if isinstance(node, ast.Name)]
    return _digest([ast.unparse(node) for node in tree.body if node in wanted.values()])


def _digest(parts: list[str]) -> str:
    return hashlib.blake2b("\0".join(parts).encode("utf-8"), digest_size=8).hexdigest()


def _imported(module: str) -> set[str]:
    """A module, and those it imports from the followed packages, directly or through others."""
    found: set[str] = set()
    waiting = [module]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += [one for one in _imports(name) if one.startswith(FOLLOWED)]
    return found


@cache
def _imports(module: str) -> tuple[str, ...]:
    found: dict[str, None] = {}
    for node in ast.walk(_tree(module)):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found[node.module] = None
            # `from tacit.evaluation import scores` names a module as well
            found |= {f"{node.module}.{alias.name}": None for alias in node.names}
    return tuple(name for name in found if name.startswith(FOLLOWED) and _file(name) is not None)


@cache
def _file(module: str) -> Path | None:
    try:
        spec = importlib.util.find_spec(module)
    except ModuleNotFoundError:  # a name in a module, not a module
        return None
    return Path(spec.origin) if spec is not None and spec.origin else None


@cache
def _tree(module: str) -> ast.Module:
    path = _file(module)
    return _parsed(path.read_text(encoding="utf-8") if path is not None and path.is_file() else "")


def _parsed(text: str) -> ast.Module:
    """Without docstrings."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node, clean=False):
            node.body = node.body[1:] or [ast.Pass()]
    return tree


def _source(module: str) -> str:
    return ast.unparse(_tree(module))


def _names(node: ast.stmt) -> Iterator[str]:
    """What a statement of a module defines."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        yield node.name
    elif isinstance(node, ast.Assign):
        yield from (target.id for target in node.targets if isinstance(target, ast.Name))
    elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        yield node.target.id
