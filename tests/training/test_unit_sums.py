"""A unit of several rows is clipped as one: norm and sum are those of the gradient that its rows have together."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from tacit.training.clipping import FlatClipping  # noqa: E402
from tacit.training.gradients import choose  # noqa: E402
from tacit.training.gradients.check import ENGINES  # noqa: E402
from tacit.training.gradients.examples import without_dropout  # noqa: E402
from tacit.training.gradients.scaling import scaled  # noqa: E402
from tacit.training.gradients.unit_sums import (  # noqa: E402
    SHARE,
    gradient_of_unit,
    summed_by_unit,
    unit_deviation,
    weighted,
)
from tacit.training.gradients.units import Units  # noqa: E402
from tests.training.test_gradients import Recurrent, recurrent_loss  # noqa: E402
from tests.training.zoo import batch, build  # noqa: E402

PROBES = [batch(3), batch(5, seed=3)]
UNIT_OF_ROW = torch.tensor([2, 0, 2, 1, 3, 2, 0])
"""Units of 3, 2, 1 and 1 rows, in no order."""
UNITS = 4


def of_unit(examples, unit):
    return {name: values[unit == UNIT_OF_ROW] for name, values in examples.items()}


def with_shares(examples):
    counts = torch.bincount(UNIT_OF_ROW)
    return {**examples, SHARE: 1.0 / counts[UNIT_OF_ROW]}


def gradients_of_means(model, loss, examples):
    """Of each unit: the gradient of the mean loss of its rows, by autograd alone."""
    parameters = {name: p for name, p in model.named_parameters() if p.requires_grad}
    gradients = []
    for unit in range(UNITS):
        values = torch.autograd.grad(
            loss(model, of_unit(examples, unit)).mean(), list(parameters.values()), allow_unused=True
        )
        gradients.append(
            {
                name: torch.zeros_like(p) if value is None else value
                for (name, p), value in zip(parameters.items(), values, strict=True)
            }
        )
    return gradients


def assert_same_units(summed, expected):
    scale = max(float(torch.stack([value.norm() for value in unit.values()]).norm()) for unit in expected)
    for name, squared in summed.squared_norms.items():
        norms = torch.stack([unit[name].norm() for unit in expected])
        assert float((squared.sqrt() - norms).abs().max()) < 1e-6 * scale, name
    safe = torch.stack(list(summed.safe_squared_norms.values())).sum(0).sqrt()
    whole_norms = torch.stack([torch.stack([value.norm() for value in unit.values()]).norm() for unit in expected])
    assert bool((safe >= whole_norms * (1.0 - 1e-6)).all())
    factors = torch.tensor([0.3, 1.0, 0.5, 0.0])
    sums = summed.weighted_sums(dict.fromkeys(summed.squared_norms, factors))
    for name in expected[0]:
        whole = torch.stack([f * unit[name] for f, unit in zip(factors, expected, strict=True)]).sum(0)
        assert float((sums.get(name, torch.zeros_like(whole)) - whole).norm()) < 2e-6 * scale, name


@pytest.mark.parametrize(
    ("name", "lora"), [("bert", False), ("bert", True), ("gpt2, tied", False), ("t5, tied", False), ("llama", True)]
)
def test_units_of_taps_are_what_autograd_says_of_all_their_rows_together(name, lora):
    model, loss = build(name, lora=lora)
    engine, _ = choose(model, loss, PROBES, "taps")
    engine.loss = weighted(loss)
    examples = batch(7, seed=11)
    with without_dropout(model):
        summed = summed_by_unit(engine.run(with_shares(examples)), UNIT_OF_ROW, UNITS)
        assert_same_units(summed, gradients_of_means(model, loss, examples))


@pytest.mark.parametrize("engine", ["vmap", "loop", "opacus"])
def test_units_of_the_other_engines_are_what_autograd_says(engine):
    if engine == "opacus":
        pytest.importorskip("opacus")
    model, loss = (Recurrent(), recurrent_loss) if engine == "vmap" else build("bert")
    examples = batch(7, seed=11)
    with without_dropout(model):
        result = ENGINES[engine](model, weighted(loss)).run(with_shares(examples))
        assert_same_units(summed_by_unit(result, UNIT_OF_ROW, UNITS), gradients_of_means(model, loss, examples))


def test_one_unit_in_parts_is_what_autograd_says():
    model, loss = build("gpt2, tied")
    examples = with_shares(batch(7, seed=11))
    with without_dropout(model):
        expected = gradients_of_means(model, loss, batch(7, seed=11))
        parameters = {name: p for name, p in model.named_parameters() if p.requires_grad}
        mine = of_unit(examples, 2)
        parts = [{name: values[rows] for name, values in mine.items()} for rows in (slice(0, 2), slice(2, 3))]
        result = gradient_of_unit(model, weighted(loss), parameters, parts)
    norm = torch.stack(list(result.squared_norms.values())).sum().sqrt()
    assert norm.item() == pytest.approx(torch.stack([g.norm() for g in expected[2].values()]).norm().item(), rel=1e-5)
    sums = result.weighted_sums(dict.fromkeys(result.squared_norms, torch.ones(1)))
    for name, gradient in expected[2].items():
        assert torch.allclose(sums[name], gradient, atol=1e-6), name


def test_rows_that_cancel_make_a_short_unit_and_rows_that_agree_a_long_one():
    """The sum of norms of rows says nothing: only the cross terms do."""
    model, loss = build("bert")
    model.eval()
    row = batch(1, seed=5)
    twice = {name: values.repeat(2, *[1] * (values.dim() - 1)) for name, values in row.items()}
    engine, _ = choose(model, loss, PROBES, "taps")
    engine.loss = weighted(loss)
    alone = torch.stack(list(engine.run(row).squared_norms.values())).sum().sqrt().item()
    together = torch.zeros(2, dtype=torch.long)
    for shares, length in ((torch.tensor([1.0, 1.0]), 2.0), (torch.tensor([1.0, -1.0]), 0.0)):
        summed = summed_by_unit(engine.run({**twice, SHARE: shares}), together, 1)
        norm = torch.stack(list(summed.squared_norms.values())).sum().sqrt().item()
        # Not more exact than products of numbers that cancel can be; what is clipped is the bound, which is not below.
        assert norm == pytest.approx(length * alone, abs=5e-3 * alone)
        safe = torch.stack(list(summed.safe_squared_norms.values())).sum().sqrt()
        sums = summed.weighted_sums(dict.fromkeys(summed.squared_norms, torch.ones(1)))
        assert float(torch.stack([value.norm() for value in sums.values()]).norm()) <= float(safe)


@pytest.mark.parametrize("engine", ["taps", "loop"])
def test_a_unit_with_a_row_that_is_not_finite_adds_nothing_and_the_others_are_as_before(engine):
    model, loss = build("bert")
    examples = with_shares(batch(7, seed=11))
    worker, _ = choose(model, loss, PROBES, engine)
    worker.loss = weighted(loss)
    broken = {**examples, SHARE: examples[SHARE].clone()}
    broken[SHARE][3] = float("inf")  # the only row of unit 1
    broken[SHARE][0] = float("nan")  # one of three of unit 2
    with without_dropout(model):
        before, after = (summed_by_unit(worker.run(each), UNIT_OF_ROW, UNITS) for each in (examples, broken))
    clipped = FlatClipping(1.0).clip(after.safe_squared_norms)
    assert clipped.lost == 2
    kept = torch.tensor([1.0, 0.0, 0.0, 1.0])
    factors = {name: FlatClipping(1.0).clip(before.safe_squared_norms).factors[name] * kept for name in clipped.factors}
    sums, expected = after.weighted_sums(clipped.factors), before.weighted_sums(factors)
    for name, value in expected.items():
        assert torch.equal(sums[name], value) or torch.allclose(sums[name], value, atol=1e-6), name


def test_public_factors_are_exact_for_units_too():
    model, loss = build("bert")
    examples = with_shares(batch(7, seed=11))
    engine, _ = choose(model, loss, PROBES, "taps")
    engine.loss = weighted(loss)
    generator = torch.Generator().manual_seed(3)
    with without_dropout(model):
        expected = gradients_of_means(model, loss, batch(7, seed=11))
        scales = {name: torch.rand(p.shape, generator=generator) + 0.5 for name, p in engine.parameters.items()}
        summed = scaled(summed_by_unit(engine.run(examples), UNIT_OF_ROW, UNITS), scales)
    for name, squared in summed.squared_norms.items():
        norms = torch.stack([(unit[name] * scales[name]).norm() for unit in expected])
        assert torch.allclose(squared.sqrt(), norms, rtol=1e-3, atol=1e-4), name


def test_the_comparison_before_a_run_notices_units_that_are_mixed_up(monkeypatch):
    model, loss = build("bert")
    engine, _ = choose(model, loss, PROBES, "taps")
    engine.loss = weighted(loss)
    with without_dropout(model):
        assert unit_deviation(model, engine.loss, [(engine.run(probe), probe) for probe in PROBES])[0] < 1e-6
        # As if norms of rows were added up, without their cross terms.
        monkeypatch.setattr(Units, "joined", lambda units, values: units.summed(values.float())[:, None].flatten(1, 2))
        with pytest.raises((AssertionError, RuntimeError, IndexError)):
            assert unit_deviation(model, engine.loss, [(engine.run(probe), probe) for probe in PROBES])[0] < 1e-3
