"""The code of the documentation is run, so that it cannot rot.

```sh, ```python    run, one after the other, in one folder (sh) or one namespace (python)
```text             what the block before it prints, bounds and all: a page must not show a number that no card has
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
    matches = [Block(m["kind"], m["body"], m["note"] or "") for m in BLOCK.finditer(text)]
    assert text.count("\n```") == 2 * len(matches), "a block is not closed"
    return matches


def plain(text: str) -> list[str]:
    """Lines without frames and spaces."""
    return [" ".join(line.strip(" │").split()) for line in text.splitlines() if line.strip(" │")]


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """With the command of the environment that runs the tests, and no settings of its user."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    hidden = {name: value for name, value in os.environ.items() if not name.startswith("TACIT_")}
    return {**hidden, "PATH": path, "XDG_CONFIG_HOME": str(tmp_path / "config"), "COLUMNS": "100"}


@pytest.mark.usefixtures("default_table")
def test_c8_the_quick_start_runs_as_it_stands(tmp_path: Path, environment: dict[str, str]):
    pytest.importorskip("wordfreq", reason="SanText+ needs: pip install 'tacit-dp[default]'")
    code_blocks = blocks("quickstart.md")
    assert sum(block.is_run for block in code_blocks) >= 9
    work = tmp_path / "work"
    work.mkdir()
    printed: list[str] | None = None
    for block in code_blocks:
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
    code_blocks = blocks("python.md")
    assert sum(block.is_run for block in code_blocks) >= 5
    names: dict[str, object] = {}
    for block in code_blocks:
        if block.is_run:
            exec(compile(block.body, "docs/python.md", "exec"), names)


def test_c8_every_extra_is_on_the_install_page():
    """What pip can install beside the base is said, so that nobody has to read pyproject.toml."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    text = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
    assert [name for name in extras if f"[{name}]" not in text] == []


def test_c2_every_extra_that_a_page_or_a_sentence_names_exists():
    """pip installs the base and only warns about an extra that does not exist."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    files = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "Makefile", "pyproject.toml")]
    for folder, ending in (("docs", "md"), ("examples", "*"), ("src", "py"), ("experiments", "toml")):
        files += (path for path in (ROOT / folder).rglob(f"*.{ending}") if path.suffix not in (".csv", ".pyc"))
    texts = {path: path.read_text(encoding="utf-8") for path in files}
    named = {(path.name, name) for path, text in texts.items() for name in extras_of(text, path.name)}
    assert len({name for _, name in named}) >= 20
    assert {(file, name) for file, name in named if name not in extras} == set()


def extras_of(text: str, file: str) -> set[str]:
    """The names in `tacit-dp[a,b]` and `'.[a]'`, and in the short form `[a]` of the pages about installing."""
    before = "tacit-dp|'\\.|`" if file in ("README.md", "install.md") else "tacit-dp|'\\."
    lists = re.findall(rf"(?:{before})\[([a-z0-9][a-z0-9,-]*)\]", text)
    return {name for names in lists for name in names.split(",")}


def test_c2_no_command_of_the_readme_writes_over_the_output_of_another():
    """A reader types them one after the other, and an output that exists is refused."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    written = re.findall(r"^tacit [^#\n]*?(?:-o|--html) (\S+)", readme, flags=re.MULTILINE)
    assert len(written) >= 10
    assert sorted(written) == sorted(set(written))


def test_c8_a_block_that_prints_something_else_is_noticed():
    assert plain("│ one word  e^3.29 = 26.9 │\n│   │\n") == ["one word e^3.29 = 26.9"]
    assert plain("a b\n") != plain("a c\n")
    assert plain("at most 148.\n") != plain("at most 149.\n")
