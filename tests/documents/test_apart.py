"""Vectors that depend on other texts of the batch: encoders are run with 32 bits, measured, and refused."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from tacit.documents.apart import PROBES, batch_error, check_batches
from tacit.documents.codebook import Codebook
from tacit.documents.encoder import BATCH_ERROR, SentenceEncoder
from tacit.errors import BadInputError, MissingExtraError
from tests.documents.test_codebook import WordEncoder, folder, mechanism, public  # noqa: F401


class LeakyEncoder(WordEncoder):
    """A vector moves with the number of texts beside it."""

    def __init__(self, error: float) -> None:
        super().__init__()
        self.error = error

    def encode(self, texts: Sequence[str], progress: object = None) -> np.ndarray:
        vectors = super().encode(texts)
        return vectors + np.float32(self.error) if len(texts) == 2 else vectors


@pytest.fixture(scope="module")
def minilm_folder() -> Path:
    from tacit.vectors.minilm import minilm_folder

    pytest.importorskip("torch")
    try:
        return Path(minilm_folder())
    except MissingExtraError as error:
        pytest.skip(str(error))


def test_a5_an_encoder_saved_with_16_bits_is_run_with_32(minilm_folder, tmp_path):
    import torch
    import transformers

    for file in minilm_folder.iterdir():
        if file.suffix in (".json", ".txt"):
            shutil.copy(file, tmp_path)
    smaller = transformers.AutoModel.from_pretrained(minilm_folder, dtype=torch.bfloat16)
    smaller.save_pretrained(tmp_path)
    assert '"bfloat16"' in (tmp_path / "config.json").read_text()
    encoder = SentenceEncoder(tmp_path)
    assert {parameter.dtype for parameter in encoder.model.parameters()} == {torch.float32}
    assert batch_error(encoder) <= BATCH_ERROR / 2
    check_batches(encoder)
    # The same weights computed with 16 bits are what is refused.
    encoder._loaded = (encoder.tokenizer, smaller.eval())
    assert batch_error(encoder) > 100 * BATCH_ERROR
    with pytest.raises(BadInputError, match="depends on the texts beside it"):
        check_batches(encoder)


@pytest.mark.parametrize("error", [BATCH_ERROR, 1e-3, np.nan, np.inf])
def test_a5_prepare_refuses_an_encoder_that_depends_on_the_batch(folder, error):  # noqa: F811
    made = mechanism(folder)
    made.__dict__["sentence_encoder"] = LeakyEncoder(error)
    with pytest.raises(BadInputError, match="beside it"):
        made.rewrite("the cat likes music today")


def test_a5_rounding_errors_of_32_bits_pass(folder):  # noqa: F811
    made = mechanism(folder)
    made.__dict__["sentence_encoder"] = LeakyEncoder(2e-7)
    assert len(made.rewrite(["the cat likes music today"])) == 1


def test_a5_the_card_has_the_bound(folder):  # noqa: F811
    assert any("at most 1e-06" in line for line in mechanism(folder).guarantee().assumptions)


def test_a5_probes_reach_from_nothing_to_more_than_is_read():
    lengths = [len(text.split()) for text in PROBES]
    assert lengths[0] == 0
    assert lengths[-1] >= 250
    assert lengths == sorted(lengths)


def test_a5_the_features_of_a_node_are_a_function_of_its_text(minilm_folder):
    from tacit.jobs.graph import encoder_of

    encode = encoder_of("minilm")
    assert encode is not None
    few, many = encode(PROBES[1:3]), encode([*PROBES[1:3], *PROBES[3:], *[PROBES[4]] * 20])
    np.testing.assert_array_equal(few, many[:2])


def test_a5_the_default_codebook_is_checked(minilm_folder, monkeypatch):
    import tacit.documents.codebook as module

    checked = []
    monkeypatch.setattr(module, "check_batches", checked.append)
    made = Codebook(epsilon=3.0)
    made.prepare()
    assert [type(encoder) for encoder in checked] == [SentenceEncoder]
