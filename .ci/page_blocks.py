"""Blocks of code on a page of the documentation, and the commands in them.

```sh and ```python are run as they stand. A block without a name is run line by line: its commands are the lines that
begin with `$`, or, if none does, those that call a program of ours; other lines are what a command prints.
<!-- ends with exit code N --> stands above a block that fails on purpose.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

BLOCK = re.compile(
    r"(?:^<!-- (?P<note>[^>]*) -->\n\n)?^```(?P<kind>\w*)[^\n]*\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL
)
COMMAND = re.compile(r"(?:tacit|torchrun|zcat) |tacit$")
COMMENT = re.compile(r"\s{2,}#.*$")
FAILING = "ends with exit code "


@dataclass(frozen=True)
class Piece:
    """Something on a page that can be run.

    kind   "shell" or "python"
    code   lines of a shell, or of Python
    exit   the exit code that the page announces
    """

    kind: str
    code: str
    exit: int = 0

    @property
    def title(self) -> str:
        """Its first line with a command in it, for a list."""
        lines = [line for line in self.code.splitlines() if line.strip()]
        own = [line for line in lines if COMMAND.match(line)] if self.kind == "shell" else []
        return (own or lines)[0] + (" ..." if len(lines) > 1 else "")


def pieces_of(page: Path) -> list[Piece]:
    """All that can be run on a page, in its order."""
    pieces: list[Piece] = []
    for match in BLOCK.finditer(page.read_text(encoding="utf-8")):
        note, kind, body = match["note"] or "", match["kind"], match["body"]
        exit_code = int(note.removeprefix(FAILING)) if note.startswith(FAILING) else 0
        if kind == "python":
            pieces.append(Piece("python", body, exit_code))
        elif kind == "sh":
            pieces.append(Piece("shell", body, exit_code))
        elif kind in ("", "console"):
            pieces += (Piece("shell", command, exit_code) for command in commands(body))
    return pieces


def commands(body: str) -> list[str]:
    """The commands of a block without a name; a line that ends with a backslash goes on."""
    lines = re.sub(r"[ \t]*\\\n\s*", " ", body).splitlines()
    prompted = [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
    called = [COMMENT.sub("", line).rstrip() for line in prompted or lines]
    return [line for line in called if COMMAND.match(line)]
