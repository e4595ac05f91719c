"""Mask token inference: a language model guesses each word from the released words around it.

    for a position j of a released text:  guess = argmax_w P(w | y_1 .. y_(j-1), [MASK], y_(j+1) .. y_n)

and the guess is compared with the *original* word at j (Yue et al. 2021, section 5.3, who report its complement, the
defense rate). A causal model guesses from the left context only. The released word at j itself is hidden, so this
measures what the context gives away; `inversion` measures what the word itself does.

Beside the rate stands the same model's rate on the unmodified text at the same positions (the ceiling) and that of the
best constant guess (the floor). A model guesses one of its own word pieces, so words that it writes in several pieces
are never recovered, with or without privacy.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tacit.auditing.text import scale
from tacit.auditing.text.pairs import TextPairs
from tacit.auditing.text.scale import Success
from tacit.documents.language_models import (
    SMOLLM2,
    CausalModel,
    LanguageModel,
    MaskedModel,
    load_generator,
    load_masked,
)
from tacit.errors import BadInputError
from tacit.noise.source import public_generator
from tacit.progress import StepProgress
from tacit.report import Section, Table
from tacit.text.tokens import join, normalize, split

TOKENS = 600
POSITIONS_PER_ROW = 10
SPREAD = 40
"""The attacked words of a row lie within so many words, so that a causal model reads them in one pass."""

WINDOW = 32
"""How many word pieces at least a model reads before the first of them, and around a masked word on either side."""

BATCH_CELLS = 24_000_000
WORST = 15


@dataclass(frozen=True)
class Position:
    """A token to guess: index of the row, its place there, and the original word."""

    row: int
    place: int
    word: str


@dataclass(frozen=True)
class MaskInference:
    """The success of a language model that guesses words from the context.

    recovered    on the released text; its ceiling is the same model on the original text
    unchanged    share of the attacked words that the release left as they were
    left_out     rows whose numbers of tokens differ, which cannot be attacked position by position
    examples     words recovered from context although the release changed them: row, original, released
    """

    model: str
    kind: str
    recovered: Success
    unchanged: float
    left_out: int
    examples: list[tuple[int, str, str]]


def sample_positions(pairs: TextPairs, tokens: int = TOKENS, seed: int = 0) -> tuple[list[Position], int]:
    """Random positions of random rows whose texts have the same number of tokens, and how many rows do not."""
    generator = public_generator(seed)
    positions: list[Position] = []
    left_out = 0
    for row in generator.permutation(len(pairs)).tolist():
        original = split(pairs.originals[row])
        if not original:
            continue
        if len(original) != len(split(pairs.released[row])):
            left_out += 1
            continue
        if len(positions) < tokens:
            start = int(generator.integers(0, max(1, len(original) - SPREAD + 1)))
            some = start + generator.permutation(min(SPREAD, len(original) - start))[:POSITIONS_PER_ROW]
            positions += [Position(row, int(place), original[int(place)]) for place in np.sort(some)]
    if not positions:
        raise BadInputError(
            "no-row-aligns",
            "no released row has as many words as its original, so single words cannot be guessed from their "
            "context: leave the attack 'mask' out with {option.attacks}",
        )
    return positions[:tokens], left_out


def infer_masked(
    pairs: TextPairs,
    model: str | Path | LanguageModel = SMOLLM2,
    *,
    tokens: int = TOKENS,
    seed: int = 0,
    progress: StepProgress | None = None,
) -> MaskInference:
    """Attack a sample of positions with a masked or a causal language model."""
    loaded = model if isinstance(model, LanguageModel) else load(model)
    positions, left_out = sample_positions(pairs, tokens, seed)
    rows = sorted({position.row for position in positions})
    originals = {row: split(pairs.originals[row]) for row in rows}
    released = {row: split(pairs.released[row]) for row in rows}
    total = 2 * len(positions)
    attacked = guesses(loaded, released, positions, _part(progress, 0, total))
    unmodified = guesses(loaded, originals, positions, _part(progress, len(positions), total))
    words = [position.word for position in positions]
    right = np.array([guess == word for guess, word in zip(attacked, words, strict=True)])
    ceiling = float(np.mean([guess == word for guess, word in zip(unmodified, words, strict=True)]))
    floor = Counter(words).most_common(1)[0][1] / len(words)
    owners = np.array([position.row for position in positions])
    changed = [released[p.row][p.place] != p.word for p in positions]
    examples = [
        (pairs.rows[p.row], p.word, released[p.row][p.place])
        for p, hit, new in zip(positions, right, changed, strict=True)
        if hit and new
    ]
    # The longest words say most.
    examples.sort(key=lambda item: -len(item[1]))
    return MaskInference(
        loaded.name,
        loaded.kind,
        scale.of_trials(right, floor=floor, ceiling=ceiling, rows=owners),
        1.0 - float(np.mean(changed)),
        left_out,
        examples[:WORST],
    )


def load(model: str | Path) -> LanguageModel:
    """A masked or causal language model, from a folder, the hub, or "smollm2"."""
    try:
        return _causal(load_generator(model))
    except BadInputError as error:
        if error.code != "wrong-kind-of-model" or error.fields.get("kind") != MaskedModel.kind:
            raise
    return load_masked(model)


def _causal(model: LanguageModel) -> LanguageModel:
    if not isinstance(model, CausalModel):
        raise BadInputError(
            "wrong-kind-of-model",
            "{model} is a {kind} model: words are guessed from their context by a masked or a causal one",
            model=model.name,
            kind=model.kind,
        )
    return model


def _part(progress: StepProgress | None, done: int, total: int) -> StepProgress | None:
    return None if progress is None else lambda now, _: progress(done + now, total)


# Guessing -----------------------------------------------------------------------------------------------------------


def guesses(
    model: LanguageModel,
    texts: dict[int, list[str]],
    positions: Sequence[Position],
    progress: StepProgress | None = None,
) -> list[str]:
    """The most probable word at each position, hidden there, given the tokens around it."""
    pieces = {row: _pieces(model, tokens) for row, tokens in texts.items()}
    prompts = [_prompt(model, pieces, positions, numbers) for numbers in _together(model, positions)]
    candidates, words = candidate_words(model)
    order = sorted(prompts, key=lambda prompt: len(prompt.ids))
    outputs = int(model.model.get_output_embeddings().weight.shape[0])
    guessed = [""] * len(positions)
    start = done = 0
    while start < len(order):
        longest = len(order[min(start + 31, len(order) - 1)].ids)
        batch = order[start : start + max(1, min(32, BATCH_CELLS // (longest * outputs)))]
        best = _logits(model, batch)[:, candidates].argmax(axis=1)
        numbers = [i for prompt in batch for i in prompt.positions]
        for i, choice in zip(numbers, best.tolist(), strict=True):
            guessed[i] = words[choice]
        start += len(batch)
        done += len(numbers)
        if progress is not None:
            progress(done, len(positions))
    return guessed


@dataclass(frozen=True)
class _Prompt:
    """The input of a model, the outputs at which it guesses, and the positions that these guesses are for."""

    ids: list[int]
    outputs: list[int]
    positions: list[int]


def _together(model: LanguageModel, positions: Sequence[Position]) -> list[list[int]]:
    """Positions that one pass can answer: a causal model guesses every word of a row on its way."""
    if isinstance(model, MaskedModel):
        return [[i] for i in range(len(positions))]
    by_row: dict[int, list[int]] = {}
    for i, position in enumerate(positions):
        by_row.setdefault(position.row, []).append(i)
    return list(by_row.values())


@lru_cache(maxsize=4)
def candidate_words(model: LanguageModel) -> tuple[NDArray[np.int64], list[str]]:
    """The pieces of a model that are a whole token of ours, and that token."""
    texts = [text.strip() for text in model.texts_of_tokens()]
    cut = [split(normalize(text)) for text in texts]
    whole = [i for i, tokens in enumerate(cut) if len(tokens) == 1 and not texts[i].startswith("##")]
    return model.support[whole], [cut[i][0] for i in whole]


def _pieces(model: LanguageModel, tokens: list[str]) -> tuple[list[int], list[tuple[int, int]]]:
    """The word pieces of a text, and which of them [first, last) each of our tokens covers."""
    text = join(tokens)
    encoded = model.tokenizer(
        text, add_special_tokens=False, return_offsets_mapping=True, split_special_tokens=True, verbose=False
    )
    ids, spans = list(encoded["input_ids"]), list(encoded["offset_mapping"])
    covered = []
    cursor = piece = 0
    for token in tokens:
        start = text.index(token, cursor)
        cursor = start + len(token)
        while piece < len(spans) and spans[piece][1] <= start:
            piece += 1
        last = piece
        while last < len(spans) and spans[last][0] < cursor:
            last += 1
        covered.append((piece, max(last, piece + 1)))
    return ids, covered


def _prompt(
    model: LanguageModel,
    pieces: dict[int, tuple[list[int], list[tuple[int, int]]]],
    positions: Sequence[Position],
    numbers: list[int],
) -> _Prompt:
    ids, covered = pieces[positions[numbers[0]].row]
    spans = [covered[positions[i].place] for i in numbers]
    frame = model.special_frame()
    if isinstance(model, MaskedModel):
        first, last = spans[0]
        left, right = ids[max(0, first - WINDOW) : first], ids[last : last + WINDOW]
        row = [*frame.before, *left, int(model.tokenizer.mask_token_id), *right, *frame.after]
        return _Prompt(row, [len(frame.before) + len(left)], numbers)
    # Something must stand before the first word of a text: the token that ends the text before it.
    before = list(frame.before) or [model.end if model.end is not None else model.pad]
    begin = max(0, min(first for first, _ in spans) - WINDOW)
    row = [*before, *ids[begin : max(first for first, _ in spans)]]
    return _Prompt(row, [len(before) + first - begin - 1 for first, _ in spans], numbers)


def _logits(model: LanguageModel, prompts: Sequence[_Prompt]) -> NDArray[np.float32]:
    torch = model.torch
    longest = max(len(prompt.ids) for prompt in prompts)
    ids = torch.full((len(prompts), longest), model.pad, dtype=torch.long)
    mask = torch.zeros((len(prompts), longest), dtype=torch.long)
    for i, prompt in enumerate(prompts):
        ids[i, : len(prompt.ids)] = torch.tensor(prompt.ids, dtype=torch.long)
        mask[i, : len(prompt.ids)] = 1
    rows = torch.tensor([i for i, prompt in enumerate(prompts) for _ in prompt.outputs])
    places = torch.tensor([place for prompt in prompts for place in prompt.outputs])
    with torch.inference_mode():
        output = model.model(input_ids=ids, attention_mask=mask)
        logits: NDArray[np.float32] = output.logits[rows, places].float().numpy()
    return logits


# The report ---------------------------------------------------------------------------------------------------------


def section(inferences: Sequence[MaskInference]) -> Section:
    text = (
        "Each word is hidden in turn and guessed by a language model from the released words around it (a causal "
        "model: before it). Blind: always the most frequent of the attacked words. A word that the model writes in "
        "several pieces is never recovered. Intervals draw whole rows again (bootstrap)."
    )
    if inferences and inferences[0].left_out:
        text += f" {inferences[0].left_out:,} rows were left out because their numbers of tokens differ."
    findings = [
        scale.finding(
            f"words guessed from context ({each.kind} model)",
            each.recovered,
            f"{each.model} guesses the original word from the context",
            model=each.model,
            unchanged=each.unchanged,
        )
        for each in inferences
    ]
    rows = [
        [f"{e.model} ({e.kind})", e.recovered.cases, e.recovered.rate, e.recovered.low, e.recovered.high,
         e.recovered.ceiling, e.recovered.floor, e.unchanged]
        for e in inferences
    ]  # fmt: skip
    columns = ("model", "words", "recovered", "low", "high", "on the original text", "blind", "left unchanged")
    tables = [Table("Mask token inference", columns, rows)]
    for each in inferences:
        if each.examples:
            tables.append(
                Table(
                    f"Changed words that {each.model} recovered from their context",
                    ("row", "original", "released"),
                    [list(row) for row in each.examples],
                    private=True,
                )
            )
    return Section("Mask inference: which word does the context suggest?", text, findings, tables)
