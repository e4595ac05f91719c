"""Statements about memorization_more.toml, each with the function that judges it."""

from __future__ import annotations

from tacit.experiments.findings import Findings, Judgment, Scores
from tacit.experiments.quantities import score

findings = Findings()


@findings.says(
    "ATIS is smaller, so there are fewer data points to pretrain ADePT on",
    source=(
        "Igamberdiev 2023, section 5.4.4 (a speculation of the thesis; asked of Snips: a third of its texts, the share "
        "of ATIS, gives a model that rewrites worse)"
    ),
)
def fewer_texts_rewrite_worse(scores: Scores) -> Judgment:
    return scores.below(
        score("task.macro-F1", corpus="snips_third"), score("task.macro-F1", corpus="snips"), each=["epsilon"]
    )
