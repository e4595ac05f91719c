"""The examples in docstrings give what they say."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

import tacit

PACKAGE = Path(tacit.__file__).parent
WITH_EXAMPLES = sorted(
    "tacit." + ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__")
    for path in PACKAGE.rglob("*.py")
    if "    >>> " in path.read_text(encoding="utf-8")
)


@pytest.mark.parametrize("module", WITH_EXAMPLES)
def test_examples_in_docstrings(module: str) -> None:
    results = doctest.testmod(importlib.import_module(module), optionflags=doctest.ELLIPSIS)
    assert results.attempted > 0
    assert results.failed == 0


def test_there_are_examples() -> None:
    assert len(WITH_EXAMPLES) >= 2
