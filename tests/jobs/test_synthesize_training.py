"""Synthetic rows and selective training from Python: rows in memory, and what a configuration refuses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import tacit
from tacit.card import Card
from tacit.errors import BadParameterError
from tacit.jobs import selective
from tacit.jobs.config import read_mapping
from tacit.jobs.selective import SelectiveConfig
from tacit.jobs.synthesize_training import TrainedSynthesisConfig

SMALL = {"strategy": "full", "length": 16, "batch": 100, "physical": 200, "epochs": 1}


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> str:
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    from tests.training.test_synthesis import small_model, small_tokenizer

    folder = tmp_path_factory.mktemp("tiny")
    words = small_tokenizer()
    small_model(words).save_pretrained(folder)
    words.save_pretrained(folder)
    return str(folder)


def private_rows() -> list[dict[str, str]]:
    from tests.training.test_synthesis import small_rows

    return small_rows(300)


def test_rows_in_memory_become_synthetic_rows_with_a_card(tiny: str, tmp_path: Path) -> None:
    made = tacit.synthesize(
        private_rows(), by="training", epsilon=8, label_columns=["intent"], model=tiny,
        labels={"intent": ["music", "travel"]}, rows=10, output=tmp_path / "out.csv", keep_duplicates=True,
        shortest=1, **SMALL,
    )  # fmt: skip
    assert len(made) == 10
    assert set(made.rows[0]) == {"intent", "text"}
    assert made.guarantee.epsilon <= 8
    assert made.folder == tmp_path / "out-model"
    for place in ("out.csv.card.json", "out-model/card.json"):
        card = Card.from_json((tmp_path / place).read_text())
        assert (card.made_by["job"], card.made_by["label_columns"]) == ("synthesize training", ["intent"])
    more = tacit.synthesize(
        by="training", from_model=made.folder, rows=3, output=tmp_path / "more.csv", keep_duplicates=True, shortest=1
    )
    assert more.guarantee.epsilon == made.guarantee.epsilon


def test_selective_training_on_rows_in_memory(tiny: str, tmp_path: Path) -> None:
    from tests.training.test_synthesis import PLACES

    places = tmp_path / "places.txt"
    places.write_text("\n".join(PLACES))
    trained = selective.train(
        private_rows(), epsilon=8, sensitive=str(places), model=tiny, output=tmp_path / "m", **SMALL
    )
    assert trained.guarantee.epsilon <= 8
    assert "redacted" in trained.guarantee.adjacency.value
    assert Card.from_json((tmp_path / "m" / "card.json").read_text()).made_by["job"] == "train selective"


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({}, "rows-missing"),
        ({"data": ["a"]}, "missing-epsilon"),
        ({"from_model": "m", "epsilon": 3}, "budget-of-existing-model"),
        ({"data": ["a"], "epsilon": 3, "canaries": "c"}, "canaries-without-check"),
        ({"from_model": "m", "check": "r.json"}, "check-without-rows"),
        ({"data": ["a"], "epsilon": 3, "label_columns": ["text"]}, "text-is-label"),
        ({"data": ["a"], "epsilon": 3, "labels": {"stars": ["1"]}}, "bad-labels"),
        ({"data": ["a"], "epsilon": 3, "labels": ["stars"], "label_columns": ["stars"]}, "bad-labels"),
    ],
)
def test_options_of_synthesize_that_do_not_fit_together(options: dict[str, Any], code: str) -> None:
    with pytest.raises(BadParameterError) as refused:
        TrainedSynthesisConfig(**options)
    assert refused.value.code == code


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"first": "public"}, "public-phase-without-text"),
        ({"first": "public", "public_data": ["a"]}, "public-text-without-name"),
        ({"first_epsilon": 3}, "private-phase-without-budget"),
        ({"sensitive": "none"}, "nothing-sensitive"),
        ({"task": "classify", "model": "smollm2"}, "model-only-writes"),
    ],
)
def test_options_of_selective_training_that_do_not_fit_together(options: dict[str, Any], code: str) -> None:
    with pytest.raises(BadParameterError) as refused:
        SelectiveConfig(data=["a"], output="never", epsilon=3, **options)
    assert refused.value.code == code


def test_a_configuration_is_read_again_from_its_file(tmp_path: Path) -> None:
    config = TrainedSynthesisConfig(
        data="rows.csv", epsilon=3, label_columns="stars", labels=["stars=1,2"], output=tmp_path / "out.csv"
    )
    path = tmp_path / "config.toml"
    path.write_text(config.to_toml())
    assert TrainedSynthesisConfig.from_mapping(read_mapping(path)) == config
