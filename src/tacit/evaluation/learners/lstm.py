"""A small LSTM on frozen public word vectors (Hochreiter & Schmidhuber 1997; Riecker 2023, section 5).

    tokens -> frozen vectors -> LSTM in both directions -> maximum over the tokens -> dropout -> linear

The vectors are public and frozen, so a word of the original test set that no rewritten training text holds still has a
place near its neighbors. Unknown words are zero. Two texts are read by the same LSTM and compared as u, v, |u - v|,
u * v; tagging skips the maximum.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from tacit.devices import device_of
from tacit.evaluation.learners.base import (
    Task,
)
from tacit.evaluation.learners.neural import NeuralLearner
from tacit.evaluation.vectors import padded
from tacit.progress import StepProgress
from tacit.text.tokens import normalize, split
from tacit.vectors import VectorTable, load_vectors

if TYPE_CHECKING:
    from torch import Tensor, nn

LONGEST = 200


Ids = list[int]


class Lstm(NeuralLearner[Ids | tuple[Ids, ...]]):
    """vectors: public word vectors by name or file; hidden: numbers per direction."""

    def __init__(
        self,
        task: Task,
        vectors: str | VectorTable = "default",
        *,
        hidden: int = 64,
        epochs: int = 6,
        batch_size: int = 32,
        learning_rate: float = 3e-3,
        dropout: float = 0.1,
        least_steps: int = 200,
        progress: StepProgress | None = None,
    ) -> None:
        super().__init__(
            task, epochs=epochs, batch_size=batch_size, learning_rate=learning_rate, least_steps=least_steps,
            progress=progress,
        )  # fmt: skip
        self.table = load_vectors(vectors)
        self.hidden, self.dropout = hidden, dropout
        self.name = f"LSTM on {self.table.name} vectors"

    def _build(self, outputs: int) -> nn.ModuleDict:
        import torch

        vectors = torch.from_numpy(self.table.vectors.astype("float32"))
        # Row 0 is padding and every word without a vector.
        known = torch.cat([torch.zeros(1, vectors.shape[1]), vectors])
        width = 2 * self.hidden * (4 if self.task in ("pairs", "similarity") else 1)
        return torch.nn.ModuleDict(
            {
                "words": torch.nn.Embedding(len(known), known.shape[1], _weight=known, _freeze=True),
                "lstm": torch.nn.LSTM(vectors.shape[1], self.hidden, batch_first=True, bidirectional=True),
                "dropout": torch.nn.Dropout(self.dropout),
                "output": torch.nn.Linear(width, outputs),
            }
        )

    def _prepared(self, texts: Sequence[Any]) -> list[Ids | tuple[Ids, ...]]:
        if self.task == "tagging":
            return [self._ids([normalize(token) for token in tokens]) for tokens in texts]
        if self.task == "classification":
            return [self._ids(split(text)) for text in texts]
        return [tuple(self._ids(split(text)) for text in pair) for pair in texts]

    def _ids(self, tokens: Sequence[str]) -> list[int]:
        index = self.table.index
        return [index.get(token, -1) + 1 for token in tokens[:LONGEST]]

    def _length(self, prepared: Ids | tuple[Ids, ...]) -> int:
        return sum(map(len, prepared)) if isinstance(prepared, tuple) else len(prepared)

    def _scores(self, batch: Sequence[Ids | tuple[Ids, ...]]) -> Tensor:
        import torch

        if self.task in ("classification", "tagging"):
            states, mask = self._states(cast("Sequence[Ids]", batch))
            read = states if self.task == "tagging" else _maximum(states, mask)
        else:
            pairs = cast("Sequence[tuple[Ids, Ids]]", batch)
            u, v = (_maximum(*self._states([pair[side] for pair in pairs])) for side in (0, 1))
            read = torch.cat([u, v, (u - v).abs(), u * v], dim=1)
        scores: Tensor = self.network["output"](self.network["dropout"](read))
        return scores

    def _states(self, rows: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
        import torch

        ids, mask = padded(rows, 0, device_of(self.network))
        lengths = mask.sum(dim=1).clamp(min=1).cpu()
        packed = torch.nn.utils.rnn.pack_padded_sequence(
            self.network["words"](ids), lengths, batch_first=True, enforce_sorted=False
        )
        states, _ = torch.nn.utils.rnn.pad_packed_sequence(
            self.network["lstm"](packed)[0], batch_first=True, total_length=ids.shape[1]
        )
        return states, mask


def _maximum(states: Tensor, mask: Tensor) -> Tensor:
    """Over the tokens of each text; a text without any reads its one padded token."""
    mask = mask.clone()
    mask[:, 0] = 1
    return states.masked_fill(mask.unsqueeze(-1) == 0, float("-inf")).amax(dim=1)
