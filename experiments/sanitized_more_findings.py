"""Statements about sanitized_more.toml, each with the function that judges it."""

from __future__ import annotations

from tacit.experiments.findings import Findings, Judgment, Scores
from tacit.experiments.quantities import score

findings = Findings()


@findings.says(
    "At epsilon 16 SanText raises the defense rate by 20 % ...",
    source="Yue et al. 2021, section 5.3 and figure 4 (the attacker of the paper is BERT, ours SmolLM2)",
)
def defense_gains_a_fifth(scores: Scores) -> Judgment:
    return scores.near(
        score("attacked.defended", mechanism="santext", epsilon=16) - score("attacked.defended", mechanism="none"),
        0.2,
        within=0.1,
    )


@findings.says(
    "At epsilon 15 the accuracy is about 81 % (SST-2)",
    source="Yue et al. 2021, section 5.5 (ours with MiniLM in place of BERT: within .05)",
)
def accuracy_is_about_eighty_one(scores: Scores) -> Judgment:
    return scores.near(score("tuned.accuracy", mechanism="santext", epsilon=15), 0.81, within=0.05)
