"""Public prompts after which a language model writes public sentences.

A prompt shows the model a heading, a few sentences with what they are about, and a new subject:

    Messages of customers to a bank.
    About a fee: Why was I charged two dollars for a withdrawal?
    About the app: The app closes as soon as I log in.
    About a lost card:

What it writes goes on in the same form, so the lines after the first are used as well. Without examples the model is
asked for one sentence in plain words. Prompts hold nothing private: they are written by people, or made of names of
labels, which are public.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from tacit.noise.source import public_generator

SHOWN_EXAMPLES = 4
FEWEST_WORDS, MOST_WORDS = 3, 40
_LINE = re.compile(r"About [^:]{1,80}: *(.*)")
_SENTENCE_END = re.compile(r"(?<=[.!?])[\"”’]*(?:\s|$)")
_QUOTES = "\"'“”‘’*_- "
_ABOUT_ITSELF = re.compile(
    r"\b(?:as an? (?:ai|language model)|i(?:'|’)?m sorry,? but i|here (?:are|is|'s) (?:some|a few|the|another|a)\b|"
    r"dear \w+|subject:|https?:|www\.)|[\[\]{}<>|\\#=@]|\.\.\.$|About an? ",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class PromptKind:
    """Sentences of one kind.

    title      what they are
    subjects   what they may be about
    examples   (what it is about, sentence), in the style that is wanted; they may be missing
    """

    title: str
    subjects: tuple[str, ...] = ()
    examples: tuple[tuple[str, str], ...] = ()

    def to_dict(self) -> dict[str, object]:
        return {
            "title": self.title,
            "subjects": list(self.subjects),
            "examples": [list(each) for each in self.examples],
        }


@dataclass(frozen=True)
class Prompt:
    """A text that a model continues, and whether it is a request (to be answered) or the beginning of a list."""

    text: str
    is_request: bool


def prompts_in_turn(kinds: Sequence[PromptKind], seed: int) -> Iterator[Prompt]:
    """Prompts without end: every subject of every kind once, in a public random order, again with other examples."""
    pairs = [(kind, subject) for kind in kinds for subject in kind.subjects or ("",)]
    generator = public_generator(seed)
    while True:
        for place in generator.permutation(len(pairs)).tolist():
            kind, subject = pairs[place]
            order = generator.permutation(len(kind.examples))[:SHOWN_EXAMPLES].tolist()
            yield prompt_of(kind, subject, [kind.examples[number] for number in order])


def prompt_of(kind: PromptKind, subject: str, examples: Sequence[tuple[str, str]]) -> Prompt:
    """The prompt of one kind for one subject, which may be empty."""
    if examples:
        lines = "".join(f"About {about}: {sentence}\n" for about, sentence in examples)
        return Prompt(f"{kind.title}.\n{lines}About {subject or examples[0][0]}:", is_request=False)
    about = f" Subject: {subject}." if subject else ""
    return Prompt(f"Write one short sentence of this kind: {kind.title}.{about}", is_request=True)


def sentences_in(continuation: str, prompt: Prompt) -> list[str]:
    """The finished sentences of what a model wrote after a prompt, cleaned by fixed rules.

    >>> list_prompt = Prompt("Messages.\\nAbout a card:", is_request=False)
    >>> sentences_in(" i lost my card\\nAbout a fee: Why do I pay two dollars?\\nAbout the", list_prompt)
    ['i lost my card', 'Why do I pay two dollars?']
    """
    if prompt.is_request:
        first = continuation.replace("“", '"').replace("”", '"').strip().split("\n")[0].split('"')[0]
        end = _SENTENCE_END.search(first)
        parts = [] if end is None else [first[: end.start()]]
    else:
        first, *others = continuation.split("\n")[:-1] or [""]
        parts = [first, *(match[1] for line in others if (match := _LINE.fullmatch(line.strip())))]
    return [sentence for part in parts if is_usable(sentence := " ".join(part.split()).strip(_QUOTES))]


def is_usable(text: str) -> bool:
    """Whether a text looks like one sentence of a person: by its length, its letters, and no pair of words twice."""
    words = text.lower().split()
    if not FEWEST_WORDS <= len(words) <= MOST_WORDS or text.endswith(":") or _ABOUT_ITSELF.search(text):
        return False
    letters = sum(character.isalpha() or character.isspace() for character in text)
    pairs = list(pairwise(words))
    return letters >= 0.8 * len(text) and len(set(pairs)) == len(pairs)
