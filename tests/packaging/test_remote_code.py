"""No model, tokenizer or data set brings code of its own: every call that could load some says that it must not."""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
OURS = ("Autoencoder", "cls", "type")
"""Receivers that are classes of ours, which read our own files."""


def loading_calls() -> list[tuple[str, ast.Call, str]]:
    """Place, call and what it is called on, for every `….from_pretrained(…)` and `….from_config(…)`."""
    calls = []
    for path in sorted((ROOT / "src").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr in ("from_pretrained", "from_config")
            ):
                place = f"{path.relative_to(ROOT)}:{node.lineno}"
                calls.append((place, node, ast.unparse(node.func.value)))
    return calls


def test_b9_every_loader_refuses_the_code_of_strangers() -> None:
    strangers = [(place, call) for place, call, receiver in loading_calls() if not receiver.endswith(OURS)]
    assert len(strangers) >= 14, "the loaders were not seen"
    wrong = [
        place
        for place, call in strangers
        if not any(
            word.arg == "trust_remote_code" and isinstance(word.value, ast.Constant) and word.value.value is False
            for word in call.keywords
        )
    ]
    assert wrong == []


def test_b9_data_sets_of_the_hub_run_no_code() -> None:
    """From version 4 on the library `datasets` runs no loading scripts at all, so there is nothing to switch off."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["optional-dependencies"]["datasets"] == ["datasets>=4"]
