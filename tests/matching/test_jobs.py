"""Sketches by command, by Python and by a file of options: the same rules, a card each time, and a ledger."""

from __future__ import annotations

import json
import math
import warnings
from pathlib import Path

import pytest

import tacit
from tacit.account.ledger import open_ledger
from tacit.card import Card
from tacit.cli.main import run as run_command
from tacit.errors import BadInputError, BadParameterError, TacitWarning
from tacit.guarantee import Unit
from tacit.jobs import registry, sketch_input
from tacit.jobs.config import read_mapping
from tacit.jobs.sketch import run
from tacit.jobs.sketch_input import row_source
from tacit.jobs.sketched_rows import SketchConfig
from tacit.matching.artifact import read_sketch
from tacit.matching.labels import ListedLabels
from tacit.matching.pool import load_pool
from tacit.matching.sketch import DECLARED

ROWS = [
    {"text": sentence, "intent": ("ask", "tell")[place % 2], "stars": place % 5, "who": f"u{place % 20}"}
    for place, sentence in enumerate(load_pool().sentences[:60])
]
LISTED = {"label_column": "intent", "labels": ["ask", "tell"], "vocabulary": 50}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TACIT_LEDGER_KEY", "a key for tests, nothing more")
    Path("rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    return tmp_path


def command(*arguments: str) -> int:
    return run_command(["sketch", *arguments])


BUILD = ("build", "rows.jsonl", "--label-column", "intent", "--vocabulary", "50", "-e", "1", "-q")


def test_the_command_writes_a_sketch_with_its_card(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command(*BUILD, "--labels", "ask,tell", "-o", "s.tacit") == 0
    sketch = read_sketch("s.tacit")
    assert sketch.labels == ("ask", "tell")
    assert Card.from_json(Path("s.tacit.card.json").read_text()).guarantee == sketch.guarantee
    assert sketch.guarantee.epsilon == 1.0
    assert command("show", "s.tacit") == 0
    assert "ask" in capsys.readouterr().out
    assert command("show", "s.tacit", "--json") == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["labels"] == ["ask", "tell"]
    assert shown["counts"] == sketch.counts.tolist()
    assert command(*BUILD, "--labels", "ask,tell", "-o", "s.tacit") == 2
    assert command(*BUILD, "--labels", "ask,tell", "-o", "s.tacit", "--force") == 0


def test_sites_are_merged_by_command(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("a", "b"):
        assert command(*BUILD, "--labels", "ask,tell", "-o", f"{name}.tacit") == 0
    assert command("merge", "a.tacit", "b.tacit", "--disjoint", "-o", "all.tacit", "-q") == 0
    assert command("merge", "a.tacit", "b.tacit", "-o", "composed.tacit", "-q") == 0
    assert read_sketch("all.tacit").guarantee.epsilon == 1.0
    assert 1.0 < read_sketch("composed.tacit").guarantee.epsilon < 2.0
    assert "composed" in Path("composed.tacit.card.md").read_text()
    assert command("merge", "a.tacit", "a.tacit", "-o", "twice.tacit") == 2
    assert "twice" in capsys.readouterr().err
    assert not Path("twice.tacit").exists()


def test_python_takes_rows_in_memory_and_writes_where_it_is_told() -> None:
    built = tacit.sketch(ROWS, epsilon=1.0, **LISTED)
    assert built.output is None
    assert built.sketch.labels == ("ask", "tell")
    assert built.card.guarantee == built.guarantee
    assert "findings" not in repr(built)


def test_a_file_of_options_runs_the_same_job(folder: Path) -> None:
    config = SketchConfig(data="rows.jsonl", epsilon=1.0, seed=3, output=Path("s.tacit"), **LISTED)
    Path("job.toml").write_text(config.to_toml())
    assert registry.config_from(read_mapping(Path("job.toml"))) == config
    assert run_command(["run", "job.toml"]) == 0
    direct = tacit.sketch(ROWS, epsilon=1.0, seed=3, **LISTED).sketch
    assert (read_sketch("s.tacit").totals == direct.totals).all()
    assert read_sketch("s.tacit").guarantee.void is not None


def test_labels_come_from_a_list_a_file_bins_a_declaration_or_topics(folder: Path) -> None:
    Path("labels.txt").write_text("\ufefftell\n\n ask \n")
    small = {"epsilon": 1.0, "vocabulary": 0, "output": Path("s.tacit"), "force": True}
    listed = run(SketchConfig(data="rows.jsonl", label_column="intent", labels_from=Path("labels.txt"), **small))
    assert listed.sketch.labels == ("tell", "ask")
    bins = run(SketchConfig(data="rows.jsonl", label_column="stars", bins="0,2,4", **small))
    assert bins.sketch.labels == ("0 to 2", "2 to 4")
    declared = run(SketchConfig(data="rows.jsonl", label_column="stars", declare_labels_public=True, **small))
    assert declared.sketch.labels == ("0", "1", "2", "3", "4")
    assert DECLARED in declared.guarantee.assumptions
    assert DECLARED in declared.card.to_text()
    assert DECLARED not in listed.guarantee.assumptions
    topics = run(SketchConfig(data="rows.jsonl", topics=5, **small))
    assert len(topics.sketch.labels) == 5
    assert len(run(SketchConfig(data="rows.jsonl", **small)).sketch.labels) == 64


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"label_column": "intent"}, "say once which labels"),
        ({"label_column": "intent", "labels": ["a"], "bins": [0, 1]}, "say once which labels"),
        ({"labels": ["a"]}, "name the column"),
        ({"label_column": "intent", "labels": ["a"], "topics": 4}, "take the place"),
        ({"label_column": "stars", "bins": [0, 1], "other": "x"}, "belongs to a list"),
        ({"dataset": "x"}, "for a ledger"),
        ({"epsilon": 0}, "above 0"),
    ],
)
def test_options_that_do_not_fit_are_refused(options: dict[str, object], words: str) -> None:
    with pytest.raises(BadParameterError, match=words):
        SketchConfig(**{"data": ROWS, "epsilon": 1.0, **options})


def test_rows_outside_the_list_are_a_private_warning(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.warns(TacitWarning, match="30 of 60 rows"):
        tacit.sketch(ROWS, epsilon=1.0, label_column="intent", labels=["ask"], vocabulary=0)
    assert command(*BUILD, "--labels", "ask", "-o", "s.tacit") == 0
    assert "30 of 60 rows" in capsys.readouterr().err
    outside = read_sketch("s.tacit").guarantee
    assert command(*BUILD, "--labels", "ask", "--other", "ask", "-o", "t.tacit") == 0
    inside = read_sketch("t.tacit").guarantee
    different = {name for name in inside.parameters if inside.parameters[name] != outside.parameters[name]}
    assert different == {"labels", "sketch"}, "the rule and the digest, and nothing that was counted"
    assert outside.parameters["labels"] == "1 (rows with any other label are left out)"
    capsys.readouterr()
    assert command(*BUILD, "--labels", "ask,rest", "--other", "rest", "-o", "o.tacit") == 0
    assert "left out" not in capsys.readouterr().err


def test_users_are_protected_as_a_whole(folder: Path) -> None:
    built = tacit.sketch("rows.jsonl", epsilon=1.0, user_column="who", **LISTED)
    assert built.guarantee.unit is Unit.USER
    assert built.findings.users == 20
    with pytest.raises(BadInputError, match="no column 'nobody'"):
        tacit.sketch("rows.jsonl", epsilon=1.0, user_column="nobody", **LISTED)
    with pytest.raises(BadParameterError, match="only once"):
        SketchConfig(data="-", epsilon=1.0, user_column="who")


def test_a_ledger_is_charged_and_may_refuse(folder: Path) -> None:
    with open_ledger("budget.db") as ledger:
        ledger.set_limit("dataset", epsilon=2.5, delta=0.1)
    assert command(*BUILD, "--labels", "ask,tell", "-o", "a.tacit", "--ledger", "budget.db") == 0
    with open_ledger("budget.db", create=False) as ledger:
        releases = list(ledger.releases(dataset="rows.jsonl"))
    assert len(releases) == 1
    assert releases[0].guarantee.mechanism.startswith("matching sketch")
    assert command(*BUILD, "--labels", "ask,tell", "-o", "b.tacit", "--ledger", "budget.db") == 0
    assert command(*BUILD, "--labels", "ask,tell", "-o", "c.tacit", "--ledger", "budget.db") != 0
    assert not Path("c.tacit").exists()
    with pytest.raises(BadParameterError, match="no name for the ledger"):
        SketchConfig(data=ROWS, epsilon=1.0, ledger="budget.db")


def test_edges_of_the_data(folder: Path) -> None:
    rows = [
        {"text": "word " * 100_000, "label": "a"},
        {"text": "🙂", "label": 1},
        {"text": "", "label": 1.0},
        {"text": None, "label": " a "},
        {"text": "x", "label": True},
        {"text": "y", "label": None},
    ]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", TacitWarning)
        built = tacit.sketch(rows, epsilon=1e4, delta=0.01, label_column="label", labels=["a", "1", "True"])
    said = " ".join(str(each.message) for each in caught)
    for sentence in ("1 of 6 rows have a label", "2 of 6 rows have no text", "1 of 6 texts are longer"):
        assert sentence in said
    assert [round(count) for count in built.sketch.counts] == [2, 2, 1]
    with pytest.raises(BadInputError, match="is empty"):
        tacit.sketch([], epsilon=1.0)
    Path("empty.csv").write_text("text,label\n")
    with pytest.raises(BadInputError, match="no rows"):
        tacit.sketch("empty.csv", epsilon=1.0, column="text", label_column="label", labels=["a"])


def test_parquet_with_booleans_and_floats(folder: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    import pyarrow.parquet as parquet

    table = pyarrow.table(
        {"text": ["a", "b", "c"] * 4, "flag": [True, False, None] * 4, "stars": [1.0, 2.0, math.nan] * 4}
    )
    parquet.write_table(table, "rows.parquet")
    for column, labels in (("flag", ["True", "False"]), ("stars", ["1", "2"])):
        with pytest.warns(TacitWarning, match="4 of 12"):
            built = tacit.sketch(
                "rows.parquet", epsilon=1e4, delta=0.01, label_column=column, labels=labels, column="text"
            )
        assert [round(count) for count in built.sketch.counts] == [4, 4]


def test_many_different_values_are_no_label(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sketch_input, "MOST_DECLARED", 10)
    with pytest.raises(BadInputError, match="is it a label"):
        tacit.sketch(ROWS, epsilon=1.0, label_column="text", column="intent", declare_labels_public=True)


def test_rows_are_read_in_blocks_with_progress(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sketch_input, "BLOCK_ROWS", 16)
    steps: list[tuple[int, int]] = []
    config = SketchConfig(data="rows.jsonl", epsilon=1.0, **LISTED)
    blocks = list(row_source(config, lambda done, total: steps.append((done, total)))())
    assert [len(block.texts) for block in blocks] == [16, 16, 16, 12]
    assert len(steps) == 3
    assert ListedLabels(("ask", "tell")).places(blocks[0].texts, blocks[0].labels).tolist() == [0, 1] * 8
