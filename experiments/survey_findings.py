"""Statements about survey.toml, each with the function that judges it."""

from __future__ import annotations

from tacit.experiments.findings import Findings, Judgment, Scores, all_of
from tacit.experiments.quantities import score

findings = Findings()


@findings.says(
    "DP-FTRL, without any sampling, is competitive with amplified DP-SGD",
    source="Kairouz et al. 2021, abstract (asked of authors at equal epsilon, within .02 of DP-FedAvg)",
)
def ftrl_is_competitive(scores: Scores) -> Judgment:
    return scores.above(
        score("federated.accuracy", method="ordered"),
        score("federated.accuracy", method="sampled") - 0.02,
        each=["epsilon"],
    )


@findings.says(
    "The Edgeworth accountant needs up to 5.6 % less noise, which gives 1.1 % better models",
    source=(
        "Behnia et al. 2022 (EW-Tune), abstract (the noise, asked of exact accounting, which that accountant "
        "approaches: against a Renyi bound with the classic conversion it saves that much in most of four data sets of "
        "their size)"
    ),
)
def exact_accounting_saves_noise(scores: Scores) -> Judgment:
    return scores.at_most(score("counted.tight", noise="less"), score("counted.epsilon", noise="full"), most=["run"])


@findings.says(
    "Word-level privacy does not give document-level privacy: order, syntax and length stay visible",
    source=(
        "Igamberdiev 2023, section 2.2 (pitfalls; asked of the length: nearly every word of a review changes, and the "
        "number of words alone still finds a tenth of the 300 reviews, or more)"
    ),
)
def length_stays_visible(scores: Scores) -> Judgment:
    return all_of(
        scores.above(score("kept.words changed"), 0.9, each=["mechanism"]),
        scores.above(score("visible.about as long"), 0.9, each=["mechanism"]),
        scores.above(score("visible.linked by length"), 0.1, each=["mechanism"]),
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
