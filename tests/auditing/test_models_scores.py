"""Losses of texts: right, the same alone and in company, for every kind of model; and the tiny models tests share."""

from __future__ import annotations

import shutil
from functools import cache
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from tacit.auditing.models.canaries import WORDS  # noqa: E402
from tacit.auditing.models.scores import CausalScorer, TextLosses, load_scorer  # noqa: E402
from tacit.errors import BadInputError, BadParameterError  # noqa: E402
from tests.documents import test_language_models as tiny_models  # noqa: E402
from tests.documents.test_latent_models import save_tiny  # noqa: E402

TEXTS = (
    "the bus was late", "rain", "a small museum near the river was closed on monday because of the rain",
    "the bus was early", "our team won the last game by three goals", "snow",
)  # fmt: skip
FRAME = "the code is in and now say"


def random_texts(count: int, seed: int, words: int = 9) -> list[str]:
    """Texts that nobody can predict without having seen them."""
    generator = np.random.default_rng(seed)
    return [" ".join(WORDS[i] for i in generator.integers(len(WORDS), size=words)) for _ in range(count)]


def gpt2_for(texts: list[str], *, epochs: int, seed: int = 0):
    """A tiny GPT-2 with one token per word, trained on texts; no epochs leave it untrained."""
    tokenizer = tiny_models.words_tokenizer(
        " ".join([*WORDS, *FRAME.split()]), unk_token="<unk>", eos_token="<end>", pad_token="<pad>"
    )
    torch.manual_seed(seed)
    config = transformers.GPT2Config(
        vocab_size=len(tokenizer), n_positions=32, n_embd=64, n_layer=2, n_head=2, bos_token_id=1, eos_token_id=1,
        resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0,
    )  # fmt: skip
    model = transformers.GPT2LMHeadModel(config)
    optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3)
    rows = [[*tokenizer(text)["input_ids"], 1] for text in texts]
    by_length: dict[int, list[list[int]]] = {}
    for row in rows:
        by_length.setdefault(len(row), []).append(row)
    for _ in range(epochs):
        optimizer.zero_grad()
        for group in by_length.values():
            ids = torch.tensor(group)
            (model(input_ids=ids, labels=ids).loss * len(group) / len(rows)).backward()
        optimizer.step()
    return model.eval(), tokenizer


@cache
def overfit():
    """Members, non-members, and a GPT-2 that knows the members by heart."""
    texts = random_texts(160, seed=1)
    members, others = tuple(texts[:80]), tuple(texts[80:])
    return members, others, gpt2_for(list(members), epochs=60)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("scored")
    for kind in ("llama", "gpt2", "t5", "bart", "bert"):
        loaded = tiny_models.tiny(kind)
        tiny_models.saved(root / kind, loaded.model, loaded.tokenizer)
    torch.manual_seed(4)
    config = transformers.BertConfig(
        vocab_size=len(tiny_models.pieces_tokenizer()), hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=16, max_position_embeddings=64, num_labels=3, id2label={0: "bad", 1: "so-so", 2: "good"},
        label2id={"bad": 0, "so-so": 1, "good": 2}, initializer_range=0.5,
    )  # fmt: skip
    classifier = transformers.BertForSequenceClassification(config)
    tiny_models.saved(root / "classifier", classifier, tiny_models.pieces_tokenizer())
    decoder = transformers.GPT2ForSequenceClassification(
        transformers.GPT2Config(vocab_size=len(tiny_models.bytes_tokenizer()), n_positions=64, n_embd=16, n_layer=1,
                                n_head=2, num_labels=2, initializer_range=0.5)
    )  # fmt: skip
    tiny_models.saved(root / "decoder", decoder, tiny_models.bytes_tokenizer())
    save_tiny("adept", root / "adept")
    save_tiny("bart", root / "own-bart")
    return root


KINDS = ("llama", "gpt2", "t5", "bart", "bert", "classifier", "decoder", "adept", "own-bart")


@pytest.mark.parametrize("kind", KINDS)
def test_a_text_has_the_same_loss_alone_and_in_company(folders, kind):
    scorer = load_scorer(folders / kind)
    together = scorer.losses(TEXTS)
    alone = [scorer.losses([text]) for text in TEXTS]
    np.testing.assert_allclose(together.total, [own.total[0] for own in alone], rtol=1e-4, atol=1e-5)
    assert together.tokens.tolist() == [int(own.tokens[0]) for own in alone]
    assert len({round(float(loss), 6) for loss in together.total}) > 1  # a constant would pass the lines above


@pytest.mark.parametrize("kind", ["llama", "gpt2"])
def test_a_causal_loss_is_that_of_the_library(folders, kind):
    scorer = load_scorer(folders / kind)
    assert isinstance(scorer, CausalScorer)
    for text in (TEXTS[0], TEXTS[2]):
        ids = torch.tensor([scorer.tokenizer(text)["input_ids"]])
        with torch.no_grad():
            expected = scorer.model(input_ids=ids, labels=ids).loss.item()
        assert scorer.losses([text]).mean[0] == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("kind", ["t5", "bart"])
def test_a_sequence_to_sequence_loss_is_that_of_the_library(folders, kind):
    scorer = load_scorer(folders / kind)
    source, target = (torch.tensor([scorer.tokenizer(text)["input_ids"]]) for text in (TEXTS[0], TEXTS[4]))
    with torch.no_grad():
        expected = scorer.model(input_ids=source, labels=target).loss.item()
    losses = scorer.losses([TEXTS[0], TEXTS[1]], [TEXTS[4], TEXTS[0]])
    assert losses.mean[0] == pytest.approx(expected, rel=1e-5)
    assert losses.total[0] != pytest.approx(scorer.losses([TEXTS[0]]).total[0])  # without a target, the text itself


def test_a_masked_loss_hides_what_it_predicts(folders):
    scorer = load_scorer(folders / "bert")
    text = "the bus"
    ids = scorer.tokenizer(text)["input_ids"]
    assert len(ids) - 2 <= 7  # short enough: every token is hidden alone
    expected = 0.0
    for place in range(1, len(ids) - 1):
        masked = list(ids)
        masked[place] = scorer.tokenizer.mask_token_id
        with torch.no_grad():
            logits = scorer.model(input_ids=torch.tensor([masked])).logits[0, place]
        expected -= logits.double().log_softmax(-1)[ids[place]].item()
    losses = scorer.losses([text])
    assert losses.total[0] == pytest.approx(expected, rel=1e-4)
    assert losses.tokens[0] == len(ids) - 2


def test_a_classifier_is_scored_by_its_labels_or_its_certainty(folders):
    scorer = load_scorer(folders / "classifier")
    losses = np.array([scorer.losses(TEXTS, [label] * len(TEXTS)).total for label in ("bad", "1", "good")])
    np.testing.assert_allclose(np.exp(-losses).sum(axis=0), 1.0, rtol=1e-9)
    np.testing.assert_allclose(scorer.losses(TEXTS).total, losses.min(axis=0), rtol=1e-6)
    with pytest.raises(BadInputError, match=r"row 2 has a label .* does not know"):
        scorer.losses(TEXTS[:2], ["bad", "awful"])
    with pytest.raises(BadInputError, match="each text needs one"):
        scorer.losses(TEXTS, ["bad"])


def test_what_cannot_be_predicted_has_no_loss_and_long_texts_are_counted(folders):
    scorer = load_scorer(folders / "gpt2")
    losses = scorer.losses(["", "the bus was late", "word " * 600])
    assert losses.tokens[0] == 0
    assert np.isnan(losses.mean[0])
    assert losses.cut == 1
    assert losses.tokens[2] == 255
    assert scorer.losses([]).total.shape == (0,)


def test_functions(folders):
    assert load_scorer(lambda texts: [len(text) for text in texts]).losses(["a", "bcd"]).mean.tolist() == [1.0, 3.0]
    for wrong in (lambda texts: [1.0], lambda texts: [float("nan")] * 2, lambda texts: 1 / 0):
        with pytest.raises(BadInputError, match="one loss for each"):
            load_scorer(wrong).losses(["a", "b"])
    with pytest.raises(BadParameterError, match="a folder, a name or a function"):
        load_scorer(3)


def test_folders_that_cannot_be_scored(folders, tmp_path):
    torch.manual_seed(5)
    headless = transformers.BertModel(tiny_models.tiny("bert").model.config)
    tiny_models.saved(tmp_path / "headless", headless, tiny_models.pieces_tokenizer())
    with pytest.raises(BadInputError, match="BertModel, for which there is no loss"):
        load_scorer(tmp_path / "headless")
    for kind in ("gpt2", "classifier"):
        folder = tmp_path / f"no-tokenizer-{kind}"
        shutil.copytree(folders / kind, folder)
        for file in folder.glob("tokenizer*"):
            file.unlink()
        with pytest.raises(BadInputError, match="has no tokenizer"):
            load_scorer(folder)
    folder = tmp_path / "damaged"
    shutil.copytree(folders / "classifier", folder)
    (folder / "model.safetensors").write_bytes(b"nothing")
    with pytest.raises(BadInputError, match="copy the whole folder again"):
        load_scorer(folder)
    config = (folders / "bert" / "config.json").read_text()
    folder = tmp_path / "no-head"
    shutil.copytree(folders / "bert", folder)
    (folder / "config.json").write_text(config.replace("BertForMaskedLM", "BertForSequenceClassification"))
    with pytest.raises(BadInputError, match="lacks 4 of the weights"):
        load_scorer(folder)


def test_taking_a_part():
    losses = TextLosses(np.array([2.0, 9.0]), np.array([1, 3]))
    assert losses.take([1]).mean.tolist() == [3.0]


def test_an_overfit_model_knows_its_members():
    members, others, (model, tokenizer) = overfit()
    scorer = CausalScorer(model, tokenizer, "overfit")
    assert scorer.losses(members).mean.mean() < 1.0
    assert scorer.losses(others).mean.mean() > 4.0
