"""Language models that write: causal ones, and those that read a text first."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from tacit.arrays import Floats, Ids
from tacit.errors import BadInputError, BadParameterError

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel, PreTrainedTokenizerBase
from tacit.documents.language_models.models import Continuation, Frame, LanguageModel

PLACE = "{text}"


_MARK = "TACIT-TEXT-GOES-HERE"


class _Generator(LanguageModel, ABC):
    """A model that continues: begin with texts, then extend by one token at a time."""

    def __init__(self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, *, name: str, source: str) -> None:
        super().__init__(model, tokenizer, name=name, source=source)
        self._blank: dict[tuple[Frame, int], tuple[Continuation, Floats]] = {}

    def begin_blank(self, rows: int, frame: Frame, input_tokens: int) -> tuple[Continuation, Floats]:
        """The same as `begin` with empty texts, which are public: worked out once and copied."""
        key = (frame, input_tokens)
        if key not in self._blank:
            self._blank = {key: self.begin([""], frame, input_tokens)}
        kept, scores = self._blank[key]
        with self.torch.inference_mode():
            running = copy.deepcopy(kept)
            running.past.batch_repeat_interleave(rows)
            running.mask = running.mask.repeat(rows, 1)
            if running.position is not None:
                running.position = running.position.repeat(rows, 1)
            if running.encoded is not None:
                running.encoded.last_hidden_state = running.encoded.last_hidden_state.repeat(rows, 1, 1)
        return running, np.repeat(scores, rows, axis=0)

    @abstractmethod
    def begin(self, texts: Sequence[str], frame: Frame, input_tokens: int) -> tuple[Continuation, Floats]: ...

    @abstractmethod
    def extend(self, running: Continuation, tokens: Ids) -> Floats: ...

    @abstractmethod
    def frame(self, prompt: str, *, chat: bool = False) -> Frame: ...

    @abstractmethod
    def check_lengths(self, frame: Frame, input_tokens: int, tokens: int) -> None: ...

    def public_scores(self, texts: Sequence[str], prompt: str | None, steps: int) -> Iterator[Floats]:
        """Log-probabilities along the likeliest continuation of each public text."""
        frame = self.frame(prompt or PLACE + "\n")
        for start in range(0, len(texts), 8):
            running, scores = self.begin(texts[start : start + 8], frame, 64)
            yield scores
            for _ in range(steps - 1):
                scores = self.extend(running, self.support[scores.argmax(axis=1)])
                yield scores


class CausalModel(_Generator):
    """A model that reads and writes one stream of tokens (GPT-2, Llama, SmolLM2 ...)."""

    kind: ClassVar[str] = "causal"

    def __init__(self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, *, name: str, source: str) -> None:
        super().__init__(model, tokenizer, name=name, source=source)
        if not (self._accepts("past_key_values") and self._accepts("attention_mask")):
            raise BadInputError(
                "model-without-cache",
                "{name} is a {architecture}, which keeps no attention cache: use a transformer model",
                name=name,
                architecture=type(model).__name__,
            )
        self._prefixes: dict[tuple[int, ...], Any] = {}

    def frame(self, prompt: str, *, chat: bool = False) -> Frame:
        before, after = _around_text(prompt)
        if chat:
            before, after = self._in_chat(before, after)
            frame = Frame(self.plain(before), self.plain(after))
        else:
            frame = Frame(self.special_frame().before + self.plain(before), self.plain(after))
        if not frame.before and not frame.after:
            raise BadParameterError(
                "prompt-says-nothing",
                "the prompt must say something beside {{text}}, or an empty text leaves nothing to continue",
            )
        return frame

    def check_lengths(self, frame: Frame, input_tokens: int, tokens: int) -> None:
        needed = len(frame.before) + input_tokens + len(frame.after) + tokens
        self.check_room(needed, "a prompt with its text and answer")

    def begin(self, texts: Sequence[str], frame: Frame, input_tokens: int) -> tuple[Continuation, Floats]:
        running, logits = self.begin_logits(texts, frame, input_tokens)
        return running, self._scores(logits)

    def begin_logits(
        self, texts: Sequence[str], frame: Frame, input_tokens: int, *, blank: int = 0
    ) -> tuple[Continuation, Tensor]:
        """The same as `begin`, with the numbers of the model as they are: one for each of its outputs.

        blank   so many columns more than the longest text takes, masked in every row. With one of them no reading is
                without a mask, for which transformers take another way of computing: whether *all* texts are long would
                then show in the last digits of each of them
        """
        width = input_tokens + blank + len(frame.after)
        rows, masks = [], []
        for text in texts:
            ids = [*self.tokens(text, input_tokens), *frame.after]
            rows.append([self.pad] * (width - len(ids)) + ids)
            masks.append([1] * len(frame.before) + [0] * (width - len(ids)) + [1] * len(ids))
        mask = self._tensor(masks)
        # A prompt that ends with the text leaves rows without a last token of their own: the prefix speaks for them.
        if not frame.after:
            rows, mask = self._with_last_of_prefix(rows, mask, frame)
            past = self._prefix(frame.before[:-1], len(texts))
        else:
            past = self._prefix(frame.before, len(texts))
        pieces = self._tensor(rows)
        positions = (mask.cumsum(dim=1) - 1).clamp(min=0)
        with self.torch.inference_mode():
            output = self._forward(pieces, mask, positions[:, -pieces.shape[1] :], past)
        return Continuation(output.past_key_values, mask, positions[:, -1:]), output.logits[:, -1]

    def _with_last_of_prefix(self, rows: list[list[int]], mask: Tensor, frame: Frame) -> tuple[list[list[int]], Tensor]:
        """Move the last token of the prefix behind the padding, so that each row ends in a token that counts."""
        if not frame.before:
            return rows, mask
        kept = len(frame.before) - 1
        moved, masks = [], []
        for row, each in zip(rows, mask.tolist(), strict=True):
            used = sum(each[kept + 1 :])
            padding = len(row) - used
            moved.append([self.pad] * padding + [frame.before[-1]] + row[padding:])
            masks.append([1] * kept + [0] * padding + [1] * (used + 1))
        return moved, self._tensor(masks)

    def extend(self, running: Continuation, tokens: Ids) -> Floats:
        return self._scores(self.extend_logits(running, tokens))

    def extend_logits(self, running: Continuation, tokens: Ids) -> Tensor:
        """The same as `extend`, with the numbers of the model as they are."""
        torch = self.torch
        running.mask = torch.cat([running.mask, torch.ones_like(running.mask[:, :1])], dim=1)
        assert running.position is not None
        running.position = running.position + 1
        with torch.inference_mode():
            output = self._forward(self._tensor(tokens)[:, None], running.mask, running.position, running.past)
        running.past = output.past_key_values
        last: Tensor = output.logits[:, -1]
        return last

    def _forward(self, ids: Tensor, mask: Tensor, positions: Tensor, past: Any) -> Any:
        more: dict[str, Any] = {}
        if self._accepts("position_ids"):
            more["position_ids"] = positions
        if self._accepts("logits_to_keep"):
            more["logits_to_keep"] = 1
        return self.model(input_ids=ids, attention_mask=mask, past_key_values=past, use_cache=True, **more)

    def _prefix(self, before: tuple[int, ...], rows: int) -> Any:
        """The cache after the public tokens before the text: computed once, copied for each batch."""
        if not before:
            return None
        if before not in self._prefixes:
            with self.torch.inference_mode():
                ids = self._tensor([before])
                positions = self.torch.arange(len(before), device=self.device)[None]
                output = self._forward(ids, self.torch.ones_like(ids), positions, None)
            self._prefixes = {before: output.past_key_values}
        with self.torch.inference_mode():
            past = copy.deepcopy(self._prefixes[before])
            past.batch_repeat_interleave(rows)
        return past

    def _in_chat(self, before: str, after: str) -> tuple[str, str]:
        if not self.tokenizer.chat_template:
            raise BadParameterError(
                "no-chat-template",
                "{name} has no chat template: leave out chat, or use an instruction model",
                name=self.name,
            )
        message = [{"role": "user", "content": before + _MARK + after}]
        rendered = self.tokenizer.apply_chat_template(message, tokenize=False, add_generation_prompt=True)
        parts = str(rendered).split(_MARK)
        if len(parts) != 2:
            raise BadParameterError(
                "chat-template-splits-text",
                "the chat template of {name} does not keep the text in one place: set chat=no",
                name=self.name,
            )
        return parts[0], parts[1]


class Seq2SeqModel(_Generator):
    """A model with an encoder for the prompt and a decoder for the answer (T5, BART, Pegasus ...)."""

    kind: ClassVar[str] = "sequence-to-sequence"

    def frame(self, prompt: str, *, chat: bool = False) -> Frame:
        if chat:
            raise BadParameterError(
                "no-chat-template",
                "{name} is a sequence-to-sequence model, which has no chat: set chat=no",
                name=self.name,
            )
        before, after = _around_text(prompt)
        special = self.special_frame()
        frame = Frame(special.before + self.plain(before), self.plain(after) + special.after)
        if not frame.before and not frame.after:
            raise BadParameterError(
                "prompt-says-nothing",
                "the prompt must say something beside {{text}}, or an empty text leaves nothing to read",
            )
        return frame

    def check_lengths(self, frame: Frame, input_tokens: int, tokens: int) -> None:
        self.check_room(len(frame.before) + input_tokens + len(frame.after), "a prompt with its text")
        self.check_room(tokens + len(self.start), "an answer")

    @cached_property
    def start(self) -> tuple[int, ...]:
        """The public tokens with which every answer begins."""
        first, forced = self._token_named("decoder_start_token_id"), self._token_named("forced_bos_token_id")
        if first is None:
            raise BadInputError(
                "no-start-token",
                "{name} does not say with which token its decoder starts: check its config.json",
                name=self.name,
            )
        return (first,) if forced is None else (first, forced)

    def _token_named(self, name: str) -> int | None:
        """A token that the model's own files name, in the place of today or in the one of older checkpoints."""
        for settings in (self.model.generation_config, self.model.config):
            if (token := getattr(settings, name, None)) is not None:
                return int(token)
        return None

    def begin(self, texts: Sequence[str], frame: Frame, input_tokens: int) -> tuple[Continuation, Floats]:
        width = len(frame.before) + input_tokens + len(frame.after)
        rows, masks = [], []
        for text in texts:
            ids = [*frame.before, *self.tokens(text, input_tokens), *frame.after]
            rows.append(ids + [self.pad] * (width - len(ids)))
            masks.append([1] * len(ids) + [0] * (width - len(ids)))
        running = Continuation(None, self._tensor(masks))
        with self.torch.inference_mode():
            encoder = self.model.get_encoder()
            running.encoded = encoder(input_ids=self._tensor(rows), attention_mask=running.mask)
        return running, self._decode(running, self._tensor([self.start] * len(texts)))

    def extend(self, running: Continuation, tokens: Ids) -> Floats:
        return self._decode(running, self._tensor(tokens)[:, None])

    def _decode(self, running: Continuation, ids: Tensor) -> Floats:
        with self.torch.inference_mode():
            output = self.model(
                encoder_outputs=running.encoded,
                attention_mask=running.mask,
                decoder_input_ids=ids,
                past_key_values=running.past,
                use_cache=True,
            )
        running.past = output.past_key_values
        return self._scores(output.logits[:, -1])


def _around_text(prompt: str) -> tuple[str, str]:
    if prompt.count(PLACE) != 1:
        raise BadParameterError(
            "text-not-once-in-prompt",
            "a prompt says once where the text goes, for example 'Rewrite: {{text}}\\nRewritten:'",
        )
    before, _, after = prompt.partition(PLACE)
    return before, after
