"""Ensembles from the training to paid answers, with a tiny model of random weights."""

from __future__ import annotations

import json
import math
import stat
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tacit
from tacit.account.ledger import BudgetExceededError, Subject, open_ledger
from tacit.card import Card
from tacit.cli.main import run as run_command
from tacit.errors import BadInputError, BadParameterError, TacitError
from tacit.guarantee import Adjacency, Notion, Unit
from tacit.jobs.predict_ensemble import EnsembleAnswersConfig
from tacit.noise.source import StreamKey

pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("peft")

from tacit.jobs.training import ensemble_answers
from tacit.training.ensemble.asking import Ensemble
from tacit.training.ensemble.band import TOTAL, Band, public_weights
from tacit.training.ensemble.folder import EnsembleFolder, is_ensemble
from tacit.training.ensemble.promise import TokenBudget, band_for
from tacit.training.ensemble.split import names_of_users, rows_of_shards, shard_of
from tests.training.test_synthesis import small_model, small_rows, small_tokenizer

pytestmark = pytest.mark.filterwarnings("ignore::tacit.errors.TacitWarning")
SMALL: dict[str, Any] = {"shards": 4, "rank": 2, "epochs": 2, "length": 12, "learning_rate": 0.02}


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("tiny")
    words = small_tokenizer()
    small_model(words).save_pretrained(folder)
    words.save_pretrained(folder)
    return str(folder)


def private_rows() -> list[dict[str, str]]:
    return [{"text": row["text"], "author": f"u{i % 9}"} for i, row in enumerate(small_rows(40))]


@pytest.fixture(scope="module")
def ensemble(tiny: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ensembles") / "ensemble"
    tacit.train_ensemble(private_rows(), model=tiny, output=folder, user_column="author", dataset="notes", **SMALL)
    return folder


@pytest.fixture(autouse=True)
def key_of_ledgers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TACIT_LEDGER_KEY", "a key for tests, nothing more")


def answers_of(ensemble: Path, folder: Path, **options: Any) -> Any:
    given = {"ledger": str(folder / "ledger.db"), "output": folder / "answers.csv", "length": 5, **options}
    return tacit.predict_ensemble(ensemble, given.pop("prompts", ["play some"]), **given)


# The split ---------------------------------------------------------------------------------------------------------


def test_an_owner_moves_nobody_else() -> None:
    owners = [f"u{i % 30}" for i in range(90)]
    key = bytes(range(32))
    shards = rows_of_shards(owners, 7, key)
    assert sorted(row for mine in shards for row in mine) == [*range(90)]
    for owner in set(owners):
        assert {shard for shard, mine in enumerate(shards) for row in mine if owners[row] == owner} == {
            shard_of(owner, 7, key)
        }
        without = [other for other in owners if other != owner]
        changed = rows_of_shards(without, 7, key)
        kept = [[owners[row] for row in mine if owners[row] != owner] for mine in shards]
        assert [[without[row] for row in mine] for mine in changed] == kept


def test_the_models_of_other_shards_do_not_change(tiny: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The proof obligation of the training: a user more or less changes the weights of one shard, bit by bit."""
    monkeypatch.setattr("secrets.token_bytes", lambda size: bytes(size - 1) + b"1")
    rows = private_rows()
    folders = []
    for name, mine in (("with", rows), ("without", [row for row in rows if row["author"] != "u3"])):
        tacit.train_ensemble(mine, model=tiny, output=tmp_path / name, user_column="author", dataset="d", **SMALL)
        folders.append(EnsembleFolder(tmp_path / name))
    changed = []
    for shard in range(4):
        contents = [place.read_bytes() if (place := f.shard(shard)).exists() else b"" for f in folders]
        changed += [shard] if contents[0] != contents[1] else []
    assert changed == [shard_of("u3", 4, bytes(31) + b"1")]


# The folder --------------------------------------------------------------------------------------------------------


def test_nothing_of_the_folder_is_promised(ensemble: Path) -> None:
    assert is_ensemble(ensemble)
    assert not Card.of_file(ensemble / "card.json").guarantee.is_private
    assert stat.S_IMODE((ensemble / "private").stat().st_mode) == 0o700
    assert not [*ensemble.glob("*.safetensors")], "weights lie in the private part"
    with pytest.raises(TacitError, match="ensemble"):
        tacit.predict(ensemble, ["play"])


def test_a_stopped_training_goes_on(tiny: str, tmp_path: Path) -> None:
    place = tmp_path / "e"
    options = {"model": tiny, "output": place, "user_column": "author", "dataset": "d", **SMALL}

    def stop(what: str, done: int, total: int) -> None:
        if len([*place.glob("private/shards/*")]) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tacit.train_ensemble(private_rows(), progress=stop, **options)
    with pytest.raises(BadInputError, match="resume"):
        tacit.train_ensemble(private_rows(), **options)
    with pytest.raises(BadInputError, match="not finished"):
        answers_of(place, tmp_path)
    with pytest.raises(BadInputError, match="another rows"):
        tacit.train_ensemble(private_rows()[1:], resume=True, **options)
    first = {path.name: path.stat().st_mtime_ns for path in place.glob("private/shards/*")}
    trained = tacit.train_ensemble(private_rows(), resume=True, **options)
    now = {path.name: path.stat().st_mtime_ns for path in place.glob("private/shards/*")}
    assert trained.rows == 40
    assert first.items() <= now.items(), "finished shards are kept"
    assert len(now) == 4 - trained.empty
    with pytest.raises(BadInputError, match="finished ensemble"):
        tacit.train_ensemble(private_rows(), **options)


# Answers -----------------------------------------------------------------------------------------------------------


def test_answers_have_a_card_and_are_paid_for(ensemble: Path, tmp_path: Path) -> None:
    made = answers_of(ensemble, tmp_path, prompts=["play some", "book a"], answers=3, epsilon=2.0, delta=1e-5)
    assert len(made) == 6
    assert made.drawn <= 30
    card = Card.from_json((tmp_path / "answers.csv.card.json").read_text())
    assert card == made.card
    promise = made.guarantee
    assert (promise.unit, promise.adjacency) == (Unit.USER, Adjacency.ADD_REMOVE)
    assert 1.99 < promise.epsilon <= 2.0
    assert promise.parameters["tokens in all"] == 30
    assert any("prompts" in line for line in promise.not_covered)
    with open_ledger(tmp_path / "ledger.db") as ledger:
        (line,) = ledger.releases(dataset="notes")
        assert (line.state, line.guarantee) == ("committed", promise)
        assert ledger.spent(Subject("dataset", "notes")).epsilon == pytest.approx(promise.epsilon)
    assert not [*ensemble.glob("private/asking-*")], "the key of the noise is gone"


def test_no_answer_without_a_ledger(ensemble: Path, tmp_path: Path) -> None:
    with pytest.raises(BadParameterError, match="ledger"):
        tacit.run(EnsembleAnswersConfig(model=ensemble, data=["play"], output=tmp_path / "a.csv"))
    assert not [*tmp_path.iterdir()]


def test_a_limit_stops_before_anything_is_drawn(
    ensemble: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_ledger(tmp_path / "ledger.db") as ledger:
        ledger.set_limit("dataset", epsilon=1.0, delta=1e-3)
    monkeypatch.setattr(Ensemble, "answer", lambda *_, **__: pytest.fail("a token was drawn"))
    with pytest.raises(BudgetExceededError):
        answers_of(ensemble, tmp_path, epsilon=1.5)
    assert not (tmp_path / "answers.csv").exists()
    assert not [*ensemble.glob("private/asking-*")]


def test_two_calls_add_up(ensemble: Path, tmp_path: Path) -> None:
    first = answers_of(ensemble, tmp_path, up=0.2, down=0.2)
    second = answers_of(ensemble, tmp_path, up=0.2, down=0.2, output=tmp_path / "more.csv")
    with open_ledger(tmp_path / "ledger.db") as ledger:
        spent = ledger.spent(Subject("dataset", "notes")).epsilon
    assert spent == pytest.approx(first.guarantee.epsilon + second.guarantee.epsilon)


def test_a_stopped_call_goes_on_with_its_noise_and_pays_once(
    ensemble: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(StreamKey, "from_os", classmethod(lambda cls: cls(bytes(range(32)), secure=True)))
    whole = answers_of(ensemble, tmp_path, answers=4, output=tmp_path / "whole.csv", ledger=str(tmp_path / "other.db"))

    def stop(what: str, done: int, total: int) -> None:
        if done > 8:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        answers_of(ensemble, tmp_path, answers=4, progress=stop)
    with pytest.raises(BadInputError, match="resume"):
        answers_of(ensemble, tmp_path, answers=4)
    (draft,) = ensemble.glob("private/asking-*/drawn.jsonl")
    with draft.open("a") as file:
        file.write('{"ids": [1, 2')  # killed in the middle of a line
    made = answers_of(ensemble, tmp_path, answers=4, resume=True)
    assert made.texts == whole.texts
    with open_ledger(tmp_path / "ledger.db") as ledger:
        assert len(ledger.releases(dataset="notes")) == 1


def test_tokens_that_are_paid_for_end_the_answers(ensemble: Path, tmp_path: Path) -> None:
    made = answers_of(ensemble, tmp_path, answers=50, tokens=12)
    assert made.drawn <= 12
    assert made.unanswered == 50 - len(made) > 0
    assert made.guarantee.parameters["tokens in all"] == 12


def test_greedy_answers_are_refused(ensemble: Path, tmp_path: Path) -> None:
    with pytest.raises(BadParameterError, match="likeliest"):
        answers_of(ensemble, tmp_path, temperature=0.0)


def test_a_test_seed_promises_nothing(ensemble: Path, tmp_path: Path) -> None:
    made = [answers_of(ensemble, tmp_path, seed=3, output=tmp_path / f"{i}.csv", answers=3) for i in range(2)]
    assert made[0].texts == made[1].texts
    assert not made[0].guarantee.is_private


def test_replacing_a_user_costs_two_shards(ensemble: Path, tmp_path: Path) -> None:
    plain, replaced = (
        answers_of(ensemble, tmp_path, replace_one=flag, output=tmp_path / f"{flag}.csv").guarantee
        for flag in (False, True)
    )
    assert replaced.adjacency is Adjacency.REPLACE_ONE
    assert replaced.parameters["epsilon of a token"] == Band(4).token_epsilon(2)
    assert plain.parameters["epsilon of a token"] == Band(4).token_epsilon(1)


def test_the_law_of_tokens_is_that_of_the_band(ensemble: Path) -> None:
    """The first token of many answers, against the exact mixture; chi-square over the 10 likeliest tokens and the rest,
    false-alarm rate 1e-4 (critical value of 10 degrees of freedom: 35.56)."""
    model = ensemble_answers.opened(EnsembleFolder(ensemble))
    band = Band(4, up=1.0, down=1.0)
    prompt = model.prompt("play some", 5, 32)
    public, shards = model.laws([*prompt, 0])
    weights = band.mixture(public_weights(public[-1]), np.array([law[-1] for law in shards]))
    expected = weights / weights.sum()
    assert int(weights.sum()) == 4 * TOTAL
    draws = 600
    counts = np.zeros(len(expected))
    ends = 0
    for place in range(draws):
        ids = model.answer(
            prompt, band=band, tokens=1, temperature=1.0, source=StreamKey.from_test_seed(5).stream(place, b"")
        )
        if ids:
            counts[int(np.searchsorted(model.public.support, ids[0]))] += 1
        else:
            ends += 1
    if model.public.end is not None:
        counts[int(np.searchsorted(model.public.support, model.public.end))] += ends
    likeliest = expected.argsort()[::-1][:10]
    observed = np.append(counts[likeliest], draws - counts[likeliest].sum())
    wanted = np.append(expected[likeliest], 1 - expected[likeliest].sum()) * draws
    assert ((observed - wanted) ** 2 / wanted).sum() < 35.56


def test_cached_attention_changes_nothing(ensemble: Path) -> None:
    """Answers of several tokens are drawn with attention that is kept from token to token; the laws are those of a
    model that reads everything again."""
    from collections import OrderedDict

    from tacit.training.ensemble.asking import _Reading

    model = ensemble_answers.opened(EnsembleFolder(ensemble))
    ids = model.prompt("play some music in the", 5, 32)
    public, shards = model.laws([*ids, 0])
    readings: OrderedDict[int, _Reading] = OrderedDict()
    for stop in range(1, len(ids) + 1):
        for shard in (0, 3) if stop % 2 else (0,):
            law = model._shard_law(shard, readings, ids[:stop], 1.0)
            if law is not None:
                np.testing.assert_allclose(law, shards[shard][stop - 1], atol=1e-6)
    assert np.isfinite(public).all()


# Budgets -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shards", [10, 100, 1000])
@pytest.mark.parametrize("tokens", [1, 100, 5000])
@pytest.mark.parametrize("epsilon", [0.5, 3.0])
def test_the_band_of_a_budget_costs_no_more(shards: int, tokens: int, epsilon: float) -> None:
    for adjacency in (Adjacency.ADD_REMOVE, Adjacency.REPLACE_ONE):
        band = band_for(epsilon, shards, tokens=tokens, delta=1e-6, adjacency=adjacency, like=Band(shards))
        cost, delta = TokenBudget(band, tokens, 1e-6, Unit.USER, adjacency).cost()
        assert cost <= epsilon
        assert delta in (0.0, 1e-6)
        assert cost > 0.999 * epsilon or band.up == 3.0


def test_known_costs() -> None:
    """100 shards, u + d = 1, 1,000 tokens at delta 1e-6: epsilon 3.0 or less; one token is pure."""
    budget = TokenBudget(Band(100, 0.5, 0.5), 1000, 1e-6, Unit.USER)
    assert 2.5 < budget.cost()[0] <= 3.0
    assert budget.guarantee().notion is Notion.APPROXIMATE
    single = TokenBudget(Band(100, 0.5, 0.5), 1, 1e-6, Unit.USER).guarantee()
    assert (single.notion, single.delta) == (Notion.PURE, 0.0)
    assert single.epsilon == pytest.approx(math.log((99 + math.e) / 100), rel=1e-5)


def test_a_budget_below_every_band() -> None:
    with pytest.raises(BadParameterError, match="fewer tokens"):
        band_for(0.01, 2, tokens=10**6, delta=1e-6, adjacency=Adjacency.ADD_REMOVE, like=Band(2))


# The command -------------------------------------------------------------------------------------------------------


def test_commands(
    tiny: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    lines = "".join(json.dumps(row) + "\n" for row in private_rows())
    (tmp_path / "notes.jsonl").write_text(lines)
    (tmp_path / "prompts.txt").write_text("play some\nbook a\n")
    small = ["--shards", "3", "--rank", "2", "--epochs", "1", "--length", "12"]
    assert run_command(["train", "ensemble", "notes.jsonl", "--model", tiny, *small, "-o", "e"]) == 0
    asking = ["predict", "e", "prompts.txt", "--epsilon", "4", "--tokens", "9", "--length", "6", "-o", "answers.jsonl"]
    assert run_command(asking) == 2
    assert "--ledger" in capsys.readouterr().err
    assert run_command([*asking, "--ledger", "ledger.db"]) == 0
    shown = capsys.readouterr()
    assert "spent so far: epsilon 4" in shown.err
    rows = [json.loads(line) for line in (tmp_path / "answers.jsonl").read_text().splitlines()]
    assert rows[0]["prompt"] == "play some"
    assert (tmp_path / "answers.jsonl.card.md").exists()
    for row in private_rows():
        assert row["text"] not in (tmp_path / "e" / "ensemble.json").read_text()


def test_the_promise_is_made_of_what_is_drawn() -> None:
    """The order that pays and the band that draws are one object: nobody passes an epsilon by hand."""
    fields = ensemble_answers.TokenOrder.__dataclass_fields__
    assert "budget" in fields
    assert "epsilon" not in fields


def test_spellings_of_a_user_are_in_one_shard():
    names = names_of_users(["7", "7.0", "Jos\u00e9 ", "Jose\u0301", "other"], "user")
    assert names == ["7", "7", "josé", "josé", "other"]
