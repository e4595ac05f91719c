"""`tacit embed`: formats, types, users, labels, ledger, resuming, and the card that goes with every release."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest

import tacit
from tacit.card import Card
from tacit.cli.main import run as tacit_command
from tacit.engines.outputs import FileOutput
from tacit.errors import BadInputError, BadParameterError, NoGuaranteeError
from tacit.guarantee import Unit
from tacit.jobs.embed import EmbedConfig
from tacit.jobs.registry import config_from
from tacit.jobs.registry import run as run_job

ROWS = [
    {
        "text": f"please book a table for {n} at the inn",
        "title": f"dinner {n}",
        "who": f"u{n % 4}",
        "topic": "ab"[n % 2],
    }
    for n in range(12)
]


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "rows.csv"
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(ROWS[0]))
        writer.writeheader()
        writer.writerows(ROWS)
    return path


def test_every_format_holds_the_same_numbers(table, tmp_path):
    pytest.importorskip("pyarrow")
    from pyarrow import parquet

    outputs = {kind: tmp_path / f"v.{kind}" for kind in ("csv", "jsonl", "parquet", "npy")}
    for path in outputs.values():
        result = tacit.embed(str(table), columns="text", epsilon=8, seed=5, dimensions=5, output=path)
        assert result.output == str(path)
        card = Card.from_json(path.with_name(path.name + ".card.json").read_text())
        assert not card.guarantee.is_private  # a seed
    read = {
        "csv": [json.loads(row["text"]) for row in csv.DictReader(outputs["csv"].read_text().splitlines())],
        "jsonl": [json.loads(line)["text"] for line in outputs["jsonl"].read_text().splitlines()],
        "parquet": parquet.read_table(outputs["parquet"])["text"].to_pylist(),
        "npy": np.load(outputs["npy"]),
    }
    matrices = {kind: np.array(values, dtype=np.float32) for kind, values in read.items()}
    assert read["npy"].dtype == np.float32
    for matrix in matrices.values():
        assert matrix.shape == (12, 5)
        assert (matrix == matrices["npy"]).all()
    assert str(parquet.read_table(outputs["parquet"]).schema.field("text").type.value_type) == "float"


def test_words_are_lists_of_vectors_and_no_matrix(table, tmp_path):
    output = tmp_path / "words.jsonl"
    result = tacit.embed(str(table), columns="text", level="word", epsilon=20, options={"limit": 500}, output=output)
    assert result.guarantee.unit is Unit.TOKEN
    first = json.loads(output.read_text().splitlines()[0])["text"]
    assert np.array(first).shape == (9, 50)
    assert result.facts.units == 9 * 12
    with pytest.raises(tacit.TacitError, match="each word"):
        tacit.embed(str(table), columns="text", level="word", epsilon=20, output=tmp_path / "words.npy")
    assert not (tmp_path / "words.npy").exists()


def test_a_matrix_has_room_for_one_column_only(table, tmp_path):
    for options in ({"keep": "topic"}, {"columns": ["text", "title"]}):
        with pytest.raises(BadInputError, match="one matrix"):
            tacit.embed(str(table), **{"columns": "text", **options}, epsilon=8, output=tmp_path / "v.npy")
    assert list(tmp_path.glob("v.npy*")) == []


def test_in_memory_it_keeps_the_container_and_the_other_columns_stay_away():
    result = tacit.embed(ROWS, columns=["text", "title"], keep="topic", epsilon=8, dimensions=3)
    assert set(result.data[0]) == {"text", "title", "topic"}
    assert result.matrix.shape == (24, 3)
    assert result.card.facts.columns == ("text", "title")
    assert any("topic" in each for each in result.guarantee.not_covered)
    alone = tacit.embed(["one text"], epsilon=8)
    assert len(alone.data) == 1
    assert len(alone.data[0]) == 64


def test_a_user_shares_one_budget_over_rows_and_columns():
    result = tacit.embed(
        ROWS, columns=["text", "title"], epsilon=12, user_column="who", documents_per_user=3, dimensions=4
    )
    assert result.guarantee.unit is Unit.USER
    assert result.guarantee.epsilon <= 12
    assert result.guarantee.epsilon == pytest.approx(12)
    assert result.guarantee.delta == pytest.approx(6e-6)
    with pytest.raises(NoGuaranteeError):
        tacit.embed(ROWS, columns="text", level="word", epsilon=12, user_column="who")
    with pytest.raises(NoGuaranteeError, match="a sentence"):
        tacit.embed(ROWS, "depth", columns="text", epsilon=12, user_column="who")


def test_sentences_are_counted_as_sentences():
    assert tacit.embed(["One came. Two went.", "Three."], "depth", epsilon=2).counts() == "2 rows, 3 sentences"


def test_labels_are_randomized_and_paid_for():
    result = tacit.embed(
        ROWS, columns="text", epsilon=8, randomize="topic", labels=("a", "b"), label_epsilon=1.5, dimensions=4
    )
    assert result.guarantee.unit is Unit.RECORD
    assert result.guarantee.epsilon == 9.5
    assert {row["topic"] for row in result.data} <= {"a", "b"}
    sentence = tacit.embed(
        [{"text": "One is here. Two are there. Three went.", "topic": "a"}], "depth", columns="text", epsilon=2,
        randomize="topic", labels=("a", "b"), label_epsilon=1,
    )  # fmt: skip
    assert sentence.guarantee.epsilon == 3 * 2 + 1  # all sentences of the record, and its label
    with pytest.raises(BadParameterError, match="budget of their own"):
        tacit.embed(ROWS, columns="text", epsilon=8, randomize="topic", labels=("a", "b"))


@pytest.mark.filterwarnings("ignore::tacit.errors.TacitWarning")
def test_a_ledger_is_charged(table, tmp_path):
    ledger = tmp_path / "spent.ledger"

    def spent(mechanism, epsilon):
        output = tmp_path / f"{mechanism}.jsonl"
        options = {"columns": "text", "epsilon": epsilon, "ledger": str(ledger)}
        return str(tacit.embed(str(table), mechanism, output=output, **options).spent)

    assert "8" in spent("forward", 8)
    assert "11.1" in spent("angular", 1)  # pi more
    assert "12.1" in spent("depth", 1)


def test_a_stopped_run_goes_on_with_the_same_noise_and_workers_change_nothing(table, tmp_path, monkeypatch):
    whole = tmp_path / "whole.jsonl"
    config = {"columns": "text", "epsilon": 8, "seed": 3, "dimensions": 4}
    monkeypatch.setattr("tacit.embeddings.forward.Forward.block_characters", 100)
    tacit.embed(str(table), **config, output=whole)
    stopped = tmp_path / "stopped.jsonl"
    appended = FileOutput.append
    calls = []

    def stop(self, rows, block):
        calls.append(block)
        if len(calls) == 2:
            raise KeyboardInterrupt
        appended(self, rows, block)

    monkeypatch.setattr(FileOutput, "append", stop)
    with pytest.raises(tacit.TacitError):
        tacit.embed(str(table), **config, output=stopped)
    assert not stopped.exists()
    monkeypatch.setattr(FileOutput, "append", appended)
    tacit.embed(str(table), **config, output=stopped, resume=True)
    assert stopped.read_bytes() == whole.read_bytes()


def test_a_public_file_that_changed_while_a_run_was_stopped_is_noticed(table, tmp_path, monkeypatch):
    """Rows before and after would have different vectors behind one card: of texts, and of words."""
    public, vectors = tmp_path / "public.txt", tmp_path / "vectors.txt"
    public.write_text("\n".join(f"red green blue number {n}" for n in range(120)))
    vectors.write_text("book 0 1\ntable 1 0\ninn 1 1\n")
    monkeypatch.setattr("tacit.embeddings.forward.Forward.block_characters", 100)
    monkeypatch.setattr("tacit.words.santext.SanText.block_characters", 100)
    appended = FileOutput.append

    def stopping(calls):
        def stop(self, rows, block):
            calls.append(block)
            if len(calls) == 2:
                raise KeyboardInterrupt
            appended(self, rows, block)

        return stop

    for job, options, changed in (
        (tacit.embed, {"dimensions": 4, "options": {"public": str(public)}}, public),
        (tacit.rewrite, {"mechanism": "santext", "vectors": str(vectors)}, vectors),
    ):
        output = tmp_path / f"{changed.stem}.jsonl"
        monkeypatch.setattr(FileOutput, "append", stopping([]))
        with pytest.raises(tacit.TacitError):
            job(str(table), columns="text", epsilon=8, output=output, **options)
        monkeypatch.setattr(FileOutput, "append", appended)
        before = changed.read_text()
        changed.write_text(before.replace("red", "cat dog bird").replace("book 0 1", "book 0 2"))
        with pytest.raises(BadInputError) as refused:
            job(str(table), columns="text", epsilon=8, output=output, resume=True, **options)
        assert refused.value.code == "another-run"
        changed.write_text(before)
        assert job(str(table), columns="text", epsilon=8, output=output, resume=True, **options).facts.rows == 12


def test_the_command_the_file_of_options_and_the_card(table, tmp_path, capsys):
    output = tmp_path / "v.jsonl"
    assert tacit_command(["embed", str(table), "--column", "text", "--epsilon", "8", "-o", str(output)]) == 0
    card = Card.from_json((tmp_path / "v.jsonl.card.json").read_text())
    assert card.facts.command == "tacit embed --column text --mechanism forward --epsilon 8 --encoder static"
    assert card.guarantee.epsilon == 8
    again = run_job(config_from({"job": "embed", "input": ["a text"], "epsilon": 8}))
    assert again.matrix.shape == (1, 64)
    assert tacit_command(["embed", str(table), "--column", "text", "--epsilon", "8", "--dry-run"]) == 0
    assert "Columns dropped" in capsys.readouterr().out
    assert tacit_command(["embed", str(table), "--column", "text", "--mechanism", "santext", "--epsilon", "8"]) == 2
    assert "tacit rewrite" in capsys.readouterr().err


def test_options_that_do_not_fit_are_refused():
    with pytest.raises(BadParameterError, match="dimensions"):
        EmbedConfig(input=["a"], mechanism="word-laplace", dimensions=4, epsilon=2)
    with pytest.raises(BadParameterError, match="level"):
        EmbedConfig(input=["a"], mechanism="forward", level="word", epsilon=2)
    with pytest.raises(BadParameterError, match="epsilon"):
        tacit.embed(["a"])
    with pytest.raises(BadParameterError):
        tacit.embed(["a"] * 20, epsilon=2, options={"delta": 0.06})
