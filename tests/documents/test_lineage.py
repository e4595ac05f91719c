"""Rewriting with a model that Tacit trained: its card decides."""

from __future__ import annotations

import shutil

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from tacit.documents.autoencoders.base import load_autoencoder  # noqa: E402
from tacit.documents.codebook import Codebook  # noqa: E402
from tacit.documents.codebook_build import build_codebook  # noqa: E402
from tacit.documents.codebook_language import LanguageDecoder  # noqa: E402
from tacit.documents.dp_bart import DPBart  # noqa: E402
from tacit.documents.dp_mlm import DPMLM  # noqa: E402
from tacit.documents.encoder import SentenceEncoder  # noqa: E402
from tacit.documents.language_models import load_generator  # noqa: E402
from tacit.documents.paraphrase import Paraphrase  # noqa: E402
from tacit.errors import NoGuaranteeError  # noqa: E402
from tacit.guarantee import Provenance  # noqa: E402
from tests.documents.test_language_models import PROMPT, bytes_tokenizer, tiny  # noqa: E402
from tests.test_lineage import PAID, VOID, write_lineage  # noqa: E402


def save(folder, kind):
    tiny(kind).model.save_pretrained(folder)
    tiny(kind).tokenizer.save_pretrained(folder)
    return folder


def save_bart(folder):
    torch.manual_seed(0)
    tokenizer = bytes_tokenizer()
    config = transformers.BartConfig(
        vocab_size=len(tokenizer), d_model=16, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2,
        decoder_attention_heads=2, encoder_ffn_dim=16, decoder_ffn_dim=16, max_position_embeddings=32,
        pad_token_id=1, bos_token_id=0, eos_token_id=0, decoder_start_token_id=0, forced_eos_token_id=0,
    )  # fmt: skip
    transformers.BartForConditionalGeneration(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def paraphrase(folder):
    return Paraphrase(epsilon=40.0, model=str(folder), tokens=3, input_tokens=8, prompt=PROMPT)


def dp_mlm(folder):
    return DPMLM(epsilon=60.0, model=str(folder), tokens=4)


def dp_bart(folder):
    return DPBart(epsilon=500.0, model=str(folder), clip=1.0)


MECHANISMS = {
    "paraphrase": (paraphrase, lambda folder: save(folder, "llama")),
    "dp-mlm": (dp_mlm, lambda folder: save(folder, "bert")),
    "dp-bart": (dp_bart, save_bart),
}


@pytest.mark.parametrize("name", MECHANISMS)
def test_the_card_of_a_model_decides_what_it_may_be_used_for(tmp_path, name):
    make, saved = MECHANISMS[name]
    saved(tmp_path / "unknown")
    assert make(tmp_path / "unknown").guarantee().provenance[0].public
    for promise, folder in ((VOID, "leaky"), (PAID, "paid")):
        shutil.copytree(tmp_path / "unknown", tmp_path / folder)
        write_lineage(tmp_path / folder, promise)
    with pytest.raises(NoGuaranteeError, match="leaky has no guarantee"):
        make(tmp_path / "leaky").prepare()
    with pytest.raises(NoGuaranteeError, match="leaky has no guarantee"):
        make(tmp_path / "leaky").guarantee()
    origin = make(tmp_path / "paid").guarantee().provenance[0]
    assert not origin.public
    assert "epsilon 2" in (origin.paid_by or "")


def test_models_without_a_guarantee_can_still_be_audited(tmp_path):
    write_lineage(save(tmp_path / "leaky", "llama"), VOID)
    write_lineage(save_bart(tmp_path / "bart"), VOID)
    assert load_generator(tmp_path / "leaky").name == "leaky"
    assert load_autoencoder(tmp_path / "bart").record.private == ""


def test_a_codebook_uses_no_model_without_a_guarantee(tmp_path):
    write_lineage(save(tmp_path / "leaky", "llama"), VOID)
    with pytest.raises(NoGuaranteeError, match="leaky has no guarantee"):
        LanguageDecoder(str(tmp_path / "leaky")).prepare()
    with pytest.raises(NoGuaranteeError, match="leaky has no guarantee"):
        _ = Codebook(epsilon=5.0, encoder=str(tmp_path / "leaky")).sentence_encoder
    texts = [f"sentence number {i}" for i in range(100)]
    with pytest.raises(NoGuaranteeError, match="leaky has no guarantee"):
        build_codebook(texts, Provenance("made up", "made up"), SentenceEncoder(tmp_path / "leaky"))
