"""Labels that the declared list does not have, and numbers that are none: a sentence, and nothing is lost or spent."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("dp_accounting")

import tacit
from tacit.account.ledger import open_ledger
from tacit.errors import TacitError
from tests.jobs.test_training_for_users import folder  # noqa: F401
from tests.training.test_run import rows, tokenizer  # noqa: F401

LABELED = rows(60)
TAGGED = [
    {
        "tokens": row["text"],
        "tags": " ".join("X" if word in ("the", "a", "film") else "Y" for word in row["text"].split()),
    }
    for row in LABELED
]
NUMBERED = [{"text": row["text"], "label": str(number % 3)} for number, row in enumerate(LABELED)]
Options = dict[str, Any]
OPTIONS: Options = {
    "strategy": "full", "epsilon": 2, "delta": 1e-3, "batch": 20, "epochs": 0.1, "length": 16, "dataset": "d",
}  # fmt: skip
ODD = {"text": "a film", "label": "odd"}


def with_last(data: list[dict[str, str]], row: Mapping[str, object]) -> list[Mapping[str, object]]:
    """As many rows, so that their plan is known."""
    return [*data[:-1], row]


@pytest.mark.parametrize(
    ("task", "data", "options", "code"),
    [
        ("classify", with_last(LABELED, ODD), {"labels": ["neg", "pos"]}, "label-not-listed"),
        ("classify", with_last(LABELED, {"text": "a", "label": None}), {"labels": ["neg", "pos"]}, "label-missing"),
        ("classify", LABELED, {"labels": ["pos"]}, "label-not-listed"),
        ("classify", LABELED, {"labels": ["neg", "pos", "neg"]}, "label-listed-twice"),
        ("classify", LABELED, {"labels": ["neg", "pos"], "public_rows": [ODD]}, "label-not-listed"),
        ("classify", [{**row, "user": i // 3} for i, row in enumerate(with_last(LABELED, ODD))],
         {"labels": ["neg", "pos"], "user_column": "user", "rows_per_user": 3, "unit_sampling": "users"},
         "label-not-listed"),
        ("tag", with_last(TAGGED, {"tokens": "a film", "tags": "X Z"}), {"labels": ["X", "Y"]}, "tags-not-listed"),
        ("tag", with_last(TAGGED, {"tokens": "a film", "tags": "X"}), {"labels": ["X", "Y"]}, "wrong-number-of-tags"),
        ("regress", with_last(NUMBERED, {"text": "a film", "label": "1e999"}), {}, "not-a-number"),
        ("regress", with_last(NUMBERED, {"text": "a film", "label": float("nan")}), {}, "not-a-number"),
        ("regress", with_last(NUMBERED, ODD), {"label_range": (0, 2)}, "not-a-number"),
    ],
)  # fmt: skip
def test_what_no_model_can_learn_is_refused_before_anything_is_spent(
    folder: Path,  # noqa: F811
    tmp_path: Path,
    task: str,
    data: list[Mapping[str, object]],
    options: Options,
    code: str,
) -> None:
    with open_ledger(str(tmp_path / "budget.db")):
        """A new one says so with a warning."""
    before = sorted(tmp_path.iterdir())
    with pytest.raises(TacitError) as refused:
        tacit.train(
            task, data, model=str(folder / "tiny"), output=tmp_path / "m", ledger=str(tmp_path / "budget.db"),
            **{**OPTIONS, **options},
        )  # fmt: skip
    assert refused.value.code == code
    assert "odd" not in str(refused.value), "a private label is not shown"
    assert sorted(tmp_path.iterdir()) == before
    with open_ledger(str(tmp_path / "budget.db"), create=False) as ledger:
        assert list(ledger.releases(dataset="d")) == []


def test_a_label_of_the_test_rows_that_the_model_does_not_have_is_a_wrong_prediction(
    folder: Path,  # noqa: F811
    tmp_path: Path,
) -> None:
    """After training nothing may be lost: the model stays, and the row counts as wrong."""
    trained = tacit.train(
        "classify", LABELED, model=str(folder / "tiny"), output=tmp_path / "m", labels=["neg", "pos"],
        test=[ODD, ODD], **{**OPTIONS, "dataset": None},
    )  # fmt: skip
    assert (tmp_path / "m" / "card.json").exists()
    assert trained.score == 0.0


@pytest.mark.filterwarnings("ignore::tacit.errors.TacitWarning")
@pytest.mark.parametrize("label", ["1e300", "-7"])
def test_a_number_out_of_range_counts_as_the_nearer_end_or_adds_nothing(
    folder: Path,  # noqa: F811
    tmp_path: Path,
    label: str,
) -> None:
    """1e300 is no number in single precision: its gradient is not finite, and the run goes on without it."""
    data = with_last(NUMBERED, {"text": "a film", "label": label})
    for name, more in (("open", {}), ("range", {"label_range": (0, 2)})):
        trained = tacit.train(
            "regress", data, model=str(folder / "tiny"), output=tmp_path / name,
            **{**OPTIONS, "dataset": None, "epochs": 1.0, "batch": 60, **more},
        )  # fmt: skip
        assert trained.guarantee.epsilon <= 2
