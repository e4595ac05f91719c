"""Batches that grow: sampling, division and accounting read the same phases."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("dp_accounting")

from tacit.account.phases import Phase  # noqa: E402
from tacit.cli.main import run as run_command  # noqa: E402
from tacit.errors import BadParameterError  # noqa: E402
from tacit.noise.source import StreamKey  # noqa: E402
from tacit.training.clipping import FlatClipping  # noqa: E402
from tacit.training.gradients import choose  # noqa: E402
from tacit.training.growing import GrowingPlan, growing_sizes  # noqa: E402
from tacit.training.step import PrivateStep  # noqa: E402
from tests.literature.small_files import write_small_files, write_small_models  # noqa: E402
from tests.training.zoo import batch, build  # noqa: E402


def plan(**changes: object) -> GrowingPlan:
    values: dict[str, object] = {"epsilon": 1.0, "records": 1_000, "batch": 100, "grow_to": 400, "epochs": 7.0}
    return GrowingPlan.growing(**{**values, **changes})  # type: ignore[arg-type]


def test_sizes_double() -> None:
    assert growing_sizes(1, 2) == (1, 2)
    assert growing_sizes(32, 256) == (32, 64, 128, 256)
    made = plan()
    assert made.phases == ((100, 10), (200, 10), (400, 10))
    assert (made.steps, made.batch) == (30, 400)
    assert [made.batch_at(step) for step in (0, 9, 10, 19, 20, 29)] == [100, 100, 200, 200, 400, 400]
    assert made.accounted(15) == (Phase(0.1, 10), Phase(0.2, 5))


def test_epsilon_is_kept_and_grows_with_the_steps() -> None:
    made = plan()
    assert 0.99 < made.epsilon() <= 1.0
    assert 0 == made.epsilon(0) < made.epsilon(10) < made.epsilon(20) < made.epsilon()
    assert made.epsilon_at_most(13) >= made.epsilon(13)
    card = made.guarantee(steps=30, secure=True, what="a model", parameters={})
    assert card.epsilon == made.epsilon()
    assert "0.1 for 10 steps, 0.2 for 10 steps, 0.4 for 10 steps" in str(card.parameters["sampling rate"])
    assert any("nobody learns which" in text for text in card.assumptions)
    assert any("nobody learns which" in text for text in plan(grow_to=1_000).guarantee(
        steps=1, secure=True, what="a model", parameters={}).assumptions)  # fmt: skip


def test_each_phase_is_sampled_at_its_own_rate() -> None:
    """Mean sizes over all keys; the false-alarm rate of each of three intervals of 5 standard deviations is 6e-7."""
    made = plan()
    for first, size in ((0, 100), (10, 200), (20, 400)):
        drawn = [
            len(made.sample(step, StreamKey.from_test_seed(seed))) for seed in range(20) for step in (first, first + 9)
        ]
        deviation = math.sqrt(1_000 * size / 1_000 * (1 - size / 1_000) / len(drawn))
        assert abs(np.mean(drawn) - size) < 5 * deviation


def test_a_step_is_divided_by_the_size_of_its_phase() -> None:
    """Nearly without noise and with all records alike, the gradient of every phase is that of a record."""
    model, loss = build("bert")
    model.eval()
    engine, _ = choose(model, loss, [batch(3), batch(5, seed=3)])
    made = GrowingPlan(1_000, 400, 30, 1e-6, 1e-4, phases=((100, 10), (200, 10), (400, 10)))
    example = {name: value[:1] for name, value in batch(1).items()}

    def collate(records: object) -> dict[str, object]:
        return {name: value.repeat(len(records), *[1] * (value.dim() - 1)) for name, value in example.items()}  # type: ignore[arg-type]

    step = PrivateStep(made, collate, 500, engine=engine, clipping=FlatClipping(1e-3))  # type: ignore[arg-type]
    for number in (0, 10, 20):
        facts = step.run(number, StreamKey.from_test_seed(number))
        norm = math.sqrt(sum(float(p.grad.double().square().sum()) for p in engine.parameters.values()))
        assert norm == pytest.approx(1e-3 * facts.examples / made.batch_at(number), rel=1e-2)


@pytest.mark.parametrize("changes", [{"grow_to": 100}, {"grow_to": 50}, {"grow_to": 1_001}])
def test_batches_that_cannot_grow_are_refused(changes: dict[str, object]) -> None:
    with pytest.raises(BadParameterError) as refused:
        plan(**changes)
    assert refused.value.code == "batches-cannot-grow"


def test_phases_that_do_not_fit_the_plan_are_refused() -> None:
    with pytest.raises(BadParameterError):
        GrowingPlan(1_000, 400, 30, 1.0, 1e-4, phases=((100, 10), (400, 10)))


def test_without_privacy_there_is_no_noise_and_no_promise() -> None:
    made = plan(epsilon=math.inf)
    assert not made.private
    assert made.epsilon() == made.epsilon_at_most(3) == math.inf


def test_the_command_writes_the_phases_on_the_card(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_small_files(tmp_path)
    write_small_models(tmp_path, ["tiny-classifier"])
    monkeypatch.chdir(tmp_path)
    command = (
        "train classify notes.csv --model tiny-classifier --batch 40 --grow-to 80 --epochs 3 --epsilon 3 -o model -q"
    )
    assert run_command(command.split()) == 0
    guarantee = json.loads((tmp_path / "model" / "card.json").read_text())["guarantee"]
    assert guarantee["epsilon"] <= 3
    assert "0.25 for 4 steps, 0.5 for 4 steps" in guarantee["parameters"]["sampling rate"]
