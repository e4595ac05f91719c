"""Two classes of words: sensitive ones, and common ones that may be treated more gently.

The classes come from public data (frequencies, a list the user gives). A detector may mark further tokens of the
private text as sensitive; such a token is the input (word, marked), written here as id + |V|, and the law of each such
input is fixed. But a detector reads the whole text, so changing one word can change the marks of others: the promise
for one word then holds between texts whose other words are marked alike, and the promise for a whole text, where every
position may change, holds as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Ids
from tacit.errors import BadParameterError
from tacit.guarantee import Adjacency, Provenance
from tacit.needs import FREQUENCIES, NAMES, Ability
from tacit.parameters import parameter
from tacit.text.lexicon import Lexicon
from tacit.text.sensitive import detector, listed_words, rarest_words
from tacit.text.tokens import is_punctuation, split
from tacit.vectors import VectorTable, cache
from tacit.words.base import (
    digest_of,
)
from tacit.words.calibrated import CalibratedWords


def _needs_of_detector(value: str) -> list[Ability]:
    return [NAMES] if value.startswith("spacy") else []


@dataclass(kw_only=True, eq=False)
class TwoClassWords(CalibratedWords):
    """Parameters that say which words are sensitive.

    sensitive_share   the share of the vocabulary, least frequent in public text first, that is sensitive
    sensitive_list    a file with further sensitive words, one per line
    detector          marks tokens of the text as sensitive: none, patterns, spacy, spacy:PIPELINE
    """

    sensitive_share: float = parameter(0.9, low=0.0, high=1.0)
    sensitive_list: str | None = None
    detector: str = parameter("none", service_values=("patterns", "spacy"), needs=_needs_of_detector)

    abilities: ClassVar[tuple[Ability, ...]] = (FREQUENCIES,)

    def check_parameters(self) -> None:
        super().check_parameters()
        if self.sensitive_share == 0.0 and self.sensitive_list is None:
            raise BadParameterError(
                "too-few-sensitive-words", "no word would be sensitive: raise sensitive_share or give a sensitive_list"
            )

    @cached_property
    def sensitive(self) -> NDArray[np.bool_]:
        words = self.table.words
        mask = np.zeros(len(words), dtype=bool)
        if self.sensitive_share:
            mask |= remembered_rarest_words(self.table, self.sensitive_share)
        if self.sensitive_list is not None:
            mask |= listed_words(words, self.sensitive_list)
        if mask.sum() < 2:
            raise BadParameterError(
                "too-few-sensitive-words",
                "fewer than two vocabulary words are sensitive: they could not hide each other",
            )
        return mask

    @cached_property
    def sensitive_ids(self) -> Ids:
        return np.flatnonzero(self.sensitive)

    @cached_property
    def lexicon(self) -> Lexicon:
        # Names and codes are what must be hidden, so an unknown token always counts as sensitive.
        return Lexicon(self.table.words, rule=self.unknown, unknown_ids=self.sensitive_ids)

    @cached_property
    def _detect(self) -> Callable[[Sequence[str]], list[list[bool]]] | None:
        return detector(self.detector)

    def prepare(self) -> None:
        super().prepare()
        _ = self._detect

    def is_sensitive(self, ids: Ids) -> NDArray[np.bool_]:
        """Whether each input is treated as sensitive: by its word, or because it was marked."""
        return np.asarray(self.sensitive[ids % len(self.table)] | (ids >= len(self.table)))

    def _encode(self, texts: Sequence[str]) -> tuple[Ids, list[int]]:
        ids, lengths = super()._encode(texts)
        if self._detect is not None:
            marked = np.array([flag for flags in self._marks(texts) for flag in flags], dtype=bool)
            ids = ids + len(self.table) * marked
        return ids, lengths

    def _marks(self, texts: Sequence[str]) -> list[list[bool]]:
        assert self._detect is not None
        marks = self._detect(texts)
        if self.punctuation != "drop":
            return marks
        return [
            [mark for mark, token in zip(flags, split(text), strict=True) if not is_punctuation(token)]
            for flags, text in zip(marks, texts, strict=True)
        ]

    told_elsewhere: ClassVar[frozenset[str]] = frozenset({"sensitive_share", "sensitive_list", "detector"})

    def _class_facts(self) -> dict[str, Any]:
        facts: dict[str, Any] = {
            "sensitive_share": float(self.sensitive.mean()),
            "domain": f"{len(self.sensitive_ids):,} sensitive words ({digest_of(self.sensitive_ids)})",
        }
        sources = []
        if self.sensitive_share:
            sources.append(
                Provenance(f"rarest {self.sensitive_share:.0%} of the words", "frequencies of the wordfreq library")
            )
        if self.sensitive_list is not None:
            sources.append(Provenance("sensitive words of a list", "given by the user, assumed to be public"))
        if self.detector != "none":
            kind = self.detector.partition(":")[0]
            facts["adjacency"] = Adjacency.SAME_MARKS
            facts["not_covered"] = (
                f"which words the '{kind}' detector marks: it reads the whole text, so one word can change how others "
                "are treated; a sensitive word that it misses counts as common",
            )
        facts["provenance"] = tuple(sources)
        return facts


def remembered_rarest_words(table: VectorTable, share: float) -> NDArray[np.bool_]:
    """`rarest_words`, kept in the cache folder: 30,000 look-ups take longer than rewriting a small file."""
    name = cache.key_of("rarest", 2, table.fingerprint, share, _version_of("wordfreq"))
    kept = cache.kept_text("rarest", name)
    if kept is not None and len(kept) == len(table):
        return np.array([mark == "1" for mark in kept])
    mask = rarest_words(table.words, share)
    cache.keep_text("rarest", name, "".join("1" if sensitive else "0" for sensitive in mask))
    return mask


def _version_of(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
