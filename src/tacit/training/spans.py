"""Span corruption (Raffel et al. 2020): the pretraining of T5 as pairs of texts, for private training of such models.

    "Thank you for inviting me to your party last week"
    source   "Thank you <extra_id_0> to your party <extra_id_1>"
    target   "<extra_id_0> for inviting me <extra_id_1> last week <extra_id_2>"

The pair of a record is a function of that record alone: which words are left out follows from a hash of its text. So a
training on pairs (`tacit.train("translate", span_pairs(texts), ...)`) promises records what a training on the texts
would, and no other record moves a pair.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Final

import numpy as np

from tacit.noise.source import public_generator

SHARE: Final = 0.15
"""Of the words that are left out."""
MEAN_SPAN: Final = 3
MOST_SPANS: Final = 100
"""A tokenizer of T5 has so many marks."""


def span_pair(text: str, *, share: float = SHARE, mean_span: int = MEAN_SPAN) -> dict[str, str]:
    """The source and the target of a text: at least one word of it is left out, and never all of several.

    >>> span_pair("good")
    {'source': '<extra_id_0>', 'target': '<extra_id_0> good <extra_id_1>'}
    """
    words = text.split()
    source: list[str] = []
    target: list[str] = []
    mark, before = 0, False
    for word, left_out in zip(words, _left_out(text, len(words), share, mean_span), strict=True):
        if left_out and not before:
            source.append(f"<extra_id_{mark}>")
            target.append(f"<extra_id_{mark}>")
            mark += 1
        (target if left_out else source).append(word)
        before = bool(left_out)
    target.append(f"<extra_id_{mark}>")
    return {"source": " ".join(source), "target": " ".join(target)}


def span_pairs(texts: Iterable[str]) -> list[dict[str, str]]:
    """The pairs of texts, in their order: rows for the task `translate`."""
    return [span_pair(text) for text in texts]


def _left_out(text: str, count: int, share: float, mean_span: int) -> list[bool]:
    """Which words are left out: spans of `mean_span` words on average, apart from each other."""
    if count < 2:
        return [True] * count
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    generator = public_generator(int.from_bytes(digest, "little") >> 1)
    left_out = np.clip(round(share * count), 1, count - 1)
    spans = int(min(max(1, round(left_out / mean_span)), left_out, count - left_out, MOST_SPANS - 1))
    missing, kept = _parts(int(left_out), spans, generator), _parts(int(count - left_out), spans, generator)
    return [flag for kept_part, gone in zip(kept, missing, strict=True) for flag in [False] * kept_part + [True] * gone]


def _parts(total: int, count: int, generator: np.random.Generator) -> list[int]:
    """A number as a sum of `count` numbers of at least 1, each way equally likely."""
    cuts = np.sort(generator.choice(total - 1, size=count - 1, replace=False) + 1) if count > 1 else np.empty(0, int)
    return [int(part) for part in np.diff([0, *cuts.tolist(), total])]
