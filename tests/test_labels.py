"""Randomized labels: the law, the guarantee of a record, and the way through files, resuming and the ledger."""

from __future__ import annotations

import csv
import json
import math
from dataclasses import replace
from pathlib import Path

import pytest
from scipy import stats

from tacit import randomize_labels
from tacit.account.ledger import Subject, open_ledger
from tacit.card import Card
from tacit.cli.main import run
from tacit.engines.job import RewriteJob
from tacit.engines.local import rewrite_file
from tacit.engines.users import UserRule
from tacit.errors import BadInputError, BadParameterError, NoGuaranteeError
from tacit.guarantee import Adjacency, Guarantee, Metric, Notion, Unit
from tacit.jobs.audit.text import mechanism_on
from tacit.labels import LabelRule
from tacit.noise.source import Source
from tests.engines.fakes import NoiseShown
from tests.engines.test_users import Counted

FALSE_ALARM = 1e-6
RULE = LabelRule(("a", "b", "c"), 1.0, "stars")


# The law and the promise ----------------------------------------------------------------------------------------


def test_labels_are_drawn_by_randomized_response():
    answers = RULE.draw(["b"] * 30_000, Source.from_test_seed(2))
    counts = [answers.count(category) for category in "abc"]
    truth = math.e / (math.e + 2)
    expected = [30_000 * share for share in ((1 - truth) / 2, truth, (1 - truth) / 2)]
    assert stats.chisquare(counts, expected).pvalue > FALSE_ALARM


def test_a_release_of_labels_carries_its_guarantee():
    release = randomize_labels(["a", "b"] * 50, ["a", "b"], 1.5)
    assert len(release) == 100
    assert set(release.labels) <= {"a", "b"}
    assert (release.guarantee.notion, release.guarantee.epsilon) == (Notion.PURE, 1.5)
    assert release.guarantee.unit is Unit.RECORD
    assert any("public knowledge" in item for item in release.guarantee.assumptions)
    assert not randomize_labels(["a"], ["a", "b"], 1.0, seed=1).guarantee.is_private


def test_a_label_outside_the_list_is_named_by_its_row_and_not_shown():
    with pytest.raises(BadInputError, match="row 2") as refused:
        randomize_labels(["a", "rare disease"], ["a", "b"], 1.0)
    assert "rare" not in str(refused.value)
    for wrong in (["a", "a"], ["a"], []):
        with pytest.raises(BadParameterError, match="two different"):
            randomize_labels(["a"], wrong, 1.0)
    with pytest.raises(BadParameterError, match="positive"):
        randomize_labels(["a"], ["a", "b"], 0.0)


def test_text_and_label_add_up_for_a_record():
    document = Counted(epsilon=2.0).guarantee()
    record = RULE.of_record(document, longest_row=1)
    assert (record.unit, record.notion, record.epsilon) == (Unit.RECORD, Notion.PURE, 3.0)
    assert RULE.of_record(document, longest_row=1, width=2).epsilon == 5.0
    assert UserRule("who", "divide", 4).promise(record).epsilon == 12.0
    word = Guarantee(
        notion=Notion.METRIC, epsilon=2.0, unit=Unit.TOKEN, adjacency=Adjacency.ANY_TWO, mechanism="word",
        metric=Metric("Euclidean distance", diameter=3.0),
    )  # fmt: skip
    row = RULE.of_record(word, longest_row=10)
    assert (row.unit, row.notion, row.offset) == (Unit.RECORD, Notion.METRIC, 1.0)
    assert row.exponent() == 10 * 2.0 * 3.0 + 1.0, "the label counts once, however many words there are"
    void = RULE.of_record(word.voided("a test seed"), longest_row=3)
    assert not void.is_private


# Files ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "in.csv"
    rows = [("text", "stars", "who")] + [(f"text number {i} is here", "abc"[i % 3], f"u{i // 2}") for i in range(40)]
    with path.open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    return path


def job(path, **more):
    known = {"mechanism": Counted(epsilon=2.0), "columns": ("text",), "labels": RULE}
    return RewriteJob(input=str(path), output=str(path.with_name("out.csv")), **{**known, **more})


def labels_of(path):
    with path.open(newline="") as file:
        return [row["stars"] for row in csv.DictReader(file)]


def test_a_file_has_randomized_labels_beside_its_texts(table):
    facts = rewrite_file(job(table)).facts
    drawn, true = labels_of(table.with_name("out.csv")), labels_of(table)
    assert drawn != true
    assert set(drawn) <= set("abc")
    assert facts.randomized_columns == ("stars",)
    assert facts.kept_columns == ()
    assert job(table).promise(facts).epsilon == 3.0


def test_workers_and_resuming_draw_the_same_labels(table, monkeypatch):
    whole = job(table, mechanism=NoiseShown(), seed=3)
    rewrite_file(whole)
    expected = table.with_name("out.csv").read_text()
    rewrite_file(replace(whole, workers=2, force=True))
    assert table.with_name("out.csv").read_text() == expected

    def stop(texts, released):
        if "number 20" in texts[0]:
            raise KeyboardInterrupt

    with pytest.raises(Exception, match="stopped"):
        rewrite_file(job(table, seed=3, force=True), on_block=stop)
    with pytest.raises(BadInputError, match=r"label epsilon was 1\.0 and is now 2\.0"):
        rewrite_file(job(table, seed=3, resume=True, labels=replace(RULE, epsilon=2.0)))
    rewrite_file(job(table, seed=3, resume=True))
    resumed = table.with_name("out.csv").read_text()
    rewrite_file(job(table, seed=3, force=True))
    assert table.with_name("out.csv").read_text() == resumed


def test_a_label_outside_the_list_stops_with_the_row(table):
    table.write_text(table.read_text().replace("text number 7 is here,b", "text number 7 is here,secret"))
    with pytest.raises(BadInputError, match="row 8 has a label in 'stars'") as refused:
        rewrite_file(job(table))
    assert "secret" not in str(refused.value)


def test_columns_have_one_fate(table):
    with pytest.raises(BadInputError, match="is randomized: do not name it"):
        rewrite_file(job(table, keep=("stars",)))
    with pytest.raises(BadInputError, match="did you mean"):
        rewrite_file(job(table, labels=replace(RULE, column="star")))
    with pytest.raises(BadInputError, match="randomize does not go with"):
        rewrite_file(job(table, users=UserRule("who", "concatenate")))
    with pytest.raises(NoGuaranteeError, match="whole documents"):
        rewrite_file(job(table, mechanism=NoiseShown(), users=UserRule("who")))


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
def test_labels_that_are_numbers_stay_numbers(tmp_path, suffix):
    path = tmp_path / f"in{suffix}"
    rows = [{"text": f"text {i}", "stars": i % 3} for i in range(30)]
    if suffix == ".jsonl":
        path.write_text("\n".join(json.dumps(row) for row in rows))
    else:
        arrow = pytest.importorskip("pyarrow")
        pytest.importorskip("pyarrow.parquet").write_table(arrow.Table.from_pylist(rows), path)
    out = tmp_path / f"out{suffix}"
    rewrite_file(replace(job(path), output=str(out), labels=LabelRule(("0", "1", "2"), 1.0, "stars")))
    if suffix == ".jsonl":
        stars = [json.loads(line)["stars"] for line in out.read_text().splitlines()]
    else:
        stars = pytest.importorskip("pyarrow.parquet").read_table(out)["stars"].to_pylist()
    assert set(stars) == {0, 1, 2}
    assert stars != [row["stars"] for row in rows]


def test_the_ledger_is_charged_for_text_and_label(table):
    from tacit.engines.charging import Charging

    with open_ledger(str(table.with_name("ledger.db"))) as ledger:
        rewrite_file(job(table, charging=Charging(ledger, "mail"), columns=("text",)))
        spent = ledger.spent(Subject("document", "text number 3 is here"))
        assert spent.epsilon == pytest.approx(3.0)
        assert ledger.spent(Subject("dataset", "mail")).epsilon == pytest.approx(3.0)


# The command ----------------------------------------------------------------------------------------------------


def rewrite(table: Path, *more: object) -> int:
    arguments = ["rewrite", table, "--column", "text", "--mechanism", "santext", "--epsilon", 2, *more]
    return run([str(item) for item in (*arguments, "-o", table.with_name("out.csv"))])


ALL = ("--randomize", "stars", "--label-epsilon", 1, "--labels", "a,b,c")


def test_the_card_of_the_command_adds_both_up(table, capsys):
    assert rewrite(table, *ALL, "-q") == 0
    card = json.loads(table.with_name("out.csv.card.json").read_text())
    assert card["guarantee"]["unit"] == "record"
    assert card["guarantee"]["offset"] == 1.0
    assert card["release"]["randomized_columns"] == ["stars"]
    assert "--randomize stars --label-epsilon 1 --labels a,b,c" in card["release"]["command"]
    assert not any("copied" in item for item in card["guarantee"]["not_covered"])
    shown = table.with_name("out.csv.card.md").read_text()
    assert "epsilon of 'stars'" in shown
    assert "2 per word" in shown
    assert "which texts are empty" in shown
    stated = mechanism_on(Card.from_json(json.dumps(card)))
    assert stated is not None
    assert (stated.name, stated.options) == ("santext", {"epsilon": 2.0}), "an audit finds the mechanism again"
    place = table.with_name("ledger.db")
    assert run(["ledger", "add", str(place), str(table.with_name("out.csv.card.json")), "--dataset", "mail"]) == 0
    with open_ledger(str(place)) as ledger:
        spent = ledger.spent(Subject("dataset", "mail")).epsilon
    assert spent == pytest.approx(Guarantee.from_dict(card["guarantee"]).exponent()), "a record is a whole row"
    capsys.readouterr()
    assert rewrite(table, *ALL, "--dry-run") == 0
    assert "Columns randomized: stars" in capsys.readouterr().out


@pytest.mark.parametrize("given", [ALL[:2], ALL[:4], ALL[2:], ("--label-epsilon", 1)])
def test_a_column_of_labels_needs_their_public_list(table, given, capsys):
    assert rewrite(table, *given) == 2
    assert "known publicly" in capsys.readouterr().err
