"""An encoder, fine-tuned with a linear layer on top (Devlin et al. 2019), with settings that a CPU can bear.

    classification, pairs, similarity   mean of the last states -> linear; two texts go in together
    tagging                             state of the first piece of each token -> linear

Every weight is trained, from the public weights on, for a few epochs at a small rate that rises and falls again.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from tacit.devices import device_of
from tacit.encoders import Encoder, load_encoder
from tacit.evaluation.learners.base import (
    Task,
)
from tacit.evaluation.learners.neural import NeuralLearner
from tacit.evaluation.vectors import padded, plain_pieces, special_pieces, with_pieces
from tacit.progress import StepProgress

if TYPE_CHECKING:
    from torch import Tensor, nn


class Transformer(NeuralLearner[tuple[list[int], list[int]]]):
    """encoder: 'minilm', a folder or a hub name; longest: word pieces of a text that are read."""

    def __init__(
        self,
        task: Task,
        encoder: str | Encoder = "minilm",
        *,
        epochs: int = 3,
        batch_size: int = 16,
        learning_rate: float = 1e-4,
        longest: int = 128,
        progress: StepProgress | None = None,
    ) -> None:
        super().__init__(task, epochs=epochs, batch_size=batch_size, learning_rate=learning_rate, progress=progress)
        loaded = with_pieces(load_encoder(encoder) if isinstance(encoder, str) else encoder, "fine-tuning")
        self.encoder = loaded
        self.longest = min(longest, int(getattr(loaded.model.config, "max_position_embeddings", longest)))
        self.name = f"fine-tuned {loaded.name}"

    def _build(self, outputs: int) -> nn.ModuleDict:
        import torch

        body = copy.deepcopy(self.encoder.model)
        for weight in body.parameters():
            weight.requires_grad_(True)
        head = torch.nn.Linear(int(body.config.hidden_size), outputs)
        return torch.nn.ModuleDict({"body": body, "head": head})

    def _prepared(self, texts: Sequence[Any]) -> list[tuple[list[int], list[int]]]:
        tokenizer = self.encoder.tokenizer
        if self.task == "tagging":
            return self._with_places(texts)
        if not len(texts):
            return []
        options = {"truncation": True, "max_length": self.longest, "verbose": False}
        if self.task == "classification":
            ids = tokenizer(list(texts), **options)["input_ids"]
        else:
            ids = tokenizer([pair[0] for pair in texts], [pair[1] for pair in texts], **options)["input_ids"]
        return [(row, []) for row in ids]

    def _with_places(self, texts: Sequence[Sequence[str]]) -> list[tuple[list[int], list[int]]]:
        """Pieces of each text, and where each token begins among them."""
        tokenizer = self.encoder.tokenizer
        before, after = special_pieces(tokenizer)
        pieces = iter(plain_pieces(tokenizer, [token for tokens in texts for token in tokens], 8))
        room = self.longest - len(before) - len(after)
        rows = []
        for tokens in texts:
            parts = [next(pieces) or [tokenizer.unk_token_id or 0] for _ in tokens]
            starts = list(accumulate((len(part) for part in parts), initial=0))[:-1]
            body = [piece for part in parts for piece in part][:room]
            rows.append(([*before, *body, *after], [len(before) + start for start in starts if start < room]))
        return rows

    def _length(self, prepared: tuple[list[int], list[int]]) -> int:
        return len(prepared[0])

    def _tokens_read(self, prepared: tuple[list[int], list[int]]) -> int:
        return len(prepared[1])

    def _scores(self, batch: Sequence[tuple[list[int], list[int]]]) -> Tensor:
        import torch

        device = device_of(self.network)
        ids, mask = padded([row for row, _ in batch], self.encoder.tokenizer.pad_token_id or 0, device)
        states = self.network["body"](input_ids=ids, attention_mask=mask).last_hidden_state
        if self.task != "tagging":
            weights = mask.unsqueeze(-1).float()
            mean: Tensor = self.network["head"]((states * weights).sum(dim=1) / weights.sum(dim=1))
            return mean
        width = max(1, *(len(places) for _, places in batch))
        places = torch.zeros((len(batch), width), dtype=torch.long)
        for row, (_, word_places) in enumerate(batch):
            places[row, : len(word_places)] = torch.tensor(word_places, dtype=torch.long)
        tokens = states.gather(1, places.to(device).unsqueeze(-1).expand(-1, -1, states.shape[-1]))
        scores: Tensor = self.network["head"](tokens)
        return scores
