"""Runs a `tacit` command as it would be typed, and shows it first."""

from __future__ import annotations

import shlex
import sys
import tempfile
from pathlib import Path

from tacit.cli.main import run

HERE = Path(__file__).parent


def tacit(command: str, *, expected: int = 0) -> None:
    """Run `tacit COMMAND`; anything but the expected exit code ends the program."""
    print(f"\n$ tacit {command}", flush=True)
    code = run(shlex.split(command))
    sys.stdout.flush()
    if code != expected:
        sys.exit(code or 1)


def workplace(name: str) -> Path:
    """The folder for the output: the first argument of the program, or a new temporary one."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(tempfile.mkdtemp(prefix=f"tacit-{name}-"))
    folder.mkdir(parents=True, exist_ok=True)
    print(f"Everything is written to {folder}")
    return folder
