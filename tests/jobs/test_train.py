"""Training and predicting from Python: the same model from a file and from data in memory, and errors with codes."""

from __future__ import annotations

import csv
import hashlib
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from transformers import PreTrainedTokenizerBase  # noqa: E402

import tacit  # noqa: E402
from tacit.card import Card  # noqa: E402
from tacit.cli.naming import TERMINAL  # noqa: E402
from tacit.cli.training_display import TrainingBar  # noqa: E402
from tacit.errors import BadInputError, BadParameterError, MissingExtraError  # noqa: E402
from tacit.jobs.federate import CONFIGS as FEDERATED  # noqa: E402
from tacit.jobs.train import CONFIGS, TrainClassify, run  # noqa: E402
from tacit.jobs.training.options import TaskTraining  # noqa: E402
from tacit.jobs.training.result import TrainingProgress  # noqa: E402
from tacit.training.plan import TrainingPlan  # noqa: E402
from tacit.training.run import StepReport  # noqa: E402
from tacit.training.tasks import TASKS, Classification  # noqa: E402
from tests.training.test_run import rows, tiny, tokenizer  # noqa: E402, F401

OPTIONS: dict[str, Any] = {"strategy": "full", "epsilon": 8, "batch": 50, "epochs": 1, "length": 16, "seed": 3}


@pytest.fixture
def folder(tokenizer: PreTrainedTokenizerBase, tmp_path: Path) -> Path:  # noqa: F811
    torch.manual_seed(0)
    tiny(tokenizer, Classification(labels=["neg", "pos"])).save_pretrained(tmp_path / "tiny")
    tokenizer.save_pretrained(tmp_path / "tiny")
    with (tmp_path / "data.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, ["text", "label", "user"])
        writer.writeheader()
        writer.writerows({**row, "user": f"u{number % 30}"} for number, row in enumerate(rows(120)))
    return tmp_path


def in_memory(kind: str) -> object:
    listed = rows(120)
    if kind == "rows":
        return listed
    if kind == "columns":
        return {name: [row[name] for row in listed] for name in listed[0]}
    library = pytest.importorskip({"frame": "pandas", "arrow": "pyarrow"}.get(kind, "datasets"))
    if kind == "frame":
        return library.DataFrame(listed)
    if kind == "arrow":
        return library.Table.from_pylist(listed)
    features = library.Features({"text": library.Value("string"), "label": library.ClassLabel(names=["neg", "pos"])})
    return library.Dataset.from_list([dict(row) for row in listed], features=features)


def weights(folder: Path) -> str:
    return hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()


@pytest.mark.parametrize("kind", ["rows", "columns", "frame", "arrow", "data set"])
def test_data_in_memory_gives_the_model_of_the_file(folder: Path, kind: str) -> None:
    model = str(folder / "tiny")
    from_file = tacit.train("classify", folder / "data.csv", model=model, output=folder / "file", **OPTIONS)
    data = in_memory(kind)
    trained = tacit.train("classify", data, model=model, output=folder / "memory", test=data, **OPTIONS)
    assert weights(trained.folder) == weights(from_file.folder)
    assert trained.guarantee == Card.from_json((trained.folder / "card.json").read_text()).guarantee
    assert trained.score is not None
    assert trained.scores is not None
    assert from_file.score is None
    predicted = tacit.predict(trained.folder, data, score=True)
    assert len(predicted) == 120
    assert set(predicted.predictions) <= {"neg", "pos"}
    assert predicted.score == trained.score


def test_new_weights_have_a_seed_of_their_own_which_is_no_test_seed(folder: Path) -> None:
    model, texts = str(folder / "tiny"), rows(120)
    options = {**OPTIONS, "model": model, "strategy": "frozen-lstm", "epsilon": math.inf}

    def trained(name: str, **seeds: int) -> str:
        return weights(tacit.train("classify", texts, output=folder / name, **{**options, **seeds}).folder)

    first = trained("first", seed=3, start_seed=5)
    assert trained("again", seed=3, start_seed=5) == first
    assert trained("other start", seed=3, start_seed=6) != first
    assert trained("other samples", seed=4, start_seed=5) != first
    assert trained("usual", seed=3) == trained("the test seed", seed=3, start_seed=3)
    private = {**options, "epsilon": 8, "seed": None, "start_seed": 5}
    retrained = tacit.train("classify", texts, output=folder / "private", **private)
    assert retrained.guarantee.is_private, "public weights may be repeated without harm"
    assert retrained.card.made_by["start_seed"] == 5


def test_frozen_layers_with_16_bits_are_another_run(folder: Path) -> None:
    options = {**OPTIONS, "model": str(folder / "tiny"), "strategy": "head", "precision": "fast"}
    trained = tacit.train("classify", rows(120), output=folder / "fast", **options)
    assert trained.card.made_by["precision"] == "fast"
    with pytest.raises(BadParameterError, match="precision"):
        tacit.train("classify", rows(120), output=folder / "half", **{**options, "precision": "half"})


def test_an_unknown_strategy_is_named_before_anything_is_read(folder: Path) -> None:
    with pytest.raises(BadParameterError, match="no strategy 'heads'") as refused:
        tacit.train("classify", folder / "no such file.csv", output=folder / "m", **{**OPTIONS, "strategy": "heads"})
    assert refused.value.code == "unknown-strategy"
    assert TrainClassify(data=rows(4), output=folder / "m", epsilon=1, strategy="last-7").chosen_strategy == "last-7"


def test_the_result_carries_the_guarantee_and_prints_well(folder: Path) -> None:
    options = {**OPTIONS, "seed": None}
    trained = tacit.train("classify", rows(120), model=str(folder / "tiny"), output=folder / "m", **options)
    assert trained.guarantee.is_private
    assert trained.guarantee.epsilon <= 8
    assert trained.checked is not None
    assert "epsilon" in str(trained)
    assert "epsilon" in str(trained.card)
    card = Card.from_json((folder / "m" / "card.json").read_text())
    assert card.made_by == trained.card.made_by
    assert (card.made_by["job"], card.made_by["epsilon"], card.made_by["model"]) == ("train classify", 8, "tiny")
    assert not card.made_by.keys() & {"data", "output", "physical", "resume"}


def test_users_are_protected_from_python_too(folder: Path) -> None:
    trained = tacit.federate(
        "classify", folder / "data.csv", user_column="user", epsilon=8, cohort=10, epochs=1, strategy="head", length=16,
        model=str(folder / "tiny"), output=folder / "m",
    )  # fmt: skip
    assert trained.guarantee.unit.value == "user"
    assert trained.plan.records == 30
    assert Card.from_json((folder / "m" / "card.json").read_text()).made_by["job"] == "federate classify"


def test_a_training_is_told_of_while_it_works(folder: Path) -> None:
    class Heard(TrainingProgress):
        steps = 0
        planned_steps = 0

        def planned(self, plan: TrainingPlan, notes: tuple[str, ...]) -> None:
            self.planned_steps = plan.steps

        def stepped(self, now: StepReport) -> None:
            self.steps = now.step

    heard = Heard()
    tacit.train("classify", rows(120), model=str(folder / "tiny"), output=folder / "m", progress=heard, **OPTIONS)
    assert heard.steps == heard.planned_steps == 3


def test_predictions_take_a_list_of_texts_and_columns_by_role(folder: Path) -> None:
    trained = tacit.train("classify", rows(120), model=str(folder / "tiny"), output=folder / "m", **OPTIONS)
    texts = [row["text"] for row in rows(5)]
    predictions = tacit.predict(trained.folder, texts).predictions
    renamed = [{"review": text} for text in texts]
    assert tacit.predict(trained.folder, renamed, columns={"text": "review"}).predictions == predictions
    tacit.predict(trained.folder, renamed, columns=["text=review"], output=folder / "out.csv")
    with (folder / "out.csv").open() as file:
        assert [row["prediction"] for row in csv.DictReader(file)] == predictions
    with pytest.raises(BadInputError) as raised:
        tacit.predict(trained.folder, texts, output=folder / "out.csv")
    assert raised.value.code == "output-exists"
    with pytest.raises(BadParameterError) as wrong:
        tacit.predict(trained.folder, texts, columns=["sound=review"])
    assert wrong.value.code == "bad-role"


@pytest.mark.parametrize(
    ("options", "code", "flag"),
    [
        ({"epsilon": None}, "missing-epsilon", "--epsilon inf"),
        ({"epsilon": None, "public": "a", "released": "card.json"}, "public-and-released", "--released"),
        ({"public": "a"}, "needless-epsilon", "--epsilon"),
        ({"delta": "small"}, "bad-delta", "--delta"),
        ({"batch": 500}, "fewer-rows-than-batch", "--batch"),
        ({"epsilon": None, "released": "card.json"}, "released-in-memory", "--epsilon"),
        ({"learning_rat": 1}, "unknown-option", "learning_rate"),
    ],
)
def test_what_cannot_be_trained_has_a_code(folder: Path, options: dict[str, Any], code: str, flag: str) -> None:
    with pytest.raises((BadParameterError, BadInputError)) as raised:
        tacit.train("classify", rows(120), model=str(folder / "tiny"), output=folder / "m", **{**OPTIONS, **options})
    assert raised.value.code == code
    assert flag in raised.value.rendered(TERMINAL)
    assert not (folder / "m").exists()


def test_a_task_that_does_not_exist_is_named() -> None:
    with pytest.raises(BadParameterError) as raised:
        tacit.train("sing", [], output="m", epsilon=1)
    assert raised.value.code == "no-such-task"


def test_what_is_not_installed_is_said_before_anything_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tacit.needs.is_installed", lambda module: module != "torch")
    with pytest.raises(MissingExtraError, match=r"tacit\.train needs"):
        tacit.train("classify", "nowhere.csv", output="m", epsilon=1)
    with pytest.raises(MissingExtraError, match=r"tacit\.predict needs"):
        tacit.predict("m", "nowhere.csv")


@pytest.mark.parametrize("configs", [CONFIGS, FEDERATED], ids=["train", "federate"])
def test_every_task_has_a_configuration_with_its_columns(configs: Mapping[str, type[TaskTraining]]) -> None:
    assert set(configs) == set(TASKS)
    for name, config in configs.items():
        assert set(config.roles) == set(TASKS[name].roles)
        assert config.task == name
        assert config.job.endswith(f" {name}")


def test_a_configuration_survives_a_file_and_running_is_no_part_of_it() -> None:
    import tomllib

    config = TrainClassify(
        data="reviews.csv", output="model", epsilon=math.inf, labels=["a", "b"], delta=1e-6, physical=8
    )
    assert TrainClassify.from_mapping(tomllib.loads(config.to_toml())) == config
    again = TrainClassify(data="reviews.csv", output="model", epsilon=math.inf, labels="a,b", delta="1e-6", resume=True)
    assert config.identity() == again.identity()


def test_a_configuration_does_not_show_the_rows_it_holds() -> None:
    config = TrainClassify(data=[{"text": "a secret", "label": "x"}], output="model", epsilon=1)
    assert "secret" not in repr(config) + str(config) + config.to_toml() + str(config.identity())
    assert "(in memory)" in repr(config)


def test_a_run_that_was_stopped_goes_on(folder: Path) -> None:
    class Stopped(TrainingProgress):
        def stepped(self, now: StepReport) -> None:
            raise KeyboardInterrupt

    shared: dict[str, Any] = {"data": rows(120), "model": str(folder / "tiny"), **OPTIONS}
    whole = run(TrainClassify(output=folder / "whole", **shared))
    with pytest.raises(KeyboardInterrupt):
        run(TrainClassify(output=folder / "parts", **shared), Stopped())
    with pytest.raises(BadInputError) as raised:
        run(TrainClassify(output=folder / "parts", **shared))
    assert raised.value.code == "unfinished-run"
    parts = run(TrainClassify(output=folder / "parts", resume=True, **shared), TrainingBar(quiet=True))
    assert weights(parts.folder) == weights(whole.folder)
