"""Language models: causal (write on), masked (fill in) and sequence to sequence (translate, summarize)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, cast

import numpy as np
import torch
from torch import Tensor, nn

from tacit.training.gradients import Batch
from tacit.training.tasks.base import (
    IGNORED,
    Encoded,
    Generates,
    Row,
    Task,
    check_mask,
    cross_entropy_per_token,
    encode_text,
    model_inputs,
    random_ids,
    random_inputs,
)

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase


@dataclass
class CausalLanguage(Task):
    """`prefix` is a template of what stands before the text and does not count, for example "label: {label} text:"."""

    prefix: str = ""

    name: ClassVar[str] = "write"
    scored_as: ClassVar[str] = "write"
    help: ClassVar[str] = "a causal language model: what comes next"
    roles: ClassVar[tuple[str, ...]] = ("text",)
    model_class: ClassVar[str] = "AutoModelForCausalLM"
    target: ClassVar[str] = ""

    def settings(self) -> dict[str, object]:
        return {**super().settings(), "prefix": self.prefix}

    def encode(self, row: Row, tokenizer: PreTrainedTokenizerBase, *, train: bool) -> Encoded:
        before = tokenizer(self.prefix.format(**row), add_special_tokens=True)["input_ids"] if self.prefix else []
        ids = [*before, *encode_text(tokenizer, self.length, row["text"])["input_ids"]][: self.length]
        if tokenizer.eos_token_id is not None and len(ids) < self.length:
            ids.append(int(tokenizer.eos_token_id))
        targets = [IGNORED] * len(before[: len(ids)]) + ids[len(before) :]
        return {"input_ids": ids, "attention_mask": [1] * len(ids), "targets": targets}

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        logits = model(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"], use_cache=False).logits
        # The first piece of a text is guessed from nothing, also where filling stands before it.
        counted = batch["attention_mask"][:, :-1] != 0
        return cross_entropy_per_token(logits[:, :-1], batch["targets"][:, 1:].masked_fill(~counted, IGNORED))

    @torch.no_grad()
    def predict(
        self, model: nn.Module, batch: Batch, tokenizer: PreTrainedTokenizerBase, rows: Sequence[Row]
    ) -> list[str]:
        """The perplexity of each text: exp of its mean loss."""
        return [f"{value:.6g}" for value in self.loss(model, batch).exp().tolist()]

    def probe(self, generator: np.random.Generator, tokenizer: PreTrainedTokenizerBase) -> Encoded:
        encoded = random_inputs(generator, tokenizer, self.length)
        encoded.pop("token_type_ids", None)
        return {**encoded, "targets": list(encoded["input_ids"])}


@dataclass
class MaskedLanguage(Task):
    """Devlin et al. 2019: `share` of the pieces are to be guessed; 8 of 10 are masked, 1 is replaced, 1 stays."""

    share: float = 0.15

    name: ClassVar[str] = "fill"
    scored_as: ClassVar[str] = "fill"
    help: ClassVar[str] = "a masked language model: what stands behind the masks"
    roles: ClassVar[tuple[str, ...]] = ("text",)
    model_class: ClassVar[str] = "AutoModelForMaskedLM"
    target: ClassVar[str] = ""
    fixed_inputs: ClassVar[bool] = False

    def encode(self, row: Row, tokenizer: PreTrainedTokenizerBase, *, train: bool) -> Encoded:
        encoded = encode_text(tokenizer, self.length, row["text"])
        encoded["special"] = tokenizer.get_special_tokens_mask(encoded["input_ids"], already_has_special_tokens=True)
        return encoded

    def collate(self, examples: Sequence[Encoded], tokenizer: PreTrainedTokenizerBase) -> Batch:
        check_mask(tokenizer)
        return super().collate([self._masked(example, tokenizer) for example in examples], tokenizer)

    def _masked(self, example: Encoded, tokenizer: PreTrainedTokenizerBase) -> Encoded:
        if "targets" in example:
            return example
        # Which pieces are masked is no secret and costs nothing; torch's state is part of a checkpoint.
        generator = np.random.Generator(np.random.PCG64(int(torch.randint(2**62, (1,)))))
        ids, targets = list(example["input_ids"]), [IGNORED] * len(example["input_ids"])
        for i, special in enumerate(example["special"]):
            if special or generator.random() >= self.share:
                continue
            targets[i] = ids[i]
            kind = generator.random()
            if kind < 0.8:
                ids[i] = int(tokenizer.mask_token_id)
            elif kind < 0.9:
                ids[i] = int(generator.integers(len(tokenizer)))
        return {**{k: v for k, v in example.items() if k != "special"}, "input_ids": ids, "targets": targets}

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        return cross_entropy_per_token(model(**model_inputs(batch)).logits, batch["targets"])

    @torch.no_grad()
    def predict(
        self, model: nn.Module, batch: Batch, tokenizer: PreTrainedTokenizerBase, rows: Sequence[Row]
    ) -> list[str]:
        """Whether the masked pieces were guessed: the share for each text, with fixed masks."""
        best = model(**model_inputs(batch)).logits.argmax(-1)
        counted = batch["targets"] != IGNORED
        right = ((best == batch["targets"]) & counted).sum(1) / counted.sum(1).clamp_min(1)
        return [f"{value:.4f}" for value in right.tolist()]

    def probe(self, generator: np.random.Generator, tokenizer: PreTrainedTokenizerBase) -> Encoded:
        encoded = random_inputs(generator, tokenizer, self.length)
        return {**encoded, "targets": list(encoded["input_ids"])}


@dataclass
class SequenceToSequence(Task):
    name: ClassVar[str] = "translate"
    scored_as: ClassVar[str] = "translate"
    help: ClassVar[str] = "a text for a text: translation, summaries"
    roles: ClassVar[tuple[str, ...]] = ("source", "target")
    model_class: ClassVar[str] = "AutoModelForSeq2SeqLM"
    target: ClassVar[str] = "target"
    temperature = 0.0  # of predictions; 0 takes the likeliest piece. No field: it is nothing that a model has learned

    def side_of(self, name: str, tokenizer: PreTrainedTokenizerBase) -> str:
        """The side on which a field is filled up; a decoder's targets begin at its first position."""
        return "right" if name == "targets" else super().side_of(name, tokenizer)

    def encode(self, row: Row, tokenizer: PreTrainedTokenizerBase, *, train: bool) -> Encoded:
        encoded = encode_text(tokenizer, self.length, row["source"])
        encoded.pop("token_type_ids", None)
        if train:
            targets = tokenizer(text_target=row["target"], truncation=True, max_length=self.length)["input_ids"]
            encoded["targets"] = list(targets) or [int(tokenizer.eos_token_id or 0)]
        return encoded

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        targets = batch["targets"]
        start = int(cast("PreTrainedModel", model).config.decoder_start_token_id or 0)
        previous = targets.new_full(targets.shape, start)
        previous[:, 1:] = targets[:, :-1].masked_fill(targets[:, :-1] == IGNORED, start)
        logits = model(
            input_ids=batch["input_ids"],
            attention_mask=batch["attention_mask"],
            decoder_input_ids=previous,
            use_cache=False,
        ).logits
        return cross_entropy_per_token(logits, targets)

    @torch.no_grad()
    def predict(
        self, model: nn.Module, batch: Batch, tokenizer: PreTrainedTokenizerBase, rows: Sequence[Row]
    ) -> list[str]:
        drawing: dict[str, object] = {"do_sample": False}
        if self.temperature > 0:
            drawing = {"do_sample": True, "temperature": self.temperature, "top_k": 0}
        made = cast("Generates", model).generate(
            input_ids=batch["input_ids"], attention_mask=batch["attention_mask"], max_new_tokens=self.length,
            num_beams=1, **drawing,
        )  # fmt: skip
        return list(tokenizer.batch_decode(made, skip_special_tokens=True))

    def probe(self, generator: np.random.Generator, tokenizer: PreTrainedTokenizerBase) -> Encoded:
        encoded = random_inputs(generator, tokenizer, self.length)
        encoded.pop("token_type_ids", None)
        return {**encoded, "targets": random_ids(generator, tokenizer, min(self.length, 11))}
