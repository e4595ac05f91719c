"""Statements about tasks.toml, each with the function that judges it."""

from __future__ import annotations

import math
from statistics import NormalDist

from tacit.experiments.findings import Findings, Judgment, Scores
from tacit.experiments.quantities import score
from tacit.experiments.verdicts import Word, not_testable

findings = Findings()


@findings.says(
    "Privacy costs quality in every task: epsilon 1 is below no privacy",
    source="Igamberdiev 2023, section 4.5.5",
    explanation=(
        "Where an encoder that is hardly trained stays at chance without privacy too (RTE), there is nothing to lose."
    ),
)
def privacy_costs_quality_every_task(scores: Scores) -> Judgment:
    return scores.below(score("trained.score", epsilon=1), score("trained.score", epsilon=math.inf), each=["data"])


@findings.says(
    "A larger epsilon gives a better model, for most data sets (asked of the head, which is run at all epsilons)",
    source="Igamberdiev 2023, section 4.5.5",
)
def larger_epsilon_gives_better_model(scores: Scores) -> Judgment:
    return scores.increases(score("trained.score", strategy="head"), along="epsilon", most=["data"])


@findings.says(
    "Sentiment, distilled encoder: without privacy training everything (.92) is better than the last two layers (.84)",
    source="Igamberdiev 2023, section 4.6.1",
)
def sentiment_distilled_encoder_without_privacy(scores: Scores) -> Judgment:
    return scores.above(
        score("trained.score", model="distilled", data="sentiment", strategy="no-embeddings", epsilon=math.inf),
        score("trained.score", model="distilled", data="sentiment", strategy="last-2", epsilon=math.inf),
    )


@findings.says(
    "Sentiment, distilled encoder: training everything keeps most of the quality (.92 to .85 at epsilon 1)",
    source="Igamberdiev 2023, section 4.6.2",
    explanation=(
        "The thesis trains on 25,000 reviews, the quick size once on 4,000 phrases: 16 steps, each with much more "
        "noise beside what the rows say, leave a model that always says the same class. With 6,000 phrases, or 12,000"
        " at a smaller rate, it was no better."
    ),
)
def sentiment_distilled_encoder_training_everything(scores: Scores) -> Judgment:
    return scores.above(
        score("trained.score", model="distilled", data="sentiment", strategy="no-embeddings", epsilon=1),
        score("trained.score", model="distilled", data="sentiment", strategy="no-embeddings", epsilon=math.inf) - 0.1,
    )


@findings.says(
    "Inference, distilled encoder: the last two layers lose nothing by privacy (.83 at every epsilon)",
    source="Igamberdiev 2023, section 4.6.2",
)
def inference_distilled_encoder_last_two(scores: Scores) -> Judgment:
    return scores.near(
        score("trained.score", model="distilled", data="inference", strategy="last-2", epsilon=1),
        score("trained.score", model="distilled", data="inference", strategy="last-2", epsilon=math.inf),
        within=0.05,
    )


@findings.says(
    "Entities: accuracy hides the loss, macro-F1 shows it (.85 and .18 at epsilon 1 with BERT; here with each "
    "strategy)",
    source="Igamberdiev 2023, section 4.5.3",
)
def entities_accuracy_hides_loss_macro(scores: Scores) -> Judgment:
    return scores.above(
        score("trained.accuracy", data="entities", epsilon=1),
        score("trained.macro-F1", data="entities", epsilon=1) + 0.3,
        each=["strategy"],
    )


@findings.says(
    "Entities, distilled encoder: at epsilon 1 all strategies have nearly the same low macro-F1 (.13 to .14)",
    source="Igamberdiev 2023, section 4.6.3",
)
def entities_distilled_encoder_epsilon_strategies(scores: Scores) -> Judgment:
    return scores.near(
        score("trained.macro-F1", model="distilled", data="entities", strategy="head", epsilon=1),
        score("trained.macro-F1", model="distilled", data="entities", strategy="last-2", epsilon=1),
        within=0.05,
    )


@findings.says(
    "Skewed classes collapse: at epsilon 1 most kinds of entities are never found (7 of 9 tags have an F1 of .01 "
    "or less with BERT; here with each strategy)",
    source="Igamberdiev 2023, section 4.5.3",
    explanation=(
        "The head alone, with ten passes over the rows, loses about half of the 13 tags; the other strategies lose "
        "nearly all."
    ),
)
def skewed_classes_collapse_epsilon_most(scores: Scores) -> Judgment:
    return scores.above(score("trained.lost classes", data="entities", epsilon=1), 0.5, each=["strategy"])


@findings.says(
    "Entities: a BiLSTM says O to nearly every word at epsilon 1",
    source="Igamberdiev 2023, table 4.11",
)
def entities_bilstm_says_o_nearly(scores: Scores) -> Judgment:
    return scores.above(score("trained.collapsed", data="entities", strategy="bilstm", epsilon=1), 0.5)


findings.not_testable(
    "WikiANN, BERT: with larger classes the head loses little by privacy (.81 to .75 at epsilon 1)",
    source="Igamberdiev 2023, section 4.5.3",
    reason=(
        "WikiANN is not at hand (wikiann-en/train.jsonl and test.jsonl); the full size reads it if its files are there."
    ),
)


@findings.says(
    "Parts of speech: at epsilon 1 the six rarest of 17 tags are lost (BERT there, each encoder here)",
    source="Igamberdiev 2023, table 4.8",
    explanation="Which of the rare ones survive is decided by a few dozen test words.",
)
def parts_speech_epsilon_six_rarest(scores: Scores) -> Judgment:
    return scores.at_least(
        score("trained.lost classes", data="parts-of-speech", strategy="no-embeddings", epsilon=1), 0.35, each=["model"]
    )


@findings.says(
    "Parts of speech: the six frequent tags NOUN, PUNCT, VERB, PRON, ADP and DET keep an F1 of .62 to .87 at "
    "epsilon 1 (their mean; BERT there, each encoder here)",
    source="Igamberdiev 2023, table 4.8",
    explanation=(
        "The quick size reads the 12,544 sentences once; with fewer of them, or a smaller rate, even the frequent "
        "tags are lost."
    ),
)
def parts_speech_six_frequent_tags(scores: Scores) -> Judgment:
    return scores.above(
        score("trained.F1 of NOUN", data="parts-of-speech", strategy="no-embeddings", epsilon=1)
        + score("trained.F1 of PUNCT", data="parts-of-speech", strategy="no-embeddings", epsilon=1)
        + score("trained.F1 of VERB", data="parts-of-speech", strategy="no-embeddings", epsilon=1)
        + score("trained.F1 of PRON", data="parts-of-speech", strategy="no-embeddings", epsilon=1)
        + score("trained.F1 of ADP", data="parts-of-speech", strategy="no-embeddings", epsilon=1)
        + score("trained.F1 of DET", data="parts-of-speech", strategy="no-embeddings", epsilon=1),
        3.72,
        each=["model"],
    )


@findings.says(
    "Parts of speech: without privacy training everything is best (.95 with both encoders)",
    source="Igamberdiev 2023, sections 4.5.3 and 4.6.1",
)
def parts_speech_without_privacy_training(scores: Scores) -> Judgment:
    return scores.above(
        score("trained.score", data="parts-of-speech", strategy="no-embeddings", epsilon=math.inf),
        score("trained.score", data="parts-of-speech", strategy=("head", "last-2"), epsilon=math.inf),
        each=["model", "strategy"],
    )


@findings.says(
    "Distilled encoder: tagging loses more by privacy than sentiment does (training everything, .95 to .51 and "
    ".92 to .85)",
    source="Igamberdiev 2023, section 4.6.2",
    explanation=(
        "In the quick size training everything loses sentiment as well: 16 steps on 4,000 phrases can leave a model "
        "that always says the same class."
    ),
)
def distilled_encoder_tagging_loses_more(scores: Scores) -> Judgment:
    return scores.above(
        score("trained.score", model="distilled", data="parts-of-speech", strategy="no-embeddings", epsilon=math.inf)
        - score("trained.score", model="distilled", data="parts-of-speech", strategy="no-embeddings", epsilon=1),
        score("trained.score", model="distilled", data="sentiment", strategy="no-embeddings", epsilon=math.inf)
        - score("trained.score", model="distilled", data="sentiment", strategy="no-embeddings", epsilon=1),
    )


@findings.says(
    "Questions: every private model answers that there is no answer (BERT there, each encoder here)",
    source="Igamberdiev 2023, section 4.5.4",
)
def questions_every_private_model_answers(scores: Scores) -> Judgment:
    return scores.above(
        score("trained.unanswered", data="questions", epsilon=(1, 2, 5)), 0.95, each=["strategy", "epsilon"]
    )


@findings.says(
    "Questions: without privacy the last two layers (.64) are better than the head alone (.50; BERT there, each "
    "encoder here)",
    source="Igamberdiev 2023, section 4.5.4",
)
def questions_without_privacy_last_two(scores: Scores) -> Judgment:
    return scores.above(
        score("trained.score", data="questions", strategy="last-2", epsilon=math.inf),
        score("trained.score", data="questions", strategy="head", epsilon=math.inf),
        each=["model"],
    )


@findings.says(
    "No strategy is best everywhere: it has to be searched for each task and epsilon",
    source=(
        "Igamberdiev 2023, chapter 4 (each strategy that was run on several tasks is clearly below another one in one "
        "of them at least)"
    ),
)
def no_strategy_best_everywhere(scores: Scores) -> Judgment:
    frame = scores.frame
    frame = frame[frame["measure"].eq("score") & frame["low"].notna()] if len(frame) else frame
    if not len(frame):
        return not_testable("no task was trained")
    beaten: dict[str, str] = {}
    comparisons = sum(len(cells) - 1 for _, cells in frame.groupby(["model", "data", "epsilon"]))
    reach = NormalDist().inv_cdf(1 - 0.025 / max(1, comparisons)) / 1.96
    for place, cells in frame.groupby(["model", "data", "epsilon"]):
        best = cells.loc[cells["value"].idxmax()]
        for _, cell in cells.iterrows():
            widths = [(row["high"] - row["low"]) / 2 for row in (cell, best)]
            if best["value"] - cell["value"] > reach * math.hypot(*widths):
                beaten.setdefault(cell["strategy"], f"{place[1]}, epsilon {place[2]:g}, by {best['strategy']}")
    several = frame.groupby("strategy")["data"].nunique()
    asked = sorted(strategy for strategy, tasks in several.items() if tasks > 1)
    detail = "; ".join(f"{strategy}: {beaten.get(strategy, 'never clearly below')}" for strategy in asked)
    if all(strategy in beaten for strategy in asked):
        return Judgment(word=Word.AGREE, detail=detail)
    return Judgment(word=Word.UNDECIDED, detail=detail, leaning=len(asked) - len(beaten) < len(asked) / 2)


findings.not_testable(
    "LoRA under privacy keeps 87.8 % of 90.2 % (MNLI, RoBERTa-Large, epsilon 6.7)",
    source="Yu et al. 2022, abstract",
    reason=(
        "Neither MNLI (393,000 pairs) nor the weights of RoBERTa-Large are at hand; the strategy lora is run in the "
        "full size on the data sets of the"
        " thesis."
    ),
)


findings.not_testable(
    "Reparametrized gradients keep 83.9 % on average over four tasks at epsilon 8, with a loss below 5 %",
    source="Yu et al. 2021 (RGP), abstract",
    reason=(
        "The number is an average over MNLI, QQP, QNLI and SST-2 with a pretrained BERT: MNLI, QQP and its weights are "
        "not at hand. The method is not built."
    ),
)


findings.not_testable(
    "Noise on representations in the forward pass keeps 91.34 % on average over four tasks at an epsilon below 3,"
    " with a loss of 0.9 %",
    source="Du & Mi 2021 (DP-FP), abstract",
    reason=(
        "The number is an average over four tasks with a pretrained (Ro)BERT, whose weights and two of whose tasks "
        "(MNLI, "
        "QQP) are not at hand. The method is not built: its proof has not been checked independently."
    ),
)


findings.not_testable(
    "Noise on the output of a layer gains up to 7.7 points over DP-SGD, is 3 times cheaper, and lowers inversion "
    "by 88 and attribute inference by 41 points",
    source="Du et al. 2023 (DP-Forward), abstract",
    reason=("The numbers are those of a pretrained BERT-base, whose weights are not at hand. The method is not built."),
)


findings.not_testable(
    "BERT-Large pretrained with batches of two million has 60.5 % masked-word accuracy at epsilon 5.36, of about "
    "70 % without privacy",
    source="Anil et al. 2021, abstract",
    reason="Private pretraining of that size needs hundreds of accelerators.",
)


findings.not_testable(
    "Hierarchical classification: transformers are best on large data, convolutions on small",
    source="Wunderlich et al. 2021, as told by the survey",
    reason="No data set with a hierarchy of classes and no convolutional network is part of the experiments.",
)
