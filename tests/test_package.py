"""The package as a whole: light to import, every mechanism found, built from strings, and documented."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import tacit
from tacit.catalog import build, find, mechanism_classes, mechanism_names
from tacit.errors import BadParameterError
from tests.conftest import small_table


def loaded_by(code: str) -> set[str]:
    script = f"{code}\nimport sys; print('\\n'.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return {name.partition(".")[0] for name in done.stdout.split()}


def test_import_is_light():
    assert not loaded_by("import tacit") & {
        "numpy",
        "scipy",
        "torch",
        "pandas",
        "pyarrow",
        "rich",
        "typer",
        "sklearn",
        "jinja2",
    }


def test_the_word_level_needs_no_deep_learning_or_tables():
    modules = loaded_by("import tacit; tacit.SanText(epsilon=1.0)")
    assert not modules & {"torch", "transformers", "pandas", "pyarrow", "sklearn", "faiss", "wordfreq"}


def test_a_type_checker_sees_what_is_imported_when_it_is_used():
    """Otherwise `tacit.rewrite` is a function of anything, with a result of any type."""
    tree = ast.parse(Path(tacit.__file__).read_text(encoding="utf-8"))
    (block,) = [node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"]
    typed = {name.asname: node.module for node in block.body if isinstance(node, ast.ImportFrom) for name in node.names}
    assert typed == tacit._LAZY
    assert set(tacit.__all__) <= {*typed, "__version__"}


def test_mechanisms_are_found_by_name_and_as_attributes():
    assert {"santext", "santext+", "laplace", "mahalanobis", "vickrey", "truncated-gumbel", "tem", "custext", "brr",
            "two-budgets", "random"} <= set(mechanism_names())  # fmt: skip
    assert tacit.SanText is find("santext")
    assert "TEM" in dir(tacit)
    with pytest.raises(AttributeError):
        _ = tacit.NoSuchThing


def test_every_mechanism_says_what_it_is():
    for cls in mechanism_classes():
        for text in (cls.title, cls.paper, cls.notion, cls.level, cls.unit, cls.__doc__):
            assert text
        assert cls.__doc__ != cls.__base__.__doc__
        assert "uarantee" in sys.modules[cls.__module__].__doc__ or cls.name == "random", cls.__module__


def test_build_converts_what_a_command_line_gives():
    mechanism = build("laplace", {"epsilon": "2", "vectors": small_table(), "calibrated": "no", "neighbors": "3"})
    assert mechanism.get_params() | {"vectors": None} == {
        "epsilon": 2.0, "seed": None, "vectors": None, "limit": None, "unknown": "spelling", "punctuation": "rewrite",
        "joining": "natural", "mapping": "nearest", "t": 0.75, "neighbors": 3, "approximate": False,
        "bounding": "none", "calibrated": False,
    }  # fmt: skip
    assert build("santext", {"epsilon": 1, "limit": "none", "vectors": small_table()}).limit is None
    assert build("santext+", {"epsilon": 1, "sensitive-share": "0.5", "vectors": small_table()}).sensitive_share == 0.5
    with pytest.raises(BadParameterError, match="yes or no"):
        build("laplace", {"epsilon": "2", "calibrated": "perhaps"})
