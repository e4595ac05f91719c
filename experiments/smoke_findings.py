"""Statements about smoke.toml, each with the function that judges it."""

from __future__ import annotations

from tacit.experiments.findings import Findings, Judgment, Scores
from tacit.experiments.quantities import SMALLEST, score

findings = Findings()


@findings.says(
    "More words stay as they are at a larger epsilon",
    source="a question of Yue et al. 2021, figure 5, asked of made-up reviews",
    ours=True,
)
def more_words_stay_they_larger(scores: Scores) -> Judgment:
    return scores.increases(score("words.word stays"), along="epsilon", each=["mechanism"])


@findings.says(
    "SanText+ changes fewer words than SanText at a small epsilon",
    source="a question of Yue et al. 2021, section 4.2, asked of made-up reviews",
    ours=True,
)
def santext_plus_changes_fewer_words(scores: Scores) -> Judgment:
    return scores.below(
        score("kept.words changed", mechanism="santext+", epsilon=SMALLEST),
        score("kept.words changed", mechanism="santext", epsilon=SMALLEST),
    )


findings.not_testable(
    "Sanitization-aware pretraining helps",
    source="a question of Yue et al. 2021, table 3, asked of made-up reviews",
    ours=True,
    reason="this experiment has no language model.",
)
