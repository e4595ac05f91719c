"""The mean of the last weights: what it is a mean of, in every kind of run, and that a stopped run keeps it."""

from __future__ import annotations

import json

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from tacit.errors import BadParameterError  # noqa: E402
from tacit.training.average import WeightAverage, averaged_steps  # noqa: E402
from tacit.training.banded import BandedPlan, banded_factor  # noqa: E402
from tacit.training.growing import GrowingPlan  # noqa: E402
from tacit.training.plan import TrainingPlan  # noqa: E402
from tacit.training.run import TrainingRun, TrainingSettings  # noqa: E402
from tacit.training.strategies import apply_strategy  # noqa: E402
from tacit.training.tasks import Classification  # noqa: E402
from tacit.training.user_plans import UserPlan  # noqa: E402
from tacit.training.user_rows import UserRows  # noqa: E402
from tacit.training.users import group_by_user  # noqa: E402
from tests.training.test_run import rows, tiny, tokenizer  # noqa: E402, F401

COUNT, STEPS = 60, 6
# Five times the noise of other tests: accounting for it takes a tenth of the time.
PLANS = {
    "independent": TrainingPlan(COUNT, 10, STEPS, 5.0, 1e-3),
    "growing": GrowingPlan(COUNT, 20, STEPS, 5.0, 1e-3, phases=((10, 3), (20, 3))),
    "banded": BandedPlan(COUNT, 10, STEPS, 5.0, 1e-3, factor=banded_factor(STEPS, 3)),
    "users": UserPlan(20, 5, STEPS, 5.0, 1e-3, group=3, examples=60),
    "without noise": TrainingPlan(COUNT, 10, STEPS, 0.0, 0.0, private=False),
}


def run_by(plan, words, folder, **settings):
    task, data = Classification(length=16), rows(COUNT)
    task.learn(data)
    model = apply_strategy(tiny(words, task), settings.setdefault("strategy", "bias"))
    chosen = TrainingSettings(learning_rate=1e-2, model="tiny", **{"checkpoint_every": 2, **settings})
    users = UserRows(group_by_user([f"u{i // 3}" for i in range(COUNT)]), 3) if isinstance(plan, UserPlan) else None
    public = data[:8] if settings.get("public_gradients") else ()
    return TrainingRun(task, model, words, data, plan, chosen, folder, seed=1, user_rows=users, public_rows=public)


def weights_of(run):
    return {name: value.detach().clone() for name, value in run.model.named_parameters()}


@pytest.mark.parametrize("kind", [*PLANS, "public gradients"])
def test_the_saved_weights_are_the_mean_of_the_last_ones(kind, tokenizer, tmp_path):  # noqa: F811
    more = {"public_gradients": "precondition"} if kind == "public gradients" else {}
    run = run_by(PLANS.get(kind, PLANS["independent"]), tokenizer, tmp_path / "m", average=0.4, **more)
    before, after = weights_of(run), []
    guarantee = run.run(lambda progress: after.append(weights_of(run)))
    saved = weights_of(run)
    for name, first in before.items():
        if torch.equal(after[0][name], after[-1][name]):
            assert torch.equal(saved[name], first), "what is not trained stays as it was"
        else:
            mean = torch.stack([weights[name] for weights in after[-3:]]).double().mean(0)
            torch.testing.assert_close(saved[name], mean.float(), rtol=0.0, atol=1e-6)
    assert any(not torch.equal(saved[name], after[-1][name]) for name in saved)
    loaded = transformers.AutoModelForSequenceClassification.from_pretrained(tmp_path / "m")
    for name, value in loaded.named_parameters():
        assert torch.equal(value, saved[name])
    card = json.loads((tmp_path / "m" / "card.json").read_text())
    assert "each of the last 3 steps" in json.dumps(card)
    alone = run_by(PLANS.get(kind, PLANS["independent"]), tokenizer, tmp_path / "n", **more).promise()
    assert (guarantee.epsilon, guarantee.delta) == (alone.epsilon, alone.delta), "averaging costs nothing"


class StoppedError(Exception):
    pass


@pytest.mark.parametrize("stop", [2, 5])
def test_a_stopped_run_has_the_same_mean_to_the_bit(stop, tokenizer, tmp_path):  # noqa: F811
    """Before the first averaged step, and between two; the checkpoint is older than the stop."""

    def stopping(progress):
        if progress.step == stop:
            raise StoppedError

    whole = run_by(PLANS["banded"], tokenizer, tmp_path / "whole", average=0.5)
    whole.run()
    with pytest.raises(StoppedError):
        run_by(PLANS["banded"], tokenizer, tmp_path / "parts", average=0.5).run(stopping)
    resumed = run_by(PLANS["banded"], tokenizer, tmp_path / "parts", average=0.5)
    resumed.run(resume=True)
    for name, value in weights_of(whole).items():
        assert torch.equal(value, weights_of(resumed)[name]), name


@pytest.mark.parametrize(("share", "steps", "count"), [(None, 9, 0), (1e-9, 9, 1), (0.5, 9, 5), (1.0, 9, 9)])
def test_a_share_is_a_number_of_steps(share, steps, count):
    assert averaged_steps(share, steps) == count
    parameter = torch.nn.Parameter(torch.zeros(2))
    average = WeightAverage.of({"w": parameter}, share, steps)
    for done in range(1, steps + 1):
        parameter.data.fill_(float(done))
        average.add(done)
    average.put()
    expected = sum(range(steps - count + 1, steps + 1)) / count if count else steps
    assert parameter.tolist() == pytest.approx([expected] * 2)


@pytest.mark.parametrize("share", [0.0, -0.5, 1.5, float("nan")])
def test_an_impossible_share_is_refused(share):
    with pytest.raises(BadParameterError) as caught:
        TrainingSettings(average=share)
    assert caught.value.code == "impossible-average"
