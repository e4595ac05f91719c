"""Every command of the table runs, on small files, through the command line."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("dp_accounting")

from tacit.cli.main import run  # noqa: E402
from tacit.literature import directions, papers  # noqa: E402
from tests.literature.small_files import SMALLER, smaller, write_small_files, write_small_models, write_small_pool  # noqa: E402

COMMANDS = list(
    dict.fromkeys(
        [
            *(command for paper in papers() for command in paper.commands),
            *(command for row in directions() for command in row.commands),
        ]
    )
)
REFUTED = 3
EXITS = {"tacit audit mechanism published-adept --epsilon 10": REFUTED}
"""Exit codes of commands that end well with another one than 0: an audit that refutes says so."""
TRAINED = {
    "classifier": "tacit train classify notes.csv --epsilon 3 -o model",
    "writer": "tacit train translate pairs.csv --epsilon 3 -o model",
    "ensemble": "tacit train ensemble notes.csv --user-column author -o model",
}
"""Models that commands of the table take, and how they were trained."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Files, models, and the trained models that commands about trained models take."""
    made = tmp_path_factory.mktemp("literature")
    os.environ.setdefault("TACIT_LEDGER_KEY", "a key for tests, nothing more")
    write_small_files(made)
    write_small_models(made)
    write_small_pool(made / "small.tacit")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # models of a few numbers: threads would only wait for each other
    with contextlib.chdir(made):
        for name, command in TRAINED.items():
            assert run(smaller(command, 0)) == 0
            Path("results/0-model").rename(name)
            if (beside := Path("results/0-model.private")).is_dir():  # checkpoints and logs
                beside.rename(f"{name}.private")
        yield made
    torch.set_num_threads(threads)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_runs(command: str, folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    number = COMMANDS.index(command) + 1
    code = run(smaller(command, number))
    said = capfd.readouterr()
    assert code == EXITS.get(command, 0), said.err
    written = list(Path("results").glob(f"{number}-*"))
    assert written or "-o " not in command
    for card in (*written, *(place / "card.json" for place in written)):
        if card.name.endswith("card.json") and card.is_file():
            guarantee = json.loads(card.read_text(encoding="utf-8"))["guarantee"]
            assert guarantee["notion"] == "none" or guarantee["epsilon"] > 0


def test_options_are_added_only_to_commands_that_exist() -> None:
    """A beginning that fits nothing would leave a command with its defaults, which take minutes."""
    unused = [known for known in SMALLER if "--by" not in known
              and not any(command.startswith(known) for command in COMMANDS)]  # fmt: skip
    assert not unused
