"""Vectors of texts and of their word pieces, computed once: similarity and probes ask for the same ones."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tacit.arrays import Floats32
from tacit.devices import device_of
from tacit.documents.encoder import SentenceEncoder
from tacit.encoders import Encoder, load_encoder
from tacit.errors import BadParameterError
from tacit.progress import StepProgress

if TYPE_CHECKING:
    import torch
    from torch import Tensor
    from transformers import PreTrainedTokenizerBase

BATCH = 64


class TextVectors:
    """Unit vectors of texts under one encoder, remembered.

    encoder   "minilm", a folder, a name on the model hub, or anything with `encode`
    """

    def __init__(self, encoder: str | Path | Encoder = "minilm") -> None:
        self.encoder: Encoder = load_encoder(encoder) if isinstance(encoder, str | Path) else encoder
        self._known: dict[str, Floats32] = {}

    @property
    def name(self) -> str:
        return self.encoder.name

    def __call__(self, texts: Sequence[str], progress: StepProgress | None = None) -> Floats32:
        """(texts, dimension), each row of length 1."""
        new = list(dict.fromkeys(text for text in texts if text not in self._known))
        if new:
            self._known.update(zip(new, self.encoder.encode(new, progress), strict=True))
        if not len(texts):
            return np.empty((0, self.encoder.dimension), dtype=np.float32)
        return np.stack([self._known[text] for text in texts])


def with_pieces(encoder: Encoder, purpose: str) -> SentenceEncoder:
    """The encoder, if it is a model with word pieces and states, as `purpose` needs one."""
    if not isinstance(encoder, SentenceEncoder):
        raise BadParameterError(
            "wrong-kind-of-encoder",
            "{purpose} needs an encoder with weights and word pieces: give 'minilm' or a folder",
            purpose=purpose,
        )
    return encoder


def token_states(
    encoder: SentenceEncoder, pieces: Sequence[Sequence[int]], progress: StepProgress | None = None
) -> list[Floats32]:
    """The last hidden states of lists of word pieces, special pieces around them included and cut off again.

    Each result has one row per piece. Lists longer than the model can read are cut; an empty list has no rows.
    """
    import torch

    tokenizer, model = encoder.tokenizer, encoder.model
    longest = min(encoder.pieces, int(getattr(model.config, "max_position_embeddings", encoder.pieces))) - 2
    before, after = special_pieces(tokenizer)
    rows = [[*before, *ids[:longest], *after] for ids in pieces]
    order = sorted(range(len(rows)), key=lambda i: len(rows[i]))
    states_of_rows: list[Floats32] = [np.empty((0, int(model.config.hidden_size)), dtype=np.float32)] * len(rows)
    for start in range(0, len(order), BATCH):
        batch = order[start : start + BATCH]
        ids, mask = padded([rows[i] for i in batch], tokenizer.pad_token_id or 0, device_of(model))
        with torch.inference_mode():
            states = model(input_ids=ids, attention_mask=mask).last_hidden_state.float().cpu().numpy()
        for place, i in enumerate(batch):
            end = len(rows[i]) - len(after)
            states_of_rows[i] = np.array(states[place, len(before) : end], dtype=np.float32)
        if progress is not None:
            progress(start + len(batch), len(order))
    return states_of_rows


def special_pieces(tokenizer: PreTrainedTokenizerBase) -> tuple[list[int], list[int]]:
    """The pieces that a model expects before and after each text."""
    sample = tokenizer("a", return_special_tokens_mask=True)
    ids, mask = list(sample["input_ids"]), list(sample["special_tokens_mask"])
    inside = [i for i, special in enumerate(mask) if not special] or [len(ids)]
    return ids[: inside[0]], ids[inside[-1] + 1 :]


def plain_pieces(tokenizer: PreTrainedTokenizerBase, texts: Sequence[str], limit: int) -> list[list[int]]:
    """The word pieces of texts, without special ones."""
    if not len(texts):
        return []
    pieces: list[list[int]] = tokenizer(
        list(texts), add_special_tokens=False, truncation=True, max_length=limit, verbose=False
    )["input_ids"]
    return pieces


def padded(rows: Sequence[Sequence[int]], padding: int, device: torch.device | str = "cpu") -> tuple[Tensor, Tensor]:
    """Ids and mask as tensors on a device, one row per list."""
    import torch

    longest = max((len(row) for row in rows), default=0)
    ids = torch.full((len(rows), max(longest, 1)), padding, dtype=torch.long)
    mask = torch.zeros_like(ids)
    for place, row in enumerate(rows):
        ids[place, : len(row)] = torch.tensor(row, dtype=torch.long)
        mask[place, : len(row)] = 1
    return ids.to(device), mask.to(device)
