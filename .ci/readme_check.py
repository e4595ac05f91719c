#!/usr/bin/env python3
"""Run every command of the README in this environment, on small files: `make readme-check` does so in a fresh one.

The commands are taken from README.md as they stand there. Only what a check must not do is changed: places in a store
become folders, the number of synthetic rows becomes small, and the service is asked for its health and then stopped.

    readme_check.py              every command must end well
    readme_check.py --declared   the same, while Tacit cannot import optional libraries that the configuration does not
                                 declare for the command: shows that what is declared is enough
    readme_check.py --only WORD  only the commands that contain the word, with the files of the ones before them
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PORT = 8_317
GOOD = ("wonderful", "lovely", "charming", "brilliant", "fine")
BAD = ("awful", "dull", "terrible", "boring", "weak")
SHOWN = 3_000
REPLACED = (("s3://bucket/", "bucket/"), ("-n 1000", "-n 8 --epochs 1"), ("experiments/", f"{ROOT}/experiments/"))
NEEDS_DATA = ("experiment run",)
"""Commands that need data which a clone does not have: without it they end with a sentence that says where it is."""

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


def readme_commands() -> list[str]:
    """The lines of the README's blocks that begin with `tacit`, without comments."""
    blocks = re.findall(r"^```\n(.*?)^```", (ROOT / "README.md").read_text(encoding="utf-8"), flags=re.M | re.S)
    lines = [line.split("  #")[0].rstrip() for block in blocks for line in block.splitlines()]
    return [line for line in lines if line.startswith("tacit ")]


def write_files(folder: Path) -> None:
    """Small files with the names that the README uses."""
    reviews = [
        (f"a {words[i % 5]} film with {words[(i + 2) % 5]} scenes number {i}", label, f"user{i % 150}")
        for i in range(300)
        for words, label in ((GOOD, "good"), (BAD, "bad"))
    ]
    for name, rows in (("reviews.csv", reviews), ("mail.csv", reviews), ("new.csv", reviews[:20])):
        with (folder / name).open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(("text", "label", "sender"))
            writer.writerows(rows)
    texts = [text for text, _, _ in reviews]
    (folder / "notes.txt").write_text("\n".join(texts[:60]) + "\n", encoding="utf-8")
    (folder / "notes.csv").write_text("text\n" + "\n".join(texts) + "\n", encoding="utf-8")
    (folder / "big.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts), encoding="utf-8")
    (folder / "bucket" / "notes").mkdir(parents=True)
    shutil.copy(ROOT / "examples" / "requests.csv", folder / "requests.csv")
    shutil.copy(folder / "reviews.csv", folder / "bucket" / "notes" / "part.csv")
    nodes = [f"n{i}\t{'a' if i % 2 else 'b'}\t{i % 2} {2 + i % 7}" for i in range(200)]
    (folder / "nodes.tsv").write_text("node\tlabel\tfeatures\n" + "\n".join(nodes) + "\n", encoding="utf-8")
    links = [f"n{i}\tn{(i + 2) % 200}" for i in range(200)]
    (folder / "edges.tsv").write_text("source\ttarget\n" + "\n".join(links) + "\n", encoding="utf-8")


def small_model(folder: Path) -> None:
    """A tiny BERT in ./my-model, with the tokenizer of MiniLM."""
    from tacit.vectors.minilm import minilm_folder

    code = (
        "import sys, transformers as t; words = t.AutoTokenizer.from_pretrained(sys.argv[1]); "
        "size = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64); "
        "t.BertForSequenceClassification(t.BertConfig(vocab_size=len(words), **size)).save_pretrained(sys.argv[2]); "
        "words.save_pretrained(sys.argv[2])"
    )
    subprocess.run([sys.executable, "-c", code, str(minilm_folder()), str(folder / "my-model")], check=True)


def run(command: str, folder: Path, declared: bool) -> tuple[bool, str]:
    for old, new in REPLACED:
        command = command.replace(old, new)
    words = shlex.split(command)[1:]
    start = [sys.executable, "-c", WITHOUT] if declared else [sys.executable, "-m", "tacit.cli.main"]
    environment = {**os.environ, "TACIT_CACHE": str(folder / ".cache"), "XDG_STATE_HOME": str(folder / ".state")}
    environment.setdefault("HF_HUB_OFFLINE", "1")
    if words == ["serve"]:
        return serve([*start, "serve", "--port", str(PORT)], folder, environment)
    done = subprocess.run([*start, *words], cwd=folder, env=environment, capture_output=True, text=True)
    if command.removeprefix("tacit ").startswith(NEEDS_DATA) and done.returncode == 2:
        return "tacit data" in done.stderr, done.stderr
    return done.returncode == 0, done.stderr


def serve(start: list[str], folder: Path, environment: dict[str, str]) -> tuple[bool, str]:
    with subprocess.Popen(start, cwd=folder, env=environment, stderr=subprocess.PIPE, text=True) as service:
        try:
            for _ in range(120):
                time.sleep(0.5)
                try:
                    with urllib.request.urlopen(f"http://127.0.0.1:{PORT}/", timeout=5) as page:
                        return page.status == 200, ""
                except OSError:
                    if service.poll() is not None:
                        break
            return False, service.stderr.read() if service.stderr and service.poll() is not None else "no answer"
        finally:
            service.terminate()


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--declared", action="store_true")
    parser.add_argument("--only", default="")
    chosen = parser.parse_args()
    commands = readme_commands()
    failed = 0
    with tempfile.TemporaryDirectory(prefix="tacit-readme-") as name:
        folder = Path(name)
        write_files(folder)
        small_model(folder)
        if chosen.only:  # what the later commands read
            run("tacit rewrite reviews.csv --column text --keep label --epsilon 2 -o private.csv", folder, False)
        for command in commands:
            if chosen.only not in command:
                continue
            began = time.monotonic()
            good, said = run(command, folder, chosen.declared)
            failed += not good
            print(f"{'ok    ' if good else 'FAILED'} {time.monotonic() - began:6.1f} s  {command}", flush=True)
            if not good:
                print(said[-SHOWN:], flush=True)
    print(f"{len(commands)} commands in the README, {failed} failed")
    return 1 if failed or not commands else 0


if __name__ == "__main__":
    sys.exit(main())
