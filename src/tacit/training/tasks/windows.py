"""The windows in which a question and its context are read: the question, cut to half of the length where it is longer,
and as much of the context as fits beside it, neighboring windows sharing some of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tacit.errors import BadParameterError
from tacit.training.tasks.base import Encoded

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

USUAL_STRIDE = 4
"""Neighboring windows share one in so many pieces of the length, unless a stride is given."""


def check_stride(length: int, stride: int) -> None:
    """Refuse windows that hardly move on."""
    if not 0 <= stride <= length // 2:
        raise BadParameterError(
            "stride-too-long",
            "neighboring windows of {length} word pieces share at most {most} of them, not {stride}: lower "
            "{option.stride}, or give a larger {option.length}",
            length=length,
            most=length // 2,
            stride=stride,
        )


def windows_of(
    question: str, context: str, tokenizer: PreTrainedTokenizerBase, *, length: int, stride: int = 0
) -> list[Encoded]:
    """The record as it is read: its context at once, or in windows of at most `length` pieces that share `stride` (0: a
    quarter of the length); of them less where a long question leaves little room.

    inside        which pieces are of the context           begins, ends   the characters of a piece
    question_cut  whether the question is not there whole
    """
    marks = tokenizer.num_special_tokens_to_add(pair=True)
    most = min(length // 2, length - marks - 1)
    if most < 1:
        raise BadParameterError(
            "length-too-short",
            "a length of {length} leaves no room for a question and its context: give at least {least}",
            length=length,
            least=marks + 2,
        )
    asked_whole = question
    question, pieces = _cut(question, tokenizer, most)
    room = length - marks - pieces
    encoding = tokenizer(
        question, context, truncation="only_second", max_length=length,
        stride=min(stride or length // USUAL_STRIDE, max(0, room // 2)), return_overflowing_tokens=True,
        return_offsets_mapping=True,
    )  # fmt: skip
    windows = []
    for number, offsets in enumerate(encoding["offset_mapping"]):
        encoded: Encoded = {name: list(encoding[name][number]) for name in ("input_ids", "attention_mask")}
        if "token_type_ids" in encoding:
            encoded["token_type_ids"] = list(encoding["token_type_ids"][number])
        encoded["inside"] = [int(place == 1) for place in encoding.sequence_ids(number)]
        encoded["begins"] = [begin for begin, _ in offsets]
        encoded["ends"] = [end for _, end in offsets]
        encoded["question_cut"] = int(question != asked_whole)
        windows.append(encoded)
    return windows


def _cut(question: str, tokenizer: PreTrainedTokenizerBase, most: int) -> tuple[str, int]:
    """The question, or its beginning of at most so many pieces, and how many it has. What is cut inside of a word may
    come apart into more pieces than before, so it is counted anew; each time at least a character goes."""
    while True:
        pieces = tokenizer(question, add_special_tokens=False, return_offsets_mapping=True)["offset_mapping"]
        if len(pieces) <= most or not question:
            return question, len(pieces)
        question = question[: min(pieces[most - 1][1], len(question) - 1)]


def pieces_of(window: Encoded, first: int, last: int) -> tuple[int, int] | None:
    """The first and last piece of the window that hold some of these characters of the context."""
    marks = enumerate(zip(window["inside"], window["begins"], window["ends"], strict=True))
    pieces = [i for i, (inside, begin, end) in marks if inside and begin < last and end > first]
    return (pieces[0], pieces[-1]) if pieces else None


def is_whole(window: Encoded, target: tuple[int, int], first: int, answer: str) -> bool:
    """Whether these pieces hold all of an answer that begins at this character, white space around it aside."""
    start, end = target
    begin = first + len(answer) - len(answer.lstrip())
    stop = first + len(answer.rstrip())
    return bool(window["begins"][start] <= begin and window["ends"][end] >= stop)


def shown(window: Encoded, target: tuple[int, int] | None) -> tuple[int, int]:
    """How well a window shows an answer: how much of it, then how far from the ends of the context it stands."""
    if target is None:
        return 0, 0
    start, end = target
    context = [i for i, inside in enumerate(window["inside"]) if inside]
    return end - start + 1, min(start - context[0], context[-1] - end)
