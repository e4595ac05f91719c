"""Attribute inference: gender, age group or any other column, from the released text.

The same attackers as for authorship (see `attacker`). Where authors are known, no author stands on both sides of a
split: recognizing the author would give the attribute away without any text about it.
"""

from __future__ import annotations

from collections.abc import Sequence

from tacit.auditing.text import attacker, scale
from tacit.auditing.text.attacker import (
    FOLDS,
    Identified,
)
from tacit.auditing.text.authorship import rates, worst
from tacit.auditing.text.pairs import TextPairs
from tacit.documents.encoder import Encoder
from tacit.errors import BadInputError
from tacit.progress import StepProgress
from tacit.report import Section

LEAST_TEXTS = FOLDS


def infer_attribute(
    pairs: TextPairs,
    name: str,
    values: Sequence[str],
    *,
    authors: Sequence[str] | None = None,
    encoder: Encoder | None = None,
    seed: int = 0,
    progress: StepProgress | None = None,
) -> Identified:
    """Name the value of an attribute for every row."""
    attacker.check_labels(values, f"'{name}'", pairs.rows, least=LEAST_TEXTS)
    if authors is not None:
        _check_authors(name, values, authors)
    return attacker.identify(
        pairs.originals,
        pairs.released,
        values,
        groups=authors,
        clusters=authors,
        encoder=encoder,
        seed=seed,
        progress=progress,
    )


def _check_authors(name: str, values: Sequence[str], authors: Sequence[str]) -> None:
    owners: dict[str, set[str]] = {}
    for value, author in zip(values, authors, strict=True):
        owners.setdefault(value, set()).add(author)
    if min(map(len, owners.values())) < FOLDS:
        raise BadInputError(
            "too-few-authors",
            "a value of '{name}' belongs to fewer than {folds} authors, so it cannot be learned from some and tried "
            "on others: leave out {option.author_column}, or merge the value with another",
            name=name,
            folds=FOLDS,
        )


def section(
    identified: Identified,
    name: str,
    pairs: TextPairs,
    *,
    features: str = "character and word n-grams",
    grouped: bool = False,
) -> Section:
    apart = ", and no author is on both sides" if grouped else ""
    text = (
        f"{identified.rows:,} texts, {identified.classes:,} values of '{name}'. A linear classifier over {features} "
        "learns from "
        f"two thirds of the rows and is tried on the rest, in turns{apart}. Blind: always the most frequent value."
    )
    findings = [
        scale.finding(
            f"{name} inferred ({kind} attacker)", identified.top1[kind], f"The {kind} attacker names the right value",
            macro_f1=identified.macro_f1[kind],
        )
        for kind in ("static", "adaptive")
    ]  # fmt: skip
    return Section(f"Attribute inference: {name}", text, findings, [rates(identified), *worst(identified, pairs)])
