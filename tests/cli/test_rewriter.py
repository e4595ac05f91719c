"""`tacit train rewrite`: a BART that has learned from private text with DP-SGD, and texts rewritten with it."""

from __future__ import annotations

import csv
import json

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from tacit.cli.main import run  # noqa: E402
from tacit.documents.autoencoders.base import Record, load_autoencoder  # noqa: E402
from tacit.documents.dp_bart import DPBart  # noqa: E402
from tacit.errors import NoGuaranteeError  # noqa: E402
from tacit.training.gradients import choose  # noqa: E402
from tests.documents.test_latent_models import PUBLIC_TEXTS, save_tiny, tiny  # noqa: E402

from tacit.jobs.training.rewriter import RewriterPieces, rewriting_task  # noqa: E402  # isort: skip


@pytest.fixture
def folder(tmp_path):
    save_tiny("bart", tmp_path / "tiny")
    with (tmp_path / "data.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["letter"], *([text] for text in PUBLIC_TEXTS)])
    return tmp_path


def train(folder, *more):
    options = ("--model", folder / "tiny", "--text-column", "letter", "--batch", 20, "--epochs", 1)
    return run([str(item) for item in ("train", "rewrite", folder / "data.csv", *options, *more)])


@pytest.mark.parametrize("strategy", ["full", "lora"])
def test_a_bart_learns_from_private_text_and_rewrites_with_its_budget_on_the_card(folder, strategy):
    out = folder / strategy
    assert train(folder, "--epsilon", 8, "--strategy", strategy, "-o", out, "-q") == 0
    promised = json.loads((out / "card.json").read_text())["guarantee"]
    assert promised["epsilon"] <= 8
    assert promised["unit"] == "record"
    before, after = load_autoencoder(folder / "tiny"), load_autoencoder(out)
    assert after.positions == before.positions
    assert after.record.bound == before.record.bound
    assert any(
        not torch.equal(a, b) for a, b in zip(before.module.parameters(), after.module.parameters(), strict=True)
    )
    release = DPBart(epsilon=500, delta=1e-4, model=str(out), beams=1).rewrite(["the red cat sees two birds"])
    weights = release.guarantee.provenance[0]
    assert not weights.public
    assert "a budget of its own: epsilon" in weights.paid_by
    assert release.guarantee.epsilon == 500, "the texts that are rewritten have their own"


def test_without_noise_nothing_can_be_promised_with_it(folder):
    assert train(folder, "--epsilon", "inf", "-o", folder / "void", "-q") == 0
    assert Record.read(folder / "void").private == ""
    with pytest.raises(NoGuaranteeError):
        DPBart(epsilon=500, model=str(folder / "void")).rewrite("cat")


def test_a_stopped_run_goes_on_and_another_model_is_refused(folder, capsys):
    assert train(folder, "--epsilon", 8, "--resume", "-o", folder / "m") == 2
    assert "no unfinished run" in capsys.readouterr().err
    save_tiny("adept", folder / "lstm")
    assert train(folder, "--epsilon", 8, "--model", folder / "lstm", "-o", folder / "m") == 2
    assert "'bart' is needed" in capsys.readouterr().err
    assert train(folder, "--epsilon", 8, "--batch", 5000, "-o", folder / "m") == 2
    assert "fewer than a batch" in capsys.readouterr().err


def test_a11_a_model_with_a_bound_on_its_norm_is_not_clamped_by_value(folder, capsys):
    save_tiny("bart", folder / "norm", bound={"kind": "l2", "C": 5.0})
    assert train(folder, "--epsilon", 8, "--model", folder / "norm", "-o", folder / "m") == 2
    assert "bound on the norm" in capsys.readouterr().err


@pytest.mark.parametrize("encoder_mask", [False, True])
def test_gradients_of_one_text_are_exact_and_the_loss_is_that_of_the_public_training(encoder_mask):
    start = tiny("bart", encoder_mask=encoder_mask)
    task, pieces = rewriting_task(start, "text"), RewriterPieces(start)
    _, checked = choose(start.model, task.loss, task.probes(pieces), "auto")
    assert checked.engine == "taps"
    rows = [{"text": "the red cat sees two birds"}, {"text": "cat"}]
    batch = task.collate([task.encode(row, pieces, train=True) for row in rows], pieces)
    start.model.eval()
    for place in range(2):
        ids = batch["input_ids"][place : place + 1]
        bounded = start.latents(ids).clamp(-1.0, 1.0)
        record = {name: values[place : place + 1] for name, values in batch.items()}
        torch.testing.assert_close(task.loss(start.model, record)[0], start.loss(bounded, ids))
