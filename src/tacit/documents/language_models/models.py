"""Causal, sequence-to-sequence and masked models behind one small face: texts in, rows of log-probabilities out."""

from __future__ import annotations

import copy
import inspect
import itertools
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from tacit.arrays import Floats, Ids
from tacit.errors import BadInputError, BadParameterError, require
from tacit.guarantee import Provenance
from tacit.lineage import Lineage, lineage_of

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

CHARACTERS_PER_TOKEN = 32
"""A text is cut to this many characters per token it may have, before it is cut into tokens: a long text costs no more
than a short one."""

PLACE = "{text}"
_MARK = "TACIT-TEXT-GOES-HERE"


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
    """What the three kinds share."""

    kind: ClassVar[str]
    folder: Path | None = None
    """Where the model was loaded from, unless it came from the hub or was given."""

    def __init__(self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, *, name: str, source: str) -> None:
        self.torch = require("torch", extra="documents", purpose="a language model")
        self.model = model.eval()
        self.tokenizer = tokenizer
        self.name = name
        self.source = source

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
        """How many positions the model has, or None where it sets no limit."""
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
        """What each token of the support looks like."""
        texts: list[str] = self.tokenizer.batch_decode([[int(i)] for i in self.support])
        return texts

    def special_frame(self) -> Frame:
        """The special tokens that this model expects around every input."""
        sample = self.tokenizer("a", return_special_tokens_mask=True)
        ids, mask = list(sample["input_ids"]), list(sample["special_tokens_mask"])
        inside = [i for i, special in enumerate(mask) if not special] or [len(ids)]
        return Frame(tuple(ids[: inside[0]]), tuple(ids[inside[-1] + 1 :]))

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
        scores: Floats = logits[:, self.torch.from_numpy(self.support)].double().numpy()
        scores = np.nan_to_num(scores, nan=-1e30, posinf=1e30, neginf=-1e30)
        scores -= scores.max(axis=1, keepdims=True)
        scores -= np.log(np.exp(scores).sum(axis=1, keepdims=True))
        return scores

    def _accepts(self, name: str) -> bool:
        return name in inspect.signature(self.model.forward).parameters

    def _tensor(self, rows: Sequence[Sequence[int]] | Ids) -> Tensor:
        ids: Tensor = self.torch.tensor(rows, dtype=self.torch.long)
        return ids


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
        width = input_tokens + len(frame.after)
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
        return Continuation(output.past_key_values, mask, positions[:, -1:]), self._scores(output.logits[:, -1])

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
        torch = self.torch
        running.mask = torch.cat([running.mask, torch.ones(len(tokens), 1, dtype=torch.long)], dim=1)
        assert running.position is not None
        running.position = running.position + 1
        with torch.inference_mode():
            output = self._forward(self._tensor(tokens)[:, None], running.mask, running.position, running.past)
        running.past = output.past_key_values
        return self._scores(output.logits[:, -1])

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
                positions = self.torch.arange(len(before))[None]
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


def _around_text(prompt: str) -> tuple[str, str]:
    if prompt.count(PLACE) != 1:
        raise BadParameterError(
            "text-not-once-in-prompt",
            "a prompt says once where the text goes, for example 'Rewrite: {{text}}\\nRewritten:'",
        )
    before, _, after = prompt.partition(PLACE)
    return before, after
