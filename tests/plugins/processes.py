"""Python code in processes of its own, which need not load the large libraries again.

What a plug-in registers stays in its process, so each call has a new one. Torch and its companions take four seconds
of processor time to load, Tacit itself a few tenths: one process loads the libraries and nothing of Tacit, and each
call is a fork of it, with its own arguments, environment and import path.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).parent / "package"
SOURCE = Path(__file__).parents[2] / "src"

LOADED = """
import importlib, json, os, sys, traceback
for name in ("scipy.stats", "scipy.sparse", "torch", "torch.utils.data", "transformers.modeling_utils", "typer"):
    try:
        importlib.import_module(name)
    except ImportError:
        pass

def carry_out(call):
    os.environ.clear()
    os.environ.update(call["environment"])
    sys.path[:0] = call["path"]
    sys.argv = ["-c", *call["arguments"]]
    for number, name in ((1, "stdout"), (2, "stderr")):
        os.dup2(os.open(call[name], os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
    try:
        exec(compile(call["code"], "<string>", "exec"), {"__name__": "__main__"})
        return 0
    except SystemExit as end:
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
        return 1

def end(code):
    import atexit
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)

for line in sys.stdin:
    child = os.fork()
    if child == 0:
        sys.stdin = open(os.devnull)
        end(carry_out(json.loads(line)))
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@cache
def loaded() -> subprocess.Popen[str]:
    """The process that calls are forks of; it ends with this one, whose end closes its input."""
    return subprocess.Popen([sys.executable, "-c", LOADED], text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def environment_of(package: Path | None, **variables: str) -> tuple[list[str], dict[str, str]]:
    """The import path with the package on it, and the environment that says so to processes of the process."""
    before = list(filter(None, [os.environ.get("PYTHONPATH")]))
    path = [*([str(package)] if package else []), *before, str(SOURCE)]
    key = {"TACIT_LEDGER_KEY": "a key for tests, nothing more"}
    return path, {**os.environ, "PYTHONPATH": os.pathsep.join(path), **key, **variables}


def fresh(code: str, *arguments: str, package: Path | None = PACKAGE) -> subprocess.CompletedProcess[str]:
    """Run Python code in a process that has loaded nothing, for tests of what is loaded."""
    _, environment = environment_of(package)
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, timeout=300, env=environment
    )


def call(
    code: str, *arguments: str, package: Path | None = PACKAGE, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run Python code with the package on the import path."""
    path, environment = environment_of(package, **variables)
    parent = loaded()
    assert parent.stdin is not None
    assert parent.stdout is not None
    with tempfile.TemporaryDirectory() as folder:
        written = {name: Path(folder) / name for name in ("stdout", "stderr")}
        request = {"code": code, "arguments": arguments, "path": path, "environment": environment}
        parent.stdin.write(json.dumps({**request, **{name: str(file) for name, file in written.items()}}) + "\n")
        parent.stdin.flush()
        ended = int(parent.stdout.readline())
        output, errors = (file.read_text() for file in written.values())
    return subprocess.CompletedProcess([code, *arguments], ended, output, errors)


def tacit(*arguments: str, package: Path | None = PACKAGE, **variables: str) -> str:
    """The output of a command."""
    done = call("from tacit.cli.main import main; main()", *arguments, package=package, **variables)
    assert done.returncode == 0, done.stderr
    return done.stdout
