"""The name on the package index: `tacit` there is another project, so no line of ours may ask pip for it."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from tacit.errors import DISTRIBUTION, MissingExtraError, install_line, require

ROOT = Path(__file__).resolve().parents[2]
TEXTS = {".py", ".md", ".toml", ".txt", ".cfg", ".yml", ".yaml", ".sh", ".js", ".html", ""}
LEFT_OUT = {".git", ".venv", "build", "dist", "site", "node_modules", "results"}
STRANGER = (
    re.compile(r"(?<![\w.-])tacit\\?\["),  # the other project with an extra
    re.compile(r"\bpip3? (?:install|download)\b[^\n]*?[\s'\"]tacit(?![\w-])"),
    re.compile(r"\buv (?:add|pip install|tool install)\b[^\n]*?[\s'\"]tacit(?![\w-])"),
)


def sources() -> list[Path]:
    return [
        path
        for path in sorted(ROOT.rglob("*"))
        if path.is_file()
        and path.suffix in TEXTS
        and not any(part in LEFT_OUT or part.endswith("_cache") for part in path.relative_to(ROOT).parts[:-1])
    ]


@pytest.mark.parametrize("line", ["pip install '@[serve]'", "pip install @ --quiet", 'needs = ["@[default]"]'])
def test_c1_the_pattern_sees_the_name_of_the_stranger(line: str) -> None:
    assert any(pattern.search(line.replace("@", "tacit")) for pattern in STRANGER)
    assert not any(pattern.search(line.replace("@", DISTRIBUTION)) for pattern in STRANGER)


def test_c1_no_line_of_the_repository_installs_the_other_tacit() -> None:
    read = sources()
    assert {"README.md", "pyproject.toml", "errors.py"} <= {path.name for path in read}
    offenders = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in read
        for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), start=1)
        if any(pattern.search(line) for pattern in STRANGER)
    ]
    assert offenders == []


def test_c1_the_distribution_is_tacit_dp_and_the_command_is_tacit() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["name"] == DISTRIBUTION == "tacit-dp"
    assert set(project["scripts"]) == {"tacit"}
    extras = project["optional-dependencies"]
    for name, needed in extras.items():
        for line in needed:
            own = re.fullmatch(rf"{re.escape(DISTRIBUTION)}\[([\w,-]+)\]", line)
            assert own is None or set(own[1].split(",")) <= set(extras), (name, line)


def test_c1_errors_name_the_distribution() -> None:
    assert install_line("audit", "documents", "audit") == "pip install 'tacit-dp[audit,documents]'"
    with pytest.raises(MissingExtraError, match=r"pip install 'tacit-dp\[some\]'$"):
        require("no_such_library_at_all", extra="some", purpose="this")
