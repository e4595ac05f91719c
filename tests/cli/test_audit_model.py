"""`tacit audit model`, end to end."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path

import pytest
from click.testing import CliRunner

pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from tacit.auditing.models.canaries import insert, make_canaries  # noqa: E402
from tacit.auditing.models.canary_files import load_canaries, save_canaries  # noqa: E402
from tacit.auditing.models.in_distribution import canaries_like  # noqa: E402
from tacit.card import Card  # noqa: E402
from tacit.cli import main  # noqa: E402
from tacit.cli.audit.canaries import command as canaries  # noqa: E402
from tacit.cli.audit.model import command  # noqa: E402
from tacit.errors import BadInputError, BadParameterError, TacitError  # noqa: E402
from tacit.guarantee import Adjacency, Guarantee, Notion, Unit  # noqa: E402
from tacit.noise.source import new_source  # noqa: E402
from tests.auditing.test_models_memorization import FLIGHTS, MUSIC  # noqa: E402
from tests.auditing.test_models_scores import gpt2_for, random_texts  # noqa: E402
from tests.cli.sentences import refused  # noqa: E402
from tests.documents.test_language_models import saved, tiny  # noqa: E402
from tests.documents.test_latent_models import save_tiny  # noqa: E402


def run(*arguments: object) -> tuple[int, str]:
    called = CliRunner().invoke(command, [str(argument) for argument in arguments], catch_exceptions=False)
    return called.exit_code, called.stdout or called.output


def claimed(folder: Path, epsilon: float, **changes: object) -> Path:
    """The card that training would have written."""
    values = {"notion": Notion.APPROXIMATE, "delta": 1e-5, "unit": Unit.RECORD, "adjacency": Adjacency.ADD_REMOVE}
    promise = Guarantee(epsilon=epsilon, mechanism="DP-SGD", **{**values, **changes})
    (folder / "card.json").write_text(Card(promise).to_json())
    return folder


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An overfit model, an untrained one, their files and canaries."""
    root = tmp_path_factory.mktemp("audited")
    texts = random_texts(160, seed=1)
    secrets = make_canaries(60, source=new_source(2), pattern="the code is {words:2}")
    save_canaries(secrets, root / "canaries.jsonl")
    saved(root / "overfit", *gpt2_for(insert(texts[:80], secrets, new_source(3)), epochs=60))
    saved(root / "untrained", *gpt2_for([], epochs=0, seed=4))
    for name, part in (("in", texts[:80]), ("out", texts[80:])):
        (root / f"{name}.txt").write_text("\n".join(part) + "\n")
        rows = "".join(f"{i},{text}\n" for i, text in enumerate(part))
        (root / f"{name}.csv").write_text("id,note\n" + rows)
    return root


def files(root: Path) -> tuple[object, ...]:
    return ("--members", root / "in.txt", "--non-members", root / "out.txt")


def findings(output: str) -> dict[str, dict]:
    report = json.loads(output)
    return {finding["name"]: finding for section in report["sections"] for finding in section["findings"]}


def test_an_overfit_model_is_caught_in_every_way(place, tmp_path):
    page, machine = tmp_path / "report.html", tmp_path / "report.json"
    prompts = sorted({line.split()[0] for line in (place / "in.txt").read_text().splitlines()})[:6]
    code, output = run(
        place / "overfit", *files(place), "--split", "random", "--claim-epsilon", 0.5, "--claim-delta", 1e-5,
        "--canaries", place / "canaries.jsonl", "--reference", place / "untrained", "--extract", 24,
        *(part for prompt in prompts for part in ("--prompt", prompt)),
        "--html", page, "--json-file", machine, "--json",
    )  # fmt: skip
    assert code == 3
    by_name = findings(output)
    assert by_name["Membership"]["light"] == "red"
    assert by_name["Membership"]["numbers"]["auc"] > 0.99
    assert by_name["Canary exposure"]["light"] == "red"
    assert by_name["Extraction"]["light"] == "red"
    assert by_name["Lower bound on epsilon"]["refuted"]
    assert by_name["Lower bound on epsilon"]["numbers"]["changes"] == 2
    assert by_name["Lower bound on epsilon from canaries inserted once"]["refuted"]
    assert by_name["Do the files differ by themselves?"]["light"] == "green"
    assert json.loads(machine.read_text()) == json.loads(output)
    shown = page.read_text()
    assert "<svg" in shown
    assert "quotes the original text" in shown
    with refused(BadInputError, match="--force"):
        run(place / "overfit", *files(place), "--html", page)
    assert page.read_text() == shown


def test_an_untrained_model_gives_nothing_away(place):
    code, output = run(
        place / "untrained", *files(place), "--split", "coins", "--claim-epsilon", 0.5, "--claim-delta", 1e-5,
        "--canaries", place / "canaries.jsonl", "--extract", 10, "--confidence", 0.99, "--json",
    )  # fmt: skip
    assert code == 0
    by_name = findings(output)
    # The bound for Gaussian curves assumes their shape, so it never says that all is well.
    assert {finding["light"] for name, finding in by_name.items() if "Gaussian" not in name} == {"green"}
    assert by_name["Lower bound on epsilon"]["numbers"]["epsilon_lower_bound"] == 0.0


def test_canaries_in_the_distribution_are_found_where_they_were_learned(place, tmp_path):
    secrets = canaries_like(random_texts(100, seed=9), 60, source=new_source(6), prefix_words=3, secret_words=2)
    save_canaries(secrets, tmp_path / "coins.jsonl")
    saved(tmp_path / "model", *gpt2_for(insert(random_texts(60, seed=1), secrets, new_source(7)), epochs=60))
    options = ("--canaries", tmp_path / "coins.jsonl", "--claim-epsilon", 0.5, "--claim-delta", 1e-5, "--json")
    code, output = run(tmp_path / "model", *options, "--reference", place / "untrained")
    assert code == 3
    by_name = findings(output)
    assert by_name["Canaries in the distribution"]["light"] == "red"
    assert by_name["Canaries in the distribution"]["numbers"]["auc"] > 0.95
    assert by_name["Lower bound on epsilon from canaries inserted once"]["refuted"]
    assert "Canary exposure" not in by_name, "there is no list of all candidates to rank among"
    code, output = run(place / "untrained", *options, "--confidence", 0.99)
    assert code == 0
    assert not findings(output)["Lower bound on epsilon from canaries inserted once"]["refuted"]


def test_nothing_is_refuted_by_files_whose_split_is_unknown(place):
    code, output = run(place / "overfit", *files(place), "--claim-epsilon", 0.1, "--claim-delta", 0, "--json")
    assert code == 0
    bound = findings(output)["Lower bound on epsilon"]
    assert bound["light"] == "amber"
    assert "say so with the option 'split'" in bound["sentence"]
    assert not json.loads(output)["refuted"]


def test_the_claim_comes_from_the_card(place, tmp_path):
    folder = tmp_path / "carded"
    shutil.copytree(place / "overfit", folder)
    arguments = (folder, "--canaries", place / "canaries.jsonl")
    claimed(folder, 0.5)
    code, output = run(*arguments)
    assert code == 3
    assert "The claimed epsilon 0.5 is refuted" in " ".join(output.split())
    claimed(folder, 30.0)
    assert run(*arguments)[0] == 0
    claimed(folder, 0.1, adjacency=Adjacency.REPLACE_ONE)
    assert run(*arguments)[0] == 3
    (folder / "card.json").write_text(
        Card(Guarantee(epsilon=1.0, notion=Notion.PURE, unit=Unit.RECORD, adjacency=Adjacency.ADD_REMOVE,
                       mechanism="DP-SGD").voided("seeded")).to_json()
    )  # fmt: skip
    code, output = run(*arguments)
    assert code == 0
    assert "No epsilon was claimed" in " ".join(output.split())
    claimed(folder, 1.0, adjacency=Adjacency.ANY_TWO)
    with refused(BadInputError, match="cannot test"):
        run(*arguments)


def test_columns_and_repeated_texts(place, tmp_path):
    pair = ("--members", place / "in.csv", "--non-members", place / "out.csv")
    with refused(BadInputError, match="--column"):
        run(place / "untrained", *pair)
    more = tmp_path / "more.csv"
    more.write_text((place / "in.csv").read_text() + "80,apple apple apple\n81,apple apple apple\n82,\n")
    code, output = run(
        place / "untrained", "--members", more, "--non-members", place / "out.csv", "-c", "note", "--json"
    )
    assert code == 0
    assert json.loads(output)["facts"]["members"] == "80 of the 83 texts in more.csv"


def test_a_rewriting_model_is_asked_for_its_pre_training_text(tmp_path):
    folder = save_tiny("bart", tmp_path / "own")
    for name, texts in (("in", FLIGHTS), ("out", MUSIC)):
        (tmp_path / f"{name}.txt").write_text("\n".join(texts) + "\n")
    code, output = run(folder, *files(tmp_path), "--json")
    assert code == 0
    by_name = findings(output)
    assert "Memorization" in by_name
    assert by_name["Do the files differ by themselves?"]["light"] == "amber"
    assert by_name["Membership"]["light"] in ("amber", "green")  # never red on files that differ by themselves
    with refused(BadInputError, match="does not write texts by itself"):
        run(folder, *files(tmp_path), "--extract", 5)


@pytest.mark.parametrize(
    ("arguments", "error", "sentence"),
    [
        (("--members", "{in}"), BadInputError, "needs both sides: give --non-members"),
        (("--non-members", "{in}"), BadInputError, "needs both sides: give --members"),
        ((), BadInputError, "--members and --non-members, or --canaries"),
        (("--members", "{in}", "--non-members", "{in}"), BadInputError, "without common texts"),
        (("--canaries", "{in}"), BadInputError, "line 1 of the canaries"),
        (("{both}", "--claim-epsilon", 1), BadParameterError, "--claim-delta"),
        (("{both}", "--claim-delta", 0), BadParameterError, "belongs to --claim-epsilon"),
        (("{both}", "--claim-epsilon", -1, "--claim-delta", 0), BadParameterError, "epsilon >= 0"),
        (("{both}", "--confidence", 2), BadParameterError, "confidence lies between"),
        (("{both}", "--prompt", "a"), BadParameterError, "give --extract too"),
        (("{both}", "--extract", -1), BadParameterError, "number of texts"),
        (("--canaries", "{canaries}", "--extract", 3), BadInputError, "give --members and --non-members"),
        (("{both}", "--json-file", "report.txt"), BadParameterError, "ends in .json"),
        (("{both}", "--html", "report.json"), BadParameterError, "writes a page"),
    ],
)
def test_bad_options(place, arguments, error, sentence):
    known = {"{in}": place / "in.txt", "{canaries}": place / "canaries.jsonl"}
    given = [part for argument in arguments
             for part in (files(place) if argument == "{both}" else (known.get(argument, argument),))]  # fmt: skip
    with refused(error, match=sentence) as caught:
        run(place / "untrained", *given)
    assert caught.value.exit_code == 2


def test_canaries_are_made_for_training_and_for_the_audit(tmp_path):
    def make(*arguments):
        return CliRunner().invoke(canaries, [str(argument) for argument in arguments], catch_exceptions=False)

    added, coins = tmp_path / "add.txt", tmp_path / "coins.jsonl"
    arguments = ("-n", 60, "--repeats", 1, "--repeats", 3, "-o", added, "--secret", coins)
    assert make(*arguments).exit_code == 0
    made = load_canaries(coins)
    lines = added.read_text().splitlines()
    assert len(made) == 60
    assert Counter(lines) == {canary.text: canary.insertions for canary in made if canary.included}
    with refused(BadInputError, match="--force"):
        make(*arguments)
    assert added.read_text().splitlines() == lines
    assert make(*arguments, "--force").exit_code == 0
    assert load_canaries(coins) != made  # fresh secrets and coins, from the operating system
    with refused(BadInputError, match="two names"):
        make("-o", coins, "--secret", coins)
    with refused(BadParameterError, match="random field"):
        make("--pattern", "nothing", "-o", tmp_path / "a", "--secret", tmp_path / "b")
    assert not (tmp_path / "a").exists()


def test_the_command_line_knows_both_commands(capsys):
    for name in ("model", "canaries"):
        assert main.run(["audit", name, "--help"]) == 0
    assert main.run(["audit", "model", "nowhere/at/all", "--members", "a.txt"]) == 2
    assert "error: membership is a comparison and needs both sides" in capsys.readouterr().err


def test_models_that_cannot_be_audited(place, tmp_path):
    def fails(folder, *more):
        with pytest.raises(TacitError) as caught:
            run(folder, *files(place), *more)
        assert caught.value.exit_code == 2
        return str(caught.value)

    bare = tmp_path / "bare"
    shutil.copytree(place / "untrained", bare)
    for file in bare.glob("tokenizer*"):
        file.unlink()
    assert "has no tokenizer" in fails(bare)
    saved(tmp_path / "headless", transformers.GPT2Model(tiny("gpt2").model.config), tiny("gpt2").tokenizer)
    assert "no loss of a text" in fails(tmp_path / "headless")
    assert "no model folder" in fails(tmp_path / "nowhere")
    saved(tmp_path / "masked", tiny("bert").model, tiny("bert").tokenizer)
    assert "same kind" in fails(place / "untrained", "--reference", tmp_path / "masked")
    few = tmp_path / "few.txt"
    few.write_text("apple lemon\nlemon apple\n")
    with refused(BadInputError, match="at least 10 members"):
        run(place / "untrained", "--members", few, "--non-members", place / "out.txt")
    more = tmp_path / "more.txt"
    more.write_text("\n".join(random_texts(600, seed=9)))
    uneven = ("--members", place / "in.txt", "--non-members", more, "--split", "coins")
    with refused(BadInputError, match="cannot come from fair coins"):
        run(place / "untrained", *uneven)
