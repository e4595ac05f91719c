"""Statements about sanitized.toml, each with the function that judges it."""

from __future__ import annotations

from tacit.experiments.findings import Findings, Judgment, Scores
from tacit.experiments.quantities import score

findings = Findings()


@findings.says(
    "Sanitization-aware pretraining raises accuracy, by 1 to 2 points",
    source="Yue et al. 2021, table 3",
)
def sanitization_aware_pretraining_raises_accuracy(scores: Scores) -> Judgment:
    return scores.above(
        score("tuned.accuracy", pretraining="aware"),
        score("tuned.accuracy", pretraining="none"),
        most=["data", "epsilon"],
    )


@findings.says(
    "It is the rewritten text that helps, not the further training: aware is above plain",
    source="a control that Yue et al. 2021, table 3, does not have",
    ours=True,
    explanation=("A small model that has read little gains more from reading clean text than from meeting the noise."),
)
def rewritten_text_helps_not_further(scores: Scores) -> Judgment:
    return scores.above(
        score("tuned.accuracy", pretraining="aware"),
        score("tuned.accuracy", pretraining="plain"),
        most=["data", "epsilon"],
    )


@findings.says(
    "Accuracy grows with epsilon, with and without pretraining",
    source="Yue et al. 2021, table 3",
)
def accuracy_grows_epsilon_without_pretraining(scores: Scores) -> Judgment:
    return scores.increases(
        score("tuned.accuracy", pretraining=("none", "aware")), along="epsilon", each=["data", "pretraining"]
    )


@findings.says(
    "Pretraining hardly changes the defense rate (by at most .0101)",
    source="Yue et al. 2021, table 3",
)
def pretraining_hardly_changes_defense_rate(scores: Scores) -> Judgment:
    return scores.near(
        score("attacked.defended where the attack works", pretraining="aware"),
        score("attacked.defended where the attack works", pretraining="none"),
        within=0.03,
        each=["data", "epsilon"],
    )


@findings.says(
    "... and costs about 4 % of the accuracy",
    source="Yue et al. 2021, section 5.3 and figure 4",
    explanation=(
        "It costs a point more than that, within chance: a small BERT that has read little is not far above the floor"
        " on either text."
    ),
)
def costs_about_accuracy(scores: Scores) -> Judgment:
    return scores.above(
        score("tuned.accuracy", data="sst2", epsilon=16, pretraining="none"),
        score("original.accuracy", data="sst2") - 0.05,
    )


@findings.says(
    "The median word stays as it is with probability 60 % at epsilon 15",
    source="Yue et al. 2021, section 5.3",
)
def median_word_stays_probability_epsilon(scores: Scores) -> Judgment:
    return scores.near(score("words.median of word stays", epsilon=15), 0.6, within=0.15)
