"""Statements about tasks_more.toml, each with the function that judges it."""

from __future__ import annotations

import math

from tacit.experiments.findings import Findings, Judgment, Scores
from tacit.experiments.quantities import score

findings = Findings()

GUM = "parts-of-speech-gum"


@findings.says(
    "GUM, distilled encoder: without privacy training everything is best (.95, frozen encoder with an LSTM .83, head "
    "and last two layers .69)",
    source="Igamberdiev 2023, section 4.6.2",
    explanation=(
        "The quick size reads 2,000 of the 10,330 sentences once. Accuracy is already highest when everything is "
        "trained (.81, the others .78 and .79); macro-F1, to which rare tags count as much, is not yet."
    ),
)
def gum_everything_is_best_without_privacy(scores: Scores) -> Judgment:
    return scores.above(
        score("trained.score", model="distilled", data=GUM, strategy="no-embeddings", epsilon=math.inf),
        score(
            "trained.score", model="distilled", data=GUM, strategy=("frozen-lstm", "head", "last-2"),
            epsilon=math.inf,
        ),
        each=["strategy"],
    )  # fmt: skip


@findings.says(
    "GUM, distilled encoder: training everything loses much by privacy (.95 to .51 at epsilon 1: more than .3)",
    source="Igamberdiev 2023, section 4.6.2",
)
def gum_everything_loses_much(scores: Scores) -> Judgment:
    return scores.below(
        score("trained.score", model="distilled", data=GUM, strategy="no-embeddings", epsilon=1),
        score("trained.score", model="distilled", data=GUM, strategy="no-embeddings", epsilon=math.inf) - 0.3,
    )


@findings.says(
    "GUM, distilled encoder: at epsilon 1 training everything (.51) and the head alone (.49) are about equal",
    source="Igamberdiev 2023, section 4.6.2",
    explanation=(
        "2,000 sentences in place of 10,330, read once, are eight steps with far more noise beside what the rows say: "
        "training everything learns hardly anything from them, the head alone most of what it can."
    ),
)
def gum_head_and_everything_are_equal(scores: Scores) -> Judgment:
    return scores.near(
        score("trained.score", model="distilled", data=GUM, strategy="no-embeddings", epsilon=1),
        score("trained.score", model="distilled", data=GUM, strategy="head", epsilon=1),
        within=0.1,
    )


@findings.says(
    "SQuAD 2.0: every private model answers that there is no answer (BERT there, the distilled encoder here)",
    source="Igamberdiev 2023, section 4.5.4",
    explanation=(
        "From 400 questions a private model does not even learn to be silent: two steps (twenty for the head) with "
        "that much noise leave answers by chance. Without noise both are silent, which half of the questions reward."
    ),
)
def squad_private_models_are_silent(scores: Scores) -> Judgment:
    return scores.above(
        score("trained.unanswered", data="squad", model="distilled", epsilon=1), 0.95, each=["strategy"]
    )


@findings.says(
    "SQuAD 2.0: without privacy the last two layers (.64) are better than the head alone (.50; BERT there, the "
    "distilled encoder here)",
    source="Igamberdiev 2023, section 4.5.4",
)
def squad_two_layers_beat_head(scores: Scores) -> Judgment:
    return scores.above(
        score("trained.score", data="squad", model="distilled", strategy="last-2", epsilon=math.inf),
        score("trained.score", data="squad", model="distilled", strategy="head", epsilon=math.inf),
    )
