"""One record can neither stop a run nor spoil what the others add: that a run ended would show that it was there."""

from __future__ import annotations

import math

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from tacit.noise.source import StreamKey  # noqa: E402
from tacit.training.clipping import (  # noqa: E402
    AutomaticClipping,
    DampedClipping,
    FlatClipping,
    LayerClipping,
    QuantileClipping,
)
from tacit.training.gradients import PerExample, choose  # noqa: E402
from tacit.training.gradients.check import ENGINES  # noqa: E402
from tacit.training.plan import TrainingPlan  # noqa: E402
from tacit.training.run import TrainingRun, TrainingSettings  # noqa: E402
from tacit.training.step import NotFiniteError, PrivateStep  # noqa: E402
from tacit.training.tasks import Regression  # noqa: E402
from tests.training.test_gradients import Recurrent, recurrent_loss  # noqa: E402
from tests.training.test_run import rows, tiny, tokenizer  # noqa: E402, F401
from tests.training.zoo import batch, build  # noqa: E402

CLIPPINGS = [
    FlatClipping(1.0),
    LayerClipping(1.0, 100),
    AutomaticClipping(1.0),
    DampedClipping(1.0),
    QuantileClipping(1.0),
]


@pytest.mark.parametrize("broken", [math.nan, math.inf, 1e38])
@pytest.mark.parametrize("clipping", CLIPPINGS, ids=lambda clipping: type(clipping).__name__)
def test_a8_a_gradient_that_is_not_finite_adds_nothing(clipping, broken):
    gradients = {"w": torch.ones(3, 2, 2), "v": torch.ones(3, 4)}
    gradients["w"][1, 0, 0] = broken
    result = PerExample.of_gradients(torch.zeros(3), gradients)
    clipped = clipping.clip(result.safe_squared_norms)
    assert clipped.lost == 1
    assert clipped.shortened == 3, "it counts as longer than any bound"
    assert all(float(factors[1]) == 0.0 for factors in clipped.factors.values())
    others = PerExample.of_gradients(torch.zeros(2), {name: value[[0, 2]] for name, value in gradients.items()})
    expected = others.weighted_sums(clipping.clip(others.safe_squared_norms).factors)
    for name, value in result.weighted_sums(clipped.factors).items():
        torch.testing.assert_close(value, expected[name])


@pytest.mark.parametrize("clipping", CLIPPINGS, ids=lambda clipping: type(clipping).__name__)
@pytest.mark.parametrize("engine", ENGINES)
def test_a8_a_poisonous_record_leaves_the_sum_of_every_engine_as_it_was(engine, clipping):
    if engine == "opacus":
        pytest.importorskip("opacus")
    if engine == "vmap":  # which cannot run a BERT
        torch.manual_seed(0)
        model, loss = Recurrent(), recurrent_loss
    else:
        model, loss = build("bert")
    model.eval()

    def poisoned(network, examples):
        return loss(network, examples) * examples["factor"]

    def with_factors(examples, poison=None):
        factor = torch.ones(len(examples["input_ids"]))
        if poison is not None:
            factor[poison] = math.inf
        return {**examples, "factor": factor}

    probes = [with_factors(batch(3)), with_factors(batch(5, seed=3))]
    chosen, _ = choose(model, poisoned, probes, engine)
    whole = batch(6, seed=9)
    healthy = {name: value[:5] for name, value in whole.items()}
    results = []
    for examples in (with_factors(whole, 5), with_factors(healthy)):
        outcome = chosen.run(examples)
        results.append(outcome.weighted_sums(clipping.clip(outcome.safe_squared_norms).factors))
    for name, value in results[1].items():
        torch.testing.assert_close(results[0][name], value, rtol=1e-4, atol=1e-6)
        assert bool(torch.isfinite(results[0][name]).all())


def regression_run(words, folder, data, **task):
    made = Regression(length=16, **task)
    made.learn(data)
    warned = []
    plan = TrainingPlan(len(data), 20, 4, 1.0, 1e-3)
    run = TrainingRun(
        made, tiny(words, made), words, data, plan, TrainingSettings(learning_rate=1e-2, model="tiny"), folder, seed=1,
        warn=warned.append,
    )  # fmt: skip
    return run, warned


def numbers(count=60):
    return [{"text": row["text"], "label": "1" if row["label"] == "pos" else "-1"} for row in rows(count)]


@pytest.mark.parametrize("clipping", ["flat", "per-layer", "automatic", "quantile"])
def test_a8_neighboring_data_with_a_poisonous_record_still_gives_a_model(clipping, tokenizer, tmp_path):  # noqa: F811
    data = numbers()
    for name, records in (("clean", data), ("poisoned", [*data, {"text": "good film", "label": "1e30"}])):
        run, warned = regression_run(tokenizer, tmp_path / name, records)
        # Every record is in every step, so that the poison is surely drawn.
        run.plan = TrainingPlan(len(records), len(records), 4, 1.0, 1e-3)
        run.settings = TrainingSettings(learning_rate=1e-2, model="tiny", clipping=clipping)
        run.seed = None
        promised = run.run()
        assert promised.delta == 1e-3
        assert (tmp_path / name / "model.safetensors").exists()
        assert all(bool(torch.isfinite(p).all()) for p in run.model.parameters())
        assert ("counts as none" in " ".join(warned)) == (name == "poisoned")
        log = (tmp_path / f"{name}.private" / "log.csv").read_text()
        assert "nan" not in log
        assert "inf" not in log


def test_a8_labels_are_kept_inside_the_range_that_is_known_beforehand(tokenizer, tmp_path):  # noqa: F811
    data = [*numbers(), {"text": "good film", "label": "1e30"}, {"text": "bad film", "label": "-7"}]
    task = Regression(mean=0.0, scale=2.0, bounded=True)
    ends = [task.encode(row, tokenizer, train=True)["label"] for row in data[-2:]]
    assert ends == [1.0, -1.0]
    run, warned = regression_run(tokenizer, tmp_path / "m", data, mean=0.0, scale=2.0, bounded=True)
    run.run()
    assert "2 of 62 labels" in warned[0]
    assert not any("counts as none" in message for message in warned)
    assert "62" not in str(run.promise()), "how many there were is private"


def test_a8_the_quantile_counts_a_lost_record_like_any_long_one():
    """One record moves the count by one half, whatever its gradient."""
    clipping = QuantileClipping(1.0)
    short, broken = torch.full((5,), 0.01), torch.tensor([0.01, 0.01, 0.01, 0.01, math.nan])
    counts = [5 - clipping.clip({"w": squared}).shortened for squared in (short, broken)]
    assert counts == [5, 4]


def test_a8_weights_that_leave_the_numbers_stop_a_run(tokenizer, tmp_path):  # noqa: F811
    run, _ = regression_run(tokenizer, tmp_path / "m", numbers())
    run.settings = TrainingSettings(learning_rate=1e38, optimizer="sgd", model="tiny")
    run.plan = TrainingPlan(60, 20, 4, 1000.0, 1e-3)
    with pytest.raises(NotFiniteError, match="lower the learning rate"):
        run.run()


def test_a8_a_step_of_nothing_but_broken_records_is_noise_alone():
    model, loss = build("bert")

    def broken(network, examples):
        return loss(network, examples) * examples["factor"]

    def examples(size, factor):
        return {**batch(size), "factor": torch.full((size,), factor)}

    engine, _ = choose(model, broken, [examples(3, 1.0), examples(5, 1.0)])
    results = []
    for records, factor in ((4, math.nan), (0, 1.0)):
        step = PrivateStep(
            plan=TrainingPlan(4, 4, 1, 1.0, 0.01), collate=lambda picked, factor=factor: examples(len(picked), factor),
            engine=engine, clipping=FlatClipping(1.0),
        )  # fmt: skip
        step.over_parts = step.over_parts if records else lambda *_: torch.zeros(2, dtype=torch.float64)
        step.run(0, StreamKey.from_test_seed(2))
        results.append({name: p.grad.clone() for name, p in engine.parameters.items()})
    for name, value in results[1].items():
        torch.testing.assert_close(results[0][name], value)
