"""`tacit evaluate`, end to end on small files."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from tacit.card import Card, ReleaseFacts
from tacit.cli.evaluate import command as app
from tacit.cli.main import run as tacit
from tacit.cli.naming import TERMINAL
from tacit.errors import BadInputError, BadParameterError, TacitError
from tacit.guarantee import Adjacency, Guarantee, Notion, Unit
from tacit.jobs.evaluate import evaluate

WORDS = {"food": ["soup", "bread", "rice", "cake"], "weather": ["rain", "snow", "wind", "sun"]}
FAST = ("--learner", "tfidf", "--metrics", "kept-words,length")


def rows(count: int = 60) -> list[dict[str, str]]:
    made = []
    for i in range(count):
        label = "food" if i % 2 else "weather"
        words = WORDS[label]
        made.append({"id": str(i), "text": f"today the {words[i % 4]} and the {words[(i + 1) % 4]}", "label": label})
    return made


def write(path: Path, made: list[dict[str, str]]) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(made[0]))
        writer.writeheader()
        writer.writerows(made)
    return path


def card(path: Path, epsilon: float = 5.0, unit: Unit = Unit.DOCUMENT) -> None:
    promised = Guarantee(
        notion=Notion.PURE, epsilon=epsilon, unit=unit, adjacency=Adjacency.ANY_TWO, mechanism="made-up"
    )
    facts = ReleaseFacts(rows=60, documents=60, units=60, longest_document=7, longest_row=7)
    Path(f"{path}.card.json").write_text(Card(promised, facts).to_json(), encoding="utf-8")


def run(*arguments: object) -> str:
    called = CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)
    assert called.exit_code == 0, called.output
    return called.output


def report(*arguments: object) -> dict:
    return json.loads(run(*arguments, "--json", *FAST))


def findings(result: dict) -> dict[str, dict]:
    return {finding["name"]: finding for section in result["sections"] for finding in section["findings"]}


@pytest.fixture
def original(tmp_path: Path) -> Path:
    return write(tmp_path / "original.csv", rows())


@pytest.fixture
def private(tmp_path: Path) -> Path:
    """Other words of the same kind, and no label column."""
    changed = [
        {"id": row["id"], "text": row["text"].replace("today", "often").replace("soup", "cake")} for row in rows()
    ]
    return write(tmp_path / "private.csv", changed)


@pytest.fixture
def useless(tmp_path: Path) -> Path:
    return write(tmp_path / "useless.csv", [row | {"text": "the same for all"} for row in rows()])


def test_similarity_alone(original, private):
    answer = report(original, private)
    (section,) = answer["sections"]
    table = section["tables"][0]
    kept = dict(zip(table["columns"], table["rows"][0], strict=True))
    assert kept["measure"] == "words kept in place"
    assert kept["floor"] < kept["value"] < kept["ceiling"] == 1.0
    assert answer["facts"]["promise of private.csv"] == "no privacy card beside it"


def test_labels_come_from_the_original_file_where_the_release_has_none(original, private):
    by_name = findings(report(original, private, "--label-column", "label"))["Usefulness of private.csv"]
    assert by_name["light"] == "green"
    assert by_name["numbers"]["kept"] > 0.9


def test_a_release_that_says_nothing_is_red(original, useless):
    by_name = findings(report(original, useless, "--label-column", "label"))
    assert by_name["Usefulness of useless.csv"]["light"] == "red"
    assert by_name["One output for all, useless.csv"]["light"] == "red"
    assert "Majority voting, trained on useless.csv" in by_name


def test_several_files_give_a_trade_off(original, private, useless, tmp_path):
    card(private, 8.0)
    card(useless, 0.1)
    page, data = tmp_path / "report.html", tmp_path / "report.json"
    shown = run(original, private, useless, "-l", "label", "--html", page, "--json-file", data, *FAST)
    assert "Usefulness of private.csv" in shown
    section = json.loads(data.read_text(encoding="utf-8"))["sections"][-1]
    assert section["title"] == "Privacy against utility"
    promises = [row[1] for row in section["tables"][0]["rows"]]
    assert promises == ["pure, epsilon per document = 8", "pure, epsilon per document = 0.1"]
    assert [row[-1] for row in section["tables"][0]["rows"]] == [True, True]
    html = page.read_text(encoding="utf-8")
    assert "<svg" in html
    assert "It is as private as the data" in html
    without = report(original, private, useless)["sections"][-1]  # no task: similarity on the axis
    assert without["title"] == "Privacy against utility"


def test_promises_about_tokens_and_documents_are_drawn_apart_or_converted(original, private, useless):
    card(private, 8.0, Unit.TOKEN)
    card(useless, 0.1)
    figures = report(original, private, useless, "-l", "label")["sections"][-1]["figures"]
    assert len(figures) == 3
    assert "converted: summed over texts of 7 tokens" in figures[-1]["description"]


def test_a_test_file_and_its_rewritten_twin(original, private, tmp_path):
    test = write(tmp_path / "test.csv", rows(20))
    twin = write(tmp_path / "twin.csv", [{"text": row["text"].upper()} for row in rows(20)])
    answer = report(original, private, "-l", "label", "--test", test, "--private-test", twin)
    scores = answer["sections"][-1]["tables"][0]["rows"]
    assert [row[1] for row in scores[2:]] == ["original test texts", "original test texts", "rewritten test texts"]


def test_pairs_similarity_and_tags(tmp_path):
    base = rows()
    pairs = [{"a": row["text"], "b": base[(i * i) % 60]["text"]} for i, row in enumerate(base)]
    for task, labels in (
        ("pairs", [str(row["a"][10:13] == row["b"][10:13]) for row in pairs]),
        ("similarity", [str(len(set(row["a"].split()) & set(row["b"].split()))) for row in pairs]),
    ):
        made = [row | {"y": label} for row, label in zip(pairs, labels, strict=True)]
        paths = [write(tmp_path / f"{task}{i}.csv", made) for i in range(2)]
        columns = ("--task", task, "-l", "y", "-c", "a", "-c", "b")
        by_name = findings(report(*paths, *columns))[f"Usefulness of {task}1.csv"]
        assert by_name["numbers"]["kept"] == pytest.approx(1.0)
    tagged = [{"text": row["text"], "tags": "O O B-X O O B-X"} for row in base]
    released = [row | {"text": row["text"].replace("today", "often")} for row in tagged]
    released[7]["text"] = "too short"
    paths = [write(tmp_path / "tags.csv", tagged), write(tmp_path / "tags-private.csv", released)]
    by_name = findings(report(*paths, "--task", "tagging", "-l", "tags"))
    assert by_name["Tags of tags-private.csv"]["sentence"].startswith("1 of 60 rows")
    assert "row 8" in by_name["Tags of tags-private.csv"]["sentence"]
    assert by_name["Usefulness of tags-private.csv"]["light"] == "green"
    for row in released:
        row["text"] = "too short"
    with pytest.raises(BadInputError, match=r"row 1: 2 tokens, 6 tags"):
        run(paths[0], write(paths[1], released), "--task", "tagging", "-l", "tags", *FAST)


def test_changed_labels_are_counted(original, tmp_path):
    changed = rows()
    changed[3]["label"] = "weather"
    released = write(tmp_path / "private.csv", changed)
    assert findings(report(original, released, "-l", "label"))["Labels of private.csv"]["numbers"]["changed"] == 1


def test_rows_that_do_not_align_are_named(original, tmp_path):
    short = write(tmp_path / "short.csv", rows()[:-1])
    with pytest.raises(BadInputError, match=r"row 60 of original\.csv has no partner"):
        run(original, short, *FAST)
    swapped = rows()
    swapped[4], swapped[5] = swapped[5], swapped[4]
    with pytest.raises(BadInputError, match="row 5 does not align: column 'id' differs"):
        run(original, write(tmp_path / "swapped.csv", swapped), *FAST)


def test_labels_that_do_not_work_are_refused(original, private, tmp_path):
    def labeled(name: str, change) -> Path:
        return write(tmp_path / name, [row | {"label": change(row)} for row in rows()])

    with pytest.raises(BadInputError, match="the training rows have one label only"):
        run(labeled("one.csv", lambda row: "x"), private, "-l", "label", *FAST)
    with pytest.raises(BadInputError, match=r"row 1 of gap\.csv has no label"):
        run(labeled("gap.csv", lambda row: row["label"] if row["id"] != "0" else ""), private, "-l", "label", *FAST)
    with pytest.raises(BadInputError, match="no column 'stars'"):
        run(original, private, "-l", "stars", *FAST)
    other = labeled("test.csv", lambda row: row["label"] if row["id"] != "0" else "sport")
    with pytest.raises(BadInputError, match="1 of the 3 labels of the test rows is not in the training rows"):
        run(original, private, "-l", "label", "--test", other, *FAST)
    both = ("-c", "text", "-c", "id", "--task", "similarity")
    with pytest.raises(BadInputError, match="not a number") as refused:
        run(original, private, "-l", "label", *both, *FAST)
    assert rows()[0]["label"] not in str(refused.value)  # it may be a text, if the wrong column was named


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--task", "translation"), "--task must be one of .*, not 'translation'"),
        (("--learner", "forest"), "--learner must be one of .*, not 'forest'"),
        (("--metrics", "rouge"), "no metric 'rouge'"),
        (("--seeds", "0"), "--seeds must be at least 1"),
        (("--test", "x.csv"), "--label-column"),
        (("-l", "label", "--private-test", "x.csv"), "needs --test"),
        (("--json-file", "x.txt"), "ends in .json"),
    ],
)
def test_options_that_make_no_sense(original, private, options, message):
    with pytest.raises(BadParameterError) as raised:
        run(original, private, *options)
    assert re.search(message, raised.value.rendered(TERMINAL))


def test_python_takes_files_and_data_in_memory(original, private):
    pandas = pytest.importorskip("pandas")
    options = {"metrics": "kept-words", "label_column": "label", "learner": "tfidf"}
    from_files = evaluate(original, private, columns=["text"], **options)
    frames = pandas.read_csv(original), pandas.read_csv(private)
    in_memory = evaluate(*frames, columns=["text"], **options)
    scores = [[finding.numbers for finding in report.findings] for report in (from_files, in_memory)]
    assert scores[0] == scores[1]
    assert in_memory.facts["original"] == "the data in memory"


def test_nothing_is_overwritten_without_force(original, private, tmp_path):
    page = tmp_path / "report.html"
    page.write_text("mine", encoding="utf-8")
    with pytest.raises(BadInputError, match="exists: give another name"):
        run(original, private, "--html", page, *FAST)
    assert page.read_text(encoding="utf-8") == "mine"
    run(original, private, "--html", page, "--force", *FAST)
    assert "<!doctype html>" in page.read_text(encoding="utf-8")


def test_a_broken_card_and_a_missing_file_exit_with_2(original, private, tmp_path, capfd):
    Path(f"{private}.card.json").write_text("{}", encoding="utf-8")
    assert tacit(["evaluate", str(original), str(private), *FAST]) == 2
    assert "card" in capfd.readouterr().err
    assert tacit(["evaluate", str(original), str(tmp_path / "none.csv"), *FAST]) == 2
    with pytest.raises(TacitError, match="given twice"):
        run(original, original, original, *FAST)


def test_scores_by_group_stand_beside_those_of_the_originals(tmp_path: Path) -> None:
    """The release has turned the labels' words around for one site: that group pays."""
    original = [{**row, "site": "east" if i % 4 < 2 else "west"} for i, row in enumerate(rows(600))]
    other = {"food": "weather", "weather": "food"}

    def released(row: dict[str, str]) -> dict[str, str]:
        if row["site"] == "east":
            return row
        words = row["text"].split()
        kind = WORDS[other[row["label"]]]
        return {**row, "text": f"today the {kind[0]} and the {kind[1]} {words[2]}"}

    for name, made in (("o.csv", original), ("p.csv", [released(row) for row in original])):
        write(tmp_path / name, made)
    arguments = (tmp_path / "o.csv", tmp_path / "p.csv", "-c", "text", "--label-column", "label")
    result = report(*arguments, "--group-column", "site", "--by-class")
    sections = {section["title"]: section for section in result["sections"]}
    (table, _) = sections["Scores by site"]["tables"]
    assert {row[0] for row in table["rows"]} - {"east", "west"} == set(), "the groups of the test rows"
    assert "p.csv: score" in table["columns"]
    assert "originals: score" in table["columns"]
    assert any(finding["name"].startswith("Who pays") for finding in sections["Scores by class"]["findings"])
    with pytest.raises(BadInputError, match="no column"):
        evaluate(tmp_path / "o.csv", tmp_path / "p.csv", columns="text", label_column="label", group_column="place",
                 learner="tfidf", metrics="none")  # fmt: skip
    with pytest.raises(BadParameterError, match="downstream task"):
        evaluate(tmp_path / "o.csv", tmp_path / "p.csv", columns="text", by_class=True, metrics="none")
