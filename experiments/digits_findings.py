"""Statements about digits.toml, each with the function that judges it."""

from __future__ import annotations

from tacit.experiments.findings import Findings, Judgment, Scores, all_of
from tacit.experiments.quantities import score

findings = Findings()


@findings.says(
    "On MNIST larger lots and more noise lower the F1 from .90 to .10",
    source="Igamberdiev 2023, table 3.5 (here on the digits of scikit-learn, with lots of the same share)",
)
def larger_lots_and_noise_cost(scores: Scores) -> Judgment:
    return all_of(
        scores.decreases(score("trained.F1", noise_multiplier=4), along="lot"),
        scores.decreases(score("trained.F1", lot=60000), along="noise_multiplier"),
    )
