"""Prompts with private texts, read side by side by a causal model in a constant shape.

All rows are one column wider than the longest text may be, so that every row has a mask, and every reading has the same
number of rows, empty ones where texts are missing. So the numbers of a row are a function of its own text.

A row can begin anew behind its prompt: the tokens that were written stay in the cache, masked, and positions go back,
so the prompt is read once for many texts. Every step adds a column, and those of a text are the last ones: older
columns are dropped when twice the longest text is there, after a number of steps that is the same for all readings.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tacit.arrays import Floats32, Ids, Mask
from tacit.documents.language_models.generators import CausalModel
from tacit.documents.language_models.models import Continuation, Frame

if TYPE_CHECKING:
    from torch import Tensor


class CachedReading:
    """Prompts with their attention cache.

    length   tokens of the longest text behind a prompt: so many columns are kept at least
    """

    def __init__(self, model: CausalModel, running: Continuation, logits: Tensor, length: int) -> None:
        self._model = model
        self._length = length
        self._running = running
        self._width = int(running.mask.shape[1])
        assert running.position is not None
        self._start = running.position.clone()
        self.logits: Floats32 = logits.float().cpu().numpy()

    def extend(self, tokens: Ids, anew: Mask) -> None:
        """Append a token to each row; rows marked `anew` first forget all tokens behind their prompt."""
        running = self._running
        if running.mask.shape[1] >= self._width + 2 * self._length:
            self._drop_columns()
        if anew.any():
            assert running.position is not None
            rows = self._model.torch.from_numpy(anew).to(running.mask.device)
            running.mask[rows, self._width :] = 0
            running.position[rows] = self._start[rows]
        self.logits = self._model.extend_logits(running, tokens).float().cpu().numpy()

    def _drop_columns(self) -> None:
        """Forget all columns between the prompt and the last ones, which hold the current text of every row."""
        torch, running = self._model.torch, self._running

        def kept(columns: Tensor, axis: int) -> Tensor:
            end = columns.shape[axis]
            parts = (columns.narrow(axis, 0, self._width), columns.narrow(axis, end - self._length, self._length))
            joined: Tensor = torch.cat(parts, dim=axis)
            return joined

        running.mask = kept(running.mask, 1)
        with torch.inference_mode():
            for layer in running.past.layers:
                layer.keys, layer.values = kept(layer.keys, -2), kept(layer.values, -2)


@dataclass
class FramedReader:
    """A causal model behind a public prompt.

    frame         the prompt with the place of the text
    public        the prompt without a text
    rows          prompts of a reading
    input_tokens  how many tokens of a text are read
    length        tokens of the longest text that is written
    """

    model: CausalModel
    frame: Frame
    public: Frame
    rows: int
    input_tokens: int
    length: int

    def read(self, texts: Sequence[str]) -> CachedReading:
        """The prompts of exactly `rows` texts, each in its own row; empty ones where no record is."""
        if len(texts) != self.rows:
            raise ValueError(f"{len(texts)} texts for {self.rows} rows")
        return self._reading(texts, self.frame, self.input_tokens)

    def read_public(self, copies: int) -> CachedReading:
        """The prompt without any text, so many times; computed apart from all private prompts."""
        return self._reading([""] * copies, self.public, 1)

    def row_bytes(self, tokens: int) -> int:
        """About how much memory a row takes after so many tokens: its keys and values in all layers."""
        config = self.model.model.config
        heads = int(config.num_attention_heads)
        size = int(getattr(config, "head_dim", None) or config.hidden_size // heads)
        kept = int(getattr(config, "num_key_value_heads", None) or heads)
        width = len(self.frame.before) + self.input_tokens + len(self.frame.after) + min(tokens, 2 * self.length)
        return width * int(config.num_hidden_layers) * 2 * kept * size * 4

    def _reading(self, texts: Sequence[str], frame: Frame, input_tokens: int) -> CachedReading:
        begun = self.model.begin_logits(texts, frame, input_tokens, blank=1)
        return CachedReading(self.model, *begun, self.length)
