"""The codebook of the static encoder: without torch, exact in every batch, under the same law."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from tacit.catalog import needs_of_mechanism
from tacit.documents.codebook import Codebook
from tacit.documents.codebook_public import encoder_of, load_codebook
from tacit.encoders import is_batch_independent, load_encoder
from tacit.errors import BadInputError
from tacit.matching.encoder_balanced import BalancedEncoder
from tacit.needs import MODELS

WITHOUT_TORCH = """
import sys
for name in ("torch", "transformers", "sklearn", "faiss"):
    sys.modules[name] = None
import tacit
made = tacit.rewrite(["we missed the train", ""], "codebook", epsilon=3, options={"codebook": "static"})
print(len(made.texts), made.card.guarantee.epsilon)
"""


@pytest.fixture(scope="module")
def made() -> Codebook:
    return Codebook(epsilon=3.0, codebook="static")


def test_it_works_without_torch():
    process = subprocess.run([sys.executable, "-c", WITHOUT_TORCH], capture_output=True, text=True, check=False)
    assert process.stdout.split() == ["2", "3.0"], process.stderr


def test_only_the_encoder_of_a_codebook_has_to_be_installed():
    assert needs_of_mechanism("codebook", {"codebook": "static"}) == []
    assert MODELS in needs_of_mechanism("codebook", {"codebook": "minilm"})
    assert MODELS in needs_of_mechanism("codebook", {})
    assert encoder_of("static") == load_codebook("static").encoder == "static-balanced"
    assert encoder_of("no such folder") is None


def test_vectors_are_the_same_in_every_batch():
    encoder = load_encoder("static-balanced")
    assert is_batch_independent(encoder)
    texts = ["we missed the train", "", "xyzzy" * 40, "music " * 900, "Ärger über 3 €!"]
    together = encoder.encode(texts)
    for text, vector in zip(texts, together, strict=True):
        np.testing.assert_array_equal(encoder.encode([text, "something else"])[0], vector)
        np.testing.assert_array_equal(encoder.encode_alone(text), vector)
        assert np.linalg.norm(vector) == pytest.approx(1.0, abs=1e-5) or not vector.any()
    assert not encoder.encode_alone("").any()
    assert BalancedEncoder().digest == BalancedEncoder().digest


def test_the_law_is_that_of_every_codebook(made: Codebook):
    laws = np.stack([made.law(text) for text in ("we missed the train", "", "good soup", "xyzzy" * 40)])
    np.testing.assert_allclose(laws.sum(axis=1), 1.0, rtol=1e-9)
    assert np.log(laws.max(axis=0) / laws.min(axis=0)).max() <= 3.0 * (1 + 1e-12)
    assert all((law == law.max()).sum() == made.choice.s for law in laws)


def test_near_sentences_are_about_the_same(made: Codebook):
    close = Codebook(epsilon=30.0, codebook="static", symbols=1, s=1, k=8192, seed=1)
    released = close.rewrite(["the train to Boston was late", "I cooked soup for dinner"]).texts
    assert any(word in released[0].lower() for word in ("train", "bus", "late", "boston"))
    assert any(word in released[1].lower() for word in ("soup", "dinner", "cook"))


def test_the_card_assumes_nothing_of_batches(made: Codebook):
    promised = made.guarantee(secure=True)
    assert not any("batch" in line for line in promised.assumptions)
    assert any("batch" in line for line in Codebook(epsilon=3.0).guarantee(secure=True).assumptions)
    assert any("static-balanced" in part.source for part in promised.provenance)


def test_another_encoder_is_refused():
    other = Codebook(epsilon=3.0, codebook="static", encoder="static")
    with pytest.raises(BadInputError, match="not the one this codebook was built with"):
        other.prepare()
