"""Pretraining from Python: texts in memory, and what a configuration refuses before any work."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")

from tacit.documents.autoencoders.lstm import LstmAutoencoder
from tacit.errors import BadParameterError
from tacit.jobs.pretrain import AutoencoderConfig, PruneConfig, autoencoder, run
from tacit.vectors import load_vectors
from tests.documents.test_latent_models import PUBLIC_TEXTS

SMALL = {"length": 6, "vocabulary": 300, "width": 16, "layers": 1, "heads": 2, "feed_forward": 16, "steps": 2,
         "batch": 8, "evaluate_every": 2, "held_out": 10}  # fmt: skip


def test_texts_in_memory_become_a_model(tmp_path: Path) -> None:
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
        ({"vectors": "glove-6b-50d", "whole_words": True}, "vectors-of-another-model"),
        ({"kind": "adept", "vectors": "glove-6b-50d"}, "vectors-of-word-pieces"),
        ({"kind": "adept", "vectors": "glove-6b-50d", "whole_words": True, "embedding": 9}, "embedding-of-vectors"),
        ({"layers": 0}, "bad-option"),
    ],
)
def test_options_that_do_not_fit_together_are_refused(options: dict[str, object], code: str) -> None:
    with pytest.raises(BadParameterError) as refused:
        AutoencoderConfig(text=["a text"], output="never", public="made-up", **options)
    assert refused.value.code == code


def test_an_adept_begins_with_word_vectors_and_names_them(tmp_path: Path) -> None:
    from tacit.documents.autoencoders import load_autoencoder

    made = autoencoder(
        PUBLIC_TEXTS, public="made-up sentences", output=tmp_path / "adept", kind="adept", whole_words=True,
        vectors="glove-6b-50d", **{**SMALL, "steps": 1, "learning_rate": 1e-9},
    )  # fmt: skip
    model = load_autoencoder(made.folder)
    assert isinstance(model, LstmAutoencoder)
    table = load_vectors("glove-6b-50d", limit=5000)
    rows = {word: model.network.embedding.weight[row].detach().numpy() for word, row in vocabulary_of(model).items()}
    assert rows["cat"].shape == (50,)
    known = [word for word in ("cat", "dog", "red", "two") if word in table.words]
    scales = [np.linalg.norm(rows[word]) / np.linalg.norm(table.vectors[table.words.index(word)]) for word in known]
    for word, scale in zip(known, scales, strict=True):
        assert np.allclose(rows[word], scale * table.vectors[table.words.index(word)], atol=1e-4)
    assert np.ptp(scales) < 1e-4, "one number scales all of them"
    assert "GloVe" in " ".join(model.record.corpora)
    assert model.record.results["words_with_vectors"] == model.record.results["words"]
    assert "GloVe" in str(model.record.provenance("a model"))


def vocabulary_of(model: LstmAutoencoder) -> dict[str, int]:
    return {str(word): int(row) for word, row in model.tokenizer.get_vocab().items()}


def test_a_bottleneck_is_an_option_of_pruning(tmp_path: Path) -> None:
    from tests.documents.test_latent_models import save_tiny

    start = save_tiny("bart", tmp_path / "bart")
    options = {"stages": 2, "steps": 1, "batch": 8, "held_out": 10, "importance": "bottleneck", "clip": 1.0}
    config = PruneConfig(model=start, text=PUBLIC_TEXTS, public="made-up", output=tmp_path / "narrow", **options)
    made = run(config)
    assert made.bleu is not None
    assert run(config.model_copy(update={"resume": True})).bleu is None, "nothing is left to do"
    with pytest.raises(BadParameterError) as refused:
        PruneConfig(**{**config.model_dump(exclude={"text"}), "text": PUBLIC_TEXTS, "decoder_layer": 2})
    assert refused.value.code == "layer-of-a-bottleneck"
