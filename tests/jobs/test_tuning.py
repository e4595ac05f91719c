"""A search for settings: one card, a secret number of trials, nothing that tells it, stops and goes on."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("dp_accounting")

import tacit  # noqa: E402
from tacit.account.selection import Trial, TrialLaw, search_epsilon  # noqa: E402
from tacit.cli.main import run as run_command  # noqa: E402
from tacit.errors import BadInputError, BadParameterError, TacitError  # noqa: E402
from tacit.jobs.config import read_mapping  # noqa: E402
from tacit.jobs.train import CONFIGS, run  # noqa: E402
from tacit.jobs.training.result import TrainingProgress  # noqa: E402
from tacit.jobs.tuning import read_tuning  # noqa: E402
from tacit.noise.source import StreamKey  # noqa: E402
from tacit.training.private_folder import remove_training  # noqa: E402
from tests.literature.small_files import write_small_files, write_small_models  # noqa: E402

GRID = {"mean": 2.0, "law": "geometric", "settings": {"learning_rate": [1e-3, 1e-2], "bound": [1.0, 3.0]}}
OPTIONS = {"model": "tiny-classifier", "batch": 160, "epochs": 2, "epsilon": 3.0, "length": 16, "physical": 160}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("tuning")
    write_small_files(made)
    write_small_models(made, ["tiny-classifier"])
    return made


@pytest.fixture
def inside(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(folder)
    return folder


def searched(output: str, **changes: object) -> object:
    options = {**OPTIONS, "tune": GRID, "tune_rows": "others.csv", **changes}
    return tacit.train("classify", "notes.csv", output=output, **options)


def trials_of_seed(seed: int, law: TrialLaw) -> int:
    return law.draw(StreamKey.from_test_seed(seed).stream(0, b"number of trials"))


def test_the_card_is_that_of_the_whole_search(inside: Path) -> None:
    result = searched("whole")
    card = json.loads((inside / "whole" / "card.json").read_text())["guarantee"]
    law = TrialLaw("geometric", 2.0)
    spent = search_epsilon(Trial(1.0, 2), law, noise_multiplier=result.plan.multiplier, delta=card["delta"])  # type: ignore[attr-defined]
    assert card["epsilon"] == pytest.approx(spent)
    assert 2.9 < card["epsilon"] <= 3.0
    assert "geometric, mean 2) from 4 settings, by a score on public rows" in card["parameters"]["search"]
    assert any("how long the search took" in line for line in card["not_covered"])
    assert set(result.chosen) == {"learning_rate", "bound"}  # type: ignore[attr-defined]
    assert not (inside / "whole.private" / "search").exists()


def test_nothing_tells_how_many_trials_there_were(inside: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Searches of 1 and of several trials leave the same files behind and say the same, but for what was chosen."""
    law = TrialLaw("geometric", 2.0)
    (inside / "grid.toml").write_text(
        'mean = 2\nlaw = "geometric"\n[settings]\nlearning_rate = [0.001]\nbound = [1.0]\n', encoding="utf-8"
    )
    single = next(seed for seed in range(1_000, 1_100) if trials_of_seed(seed, law) == 1)
    several = next(seed for seed in range(1_000, 1_100) if trials_of_seed(seed, law) == 4)
    left, said = [], []
    for name, seed in (("m1", single), ("m4", several)):
        command = (
            "train classify notes.csv --model tiny-classifier --batch 160 --epochs 2 --length 16 --epsilon 3 "
            f"--tune grid.toml --tune-rows others.csv --seed {seed} -o {name}"
        )
        assert run_command(command.split()) == 0
        output = capfd.readouterr()
        said.append(re.sub(rf"\b({name}|{seed}|{seed:,})\b", "X", output.out + output.err))
        left.append({path.relative_to(inside / name) for path in (inside / name).rglob("*")})
        for path in (inside / name).rglob("*.json"):
            assert "private/search" not in path.read_text(encoding="utf-8")
    assert left[0] == left[1]
    assert said[0] == said[1]


class StoppedError(Exception):
    pass


class StopAfter(TrainingProgress):
    """Stops after so many signs of life."""

    def __init__(self, signs: int) -> None:
        self.left = signs

    def searching(self) -> None:
        self.left -= 1
        if self.left == 0:
            raise StoppedError


@pytest.mark.parametrize("signs", [1, 4])
def test_a_stopped_search_goes_on(inside: Path, signs: int) -> None:
    """With a test seed: stopped in the first trial, or in a later one, it chooses the same and has the same weights."""
    seed = next(seed for seed in range(100) if trials_of_seed(seed, TrialLaw("geometric", 2.0)) == 3)
    remove_training(inside / "uninterrupted")
    whole = searched("uninterrupted", seed=seed)
    name = f"stopped-{signs}"
    with pytest.raises(StoppedError):
        searched(name, seed=seed, progress=StopAfter(signs))
    assert (inside / f"{name}.private" / "search").stat().st_mode & 0o077 == 0
    with pytest.raises(BadInputError) as refused:
        searched(name, seed=seed)
    assert refused.value.code == "unfinished-run"
    with pytest.raises(BadInputError) as refused:
        searched(name, seed=seed, resume=True, epochs=3)
    assert refused.value.code == "another-run"
    result = searched(name, seed=seed, resume=True)
    assert result.chosen == whole.chosen  # type: ignore[attr-defined]
    weights = [
        torch.load(path, weights_only=True) if path.suffix == ".bin" else path.read_bytes()
        for output in ("uninterrupted", name)
        for path in (inside / output).glob("*.safetensors")
    ]
    assert len(weights) == 2
    assert weights[0] == weights[1]
    with pytest.raises(BadInputError) as refused:
        searched(name, seed=seed, resume=True)
    assert refused.value.code == "no-unfinished-run"


def test_private_scores_are_paid_for(inside: Path) -> None:
    counted, public = searched("counted", tune_rows=None), searched("public")
    assert counted.plan.multiplier > public.plan.multiplier  # type: ignore[attr-defined]
    card = json.loads((inside / "counted" / "card.json").read_text())["guarantee"]
    assert "noise of deviation 10" in card["parameters"]["search"]
    assert card["epsilon"] <= 3.0


def test_no_trial_is_an_outcome_too(inside: Path) -> None:
    grid = {**GRID, "law": "poisson", "mean": 1.0}
    seed = next(seed for seed in range(100) if trials_of_seed(seed, TrialLaw("poisson", 1.0)) == 0)
    with pytest.raises(BadInputError) as ended:
        searched("nothing", tune=grid, seed=seed)
    assert ended.value.code == "search-without-result"
    assert not list((inside / "nothing").rglob("*"))


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"tune": {"settings": {"batch": [80, 160]}}}, "setting-changes-accounting"),
        ({"tune": {"settings": {"epochs": [1, 2]}}}, "setting-changes-accounting"),
        ({"tune": {"settings": {"replace_one": [True, False]}}}, "setting-changes-accounting"),
        ({"tune": {"settings": {"learning_rate": []}}}, "nothing-to-tune"),
        ({"tune": {"settings": {}}}, "nothing-to-tune"),
        ({"tune": {"means": 3, "settings": {"bound": [1]}}}, "unknown-option"),
        ({"tune": {"mean": "many", "settings": {"bound": [1]}}}, "impossible-number-of-trials"),
        ({"tune": {"law": "fixed", "settings": {"bound": [1]}}}, "unknown-law-of-trials"),
        ({"tune": {"settings": {"bound": [1.0, -1.0]}}}, "bad-option"),
        ({"tune": GRID, "epsilon": float("inf")}, "search-without-noise"),
        ({"tune": GRID, "grow_to": 160, "batch": 80}, "search-with-phases"),
        ({"tune": None}, "nothing-to-tune"),
    ],
)
def test_what_does_not_fit_is_refused_before_any_trial(inside: Path, changes: dict[str, object], code: str) -> None:
    with pytest.raises(TacitError) as refused:
        searched("refused", **changes)
    assert refused.value.code == code
    assert not (inside / "refused").exists()


def test_a_configuration_keeps_its_grid(inside: Path) -> None:
    config = CONFIGS["classify"](data="notes.csv", output=Path("x"), epsilon=3.0, tune=GRID)
    assert config.tune == read_tuning(GRID)
    (inside / "train.toml").write_text(config.to_toml(), encoding="utf-8")
    assert CONFIGS["classify"].from_mapping(read_mapping(inside / "train.toml")).tune == config.tune
    assert config.identity()["tune"]["mean"] == 2.0
    with pytest.raises(BadParameterError):
        CONFIGS["write"](data="notes.csv", output=Path("x"), epsilon=3.0, tune_rows="others.csv")
    with pytest.raises(BadParameterError) as refused:
        run(CONFIGS["write"](data="notes.csv", output=Path("refused"), epsilon=3.0, batch=10, tune=GRID))
    assert refused.value.code == "search-without-scores"
