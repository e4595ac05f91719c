"""Statements about dp_bart_ablations.toml, each with the function that judges it."""

from __future__ import annotations

import math

from tacit.experiments.findings import Findings, Judgment, Scores
from tacit.experiments.quantities import LARGEST, SMALLEST, score, share

findings = Findings()


@findings.says(
    "Pruning 25 % of the neurons is nearly free after some further training (BLEU without noise falls by at most 5)",
    source="Igamberdiev 2023, section 6.3.4",
    explanation=(
        "Most of the loss seems to come from training on 6,000 other questions and from a fourth of the C: from "
        "the first stage to the fourth BLEU hardly falls (47, 48, 46, 45), and a classifier loses nothing (.91, .92, "
        ".91, .92 without noise)."
    ),
)
def first_stage_is_nearly_free(scores: Scores) -> Judgment:
    return scores.at_least(
        score("kept.BLEU", data="snips", mechanism="staged", stage=1, epsilon=math.inf),
        score("kept.BLEU", data="snips", mechanism="clv", epsilon=math.inf) - 5,
    )


@findings.says(
    "About 75 % is best: the fifth stage (76 %) beats the others at epsilon 1000",
    source="Igamberdiev 2023, section 6.3.4",
    explanation=(
        "The fifth is better than the second, third and seventh; the first is better than all, with one training and "
        "one draw of each. A BART of width 192 has less to prune than bart-base."
    ),
)
def three_quarters_are_best(scores: Scores) -> Judgment:
    return scores.above(
        score("task.macro-F1", data="snips", mechanism="staged", stage=5, epsilon=1000),
        score("task.macro-F1", data="snips", mechanism="staged", stage=(1, 2, 3, 7), epsilon=1000),
        each=["stage"],
    )


@findings.says(
    "Pruning lowers the BLEU of texts rewritten without noise, more with every stage",
    source="Igamberdiev 2023, section 6.3.4 (less expressivity with less dimensions)",
)
def pruning_lowers_bleu_by_stages(scores: Scores) -> Judgment:
    return scores.decreases(score("kept.BLEU", data="snips", mechanism="staged", epsilon=math.inf), along="stage")


@findings.says(
    "Pruning by the keys of the first decoder layer beats values, later layers, random pruning and bottlenecks",
    source="Igamberdiev 2023, section 6.3.4",
)
def first_keys_beat_other_rules(scores: Scores) -> Judgment:
    return scores.above(
        score("kept.BLEU", data="snips", mechanism="ruled", rule="first keys", epsilon=1000),
        score(
            "kept.BLEU", data="snips", mechanism="ruled", epsilon=1000,
            rule=("second keys", "first values", "random", "bottleneck"),
        ),
        each=["rule"],
    )  # fmt: skip


@findings.says(
    "Clipping the norm of all encoder outputs destroys the representations of BART, and further training does not help "
    "(less than half of the BLEU that clamping leaves, without noise)",
    source="Igamberdiev 2023, section 6.3",
    explanation="Further training is 150 steps in the quick size.",
)
def clipped_norm_destroys(scores: Scores) -> Judgment:
    return scores.below(
        score("kept.BLEU", data="snips", mechanism="normed", epsilon=math.inf),
        score("kept.BLEU", data="snips", mechanism="clv", epsilon=math.inf) * 0.5,
    )


@findings.says(
    "The same extra training with noise does not help CLV",
    source="Igamberdiev 2023, section 6.3.5",
    explanation=(
        "It does here. The latent of our BART has 3,840 numbers in place of 15,360, and with the noise it gets to know "
        "questions to an assistant, which is what Snips is made of, and a smaller C."
    ),
)
def noise_does_not_help_clv(scores: Scores) -> Judgment:
    return scores.at_most(
        score("task.macro-F1", data="snips", mechanism="clv+", epsilon=1000),
        score("task.macro-F1", data="snips", mechanism="clv", epsilon=1000),
    )


@findings.says(
    "The smaller epsilon, the more steps DP-BART-PR+ needs (by the prediction loss: the later steps lower it more)",
    source="Igamberdiev 2023, sections 6.4.3 and 6.6.2",
)
def smaller_epsilon_needs_more_steps(scores: Scores) -> Judgment:
    return scores.above(
        score("noisy.held-out loss", epsilon=SMALLEST, steps=SMALLEST)
        - score("noisy.held-out loss", epsilon=SMALLEST, steps=LARGEST),
        score("noisy.held-out loss", epsilon=LARGEST, steps=SMALLEST)
        - score("noisy.held-out loss", epsilon=LARGEST, steps=LARGEST),
    )


@findings.says(
    "At epsilon 750 DP-BART-PR+ sometimes reproduces an input word for word",
    source="Igamberdiev 2023, section 6.5.3",
)
def inputs_are_reproduced(scores: Scores) -> Judgment:
    return scores.above(score("kept.verbatim copies", data="snips", mechanism="pr+", epsilon=750), 0.0)


@findings.says(
    "ADePT that was trained without clipping cannot rewrite at all with it",
    source="Igamberdiev 2023, section 6.4",
    explanation="With clipping it cannot rewrite much either after the 600 steps of the quick size.",
)
def unclipped_adept_cannot_rewrite(scores: Scores) -> Judgment:
    return scores.below(
        score("kept.BLEU", data="snips", mechanism="learned", learned="unclipped", clipping="C = 1", epsilon=math.inf),
        score("kept.BLEU", data="snips", mechanism="learned", learned="clipped", clipping="C = 1", epsilon=math.inf)
        * 0.5,
    )


@findings.says(
    "A larger data set does not necessarily give better results at small epsilons (sixteen times as many texts gain "
    "less than a tenth of the way from the floor to the original text, for most systems)",
    source="Igamberdiev 2023, section 6.5.1",
    explanation=(
        "From 100 to 1,600 texts of one data set it does, where a text says anything (not with CLV): a classifier "
        "averages their noise. The thesis compares data sets of thousands of texts, which differ in more than size."
    ),
)
def more_texts_do_not_help(scores: Scores) -> Judgment:
    return scores.below(
        share(score("task.macro-F1", data="snips_fourfold", mechanism=("adept", "clv", "pr"), epsilon=250)),
        share(score("task.macro-F1", data="snips_fourth", mechanism=("adept", "clv", "pr"), epsilon=250)) + 0.1,
        most=["mechanism"],
    )


@findings.says(
    "With a C as large as its states, an ADePT that was trained without clipping rewrites as one that was trained "
    "with it",
    source="docs/latent.md",
    ours=True,
)
def unclipped_adept_with_its_own_c(scores: Scores) -> Judgment:
    return scores.at_least(
        score(
            "kept.BLEU", data="snips", mechanism="learned", learned="unclipped", clipping="C of the model",
            epsilon=math.inf,
        ),
        score("kept.BLEU", data="snips", mechanism="learned", learned="clipped", clipping="C = 1", epsilon=math.inf)
        - 5,
    )  # fmt: skip


@findings.says(
    "Word vectors help a small ADePT (BLEU without noise, both trained without clipping)",
    source="Igamberdiev 2023, section 6.4.3 takes them",
    ours=True,
)
def vectors_help_adept(scores: Scores) -> Judgment:
    return scores.above(
        score(
            "kept.BLEU", data="snips", mechanism="learned", learned="unclipped with vectors",
            clipping="C of the model", epsilon=math.inf,
        ),
        score(
            "kept.BLEU", data="snips", mechanism="learned", learned="unclipped", clipping="C of the model",
            epsilon=math.inf,
        ),
    )  # fmt: skip
