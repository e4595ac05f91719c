"""Tiny models of every family, with random weights, and losses per example."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

WORDS = 97
LENGTH = 11


def _mask(batch: Any) -> Any:
    return (batch["input_ids"] != 0).long()


def classification_loss(model: Any, batch: Any) -> Any:
    logits = model(input_ids=batch["input_ids"], attention_mask=_mask(batch)).logits
    return torch.nn.functional.cross_entropy(logits, batch["labels"], reduction="none")


def causal_loss(model: Any, batch: Any) -> Any:
    logits = model(input_ids=batch["input_ids"], attention_mask=_mask(batch), use_cache=False).logits[:, :-1]
    counted = _mask(batch)[:, 1:].float()
    losses = torch.nn.functional.cross_entropy(logits.transpose(1, 2), batch["input_ids"][:, 1:], reduction="none")
    return (losses * counted).sum(1) / counted.sum(1)


def masked_loss(model: Any, batch: Any) -> Any:
    logits = model(input_ids=batch["input_ids"], attention_mask=_mask(batch)).logits
    return torch.nn.functional.cross_entropy(logits.transpose(1, 2), batch["input_ids"], reduction="none").mean(1)


def seq2seq_loss(model: Any, batch: Any) -> Any:
    logits = model(
        input_ids=batch["input_ids"],
        attention_mask=_mask(batch),
        decoder_input_ids=batch["targets"],
        use_cache=False,
    ).logits
    return torch.nn.functional.cross_entropy(logits.transpose(1, 2), batch["targets"], reduction="none").mean(1)


def batch(size: int, *, length: int = LENGTH, seed: int = 1) -> dict[str, Any]:
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(2, WORDS, (size, length), generator=generator)
    for i in range(size):
        if i % 4:
            ids[i, length - i % 4 :] = 0
    return {
        "input_ids": ids,
        "labels": torch.randint(0, 3, (size,), generator=generator),
        "targets": torch.randint(2, WORDS, (size, 7), generator=generator),
    }


_SMALL: dict[str, Any] = {
    "vocab_size": WORDS, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48,
    "max_position_embeddings": 40, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 1,
}  # fmt: skip


def _bart() -> Any:
    config = transformers.BartConfig(
        vocab_size=WORDS, d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
        decoder_attention_heads=4, encoder_ffn_dim=48, decoder_ffn_dim=48, max_position_embeddings=40, pad_token_id=0,
        bos_token_id=1, eos_token_id=2, encoder_layerdrop=0.3, decoder_layerdrop=0.3,
    )  # fmt: skip
    return transformers.BartForConditionalGeneration(config)


def _t5(tied: bool) -> Any:
    config = transformers.T5Config(
        vocab_size=WORDS, d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4, tie_word_embeddings=tied,
        pad_token_id=0, decoder_start_token_id=0,
    )  # fmt: skip
    return transformers.T5ForConditionalGeneration(config)


def _gpt2(tied: bool) -> Any:
    config = transformers.GPT2Config(
        vocab_size=WORDS, n_embd=32, n_layer=2, n_head=4, n_positions=40, tie_word_embeddings=tied, bos_token_id=1,
        eos_token_id=1,
    )  # fmt: skip
    return transformers.GPT2LMHeadModel(config)


def _llama(tied: bool) -> Any:
    config = transformers.LlamaConfig(**_SMALL, num_key_value_heads=2, tie_word_embeddings=tied)
    return transformers.LlamaForCausalLM(config)


def _distilbert() -> Any:
    config = transformers.DistilBertConfig(
        vocab_size=WORDS, dim=32, n_layers=2, n_heads=4, hidden_dim=48, max_position_embeddings=40, num_labels=3
    )
    return transformers.DistilBertForSequenceClassification(config)


MODELS: dict[str, tuple[Callable[[], Any], Any]] = {
    "bert": (
        lambda: transformers.BertForSequenceClassification(transformers.BertConfig(**_SMALL, num_labels=3)),
        classification_loss,
    ),
    "bert masked, tied": (lambda: transformers.BertForMaskedLM(transformers.BertConfig(**_SMALL)), masked_loss),
    "roberta": (
        lambda: transformers.RobertaForSequenceClassification(transformers.RobertaConfig(**_SMALL, num_labels=3)),
        classification_loss,
    ),
    "distilbert": (_distilbert, classification_loss),
    "bart, tied": (_bart, seq2seq_loss),
    "t5, tied": (lambda: _t5(True), seq2seq_loss),
    "t5": (lambda: _t5(False), seq2seq_loss),
    "gpt2, tied": (lambda: _gpt2(True), causal_loss),
    "gpt2": (lambda: _gpt2(False), causal_loss),
    "llama, tied": (lambda: _llama(True), causal_loss),
    "llama": (lambda: _llama(False), causal_loss),
}


_LORA: dict[str, Any] = {"r": 4, "target_modules": "all-linear", "lora_dropout": 0.1}


def build(name: str, *, lora: bool = False) -> tuple[Any, Any]:
    torch.manual_seed(3)
    make, loss = MODELS[name]
    model = make()
    if lora:
        peft = pytest.importorskip("peft")
        model = peft.get_peft_model(model, peft.LoraConfig(**_LORA, fan_in_fan_out="gpt2" in name))
        for parameter_name, parameter in model.named_parameters():
            if "lora_B" in parameter_name:
                torch.nn.init.normal_(parameter, std=0.1)
    return model, loss
