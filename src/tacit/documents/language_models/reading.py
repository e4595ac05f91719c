"""Prompts with private texts, read side by side by a causal model in a constant shape.

All rows are as wide as the longest text may be and every reading has the same number of rows, blank ones where texts
are missing, so the numbers of a row are a function of its own text. A row can begin anew behind its prompt: the tokens
that were written stay in the cache, masked, and positions go back, so the prompt is read once for many texts.
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
    """Prompts with their attention cache."""

    def __init__(self, model: CausalModel, running: Continuation, logits: Tensor) -> None:
        self._model = model
        self._running = running
        self._width = int(running.mask.shape[1])
        assert running.position is not None
        self._start = running.position.clone()
        self.logits: Floats32 = logits.float().numpy()

    def extend(self, tokens: Ids, anew: Mask) -> None:
        """Append a token to each row; rows marked `anew` first forget all tokens behind their prompt."""
        running = self._running
        if anew.any():
            assert running.position is not None
            rows = self._model.torch.from_numpy(anew)
            running.mask[rows, self._width :] = 0
            running.position[rows] = self._start[rows]
        self.logits = self._model.extend_logits(running, tokens).float().numpy()


@dataclass
class FramedReader:
    """A causal model behind a public prompt.

    frame         the prompt with the place of the text
    public        the prompt without a text
    rows          prompts of a reading
    input_tokens  how many tokens of a text are read
    """

    model: CausalModel
    frame: Frame
    public: Frame
    rows: int
    input_tokens: int

    def read(self, texts: Sequence[str]) -> CachedReading:
        """The prompts of these texts; the rest of the rows is blank."""
        filled = [*texts, *[""] * (self.rows - len(texts))]
        return self._reading(filled, self.frame, self.input_tokens)

    def read_public(self, copies: int) -> CachedReading:
        """The prompt without any text, so many times; computed apart from all private prompts."""
        return self._reading([""] * copies, self.public, 1)

    def _reading(self, texts: Sequence[str], frame: Frame, input_tokens: int) -> CachedReading:
        return CachedReading(self.model, *self.model.begin_logits(texts, frame, input_tokens))
