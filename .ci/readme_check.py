#!/usr/bin/env python3
"""Run every command and every Python block of the README and of the pages about the main jobs, in this environment.

`make readme-check` does so in fresh environments with what the README says to install. A page is taken as it stands, in
its order, in a folder with small files of the names that it uses (page_files.py says what is changed). `make` and `pip`
are left to `make demo`, `make test` and `make readme-check` themselves.

    readme_check.py              everything must end as the page says
    readme_check.py --declared   the same, while Tacit cannot import optional libraries that the configuration does not
                                 declare for the command: shows that what is declared is enough
    readme_check.py --plain      in an installation without extras: the main jobs must end well, all else must end well
                                 or with the line that installs what is missing
    readme_check.py --page docs/decode.md      only this page; may be repeated
"""

from __future__ import annotations

import argparse
import contextlib
import os
import pty
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from page_blocks import Piece, pieces_of
from page_files import PAGES, ROOT, CheckedPage, write_files

PORT = 8_317
SHOWN = 3_000
LONGEST = 1_800
"""Seconds that one command may take."""
PLAIN_PAGES = ("docs/synthesize.md", "docs/matching.md", "docs/guide.md", "docs/audit-synthetic.md")
"""The main jobs: an installation without extras does all that these pages show."""
NEEDS_DATA = "tacit experiment run"
"""The data of experiments are not in a clone: without it the command ends with a sentence that says where it is."""
MISSING = "pip install"

WITHOUT = """
import builtins, importlib, importlib.util, sys
from tacit import needs
from tacit.cli import generated, main

by_statement, by_name, by_look = builtins.__import__, importlib.import_module, importlib.util.find_spec
hidden = set()
BASE = {"pydantic"}  # comes with Tacit itself

def ours(importer, module):
    if (importer or "").startswith("tacit") and module.partition(".")[0] in hidden:
        raise ModuleNotFoundError(f"{importer} imports {module}, which its command does not declare", name="")

def import_statement(name, globals=None, locals=None, fromlist=(), level=0):
    ours((globals or {}).get("__name__"), name)
    return by_statement(name, globals, locals, fromlist, level)

def import_module(name, package=None):
    ours(sys._getframe(1).f_globals.get("__name__"), name)
    return by_name(name, package)

def find_spec(name, package=None):
    importer = sys._getframe(1).f_globals.get("__name__", "")
    return None if importer.startswith("tacit") and name in hidden else by_look(name, package)

def check(who, abilities):
    abilities = list(abilities)
    needs.check(who, abilities)
    declared = {module for ability in abilities for module in ability.modules}
    hidden.update({module for ability in needs.KNOWN for module in ability.modules} - declared - BASE)
    builtins.__import__, importlib.import_module = import_statement, import_module
    importlib.util.find_spec = find_spec

generated.check_needs = check
main.main(sys.argv[1:])
"""


@dataclass(frozen=True)
class Ending:
    """How a command or a block of Python ended."""

    code: int
    said: str


@dataclass(frozen=True)
class Place:
    """The folder of a page and the environment of its commands: nothing of the user who runs the check."""

    folder: Path
    declared: bool

    def environment(self) -> dict[str, str]:
        home = self.folder.parent / "home"
        home.mkdir(exist_ok=True)
        return {
            "PATH": os.pathsep.join((str(self._programs()), str(Path(sys.executable).parent), os.environ["PATH"])),
            "HOME": str(home),
            "LANG": "C.UTF-8",
            "TERM": "dumb",
            "COLUMNS": "100",
            "HF_HUB_OFFLINE": "1",
            **{name: value for name, value in os.environ.items() if name.endswith("_NUM_THREADS")},
        }

    def _programs(self) -> Path:
        """A folder with the command `tacit` that imports only what is declared, if that is asked for."""
        programs = self.folder.parent / "programs"
        programs.mkdir(exist_ok=True)
        if self.declared:
            (programs / "without.py").write_text(WITHOUT, encoding="utf-8")
            command = programs / "tacit"
            command.write_text(f'#!/bin/sh\nexec {sys.executable} {programs}/without.py "$@"\n', encoding="utf-8")
            command.chmod(0o755)
        return programs

    def run(self, *command: str) -> Ending:
        try:
            done = subprocess.run(
                command, cwd=self.folder, env=self.environment(), capture_output=True, text=True, timeout=LONGEST,
                stdin=subprocess.DEVNULL, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return Ending(124, f"not ended after {LONGEST} seconds")
        return Ending(done.returncode, done.stdout + done.stderr)

    def shell(self, code: str, typed: str = "") -> Ending:
        if code.strip() == "tacit serve":
            return self.serve()
        return self.terminal(code, typed) if typed else self.run("bash", "-e", "-c", code)

    def terminal(self, code: str, typed: str) -> Ending:
        """Run a command that asks questions, on a terminal where somebody types."""
        ours, theirs = pty.openpty()
        with subprocess.Popen(
            ["bash", "-e", "-c", code], cwd=self.folder, env=self.environment(),
            stdin=theirs, stdout=theirs, stderr=theirs,
        ) as command:  # fmt: skip
            os.close(theirs)
            os.write(ours, typed.encode())
            said = b""
            with contextlib.suppress(OSError):  # how a terminal ends
                while part := os.read(ours, 4_096):
                    said += part
        os.close(ours)
        return Ending(command.returncode, said.decode(errors="replace"))

    def python(self, code: str) -> Ending:
        return self.run(sys.executable, "-c", code)

    def serve(self) -> Ending:
        """Start the service, ask for its page, and stop it."""
        start = ["tacit", "serve", "--port", str(PORT)]
        log = self.folder / "service.log"
        with log.open("w") as written, subprocess.Popen(
            start, cwd=self.folder, env=self.environment(), stdout=written, stderr=written,
            executable=shutil.which("tacit", path=self.environment()["PATH"]),
        ) as service:  # fmt: skip
            try:
                for _ in range(120):
                    time.sleep(0.5)
                    try:
                        with urllib.request.urlopen(f"http://127.0.0.1:{PORT}/", timeout=5) as page:
                            return Ending(0 if page.status == 200 else 1, "")
                    except OSError:
                        if service.poll() is not None:
                            break
                return Ending(service.poll() or 1, log.read_text(encoding="utf-8") or "no answer")
            finally:
                service.terminate()


def remove_results(code: str, folder: Path) -> None:
    """Remove what a command is about to write: a page shows alternatives with the same names."""
    if "--resume" in code:
        return
    targets = re.findall(r"(?:-o|--output|--html|--secret|>) (\S+)", code)
    targets += re.findall(r"output=\"([^\"]+)\"", code)
    for target in targets:
        path = folder / target
        for written in (*path.parent.glob(f"{path.name}*"), *path.parent.glob(f"{path.stem}-*")):
            shutil.rmtree(written) if written.is_dir() else written.unlink()


def judge(piece: Piece, ending: Ending, page: CheckedPage, plain: bool) -> str:
    """ "ok", "needs more" (with the line that installs it), or "FAILED"."""
    expected = next((code for part, code in page.exits.items() if part in piece.code), piece.exit)
    if ending.code == expected:
        return "ok"
    if piece.code.startswith(NEEDS_DATA) and ending.code == 2 and "tacit data" in ending.said:
        return "ok"
    if plain and page.name not in PLAIN_PAGES and MISSING in ending.said:
        return "needs more"
    return "FAILED"


def check(page: CheckedPage, declared: bool, plain: bool) -> list[str]:
    """The judgments about all that is on a page."""
    judgments: list[str] = []
    print(f"\n{page.name}", flush=True)
    with tempfile.TemporaryDirectory(prefix="tacit-readme-", ignore_cleanup_errors=True) as name:
        folder = Path(name) / "page"
        folder.mkdir()
        place = Place(folder, declared)
        write_files(page, folder, sys.executable)
        before = [Piece("shell", command) for command in page.before]
        known = page.names
        for piece in (*before, *pieces_of(ROOT / page.name)):
            code = piece.code
            for old, new in page.changed:
                code = code.replace(old, new)
            if page.fresh:
                remove_results(code, folder)
            began = time.monotonic()
            if piece.kind == "python":
                ending = place.python(known + code)
                known += code if ending.code == 0 else ""
            else:
                ending = place.shell(code, page.typed.get(piece.code, ""))
            judgments.append(judge(piece, ending, page, plain))
            print(f"{judgments[-1]:<10} {time.monotonic() - began:6.1f} s  {piece.title}", flush=True)
            if judgments[-1] == "FAILED":
                print(f"exit code {ending.code}\n{ending.said[-SHOWN:]}", flush=True)
    return judgments


def main() -> int:
    parser = argparse.ArgumentParser(description="Run what the README and the pages about the main jobs show.")
    parser.add_argument("--declared", action="store_true", help="allow each command only the libraries it declares")
    parser.add_argument("--plain", action="store_true", help="this is an installation without extras")
    parser.add_argument("--page", action="append", choices=[page.name for page in PAGES], help="only this page")
    options = parser.parse_args()
    judgments: list[str] = []
    for page in PAGES:
        if options.page is None or page.name in options.page:
            judgments += check(page, options.declared, options.plain)
    failed = judgments.count("FAILED")
    print(f"\n{len(judgments)} commands and blocks, {judgments.count('needs more')} need more, {failed} failed")
    return 1 if failed or not judgments else 0


if __name__ == "__main__":
    sys.exit(main())
