"""A masked language model, which scores the words of one place in a text."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from tacit.arrays import Floats
from tacit.errors import BadInputError

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase
from tacit.documents.language_models.models import LanguageModel


class MaskedModel(LanguageModel):
    """A model that fills gaps (BERT, RoBERTa ...)."""

    kind: ClassVar[str] = "masked"

    def __init__(self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, *, name: str, source: str) -> None:
        super().__init__(model, tokenizer, name=name, source=source)
        if tokenizer.mask_token_id is None:
            raise BadInputError(
                "no-mask-token",
                "the tokenizer of {name} has no mask token: use the tokenizer of a masked model",
                name=name,
            )

    @cached_property
    def pair_frame(self) -> tuple[list[int], list[int], list[int], list[int]]:
        """Special tokens before, between and after two texts, and the token types of all five parts."""
        sample = self.tokenizer("a", "a", return_special_tokens_mask=True, return_token_type_ids=True)
        ids, mask = list(sample["input_ids"]), list(sample["special_tokens_mask"])
        types = list(sample.get("token_type_ids") or [0] * len(ids))
        inside = [i for i, special in enumerate(mask) if not special]
        gap = next((i for i, j in itertools.pairwise(inside) if j > i + 1), None)
        if gap is None:
            raise BadInputError(
                "no-text-pairs",
                "the tokenizer of {name} puts nothing between two texts: use context=single",
                name=self.name,
            )
        second = next(i for i in inside if i > gap)
        kinds = [types[0], types[inside[0]], types[gap + 1], types[second], types[-1]]
        return ids[: inside[0]], ids[gap + 1 : second], ids[inside[-1] + 1 :], kinds

    def check_lengths(self, tokens: int, *, pair: bool) -> None:
        self.check_room(self._width(tokens, pair), "a text beside its copy" if pair else "a text")

    def _width(self, tokens: int, pair: bool) -> int:
        frame = self.special_frame()
        special = sum(map(len, self.pair_frame[:3])) if pair else len(frame.before) + len(frame.after)
        return special + (2 if pair else 1) * tokens

    def fill(
        self,
        working: Sequence[Sequence[int]],
        position: int,
        length: int,
        beside: Sequence[Sequence[int]] | None = None,
    ) -> Floats:
        """Log-probabilities of the token at `position` of each text, which is hidden there.

        `beside` are texts that stand before them and stay whole. `length` is the public number of tokens for which room
        is made in every row. Each row is computed alone, so that its last bits do not tell how many others there are;
        it is long enough to keep a processor busy.
        """
        rows, kinds, places = [], [], []
        for number, ids in enumerate(working):
            row, types, start = self._row(list(ids), None if beside is None else list(beside[number]))
            row[start + position] = int(self.tokenizer.mask_token_id)
            rows.append(row)
            kinds.append(types)
            places.append(start + position)
        width = self._width(length, beside is not None)
        return np.concatenate([self._filled(*batch, width) for batch in zip(rows, kinds, places, strict=True)])

    def _row(self, ids: list[int], beside: list[int] | None) -> tuple[list[int], list[int], int]:
        if beside is None:
            frame = self.special_frame()
            row = [*frame.before, *ids, *frame.after]
            return row, [0] * len(row), len(frame.before)
        before, between, after, kinds = self.pair_frame
        parts = (before, beside, between, ids, after)
        row = [token for part in parts for token in part]
        types = [kind for part, kind in zip(parts, kinds, strict=True) for _ in part]
        return row, types, len(before) + len(beside) + len(between)

    def _filled(self, row: list[int], types: list[int], place: int, width: int) -> Floats:
        padding = width - len(row)
        more: dict[str, Any] = {}
        if self._accepts("token_type_ids") and getattr(self.model.config, "type_vocab_size", 0) > 1:
            more["token_type_ids"] = self._tensor([types + [0] * padding])
        ids, mask = self._tensor([row + [self.pad] * padding]), self._tensor([[1] * len(row) + [0] * padding])
        with self.torch.inference_mode():
            logits = self.model(input_ids=ids, attention_mask=mask, **more).logits
        return self._scores(logits[:, place])

    def public_scores(self, texts: Sequence[str], prompt: str | None, steps: int) -> Iterator[Floats]:
        """Log-probabilities at the first positions of each public text, hidden one at a time."""
        length = 32
        cut = [ids for text in texts if (ids := self.tokens(text, length))]
        for position in range(steps):
            reaching = [ids for ids in cut if len(ids) > position]
            if reaching:
                yield self.fill(reaching, position, length)
