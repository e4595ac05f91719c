"""Causal, sequence-to-sequence and masked models behind one small face: texts in, rows of log-probabilities out."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from tacit.arrays import Floats, Ids
from tacit.devices import device_of
from tacit.errors import BadInputError, BadParameterError, require
from tacit.guarantee import Provenance
from tacit.lineage import Lineage, lineage_of

if TYPE_CHECKING:
    import torch
    from torch import Tensor
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

CHARACTERS_PER_TOKEN = 32
"""A text is cut to this many characters per token it may have, before it is cut into tokens: a long text costs no more
than a short one."""


@dataclass(frozen=True)
class Frame:
    """A prompt as tokens: what stands before the text and after it. Public."""

    before: tuple[int, ...]
    after: tuple[int, ...]


@dataclass
class Continuation:
    """A batch of texts that is being continued: the model's cache, the attention mask, the last position."""

    past: Any
    mask: Tensor
    position: Tensor | None = None
    encoded: Any = None


class LanguageModel:
    """A language model, with what the three kinds share."""

    kind: ClassVar[str]
    folder: Path | None = None
    """Where the model was loaded from, unless it came from the hub or was given."""

    def __init__(self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, *, name: str, source: str) -> None:
        self.torch = require("torch", extra="documents", purpose="a language model")
        self.model = model.eval()
        self.tokenizer = tokenizer
        self.name = name
        self.source = source

    @property
    def device(self) -> torch.device:
        """Where the model computes."""
        return device_of(self.model)

    def provenance(self) -> Provenance:
        """The line of a card that uses the model; refused if it may repeat private text."""
        known = Lineage() if self.folder is None else lineage_of(self.folder)
        return known.provenance("language model and tokenizer", self.source)

    @property
    def end(self) -> int | None:
        """The token that ends an output."""
        token = self.tokenizer.eos_token_id
        return None if token is None else int(token)

    @cached_property
    def support(self) -> Ids:
        """The tokens that may come out: all but the special ones, and the end token. Fixed and public."""
        outputs = int(self.model.get_output_embeddings().weight.shape[0])
        tokens = min(len(self.tokenizer), outputs)
        special = set(self.tokenizer.all_special_ids)
        special |= {int(i) for i, token in self.tokenizer.added_tokens_decoder.items() if token.special}
        special -= {self.end} if self.end is not None and self.kind != "masked" else set()
        support = np.array([i for i in range(tokens) if i not in special], dtype=np.int64)
        if len(support) < 2:
            raise BadInputError(
                "no-tokens", "the tokenizer of {name} has no tokens to write with: check its files", name=self.name
            )
        return support

    @property
    def pad(self) -> int:
        for token in (self.tokenizer.pad_token_id, self.end):
            if token is not None:
                return int(token)
        return 0  # masked, so any token does

    @property
    def room(self) -> int | None:
        """The number of positions of the model, or None where it sets no limit."""
        config = self.model.config
        limits = [getattr(config, name, None) for name in ("max_position_embeddings", "n_positions")]
        if config.model_type == "t5":  # relative positions; the number in its configuration is no limit
            limits = []
        reserved = 2 if "roberta" in config.model_type or config.model_type == "camembert" else 0
        known = [int(limit) - reserved for limit in limits if limit]
        return min(known) if known else None

    def tokens(self, text: str, limit: int) -> list[int]:
        """The first tokens of a text, by a fixed public rule that has an answer for every string."""
        line = " ".join(text[: CHARACTERS_PER_TOKEN * limit].split())
        line = line.encode("utf-8", "replace").decode("utf-8")
        # A text that spells out a special token must not become one: it could imitate the prompt.
        encoded = self.tokenizer(
            line, add_special_tokens=False, truncation=True, max_length=limit, split_special_tokens=True
        )
        return [int(token) for token in encoded["input_ids"]]

    def plain(self, text: str) -> tuple[int, ...]:
        return tuple(int(i) for i in self.tokenizer(text, add_special_tokens=False)["input_ids"]) if text else ()

    def text(self, ids: Sequence[int]) -> str:
        return str(self.tokenizer.decode(list(ids), skip_special_tokens=True))

    def texts_of_tokens(self) -> list[str]:
        """The text of each token of the support."""
        texts: list[str] = self.tokenizer.batch_decode([[int(i)] for i in self.support])
        return texts

    def special_frame(self) -> Frame:
        """The special tokens that this model expects around every input."""
        sample = self.tokenizer("a", return_special_tokens_mask=True)
        ids, mask = list(sample["input_ids"]), list(sample["special_tokens_mask"])
        inside = [i for i, special in enumerate(mask) if not special] or [len(ids)]
        return Frame(tuple(ids[: inside[0]]), tuple(ids[inside[-1] + 1 :]))

    def before_text(self) -> tuple[int, ...]:
        """The special tokens before every text."""
        return self.special_frame().before

    def check_room(self, needed: int, what: str) -> None:
        if self.room is not None and needed > self.room:
            raise BadParameterError(
                "too-long-for-model",
                "{what} takes {needed:,} positions and {name} has {room:,}: shorten the prompt, or lower "
                "input_tokens or tokens",
                what=what,
                needed=needed,
                name=self.name,
                room=self.room,
            )

    def _scores(self, logits: Tensor) -> Floats:
        """Log-probabilities over the support. A number that is none becomes the smallest one of all."""
        scores: Floats = logits.cpu()[:, self.torch.from_numpy(self.support)].double().numpy()
        scores = np.nan_to_num(scores, nan=-1e30, posinf=1e30, neginf=-1e30)
        scores -= scores.max(axis=1, keepdims=True)
        scores -= np.log(np.exp(scores).sum(axis=1, keepdims=True))
        return scores

    def _accepts(self, name: str) -> bool:
        return name in inspect.signature(self.model.forward).parameters

    def _tensor(self, rows: Sequence[Sequence[int]] | Ids) -> Tensor:
        ids: Tensor = self.torch.tensor(rows, dtype=self.torch.long).to(self.device)
        return ids
