"""Sentences written by a public causal model after a public prompt: a list that goes on, or one quoted sentence.

The model is shown the beginning of a list, with one item per line, and continues it: many continuations of one prompt
side by side, whose cache of the prompt is computed once. No row stops early; when an item ends, the next one begins, so
nothing of a batch is wasted. Items that are not finished, and what plainly is no sentence, are left out by fixed rules.

Nothing private goes in here: prompts are public, or made of what was released.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

from tacit.documents.language_models.generators import CausalModel
from tacit.documents.language_models.grouped_attention import use_grouped_attention
from tacit.documents.language_models.loading import load_causal
from tacit.text.spoken import spoken_label

TOP = 60
"""Only so many of the likeliest tokens are drawn from: the tail of a small model is noise."""
FEWEST_WORDS, MOST_WORDS = 3, 40
MOST_CHARACTERS = 300
ITEM = "-"
SUBJECTS_TITLE = "What people write, each time about one subject."

_ITEM_MARK = re.compile(r"^(?:[-*•–]|\(?\d{1,3}[.):]|[A-Za-z]\))\s*")
_QUOTES = "\"'“”‘’*_ "
_ABOUT_ITSELF = re.compile(
    r"\b(?:as an? (?:ai|language model|assistant)|i(?:'|’)?m sorry,? but|here (?:are|is) (?:some|a few|the|another)|"
    r"example \d|option \d|sure[,!]|certainly[,!]|\[[^\]]*\]|https?:)",
    re.IGNORECASE,
)


@dataclass
class PromptedWriter:
    """A causal model that continues lists of sentences.

    rows         continuations side by side
    tokens       tokens of each
    temperature  of the draw
    """

    model: CausalModel
    rows: int = 16
    tokens: int = 64
    temperature: float = 1.0

    @classmethod
    def of(cls, name: str, *, rows: int = 16, tokens: int = 64, temperature: float = 1.0) -> PromptedWriter:
        model = load_causal(name, "writing sentences")
        model.provenance()  # refuses a model that may repeat private text
        return cls(model, rows, tokens, temperature)

    @property
    def name(self) -> str:
        return self.model.name

    @property
    def source(self) -> str:
        """The line of an attribution and of a card that names the model."""
        return self.model.source

    def like(self, examples: Sequence[str], label: str, seed: int, others: Sequence[tuple[str, str]] = ()) -> list[str]:
        """New sentences like the examples, which stand under a label with a public name.

        others   other labels, each with a sentence of it: they show the model that the name of a label says what its
                 sentences are about. Without them, or where the name says nothing, a list of sentences is continued
        """
        named = spoken_label(label)
        if named and others:
            shown = [*others, *((label, example) for example in examples)]
            lines = "".join(f"{spoken_label(name) or name}: {sentence}\n" for name, sentence in shown)
            known = {sentence.casefold() for _, sentence in shown}
            written = [
                line
                for text in self.continuations(f"{SUBJECTS_TITLE}\n\n{lines}{named}:", seed)
                for line in lines_about(text, named)
            ]
            return [line for line in dict.fromkeys(written) if line.casefold() not in known]
        title = f"Different sentences about {named}" if named else "Different sentences of one kind"
        items = "".join(f"{ITEM} {example}\n" for example in examples)
        return self.write(f"{title}:\n{items}{ITEM}", seed, without=examples)

    def requested(self, request: str, seed: int) -> list[str]:
        """The beginnings of answers to a request for one sentence, each begun with a quotation mark; a model without a
        chat template reads the request as it stands."""
        if self.model.tokenizer.chat_template:
            message = [{"role": "user", "content": request}]
            chat = self.model.tokenizer.apply_chat_template(message, tokenize=False, add_generation_prompt=True)
            return self.continuations(f'{chat}"', seed)
        return self.continuations(f'{request}\n"', seed)

    def write(self, prompt: str, seed: int, *, without: Sequence[str] = ()) -> list[str]:
        """The new items of a list that begins with the prompt; none of `without`."""
        known = {example.casefold() for example in without}
        items = [item for text in self.continuations(prompt, seed) for item in finished_items(text)]
        return [item for item in dict.fromkeys(items) if item.casefold() not in known]

    def continuations(self, prompt: str, seed: int) -> list[str]:
        """The texts that the model writes after a prompt, once for each row; the prompt itself is read once."""
        torch = self.model.torch
        tokens = self.model.plain(prompt)
        self.model.check_room(len(tokens) + self.tokens + 1, "a prompt with what is written after it")
        generator = torch.Generator().manual_seed(seed)
        with torch.inference_mode():
            past, last = None, self.model._tensor([tokens])
            written = []
            for _ in range(self.tokens):
                output = self._network(input_ids=last, past_key_values=past, use_cache=True)
                if past is None:
                    output.past_key_values.batch_repeat_interleave(self.rows)
                    output.logits = output.logits[:, -1:].repeat(self.rows, 1, 1)
                past, last = output.past_key_values, self._drawn(output.logits[:, -1].float(), generator)
                written.append(last)
        return [self.model.text(row) for row in torch.cat(written, dim=1).tolist()]

    def _drawn(self, logits: Any, generator: Any) -> Any:
        """One token for each row, drawn from the likeliest ones; never the end. It is drawn on the processor, so that
        a seed draws the same from the same numbers on every device."""
        place, logits = logits.device, logits.cpu()
        logits[:, self._forbidden] = float("-inf")
        kept, places = logits.topk(min(TOP, logits.shape[1]), dim=1)
        drawn = (kept / self.temperature).softmax(dim=1).multinomial(1, generator=generator)
        return places.gather(1, drawn).to(place)

    @cached_property
    def _forbidden(self) -> list[int]:
        """Tokens that are never written: the end, and the special ones."""
        allowed = set(self.model.support.tolist()) - {self.model.end}
        outputs = int(self.model.model.get_output_embeddings().weight.shape[0])
        return [token for token in range(outputs) if token not in allowed]

    @cached_property
    def _network(self) -> Any:
        """The model itself, or a copy of half the precision where the processor is made for that: which of two equal
        words is drawn does not matter here."""
        torch = self.model.torch
        fast = self.model.device.type == "cpu" and getattr(torch.cpu, "_is_avx512_bf16_supported", bool)()
        if not fast:
            return self.model.model
        network = copy.deepcopy(self.model.model).to(torch.bfloat16)
        use_grouped_attention(network)
        return network


def finished_items(text: str) -> list[str]:
    """The items of a list that are finished and look like sentences; the last line may have been cut off.

    >>> finished_items(" I lost my card.\\n- Where is the next bank?\\n- How do I")
    ['I lost my card.', 'Where is the next bank?']
    """
    lines = text.split("\n")[:-1]
    return [item for item in (cleaned_item(line) for line in lines) if is_sentence(item)]


def lines_about(text: str, name: str) -> list[str]:
    """The sentences about one subject in a list of "subject: sentence" that goes on after its name; the last line may
    have been cut off.

    >>> lines_about(" Where is my card?\\nfees: Why do I pay?\\ncard: It has not come.\\ncard: I have", "card")
    ['Where is my card?', 'It has not come.']
    """
    *finished, last = text.split("\n")
    lines = [*finished, last] if last.rstrip().endswith((".", "!", "?")) else finished
    parts = [line if place == 0 else line[len(name) + 1 :] for place, line in enumerate(lines)
             if place == 0 or line.lower().startswith(f"{name}:")]  # fmt: skip
    return [item for item in map(cleaned_item, parts) if is_sentence(item)]


def cleaned_item(line: str) -> str:
    """A line without the mark of its item, quotes and spaces around it."""
    plain = " ".join(line.split())
    while (shorter := _ITEM_MARK.sub("", plain).strip(_QUOTES)) != plain:
        plain = shorter
    return plain


def is_sentence(text: str) -> bool:
    """Whether a text looks like one sentence: by its length, its letters, and no word pair that repeats."""
    words = text.split()
    if not FEWEST_WORDS <= len(words) <= MOST_WORDS or len(text) > MOST_CHARACTERS or text.endswith(":"):
        return False
    letters = sum(character.isalpha() or character.isspace() for character in text)
    pairs = list(pairwise(text.lower().split()))
    return letters >= 0.8 * len(text) and len(set(pairs)) == len(pairs) and not _ABOUT_ITSELF.search(text)
