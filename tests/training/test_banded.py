"""Banded noise: blocks of a record never meet, the exact law of small runs keeps the claim, two mistakes do not."""

from __future__ import annotations

import itertools
import json
import math

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("dp_accounting")

from tacit.account.matrix import Toeplitz  # noqa: E402
from tacit.account.sgd import sgd_epsilon  # noqa: E402
from tacit.cli.main import run as run_command  # noqa: E402
from tacit.errors import BadParameterError, TacitError  # noqa: E402
from tacit.guarantee import Adjacency  # noqa: E402
from tacit.jobs.train import CONFIGS  # noqa: E402
from tacit.noise.normal import normal_noise  # noqa: E402
from tacit.noise.source import StreamKey  # noqa: E402
from tacit.training.banded import BandedPlan, banded_factor, best_bands, column_norm, left_over  # noqa: E402
from tacit.training.clipping import FlatClipping, QuantileClipping  # noqa: E402
from tacit.training.correlated_noise import ToeplitzNoise  # noqa: E402
from tacit.training.gradients import choose  # noqa: E402
from tacit.training.plan import TrainingPlan  # noqa: E402
from tacit.training.step import PrivateStep  # noqa: E402
from tests.literature.small_files import write_small_files, write_small_models  # noqa: E402
from tests.training.test_run import make_run, tokenizer  # noqa: E402, F401
from tests.training.zoo import batch, build  # noqa: E402

SMALL = [(steps, bands) for steps in (1, 2, 3, 5, 6, 7) for bands in (1, 2, 3) if bands <= steps]


@pytest.mark.parametrize(("steps", "bands"), SMALL)
def test_no_participation_moves_a_block_by_more_than_one(steps: int, bands: int) -> None:
    """All groups and all sets of steps that a record can be drawn in: the parts of C u of different steps lie in
    different rows, and each has at most the norm 1 after division by the largest column."""
    factor = banded_factor(steps, bands)
    matrix = factor.encoder(steps) / column_norm(factor)
    for group in range(factor.bands):
        visits = range(group, steps, factor.bands)
        for count in range(len(visits) + 1):
            for drawn in itertools.combinations(visits, count):
                blocks = [matrix[:, step] for step in drawn]
                assert all(np.linalg.norm(block) <= 1.0 for block in blocks)
                assert all(not np.any(a * b) for a, b in itertools.combinations(blocks, 2))
                assert np.linalg.norm(matrix[:, list(drawn)].sum(1)) ** 2 <= count + 1e-12
        assert len(visits) <= math.ceil(steps / factor.bands)


GRID = np.linspace(-14.0, 18.0, 1601)


def exact_delta(
    epsilon: float, matrix: np.ndarray, patterns: list[tuple[float, tuple[int, ...]]], sigma: float
) -> float:
    """The exact delta of a run of two steps on one number, by integration: the law with a record is a mixture over the
    steps that it is drawn in, with means C 1_drawn; without it, the normal law around 0. The larger direction."""
    x, y = np.meshgrid(GRID * sigma, GRID * sigma, indexing="ij")
    cell = ((GRID[1] - GRID[0]) * sigma) ** 2

    def density(mean: np.ndarray) -> np.ndarray:
        return np.exp(-((x - mean[0]) ** 2 + (y - mean[1]) ** 2) / (2 * sigma**2)) / (2 * math.pi * sigma**2)

    without = density(np.zeros(2))
    with_it = sum(share * density(matrix[:, list(drawn)].sum(1)) for share, drawn in patterns)
    return max(
        float(np.maximum(p - math.exp(epsilon) * q, 0.0).sum() * cell)
        for p, q in ((with_it, without), (without, with_it))
    )


def claimed_epsilon(rate: float, sigma: float, steps: int, delta: float) -> float:
    return sgd_epsilon(sampling_rate=rate, noise_multiplier=sigma, steps=steps, delta=delta)


FACTOR = Toeplitz((1.0, 0.9))
BOTH = FACTOR.encoder(2)


def test_the_exact_law_of_two_banded_steps_keeps_the_claim() -> None:
    """Two steps, two bands: a record is drawn in one step at most, with probability q, and the claim is tight for the
    group of the first step, whose column is the largest."""
    rate, sigma, delta = 0.3, 1.0, 1e-3
    epsilon = claimed_epsilon(rate, sigma, 1, delta)
    matrix = BOTH / column_norm(FACTOR)
    first, second = (exact_delta(epsilon, matrix, [(1 - rate, ()), (rate, (step,))], sigma) for step in (0, 1))
    assert first <= delta * (1 + 1e-3)
    assert first > 0.97 * delta
    assert second < first


def test_forgetting_the_norm_of_the_columns_is_refuted() -> None:
    rate, sigma, delta = 0.3, 1.0, 1e-3
    epsilon = claimed_epsilon(rate, sigma, 1, delta)
    assert exact_delta(epsilon, BOTH, [(1 - rate, ()), (rate, (0,))], sigma) > 3 * delta


def test_drawing_every_step_from_all_records_is_refuted() -> None:
    """Poisson sampling over all records at every step, accounted as DP-SGD: a record in two neighboring steps moves
    rows that both columns share, by more than two independent steps would."""
    rate, sigma, delta = 0.5, 1.0, 1e-3
    epsilon = claimed_epsilon(rate, sigma, 2, delta)
    coins = [((1 - rate) ** 2, ()), (rate * (1 - rate), (0,)), (rate * (1 - rate), (1,)), (rate**2, (0, 1))]
    assert exact_delta(epsilon, np.eye(2), coins, sigma) <= delta * (1 + 1e-3), "independent noise keeps the claim"
    assert exact_delta(epsilon, BOTH / column_norm(FACTOR), coins, sigma) > 2 * delta


def plan(**changes: object) -> BandedPlan:
    values: dict[str, object] = {"epsilon": 3.0, "records": 1_000, "batch": 50, "epochs": 2.0, "bands": 4}
    return BandedPlan.banded(**{**values, **changes})  # type: ignore[arg-type]


def test_a_plan_accounts_for_the_steps_of_a_group() -> None:
    made = plan()
    assert (made.steps, made.bands, made.rate) == (40, 4, 0.2)
    assert [made.participations(steps) for steps in (1, 4, 5, 40)] == [1, 1, 2, 10]
    assert 2.97 < made.epsilon() <= 3.0
    assert made.epsilon() == claimed_epsilon(0.2, made.multiplier, 10, made.delta)
    assert 0 == made.epsilon(0) < made.epsilon(1) == made.epsilon(4) < made.epsilon(5)
    assert made.epsilon_at_most(13) >= made.epsilon(13)
    card = made.guarantee(steps=40, secure=True, what="a model", parameters={})
    assert "at most 10 of 40 steps" in str(card.parameters["sampling rate"])
    assert any("nobody learns which" in line for line in card.assumptions)
    whole = plan(bands=20)
    assert whole.rate == 1.0
    assert all(plan(bands=20, epsilon=epsilon).epsilon() <= epsilon for epsilon in (0.5, 1.0, 3.0, 8.0))
    assert not any("nobody learns which" in line for line in whole.guarantee(
        steps=40, secure=True, what="a model", parameters={}).assumptions)  # fmt: skip
    replaced = plan(adjacency=Adjacency.REPLACE_ONE)
    assert replaced.multiplier > made.multiplier


def test_one_band_is_dp_sgd() -> None:
    usual = TrainingPlan.calibrated(epsilon=3.0, records=1_000, batch=50, epochs=2.0)
    made = plan(bands=1)
    assert made.multiplier == usual.multiplier
    assert made.noise_scale == pytest.approx(usual.noise_scale, rel=1e-9)
    key = StreamKey.from_test_seed(0)
    assert all((made.sample(step, key) == usual.sample(step, key)).all() for step in range(3))


def test_bands_are_chosen_by_what_is_left_of_the_noise() -> None:
    """The chosen number is the best of those that are tried, by exact accounting too, and never worse than DP-SGD."""
    for changes in ({"records": 20_000, "batch": 100}, {"records": 400, "batch": 200, "epochs": 20.0, "epsilon": 1.0}):
        made = plan(bands=None, **changes)
        errors = {
            bands: other.multiplier * left_over(other.factor, other.steps)
            for bands in (1, 4, 16)
            if bands * made.batch <= made.records
            for other in [plan(bands=bands, **changes)]
        }
        own = made.multiplier * left_over(made.factor, made.steps)
        assert own <= min(errors.values()) * 1.02
    assert best_bands(1.0, 400, 200, 40, 1e-4) == 1


def test_records_are_drawn_in_the_steps_of_their_group_at_the_rate() -> None:
    """Every record is in one group for the whole run, whatever other records there are. The mean size of a sample over
    25 keys and 4 steps is within 5 standard deviations (false alarm 6e-7)."""
    made = plan()
    sizes = []
    for seed in range(25):
        key = StreamKey.from_test_seed(seed)
        groups = made.groups(key)
        for step in range(4):
            drawn = made.sample(step, key)
            assert (groups[drawn] == step % 4).all()
            assert (made.groups(key)[made.sample(step + 4, key)] == step % 4).all()
            sizes.append(len(drawn))
    # Each record is drawn in a given step with probability rate / bands = 0.05.
    assert abs(np.mean(sizes) - 50) < 5 * math.sqrt(1_000 * 0.05 * 0.95 / len(sizes))


def test_the_noise_of_steps_is_the_inverse_of_the_matrix() -> None:
    """Steps without records leave noise alone. C times it is the independent normal numbers of the key, times
    multiplier, norm of the column and bound; its deviation is that which the plan names."""
    model, loss = build("bert")
    model.eval()
    engine, _ = choose(model, loss, [batch(3), batch(5, seed=3)])
    made = BandedPlan(1_000, 50, 12, 1.5, 1e-4, factor=banded_factor(12, 4))
    object.__setattr__(made, "sample", lambda step, key: np.zeros(0, dtype=np.int64))
    key, rows, deviations = StreamKey.from_test_seed(3), [], []
    step = PrivateStep(made, lambda records: {}, 8, engine=engine, clipping=FlatClipping(0.5))
    for number in range(12):
        step.run(number, key)
        rows.append(50 * torch.cat([p.grad.flatten() for p in engine.parameters.values()]).double().numpy())
        deviations.append(50 * step.deviation)
    noise = np.stack(rows)
    scale = 1.5 * column_norm(made.factor) * 0.5
    normal = np.stack([normal_noise(noise.shape[1], key.stream(number, b"noise")) for number in range(12)])
    np.testing.assert_allclose(made.factor.encoder(12) @ noise, scale * normal, atol=1e-4)
    np.testing.assert_allclose(noise.std(axis=1), deviations, rtol=0.05)


def test_a_kept_state_is_read_by_its_key_only() -> None:
    key = StreamKey.from_test_seed(1)
    factor = banded_factor(20, 5)
    whole, first = (ToeplitzNoise(factor, 7, key, b"noise") for _ in range(2))
    wanted = [whole.at(step) for step in range(20)]
    for step in range(11):
        first.at(step)
    state = first.state()
    later = ToeplitzNoise(factor, 7, key, b"noise")
    later.restore(state)
    assert later.next == 11
    assert all((later.at(step) == wanted[step]).all() for step in range(11, 20))
    kept = state["noise/vectors"].numpy().view(np.float32)
    past = np.stack(wanted[7:11][::-1])
    assert not np.isclose(kept, past).any(), "nothing of the noise stands in a checkpoint"


def test_a_resumed_run_is_the_same_run(tokenizer, tmp_path, monkeypatch) -> None:  # type: ignore[no-untyped-def]  # noqa: F811
    def made(folder: str):  # type: ignore[no-untyped-def]
        run = make_run(tokenizer, tmp_path / folder, seed=1, steps=8, settings={"optimizer": "sgd"})
        run.plan = BandedPlan(1_000, 50, 8, 1.0, 4e-4, factor=banded_factor(8, 4))
        return run

    class StoppedError(Exception):
        pass

    def stop_at_7(progress) -> None:  # type: ignore[no-untyped-def]
        if progress.step == 7:
            raise StoppedError

    whole = made("whole")
    whole.run()
    with pytest.raises(StoppedError):
        made("parts").run(stop_at_7)
    second = made("parts")
    drawn: list[int] = []
    usual = ToeplitzNoise.make
    monkeypatch.setattr(ToeplitzNoise, "make", lambda self, step: drawn.append(step) or usual(self, step))
    second.run(resume=True)
    assert drawn == [5, 6, 7], "the noise of earlier steps is in the checkpoint, not drawn again"
    for a, b in zip(whole.model.parameters(), second.model.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-7)


def test_what_does_not_fit_is_refused() -> None:
    for changes in ({"bands": 21}, {"bands": 0}):
        with pytest.raises(BadParameterError):
            plan(**changes)
    with pytest.raises(BadParameterError) as refused:
        PrivateStep(plan(), lambda records: {}, engine=None, clipping=QuantileClipping())  # type: ignore[arg-type]
    assert refused.value.code == "quantile-with-banded-noise"
    options: dict[str, object] = {"data": "notes.csv", "output": "x", "epsilon": 3.0}
    for changes, code in (
        ({"bands": 4}, "bands-without-banded-noise"),
        ({"noise": "banded", "epsilon": math.inf}, "banded-noise-without-noise"),
        ({"noise": "banded", "grow_to": 512}, "banded-noise-with-another-plan"),
        ({"noise": "banded", "bands": 0}, "bad-option"),
    ):
        with pytest.raises(TacitError) as error:
            CONFIGS["classify"](**{**options, **changes})
        assert error.value.code == code


def test_the_command_writes_bands_on_the_card(tmp_path, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    write_small_files(tmp_path)
    write_small_models(tmp_path, ["tiny-classifier"])
    monkeypatch.chdir(tmp_path)
    command = (
        "train classify notes.csv --model tiny-classifier --batch 40 --epochs 3 --epsilon 3 --noise banded --bands 4 "
        "--optimizer sgd --length 16 -o model -q"
    )
    assert run_command(command.split()) == 0
    guarantee = json.loads((tmp_path / "model" / "card.json").read_text())["guarantee"]
    assert guarantee["epsilon"] <= 3
    assert "banded, 4 bands" in guarantee["parameters"]["noise"]
    assert "at most 3 of 12 steps" in guarantee["parameters"]["sampling rate"]
