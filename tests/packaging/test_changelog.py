"""The changelog has the form of Keep a Changelog, and a section for the version of the package."""

import re
from pathlib import Path

from tacit.version import __version__

LINES = (Path(__file__).parents[2] / "CHANGELOG.md").read_text(encoding="utf-8").splitlines()
KINDS = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


def test_the_version_of_the_package_is_the_newest_that_is_dated() -> None:
    versions = [line for line in LINES if line.startswith("## ")]
    assert versions[0] == "## [Unreleased]"
    assert re.fullmatch(rf"## \[{re.escape(__version__)}\] - \d{{4}}-\d\d-\d\d", versions[1])


def test_changes_stand_under_one_of_six_kinds() -> None:
    kinds = [line.removeprefix("### ") for line in LINES if line.startswith("### ")]
    assert kinds
    assert set(kinds) <= KINDS
    versions: dict[str, list[str]] = {}
    version = ""
    for line in LINES:
        if line.startswith("## "):
            version = line
        elif line.startswith("### "):
            versions.setdefault(version, []).append(line)
    assert all(len(names) == len(set(names)) for names in versions.values())
