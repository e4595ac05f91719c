"""Re-identification of authors: who wrote a released text?

Each author needs at least two texts: the attacker knows some (public ones, or other rows of the release) and is tried
on the rest. Floors: always naming the most frequent author, and drawing one by frequency. See `attacker` for the static
and the adaptive attacker and the classifiers.
"""

from __future__ import annotations

from collections.abc import Sequence

from tacit.auditing.text import attacker, scale
from tacit.auditing.text.attacker import (
    Identified,
)
from tacit.auditing.text.pairs import TextPairs
from tacit.documents.encoder import Encoder
from tacit.progress import StepProgress
from tacit.report import Section, Table

LEAST_TEXTS = 2


def authorship(
    pairs: TextPairs,
    authors: Sequence[str],
    *,
    encoder: Encoder | None = None,
    seed: int = 0,
    progress: StepProgress | None = None,
) -> Identified:
    """Name the author of every row, from texts of all authors in other rows."""
    attacker.check_labels(authors, "author", pairs.rows, least=LEAST_TEXTS)
    return attacker.identify(
        pairs.originals, pairs.released, authors, clusters=authors, encoder=encoder, seed=seed, progress=progress
    )


def section(identified: Identified, pairs: TextPairs, *, features: str = "character and word n-grams") -> Section:
    text = (
        f"{identified.rows:,} texts by {identified.classes:,} authors. A linear classifier over {features} learns "
        "from two "
        "thirds of the rows and is tried on the rest, in turns. The static attacker learns from original texts, the "
        "adaptive one from released texts. Blind: always the most frequent author. Intervals draw whole authors "
        "again (bootstrap)."
    )
    findings = [
        scale.finding(
            f"author named ({name} attacker)", identified.top1[name], f"The {name} attacker names the author",
            top5=identified.top5[name].rate,
        )
        for name in ("static", "adaptive")
    ]  # fmt: skip
    return Section("Authorship: who wrote it?", text, findings, [rates(identified), *worst(identified, pairs)])


def rates(identified: Identified) -> Table:
    """All attackers and floors beside each other."""
    ceiling1, ceiling5 = identified.top1["static"].ceiling, identified.top5["static"].ceiling
    rows: list[list[object]] = [
        ["non-private (original text)", ceiling1, None, None, ceiling5, identified.macro_f1["non-private"]]
    ]
    for name in ("static", "adaptive"):
        top1 = identified.top1[name]
        rows.append([name, top1.rate, top1.low, top1.high, identified.top5[name].rate, identified.macro_f1[name]])
    rows.append(["blind: most frequent", identified.majority, None, None, identified.top5["static"].floor,
                 identified.macro_f1["majority"]])  # fmt: skip
    rows.append(["blind: drawn by frequency", identified.random, None, None, None, None])
    return Table("Rates of the attackers", ("attacker", "right", "low", "high", "among five", "macro-F1"), rows)


def worst(identified: Identified, pairs: TextPairs) -> list[Table]:
    """The released texts that gave themselves away most clearly."""
    rows = [[pairs.rows[i], cut(pairs.originals[i]), cut(pairs.released[i])] for i in identified.certain]
    if not rows:
        return []
    title = "Texts that the stronger attacker is surest of, and right about"
    return [Table(title, ("row", "original", "released"), rows, private=True)]


def cut(text: str, longest: int = 160) -> str:
    line = " ".join(text.split())
    return line if len(line) <= longest else f"{line[: longest - 1]}…"
