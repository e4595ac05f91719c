"""Sanitization-aware pretraining: which word stands where, and what is guessed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from tacit.errors import BadInputError, BadParameterError  # noqa: E402
from tacit.mechanism import Mechanism, Rewritten  # noqa: E402
from tacit.noise.source import Source  # noqa: E402
from tacit.training.gradients import choose  # noqa: E402
from tacit.training.tasks import SanitizedMasking, sanitized_rows  # noqa: E402
from tacit.training.tasks.base import IGNORED  # noqa: E402
from tacit.words.santext import SanText  # noqa: E402
from tests.conftest import small_table  # noqa: E402

SWAPPED = {"good": "badly", "film": "good", ".": ""}


@dataclass(kw_only=True, eq=False)
class Swap(Mechanism):
    """A word mechanism without noise, so that what comes out is known."""

    name: ClassVar[str] = "swap-for-a-test"
    level: ClassVar[str] = "word"

    def prepare(self):
        return

    def guarantee(self, *, secure=None):
        raise NotImplementedError

    def rewrite_texts(self, texts, source):
        return Rewritten([SWAPPED.get(text, text) for text in texts], [1] * len(texts))


class Whole(Swap):
    name: ClassVar[str] = "whole-for-a-test"
    level: ClassVar[str] = "document"


for _name in (Swap.name, Whole.name):
    Mechanism.registry.pop(_name, None)  # not for the catalog


@pytest.fixture(scope="module")
def tokenizer():
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "good", "bad", "##ly", "film", ".", "a"]
    made = Tokenizer(models.WordPiece({word: i for i, word in enumerate(words)}, unk_token="[UNK]"))
    made.normalizer = normalizers.Lowercase()
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=made, pad_token="[PAD]", unk_token="[UNK]", mask_token="[MASK]", cls_token="[CLS]",
        sep_token="[SEP]",
    )  # fmt: skip


def test_each_token_is_rewritten_beside_its_original():
    made = sanitized_rows(["The good film.", "", "good"], Swap(epsilon=1.0), Source.from_test_seed(0))
    assert made == [
        {"text": "the\ngood\nfilm\n.", "sanitized": "the\nbadly\ngood\n"},
        {"text": "good", "sanitized": "badly"},
    ]
    with pytest.raises(BadParameterError, match="whole texts"):
        sanitized_rows(["a"], Whole(epsilon=1.0), Source.from_test_seed(0))
    with pytest.raises(BadInputError, match="no words"):
        sanitized_rows(["", " "], Swap(epsilon=1.0), Source.from_test_seed(0))


def test_the_law_is_that_of_the_mechanism_on_whole_texts():
    """Token by token or a text at a time, the draws are the same ones."""
    table = small_table(20)
    text = "w1 w2 w3 w4 w5 w6"
    mechanism = SanText(epsilon=3.0, vectors=table, joining="spaces")
    row = sanitized_rows([text], mechanism, Source.from_test_seed(5))[0]
    whole = mechanism.rewrite_texts([text], Source.from_test_seed(5)).texts[0]
    assert row["sanitized"].split("\n") == whole.split()


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_the_context_is_rewritten_and_the_targets_are_original(share, tokenizer):
    task = SanitizedMasking(length=32, share=share)
    data = sanitized_rows(["the good film . badly"], Swap(epsilon=1.0), Source.from_test_seed(0))
    task.learn(data)
    encoded = task.encode(data[0], tokenizer, train=True)
    ids = tokenizer.get_vocab()
    torch.manual_seed(0)
    batch = task.collate([encoded], tokenizer)
    assert batch["input_ids"][0, 0] == ids["[CLS]"]
    assert batch["input_ids"][0, -1] == ids["[SEP]"]
    targets = [int(i) for i in batch["targets"][0] if i != IGNORED]
    if share == 0.0:
        shown = [ids[piece] for piece in ("the", "bad", "##ly", "good", "bad", "##ly")]
        assert batch["input_ids"][0, 1:-1].tolist() == shown
        assert targets == []
    else:
        assert targets == [ids[piece] for piece in ("the", "good", "film", ".", "bad", "##ly")]
        assert batch["targets"][0, 0] == batch["targets"][0, -1] == IGNORED


def test_a_masked_word_has_as_many_masks_as_its_original_has_pieces(tokenizer):
    task = SanitizedMasking(length=32, share=1.0)
    data = [{"text": "badly", "sanitized": "film"}, {"text": "good", "sanitized": "badly"}]
    mask, seen = tokenizer.mask_token_id, set()
    torch.manual_seed(1)
    for _ in range(200):
        batch = task.collate([task.encode(row, tokenizer, train=True) for row in data], tokenizer)
        counts = batch["attention_mask"].sum(1).tolist()
        assert counts == [4, 3], "an original of other length is never shown in its rewritten form"
        seen.add(tuple((batch["input_ids"][0, 1:3] == mask).tolist()))
    assert (True, True) in seen
    assert len(seen) > 1, "random pieces are shown in place of some masks"


def test_long_texts_are_cut_at_whole_words(tokenizer):
    task = SanitizedMasking(length=6, share=0.0)
    encoded = task.encode({"text": "the\nbadly\nbadly", "sanitized": "the\nfilm\nfilm"}, tokenizer, train=True)
    assert len(encoded["original"]) == 2, "room for 4 pieces, whichever form is shown"


def test_it_can_be_clipped_and_learned(tokenizer):
    task = SanitizedMasking(length=16, share=0.5)
    config = transformers.BertConfig(
        vocab_size=len(tokenizer), hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16,
        max_position_embeddings=32,
    )  # fmt: skip
    torch.manual_seed(0)
    model = transformers.BertForMaskedLM(config)
    engine, checked = choose(model, task.loss, task.probes(tokenizer))
    assert engine.name == "taps", checked.refused
    data = sanitized_rows(
        ["the good film", "a good film .", "the film"] * 8, Swap(epsilon=1.0), Source.from_test_seed(0)
    )
    encoded = [task.encode(row, tokenizer, train=True) for row in data]
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    losses = []
    for _ in range(60):
        optimizer.zero_grad()
        loss = task.loss(model, task.collate(encoded, tokenizer)).mean()
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    assert sum(losses[-5:]) < 0.5 * sum(losses[:5])


def test_rows_that_do_not_fit_are_named():
    with pytest.raises(BadInputError, match="row 1"):
        SanitizedMasking().learn([{"text": "a\nb", "sanitized": "a"}])
