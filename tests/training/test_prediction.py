"""A saved folder predicts what the model in memory predicts; logs and plain runs."""

from __future__ import annotations

import csv
import json

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from tacit.errors import BadInputError  # noqa: E402
from tacit.training.log import TrainingLog  # noqa: E402
from tacit.training.plan import TrainingPlan  # noqa: E402
from tacit.training.prediction import load_trained, predict_rows  # noqa: E402
from tacit.training.step import StepFacts  # noqa: E402
from tests.training.test_run import accuracy, make_run, rows, tokenizer  # noqa: E402, F401


def test_a_plain_run_learns_and_its_folder_predicts_the_same(tokenizer, tmp_path):  # noqa: F811
    run = make_run(tokenizer, tmp_path / "model")
    run.plan = TrainingPlan.without_privacy(records=1000, batch=100, epochs=3)
    run.task.columns = {"text": "review", "label": "stars"}
    guarantee = run.run()
    assert not guarantee.is_private
    assert run.checked is None
    assert accuracy(run) > 0.95
    task, model, words = load_trained(tmp_path / "model")
    assert task.columns == {"text": "review", "label": "stars"}
    fresh = rows(50, seed=3)
    progress = []
    predictions = predict_rows(task, model, words, fresh, batch=7, progress=progress.append)
    assert predictions == predict_rows(run.task, run.model, tokenizer, fresh, batch=50)
    assert progress[-1] == 50


def test_folders_that_are_no_trained_model_are_named(tmp_path):
    with pytest.raises(BadInputError, match=r"no task\.json"):
        load_trained(tmp_path)
    (tmp_path / "task.json").write_text(json.dumps({"length": 3}))
    with pytest.raises(BadInputError, match="damaged"):
        load_trained(tmp_path)


def test_a_resumed_run_logs_each_step_once(tmp_path):
    facts = StepFacts(10, 0.5, 0.1, 1.0)
    first = TrainingLog(tmp_path)
    for step in (1, 2, 3, 4):
        first.write(step, 0.1 * step, facts)
    again = TrainingLog(tmp_path, after=2)
    again.write(3, 0.3, facts)
    with (tmp_path / "log.csv").open() as file:
        assert [row["step"] for row in csv.DictReader(file)] == ["1", "2", "3"]


def test_curves_for_tensorboard(tmp_path):
    pytest.importorskip("tensorboard")
    log = TrainingLog(tmp_path, tensorboard=True)
    log.write(1, 0.5, StepFacts(10, 0.5, 0.1, 1.0))
    log.close()
    assert list((tmp_path / "tensorboard").glob("events.*"))


@pytest.mark.parametrize("precision", ["float32", "fast"])
def test_frozen_layers_are_computed_once_for_several_models(tokenizer, precision, monkeypatch):  # noqa: F811
    from tacit.training import frozen
    from tacit.training.strategies import apply_strategy
    from tacit.training.tasks import Classification
    from tests.training.test_frozen import encoder

    monkeypatch.setattr(frozen, "PROCESS_MEMORY", frozen.StateMemory())
    computed = []
    monkeypatch.setattr(frozen, "_computed", lambda *given, work=frozen._computed: computed.append(1) or work(*given))
    task, questions = Classification(length=16, labels=["neg", "pos"]), rows(60, seed=5)
    said = []
    for seed in (1, 2):
        model = apply_strategy(encoder("Bert", tokenizer), "head").eval()
        torch.manual_seed(seed)
        torch.nn.init.normal_(model.classifier.weight)
        whole = predict_rows(task, model, tokenizer, questions)
        halved = predict_rows(task, model, tokenizer, questions, batch=7, frozen=precision)
        # A row whose two classes are equally likely may change sides by rounding.
        assert sum(a == b for a, b in zip(whole, halved, strict=True)) >= 57
        said.append(halved)
    assert said[0] != said[1], "the heads are their own"
    assert computed == [1]
