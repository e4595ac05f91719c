"""The norm that is clipped is the norm of one example's gradient: all families of models, tied or not, LoRA or not."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from tacit.training.clipping import MARGIN  # noqa: E402
from tacit.training.gradients import UnsupportedModelError, check, choose  # noqa: E402
from tacit.training.gradients.check import ENGINES  # noqa: E402
from tacit.training.gradients.examples import (  # noqa: E402
    Outer,
    ParameterUses,
    PerExample,
    safe_squared_norm,
    size_of,
    squared_norm,
)
from tacit.training.gradients.loop import Loop  # noqa: E402
from tacit.training.gradients.taps import Taps  # noqa: E402
from tests.training.zoo import LENGTH, MODELS, batch, build  # noqa: E402

PROBES = [batch(3), batch(5, seed=3)]


@pytest.mark.parametrize("lora", [False, True], ids=["full", "lora"])
@pytest.mark.parametrize("name", MODELS)
def test_taps_are_exact(name, lora):
    model, loss = build(name, lora=lora)
    engine, result = choose(model, loss, PROBES)
    assert engine.name == "taps", result.refused
    # As many examples as positions, which must not be mistaken for one another.
    for size, length in ((LENGTH, LENGTH), (7, LENGTH), (2, 5)):
        later = check(engine, model, loss, [batch(size, length=length, seed=size)])
        assert max(later.norm_deviation, later.sum_deviation) < 1e-6, (size, length, later)


@pytest.mark.parametrize("name", ["bert", "gpt2, tied", "llama"])
def test_opacus_agrees(name):
    pytest.importorskip("opacus")
    model, loss = build(name)
    engine, result = choose(model, loss, PROBES, "opacus")
    assert engine.name == "opacus"
    assert result.norm_deviation < 1e-6


def test_training_mode_is_left_as_it_was_and_no_gradient_stays_behind():
    model, loss = build("bert")
    model.train()
    model.bert.embeddings.eval()
    before = {name: module.training for name, module in model.named_modules()}
    engine, _ = choose(model, loss, PROBES)
    engine.run(batch(4))
    assert {name: module.training for name, module in model.named_modules()} == before
    assert all(p.grad is None for p in model.parameters())


class Recurrent(torch.nn.Module):
    """A weight used at every step, and the embedding used once more at the end."""

    def __init__(self, *, cheat: str = "") -> None:
        super().__init__()
        self.words = torch.nn.Embedding(97, 12)
        self.step = torch.nn.Linear(12, 12)
        self.scale = torch.nn.Parameter(torch.ones(12))
        self.norm = torch.nn.BatchNorm1d(12) if cheat == "batch norm" else torch.nn.Identity()
        self.cheat = cheat

    def forward(self, ids):
        state = torch.zeros(len(ids), 12)
        for t in range(ids.shape[1]):
            state = torch.tanh(self.step(state) + self.words(ids[:, t]))
        state = self.norm(state * self.scale)
        if self.cheat == "functional":
            state = state @ torch.sin(self.step.weight)
        if self.cheat == "mean":
            state = state - state.mean(0)
        return state @ self.words.weight[:3].T if self.cheat == "slice" else state[:, :3]


def recurrent_loss(model, examples):
    return torch.nn.functional.cross_entropy(model(examples["input_ids"]), examples["labels"], reduction="none")


def test_weights_used_at_every_step_of_a_recurrent_network():
    torch.manual_seed(0)
    model = Recurrent()
    engine, result = choose(model, recurrent_loss, PROBES)
    assert engine.name == "taps", result.refused
    assert check(engine, model, recurrent_loss, [batch(11, length=13)]).passed


@pytest.mark.parametrize("cheat", ["functional", "slice"])
def test_a_parameter_that_reaches_the_loss_by_another_way_stops_taps_and_another_engine_takes_over(cheat):
    torch.manual_seed(0)
    model = Recurrent(cheat=cheat)
    with pytest.raises(UnsupportedModelError, match=r"step\.weight|words\.weight"):
        choose(model, recurrent_loss, PROBES, "taps")
    engine, result = choose(model, recurrent_loss, PROBES)
    assert engine.name in ("vmap", "loop")
    assert "taps" in result.refused
    assert result.passed


@pytest.mark.parametrize("cheat", ["batch norm", "mean"])
def test_a_model_that_mixes_the_examples_of_a_batch_is_never_run_in_batches(cheat):
    torch.manual_seed(0)
    model = Recurrent(cheat=cheat)
    if cheat == "batch norm":
        with pytest.raises(UnsupportedModelError, match="batch normalization"):
            choose(model, recurrent_loss, PROBES)
        return
    # One example at a time nothing can be mixed: its own mean is itself.
    engine, _ = choose(model, recurrent_loss, PROBES)
    assert engine.name in ("vmap", "loop")
    with pytest.raises(UnsupportedModelError, match="off by"):
        choose(model, recurrent_loss, PROBES, "taps")


class ForgetsTheCrossTerm(Taps):
    """Known wrong: the two uses of a tied embedding clipped as if they were two parameters."""

    name = "wrong"

    def run(self, examples):
        result = super().run(examples)
        for name, record in result._records.items():
            if len(record.outer) == 2:
                from tacit.training.gradients.examples import ParameterUses, squared_norm

                parts = [squared_norm(ParameterUses(outer=[use]), {}) for use in record.outer]
                result.squared_norms[name] = parts[0] + parts[1]
        return result


def test_the_check_catches_a_forgotten_cross_term(monkeypatch):
    model, loss = build("gpt2, tied")
    monkeypatch.setitem(ENGINES, "wrong", ForgetsTheCrossTerm)
    with pytest.raises(UnsupportedModelError, match="wte"):
        choose(model, loss, PROBES, "wrong")


def test_losses_that_average_over_the_batch_are_refused():
    model, loss = build("bert")
    with pytest.raises(Exception, match="one value per example"):
        choose(model, lambda m, b: loss(m, b).mean(), PROBES, "taps")


def test_a_use_that_was_never_checked_is_refused():
    model, loss = build("bert")
    engine = Taps(model, loss)
    with pytest.raises(UnsupportedModelError, match="did not occur"):
        engine.run(batch(4))


def test_frozen_parts_have_no_gradient_and_the_rest_is_exact():
    model, loss = build("bert")
    for name, parameter in model.named_parameters():
        parameter.requires_grad_("classifier" in name or "layer.1" in name)
    engine, result = choose(model, loss, PROBES)
    assert engine.name == "taps"
    assert result.parameters == sum(p.requires_grad for p in model.parameters())
    outcome = engine.run(batch(4)).squared_norms
    assert set(outcome) <= set(engine.parameters)


def test_the_loop_is_what_autograd_says():
    model, loss = build("bert")
    model.eval()
    examples = batch(4)
    alone = Loop(model, loss).run(examples)
    loss(model, examples).sum().backward()
    sums = alone.weighted_sums(dict.fromkeys(alone.squared_norms, torch.ones(size_of(examples))))
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(sums[name], parameter.grad, rtol=1e-4, atol=1e-6)


class KeepsStatistics(Recurrent):
    """Nothing is mixed within a batch, and yet a mean of the examples is saved with the model."""

    def __init__(self, *, tracked: bool) -> None:
        super().__init__()
        self.between = torch.nn.InstanceNorm1d(1, track_running_stats=tracked)

    def forward(self, ids):
        return self.between(super().forward(ids)[:, None])[:, 0]


def test_a_model_that_keeps_statistics_of_the_examples_is_refused():
    torch.manual_seed(0)
    model = KeepsStatistics(tracked=True).eval()
    before = {name: value.clone() for name, value in model.named_buffers()}
    with pytest.raises(UnsupportedModelError, match=r"'between' changes 'between\.running_mean'"):
        choose(model, recurrent_loss, PROBES)
    assert all(torch.equal(value, before[name]) for name, value in model.named_buffers())
    assert not any(module.training for module in model.modules())
    choose(KeepsStatistics(tracked=False), recurrent_loss, PROBES)


@pytest.mark.parametrize("width", [64, 512])
@pytest.mark.parametrize("ratio", [1.0, 10.0, 105.0, 3000.0])
def test_positions_that_cancel_do_not_hide_the_length_of_a_gradient(ratio, width):
    """The squared norm comes from products that cancel: in single precision it may be far too small."""
    outcome = 0.0
    for seed in range(50):
        generator = torch.Generator().manual_seed(seed)
        row, column = (torch.randn(1, 1, width, generator=generator) for _ in range(2))
        rows = torch.cat([row * ratio, row * (1.0 - ratio)], 1) + 0.01 * torch.randn(1, 2, width, generator=generator)
        record = ParameterUses(outer=[Outer(rows, torch.cat([column, column], 1))])
        grams: dict = {}
        squared = squared_norm(record, grams)
        safe = float(safe_squared_norm(record, squared, grams).double().sqrt())
        exact = float(torch.bmm(rows.double().transpose(1, 2), record.outer[0].columns.double()).norm())
        result = PerExample(torch.zeros(1), {"w": squared}, {"w": record}, {"w": torch.Size((width, width))})
        added = float(result.weighted_sums({"w": torch.ones(1)})["w"].double().norm())
        outcome = max(outcome, exact - float(squared.double().sqrt()))
        assert safe >= max(exact, added) * (1 - MARGIN / 2)
        assert ratio > 1.0 or safe <= 1.001 * exact, "what does not cancel is hardly shortened"
    assert ratio < 100.0 or outcome > MARGIN * exact, "the computed norm alone is not enough"
