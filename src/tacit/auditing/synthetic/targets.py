"""Targets: records or users whose presence an attack tries to see. Whatever they are, the promise must hold for them.

record   a row of the file; the row least like the others; a row under a wrong label; a single word, which puts as
         much of its weight as possible into one direction of the features
user     the user with most rows; one with 200 equal rows; one with a row under every label
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from tacit.arrays import Floats
from tacit.auditing.synthetic.label_values import label_in_corpus, label_values
from tacit.auditing.synthetic.process import MatchingRelease
from tacit.auditing.synthetic.rows import AuditedRows, rows_of_user
from tacit.matching.labels import Topics
from tacit.noise.source import public_generator

LOOKED_AT = 2_000
"""Rows among which the strangest is looked for."""
EQUAL_ROWS = 200
NEW_USER = "a user of the audit"


@dataclass(frozen=True, eq=False)
class Target:
    """Rows that are added to others, all of one record or user.

    kind     what kind of rows, for tables
    places   which rows of the file they are, so that they are not among the others
    """

    kind: str
    rows: AuditedRows
    places: tuple[int, ...] = ()


def usual_targets(rows: AuditedRows, release: MatchingRelease, seed: int = 0) -> tuple[Target, ...]:
    """Targets of all kinds."""
    return _users(rows, release, seed) if release.by_user else _records(rows, release, seed)


def _records(rows: AuditedRows, release: MatchingRelease, seed: int) -> tuple[Target, ...]:
    known = _with_label(rows, release)
    chosen = known[public_generator(seed).permutation(len(known))[:LOOKED_AT]].tolist()
    vectors = features_of(release, [rows.texts[row] for row in chosen])
    strange = chosen[int((vectors @ vectors.mean(axis=0)).argmin())]
    usual = chosen[0]
    targets = [
        Target("a row of the file", rows.at([usual]), (usual,)),
        Target("the row least like the others", rows.at([strange]), (strange,)),
    ]
    if len(rows.labels):
        text = rows.texts[usual]
        own = label_in_corpus(release.rule, text, [rows.labels[usual]])
        values = (value for value in label_values(release.rule) if label_in_corpus(release.rule, text, [value]) != own)
        wrong = next(values, None)
        if wrong is not None:
            targets.append(Target("a row under a wrong label", AuditedRows([text], [wrong]), (usual,)))
    word = concentrated_word(release, [rows.texts[row] for row in chosen[:200]])
    if word is not None:
        targets.append(Target("a single word", AuditedRows([word], rows.at([usual]).labels)))
    return tuple(targets)


def _users(rows: AuditedRows, release: MatchingRelease, seed: int) -> tuple[Target, ...]:
    busiest = Counter(rows.users).most_common(1)[0][0]
    places = rows_of_user(rows, busiest).tolist()
    known = _with_label(rows, release)
    text = rows.texts[int(known[public_generator(seed).integers(len(known))])]
    targets = [
        Target("the user with most rows", rows.at(places), tuple(places)),
        Target(
            f"a user with {EQUAL_ROWS} equal rows",
            AuditedRows([text] * EQUAL_ROWS, _labels(rows, release, EQUAL_ROWS), [NEW_USER] * EQUAL_ROWS),
        ),
    ]
    if len(rows.labels):
        values = label_values(release.rule)
        targets.append(
            Target(
                "a user with a row under every label",
                AuditedRows([text] * len(values), values, [NEW_USER] * len(values)),
            )
        )
    return tuple(targets)


def _labels(rows: AuditedRows, release: MatchingRelease, count: int) -> Sequence[object]:
    return label_values(release.rule)[:1] * count if len(rows.labels) else ()


def _with_label(rows: AuditedRows, release: MatchingRelease) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """The places of rows that have a label of the rule and a text; all rows if there is none."""
    if isinstance(release.rule, Topics):
        known = np.array([bool(text.strip()) for text in rows.texts])
    else:
        lines = release.rule.places(rows.texts, rows.labels).reshape(len(rows), -1)
        known = (lines >= 0).all(axis=1) & np.array([bool(text.strip()) for text in rows.texts])
    places = np.flatnonzero(known)
    return places if places.size else np.arange(len(rows))


def concentrated_word(release: MatchingRelease, texts: Iterable[str]) -> str | None:
    """The word of these texts whose features have the largest share in one direction."""
    words = sorted({word for text in texts for word in text.split()})[:LOOKED_AT]
    if not words:
        return None
    vectors = features_of(release, words)
    lengths = np.maximum(np.linalg.norm(vectors, axis=1), 1e-9)
    return words[int((np.abs(vectors).max(axis=1) / lengths).argmax())]


def features_of(release: MatchingRelease, texts: Sequence[str]) -> Floats:
    """The dense features of texts."""
    return release.feature_map.features(texts).dense_values().astype(np.float64)
