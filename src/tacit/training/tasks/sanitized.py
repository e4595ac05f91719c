"""Sanitization-aware pretraining: guess the original word from a rewritten context.

Yue et al., "Differential privacy for text analytics via natural text sanitization" (Findings of ACL 2021), section 4.4:
rewrite *public* text with the mechanism that the users' texts will be rewritten with, mask it as in BERT, and predict
at each mask "its original unsanitized token". A model that was trained so has seen the noise before it meets it in the
texts it is fine-tuned on. The paper warns that such a model is also a better attacker: it has learned to undo noise.
The promise of a mechanism holds against every attacker, this one included.

Alignment. A word mechanism draws for each token alone, so each token of a text is rewritten as a text of its own: which
output belongs to which original is known, whatever the output looks like. Each token is cut into word pieces on its
own too, as it would be between spaces.

Words of several pieces. Whole words are masked. A masked word stands in the input as one mask for each piece of its
*original*, and these pieces are the targets; all other words stand there as the pieces of their rewritten form. Of the
words to guess, 8 of 10 are masked; 1 is replaced by random pieces; 1 shows its rewritten form if that has as many
pieces as the original, and masks otherwise.

Fine-tuning on rewritten texts needs nothing of this: it is ordinary training on what a mechanism has released.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import torch

from tacit.errors import BadInputError, BadParameterError
from tacit.mechanism import Mechanism
from tacit.noise.source import Source, public_generator
from tacit.progress import StepProgress
from tacit.text.tokens import split
from tacit.training.gradients import Batch
from tacit.training.tasks.base import IGNORED, Encoded, Row, Task, check_mask
from tacit.training.tasks.language import MaskedLanguage

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

BETWEEN = "\n"
"""Between the words of a cell: no token has white space in it."""

TOKENS_AT_A_TIME = 50_000


def check_word_level(mechanism: type[Mechanism]) -> None:
    if mechanism.level != "word":
        raise BadParameterError(
            "mechanism-for-documents",
            "'{mechanism}' rewrites whole texts, so no word can be aligned with its original: take a word "
            "mechanism, such as santext",
            mechanism=mechanism.name,
        )


def sanitized_rows(
    texts: Sequence[str],
    mechanism: Mechanism,
    source: Source,
    progress: StepProgress | None = None,
) -> list[dict[str, str]]:
    """Rows of original tokens and what each was rewritten to, token by token. The texts have to be public."""
    check_word_level(type(mechanism))
    mechanism.prepare()
    rows: list[dict[str, str]] = []
    waiting: list[list[str]] = []
    size = 0
    for number, text in enumerate(texts, 1):
        tokens = split(text)
        if tokens:
            waiting.append(tokens)
            size += len(tokens)
        if waiting and (size >= TOKENS_AT_A_TIME or number == len(texts)):
            rows += _rewritten(waiting, mechanism, source)
            waiting, size = [], 0
            if progress is not None:
                progress(number, len(texts))
    if not rows:
        raise BadInputError("no-words", "there are no words in these texts")
    return rows


def _rewritten(texts: list[list[str]], mechanism: Mechanism, source: Source) -> list[dict[str, str]]:
    outputs = iter(mechanism.rewrite_texts([token for tokens in texts for token in tokens], source).texts)
    rows = []
    for tokens in texts:
        # A vocabulary may have words with white space in them, and a mechanism may drop a token.
        shown = [" ".join(next(outputs).split()) for _ in tokens]
        rows.append({"text": BETWEEN.join(tokens), "sanitized": BETWEEN.join(shown)})
    return rows


@dataclass
class SanitizedMasking(MaskedLanguage):
    """Masked language modeling with rewritten contexts and original targets; rows come from `sanitized_rows`.
    `mechanism` names what rewrote them, for users of the model."""

    mechanism: str = ""

    name: ClassVar[str] = "fill-sanitized"
    help: ClassVar[str] = "a masked language model that reads rewritten text and guesses the original words"
    roles: ClassVar[tuple[str, ...]] = ("text", "sanitized")

    _pieces: dict[str, list[int]] = field(default_factory=dict, repr=False, compare=False)

    def settings(self) -> dict[str, object]:
        return {**super().settings(), "mechanism": self.mechanism}

    def learn(self, rows: Sequence[Row]) -> None:
        self.check_rows(rows)
        for number, row in enumerate(rows, 1):
            if row["text"].count(BETWEEN) != row["sanitized"].count(BETWEEN):
                raise BadInputError(
                    "words-do-not-align", "row {row} has more or fewer rewritten words than words", row=number
                )

    def encode(self, row: Row, tokenizer: PreTrainedTokenizerBase, *, train: bool) -> Encoded:
        """Pieces of the original and of the rewritten words, as many words as fit whichever form is shown."""
        room = self.length - sum(map(len, self._marks(tokenizer)))
        original: list[list[int]] = []
        shown: list[list[int]] = []
        for word, other in zip(row["text"].split(BETWEEN), row["sanitized"].split(BETWEEN), strict=True):
            pieces, others = self._cut(word, tokenizer), self._cut(other, tokenizer)
            room -= max(len(pieces), len(others))
            if room < 0:
                break
            original.append(pieces)
            shown.append(others)
        # Runs use the number of input pieces to sort texts by length.
        return {"input_ids": [piece for pieces in shown for piece in pieces], "original": original, "shown": shown}

    @staticmethod
    def _marks(tokenizer: PreTrainedTokenizerBase) -> tuple[list[int], list[int]]:
        """The special pieces that the tokenizer puts before and after a text."""
        whole = list(tokenizer("a")["input_ids"])
        inner = list(tokenizer("a", add_special_tokens=False)["input_ids"])
        start = next(i for i in range(len(whole) + 1) if whole[i : i + len(inner)] == inner)
        return whole[:start], whole[start + len(inner) :]

    def _cut(self, word: str, tokenizer: PreTrainedTokenizerBase) -> list[int]:
        if word not in self._pieces:
            # The space tells tokenizers of the byte kind that a word begins here; others ignore it.
            self._pieces[word] = list(tokenizer(f" {word}", add_special_tokens=False)["input_ids"]) if word else []
        return self._pieces[word]

    def collate(self, examples: Sequence[Encoded], tokenizer: PreTrainedTokenizerBase) -> Batch:
        check_mask(tokenizer)
        # Which words are masked is no secret; torch's state is part of a run.
        generator = public_generator(int(torch.randint(2**62, (1,))))
        made = [e if "targets" in e else self._with_masks(e, tokenizer, generator) for e in examples]
        return Task.collate(self, made, tokenizer)

    def _with_masks(
        self, example: Encoded, tokenizer: PreTrainedTokenizerBase, generator: np.random.Generator
    ) -> Encoded:
        ids: list[int] = []
        targets: list[int] = []
        for original, shown in zip(example["original"], example["shown"], strict=True):
            if not original or generator.random() >= self.share:
                ids += shown
                targets += [IGNORED] * len(shown)
                continue
            kind = generator.random()
            if kind >= 0.9 and len(shown) == len(original):
                ids += shown
            elif 0.8 <= kind < 0.9:
                ids += [int(i) for i in generator.integers(len(tokenizer), size=len(original))]
            else:
                ids += [int(tokenizer.mask_token_id)] * len(original)
            targets += original
        before, after = self._marks(tokenizer)
        whole = [*before, *ids, *after] or [int(tokenizer.mask_token_id)]
        around = [IGNORED] * len(before), [IGNORED] * (len(whole) - len(ids) - len(before))
        encoded: Encoded = {
            "input_ids": whole,
            "attention_mask": [1] * len(whole),
            "targets": [*around[0], *targets, *around[1]],
        }
        if "token_type_ids" in getattr(tokenizer, "model_input_names", ()):
            encoded["token_type_ids"] = [0] * len(whole)
        return encoded
