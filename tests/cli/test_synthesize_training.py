"""`tacit synthesize`: from private rows to a file of synthetic ones with its card, and clear sentences on the way."""

from __future__ import annotations

import csv
import json

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from tacit.auditing.models.canaries import make_canaries  # noqa: E402
from tacit.auditing.models.canary_files import save_canaries  # noqa: E402
from tacit.auditing.models.synthetic import canaries_in, compare_with_private, copies_section  # noqa: E402
from tacit.cli.main import run  # noqa: E402
from tacit.noise.source import Source  # noqa: E402
from tacit.report import Light  # noqa: E402
from tests.training.test_synthesis import small_model, small_rows, small_tokenizer  # noqa: E402


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("synthesize")
    words = small_tokenizer()
    small_model(words).save_pretrained(place / "tiny")
    words.save_pretrained(place / "tiny")
    with (place / "data.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, ["text", "intent"])
        writer.writeheader()
        writer.writerows(small_rows(300))
    return place


def synthesize(folder, *more):
    return run([str(argument) for argument in ("synthesize", "--by", "training", *more)])


def options(folder, *more):
    shared = ("--label-column", "intent", "--model", folder / "tiny", "--strategy", "full", "--learning-rate", 0.02)
    return (folder / "data.csv", *shared, "--length", 16, "--batch", 100, "--physical", 200, "--keep-duplicates", *more)


def read(path):
    with path.open() as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def made(folder):
    canaries = make_canaries(4, source=Source.from_test_seed(0), pattern="play {digits:3}")
    save_canaries(canaries, folder / "canaries.jsonl")
    arguments = ("--epsilon", 8, "--epochs", 6, "-n", 40, "-o", folder / "out.csv", "--keep-model", folder / "model")
    check = ("--check", folder / "report.json", "--canaries", folder / "canaries.jsonl")
    assert synthesize(folder, *options(folder, *arguments, *check, "-q")) == 0
    return folder


def test_rows_and_their_card_come_out(made):
    rows = read(made / "out.csv")
    assert len(rows) == 40
    assert set(rows[0]) == {"intent", "text"}
    assert {row["intent"] for row in rows} == {"music", "travel"}
    card = json.loads((made / "out.csv.card.json").read_text())
    model = json.loads((made / "model" / "card.json").read_text())
    assert card["guarantee"]["epsilon"] == model["guarantee"]["epsilon"] <= 8
    assert card["guarantee"]["epsilon"] > 7.5
    assert card["release"]["rows"] == 40
    assert "one record at a time" in (made / "out.csv.card.md").read_text()
    assert not (made / "out.csv.partial").exists()


def test_the_check_is_a_private_report_beside_the_release(made):
    report = json.loads((made / "report.json").read_text())
    assert report["private"]
    assert [section["title"] for section in report["sections"]] == [
        "Copies of private rows", "Canaries", "Canaries that were written",
    ]  # fmt: skip


def test_a_kept_model_writes_more_without_data_and_without_budget(made, capsys):
    arguments = ("--from-model", made / "model", "-n", 7, "-o", made / "more.jsonl", "--keep-duplicates")
    assert synthesize(made, *arguments, "--sample-seed", 5) == 0
    assert "multiplies the odds" in capsys.readouterr().out
    first = (made / "more.jsonl").read_text()
    assert len(first.splitlines()) == 7
    assert synthesize(made, *arguments, "--sample-seed", 5, "-q") == 2, "nothing is overwritten"
    assert synthesize(made, *arguments, "--sample-seed", 5, "-q", "--force") == 0
    assert (made / "more.jsonl").read_text() == first, "the same public seed writes the same texts"
    card = json.loads((made / "more.jsonl.card.json").read_text())
    kept = json.loads((made / "out.csv.card.json").read_text())
    assert card["guarantee"]["epsilon"] == kept["guarantee"]["epsilon"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "give the private rows"),
        (("data.csv",), "say how much privacy"),
        (("--from-model", "model", "--epsilon", 3), "has its budget already"),
        (("--from-model", "nowhere"), "not made by 'tacit synthesize'"),
        (("--from-model", "model", "--check", "r.json"), "give DATA as well"),
        (("--from-model", "model", "--canaries", "c"), "belong to a check"),
        (("data.csv", "--epsilon", 3, "--label-column", "topic"), "topic"),
        (("data.csv", "--epsilon", 3, "--label-column", "text"), "cannot be the text and a label"),
        (("data.csv", "--epsilon", 3, "--batch", 5000), "fewer than a batch"),
        (("data.csv", "--epsilon", 3, "-l", "intent", "--labels", "intent=music"), "name all that can occur"),
        (("data.csv", "--epsilon", 3, "-l", "intent", "--labels", "intent"), "--labels names"),
        (("data.csv", "--epsilon", 3, "--delta", "small", "--batch", 10), "number or 'auto'"),
        (("data.csv", "--epsilon", 3, "--count-share", 2), "--count-share must be below 1"),
        (("data.csv", "--epsilon", 3, "-o", "out.png"), "neither reads nor writes"),
    ],
)
def test_what_cannot_be_done_is_said(made, arguments, message, capsys, monkeypatch):
    monkeypatch.chdir(made)
    more = ("--model", "tiny", "--strategy", "full", *(() if "-o" in arguments else ("-o", "never.csv")))
    assert synthesize(made, *arguments, *more) == 2
    assert message in capsys.readouterr().err
    assert not (made / "never.csv").exists()


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (("--epsilon", 3), "had another epsilon"),
        (("--epsilon", 8, "--balanced"), "had another epsilon or way to count"),
        (("--epsilon", 8, "--epochs", 9), "had another plan"),
        (("--epsilon", 8, "--length", 20), "had another task"),
    ],
)
def test_a_finished_model_does_not_answer_another_command(made, changed, message, capsys):
    again = (*options(made), "--epochs", 6, "--keep-model", made / "model", "--resume", "-n", 4, "-q")
    assert synthesize(made, *again, *changed, "-o", made / "again.csv") == 2
    assert message in capsys.readouterr().err
    assert not (made / "again.csv").exists()


def test_a_finished_model_writes_on_for_the_same_command(made):
    again = (*options(made), "--epochs", 6, "--keep-model", made / "model", "--resume", "-n", 4, "-q")
    assert synthesize(made, *again, "--epsilon", 8, "-o", made / "again.csv") == 0


# The audit behind the check ------------------------------------------------------------------------------------------


def sentences(count, seed):
    import numpy as np

    generator = np.random.default_rng(seed)
    return [" ".join(f"w{i}" for i in generator.integers(0, 300, 9)) for _ in range(count)]


def test_copies_are_found_and_new_text_is_not_called_a_copy():
    private = sentences(200, 1)
    copied = compare_with_private([*private[:100], *sentences(20, 2)], private)
    assert copied.everywhere == 100
    assert copied.near > 30
    assert copied.p_value < 1e-6
    assert copies_section(copied).findings[0].light is Light.RED
    fresh = compare_with_private(sentences(100, 3), private)
    assert (fresh.near, fresh.everywhere) == (0, 0)
    assert copies_section(fresh).findings[0].light is Light.GREEN


def test_rows_that_repeat_each_other_are_the_measure_of_chance():
    """Real rows that are all alike: a model that writes them has memorized nobody."""
    private = ["play some jazz music now please"] * 50 + sentences(50, 4)
    comparison = compare_with_private(["play some jazz music now please"] * 20 + sentences(20, 5), private)
    assert comparison.near == 20
    assert comparison.chance_near > 10
    assert copies_section(comparison).findings[0].light is Light.GREEN


def test_canaries_in_the_texts_are_counted():
    canaries = make_canaries(8, source=Source.from_test_seed(2), pattern="the code is {digits:4}")
    included = next(c for c in canaries if c.included)
    canaries_seen = canaries_in(["hello", f"well, {included.text} indeed"], canaries)
    assert (canaries_seen.inserted_found, canaries_seen.left_out_found) == (1, 0)
    assert canaries_seen.inserted + canaries_seen.left_out == 8
