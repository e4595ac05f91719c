"""Statements about all_systems.toml, each with the function that judges it."""

from __future__ import annotations

from tacit.experiments.findings import Findings, Judgment, Scores
from tacit.experiments.quantities import score, share

findings = Findings()


@findings.says(
    "SanText keeps more than Laplace noise on the vector at the same epsilon",
    source="Yue et al. 2021, section 5.2 and table 1",
)
def santext_keeps_more_laplace_noise(scores: Scores) -> Judgment:
    return scores.above(
        score("task.macro-F1", mechanism="santext", epsilon=2500),
        score("task.macro-F1", mechanism="laplace", epsilon=2500),
    )


@findings.says(
    "Below a document epsilon of 250 every published system is at chance level (a tenth of the way from the floor"
    " to the original text, at most)",
    source="what Igamberdiev 2023, table 6.5, finds for ADePT and DP-BART, asked of all systems",
    ours=True,
    explanation=(
        "The paraphraser is the exception: at 100 it keeps most of what the original text gives. It spends its budget"
        " on twelve tokens that a language model finds likely, not on the vocabulary or on the numbers of a latent. "
        "All other published systems are at chance level at both epsilons."
    ),
)
def below_document_epsilon_every_published(scores: Scores) -> Judgment:
    return scores.below(
        share(
            score(
                "task.macro-F1",
                mechanism=(
                    "santext",
                    "tem",
                    "two-budgets",
                    "laplace",
                    "vickrey",
                    "mahalanobis",
                    "brr",
                    "adept",
                    "clv",
                    "pr",
                    "pr+",
                    "paraphrase",
                ),
                epsilon=(10, 100),
            )
        ),
        0.1,
        each=["mechanism", "epsilon"],
    )


@findings.says(
    "At a document epsilon of 10 the codebook is far above every other system",
    source="docs/codebook.md",
    ours=True,
)
def document_epsilon_codebook_far_above(scores: Scores) -> Judgment:
    return scores.above(
        score("task.macro-F1", mechanism="codebook", epsilon=10),
        score(
            "task.macro-F1",
            mechanism=(
                "santext",
                "tem",
                "two-budgets",
                "laplace",
                "vickrey",
                "mahalanobis",
                "brr",
                "adept",
                "clv",
                "pr",
                "pr+",
                "narrow",
            ),
            epsilon=10,
        )
        + 0.3,
        each=["mechanism"],
    )


@findings.says(
    "At 500 the narrow latent is far above the word mechanisms: one promise for a document is worth more than "
    "twenty for its tokens",
    source="docs/latent.md",
    ours=True,
)
def narrow_latent_far_above_word(scores: Scores) -> Judgment:
    return scores.above(
        score("task.macro-F1", mechanism="narrow", epsilon=500),
        score(
            "task.macro-F1",
            mechanism=("santext", "tem", "two-budgets", "laplace", "vickrey", "mahalanobis", "brr"),
            epsilon=500,
        )
        + 0.2,
        each=["mechanism"],
    )


@findings.says(
    "Word mechanisms become useful only where their document epsilon is nominal: at 2500, not at 100",
    source="worked out from what epsilon means in Riecker 2023",
    ours=True,
)
def word_mechanisms_become_useful_only(scores: Scores) -> Judgment:
    return scores.above(
        score(
            "task.macro-F1",
            mechanism=("santext", "tem", "two-budgets", "laplace", "vickrey", "mahalanobis", "brr"),
            epsilon=2500,
        ),
        score(
            "task.macro-F1",
            mechanism=("santext", "tem", "two-budgets", "laplace", "vickrey", "mahalanobis", "brr"),
            epsilon=100,
        )
        + 0.2,
        each=["mechanism"],
    )


@findings.says(
    "Linkage grows with epsilon",
    source="the definition of differential privacy",
    ours=True,
    explanation=(
        "From about epsilon 50 on the codebook always answers with the cell of the text, so that its linkage grows up"
        " to there and stays the same."
    ),
)
def linkage_grows_epsilon(scores: Scores) -> Judgment:
    return scores.increases(
        score(
            "linked.rate", mechanism=("santext", "tem", "laplace", "adept", "clv", "pr", "pr+", "narrow", "codebook")
        ),
        along="epsilon",
        each=["mechanism"],
    )


@findings.says(
    "At a document epsilon of 10 the systems at chance level for the task are so for the attacker as well",
    source="what Riecker 2023, chapter 7, says about utility and privacy, asked of linkage",
    ours=True,
)
def document_epsilon_systems_chance_level(scores: Scores) -> Judgment:
    return scores.below(
        score(
            "linked.rate",
            mechanism=(
                "santext",
                "tem",
                "two-budgets",
                "laplace",
                "vickrey",
                "mahalanobis",
                "brr",
                "adept",
                "clv",
                "pr",
                "pr+",
                "narrow",
            ),
            epsilon=10,
        ),
        0.1,
        each=["mechanism"],
    )


@findings.says(
    "The codebook, which keeps the meaning at a document epsilon of 10, is linked by it: odds of e^10 allow that "
    "among 150 texts",
    source="the definition of differential privacy, and docs/codebook.md",
    ours=True,
)
def codebook_keeps_meaning_document_epsilon(scores: Scores) -> Judgment:
    return scores.above(
        score("linked.rate", mechanism="codebook", epsilon=10),
        score(
            "linked.rate",
            mechanism=(
                "santext",
                "tem",
                "two-budgets",
                "laplace",
                "vickrey",
                "mahalanobis",
                "brr",
                "adept",
                "clv",
                "pr",
                "pr+",
                "narrow",
            ),
            epsilon=10,
        )
        + 0.1,
        each=["mechanism"],
    )


@findings.says(
    "Equal guarantees are not equal attacks: at 2500 the narrow latent is linked far more often than Laplace "
    "noise on words",
    source="what Riecker 2023 says about guarantees and empirical privacy, asked of linkage",
    ours=True,
)
def equal_guarantees_not_equal_attacks(scores: Scores) -> Judgment:
    return scores.above(
        score("linked.rate", mechanism="narrow", epsilon=2500),
        score("linked.rate", mechanism="laplace", epsilon=2500) + 0.1,
    )


@findings.says(
    "The second neighbor (Vickrey) leaves fewer words in place than the nearest one",
    source="follows from the definition in Xu et al. 2021b",
    ours=True,
)
def second_neighbor_vickrey_leaves_fewer(scores: Scores) -> Judgment:
    return scores.below(
        score("kept.words kept in place", mechanism="vickrey", epsilon=2500),
        score("kept.words kept in place", mechanism="laplace", epsilon=2500),
    )


@findings.says(
    "No plain epsilon for a document follows from the promises of SanText+ and CusText",
    source="docs/guarantee.md",
    ours=True,
)
def no_plain_epsilon_document_follows(scores: Scores) -> Judgment:
    return scores.at_most(score("conversions.converted", mechanism=("santext+", "custext")), 0, each=["mechanism"])


@findings.says(
    "Two systems cannot spend a large budget: truncated Gumbel drawn at 2500 and the paraphraser drawn at 500 "
    "really have far less",
    source="docs/paraphrase.md, docs/words.md",
    ours=True,
)
def two_systems_cannot_spend_large(scores: Scores) -> Judgment:
    return scores.below(
        score("conversions.document epsilon", mechanism=("truncated-gumbel", "paraphrase"), epsilon=(500, 2500)),
        score("conversions.document epsilon", mechanism="laplace", epsilon=(500, 2500)) - 100,
        each=["mechanism", "epsilon"],
    )
