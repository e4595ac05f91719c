"""Public gradients: norms of scaled gradients are exact, no record moves a step by more than the bound, runs resume."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("dp_accounting")

from tacit.cli.main import run as run_command  # noqa: E402
from tacit.noise.source import StreamKey  # noqa: E402
from tacit.training.adam_bc import AdamBC, squared_weights  # noqa: E402
from tacit.training.clipping import FlatClipping  # noqa: E402
from tacit.training.gradients import choose  # noqa: E402
from tacit.training.gradients.examples import Outer, ParameterUses, PerExample  # noqa: E402
from tacit.training.gradients.loop import Loop  # noqa: E402
from tacit.training.gradients.scaling import scaled  # noqa: E402
from tacit.training.plan import TrainingPlan  # noqa: E402
from tacit.training.public_gradients import Blended, Preconditioned, scales_of  # noqa: E402
from tacit.training.step import PrivateStep  # noqa: E402
from tests.literature.small_files import write_small_files, write_small_models  # noqa: E402
from tests.training.test_run import make_run, rows, tokenizer  # noqa: E402, F401
from tests.training.zoo import batch, build  # noqa: E402


def some_scales(engine, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return {name: torch.exp(2.0 * torch.randn(p.shape, generator=generator)) for name, p in engine.parameters.items()}


@pytest.mark.parametrize("family", ["bert", "gpt2, tied", "t5, tied"])
def test_scaled_norms_are_those_of_scaled_gradients(family):
    model, loss = build(family)
    model.eval()
    engine, _ = choose(model, loss, [batch(3), batch(5, seed=3)])
    examples = batch(6, seed=7)
    scales = some_scales(engine)
    result = scaled(engine.run(examples), scales)
    alone = [Loop(model, loss).run({name: value[i : i + 1] for name, value in examples.items()}) for i in range(6)]
    sums_alone = [each.weighted_sums(dict.fromkeys(each.squared_norms, torch.ones(1))) for each in alone]
    explicit = [{name: value * scales[name] for name, value in each.items()} for each in sums_alone]
    exact = torch.tensor([math.sqrt(sum(float(g.double().square().sum()) for g in each.values())) for each in explicit])
    norms = torch.stack(list(result.safe_squared_norms.values())).double().sum(0).sqrt()
    torch.testing.assert_close(norms, exact.double(), rtol=1e-3, atol=0)
    assert bool((norms >= exact * (1 - 1e-6)).all()), "never below the truth"
    factors = torch.rand(6, generator=torch.Generator().manual_seed(1))
    sums = result.weighted_sums(dict.fromkeys(result.safe_squared_norms, factors))
    for name, value in sums.items():
        wanted = sum(factor * each[name] for factor, each in zip(factors, explicit, strict=True))
        torch.testing.assert_close(value, wanted, rtol=1e-3, atol=1e-5)


def test_slices_and_factors_of_sixteen_bits_are_counted_exactly():
    """A stack of two matrices, one use of each, with factors of 16 bits: what is clipped is what is added up."""
    generator = torch.Generator().manual_seed(0)

    def use():
        return Outer(*(torch.randn(3, 5, width, generator=generator).to(torch.bfloat16) for width in (4, 6)))

    first, second = use(), use()
    shape = torch.Size((2, 4, 6))
    record = ParameterUses(slices={0: ParameterUses([first]), 1: ParameterUses([second])})
    scale = torch.exp(2.0 * torch.randn(shape, generator=generator))
    result = scaled(PerExample(torch.zeros(3), {}, {"w": record}, {"w": shape}), {"w": scale})
    gradients = torch.stack([u.rows.double().transpose(1, 2) @ u.columns.double() for u in (first, second)], 1)
    exact = (gradients * scale.double()).flatten(1).norm(dim=1)
    norms = result.safe_squared_norms["w"].double().sqrt()
    torch.testing.assert_close(norms, exact, rtol=1e-4, atol=0)
    assert bool((norms >= exact * (1 - 1e-7)).all())
    total = result.weighted_sums({"w": torch.tensor([1.0, 0.5, 0.0])})["w"].double()
    wanted = (gradients[0] + 0.5 * gradients[1]) * scale.double()
    torch.testing.assert_close(total, wanted, rtol=1e-4, atol=1e-5)


class ClippedFirst(Preconditioned):
    """The mistake: gradients are scaled after they were clipped, as an optimizer would do it before the noise."""

    def prepared(self, gradients):
        made = scaled(gradients, self._scales)
        made.safe_squared_norms = gradients.safe_squared_norms
        return made


@pytest.mark.parametrize(("kind", "holds"), [(Preconditioned, True), (Blended, True), (ClippedFirst, False)])
def test_no_record_moves_a_step_by_more_than_the_bound(kind, holds):
    """All records left out in turn, with the same key: the largest change of the sum, without its noise."""
    model, loss = build("bert")
    model.eval()
    engine, _ = choose(model, loss, [batch(3), batch(5, seed=3)])
    private, public = batch(8, seed=11), batch(12, seed=12)

    def taken(source, records):
        return {name: value[list(records)] for name, value in source.items()}

    plan = TrainingPlan(8, 8, 10, 1e-9, 1e-4)
    key = StreamKey.from_test_seed(0)

    def gradient(left_out):
        helper = kind(plan, lambda r: taken(public, r), model=model, loss=loss, rows=12)
        step = PrivateStep(
            plan, lambda r: taken(private, r), 8, engine=engine, clipping=FlatClipping(0.5), public=helper,
            draw=lambda step, key: np.array([i for i in range(8) if i != left_out]),
        )  # fmt: skip
        step.run(3, key)
        return torch.cat([8.0 * p.grad.double().flatten() for p in engine.parameters.values()])

    whole = gradient(None)
    largest = max(float((whole - gradient(i)).norm()) for i in range(8))
    assert (largest <= 0.5 * (1 + 1e-5)) is holds
    assert largest > 0.1


def test_scales_keep_the_length_of_the_public_gradient():
    gradients = {"a": torch.tensor([1.0, 10.0, 0.0]), "b": torch.tensor([[100.0]])}
    scales = scales_of({name: value.square() for name, value in gradients.items()})
    before, after = (
        math.sqrt(sum(float((value * by[name]).square().sum()) for name, value in gradients.items()))
        for by in ({"a": torch.ones(3), "b": torch.ones(1, 1)}, scales)
    )
    assert after == pytest.approx(before, rel=1e-5)
    assert float(scales["a"][0]) > float(scales["a"][1]) > float(scales["b"])
    assert all(bool((value == 1).all()) for value in scales_of({"a": torch.zeros(3)}).values())


def test_adam_bc_without_noise_is_adam():
    """The same steps as torch's Adam, whose small constant in the denominator is not there."""
    ours, theirs = (torch.nn.Parameter(torch.tensor([1.0, -2.0, 3.0])) for _ in range(2))
    optimizers = AdamBC([ours], 0.1), torch.optim.Adam([theirs], 0.1, eps=0.0)
    generator = torch.Generator().manual_seed(0)
    for _ in range(20):
        gradient = torch.randn(3, generator=generator)
        for parameter, optimizer in zip((ours, theirs), optimizers, strict=True):
            parameter.grad = gradient.clone()
            optimizer.step()
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-6)


def test_adam_bc_takes_the_noise_off_the_second_moment():
    """Gradients of 0.1 and 0.2 under noise of 0.05: what is left of the second moment is the square of the gradient.
    20,000 numbers of each kind, so the mean is exact to far below 1 %."""
    sizes, noise, count = (0.1, 0.2), 0.05, 20_000
    generator = torch.Generator().manual_seed(0)
    parameters = [torch.nn.Parameter(torch.zeros(count)) for _ in sizes]
    optimizer = AdamBC(parameters, 1e-3)
    optimizer.deviation = lambda: noise
    for _ in range(300):
        for parameter, size in zip(parameters, sizes, strict=True):
            parameter.grad = size + noise * torch.randn(count, generator=generator)
        optimizer.step()
    for parameter, size in zip(parameters, sizes, strict=True):
        state = optimizer.state[parameter]
        weight = 1 - 0.999**300
        corrected = float((state["square"] / weight).mean()) - state["noise"] / weight
        assert corrected == pytest.approx(size**2, rel=0.01)
    assert squared_weights(0.999, 1) == pytest.approx(1.0)
    weights = [(1 - 0.9) * 0.9**i / (1 - 0.9**7) for i in range(7)]
    assert squared_weights(0.9, 7) == pytest.approx(sum(w * w for w in weights))


@pytest.mark.parametrize("use", ["precondition", "blend"])
def test_a_resumed_run_is_the_same_run(tokenizer, tmp_path, use):  # noqa: F811
    def made(folder):
        settings = {"public_gradients": use, "optimizer": "adam-bc"}
        return make_run(tokenizer, tmp_path / folder, seed=1, steps=8, settings=settings, public_rows=rows(40, seed=5))

    whole = made("whole")
    whole.run()

    class StoppedError(Exception):
        pass

    def stop_at_7(progress):
        if progress.step == 7:
            raise StoppedError

    with pytest.raises(StoppedError):
        made("parts").run(stop_at_7)
    second = made("parts")
    second.run(resume=True)
    for a, b in zip(whole.model.parameters(), second.model.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-7)


def test_the_command_names_the_public_rows_on_the_card(tmp_path, monkeypatch):
    write_small_files(tmp_path)
    write_small_models(tmp_path, ["tiny-classifier"])
    monkeypatch.chdir(tmp_path)
    command = (
        "train classify notes.csv --model tiny-classifier --batch 160 --epochs 3 --epsilon 3 -q "
        "--public-rows others.csv --optimizer adam-bc -o"
    )
    assert run_command([*command.split(), "model"]) == 0
    guarantee = json.loads((tmp_path / "model" / "card.json").read_text())["guarantee"]
    assert 2.9 < guarantee["epsilon"] <= 3
    assert guarantee["parameters"]["public gradients"] == "precondition"
    assert any("160 rows of others.csv, declared public" in each["source"] for each in guarantee["provenance"])
    refused = "train classify notes.csv --model tiny-classifier --epsilon 3 -q --public-gradients blend -o other"
    assert run_command(refused.split()) != 0
