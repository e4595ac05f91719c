"""What requests.toml should show, each statement with the function that judges it."""

from __future__ import annotations

from tacit.experiments.findings import Findings, Judgment, Scores
from tacit.experiments.quantities import score

findings = Findings()


@findings.says("Utility grows with epsilon", source="Yue et al. 2021, table 1")
def utility_grows(scores: Scores) -> Judgment:
    return scores.increases(score("intent.accuracy", mechanism="santext"), along="epsilon")


@findings.says(
    "So does the success of an attacker who links releases with originals", source="expected of every mechanism"
)
def linking_gets_easier(scores: Scores) -> Judgment:
    return scores.increases(score("linking.rate", mechanism="santext"), along="epsilon")
