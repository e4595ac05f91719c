"""Statements about memorization_more.toml, each with the function that judges it."""

from __future__ import annotations

from tacit.experiments.findings import Findings, Judgment, Scores, all_of
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


@findings.says(
    "The published ADePT (l2 clip, Laplace noise for 2 C) violates its promise by a factor of sqrt(n)",
    source=(
        "Habernal 2021; Igamberdiev 2023, section 5.4.1 (sqrt(n) is exact; asked of latents of real texts: two are "
        "farther apart than what is assumed)"
    ),
)
def published_adept_breaks_its_promise(scores: Scores) -> Judgment:
    return all_of(scores.above(score("promise.true over assumed"), 1), scores.above(score("promise.reached"), 1))


@findings.says(
    "The true sensitivity of the published ADePT is at least 6 times what it assumes, and up to 100 % of the "
    "utterances are not protected",
    source="Habernal 2021, abstract (asked of the ADePT in this package and of Snips: more than .95 of them)",
)
def utterances_are_not_protected(scores: Scores) -> Judgment:
    return all_of(
        scores.at_least(score("promise.true over assumed"), 6), scores.above(score("promise.not protected"), 0.95)
    )
