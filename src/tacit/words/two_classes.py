"""Two classes of words: sensitive ones, and common ones that may be treated more gently.

The classes come from public data (frequencies, a list the user gives). A detector may mark further tokens of the
private text as sensitive; such a token is the input (word, marked), written here as id + |V|, so that the law of each
input is still a fixed function of that input.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.errors import BadParameterError
from tacit.guarantee import Provenance
from tacit.text.lexicon import Lexicon
from tacit.text.sensitive import detector, listed_words, rarest_words
from tacit.text.tokens import is_punctuation, split
from tacit.words.base import Ids, between
from tacit.words.exponential import ExponentialWords


@dataclass(kw_only=True, eq=False)
class TwoClassWords(ExponentialWords):
    """Parameters that say which words are sensitive.

    sensitive_share   the share of the vocabulary, least frequent in public text first, that is sensitive
    sensitive_list    a file with further sensitive words, one per line
    detector          marks tokens of the text as sensitive: none, patterns, spacy, spacy:PIPELINE
    """

    sensitive_share: float = 0.9
    sensitive_list: str | None = None
    detector: str = "none"

    def __post_init__(self) -> None:
        super().__post_init__()
        between("sensitive_share", self.sensitive_share, 0.0, 1.0)
        if self.sensitive_share == 0.0 and self.sensitive_list is None:
            raise BadParameterError("no word would be sensitive: raise sensitive_share or give a sensitive_list")

    @cached_property
    def sensitive(self) -> NDArray[np.bool_]:
        words = self.table.words
        mask = np.zeros(len(words), dtype=bool)
        if self.sensitive_share:
            mask |= rarest_words(words, self.sensitive_share)
        if self.sensitive_list is not None:
            mask |= listed_words(words, self.sensitive_list)
        if mask.sum() < 2:
            raise BadParameterError("fewer than two vocabulary words are sensitive: they could not hide each other")
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

    def _encode(self, documents: Sequence[list[str]], texts: Sequence[str]) -> tuple[Ids, dict[int, str]]:
        ids, kept = super()._encode(documents, texts)
        if self._detect is not None:
            marked = np.array([flag for flags in self._marks(texts) for flag in flags], dtype=bool)
            ids = ids + len(self.table) * marked
        return ids, kept

    def _marks(self, texts: Sequence[str]) -> list[list[bool]]:
        assert self._detect is not None
        marks = self._detect(texts)
        if self.punctuation != "drop":
            return marks
        return [
            [mark for mark, token in zip(flags, split(text), strict=True) if not is_punctuation(token)]
            for flags, text in zip(marks, texts, strict=True)
        ]

    def _class_facts(self) -> dict[str, Any]:
        facts: dict[str, Any] = {"sensitive_share": float(self.sensitive.mean())}
        sources = []
        if self.sensitive_share:
            sources.append(Provenance("sensitive words", "word frequencies of the wordfreq library"))
        if self.sensitive_list is not None:
            sources.append(Provenance("further sensitive words", "a list given by the user, assumed public"))
        if self.detector != "none":
            facts["not_covered"] = (
                f"which tokens the '{self.detector}' detector marked; a sensitive token it misses counts as common",
            )
        facts["provenance"] = tuple(sources)
        return facts
