"""Pretraining from Python: texts in memory, and what a configuration refuses before any work."""

from __future__ import annotations

from pathlib import Path

import pytest

from tacit.errors import BadParameterError
from tacit.jobs.pretrain import AutoencoderConfig, autoencoder
from tests.documents.test_latent_models import PUBLIC_TEXTS

SMALL = {"length": 6, "vocabulary": 300, "width": 16, "layers": 1, "heads": 2, "feed_forward": 16, "steps": 2,
         "batch": 8, "evaluate_every": 2, "held_out": 10}  # fmt: skip


def test_texts_in_memory_become_a_model(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    from tacit.documents.autoencoders import load_autoencoder

    made = autoencoder(PUBLIC_TEXTS, public="made-up sentences", output=tmp_path / "bart", **SMALL)
    assert made.bleu is not None
    record = load_autoencoder(tmp_path / "bart").record
    assert record.corpora == ["made-up sentences"]
    assert record.commands[0].startswith('job = "pretrain autoencoder"; output = "bart"')
    assert PUBLIC_TEXTS[0] not in record.commands[0]


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"width": 10, "heads": 4}, "width-not-shared"),
        ({"unclipped": True, "clip": 1.0}, "clipped-and-unclipped"),
        ({"bound": "l2"}, "bound-without-clip"),
        ({"kind": "narrow"}, "narrow-without-epsilon"),
        ({"kind": "adept", "unclipped": True, "epsilons": (5.0,)}, "noise-without-bound"),
        ({"start": "bart-20", "epsilons": (5.0,)}, "epsilon-of-existing-model"),
        ({"eight_bits": True}, "only-adept-in-eight-bits"),
        ({"layers": 0}, "bad-option"),
    ],
)
def test_options_that_do_not_fit_together_are_refused(options: dict[str, object], code: str) -> None:
    with pytest.raises(BadParameterError) as refused:
        AutoencoderConfig(text=["a text"], output="never", public="made-up", **options)
    assert refused.value.code == code
