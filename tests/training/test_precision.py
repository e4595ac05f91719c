"""Layers with 16 bits, layers that are computed again, and memory that runs out: the promise is the same."""

from __future__ import annotations

import json

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from tacit.errors import BadInputError, BadParameterError  # noqa: E402
from tacit.training.clipping import FlatClipping  # noqa: E402
from tacit.training.gradients import UnsupportedModelError, choose  # noqa: E402
from tacit.training.plan import TrainingPlan  # noqa: E402
from tacit.training.recomputing import compute_again  # noqa: E402
from tacit.training.run import TrainingRun, TrainingSettings  # noqa: E402
from tacit.training.sixteen import ShapeTrial, collated, in_sixteen, shapes_of  # noqa: E402
from tacit.training.step import PrivateStep  # noqa: E402
from tacit.training.strategies import apply_strategy  # noqa: E402
from tacit.training.tasks import Classification, task_named  # noqa: E402
from tacit.training.team import Team  # noqa: E402
from tests.training.test_run import tokenizer  # noqa: E402, F401
from tests.training.test_tasks import ROWS, model_for  # noqa: E402
from tests.training.zoo import batch, build  # noqa: E402

CPU = torch.device("cpu")


def trained(name, words, folder, *, strategy="full", private=True, dropout=True, **settings):
    rows = ROWS[name] * 8
    task = task_named(name)(length=32)
    task.learn(rows)
    torch.manual_seed(0)
    model = apply_strategy(model_for(task, words), strategy, rank=2)
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout) and not dropout:
            module.p = 0.0
    plan = TrainingPlan(len(rows), 8, 2, 1.0, 1e-3)
    if not private:
        plan = TrainingPlan.without_privacy(records=len(rows), batch=8, epochs=0.5)
    chosen = TrainingSettings(learning_rate=1e-2, model="tiny", strategy=strategy, **settings)
    run = TrainingRun(task, model, words, rows, plan, chosen, folder, seed=1)
    run.run()
    return {n: p.detach() for n, p in run.model.named_parameters()}, run


def distance(some, others):
    return float(torch.cat([(some[name] - others[name]).flatten() for name in some]).norm())


# 16 bits --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "strategy"), [("classify", "full"), ("classify", "head"), ("write", "lora"), ("answer", "full")]
)
def test_layers_with_16_bits_learn_nearly_the_same(name, strategy, tokenizer, tmp_path):  # noqa: F811
    usual, _ = trained(name, tokenizer, tmp_path / "usual", strategy=strategy)
    weights, run = trained(name, tokenizer, tmp_path / "bits", strategy=strategy, precision="bf16", physical=32)
    assert {value.dtype for value in weights.values()} == {torch.float32}
    size = float(torch.cat([value.flatten() for value in usual.values()]).norm())
    assert 0 < distance(usual, weights) < 0.1 * size
    card = json.loads((tmp_path / "bits" / "card.json").read_text(encoding="utf-8"))
    assert "bfloat16" in json.dumps(card)
    assert run.checked.deviation < 1e-5


def test_training_without_noise_knows_16_bits_too(tokenizer, tmp_path):  # noqa: F811
    usual, _ = trained("classify", tokenizer, tmp_path / "usual", private=False)
    weights, _ = trained("classify", tokenizer, tmp_path / "bits", private=False, precision="bf16")
    assert distance(usual, weights) > 0


def step_of(rows, words, *, physical, bound=0.05):
    """A step over these rows with 16 bits whose noise is so small that it cannot be seen."""
    task = Classification(length=32, labels=["neg", "pos"])
    torch.manual_seed(0)
    model = model_for(task, words).eval()
    encoded = [task.encode(row, words, train=True) for row in rows]
    engine, _ = choose(model, task.loss, task.probes(words))
    engine.loss = in_sixteen(engine.loss, CPU)
    trial = ShapeTrial(engine, model, task, words, CPU)
    trial(physical)
    plan = TrainingPlan(len(rows), len(rows), 1, 1.0, 1e-3)
    step = PrivateStep(
        plan, lambda ids: collated(task, [encoded[i] for i in ids], words), physical,
        lengths=shapes_of(encoded, 32), shapes=trial, engine=engine, clipping=FlatClipping(bound),
    )  # fmt: skip
    sums = {name: torch.zeros_like(p) for name, p in engine.parameters.items()}
    step.over_parts(np.arange(len(rows)), lambda part: step._add(part, sums))
    return sums


@pytest.mark.parametrize("removed", [0, 3, 8])
def test_with_16_bits_one_record_moves_the_sum_by_no_more_than_the_bound(removed, tokenizer):  # noqa: F811
    """Also where it is much longer than the others, and shares a batch with them."""
    words = ["good fine film", "bad", "the film", "a " * 14 + "film", "great", "poor " * 20, "fine", "awful", "bad a"]
    rows = [{"text": text, "label": "pos" if i % 2 else "neg"} for i, text in enumerate(words)]
    all_of_them = step_of(rows, tokenizer, physical=4)
    without = step_of(rows[:removed] + rows[removed + 1 :], tokenizer, physical=4)
    moved = distance(all_of_them, without)
    assert 0.04 < moved <= 0.05


class MixesALittle(torch.nn.Module):
    """Known wrong: what a record gives depends on the others, in the third digit."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, **inputs):
        made = self.inner(**inputs)
        made.logits = made.logits * (1.0 + 1e-3 * inputs["input_ids"].float().mean())
        return made


def test_16_bits_are_refused_where_a_record_depends_on_those_beside_it(tokenizer):  # noqa: F811
    task = Classification(length=32, labels=["neg", "pos"])
    torch.manual_seed(0)
    model = model_for(task, tokenizer).eval()
    engine, _ = choose(model, task.loss, task.probes(tokenizer))
    engine.loss = in_sixteen(lambda network, numbers: task.loss(MixesALittle(network), numbers), CPU)
    with pytest.raises(UnsupportedModelError, match="beside it"):
        ShapeTrial(engine, model, task, tokenizer, CPU)(4)


@pytest.mark.parametrize("alone", [False, True], ids=["records", "units"])
def test_memory_for_16_bits_is_tried_on_made_up_rows_of_the_largest_shape(alone, tokenizer):  # noqa: F811
    """With dropout, which needs memory too; then no record can be what makes a part smaller for the others."""
    task = Classification(length=32, labels=["neg", "pos"])
    torch.manual_seed(0)
    model = model_for(task, tokenizer).eval()
    engine, _ = choose(model, task.loss, task.probes(tokenizer))
    seen, said = [], []

    def limited(network, numbers):
        seen.append((*numbers["input_ids"].shape, network.training))
        if len(numbers["input_ids"]) > 3:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")
        return task.loss(network, numbers)

    engine.loss = in_sixteen(limited, CPU)
    trial = ShapeTrial(engine, model, task, tokenizer, CPU)
    rows, deviation = trial.fitting(8, said.append, Team(), alone=alone, shrinks=True)
    assert (rows, len(said), model.training) == (2, 2, False)
    assert deviation < 1e-5
    assert seen[:3] == [(8, 32, True), (4, 32, True), (2, 32, True)]
    with pytest.raises(torch.OutOfMemoryError):
        trial.fitting(8, said.append, Team(), alone=alone, shrinks=False)


def test_a_process_that_agreed_on_16_bit_shapes_takes_no_fewer_rows_alone():
    """Another process would then compute the same record in another shape."""

    def no_memory(records):
        raise torch.OutOfMemoryError("CUDA out of memory")

    step = PrivateStep(TrainingPlan(40, 8, 2, 1.0, 1e-3), None, 4, engine=None, clipping=None, agreed=True)
    with pytest.raises(BadInputError, match="4 examples at a time do not fit"):
        step.over_parts(np.arange(8), no_memory)
    assert step.physical == 4


# Layers that are computed again ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("lora", [False, True], ids=["full", "lora"])
@pytest.mark.parametrize("name", ["bert", "t5, tied", "gpt2, tied", "llama", "bart, tied"])
def test_layers_that_are_computed_again_give_the_same_gradients(name, lora):
    """With dropout, which is the same the second time."""
    model, loss = build(name, lora=lora)
    probes = [batch(3), batch(5, seed=3)]
    engine, _ = choose(model, loss, probes, "taps")
    model.train()
    results = []
    for again in (False, True):
        if again:
            compute_again(model, engine, probes)
        torch.manual_seed(7)
        results.append(engine.run(batch(6, seed=9)))
    kept, recomputed = results
    torch.testing.assert_close(recomputed.losses, kept.losses)
    assert set(recomputed.squared_norms) == set(kept.squared_norms)
    for parameter, value in kept.squared_norms.items():
        torch.testing.assert_close(recomputed.squared_norms[parameter], value, rtol=1e-4, atol=1e-9)
    factors = dict.fromkeys(kept.squared_norms, torch.linspace(0.2, 1.0, 6))
    sums = kept.weighted_sums(factors)
    for parameter, value in recomputed.weighted_sums(factors).items():
        torch.testing.assert_close(value, sums[parameter], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("private", [True, False], ids=["private", "without noise"])
def test_a_run_with_layers_that_are_computed_again_ends_with_the_same_weights(private, tokenizer, tmp_path):  # noqa: F811
    kept, _ = trained("write", tokenizer, tmp_path / "kept", private=private)
    again, _ = trained("write", tokenizer, tmp_path / "again", private=private, gradient_checkpointing=True)
    assert distance(kept, again) < 1e-5


def test_other_engines_do_not_compute_layers_again():
    model, loss = build("bert")
    engine, _ = choose(model, loss, [batch(3), batch(5, seed=3)], "loop")
    with pytest.raises(BadParameterError, match="by the engine taps"):
        compute_again(model, engine, [])


# Out of memory --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("precision", ["float32", "bf16"])
@pytest.mark.parametrize("when", ["forward", "sums"])
def test_out_of_memory_changes_only_the_size_of_parts(when, precision, tokenizer, tmp_path, monkeypatch):  # noqa: F811
    """Wherever it runs out: a part that failed has left nothing in the sums."""
    small, _ = trained("classify", tokenizer, tmp_path / "small", physical=2, precision=precision, dropout=False)
    from tacit.training.gradients.examples import PerExample
    from tacit.training.gradients.taps import Taps

    def no_memory(size):
        if size > 3:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")

    # Not while the model is checked, which is done with five records.
    run, add = Taps.run, PerExample.weighted_sums
    failing = []

    def failing_run(self, numbers):
        result = run(self, numbers)
        if when == "forward" and failing:
            no_memory(len(result.losses))
        return result

    def failing_sums(self, factors):
        made = add(self, factors)
        if when == "sums" and failing:
            no_memory(len(self.losses))
        return made

    monkeypatch.setattr(Taps, "run", failing_run)
    monkeypatch.setattr(PerExample, "weighted_sums", failing_sums)
    monkeypatch.setattr(PrivateStep, "__post_init__", _then(PrivateStep.__post_init__, lambda: failing.append(1)))
    halved, run_of = trained("classify", tokenizer, tmp_path / "halved", physical=8, precision=precision, dropout=False)
    assert distance(small, halved) < 1e-5
    assert run_of.plan.guarantee(steps=2, secure=True, what="", parameters={}, trials=1).is_private


def _then(first, second):
    def both(self):
        first(self)
        second()

    return both
