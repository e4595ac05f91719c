"""Statements about memorization.toml, each with the function that judges it."""

from __future__ import annotations

import math

from tacit.experiments.findings import Findings, Judgment, Scores
from tacit.experiments.quantities import score

findings = Findings()


@findings.says(
    "A model pretrained on Snips rewrites Snips far better than one pretrained on ATIS, also without noise",
    source="Igamberdiev 2023, section 5.4.4 and table 5.1",
)
def model_pretrained_snips_rewrites_snips(scores: Scores) -> Judgment:
    return scores.above(
        score("task.macro-F1", corpus="snips", data="snips", epsilon=math.inf),
        score("task.macro-F1", corpus="atis", data="snips", epsilon=math.inf) + 0.2,
    )


@findings.says(
    "A model pretrained on ATIS rewrites ATIS better than one pretrained on Snips, also without noise",
    source="Igamberdiev 2023, section 5.4.4 and table 5.1",
)
def model_pretrained_atis_rewrites_atis(scores: Scores) -> Judgment:
    return scores.above(
        score("task.macro-F1", corpus="atis", data="atis", epsilon=math.inf),
        score("task.macro-F1", corpus="snips", data="atis", epsilon=math.inf),
    )


@findings.says(
    "The gap on Snips is there at epsilon 1000 as well",
    source="Igamberdiev 2023, section 5.4.4 and table 5.1",
)
def gap_snips_there_epsilon_well(scores: Scores) -> Judgment:
    return scores.above(
        score("task.macro-F1", corpus="snips", data="snips", epsilon=1000),
        score("task.macro-F1", corpus="atis", data="snips", epsilon=1000) + 0.2,
    )


@findings.says(
    "The gap on Snips is there at epsilon 100 as well (.91 and .19)",
    source="Igamberdiev 2023, section 5.4.4 and table 5.1",
)
def gap_snips_there_epsilon_well_2(scores: Scores) -> Judgment:
    return scores.above(
        score("task.macro-F1", corpus="snips", data="snips", epsilon=100),
        score("task.macro-F1", corpus="atis", data="snips", epsilon=100) + 0.2,
    )


@findings.says(
    "The gap on ATIS is there at epsilon 1000 and 100 as well (.68 and .52, .62 and .52)",
    source="Igamberdiev 2023, section 5.4.4 and table 5.1",
)
def gap_atis_there_epsilon_well(scores: Scores) -> Judgment:
    return scores.above(
        score("task.macro-F1", corpus="atis", data="atis", epsilon=(1000, 100)),
        score("task.macro-F1", corpus="snips", data="atis", epsilon=(1000, 100)),
        each=["epsilon"],
    )


@findings.says(
    "Epsilon 1000 is as good as no noise at all, for every pair",
    source="Igamberdiev 2023, section 5.4.4 and table 5.1",
)
def epsilon_good_no_noise_every(scores: Scores) -> Judgment:
    return scores.near(
        score("task.macro-F1", epsilon=1000),
        score("task.macro-F1", epsilon=math.inf),
        within=0.05,
        each=["corpus", "data"],
    )


@findings.says(
    "Snips rewritten by the ATIS model is near random (.18 to .20, where random has .14), without noise as well",
    source="Igamberdiev 2023, section 5.4.4 and table 5.1",
    explanation=(
        "A probe still gets a little more out of what the ATIS model answers, without noise and at 1000: which flight"
        " it talks about depends a little on what was said. That is far from .94, but above chance."
    ),
)
def snips_rewritten_atis_model_near(scores: Scores) -> Judgment:
    return scores.near(
        score("task.macro-F1", corpus="atis", data="snips", epsilon=(math.inf, 1000, 100)),
        0.14,
        within=0.1,
        each=["epsilon"],
    )


@findings.says(
    "The cross models answer with sentences of their own pre-training text: outputs lie nearer to it than to the "
    "text they should rewrite (Snips rewritten by the ATIS model)",
    source="Igamberdiev 2023, section 5.4.4 and figure 5.3",
)
def cross_models_answer_sentences_their(scores: Scores) -> Judgment:
    return scores.above(score("repeated.nearer", corpus="atis", data="snips", epsilon=math.inf), 0.5)


@findings.says(
    "The same for ATIS rewritten by the Snips model",
    source="Igamberdiev 2023, section 5.4.4 and figure 5.3",
)
def same_atis_rewritten_snips_model(scores: Scores) -> Judgment:
    return scores.above(score("repeated.nearer", corpus="snips", data="atis", epsilon=math.inf), 0.5)


@findings.says(
    "Memorization stays when noise is added: at epsilon 1000 the cross models still repeat their pre-training text",
    source="Igamberdiev 2023, section 6.2 (on chapter 5)",
)
def memorization_stays_when_noise_added(scores: Scores) -> Judgment:
    return scores.above(score("repeated.nearer", corpus="atis", data="snips", epsilon=1000), 0.5)


@findings.says(
    "Utility falls as epsilon falls, for a model pretrained on the data itself",
    source="Igamberdiev 2023, section 5.4.4 and table 5.1",
)
def utility_falls_epsilon_falls_model(scores: Scores) -> Judgment:
    return scores.increases(score("task.macro-F1", corpus="snips", data="snips"), along="epsilon")


@findings.says(
    "The same on ATIS",
    source="Igamberdiev 2023, section 5.4.4 and table 5.1",
)
def same_atis(scores: Scores) -> Judgment:
    return scores.increases(score("task.macro-F1", corpus="atis", data="atis"), along="epsilon")


@findings.says(
    "Snips pretrained, ATIS rewritten: low at every epsilon",
    source="Igamberdiev 2023, section 5.4.4 and table 5.1",
)
def snips_pretrained_atis_rewritten_low(scores: Scores) -> Judgment:
    return scores.is_flat(score("task.macro-F1", corpus="snips", data="atis"), along="epsilon", within=0.1)


@findings.says(
    "At epsilon 10 and 1 performance is very low for all pairs on Snips",
    source="Igamberdiev 2023, section 5.4.4 and table 5.1",
)
def epsilon_performance_very_low_pairs(scores: Scores) -> Judgment:
    return scores.below(score("task.macro-F1", data="snips", epsilon=(1, 10)), 0.25, each=["corpus", "epsilon"])


@findings.says(
    "At epsilon 10 and 1 it does not matter any more what the model was pretrained on",
    source="Igamberdiev 2023, table 5.1",
)
def epsilon_does_not_matter_more(scores: Scores) -> Judgment:
    return scores.near(
        score("task.macro-F1", corpus="snips", epsilon=(1, 10)),
        score("task.macro-F1", corpus="atis", epsilon=(1, 10)),
        within=0.1,
        each=["data", "epsilon"],
    )


@findings.says(
    "Snips rewritten without noise by the model pretrained on it is about as good as the original text",
    source="Igamberdiev 2023, section 5.4.4 and table 5.1",
)
def snips_rewritten_without_noise_model(scores: Scores) -> Judgment:
    return scores.near(
        score("task.macro-F1", corpus="snips", data="snips", epsilon=math.inf),
        score("original.macro-F1", data="snips"),
        within=0.05,
    )


@findings.says(
    "ATIS rewritten without noise by the model pretrained on it is worse than the original text",
    source="Igamberdiev 2023, section 5.4.4 and table 5.1",
    explanation=(
        "with 1,000 training rows the classifier of the original text already misses most of the rare intents, and "
        "the two scores differ by less than chance"
    ),
)
def atis_rewritten_without_noise_model(scores: Scores) -> Judgment:
    return scores.below(
        score("task.macro-F1", corpus="atis", data="atis", epsilon=math.inf), score("original.macro-F1", data="atis")
    )
