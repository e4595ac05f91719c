"""The measures of a release as a section of a report."""

from __future__ import annotations

import math

import numpy as np

from tacit.evaluation.similarity.measure import Measure, sample
from tacit.evaluation.similarity.result import SimilarityResult
from tacit.report import Finding, Light, Section, Table

LIT = ("cosine", "BERTScore")
"""The measures of meaning; the others also measure how much text shows through, which is no virtue."""
GREEN_FROM, AMBER_FROM = 0.5, 0.1


def similarity_light(measure: Measure) -> Light:
    if not measure.kept > 0 or (not math.isnan(measure.interval.low) and measure.interval.low <= measure.floor):
        return Light.RED
    return Light.GREEN if measure.kept >= GREEN_FROM else Light.AMBER if measure.kept >= AMBER_FROM else Light.RED


def similarity_section(similarity: SimilarityResult, name: str = "the release", worst: int = 5) -> Section:
    rows = [
        [m.name, m.value, m.interval.low, m.interval.high, m.floor, m.ceiling, m.kept, m.texts]
        for m in similarity.measures
    ]
    table = Table(
        "Measures",
        ["measure", "value", "from", "to", "floor", "ceiling", "gap kept", "texts"],
        rows,
        "from–to: 95 % bootstrap over texts. Floor: the same score against the release of another text. Ceiling: the "
        "original against itself. Gap kept: 0 at the floor, 1 at the ceiling.",
    )
    lit = next((m for name in LIT for m in similarity.measures if m.name == name), None)
    findings = []
    if lit is not None:
        findings.append(
            Finding(
                f"Meaning kept by {name}",
                similarity_light(lit),
                f"{lit.name} is {lit.value:.3f}, {lit.floor:.3f} for the release of another text and "
                f"{lit.ceiling:.3f} for the original itself: {lit.kept:.0%} of the gap is kept",
                f"good from {GREEN_FROM:.0%} of the gap between floor and ceiling, look from {AMBER_FROM:.0%}, bad "
                "below or when the interval reaches the floor. A single text need not be close for many texts to be "
                "useful together: where labels exist, the downstream task decides",
                numbers={"value": lit.value, "floor": lit.floor, "ceiling": lit.ceiling, "kept": lit.kept},
            )
        )
    tables = [
        table,
        Table("How they were measured", ["measure", "how"], [[m.name, m.note] for m in similarity.measures]),
    ]
    if not similarity.measures:
        tables = []
    if lit is not None and lit.per_text is not None and worst:
        tables.append(_extremes(similarity, lit, worst))
    return Section(
        f"Similarity of {name} to the originals",
        "What is left of each text, beside what chance alone leaves. N-gram overlap, kept words and length say how "
        "much of the wording shows through; they have no light, because that is what an attacker reads too.",
        findings,
        tables,
    )


def _extremes(similarity: SimilarityResult, lit: Measure, count: int) -> Table:
    assert lit.per_text is not None
    # The neural measures look at a fixed sample: the same one again.
    places = sample(len(similarity.originals), lit.texts)
    order = np.argsort(lit.per_text, kind="stable")
    chosen = [*order[:count], *order[::-1][:count][::-1]] if len(order) > 2 * count else list(order)
    rows = [
        [int(places[i]) + 1, float(lit.per_text[i]), shortened(similarity.originals[places[i]]),
         shortened(similarity.releases[places[i]])]
        for i in chosen
    ]  # fmt: skip
    return Table(f"Least and most similar texts by {lit.name}", ["row", lit.name, "original", "released"], rows,
                 private=True)  # fmt: skip


def shortened(text: str, limit: int = 160) -> str:
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 1] + "…"
