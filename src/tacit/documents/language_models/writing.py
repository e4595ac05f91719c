"""Sentences written by a public causal model after a public prompt: a list that goes on.

The model is shown the beginning of a list, with one item per line, and continues it: many continuations of one prompt
side by side, whose cache of the prompt is computed once. No row stops early; when an item ends, the next one begins, so
nothing of a batch is wasted. Items that are not finished, and what plainly is no sentence, are left out by fixed rules.

Nothing private goes in here: prompts are public, or made of what was released.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from tacit.arrays import Floats, Ids
from tacit.documents.language_models.generators import CausalModel
from tacit.documents.language_models.loading import load_generator
from tacit.documents.language_models.models import Frame
from tacit.errors import BadInputError
from tacit.noise.source import public_generator

TOP = 60
"""Only so many of the likeliest tokens are drawn from: the tail of a small model is noise."""
FEWEST_WORDS, MOST_WORDS = 3, 40
MOST_CHARACTERS = 300
ITEM = "-"

_ITEM_MARK = re.compile(r"^(?:[-*•–]|\(?\d{1,3}[.):]|[A-Za-z]\))\s*")
_QUOTES = "\"'“”‘’*_ "
_ABOUT_ITSELF = re.compile(
    r"\b(?:as an? (?:ai|language model|assistant)|i(?:'|’)?m sorry,? but|here (?:are|is) (?:some|a few|the|another)|"
    r"example \d|option \d|sure[,!]|certainly[,!]|\[[^\]]*\]|https?:)",
    re.IGNORECASE,
)


@dataclass(frozen=True)
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
        model = load_generator(name)
        if not isinstance(model, CausalModel):
            raise BadInputError(
                "wrong-kind-of-writer",
                "{name} is a {kind} model, and writing sentences needs a causal one: give another model",
                name=name, kind=model.kind,
            )  # fmt: skip
        model.provenance()  # refuses a model that may repeat private text
        return cls(model, rows, tokens, temperature)

    @property
    def name(self) -> str:
        return self.model.name

    @property
    def source(self) -> str:
        """The line of an attribution and of a card that names the model."""
        return self.model.source

    def like(self, examples: Sequence[str], label: str, seed: int) -> list[str]:
        """New sentences like the examples, which stand under a label with a public name."""
        named = spoken_label(label)
        title = f"Different sentences about {named}" if named else "Different sentences of one kind"
        items = "".join(f"{ITEM} {example}\n" for example in examples)
        return self.write(f"{title}:\n{items}{ITEM}", seed, without=examples)

    def about(self, subject: str, template: str, seed: int) -> list[str]:
        """Sentences about a public subject, by a template that says where it goes."""
        request = template.format(about=subject)
        if self.model.tokenizer.chat_template:
            message = [{"role": "user", "content": request}]
            prompt = self.model.tokenizer.apply_chat_template(message, tokenize=False, add_generation_prompt=True)
            return self.write(f"{prompt}{ITEM}", seed)
        return self.write(f"{request}\n{ITEM}", seed)

    def write(self, prompt: str, seed: int, *, without: Sequence[str] = ()) -> list[str]:
        """The new items of a list that begins with the prompt; none of `without`."""
        tokens = self.model.plain(prompt)
        self.model.check_room(len(tokens) + self.tokens + 1, "a prompt with what is written after it")
        generator = public_generator(seed)
        running, scores = self.model.begin_blank(self.rows, Frame(tokens[:-1], tokens[-1:]), 1)
        written: list[Ids] = []
        for step in range(self.tokens):
            drawn = self._drawn(scores, generator)
            written.append(drawn)
            if step + 1 < self.tokens:
                scores = self.model.extend(running, drawn)
        rows = np.stack(written, axis=1)
        known = {example.casefold() for example in without}
        items = [item for row in rows for item in finished_items(self.model.text(row.tolist()))]
        return [item for item in dict.fromkeys(items) if item.casefold() not in known]

    def _drawn(self, scores: Floats, generator: np.random.Generator) -> Ids:
        """One token for each row, drawn from the likeliest ones; never the end."""
        support = self.model.support
        if self.model.end is not None:
            scores[:, support == self.model.end] = -np.inf
        top = np.argpartition(-scores, TOP, axis=1)[:, :TOP]
        kept = np.take_along_axis(scores, top, axis=1) / self.temperature
        noisy = kept + generator.gumbel(size=kept.shape)
        return np.asarray(support[top[np.arange(len(top)), noisy.argmax(axis=1)]])


def finished_items(text: str) -> list[str]:
    """The items of a list that are finished and look like sentences; the last line may have been cut off.

    >>> finished_items(" I lost my card.\\n- Where is the next bank?\\n- How do I")
    ['I lost my card.', 'Where is the next bank?']
    """
    lines = text.split("\n")[:-1]
    return [item for item in (cleaned_item(line) for line in lines) if is_sentence(item)]


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


def spoken_label(label: str) -> str:
    """A label as words; nothing for one that says nothing, such as a number.

    >>> spoken_label("report_lost_card"), spoken_label("PlayMusic"), spoken_label("topic 12"), spoken_label("3")
    ('report lost card', 'play music', '', '')
    """
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", label)
    words = [word.lower() for word in re.findall(r"[^\W\d_]+", spaced)]
    return "" if words in ([], ["topic"]) or max(map(len, words)) < 3 else " ".join(words)
