"""The code of the documentation is run, so that it cannot rot.

```sh, ```python    run, one after the other, in one folder (sh) or one namespace (python)
```text             what the block before it prints, numbers apart
``` (no name)       an example of what it prints: words are drawn at random
<!-- not run by the tests: REASON -->      above a block that takes long, or needs more than the tests have
<!-- ends with exit code N -->             above a block that fails on purpose
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.conftest import ROOT

BLOCK = re.compile(r"(?:^<!-- (?P<note>[^>]*) -->\n\n)?^```(?P<kind>\w*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
SKIPPED = "not run by the tests: "
FAILING = "ends with exit code "


@dataclass(frozen=True)
class Block:
    kind: str
    body: str
    note: str

    @property
    def is_run(self) -> bool:
        return self.kind in ("sh", "python") and not self.note.startswith(SKIPPED)

    @property
    def exit_code(self) -> int:
        return int(self.note.removeprefix(FAILING)) if self.note.startswith(FAILING) else 0


def blocks(page: str) -> list[Block]:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    found = [Block(m["kind"], m["body"], m["note"] or "") for m in BLOCK.finditer(text)]
    assert text.count("\n```") == 2 * len(found), "a block is not closed"
    return found


def plain(text: str) -> list[str]:
    """Lines without numbers, frames and spaces."""
    without = (re.sub(r"[\d.,]+", "#", line).strip(" │") for line in text.splitlines())
    return [" ".join(line.split()) for line in without if line]


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """With the command of the environment that runs the tests, and no settings of its user."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    hidden = {name: value for name, value in os.environ.items() if not name.startswith("TACIT_")}
    return {**hidden, "PATH": path, "XDG_CONFIG_HOME": str(tmp_path / "config"), "COLUMNS": "100"}


@pytest.mark.usefixtures("default_table")
def test_c8_the_quick_start_runs_as_it_stands(tmp_path: Path, environment: dict[str, str]):
    pytest.importorskip("wordfreq", reason="SanText+ needs: pip install 'tacit-dp[default]'")
    found = blocks("quickstart.md")
    assert sum(block.is_run for block in found) >= 9
    work = tmp_path / "work"
    work.mkdir()
    printed: list[str] | None = None
    for block in found:
        if block.is_run:
            command = ["bash", "-e", "-c"] if block.kind == "sh" else [sys.executable, "-c"]
            done = subprocess.run(
                [*command, block.body], cwd=work, env=environment, capture_output=True, text=True, check=False
            )
            assert done.returncode == block.exit_code, f"{block.body}\n{done.stdout}{done.stderr}"
            printed = plain(done.stdout + done.stderr)
        elif block.kind == "text":
            assert printed is not None, "output without a command"
            missing = [line for line in plain(block.body) if line not in printed]
            assert missing == [], f"the quick start shows other lines than the command prints: {printed}"


def test_c8_the_python_of_the_documentation_runs(default_table: object):
    pytest.importorskip("sklearn")
    pytest.importorskip("pandas")
    found = blocks("python.md")
    assert sum(block.is_run for block in found) >= 5
    names: dict[str, object] = {}
    for block in found:
        if block.is_run:
            exec(compile(block.body, "docs/python.md", "exec"), names)


def test_c8_every_extra_is_on_the_install_page():
    """What pip can install beside the base is said, so that nobody has to read pyproject.toml."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    text = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
    assert [name for name in extras if f"[{name}]" not in text] == []


def test_c8_a_block_that_prints_something_else_is_noticed():
    assert plain("│ one word  e^3.29 = 26.9 │\n") == ["one word e^# = #"]
    assert plain("a b\n") != plain("a c\n")
