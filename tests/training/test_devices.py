"""Models on a device: a pretend one, on which nothing may be mixed with what was left on the processor."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from tacit.devices import check_device, device_named, device_of, moved  # noqa: E402
from tacit.errors import BadParameterError  # noqa: E402
from tacit.training.gradients import choose  # noqa: E402
from tacit.training.plan import TrainingPlan  # noqa: E402
from tacit.training.prediction import predict_rows  # noqa: E402
from tacit.training.run import TrainingRun, TrainingSettings  # noqa: E402
from tacit.training.strategies import apply_strategy  # noqa: E402
from tacit.training.tasks import TASKS, task_named  # noqa: E402
from tacit.training.user_plans import ExamplePlan, UserPlan  # noqa: E402
from tacit.training.user_rows import UserRows  # noqa: E402
from tacit.training.users import group_by_user  # noqa: E402
from tests.training.pretend_device import MixedDevicesError, OnDevice, pretend_device  # noqa: E402
from tests.training.test_run import MUCH_NOISE, tokenizer  # noqa: E402, F401
from tests.training.test_tasks import ROWS, model_for  # noqa: E402
from tests.training.zoo import MODELS, batch  # noqa: E402

CLOSE = {"rtol": 1e-4, "atol": 1e-6}


def on_processor(value):
    return value.inner if isinstance(value, OnDevice) else value


def test_devices_have_names():
    assert [check_device(name) for name in ("auto", "cpu", "cuda", "cuda:3", "mps")]
    with pytest.raises(BadParameterError, match="choose auto, cpu, cuda"):
        check_device("gpu")


def test_a_device_that_is_missing_is_refused_before_any_work(monkeypatch):
    assert device_named("cpu").type == "cpu"
    with pytest.raises(BadParameterError, match="no device 'cuda:7'"):
        device_named("cuda:7")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert str(device_named("auto")) == "cuda:0"
    monkeypatch.setenv("LOCAL_RANK", "1")
    assert str(device_named("cuda")) == "cuda:1"


def test_the_pretend_device_notices_what_was_left_behind():
    with pretend_device() as device:
        layer = torch.nn.Linear(3, 2).to(device)
        assert device_of(layer).type == device.type
        with pytest.raises(MixedDevicesError):
            layer(torch.ones(1, 3))
        with pytest.raises(TypeError):
            layer(torch.ones(1, 3, device=device)).detach().numpy()


@pytest.mark.parametrize("engine", ["taps", "loop", "opacus"])
@pytest.mark.parametrize("name", ["bert", "t5, tied", "gpt2, tied", "llama, tied"])
def test_clipped_gradients_are_those_of_the_processor(name, engine):
    if engine == "opacus":
        pytest.importorskip("opacus")
        if name != "bert":
            pytest.skip("Opacus has no rule for layers of this model")
    torch.manual_seed(0)
    make, loss = MODELS[name]
    model, batches = make().eval(), [batch(3), batch(5)]
    expected = choose(model, loss, batches, engine)[0].run(batches[0]).squared_norms
    with pretend_device() as device:
        model.to(device)
        there = [moved(numbers, device) for numbers in batches]
        norms = choose(model, loss, there, engine)[0].run(there[0]).squared_norms
    for parameter, value in expected.items():
        assert isinstance(norms[parameter], OnDevice)
        torch.testing.assert_close(norms[parameter].inner, value, **CLOSE)


def trained(name, strategy, words, folder, device, *, private=True, settings=(), users=""):
    """The weights after two steps, and the predictions of the model."""
    rows = ROWS[name] * 8
    task = task_named(name)(length=32)
    task.learn(rows)
    torch.manual_seed(0)
    model = apply_strategy(model_for(task, words), strategy, rank=2)
    plan = TrainingPlan(len(rows), 4, 2, MUCH_NOISE, 1e-3)
    if not private:
        plan = TrainingPlan.without_privacy(records=len(rows), batch=4, epochs=0.4)
    chosen = TrainingSettings(learning_rate=1e-2, model="tiny", strategy=strategy, **dict(settings))
    owned = UserRows(group_by_user([str(i % 5 if i % 3 else 7) for i in range(len(rows))]), 4) if users else None
    if owned is not None:
        count, counted = len(owned.users), owned.counted
        draws_users = UserPlan(count, 3, 2, MUCH_NOISE, 1e-3, group=4, examples=counted)
        plan = draws_users if users == "users" else ExamplePlan(counted, 8, 2, MUCH_NOISE, 1e-3, group=4, users=count)
    run = TrainingRun(task, model, words, rows, plan, chosen, folder, seed=1, device=device, user_rows=owned)
    run.run()
    weights = {n: on_processor(p.detach()) for n, p in run.model.named_parameters() if p.requires_grad}
    assert {p.device.type for p in run.model.parameters()} == {torch.device(device).type}
    return weights, predict_rows(task, run.model, words, rows)


def both_ways(tmp_path, words, name, strategy, **more):
    usual = trained(name, strategy, words, tmp_path / "usual", "cpu", **more)
    with pretend_device() as device:
        elsewhere = trained(name, strategy, words, tmp_path / "elsewhere", device, **more)
    assert usual[0]
    for parameter, value in usual[0].items():
        torch.testing.assert_close(elsewhere[0][parameter], value, **CLOSE, msg=parameter)
    assert elsewhere[1] == usual[1]


@pytest.mark.parametrize("name", TASKS)
def test_every_task_trains_and_predicts_as_on_the_processor(name, tokenizer, tmp_path):  # noqa: F811
    both_ways(tmp_path, tokenizer, name, "full")


@pytest.mark.parametrize("users", ["users", "examples"])
def test_users_are_worked_on_where_the_model_is(users, tokenizer, tmp_path):  # noqa: F811
    both_ways(tmp_path, tokenizer, "classify", "full", users=users)


@pytest.mark.parametrize(
    "strategy", ["lora", "ia3", "adapter", "bias", "head", "last-1", "no-embeddings", "all-layers", "frozen-lstm"]
)
def test_every_strategy_trains_as_on_the_processor(strategy, tokenizer, tmp_path):  # noqa: F811
    both_ways(tmp_path, tokenizer, "classify", strategy)


@pytest.mark.parametrize("clipping", ["per-layer", "automatic", "quantile"])
def test_every_clipping_works_where_the_gradients_are(clipping, tokenizer, tmp_path):  # noqa: F811
    both_ways(tmp_path, tokenizer, "classify", "full", settings={"clipping": clipping})


def test_training_without_noise_works_there_too(tokenizer, tmp_path):  # noqa: F811
    both_ways(tmp_path, tokenizer, "classify", "full", private=False)
