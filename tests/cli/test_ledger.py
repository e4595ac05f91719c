"""`tacit ledger` and `tacit rewrite --ledger` end to end: real files, a real mechanism, small vectors."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tacit.account.ledger import Ledger, Subject, open_ledger
from tacit.card import Card
from tacit.cli.main import run
from tacit.guarantee import Adjacency, Guarantee, Model, Notion, Unit

SECRET = "zanzibar"
WORDS = ["the", "a", "movie", "film", "plot", "actor", "was", "is", "and", "good", "bad", "great", "boring", "."]
ROWS = 60

Tacit = Callable[..., tuple[int, str, str]]
"""Runs a command; its exit code, standard output and standard error."""


@pytest.fixture(autouse=True)
def _own_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("TACIT_LEDGER_KEY", raising=False)


@pytest.fixture(scope="module")
def vectors(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("vectors") / "small.txt"
    rng = np.random.default_rng(0)
    lines = (" ".join([word, *(f"{x:.4f}" for x in rng.standard_normal(8))]) for word in WORDS)
    path.write_text("\n".join(lines) + "\n")
    return str(path)


@pytest.fixture
def tacit(capfd: pytest.CaptureFixture[str]) -> Tacit:
    def call(*arguments: str | Path) -> tuple[int, str, str]:
        code = run([str(argument) for argument in arguments])
        sys.stdout.flush()
        return code, *capfd.readouterr()

    return call


@pytest.fixture
def rewrite(tacit: Tacit, vectors: str, tmp_path: Path) -> Tacit:
    """`tacit rewrite` with a ledger; `uniform` has epsilon 0, `custext` has no plain epsilon, `tem` has one."""

    def call(*arguments: str | Path, mechanism: str = "tem", output: str = "out.csv") -> tuple[int, str, str]:
        options = ["-c", "text", "-m", mechanism, "-e", "1", "--vectors", vectors, "-o", tmp_path / output]
        answer: tuple[int, str, str] = tacit(
            "rewrite", tmp_path / "in.csv", *options, "--ledger", tmp_path / "budget.db", *arguments
        )
        return answer

    return call


def save(path: Path, rows: int = ROWS) -> Path:
    lines = ["id,who,text,note"]
    lines += [f"{row},u{row // 3},the movie was good {row},a {SECRET}" for row in range(rows)]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture(autouse=True)
def _input(tmp_path: Path) -> None:
    save(tmp_path / "in.csv")


def ledger_of(tmp_path: Path) -> Ledger:
    return open_ledger(tmp_path / "budget.db", create=False)


def cost_of_a_token(tmp_path: Path, output: str = "out.csv") -> float:
    """The plain epsilon of one token, from the card beside the output."""
    return Card.from_json((tmp_path / f"{output}.card.json").read_text()).guarantee.over_diameter().exponent()


TEXT = "the movie was good 7"


# rewrite --ledger -----------------------------------------------------------------------------------------------


def test_each_text_is_charged_for_its_tokens(rewrite: Tacit, tmp_path: Path) -> None:
    code, _, err = rewrite()
    assert code == 0, err
    assert "its key is in" in err
    assert "ledger: one document of 'in.csv' has now spent at most epsilon" in err
    code, _, err = rewrite("--dataset", "again", output="again.csv")
    assert code == 0, err
    assert "its key is in" not in err
    with ledger_of(tmp_path) as ledger:
        token = cost_of_a_token(tmp_path)
        assert ledger.spent(Subject("document", TEXT), "in.csv").epsilon == pytest.approx(5 * token)
        assert ledger.spent(Subject("document", TEXT)).epsilon == pytest.approx(10 * token)
        assert ledger.spent(Subject("dataset", "again")).epsilon == pytest.approx(5 * token)
        assert {record.state for record in ledger.releases()} == {"committed"}
        assert "--mechanism tem" in ledger.releases()[0].command
        assert ledger.verify().ok


def test_named_documents(rewrite: Tacit, tmp_path: Path) -> None:
    code, _, err = rewrite("--document-column", "id")
    assert code == 0, err
    with ledger_of(tmp_path) as ledger:
        token = cost_of_a_token(tmp_path)
        assert ledger.spent(Subject("document", "in.csv\0" + "7")).epsilon == pytest.approx(5 * token)
        assert ledger.spent(Subject("document", TEXT)).releases == 0


def test_a_refusal_comes_before_the_noise_and_the_run_can_be_resumed(
    tacit: Tacit, rewrite: Tacit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tacit.words.tem import TEM

    monkeypatch.setattr(TEM, "block_characters", 200)
    ledger = tmp_path / "budget.db"
    assert rewrite("-q", "--dataset", "first")[0] == 0
    spent = 5 * cost_of_a_token(tmp_path)
    assert tacit("ledger", "limit", ledger, "document", "--epsilon", f"{2.5 * spent}")[0] == 0
    with ledger_of(tmp_path) as opened:  # a text of the last block is released once more than the others
        promised = opened.releases()[0].guarantee
        subject = Subject("document", f"the movie was good {ROWS - 1}", 5)
        opened.reserve(promised, dataset="one", subjects=[subject], token="x").commit()
    drawn: list[int] = []
    original = TEM.rewrite_texts
    monkeypatch.setattr(
        TEM, "rewrite_texts", lambda self, texts, source: drawn.append(len(texts)) or original(self, texts, source)
    )
    code, _, err = rewrite("-q", output="second.csv")
    assert code == 2
    assert "would be broken for 1 of" in err
    assert "with --resume to go on" in err
    assert 0 < sum(drawn) < ROWS
    kept = sum(drawn)
    assert f"{kept} rows are in second.csv.partial" in err
    assert rewrite("-q", "--resume", output="second.csv")[0] == 2
    assert sum(drawn) == kept
    assert tacit("ledger", "limit", ledger, "document", "--epsilon", f"{3.5 * spent}")[0] == 0
    code, _, err = rewrite("-q", "--resume", output="second.csv")
    assert code == 0, err
    assert sum(drawn) == ROWS
    with ledger_of(tmp_path) as opened:
        assert opened.spent(Subject("document", TEXT)).epsilon == pytest.approx(2 * spent)
        assert opened.spent(Subject("dataset", "in.csv")).releases == 1
        assert {record.state for record in opened.releases()} == {"committed"}
        assert opened.verify().ok


def test_resume_wants_the_same_ledger_and_data_set(
    rewrite: Tacit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tacit.words.tem import TEM

    monkeypatch.setattr(TEM, "block_characters", 200)
    save(tmp_path / "in.csv")
    with (tmp_path / "in.csv").open("a") as file:
        file.write('broken,"\n')
    assert rewrite("-q")[0] == 2
    code, _, err = rewrite("-q", "--resume", "--dataset", "other")
    assert code == 2
    assert "data set was in.csv and is now other" in err


@pytest.mark.parametrize("mechanism", ["custext", "santext+"])
def test_no_plain_epsilon(tacit: Tacit, rewrite: Tacit, tmp_path: Path, mechanism: str) -> None:
    if mechanism == "santext+":
        pytest.importorskip("wordfreq")
    code, _, err = rewrite("-q", mechanism=mechanism)
    assert code == 0, err
    with ledger_of(tmp_path) as ledger:
        assert ledger.spent(Subject("document", TEXT)).apart[0].releases == 1
    assert tacit("ledger", "limit", tmp_path / "budget.db", "document", "-e", "1e6")[0] == 0
    code, _, err = rewrite("-q", mechanism=mechanism, output="second.csv")
    assert code == 2
    assert "has no plain epsilon, because" in err
    assert not (tmp_path / "second.csv").exists()


def test_a_test_seed_is_refused_by_a_limit(tacit: Tacit, rewrite: Tacit, tmp_path: Path) -> None:
    assert tacit("ledger", "limit", tmp_path / "budget.db", "dataset", "-e", "1e6")[0] == 0
    code, _, err = rewrite("-q", "--seed", "1")
    assert code == 2
    assert "test seed" in err
    assert list(tmp_path.glob("out*")) == []


def test_wrong_options(rewrite: Tacit, tacit: Tacit, tmp_path: Path) -> None:
    code, _, err = tacit("rewrite", tmp_path / "in.csv", "-c", "text", "-e", "1", "--dataset", "d")
    assert (code, "name it with --ledger" in err) == (2, True)
    code, _, err = rewrite("--document-column", "nothing")
    assert (code, "nothing" in err) == (2, True)
    code, _, err = rewrite("--document-column", "text")
    assert (code, "cannot be rewritten and name a document" in err) == (2, True)
    code, _, err = tacit("rewrite", "-", "--format", "csv", "-e", "1", "--ledger", tmp_path / "budget.db")
    assert (code, "--dataset NAME" in err) == (2, True)


def test_two_text_columns_are_one_row(rewrite: Tacit, tmp_path: Path) -> None:
    code, _, err = rewrite("-c", "note", "-q")
    assert code == 0, err
    with ledger_of(tmp_path) as ledger:
        token = cost_of_a_token(tmp_path)
        assert ledger.spent(Subject("document", f"a {SECRET}")).epsilon == pytest.approx(2 * ROWS * token)
        assert ledger.spent(Subject("dataset", "in.csv")).epsilon >= 7 * token


KILLED = """
import sys
from pathlib import Path
from tacit.words.tem import TEM
TEM.block_characters = 120
from tacit.cli.main import main
main(sys.argv[1:])
"""


def test_killed_and_resumed_counts_every_block_once(tacit: Tacit, rewrite: Tacit, vectors: str, tmp_path: Path) -> None:
    """Killed at several moments, resumed to the end: each text is charged exactly once."""
    save(tmp_path / "in.csv", rows=400)
    command = [
        sys.executable, "-c", KILLED, "rewrite", str(tmp_path / "in.csv"), "-c", "text", "-m", "tem", "-e", "1",
        "--vectors", vectors, "-o", str(tmp_path / "out.csv"), "--ledger", str(tmp_path / "budget.db"),
        "--resume", "-q",
    ]  # fmt: skip
    state = tmp_path / "out.csv.resume"
    for blocks in (2, 5, 9):
        process = subprocess.Popen(command, env={**os.environ, "OMP_NUM_THREADS": "1"})
        deadline = time.monotonic() + 120
        while process.poll() is None and time.monotonic() < deadline:
            if state.exists() and state.read_bytes().count(b"\n") > blocks:
                process.send_signal(signal.SIGKILL)
                break
            time.sleep(0.005)
        process.wait()
    assert subprocess.run(command, check=False).returncode == 0
    assert len((tmp_path / "out.csv").read_text().splitlines()) == 401
    with ledger_of(tmp_path) as ledger:
        token = cost_of_a_token(tmp_path)
        for row in (0, 7, 99, 399):
            spent = ledger.spent(Subject("document", f"the movie was good {row}"))
            assert (spent.releases, spent.epsilon) == (1, pytest.approx(5 * token))
        assert ledger.spent(Subject("dataset", "in.csv")).releases == 1
        assert {record.state for record in ledger.releases()} == {"committed"}
        assert ledger.verify().ok


# tacit ledger ---------------------------------------------------------------------------------------------------


def test_show(tacit: Tacit, rewrite: Tacit, tmp_path: Path) -> None:
    rewrite("-q")
    ledger = tmp_path / "budget.db"
    code, out, _ = tacit("ledger", "show", ledger)
    assert code == 0
    assert "in.csv" in out
    assert "committed" in out
    code, out, _ = tacit("ledger", "show", ledger, "--document", TEXT)
    assert "this document has spent epsilon" in out
    code, out, _ = tacit("ledger", "show", ledger, "--user", "nobody")
    assert "is in no release" in out
    code, out, _ = tacit("ledger", "show", ledger, "--json")
    assert [line["state"] for line in json.loads(out)["releases"]] == ["committed"]
    code, out, _ = tacit("ledger", "show", ledger, "--json", "--document", TEXT)
    assert json.loads(out)["releases"] == 1
    assert tacit("ledger", "show", ledger, "--user", "a", "--document", "b")[0] == 2


def test_limit(tacit: Tacit, tmp_path: Path) -> None:
    ledger = tmp_path / "budget.db"
    code, out, err = tacit("ledger", "limit", ledger, "user", "--epsilon", "20", "--delta", "1e-6", "--name", SECRET)
    assert code == 0
    assert "its key is in" in err
    assert SECRET not in out
    assert "1e-06" in out
    assert tacit("ledger", "limit", ledger, "user", "--remove", "--name", SECRET)[0] == 0
    for wrong in (
        ["user"],
        ["--epsilon", "3"],
        ["user", "--epsilon", "nan"],
        ["user", "--epsilon", "1", "--delta", "2"],
        ["user", "--remove"],
        ["Some One", "--epsilon", "1"],
    ):
        code, _, err = tacit("ledger", "limit", ledger, *wrong)
        assert (code, err.count("\n")) == (2, 1), err


def model_card(tmp_path: Path, epsilon: float = 3.0) -> Path:
    promised = Guarantee(
        notion=Notion.APPROXIMATE,
        epsilon=epsilon,
        delta=1e-6,
        unit=Unit.RECORD,
        adjacency=Adjacency.ADD_REMOVE,
        model=Model.CENTRAL,
        mechanism="DP-SGD",
    )
    path = tmp_path / f"model-{epsilon}.card.json"
    path.write_text(Card(promised).to_json())
    return path


def test_add_a_model(tacit: Tacit, tmp_path: Path) -> None:
    ledger, card = tmp_path / "budget.db", model_card(tmp_path)
    assert tacit("ledger", "limit", ledger, "dataset", "-e", "7", "--delta", "1e-5")[0] == 0
    code, out, _ = tacit("ledger", "add", ledger, card, "--dataset", "mail")
    assert code == 0
    assert "epsilon 3, delta 1e-06" in out
    code, out, _ = tacit("ledger", "add", ledger, card, "--dataset", "mail")
    assert "in the ledger already" in out
    code, out, _ = tacit("ledger", "add", ledger, card, "--dataset", "mail", "--again")
    assert "epsilon 6, delta 2e-06" in out
    code, _, err = tacit("ledger", "add", ledger, card, "--dataset", "mail", "--again")
    assert (code, "would be broken" in err) == (2, True)


def test_add_a_rewritten_file(tacit: Tacit, rewrite: Tacit, vectors: str, tmp_path: Path) -> None:
    options = ["-c", "text", "-m", "tem", "-e", "1", "--vectors", vectors, "-q"]
    assert tacit("rewrite", tmp_path / "in.csv", *options, "-o", tmp_path / "elsewhere.csv")[0] == 0
    card = tmp_path / "elsewhere.csv.card.json"
    code, _, err = tacit("ledger", "add", tmp_path / "budget.db", card, "--dataset", "in.csv")
    assert code == 0, err
    assert rewrite("-q")[0] == 0
    with ledger_of(tmp_path) as ledger:
        assert ledger.spent(Subject("document", TEXT)).epsilon == pytest.approx(10 * cost_of_a_token(tmp_path))


@pytest.mark.parametrize("content", ["", "{}", "[1]", "no json", '{"card_version": 1, "guarantee": {}}'])
def test_add_something_that_is_no_card(tacit: Tacit, tmp_path: Path, content: str) -> None:
    (tmp_path / "card.json").write_text(content)
    code, _, err = tacit("ledger", "add", tmp_path / "budget.db", tmp_path / "card.json", "--dataset", "d")
    assert code == 2
    assert "this is not a privacy card" in err


def test_add_a_card_without_its_file(tacit: Tacit, tmp_path: Path) -> None:
    card = Card.from_json(model_card(tmp_path).read_text())
    local = replace(card.guarantee, model=Model.LOCAL, unit=Unit.TOKEN, adjacency=Adjacency.ANY_TWO)
    (tmp_path / "card.json").write_text(Card(local).to_json())
    code, _, err = tacit("ledger", "add", tmp_path / "budget.db", tmp_path / "card.json", "--dataset", "d")
    assert (code, "how long its texts are" in err) == (2, True)


def test_export_and_verify(tacit: Tacit, rewrite: Tacit, tmp_path: Path) -> None:
    rewrite("-q")
    ledger = tmp_path / "budget.db"
    code, out, _ = tacit("ledger", "verify", ledger)
    assert code == 0
    anchor = out.split("anchor: ")[1].strip()
    assert tacit("ledger", "export", ledger, "-o", tmp_path / "out.json", "--subjects")[0] == 0
    exported = json.loads((tmp_path / "out.json").read_text())
    assert exported["anchor"] == anchor
    assert len(exported["releases"][0]["charges"]) == ROWS + 1
    assert tacit("ledger", "export", ledger, "-o", tmp_path / "out.json")[0] == 2
    assert tacit("ledger", "verify", ledger, "--anchor", anchor)[0] == 0
    with open_ledger(ledger) as opened, opened._database.writing():
        opened._database.run("UPDATE releases SET dataset = ?", ("somewhere else",))
    code, out, err = tacit("ledger", "verify", ledger, "--anchor", anchor)
    assert code == 1
    assert "release 1 was changed" in out
    assert "cannot be relied on" in err


@pytest.mark.parametrize("command", [["show"], ["limit"], ["verify"], ["export"]])
def test_a_ledger_that_cannot_be_used(tacit: Tacit, tmp_path: Path, command: list[str]) -> None:
    code, _, err = tacit("ledger", *command, tmp_path / "none.db")
    assert (code, "does not exist" in err, err.count("\n")) == (2, True, 1)
    code, _, err = tacit("ledger", *command, tmp_path / "in.csv")
    assert (code, "is not a ledger" in err, err.count("\n")) == (2, True, 1)
    open_ledger(tmp_path / "budget.db", "another key, long enough").close()
    code, _, err = tacit("ledger", *command, tmp_path / "budget.db")
    assert (code, "the key of this ledger cannot be read" in err, err.count("\n")) == (2, True, 1)


def test_a_misspelled_kind_is_no_limit(tacit: Tacit, tmp_path: Path) -> None:
    code, _, err = tacit("ledger", "limit", tmp_path / "budget.db", "users", "--epsilon", "1")
    assert code == 2
    assert "document, user, key, dataset" in err
    assert not (tmp_path / "budget.db").exists()


def test_a_document_is_looked_up_without_the_history_of_the_shell(
    tacit: Tacit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_ledger(tmp_path / "budget.db") as ledger:
        guarantee = Guarantee(
            notion=Notion.PURE, epsilon=1.5, unit=Unit.DOCUMENT, adjacency=Adjacency.ANY_TWO, mechanism="test"
        )
        ledger.reserve(guarantee, dataset="d", subjects=[Subject("document", "two\nlines")], token="1")
    (tmp_path / "letter.txt").write_text("two\nlines\n")
    show = ("ledger", "show", tmp_path / "budget.db")
    assert "epsilon 1.5" in tacit(*show, "--document-file", tmp_path / "letter.txt")[1]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"two\nlines")))
    assert "epsilon 1.5" in tacit(*show, "--document-file", "-")[1]
    assert tacit(*show, "--document-file", tmp_path / "nothing.txt")[0] == 2
    assert tacit(*show, "--document-file", "-", "--document", "x")[0] == 2


# Making, keeping and bringing back ------------------------------------------------------------------------------


@pytest.mark.parametrize("given", [False, True])
def test_b1_a_new_ledger_is_told_loudly_even_when_quiet(
    rewrite: Tacit, tacit: Tacit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: bool
) -> None:
    """Also when the key is given, and when a file is there that was emptied."""
    if given:
        monkeypatch.setenv("TACIT_LEDGER_KEY", "a key that is only used in tests")
    code, _, err = rewrite("-q")
    assert code == 0, err
    assert "NEW LEDGER" in err
    assert "what was spent before is not in this one" in err
    assert "NEW LEDGER" not in rewrite("-q", output="again.csv")[2]
    (tmp_path / "budget.db").write_bytes(b"")
    for path in tmp_path.glob("budget.db-*"):
        path.unlink()
    assert "NEW LEDGER" in rewrite("-q", output="third.csv")[2]
    assert "NEW LEDGER" in tacit("ledger", "limit", tmp_path / "other.db", "document", "--epsilon", "1")[2]


def test_b10_the_commands_that_keep_a_ledger(rewrite: Tacit, tacit: Tacit, tmp_path: Path) -> None:
    ledger, copy, back = (tmp_path / name for name in ("budget.db", "copy.db", "back.db"))
    assert rewrite("-q")[0] == 0
    code, out, err = tacit("ledger", "backup", ledger, copy)
    assert code == 0, err
    assert "copied and verified" in out
    assert "the key is not in the copy" in err
    anchor = out.split("anchor of the copy: ")[1].strip()
    assert tacit("ledger", "backup", ledger, copy)[0] == 2
    assert rewrite("-q", output="second.csv")[0] == 0
    code, out, _ = tacit("ledger", "verify", ledger)
    assert code == 0
    assert "no anchor" not in out

    # An older copy: verified by its own anchor, and not by the one beside the key.
    assert tacit("ledger", "verify", copy, "--anchor", anchor)[0] == 0
    assert tacit("ledger", "verify", copy)[0] == 1
    ledger.unlink()
    code, _, err = tacit("ledger", "restore", copy, ledger)
    assert code == 0
    assert "tacit ledger accept" in err
    code, _, err = rewrite("-q", output="third.csv")
    assert code == 2
    assert "is older than it was" in err
    assert not (tmp_path / "third.csv").exists()
    code, out, _ = tacit("ledger", "accept", ledger)
    assert code == 0
    assert "is not counted" in out
    assert rewrite("-q", output="fourth.csv")[0] == 0
    code, out, _ = tacit("ledger", "verify", ledger)
    assert code == 0
    assert "an older copy was accepted" in out
    assert tacit("ledger", "accept", ledger)[0] == 2
    assert tacit("ledger", "restore", ledger, back)[0] == 0


def test_b10_a_key_is_rotated_by_command(
    rewrite: Tacit, tacit: Tacit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TACIT_LEDGER_KEY", "a key that is only used in tests")
    ledger = tmp_path / "budget.db"
    assert rewrite("-q")[0] == 0
    with ledger_of(tmp_path) as opened:
        spent = opened.spent(Subject("document", TEXT))
    code, out, err = tacit("ledger", "rotate-key", ledger)
    assert code == 0, err
    assert "TACIT_LEDGER_KEY holds the former key" in err
    path = Path(out.split("is in '")[1].split("'")[0])
    code, _, err = tacit("ledger", "show", ledger)
    assert code == 2
    assert "this is not the key" in err
    monkeypatch.setenv("TACIT_LEDGER_KEY", path.read_text())
    code, out, _ = tacit("ledger", "verify", ledger)
    assert code == 0
    assert "the key was changed on" in out
    monkeypatch.delenv("TACIT_LEDGER_KEY")
    with ledger_of(tmp_path) as opened:
        assert opened.spent(Subject("document", TEXT)) == spent
