"""What users rely on, as plain values: options of all commands, routes of the service, released bytes, cards.

`python -m tests.golden.surface` writes the files beside this module anew; a test compares them with what the code
gives now, so that a change of structure cannot change behavior unnoticed.
"""

from __future__ import annotations

import contextlib
import csv
import importlib
import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import click

FOLDER = Path(__file__).parent
CHANGING_FACTS = ("created", "digest", "tacit_version", "command")
"""Lines of a card that hang on time, place or version."""
WORD_MECHANISMS = ("santext", "santext+", "tem", "custext", "laplace", "vickrey", "random")
ROWS = [
    ("w1 w2 w3, unknownword w4.", "a", "u1"),
    ("w5 W6 w7!", "b", "u2"),
    ("", "a", "u1"),
    ("w8 w9 w10 w11 w12", "b", "u3"),
]


def command_options() -> dict[str, object]:
    """Every command with its options: names, default, whether it must be given."""
    from tacit.cli.main import COMMANDS

    surface: dict[str, object] = {}

    def add(command: click.Command, path: str) -> None:
        surface[path] = {
            parameter.name: {
                "names": sorted([*parameter.opts, *parameter.secondary_opts]),
                "required": parameter.required,
                "default": repr(parameter.default),
            }
            for parameter in command.params
        }
        for name, child in getattr(command, "commands", {}).items():
            add(child, f"{path} {name}")

    for name, (path, _) in COMMANDS.items():
        add(importlib.import_module(path).command, f"tacit {name}")
    return surface


def service_description() -> dict[str, object]:
    """The OpenAPI description of the service, without sentences."""
    from starlette.testclient import TestClient

    from tacit.serve.app import create_app
    from tacit.serve.settings import ServiceSettings

    with tempfile.TemporaryDirectory() as folder:
        app = create_app(ServiceSettings(state=Path(folder) / "state"))
        with TestClient(app, base_url="http://localhost") as client:
            description = client.get("/openapi.json").json()
    description["info"].pop("version", None)
    return _without_sentences(description)


def _without_sentences(value: object) -> object:
    if isinstance(value, dict):
        return {
            key: _without_sentences(item)
            for key, item in value.items()
            if not (key in ("description", "summary", "title") and isinstance(item, str))
        }
    return [_without_sentences(item) for item in value] if isinstance(value, list) else value


def seeded_rewrites() -> dict[str, object]:
    """What the word mechanisms release with a test seed, and their cards."""
    releases: dict[str, object] = {}
    with _small_files() as folder, contextlib.chdir(folder):  # noise is keyed by the configuration, names included
        for name in WORD_MECHANISMS:
            output = f"{name}.csv"
            _run("rewrite", "rows.csv", "--column", "text", "--keep", "label", "--mechanism", name, "--epsilon", 3,
                 "--vectors", "vectors.txt", "--seed", 7, "-o", output, "-q")  # fmt: skip
            releases[name] = {"released": Path(output).read_text(), "card": _card(Path(f"{output}.card.json"))}
    return releases


def _card(path: Path) -> dict[str, object]:
    card: dict[str, object] = json.loads(path.read_text())

    def cleaned(value: object) -> object:
        if isinstance(value, dict):
            return {key: cleaned(item) for key, item in value.items() if key not in CHANGING_FACTS}
        if isinstance(value, list):
            return [cleaned(item) for item in value]
        return value

    return {key: cleaned(item) for key, item in card.items() if key not in CHANGING_FACTS}


@contextlib.contextmanager
def _small_files() -> Iterator[Path]:
    """A folder with forty word vectors and a few rows."""
    from tests.conftest import small_table

    table = small_table(words=40, dimension=3)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rows = zip(table.words, table.vectors.tolist(), strict=True)
        (folder / "vectors.txt").write_text("".join(f"{word} {' '.join(map(str, row))}\n" for word, row in rows))
        with (folder / "rows.csv").open("w", newline="") as file:
            csv.writer(file).writerows([("text", "label", "user"), *ROWS])
        yield folder


def _run(*arguments: object) -> None:
    from tacit.cli.main import run

    code = run([str(argument) for argument in arguments])
    if code:
        raise RuntimeError(f"'tacit {arguments[0]}' ended with {code}")


PARTS = {"options": command_options, "service": service_description, "rewrites": seeded_rewrites}


def main() -> None:
    os.environ.setdefault("TACIT_LEDGER_KEY", "a key for tests, nothing more")
    for name, make in PARTS.items():
        text = json.dumps(make(), indent=1, sort_keys=True, ensure_ascii=False)
        (FOLDER / f"{name}.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
