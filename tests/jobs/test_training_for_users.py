"""Training whose promise is made to users, from its options to its card, its ledger and its synthetic rows."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("dp_accounting")

from transformers import PreTrainedTokenizerBase

import tacit
from tacit.account.delta import automatic_delta
from tacit.account.ledger import open_ledger
from tacit.card import Card
from tacit.errors import BadInputError, BadParameterError, TacitError
from tacit.guarantee import Adjacency, Unit
from tacit.jobs.synthesize_training import TrainedSynthesisConfig
from tacit.jobs.train import TrainClassify, run
from tacit.jobs.training.result import TrainingProgress
from tacit.noise.source import Source
from tacit.training.plan import TrainingPlan
from tacit.training.run import StepReport
from tacit.training.synthesis import ControlCodes, exact_counts, noisy_counts
from tacit.training.tasks import Classification
from tacit.training.user_plans import ExamplePlan, UserPlan
from tacit.training.users import group_by_user
from tests.jobs.test_train import weights
from tests.training.test_run import rows, tiny, tokenizer  # noqa: F401

USERS = 40
OPTIONS: dict[str, Any] = {
    "strategy": "full", "epsilon": 8, "delta": 1e-3, "batch": 30, "epochs": 0.5, "length": 16, "rows_per_user": 3,
    "user_column": "user",
}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tokenizer: PreTrainedTokenizerBase, tmp_path_factory: pytest.TempPathFactory) -> Path:  # noqa: F811
    place = tmp_path_factory.mktemp("users")
    tiny(tokenizer, Classification(labels=["neg", "pos"])).save_pretrained(place / "tiny")
    tokenizer.save_pretrained(place / "tiny")
    with (place / "data.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, ["text", "label", "user"])
        writer.writeheader()
        writer.writerows(rows_of_users())
    return place


def rows_of_users(spelled: str = "{}") -> list[dict[str, str]]:
    """One user has 30 rows."""
    return [
        {**row, "user": spelled.format(0 if number < 30 else number % USERS)} for number, row in enumerate(rows(160))
    ]


class Stopping(TrainingProgress):
    """Stops a run in its third step, and keeps what was planned."""

    plan: TrainingPlan
    notes: tuple[str, ...]
    stop = False

    def planned(self, plan: TrainingPlan, notes: tuple[str, ...]) -> None:
        self.plan, self.notes = plan, notes

    def stepped(self, now: StepReport) -> None:
        if self.stop and now.step == 3:
            raise KeyboardInterrupt


@pytest.mark.parametrize(("sampling", "kind"), [("users", UserPlan), ("examples", ExamplePlan)])
def test_users_are_promised_what_they_pay_for_and_a_stopped_run_goes_on(
    folder: Path, tmp_path: Path, sampling: str, kind: type
) -> None:
    def config(name: str, **more: object) -> TrainClassify:
        return TrainClassify(
            data=folder / "data.csv", model=str(folder / "tiny"), output=tmp_path / name, unit_sampling=sampling,
            **{**OPTIONS, "epochs": 2.0, "batch": 60, **more},
        )  # fmt: skip

    shown = Stopping()
    with open_ledger(str(tmp_path / "budget.db")):
        """A new one says so with a warning."""
    whole = run(config("whole", ledger=str(tmp_path / "budget.db")), shown)
    assert isinstance(shown.plan, kind)
    assert any("1 users have more than 3 rows" in note for note in shown.notes)
    assert whole.guarantee.unit is Unit.USER
    assert whole.guarantee.adjacency is Adjacency.ADD_REMOVE
    assert whole.guarantee.epsilon <= 8
    assert any("at most 3 of each user, is public" in line for line in whole.guarantee.assumptions)
    assert Card.from_json((tmp_path / "whole" / "card.json").read_text()).guarantee == whole.guarantee
    with open_ledger(str(tmp_path / "budget.db"), create=False) as ledger:
        assert [release.guarantee.unit for release in ledger.releases(dataset="data.csv")] == [Unit.USER]
    seeded = run(config("seeded", seed=3))
    shown.stop = True
    with pytest.raises(KeyboardInterrupt):
        run(config("stopped", seed=3), shown)
    again = run(config("stopped", seed=3, resume=True))
    assert weights(again.folder) == weights(seeded.folder)


@pytest.mark.parametrize(("sampling", "kind"), [("users", UserPlan), ("examples", ExamplePlan)])
def test_16_bits_public_rows_trials_and_an_average_go_with_users(
    folder: Path, tmp_path: Path, sampling: str, kind: type
) -> None:
    """All at once: what each adds to the card is there, and two trials have two budgets of a user."""
    shown = Stopping()
    public = [{"text": row["text"], "label": row["label"]} for row in rows(40, seed=5)]
    config = TrainClassify(
        data=folder / "data.csv", model=str(folder / "tiny"), output=tmp_path / "m", unit_sampling=sampling,
        precision="bf16", physical=8, public_rows=public, trials=2, average=0.5,
        **{**OPTIONS, "epsilon": 2, "delta": "auto"},
    )  # fmt: skip
    promised = run(config, shown).guarantee
    assert isinstance(shown.plan, kind)
    assert shown.plan.delta == pytest.approx(automatic_delta(USERS, 2))
    assert promised.unit is Unit.USER
    assert promised.epsilon == pytest.approx(2 * shown.plan.epsilon())
    assert promised.delta == pytest.approx(2 * shown.plan.delta)
    assert promised.parameters["public gradients"] == "precondition"
    assert "16 bits" in str(promised.parameters["precision"])
    assert "each of the last" in str(promised.parameters["saved weights"])
    assert any(line.name == "public gradients" for line in promised.provenance)


def test_a_run_does_not_go_on_with_rows_of_other_users(folder: Path, tmp_path: Path) -> None:
    options = {**OPTIONS, "model": str(folder / "tiny"), "output": tmp_path / "m", "epochs": 4.0}
    shown = Stopping()
    shown.stop = True
    with pytest.raises(KeyboardInterrupt):
        run(TrainClassify(data=rows_of_users(), **options), shown)
    other = rows_of_users()
    other[50]["user"], other[51]["user"] = other[51]["user"], other[50]["user"]
    with pytest.raises(BadInputError, match="another users"):
        run(TrainClassify(data=other, resume=True, **options))


@pytest.mark.parametrize("kind", ["int64", "float64", "string"])
def test_users_of_a_typed_column_are_the_same_users(folder: Path, tmp_path: Path, kind: str) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    made = rows_of_users()
    column = [str(row["user"]) if kind == "string" else float(row["user"]) for row in made]
    table = arrow.table({
        "text": [row["text"] for row in made],
        "label": [row["label"] for row in made],
        "user": arrow.array(column, getattr(arrow, "string" if kind == "string" else "float64")()).cast(kind),
    })  # fmt: skip
    parquet.write_table(table, tmp_path / "data.parquet")
    shown = Stopping()
    shown.stop = True
    options = {**OPTIONS, "epochs": 4.0, "unit_sampling": "users"}
    with pytest.raises(KeyboardInterrupt):
        run(
            TrainClassify(data=tmp_path / "data.parquet", model=str(folder / "tiny"), output=tmp_path / "m", **options),
            shown,
        )
    assert shown.plan.records == USERS


@pytest.mark.parametrize("missing", [None, "", " ", float("nan")])
def test_rows_without_a_user_are_refused(folder: Path, tmp_path: Path, missing: object) -> None:
    made = [{**row, "user": missing if number == 7 else row["user"]} for number, row in enumerate(rows_of_users())]
    with pytest.raises(BadInputError, match="row 8 has no value in 'user'"):
        tacit.train("classify", made, model=str(folder / "tiny"), output=tmp_path / "m", **OPTIONS)
    assert not (tmp_path / "m").exists()


def test_without_noise_users_may_be_compared_with(folder: Path, tmp_path: Path) -> None:
    for sampling in ("users", "examples"):
        options = {**OPTIONS, "epsilon": float("inf"), "unit_sampling": sampling, "delta": "auto"}
        trained = tacit.train(
            "classify", folder / "data.csv", model=str(folder / "tiny"), output=tmp_path / sampling, **options
        )
        assert trained.guarantee.void is not None
        assert trained.guarantee.unit is Unit.USER


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"user_column": None}, "users-without-column"),
        ({"user_column": None, "rows_per_user": None, "unit_sampling": "users"}, "users-without-column"),
        ({"grow_to": 60}, "users-with-another-plan"),
        ({"noise": "banded"}, "users-with-another-plan"),
        ({"tune": {"settings": {"bound": [1.0, 2.0]}}}, "users-with-another-plan"),
        ({"unit_sampling": "examples", "replace_one": True}, "replaced-user-by-examples"),
        ({"epsilon": None, "public": "names"}, "users-without-noise"),
        ({"rows_per_user": 0}, None),
        ({"batch": 5_000}, "fewer-rows-than-batch"),
        ({"user_column": "nobody"}, None),
    ],
)
def test_what_has_no_plan_for_users_is_refused_before_anything_is_spent(
    folder: Path, tmp_path: Path, options: dict[str, object], code: str | None
) -> None:
    with pytest.raises(TacitError) as refused:
        tacit.train(
            "classify", folder / "data.csv", model=str(folder / "tiny"), output=tmp_path / "m", **{**OPTIONS, **options}
        )
    assert code in (None, refused.value.code)
    assert not (tmp_path / "m").exists()


def test_labels_of_a_user_count_one_in_all() -> None:
    """Exactly: whoever is left out, the counts move by 1 at most, and by no more however many rows they had."""
    codes = ControlCodes(("label",), (("neg", "pos"),))
    made = [{"label": "pos" if number % 3 else "neg"} for number in range(11)]
    names = ["a"] * 7 + ["b", "c", "c", "c"]
    whole = exact_counts(made, codes, group_by_user(names))
    assert sum(whole.values()) == pytest.approx(3.0, abs=1e-5)
    for user in "abc":
        kept = [number for number, name in enumerate(names) if name != user]
        others = exact_counts([made[i] for i in kept], codes, group_by_user([names[i] for i in kept]))
        moved = sum(abs(whole[cell] - others[cell]) for cell in whole)
        assert 1.0 - 1e-5 < moved <= 1.0
    counted = noisy_counts(
        made, codes, epsilon=50.0, adjacency=Adjacency.ADD_REMOVE, source=Source.from_os(), users=group_by_user(names)
    )
    assert counted.guarantee is not None
    assert counted.guarantee.unit is Unit.USER
    assert sum(counted.counts.values()) in (2, 3, 4)


@pytest.mark.parametrize("sampling", ["users", "examples"])
def test_synthetic_rows_promise_to_users(tmp_path: Path, sampling: str) -> None:
    from tests.training.test_synthesis import small_model, small_rows, small_tokenizer

    words = small_tokenizer()
    small_model(words).save_pretrained(tmp_path / "tiny")
    words.save_pretrained(tmp_path / "tiny")
    private = [{**row, "author": number // 5} for number, row in enumerate(small_rows(300))]
    made = tacit.synthesize(
        private, by="training", epsilon=8, delta=1e-3, label_columns=["intent"], model=str(tmp_path / "tiny"), rows=8,
        output=tmp_path / "out.csv", keep_duplicates=True, shortest=1, strategy="full", length=16, batch=60, epochs=1,
        user_column="author", rows_per_user=4, unit_sampling=sampling,
    )  # fmt: skip
    assert len(made) == 8
    assert made.guarantee.unit is Unit.USER
    assert made.guarantee.epsilon <= 8
    assert not any("several records of one person" in line for line in made.guarantee.not_covered)
    assert "what many users have in common: the model is meant to learn it" in made.guarantee.not_covered
    with pytest.raises(BadParameterError, match="made its promise already"):
        TrainedSynthesisConfig(from_model=tmp_path / "out-model", user_column="author")
