"""Bottleneck adapters: nothing at the start, clipped exactly, and the same after saving and reading again."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import torch

from tacit.errors import BadInputError, BadParameterError
from tacit.training.gradients import choose
from tacit.training.models import load_model, save_model
from tacit.training.strategies import apply_strategy
from tacit.training.tasks import task_named
from tests.training.zoo import batch, build

FAMILIES = ["bert", "roberta", "distilbert"]


@pytest.mark.parametrize("family", FAMILIES)
def test_adapters_start_as_nothing_and_are_clipped_in_one_pass(family: str) -> None:
    model, loss = build(family)
    examples = batch(3)
    plain = loss(model.eval(), examples).detach()
    total = sum(p.numel() for p in model.parameters())
    names = set(dict(model.named_parameters()))
    model = apply_strategy(model, "adapter", rank=3)
    assert torch.equal(loss(model.eval(), examples).detach(), plain)
    trained = {name for name, p in model.named_parameters() if p.requires_grad}
    added = {name for name in trained if ".adapter." in name}
    assert names <= set(dict(model.named_parameters())), "weights keep their names"
    assert sum(".adapter.up.weight" in name for name in added) == 2 * 2, "behind both parts of both layers"
    assert trained - added, "the new head is trained"
    assert all("classifier" in name for name in trained - added)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name in added:
                parameter.add_(torch.linspace(-1.0, 1.0, parameter.numel()).view_as(parameter))
    assert not torch.allclose(loss(model.eval(), examples).detach(), plain, atol=1e-4)
    engine, checked = choose(model, loss, [batch(3), batch(5)])
    assert engine.name == "taps", checked.refused
    assert set(engine.parameters) == trained
    assert sum(p.numel() for p in engine.parameters.values()) < total / 4


def test_language_models_are_refused() -> None:
    with pytest.raises(BadParameterError, match="choose lora"):
        apply_strategy(build("gpt2, tied")[0], "adapter")


def test_a_saved_model_keeps_its_adapters(tmp_path: Path) -> None:
    from tests.training.test_synthesis import small_tokenizer

    words = small_tokenizer()
    model, loss = build("bert")
    model = apply_strategy(model, "adapter", rank=3)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if ".adapter." in name:
                parameter.add_(0.3 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(1)))
    examples = batch(4)
    expected = loss(model.eval(), examples).detach()
    save_model(model, words, tmp_path)
    task = task_named("classify")(labels=["a", "b", "c"], length=11)
    again, _ = load_model(task, str(tmp_path))
    assert torch.allclose(loss(again.eval(), examples).detach(), expected, atol=1e-6)
    with pytest.raises(BadParameterError, match="no layers"):
        apply_strategy(again, "adapter")

    from safetensors.torch import load_file, save_file

    place = tmp_path / "model.safetensors"
    kept = load_file(place)
    missing = next(name for name in kept if ".adapter." in name)
    save_file({name: value for name, value in kept.items() if name != missing}, place, metadata={"format": "pt"})
    with pytest.raises(BadInputError, match="adapters"):
        load_model(task, str(tmp_path))
