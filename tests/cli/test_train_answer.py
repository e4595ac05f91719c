"""`tacit train answer` and `tacit predict`: windows, thresholds from public rows, the best answers."""

from __future__ import annotations

import json

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from tacit.cli.main import run  # noqa: E402
from tacit.text.files import read_columns  # noqa: E402
from tests.training.test_answering import long_rows, made_tokenizer, network  # noqa: E402


def write(path, rows):
    """Rows as SQuAD has them: answers are a list of objects."""
    lines = []
    for row in rows:
        answers = [{"text": row["answer"], "start": row["context"].find(row["answer"])}] if row["answer"] else []
        lines.append(json.dumps({"question": row["question"], "context": row["context"], "answers": answers}))
    path.write_text("\n".join(lines) + "\n")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("answers")
    tokenizer = made_tokenizer()
    network(tokenizer).save_pretrained(folder / "tiny")
    tokenizer.save_pretrained(folder / "tiny")
    write(folder / "rows.jsonl", long_rows() * 3)
    write(folder / "public.jsonl", long_rows()[:7])
    assert train(folder, "model", "--threshold-rows", folder / "public.jsonl") == 0
    return folder


def train(folder, output, *more):
    arguments = [
        "train", "answer", folder / "rows.jsonl", "--answer-column", "answers", "--model", folder / "tiny", "--epsilon",
        8, "--batch", 12, "--epochs", 1, "--length", 16, "--strategy", "full", "-o", folder / output, "-q", *more,
    ]  # fmt: skip
    return run([str(argument) for argument in arguments])


def predict(folder, output, *more):
    arguments = ["predict", folder / "model", folder / "public.jsonl", "-o", folder / output, *more]
    return run([str(argument) for argument in arguments])


def test_a_threshold_comes_from_public_rows_and_the_card_says_so(folder):
    settings = json.loads((folder / "model" / "task.json").read_text())
    assert settings["threshold"] != 0.0
    assert (settings["learned"], settings["most_windows"]) == ("all", 4)
    card = json.loads((folder / "model" / "card.json").read_text())
    assert "7 rows of public.jsonl, declared public" in json.dumps(card["guarantee"]["provenance"])
    assert card["guarantee"]["unit"] == "record"
    assert card["guarantee"]["epsilon"] <= 8


def test_the_best_answers_stand_beside_the_predictions(folder, capsys):
    assert predict(folder, "best.jsonl", "--best", 3, "--score") == 0
    assert "word F1" in capsys.readouterr().out
    columns = read_columns(folder / "best.jsonl", ["prediction", "prediction_best", "context"])
    for prediction, best, context in zip(*columns.values(), strict=True):
        answers = json.loads(best)
        assert 1 <= len(answers) <= 3
        assert answers[0]["answer"] == prediction
        assert all(answer["answer"] in context for answer in answers)
        assert 0.0 < sum(answer["probability"] for answer in answers) <= 1.0 + 1e-9


def test_a_threshold_can_be_given_or_chosen_for_one_prediction(folder, capsys):
    assert predict(folder, "all.jsonl", "--threshold", 1e6) == 0
    assert all(read_columns(folder / "all.jsonl", ["prediction"])["prediction"])
    assert predict(folder, "none.jsonl", "--threshold", -1e6) == 0
    assert not any(read_columns(folder / "none.jsonl", ["prediction"])["prediction"])
    capsys.readouterr()
    assert predict(folder, "chosen.jsonl", "--threshold-rows", folder / "public.jsonl") == 0
    threshold = json.loads((folder / "model" / "task.json").read_text())["threshold"]
    assert f"from public rows: {threshold:.4g}" in capsys.readouterr().err
    assert predict(folder, "both.jsonl", "--threshold", 1, "--threshold-rows", folder / "public.jsonl") == 2
    assert "given or chosen" in capsys.readouterr().err


def test_a_question_that_is_too_long_is_a_sentence(folder, capsys):
    write(folder / "asked.jsonl", [{"question": "the film " * 20, "context": "good film", "answer": "good"}])
    assert run(["predict", str(folder / "model"), str(folder / "asked.jsonl"), "--score"]) == 0
    assert "1 of 1 questions are longer than half of 16 word pieces" in capsys.readouterr().err


def test_options_without_use_are_refused(folder, capsys):
    assert train(folder, "no", "--always-answered", "--threshold-rows", folder / "public.jsonl") == 2
    assert "no threshold is used" in capsys.readouterr().err
    assert train(folder, "no", "--stride", 9) == 2
    assert "share at most 8" in capsys.readouterr().err
    assert train(folder, "no", "--precision", "bf16") == 2
    assert "--windows best" in capsys.readouterr().err
