"""An audit reads every folder that a training writes, with the rows of its task; what cannot be audited is said."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

import tacit  # noqa: E402
from tacit.auditing.models.canary_files import save_canaries  # noqa: E402
from tacit.auditing.models.in_distribution import canaries_like  # noqa: E402
from tacit.auditing.models.trained import NOT_ASKED  # noqa: E402
from tacit.errors import BadInputError  # noqa: E402
from tacit.noise.source import new_source  # noqa: E402
from tests.literature.small_files import BAD, GOOD, OTHERS, write_small_models  # noqa: E402

ROWS = 60
SHORT: dict[str, Any] = {"epsilon": math.inf, "batch": ROWS, "epochs": 1, "length": 16, "physical": ROWS, "seed": 1}
MODELS = ("tiny-classifier", "tiny-tagger", "tiny-reader", "tiny-filler", "tiny-writer", "tiny-translator")


def rows(start: int, count: int = ROWS) -> list[dict[str, str]]:
    """Rows for all tasks; no text stands there twice."""
    generator = np.random.default_rng(start)
    made = []
    for number in range(start, start + count):
        kind = GOOD if number % 2 else BAD
        text = " ".join([*generator.choice(kind, 2), *generator.choice(OTHERS, 2), f"number{number}"])
        made.append(
            {
                "text": text, "label": "pos" if number % 2 else "neg", "score": str(number % 5), "user": f"u{number}",
                "tokens": text, "tags": "A A B B A", "question": f"what was {number}", "context": text,
                "answer": text.split()[0], "source": text, "target": "good film",
            }
        )  # fmt: skip
    return made


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("every")
    write_small_models(folder, MODELS)
    return folder


def classified(place: Path, output: Path, **changes: object) -> None:
    of_task("classify", "tiny-classifier", **changes)(place, output)


def tuned(place: Path, output: Path) -> None:
    grid = {"mean": 1.0, "law": "geometric", "settings": {"learning_rate": [1e-3]}}
    classified(place, output, epsilon=50.0, tune=grid, tune_rows=rows(500, 20), strategy="head", seed=3)


def federated(place: Path, output: Path) -> None:
    tacit.federate(
        "classify", rows(0), user_column="user", epsilon=math.inf, cohort=ROWS, epochs=1, length=16, seed=1,
        model=str(place / "tiny-classifier"), output=output,
    )  # fmt: skip


def of_task(task: str, start: str, **changes: object) -> Callable[[Path, Path], None]:
    def made(place: Path, output: Path) -> None:
        options = {**SHORT, "model": str(place / start), **changes}
        tacit.train(task, rows(0), output=output, **options)

    return made


def synthesized(place: Path, output: Path) -> None:
    tacit.synthesize(
        rows(0), by="training", label_columns=("label",), model=str(place / "tiny-writer"), strategy="full", rows=2,
        keep_model=output, output=output.parent / f"{output.name}.csv", shortest=1, **SHORT,
    )  # fmt: skip


MAKERS: dict[str, Callable[[Path, Path], None]] = {
    "classify, mean of positions": lambda place, output: classified(place, output, pooling="mean"),
    "classify, lora": lambda place, output: classified(place, output, strategy="lora"),
    "classify, adapter": lambda place, output: classified(place, output, strategy="adapter"),
    "classify, all layers": lambda place, output: classified(place, output, strategy="all-layers"),
    "classify, lstm": lambda place, output: classified(place, output, strategy="frozen-lstm"),
    "classify, from scratch": lambda place, output: classified(
        place, output, model="bilstm-1x8", tokenizer=str(place / "tiny-classifier")
    ),
    "classify, pairs": lambda place, output: classified(place, output, pair_column="context"),
    "classify, banded": lambda place, output: classified(
        place, output, epsilon=50.0, noise="banded", bands=2, batch=30, strategy="head"
    ),
    "classify, searched": tuned,
    "classify, federated": federated,
    "regress": of_task("regress", "tiny-classifier", label_column="score", pooling="mean"),
    "tag": of_task("tag", "tiny-tagger", text_column="tokens"),
    "answer": of_task("answer", "tiny-reader"),
    "write": of_task("write", "tiny-writer", strategy="lora"),
    "fill": of_task("fill", "tiny-filler", strategy="full"),
    "translate": of_task("translate", "tiny-translator"),
    "synthesize": synthesized,
}


@pytest.mark.parametrize("name", MAKERS)
def test_what_was_trained_is_audited_with_its_own_columns(name: str, place: Path, tmp_path: Path) -> None:
    MAKERS[name](place, tmp_path / "model")
    report = tacit.audit_model(
        tmp_path / "model", members=rows(0), non_members=rows(1000), split="random", claim_epsilon=8.0,
        claim_delta=1e-5,
    )  # fmt: skip
    by_name = {finding.name: finding for finding in report.findings}
    auc = float(str(by_name["Membership"].numbers["auc"]))
    assert 0.0 <= auc <= 1.0
    assert by_name["Lower bound on epsilon"].numbers["canaries"]
    assert report.facts["members"] == f"{ROWS} of the {ROWS} texts in the data in memory"


def test_an_overfitted_tagger_is_caught_and_a_private_one_is_not(place: Path, tmp_path: Path) -> None:
    """Tags are random, so only a model that has learned them by heart knows those of its own rows."""

    def tagged(start: int) -> list[dict[str, str]]:
        generator = np.random.default_rng(start)
        words = [*GOOD, *BAD, *OTHERS]
        return [
            {"tokens": " ".join(generator.choice(words, 6)), "tags": " ".join(generator.choice(["A", "B"], 6))}
            for _ in range(ROWS)
        ]

    options = {**SHORT, "model": str(place / "tiny-tagger"), "text_column": "tokens", "strategy": "full"}
    for name, changes in (
        ("overfitted", {"epochs": 150, "learning_rate": 1e-2}),
        ("private", {"epochs": 5, "epsilon": 1.0}),
    ):
        tacit.train("tag", tagged(0), output=tmp_path / name, **{**options, **changes})
    reports = {
        name: tacit.audit_model(
            tmp_path / name, members=tagged(0), non_members=tagged(1), split="random", claim_epsilon=0.5,
            claim_delta=1e-5,
        )
        for name in ("overfitted", "private")
    }  # fmt: skip
    assert reports["overfitted"].refuted
    assert not reports["private"].refuted


def test_a_classifier_is_audited_by_rows_with_labels_at_random(place: Path, tmp_path: Path) -> None:
    generator = np.random.default_rng(2)
    words = [*GOOD, *BAD, *OTHERS]
    texts = [" ".join(generator.choice(words, 4)) for _ in range(200)]
    canaries = canaries_like(
        texts, 160, source=new_source(3), labels=["neg", "pos"], kind="unigram", prefix_words=3, secret_words=3
    )
    save_canaries(canaries, tmp_path / "coins.jsonl")
    trained = [{"text": c.text, "label": str(c.label)} for c in canaries if c.included]
    options = {**SHORT, "model": str(place / "tiny-classifier"), "strategy": "full", "batch": 30}
    reports = {}
    for name, changes in (
        ("overfitted", {"epochs": 150, "learning_rate": 3e-3, "label_smoothing": 0.0}),
        ("private", {"epochs": 5, "epsilon": 1.0, "batch": len(trained)}),
    ):
        tacit.train("classify", trained, output=tmp_path / name, **{**options, **changes})
        reports[name] = tacit.audit_model(
            tmp_path / name, canaries=tmp_path / "coins.jsonl", claim_epsilon=0.5, claim_delta=1e-5
        )
    assert reports["overfitted"].refuted
    assert not reports["private"].refuted
    save_canaries(canaries_like(texts, 20, source=new_source(3)), tmp_path / "texts.jsonl")
    with pytest.raises(BadInputError) as refused:
        tacit.audit_model(tmp_path / "private", canaries=tmp_path / "texts.jsonl")
    assert refused.value.code == "canaries-in-a-classifier"


@pytest.mark.parametrize(("file", "code"), [(file, code) for file, code, _ in NOT_ASKED])
def test_what_has_no_loss_of_a_text_is_said(file: str, code: str, tmp_path: Path) -> None:
    (tmp_path / file).write_text("{}")
    with pytest.raises(BadInputError) as refused:
        tacit.audit_model(tmp_path, members=["a", "b"], non_members=["c", "d"])
    assert refused.value.code == code


def test_rows_must_have_the_columns_of_the_task(place: Path, tmp_path: Path) -> None:
    MAKERS["answer"](place, tmp_path / "reader")
    texts = [row["text"] for row in rows(0)]
    with pytest.raises(BadInputError, match="question"):
        tacit.audit_model(tmp_path / "reader", members=texts, non_members=[row["text"] for row in rows(1000)])
    MAKERS["regress"](place, tmp_path / "number")
    with pytest.raises(BadInputError) as refused:
        tacit.audit_model(tmp_path / "number", members=texts, non_members=[row["text"] for row in rows(1000)])
    assert refused.value.code == "labels-missing"
    with pytest.raises(BadInputError) as refused:
        tacit.audit_model(tmp_path / "number", members=rows(0), non_members=[row["text"] for row in rows(1000)])
    assert refused.value.code == "labels-on-one-side"
