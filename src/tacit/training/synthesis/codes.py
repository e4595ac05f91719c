"""Control codes: the labels of a row, written out before its text (Keskar et al. 2019; Yue et al. 2023).

    intent: PlayMusic | text: play something by duke ellington

The combinations are *all* those of the given label names, whether they occur or not: which ones occur is private.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from tacit.errors import BadInputError, BadParameterError
from tacit.training.tasks import CausalLanguage, Encoded, Row
from tacit.training.tasks.base import IGNORED

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

TEXT_CODE = "text:"
BETWEEN = " | "
MOST_COMBINATIONS = 10_000

Combination = tuple[str, ...]
"""A value for each label column."""


@dataclass(frozen=True)
class ControlCodes:
    """The label columns and the public names of their values. `given`: named by the user, not read off the data."""

    columns: tuple[str, ...] = ()
    values: tuple[tuple[str, ...], ...] = ()
    given: bool = False

    def __post_init__(self) -> None:
        if len(set(self.columns)) < len(self.columns):
            raise BadParameterError("column-twice", "a label column is named twice: name each one once")
        for column, names in zip(self.columns, self.values, strict=True):
            if not names:
                raise BadParameterError(
                    "column-without-values",
                    "the label column '{column}' has no values: give at least one",
                    column=column,
                )
        if self.size > MOST_COMBINATIONS:
            raise BadParameterError(
                "too-many-label-combinations",
                "the labels have {combinations:,} combinations, too many to count with noise: name fewer label columns",
                combinations=self.size,
            )

    @property
    def size(self) -> int:
        product = 1
        for names in self.values:
            product *= len(names)
        return product

    @property
    def combinations(self) -> list[Combination]:
        """All of them, in a fixed order; one empty combination where there are no labels."""
        return list(itertools.product(*self.values))

    def of(self, row: Row) -> Combination:
        return tuple(row[column] for column in self.columns)

    def prompt(self, combination: Combination) -> str:
        """The control codes that stand before the text."""
        codes = [f"{column}: {value}" for column, value in zip(self.columns, combination, strict=True)]
        return BETWEEN.join([*codes, TEXT_CODE])

    def markers(self) -> tuple[str, ...]:
        """Strings that a generated text must not contain: each would be a control code that slipped into it."""
        return (BETWEEN + TEXT_CODE, *(f"{column}: {name}" for column, names in self.pairs() for name in names))

    def pairs(self) -> list[tuple[str, tuple[str, ...]]]:
        return list(zip(self.columns, self.values, strict=True))


def learn_codes(
    rows: Sequence[Row], columns: Sequence[str], public_values: Mapping[str, Sequence[str]] | None = None
) -> ControlCodes:
    """Codes for these columns: names from the user, who must name all that occur, or read off the rows and thereby
    declared public."""
    if "text" in columns:
        raise BadParameterError("label-column-called-text", "a label column cannot be called 'text' here: rename it")
    values = []
    for column in columns:
        observed = sorted({row[column] for row in rows})
        named = list(dict.fromkeys((public_values or {}).get(column, ())))
        if named and (unknown := [name for name in observed if name not in named]):
            raise BadInputError(
                "label-not-listed",
                "{unknown} of the values in the label column '{column}' are not among the {labels} given names: "
                "name all that can occur",
                unknown=len(unknown),
                column=column,
                labels=len(named),
            )
        values.append(tuple(named or observed))
    all_given = bool(columns) and all((public_values or {}).get(column) for column in columns)
    return ControlCodes(tuple(columns), tuple(values), all_given)


@dataclass
class ControlledWriting(CausalLanguage):
    """The text of a row after its control codes. The loss counts the text and its end; with `count_codes` the codes
    too, as if the model had to guess the labels."""

    codes: ControlCodes = field(default_factory=ControlCodes)
    count_codes: bool = False

    name: ClassVar[str] = "write"

    def __post_init__(self) -> None:
        self._known: tuple[Any, dict[Combination, list[int]]] = (None, {})

    def settings(self) -> dict[str, object]:
        codes = {"columns": list(self.codes.columns), "values": [list(names) for names in self.codes.values]}
        return {**super().settings(), "codes": codes, "count_codes": self.count_codes}

    def prompt_ids(self, combination: Combination, tokenizer: PreTrainedTokenizerBase) -> list[int]:
        """The word pieces of a prompt, worked out once for each combination."""
        if self._known[0] is not tokenizer:
            self._known = (tokenizer, {})
        known = self._known[1]
        if combination not in known:
            ids = [int(i) for i in tokenizer(self.codes.prompt(combination), add_special_tokens=False)["input_ids"]]
            known[combination] = [*_beginning(tokenizer), *ids]
        return known[combination]

    def encode(self, row: Row, tokenizer: PreTrainedTokenizerBase, *, train: bool) -> Encoded:
        before = self.prompt_ids(self.codes.of(row), tokenizer)
        # The space makes the first word the piece that it is inside a sentence.
        text = tokenizer(f" {row['text']}", add_special_tokens=False, truncation=True, max_length=self.length)
        ids = [*before, *(int(i) for i in text["input_ids"])][: self.length]
        if tokenizer.eos_token_id is not None and len(ids) < self.length:
            ids.append(int(tokenizer.eos_token_id))
        skipped = 0 if self.count_codes else min(len(before), len(ids))
        return {"input_ids": ids, "attention_mask": [1] * len(ids), "targets": [IGNORED] * skipped + ids[skipped:]}

    def check_length(self, tokenizer: PreTrainedTokenizerBase) -> None:
        """A control code that fills the length leaves nothing to learn."""
        longest = max(len(self.prompt_ids(combination, tokenizer)) for combination in self.codes.combinations)
        if longest + 2 > self.length:
            raise BadParameterError(
                "codes-too-long",
                "the control codes take up to {longest} word pieces of {length}: give a larger {option.length}",
                longest=longest,
                length=self.length,
            )


def _beginning(tokenizer: PreTrainedTokenizerBase) -> list[int]:
    """The token that begins a text, where the tokenizer puts one by itself."""
    first = tokenizer.bos_token_id
    made = tokenizer("a")["input_ids"]
    return [int(first)] if first is not None and made and int(made[0]) == int(first) else []
