"""The base of tasks: how a row becomes numbers, what the loss of *one example* is, and how predictions are read off.

The loss of an example is an average over its own tokens, never over the tokens of the batch: otherwise a long example
would change the share of every other one, and no clipping bound would hold.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
import torch
from torch import Tensor, nn

from tacit.errors import BadInputError
from tacit.noise.source import public_generator
from tacit.parameters import declared_parameters
from tacit.training.gradients import UNITS, Batch, Filled

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

Row = Mapping[str, str]
"""The cells of one record, by role: text, pair, label, tags, question, context, answer, source, target."""

Encoded = dict[str, Any]
"""The numbers of one record: lists of ids, or single numbers."""

IGNORED = -100


class Generates(Protocol):
    """A model of transformers that writes."""

    def generate(self, **options: object) -> Tensor:
        """The ids of each text, one row each."""


@dataclass
class Task(ABC):
    """A task that a model learns from records. Fields that the task of a plug-in declares with
    `tacit.parameters.parameter` are options of its command, and are saved with the model.

    length: the most word pieces of a record that count; labels: learned from the training rows unless given;
    columns: what the columns of the training file were called, by role, so that a saved model finds them again.

    How records are filled up to one length is chosen before a private run (`layouts`) and saved with the model. side:
    "left" or "right"; "" as the tokenizer says; constant: every record to `length`, however long the others are."""

    length: int = 128
    labels: list[str] = field(default_factory=list)
    columns: dict[str, str] = field(default_factory=dict)
    side: str = field(default="", kw_only=True)
    constant: bool = field(default=False, kw_only=True)

    name: ClassVar[str]
    help: ClassVar[str]
    roles: ClassVar[tuple[str, ...]]
    model_class: ClassVar[str]
    target: ClassVar[str] = ""
    target_is_label: ClassVar[bool] = False
    """Whether the target is a label, and no text that the model learns to write."""
    optional_roles: ClassVar[tuple[str, ...]] = ()
    """Roles whose column may be missing."""
    scored_as: ClassVar[str] = "exact"
    """The task of Tacit whose measures score its predictions, or "exact": the share that equals the truth."""
    fixed_inputs: ClassVar[bool] = True
    """Whether a record is read in the same form in every step."""
    read_once: ClassVar[bool] = True
    """Whether a prediction needs nothing of a record but its encoding."""
    places: ClassVar[tuple[str, ...]] = ()
    """Numbers of a record that are positions in its pieces: they move along when it is filled up on the left."""

    # To write in a task ---------------------------------------------------------------------------------------

    @abstractmethod
    def encode(self, row: Row, tokenizer: PreTrainedTokenizerBase, *, train: bool) -> Encoded:
        """The numbers of a record; with `train`, also those of its target."""

    @abstractmethod
    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        """One loss per example, (B,)."""

    @abstractmethod
    def predict(
        self, model: nn.Module, batch: Batch, tokenizer: PreTrainedTokenizerBase, rows: Sequence[Row]
    ) -> list[str]:
        """A prediction per record, written like the target column."""

    def learn(self, rows: Sequence[Row]) -> None:
        """Learn what must be known of the training rows before the model is built: the names of the labels."""
        self.check_rows(rows)

    def model_options(self) -> dict[str, Any]:
        return {}

    def scores(self, truth: Sequence[str], predicted: Sequence[str]) -> dict[str, float]:
        """The measures of a task that has its own, the most important one first; without any, those of `scored_as`."""
        return {}

    def remarks(self, rows: Sequence[Row], encoded: Sequence[Encoded]) -> list[str]:
        """Sentences for the person who trains about what is lost of these rows. They are private, like the rows: for
        the terminal, never for a card."""
        return []

    @property
    def most_rows(self) -> int:
        """How many rows a record is learned from at most: a public number. Their gradients are added up before they are
        clipped, so it is one record all the same."""
        return 1

    def encode_rows(self, row: Row, tokenizer: PreTrainedTokenizerBase) -> list[Encoded]:
        """The rows that are learned from, `most_rows` at most, with their targets; the loss of the record is the sum of
        theirs."""
        return [self.encode(row, tokenizer, train=True)]

    def is_right(self, predicted: str, row: Row) -> bool:
        """Whether a prediction is what the target column holds."""
        return predicted == row[self.target]

    # Shared ---------------------------------------------------------------------------------------------------

    def collate(self, examples: Sequence[Encoded], tokenizer: PreTrainedTokenizerBase) -> Batch:
        """Examples as tensors, lists filled up to the longest, or all of them to one public length."""
        batch: dict[str, Tensor] = {}
        for name in examples[0]:
            values = [example[name] for example in examples]
            if not isinstance(values[0], list):
                if name in self.places:
                    values = [
                        place + self._before(example, examples, tokenizer)
                        for place, example in zip(values, examples, strict=True)
                    ]
                kind = torch.float32 if isinstance(values[0], float) else torch.long
                batch[name] = torch.tensor(values, dtype=kind)
                continue
            width = self._width(values)
            padding = self.padding(name, tokenizer)
            left = self.side_of(name, tokenizer) == "left"
            rows = []
            for value in values:
                filling = [padding] * (width - len(value))
                rows.append([*filling, *value] if left else [*value, *filling])
            batch[name] = torch.tensor(rows)
        return batch

    def _width(self, values: Sequence[Sequence[int]]) -> int:
        longest = max(1, *(len(value) for value in values))
        if self.constant and longest > self.length:
            raise BadInputError(
                "record-too-long",
                "a record has more than the {length} word pieces that all are filled up to",
                length=self.length,
            )
        return self.length if self.constant else longest

    def _before(self, example: Encoded, examples: Sequence[Encoded], tokenizer: PreTrainedTokenizerBase) -> int:
        """How much filling stands before the pieces of an example."""
        if self.side_of("input_ids", tokenizer) != "left":
            return 0
        return self._width([other["input_ids"] for other in examples]) - len(example["input_ids"])

    def side_of(self, name: str, tokenizer: PreTrainedTokenizerBase) -> str:
        """Where a list is filled up: on the side that was chosen, or that the tokenizer names."""
        return self.side or str(getattr(tokenizer, "padding_side", "right"))

    def padding(self, name: str, tokenizer: PreTrainedTokenizerBase) -> int:
        if name == "input_ids":
            return int(tokenizer.pad_token_id or 0)
        if name == "token_type_ids":
            return int(getattr(tokenizer, "pad_token_type_id", 0) or 0)
        return IGNORED if name in ("labels", "targets") else 0

    def layouts(self, tokenizer: PreTrainedTokenizerBase) -> list[tuple[str, bool]]:
        """Ways to fill records up, the best one first: (side, constant). Where the gradient of a record does not depend
        on its filling, both sides give what the record alone would give; one length for all is always independent of
        other records, and slower."""
        own = str(getattr(tokenizer, "padding_side", "right"))
        other = "right" if own == "left" else "left"
        return [(own, False), (other, False), (own, True)]

    def probes(self, tokenizer: PreTrainedTokenizerBase) -> Sequence[Batch]:
        """Made-up batches of 3 and 5 rows for checking a model: nothing of the private data is needed for that. Where
        records may have several rows, two rows make a record."""
        generator = public_generator(7)
        batches = []
        for size in (3, 5):
            batch = self.collate([self.probe(generator, tokenizer) for _ in range(size)], tokenizer)
            units = {UNITS: torch.arange(size) // 2} if self.most_rows > 1 else {}
            batches.append({**batch, **units})
        return batches

    def filled(self, tokenizer: PreTrainedTokenizerBase) -> list[Filled]:
        """Made-up records, a short and a long one, each alone and filled up to several lengths, for checking that the
        filling changes nothing. With one length for all there is nothing to compare: it is part of every record."""
        if self.constant:
            return []
        generator = public_generator(8)
        made: list[Filled] = []
        for _ in range(20):
            record = self.probe(generator, tokenizer)
            if made:
                # Some models read long texts in blocks: one that takes more than a block has to be tried as well.
                record = _lengthened(record, 3 * self.length // 4)
            longest = max(len(value) for value in record.values() if isinstance(value, list))
            widths = sorted({longest + 1, (longest + self.length + 1) // 2, self.length})
            wider = tuple(
                replace(self, constant=True, length=width).collate([record], tokenizer)
                for width in widths
                if longest < width <= self.length
            )
            if wider:
                made.append(Filled(self.collate([record], tokenizer), wider))
            if len(made) == 2:
                break
        return made

    @abstractmethod
    def probe(self, generator: np.random.Generator, tokenizer: PreTrainedTokenizerBase) -> Encoded:
        """A made-up record."""

    def settings(self) -> dict[str, object]:
        """The settings that are saved with a model, to use it again."""
        return {
            "task": self.name, "length": self.length, "labels": list(self.labels), "columns": dict(self.columns),
            "side": self.side, "constant": self.constant,
            **{name: getattr(self, name) for name in declared_parameters(type(self))},
        }  # fmt: skip

    def check_rows(self, rows: Sequence[Row]) -> None:
        if not rows:
            raise BadInputError("no-rows", "there are no rows to train on")


def check_mask(tokenizer: PreTrainedTokenizerBase) -> None:
    """Refuse a tokenizer that cannot hide a word."""
    if tokenizer.mask_token_id is None:
        raise BadInputError("no-mask-token", "this tokenizer has no mask: a masked language model needs one")


def _lengthened(record: Encoded, length: int) -> Encoded:
    """The record with its lists repeated, each to about so many pieces; those that are longer stay."""
    return {
        name: (value * (1 + length // max(1, len(value))))[: max(length, len(value))]
        if isinstance(value, list)
        else value
        for name, value in record.items()
    }


def label_options(labels: Sequence[str]) -> dict[str, Any]:
    """The names of the classes, as a configuration of transformers takes them."""
    return {
        "num_labels": len(labels),
        "id2label": dict(enumerate(labels)),
        "label2id": {label: i for i, label in enumerate(labels)},
    }


def model_inputs(batch: Batch) -> dict[str, Tensor]:
    """The arguments of every encoder: word pieces, or what its frozen part made of them (training/frozen.py)."""
    first = "inputs_embeds" if "inputs_embeds" in batch else "input_ids"
    names = (first, "attention_mask", "token_type_ids")
    return {name: batch[name] for name in names if name in batch}


def encode_text(tokenizer: PreTrainedTokenizerBase, length: int, text: str, pair: str | None = None) -> Encoded:
    encoding = (
        tokenizer(text, pair, truncation=True, max_length=length)
        if pair is not None
        else tokenizer(text, truncation=True, max_length=length)
    )
    encoded: Encoded = {"input_ids": list(encoding["input_ids"]), "attention_mask": list(encoding["attention_mask"])}
    if "token_type_ids" in encoding:
        encoded["token_type_ids"] = list(encoding["token_type_ids"])
    if not encoded["input_ids"]:
        # An empty text is a record like any other.
        encoded = {name: [0 if name != "attention_mask" else 1] for name in encoded}
    return encoded


def random_ids(generator: np.random.Generator, tokenizer: PreTrainedTokenizerBase, longest: int) -> list[int]:
    """Half of them as long as can be: a recurrent model must be checked with all the steps it will take."""
    size = longest if generator.random() < 0.5 else int(generator.integers(2, max(3, longest)))
    return [int(i) for i in generator.integers(0, len(tokenizer), size)]


def random_inputs(generator: np.random.Generator, tokenizer: PreTrainedTokenizerBase, longest: int) -> Encoded:
    ids = random_ids(generator, tokenizer, min(longest, 17))
    encoded: Encoded = {"input_ids": ids, "attention_mask": [1] * len(ids)}
    if "token_type_ids" in getattr(tokenizer, "model_input_names", ()):
        encoded["token_type_ids"] = [0] * len(ids)
    return encoded


def mean_over_tokens(losses: Tensor, counted: Tensor) -> Tensor:
    """(B, T) to (B,): the mean over the counted tokens of each example, 0 where there are none."""
    weights = counted.to(losses.dtype)
    return (losses * weights).sum(1) / weights.sum(1).clamp_min(1.0)


def cross_entropy_per_token(logits: Tensor, targets: Tensor) -> Tensor:
    """(B, T, classes) and (B, T) to (B,): mean over the tokens that have a target."""
    losses = nn.functional.cross_entropy(logits.transpose(1, 2), targets, ignore_index=IGNORED, reduction="none")
    return mean_over_tokens(losses, targets != IGNORED)
