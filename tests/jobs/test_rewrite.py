"""`tacit.rewrite`: files and data in memory take the same way, and come back as what they were."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import tacit
from tacit.account.ledger import open_ledger
from tacit.card import Card
from tacit.cli.main import run as run_command
from tacit.cli.naming import TERMINAL
from tacit.errors import BadInputError, BadParameterError, NominalError, TacitError, TacitWarning
from tacit.jobs.config import read_mapping
from tacit.jobs.registry import JOBS, config_class, config_from
from tacit.jobs.registry import run as run_job
from tacit.jobs.rewrite import RewriteConfig
from tests.conftest import small_table

ROWS = [{"text": f"w{n} w{n + 1} w{n + 2}", "stars": n % 3, "who": f"u{n // 2}"} for n in range(8)]
TEXTS = [row["text"] for row in ROWS]

Options = dict[str, Any]
"""Options of a call by name."""


@pytest.fixture(scope="module")
def vectors(tmp_path_factory: pytest.TempPathFactory) -> str:
    table = small_table(words=40, dimension=3)
    path = tmp_path_factory.mktemp("vectors") / "small.txt"
    rows = zip(table.words, table.vectors.tolist(), strict=True)
    path.write_text("".join(f"{word} {' '.join(map(str, row))}\n" for word, row in rows))
    return str(path)


@pytest.fixture
def options(vectors: str) -> Options:
    return {"epsilon": 2.0, "vectors": vectors}


def containers() -> dict[str, Any]:
    pandas, arrow = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    datasets = pytest.importorskip("datasets")
    columns = {name: [row[name] for row in ROWS] for name in ROWS[0]}
    return {
        "rows": ROWS,
        "columns": columns,
        "frame": pandas.DataFrame(ROWS, index=[f"person {n}" for n in range(8)]),
        "table": arrow.table({**columns, "stars": arrow.array(columns["stars"], arrow.int8())}),
        "data set": datasets.Dataset.from_list(ROWS),
    }


def columns_of(data: Any) -> dict[str, list[Any]]:
    if isinstance(data, list):
        return {name: [row[name] for row in data] for name in data[0]}
    if isinstance(data, dict):
        return data
    if hasattr(data, "to_pydict"):
        return dict(data.to_pydict())
    names = data.column_names if hasattr(data, "column_names") else data.columns
    return {name: list(data[name]) for name in names}


# In memory ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["rows", "columns", "frame", "table", "data set"])
def test_data_come_back_as_what_they_were_with_the_texts_of_a_file(name: str, options: Options, tmp_path: Path) -> None:
    data = containers()[name]
    release = tacit.rewrite(data, columns="text", keep="stars", seed=5, **options)
    assert type(release.data) is type(data)
    released = columns_of(release.data)
    assert list(released) == ["text", "stars"], "what is not named is dropped"
    assert released["stars"] == [row["stars"] for row in ROWS]
    assert release.texts == released["text"]
    file = tmp_path / "in.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    output = tmp_path / "out.jsonl"
    tacit.rewrite(str(file), columns="text", keep="stars", seed=5, output=output, **options)
    assert [json.loads(line) for line in output.read_text().splitlines()] == [
        dict(zip(released, row, strict=True)) for row in zip(*released.values(), strict=True)
    ]


def test_types_of_kept_columns_stay_and_an_index_does_not(options: Options) -> None:
    data = containers()
    frame = tacit.rewrite(data["frame"], columns="text", keep="stars", **options).data
    assert frame["stars"].dtype == data["frame"]["stars"].dtype
    assert list(frame.index) == list(range(8)), "the index named people"
    table = tacit.rewrite(data["table"], columns="text", keep="stars", **options).data
    assert str(table.schema.field("stars").type) == "int8"


def test_texts_in_texts_out(options: Options) -> None:
    pandas = pytest.importorskip("pandas")
    release = tacit.rewrite(TEXTS, **options)
    assert isinstance(release.data, list)
    assert release.data == release.texts
    assert tacit.rewrite(iter(TEXTS), **options).facts.rows == 8
    series = tacit.rewrite(pandas.Series(TEXTS, name="note"), **options).data
    assert (len(series), series.name) == (8, "note")
    assert "8 rows, 24 tokens -> in memory" in str(release)
    assert "odds" in str(release)
    assert release.facts.digest == ""
    assert release.card.facts is not None
    assert (
        release.card.facts.command
        == f"tacit.rewrite(mechanism='santext', epsilon=2.0, vectors='{Path(options['vectors']).name}')"
    )


def test_a_file_in_and_nothing_named_out_is_rows_in_memory(options: Options, tmp_path: Path) -> None:
    file = tmp_path / "in.csv"
    file.write_text("text,stars\nw1 w2,3\n")
    release = tacit.rewrite(file, keep=["stars"], **options)
    assert [set(row) for row in release.data] == [{"text", "stars"}]
    assert [path.name for path in tmp_path.iterdir()] == ["in.csv"]


def test_memory_into_a_file_has_its_card_beside_it(options: Options, tmp_path: Path) -> None:
    output = tmp_path / "out.csv"
    release = tacit.rewrite(ROWS, columns="text", keep="stars", output=output, **options)
    assert release.data is None
    assert release.card == Card.from_json(Path(f"{output}.card.json").read_text())
    with pytest.raises(TacitError) as raised:
        tacit.rewrite(ROWS, columns="text", output=output, **options)
    assert raised.value.code == "output-exists"
    assert "--force" in raised.value.rendered(TERMINAL)


def test_labels_are_drawn_from_the_public_list_with_its_types(options: Options) -> None:
    release = tacit.rewrite(
        ROWS, columns="text", randomize="stars", label_epsilon=1.0, labels=["0", "1", "2"], **options
    )
    assert {type(row["stars"]) for row in release.data} == {int}
    assert release.facts.randomized_columns == ("stars",)


def test_what_memory_cannot_do_is_said(options: Options) -> None:
    for more, code in (
        ({"resume": True}, "nothing-to-resume-in"),
        ({"ledger": "ledger.db"}, "data-set-without-name"),
        ({"engine": "ray"}, "cluster-reads-files"),
        ({"columns": "txt"}, "no-such-column"),
    ):
        with pytest.raises(TacitError) as raised:
            tacit.rewrite(ROWS, **{"columns": "text", **options, **more})
        assert raised.value.code == code
    with pytest.raises(NominalError):
        tacit.rewrite(TEXTS, **{**options, "epsilon": 100.0}, refuse_nominal=True)


def test_the_ledger_is_opened_after_the_output_is_checked(
    options: Options, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TACIT_LEDGER_KEY", "00" * 32)
    ledger, output = tmp_path / "ledger.db", tmp_path / "out.txt"
    output.write_text("precious")
    more = {**options, "ledger": str(ledger), "dataset": "mail", "output": output}
    with pytest.raises(TacitError, match="exists"):
        tacit.rewrite(TEXTS, **more)
    assert not ledger.exists()
    with pytest.warns(TacitWarning, match="NEW LEDGER"):
        release = tacit.rewrite(TEXTS, force=True, **more)
    assert release.spent is not None
    with open_ledger(ledger) as opened:
        assert len(opened.releases(dataset="mail")) == 1


# The configuration ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "code"),
    [
        ({"options": ["limit"]}, "not-name-and-value"),
        ({"options": {"seed": 3}}, "seed-as-mechanism-option"),
        ({"options": ["epsilon=3"], "epsilon": 2}, "option-twice"),
        ({"card": "pdf"}, "bad-card-kinds"),
        ({"card_file": "card.pdf"}, "not-a-card-name"),
        ({"randomize": "stars"}, "labels-not-stated"),
        ({"dataset": "mail"}, "no-ledger"),
        ({"ledger": "x.db", "input": "-"}, "data-set-without-name"),
        ({"level": "sentence"}, "bad-option"),
        ({"user_mode": "join"}, "bad-option"),
        ({"address": "auto"}, "address-without-cluster"),
    ],
)
def test_options_that_do_not_fit_are_a_code(values: Options, code: str) -> None:
    with pytest.raises(BadParameterError) as raised:
        RewriteConfig(**{"input": "in.csv", **values})
    assert raised.value.code == code


def test_running_and_places_are_no_part_of_the_identity() -> None:
    config = RewriteConfig(input="/home/mary/in.csv", epsilon=2, vectors="/home/mary/v.txt")
    other = RewriteConfig(
        input="in.csv", output="out.csv", epsilon=2.0, vectors="v.txt", workers=4, force=True, ledger="l.db",
        mechanism="santext",
    )  # fmt: skip
    assert config.identity() == other.identity()
    assert "mary" not in json.dumps(config.identity())


def test_a_budget_of_a_user_is_shared_by_all_texts() -> None:
    config = RewriteConfig(
        input="in.csv", level="document", epsilon=6, columns=("a", "b"), user_column="who", documents_per_user=3,
        randomize="stars", label_epsilon=3, labels="0,1",
    )  # fmt: skip
    assert config.of_mechanism()["epsilon"] == 1.0
    rule = config.label_rule()
    assert rule is not None
    assert rule.epsilon == 1.0


# `tacit run` ----------------------------------------------------------------------------------------------------------


def test_every_registered_job_has_its_configuration_and_its_function() -> None:
    for job in JOBS:
        assert config_class(job).job == job


def test_a_configuration_runs_again_from_a_file(options: Options, tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("".join(f"{text}\n" for text in TEXTS))
    output = tmp_path / "out.txt"
    release = tacit.rewrite(tmp_path / "in.txt", seed=3, output=output, **options)
    released = output.read_bytes()
    output.unlink()
    (tmp_path / "again.toml").write_text(release.config.to_toml())
    assert config_from(read_mapping(tmp_path / "again.toml")) == release.config
    assert run_command(["run", str(tmp_path / "again.toml"), "-q"]) == 0
    assert output.read_bytes() == released
    values = {**read_mapping(tmp_path / "again.toml"), "force": True}
    (tmp_path / "again.json").write_text(json.dumps(values))
    assert run_command(["run", str(tmp_path / "again.json"), "-q"]) == 0
    assert run_job(config_from({**values, "output": None})).texts == output.read_text().splitlines()


def test_the_environment_counts_for_a_file_as_well(
    options: Options, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "in.txt").write_text("w1 w2\n")
    config = RewriteConfig(input=str(tmp_path / "in.txt"), output=str(tmp_path / "out.txt"), **options)
    (tmp_path / "run.toml").write_text(config.to_toml() + "refuse_nominal = false\n")
    monkeypatch.setenv("TACIT_REFUSE_NOMINAL", "1")
    assert run_command(["run", str(tmp_path / "run.toml")]) == 3
    assert not (tmp_path / "out.txt").exists()


def test_another_job_runs_by_the_same_command(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text("a good film\na bad one\n")
    (tmp_path / "run.json").write_text(
        json.dumps({"job": "evaluate", "original": str(tmp_path / "a.txt"), "private": [str(tmp_path / "b.txt")],
                    "metrics": ["kept-words"]})
    )  # fmt: skip
    assert run_command(["run", str(tmp_path / "run.json"), "-q"]) == 0
    assert "words kept anywhere" in capfd.readouterr().out


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("epsilon = 2\n", "does not say what it describes"),
        ('job = "rewrit"\n', "did you mean 'rewrite'"),
        ('job = "rewrite"\ninput = "a.csv"\ncolumn = ["a"]\n', "has no option 'column'"),
        ('job = "rewrite"\ninput = "(in memory)"\n', "name a file"),
        ("job = \n", "neither TOML nor JSON"),
    ],
)
def test_a_file_that_does_not_fit_is_a_sentence(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], content: str, sentence: str
) -> None:
    (tmp_path / "run.toml").write_text(content)
    assert run_command(["run", str(tmp_path / "run.toml")]) == 2
    assert sentence in capfd.readouterr().err


def test_a_configuration_of_data_in_memory_names_none(options: Options) -> None:
    config = tacit.rewrite(TEXTS, **options).config
    with pytest.raises(BadInputError):
        RewriteConfig.from_mapping(config.model_dump(mode="json"))
