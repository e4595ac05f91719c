"""Entity survival: how many names, places and numbers of the original are still in the released row?

An entity survives when all its tokens stand side by side in the released text of its own row; a part of it survives
when at least half of its tokens are there anywhere. Both are compared with chance: how often the same string stands in
the *other* rows of the release (exactly, over all of them), since a common string proves nothing. The difference is
what this row gives away. The ceiling is the same count on the original text, close to 1: a few entities are cut into
tokens in another way when they stand alone.

Entities come from known spans, from patterns (always: mail and web addresses, numbers, names after a title, capitalized
words inside a sentence), and from spaCy where it is installed. What no detector finds is not counted: the numbers are
about entities that were found, not about all.
"""

from __future__ import annotations

import importlib.util
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tacit.auditing.text import scale
from tacit.auditing.text.authorship import cut
from tacit.auditing.text.pairs import Spans, TextPairs
from tacit.auditing.text.scale import Success
from tacit.noise.source import public_generator
from tacit.report import Section, Table
from tacit.text.sensitive import spacy_pipeline
from tacit.text.tokens import is_punctuation, split

WORST = 20
SPACY_PIPELINE = "en_core_web_sm"

# In this order; what one pattern takes, the next ones do not see.
PATTERNS = (
    ("mail address", re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")),
    ("web address", re.compile(r"(?:https?://|www\.)\S*\w")),
    ("name after a title", re.compile(r"(?:\b(?:Mr|Mrs|Ms|Dr|Prof)\.?\s+)((?:[A-Z][\w'’-]+\s?)+(?<=\w))")),
    ("number", re.compile(r"\d(?:[\d.,:/ -]*\d)?")),
    ("capitalized words", re.compile(r"(?<=[a-z,;] )((?:[A-Z][\w'’-]+)(?: [A-Z][\w'’-]+)*)")),
)


@dataclass(frozen=True)
class Entity:
    """A string of a row that names something: index of the row, type, and its tokens."""

    row: int
    kind: str
    text: str
    tokens: tuple[str, ...]


@dataclass(frozen=True)
class Survival:
    """The survival of the entities of one type, or of all ("all types").

    whole         the whole entity is in its row; its floor is the chance to be in another row
    part          at least half of its tokens are; floor from one random other row for each entity
    """

    whole: Success
    part: Success


@dataclass(frozen=True)
class Survivors:
    source: str
    entities: int
    rows: int
    by_kind: dict[str, Survival]
    worst: list[tuple[int, str, str, str]]


# Finding ------------------------------------------------------------------------------------------------------------


def from_spans(spans: Sequence[Spans]) -> list[Entity]:
    """Entities that are known beforehand."""
    return _entities((row, kind, value) for row, entities in enumerate(spans) for kind, value in entities)


def from_patterns(texts: Sequence[str]) -> list[Entity]:
    """Entities by their shape alone."""

    def occurrences() -> Iterable[tuple[int, str, str]]:
        for row, text in enumerate(texts):
            left = text
            for kind, pattern in PATTERNS:
                for match in pattern.finditer(left):
                    yield row, kind, match.group(match.lastindex or 0)
                left = pattern.sub(lambda match: "\n" * len(match.group()), left)

    return _entities(occurrences())


def from_spacy(texts: Sequence[str], pipeline: str = SPACY_PIPELINE) -> list[Entity]:
    """Named entities of a spaCy pipeline (a package name or a folder)."""
    loaded = spacy_pipeline(pipeline)
    return _entities(
        (row, entity.label_, entity.text) for row, doc in enumerate(loaded.pipe(texts)) for entity in doc.ents
    )


def spacy_is_there() -> bool:
    """Whether named entities can be found without asking for anything to be installed."""
    return all(importlib.util.find_spec(name) is not None for name in ("spacy", SPACY_PIPELINE))


def _entities(occurrences: Iterable[tuple[int, str, str]]) -> list[Entity]:
    result = []
    for row, kind, text in occurrences:
        tokens = tuple(token for token in split(text) if not is_punctuation(token))
        if tokens:
            result.append(Entity(row, kind, text, tokens))
    return result


# Counting -----------------------------------------------------------------------------------------------------------


class _Release:
    """An index of the released rows by the sequences of tokens in them."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.rows = [[token for token in split(text) if not is_punctuation(token)] for text in texts]
        self.sets = [set(tokens) for tokens in self.rows]
        self._places: dict[str, list[int]] = defaultdict(list)
        for row, tokens in enumerate(self.sets):
            for token in tokens:
                self._places[token].append(row)
        self._known: dict[tuple[str, ...], frozenset[int]] = {}

    def holders(self, tokens: tuple[str, ...]) -> frozenset[int]:
        if tokens not in self._known:
            rarest = min(tokens, key=lambda token: len(self._places.get(token, ())))
            self._known[tokens] = frozenset(
                row for row in self._places.get(rarest, ()) if _side_by_side(tokens, self.rows[row])
            )
        return self._known[tokens]

    def part(self, tokens: tuple[str, ...], row: int) -> bool:
        return 2 * sum(token in self.sets[row] for token in tokens) >= len(tokens)


def _side_by_side(wanted: tuple[str, ...], tokens: list[str]) -> bool:
    size = len(wanted)
    return any(token == wanted[0] and tuple(tokens[i : i + size]) == wanted for i, token in enumerate(tokens))


def survival(pairs: TextPairs, entities: Sequence[Entity], *, source: str, seed: int = 0) -> Survivors:
    """The numbers of entities that are still in the released row they came from, by type."""
    release = _Release(pairs.released)
    others = max(1, len(pairs) - 1)
    shift = public_generator(seed).integers(1, max(2, len(pairs)), size=len(entities))
    whole = np.array([entity.row in release.holders(entity.tokens) for entity in entities], dtype=bool)
    chance = np.array(
        [
            (len(release.holders(entity.tokens)) - in_own_row) / others
            for entity, in_own_row in zip(entities, whole, strict=True)
        ]
    )
    part = np.array([release.part(entity.tokens, entity.row) for entity in entities], dtype=bool)
    elsewhere = np.array(
        [
            release.part(entity.tokens, (entity.row + int(step)) % len(pairs))
            for entity, step in zip(entities, shift, strict=True)
        ],
        dtype=bool,
    )
    unmodified = _Release([pairs.originals[row] for row in sorted({entity.row for entity in entities})])
    place = {row: i for i, row in enumerate(sorted({entity.row for entity in entities}))}
    kept_whole = np.array([_side_by_side(e.tokens, unmodified.rows[place[e.row]]) for e in entities], dtype=bool)
    kept_part = np.array([unmodified.part(e.tokens, place[e.row]) for e in entities], dtype=bool)
    rows = np.array([entity.row for entity in entities], dtype=np.int64)
    kinds = np.array([entity.kind for entity in entities], dtype=object)
    by_kind = {}
    names = sorted(set(kinds.tolist()))
    for name in ["all types", *names]:
        mask = np.ones(len(entities), dtype=bool) if name == "all types" else kinds == name
        by_kind[name] = Survival(
            _success(whole[mask], chance[mask], kept_whole[mask], rows[mask]),
            _success(part[mask], elsewhere[mask], kept_part[mask], rows[mask]),
        )
    # A string that is rare elsewhere and is here all the same was carried over.
    order = sorted(np.flatnonzero(whole).tolist(), key=lambda i: (chance[i], -len(entities[i].text)))
    worst = [
        (pairs.rows[entities[i].row], entities[i].kind, cut(entities[i].text, 80), cut(pairs.released[entities[i].row]))
        for i in order[:WORST]
    ]
    return Survivors(source, len(entities), len(set(rows.tolist())), by_kind, worst)


def _success(
    right: NDArray[np.generic], chance: NDArray[np.generic], kept: NDArray[np.generic], rows: NDArray[np.generic]
) -> Success:
    if not len(rows):
        return scale.of_trials(right, floor=0.0, ceiling=1.0)
    return scale.of_trials(right, floor=float(chance.mean()), ceiling=float(kept.mean()), rows=rows)


# The report ---------------------------------------------------------------------------------------------------------


def section(survivors: Sequence[Survivors]) -> Section:
    text = (
        "An entity survives when all its words stand side by side in the released text of its row; a part survives "
        "when at least half of them are there. By chance: how often the same words are in other released rows. "
        "Entities that no source knows are not counted. Intervals draw whole rows again (bootstrap)."
    )
    findings, tables = [], []
    for each in survivors:
        everything = each.by_kind["all types"].whole
        findings.append(
            scale.finding(
                f"entities that survive ({each.source})",
                everything,
                "An entity of the original is still there",
                part=each.by_kind["all types"].part.rate,
            )
        )
        rows = [
            [kind, s.whole.cases, s.whole.rate, s.whole.low, s.whole.high, s.whole.floor, s.part.rate, s.part.floor]
            for kind, s in each.by_kind.items()
        ]
        tables.append(
            Table(
                f"Entities from {each.source}",
                ("type", "entities", "survive", "low", "high", "by chance", "a part survives", "by chance (part)"),
                rows,
                f"{each.entities:,} entities in {each.rows:,} rows",
            )
        )
        if each.worst:
            tables.append(
                Table(
                    f"Surviving entities that are rarest in other rows ({each.source})",
                    ("row", "type", "entity", "released text"),
                    [list(row) for row in each.worst],
                    private=True,
                )
            )
    return Section("Entities: which names, places and numbers are still there?", text, findings, tables)
