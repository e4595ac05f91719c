"""Encoders that are read by the mean of their positions."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from tacit.errors import BadInputError, BadParameterError  # noqa: E402
from tacit.training.frozen import cut  # noqa: E402
from tacit.training.gradients import choose  # noqa: E402
from tacit.training.models import load_model  # noqa: E402
from tacit.training.pooled import mean_pooled  # noqa: E402
from tacit.training.strategies import apply_strategy  # noqa: E402
from tacit.training.tasks import Classification, Tagging  # noqa: E402
from tests.training.test_frozen import encoder  # noqa: E402
from tests.training.test_run import tokenizer  # noqa: E402, F401


@pytest.fixture
def folder(tokenizer, tmp_path):  # noqa: F811
    encoder("Bert", tokenizer).save_pretrained(tmp_path / "bert")
    tokenizer.save_pretrained(tmp_path / "bert")
    return tmp_path / "bert"


def test_the_head_reads_the_mean_of_what_is_there(folder, tokenizer):  # noqa: F811
    task = Classification(length=16, labels=["a", "b", "c"])
    model = mean_pooled(str(folder), task.model_options()).eval()
    batch = task.collate(
        [task.encode({"text": text}, tokenizer, train=False) for text in ("good film", "a the film bad poor")],
        tokenizer,
    )
    body = transformers.AutoModel.from_pretrained(folder).eval()
    states = body(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"]).last_hidden_state
    expected = model.head(torch.stack([states[0, :2].mean(0), states[1].mean(0)]))
    logits = model(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"]).logits
    torch.testing.assert_close(logits, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("strategy", ["full", "bias", "head", "last-1", "lora"])
def test_it_can_be_clipped_saved_and_loaded(folder, tokenizer, tmp_path, strategy):  # noqa: F811
    task = Classification(length=16, labels=["a", "b"], smoothing=0.1)
    model, _ = load_model(task, str(folder), pooling="mean")
    model = apply_strategy(model, strategy)
    probes = task.probes(tokenizer)
    engine, _ = choose(model, task.loss, probes)
    assert engine.name == "taps"
    assert any("head" in name for name in engine.parameters)
    assert (cut(model, task, probes) is not None) == (strategy in ("head", "last-1"))
    whole = model.merge_and_unload() if strategy == "lora" else model
    whole.save_pretrained(tmp_path / "saved")
    tokenizer.save_pretrained(tmp_path / "saved")
    again, _ = load_model(task, str(tmp_path / "saved"))
    again.eval()
    whole.eval()
    torch.testing.assert_close(task.loss(again, probes[0]), task.loss(whole, probes[0]))


def test_a_saved_folder_needs_nothing_but_transformers(folder, tokenizer, tmp_path):  # noqa: F811
    task = Classification(length=16, labels=["a", "b"])
    model, _ = load_model(task, str(folder), pooling="mean")
    model.save_pretrained(tmp_path / "saved")
    program = (
        "import sys; sys.modules['tacit'] = None; import transformers; "
        f"m = transformers.AutoModelForSequenceClassification.from_pretrained({str(tmp_path / 'saved')!r}, "
        "trust_remote_code=True); print(m.config.id2label[1], m.head.weight.sum().item())"
    )
    environment = {**os.environ, "HF_HOME": str(tmp_path / "hub"), "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=environment, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr[-1500:]
    label, total = done.stdout.split()
    assert label == "b"
    assert float(total) == pytest.approx(model.head.weight.sum().item(), rel=1e-4)


def test_what_has_no_mean_is_refused(folder):
    with pytest.raises(BadParameterError, match="only a text as a whole"):
        load_model(Tagging(labels=["a", "b"]), str(folder), pooling="mean")
    with pytest.raises(BadParameterError, match="no pooling"):
        load_model(Classification(labels=["a", "b"]), str(folder), pooling="most")
    with pytest.raises(BadInputError, match="label smoothing"):
        Classification(smoothing=1.0)
