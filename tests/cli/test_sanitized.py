"""`tacit pretrain sanitized`: a model folder from rewritten public text, ready for fine-tuning on released text."""

from __future__ import annotations

import csv
import json

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from tacit.cli.main import run  # noqa: E402
from tests.training.test_run import BAD, GOOD, rows, tokenizer  # noqa: E402, F401


@pytest.fixture
def folder(tokenizer, tmp_path):  # noqa: F811
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=len(tokenizer), hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16,
        max_position_embeddings=32, pad_token_id=0,
    )  # fmt: skip
    transformers.BertForMaskedLM(config).save_pretrained(tmp_path / "tiny")
    tokenizer.save_pretrained(tmp_path / "tiny")
    words = [*GOOD.split(), *BAD.split(), "the", "a", "film"]
    vectors = "".join(f"{word} {i % 3} {i // 3}\n" for i, word in enumerate(words))
    (tmp_path / "vectors.txt").write_text(vectors)
    (tmp_path / "public.txt").write_text("".join(row["text"] + "\n" for row in rows(60)))
    return tmp_path


def pretrain(folder, *more):
    arguments = [
        "pretrain", "sanitized", folder / "public.txt", "--model", folder / "tiny", "--vectors", folder / "vectors.txt",
        "--epsilon", 3, "--batch-size", 20, "--length", 16, "-o", folder / "aware", *more,
    ]  # fmt: skip
    return run([str(argument) for argument in arguments])


def test_from_public_text_to_a_model_of_released_text(folder, capsys):
    assert pretrain(folder, "--public", "made-up sentences") == 0
    assert "first tenth" in capsys.readouterr().err
    settings = json.loads((folder / "aware" / "task.json").read_text())
    assert settings["public"] == "made-up sentences"
    assert settings["mechanism"].startswith("santext, epsilon 3")
    with (folder / "private.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, ["text", "label"])
        writer.writeheader()
        writer.writerows(rows(60))
    released = folder / "released.csv"
    rewrite = ["rewrite", folder / "private.csv", "--keep", "label", "--epsilon", 3, "-o", released, "-q"]
    assert run([str(a) for a in (*rewrite, "--vectors", folder / "vectors.txt")]) == 0
    train = ["train", "classify", released, "--released", f"{released}.card.json", "--model", folder / "aware"]
    assert run([str(a) for a in (*train, "--strategy", "full", "--batch", 20, "--epochs", 1, "-o", folder / "m")]) == 0
    card = json.loads((folder / "m" / "card.json").read_text())["guarantee"]
    assert card["unit"] == "token", "the promise is that of the released text"
    assert card["epsilon"] == 3.0
    assert any("made-up sentences" in item["source"] for item in card["provenance"])


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ((), "not declared public"),
        (("--public", "x", "--mechanism", "codebook"), "whole texts"),
        (("--public", "x", "--batch-size", 500), "fewer than a batch"),
        (("--public", "x", "--mechanism", "santex"), "did you mean"),
    ],
)
def test_what_cannot_be_done_is_said(folder, more, message, capsys):
    assert pretrain(folder, *more) == 2
    assert message in capsys.readouterr().err
    assert not (folder / "aware" / "model.safetensors").exists()


def test_plain_masking_takes_as_many_steps_to_compare_with(folder, capsys):
    plain = ["pretrain", "sanitized", folder / "public.txt", "--model", folder / "tiny", "--public", "made-up texts",
             "--masking", "plain", "--steps", 3, "--batch", 20, "--length", 16]  # fmt: skip
    assert run([str(a) for a in (*plain, "-o", folder / "plain")]) == 0
    assert json.loads((folder / "plain" / "task.json").read_text())["task"] == "fill"
    assert pretrain(folder, "--public", "made-up sentences", "--steps", 3) == 0
    for name in ("plain", "aware"):
        with (folder / f"{name}.private" / "log.csv").open(newline="") as file:
            assert [row["step"] for row in csv.DictReader(file)] == ["1", "2", "3"]
    capsys.readouterr()
    assert run([str(a) for a in (*plain, "--epsilon", 3, "-o", folder / "other")]) == 2
    assert "leave out --epsilon" in capsys.readouterr().err
    assert pretrain(folder, "--public", "x", "--steps", 0) == 2


def test_an_aware_model_needs_the_budget_of_its_mechanism(folder, capsys):
    arguments = ["pretrain", "sanitized", folder / "public.txt", "--model", folder / "tiny", "--public", "x"]
    assert run([str(a) for a in (*arguments, "-o", folder / "aware")]) == 2
    assert "--epsilon" in capsys.readouterr().err


def test_weights_without_a_guarantee_stay_without_one(folder):
    texts = folder / "private.csv"
    texts.write_text("text\n" + "".join(row["text"] + "\n" for row in rows(60)))
    fill = ["train", "fill", texts, "--model", folder / "tiny", "--strategy", "full", "--epsilon", "inf"]
    assert run([str(a) for a in (*fill, "--batch", 20, "--epochs", 1, "-q", "-o", folder / "leaky")]) == 0
    assert pretrain(folder, "--public", "x", "--model", folder / "leaky", "-q") == 0
    assert "public" not in json.loads((folder / "aware" / "task.json").read_text())
    card = json.loads((folder / "aware" / "card.json").read_text())["guarantee"]
    assert "started from weights without a guarantee" in card["void"]
