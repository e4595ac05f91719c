"""The gradient of a unit of several rows is the sum of theirs, and is clipped once: all engines, all families of
models."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from hypothesis import given  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

from tacit.training.clipping import FlatClipping  # noqa: E402
from tacit.training.gradients import UNITS, UnsupportedModelError, check, choose  # noqa: E402
from tacit.training.gradients.check import ENGINES  # noqa: E402
from tacit.training.gradients.examples import Outer, ParameterUses, squared_norm  # noqa: E402
from tacit.training.gradients.named_units import Units  # noqa: E402
from tacit.training.gradients.taps import Taps  # noqa: E402
from tests.training.zoo import MODELS, batch, build  # noqa: E402


def of_units(rows, units, *, seed=1, length=11):
    return {**batch(rows, seed=seed, length=length), UNITS: torch.tensor(units)}


PROBES = [of_units(3, [0, 0, 1]), of_units(5, [0, 1, 1, 1, 2], seed=3)]


def true_gradients(model, loss, examples):
    """Autograd adds up the losses of one unit, which is alone in its batch."""
    model.eval()
    parameters = {name: p for name, p in model.named_parameters() if p.requires_grad}
    gradients = []
    for unit in range(int(examples[UNITS].max()) + 1):
        own = {name: values[examples[UNITS] == unit] for name, values in examples.items() if name != UNITS}
        made = torch.autograd.grad(loss(model, own).sum(), list(parameters.values()), allow_unused=True)
        zeros = [torch.zeros_like(p) if g is None else g for g, p in zip(made, parameters.values(), strict=True)]
        gradients.append(torch.cat([g.flatten() for g in zeros]))
    return torch.stack(gradients), list(parameters)


def clipped_sum(engine, examples, bound):
    result = engine.run(examples)
    clipped = FlatClipping(bound).clip(result.safe_squared_norms)
    sums = result.weighted_sums(clipped.factors)
    whole = [sums.get(name, torch.zeros_like(p)) for name, p in engine.parameters.items()]
    exact = torch.stack(list(result.squared_norms.values())).sum(0).sqrt()
    return torch.cat([value.flatten() for value in whole]), clipped.norms, exact


@pytest.mark.parametrize("lora", [False, True], ids=["full", "lora"])
@pytest.mark.parametrize("name", MODELS)
def test_a_unit_is_clipped_by_the_norm_of_its_sum(name, lora):
    model, loss = build(name, lora=lora)
    model.eval()
    engine, result = choose(model, loss, PROBES)
    assert engine.name == "taps", result.refused
    # Rows of one unit need not stand together.
    examples = of_units(7, [2, 0, 1, 0, 0, 3, 1], seed=9)
    truth, _ = true_gradients(model, loss, examples)
    norms = truth.norm(dim=1)
    bound = float(norms.median())
    total, safe, exact = clipped_sum(engine, examples, bound)
    assert torch.allclose(exact, norms, rtol=1e-5)
    assert bool((safe >= norms * (1 - 1e-6)).all())
    expected = ((bound / safe).clamp(max=1.0)[:, None] * truth).sum(0)
    assert float((total - expected).norm()) < 2e-4 * bound * len(norms)


@pytest.mark.parametrize("engine_name", ["taps", "vmap", "loop", "opacus"])
def test_every_engine_gives_the_gradients_of_units(engine_name):
    if engine_name == "opacus":
        pytest.importorskip("opacus")
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Embedding(97, 12), torch.nn.Linear(12, 8), torch.nn.Tanh())
    model.append(torch.nn.Linear(8, 3))

    def loss(network, rows):
        logits = network(rows["input_ids"]).mean(1)
        return torch.nn.functional.cross_entropy(logits, rows["labels"], reduction="none")

    engine, result = choose(model, loss, PROBES, engine_name)
    assert engine.name == engine_name
    assert result.examples == 5
    later = check(engine, model, loss, [of_units(6, [1, 0, 1, 1, 2, 0], seed=4)])
    assert max(later.norm_deviation, later.sum_deviation) < 1e-6


def test_what_a_unit_adds_does_not_depend_on_the_units_beside_it():
    """Removing a unit of many rows, which is the longest of the batch, moves the sum by its own clipped gradient."""
    model, loss = build("bert masked, tied")
    model.eval()
    engine, _ = choose(model, loss, PROBES)
    everything = of_units(9, [0, 1, 1, 1, 1, 1, 2, 2, 3], seed=6)
    without = {name: values[everything[UNITS] != 1] for name, values in everything.items()}
    without[UNITS] = torch.tensor([0, 1, 1, 2])
    alone = {name: values[everything[UNITS] == 1] for name, values in everything.items()}
    alone[UNITS] = torch.zeros(5, dtype=torch.long)
    bound = 0.05
    whole, rest, own = (clipped_sum(engine, each, bound)[0] for each in (everything, without, alone))
    assert float((whole - rest).norm()) <= bound
    assert torch.allclose(whole - rest, own, atol=1e-6)


class ForgetsTheCrossTerm(Taps):
    """Known wrong: the rows of a unit as if their gradients stood at right angles."""

    name = "wrong"

    def run(self, examples):
        alone = {name: values for name, values in examples.items() if name != UNITS}
        result, rows = super().run(examples), super().run(alone)
        units = Units(examples[UNITS])
        result.squared_norms = {name: units.summed(norms) for name, norms in rows.squared_norms.items()}
        return result


def test_the_check_catches_rows_that_are_clipped_as_if_they_were_at_right_angles(monkeypatch):
    model, loss = build("bert")
    monkeypatch.setitem(ENGINES, "wrong", ForgetsTheCrossTerm)
    with pytest.raises(UnsupportedModelError, match="off by"):
        choose(model, loss, PROBES, "wrong")


def test_a_row_that_is_no_number_loses_its_unit_and_no_other():
    model, loss = build("bert")
    model.eval()
    engine, _ = choose(model, loss, PROBES)
    examples = of_units(5, [0, 0, 1, 1, 2], seed=8)

    def broken(model, rows):
        factor = torch.tensor([1.0, float("nan"), 1.0, 1.0, 1.0])
        return loss(model, rows) * factor

    engine.loss = broken
    result = engine.run(examples)
    clipped = FlatClipping(1.0).clip(result.safe_squared_norms)
    assert clipped.lost == 1
    assert float(next(iter(clipped.factors.values()))[0]) == 0.0
    sums = result.weighted_sums(clipped.factors)
    assert all(bool(torch.isfinite(value).all()) for value in sums.values())


@st.composite
def units_of_rows(draw):
    count = draw(st.integers(1, 4))
    rows = list(range(count)) + draw(st.lists(st.integers(0, count - 1), max_size=5))
    return draw(st.permutations(rows))


@given(units_of_rows(), st.integers(0, 10**6))
def test_joined_positions_have_the_norm_and_the_sum_of_the_written_out_gradients(of_rows, seed):
    """Outer products, dense and one-hot, direct gradients and slices, for any order of rows."""
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape):
        return torch.randn(*shape, generator=generator)

    rows = len(of_rows)
    left, right = normal(rows, 3, 4), normal(rows, 3, 5)
    ids, columns = torch.randint(0, 6, (rows, 3), generator=generator), normal(rows, 3, 5)
    direct = normal(rows, 2, 2)
    written_out = {
        "dense": torch.einsum("btr,btc->brc", left, right),
        "one-hot": torch.einsum("btr,btc->brc", torch.nn.functional.one_hot(ids, 6).float(), columns),
        "direct": direct,
    }
    records = {
        "dense": ParameterUses([Outer(left, right)]),
        "one-hot": ParameterUses([Outer(ids, columns)]),
        "direct": ParameterUses(direct=direct),
    }
    units = Units(torch.tensor(of_rows))
    for name, record in records.items():
        summed = torch.stack([
            written_out[name][[i for i, own in enumerate(of_rows) if own == unit]].sum(0) for unit in range(len(units))
        ])  # fmt: skip
        expected = summed.flatten(1).square().sum(1)
        for joined in (units.of(record), units.of(ParameterUses(slices={3: record}))):
            assert torch.allclose(squared_norm(joined, {}), expected, rtol=1e-4, atol=1e-4)
