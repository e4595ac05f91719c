"""Statements about embedding_matched.toml, each with the function that judges it."""

from __future__ import annotations

from tacit.experiments.findings import Findings, Judgment, Scores
from tacit.experiments.quantities import score

findings = Findings()


@findings.says(
    "Elliptical (Mahalanobis) noise has better privacy statistics than round noise at equal utility",
    source="Xu et al. 2020, as reported by Riecker 2023, chapter 3",
    explanation=(
        "On the blog posts both keep about as much of the task on test rows (.57 and .70), and elliptical noise keeps "
        "more words. On the drug reviews the search ended at unequal utilities (1.13 and .13 on test rows): 159 "
        "validation rows are too few for it, and that group says nothing."
    ),
)
def elliptical_noise_hides_more_words(scores: Scores) -> Judgment:
    return scores.below(
        score("matched.words kept", hold="task", mechanism="mahalanobis"),
        score("matched.words kept", hold="task", mechanism="laplace+nn"),
        each=["data"],
    )


@findings.says(
    "Noise for any two words at once (univariate Laplace) keeps less of the task than multivariate noise at equal "
    "privacy",
    source="Riecker 2023, chapter 2, takes metric privacy for this reason",
    ours=True,
)
def univariate_noise_keeps_less(scores: Scores) -> Judgment:
    return scores.below(
        score("matched.task kept", hold="attacker", mechanism="univariate"),
        score("matched.task kept", hold="attacker", mechanism="laplace"),
        each=["data"],
    )


@findings.says(
    "At equal privacy the nearest words keep as much of the task as the noisy vectors (.1 of the way)",
    source="docs/words.md",
    ours=True,
)
def words_keep_as_much_as_vectors(scores: Scores) -> Judgment:
    return scores.at_least(
        score("matched.task kept", hold="attacker", mechanism="laplace+nn"),
        score("matched.task kept", hold="attacker", mechanism="laplace") - 0.1,
        each=["data"],
    )


@findings.says(
    "Normalization to unit length changes nothing that matters at equal privacy (.1 of the way)",
    source="docs/vectors.md",
    ours=True,
)
def unit_norm_changes_little(scores: Scores) -> Judgment:
    return scores.near(
        score("matched.task kept", hold="attacker", mechanism="laplace+unit"),
        score("matched.task kept", hold="attacker", mechanism="laplace"),
        within=0.1,
        each=["data"],
    )
