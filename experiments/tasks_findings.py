"""Statements about tasks.toml, each with the function that judges it."""

from __future__ import annotations

import math

from tacit.experiments.findings import Findings, Judgment, Scores
from tacit.experiments.quantities import score

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
    "Sentiment, BERT: under privacy a frozen encoder with an LSTM is better than training everything",
    source="Igamberdiev 2023, section 4.5.1, tables 4.4 and 4.5",
)
def sentiment_bert_under_privacy_frozen(scores: Scores) -> Judgment:
    return scores.above(
        score("trained.score", model="bert", data="sentiment", strategy="frozen-lstm", epsilon=1),
        score("trained.score", model="bert", data="sentiment", strategy="no-embeddings", epsilon=1),
    )


@findings.says(
    "Sentiment, BERT: it is the best of all private models: better than the last two layers and than the head",
    source="Igamberdiev 2023, section 4.5.1",
)
def sentiment_bert_best_private_models(scores: Scores) -> Judgment:
    return scores.above(
        score("trained.score", model="bert", data="sentiment", strategy="frozen-lstm", epsilon=1),
        score("trained.score", model="bert", data="sentiment", strategy=("last-2", "head"), epsilon=1),
        each=["strategy"],
    )


@findings.says(
    "Sentiment, BERT: at epsilon 1 the last two layers (.74) are better than everything (.46)",
    source="Igamberdiev 2023, section 4.5.1",
)
def sentiment_bert_epsilon_last_two(scores: Scores) -> Judgment:
    return scores.above(
        score("trained.score", model="bert", data="sentiment", strategy="last-2", epsilon=1),
        score("trained.score", model="bert", data="sentiment", strategy="no-embeddings", epsilon=1),
    )


@findings.says(
    "Sentiment, BERT: without privacy training everything (.92) is better than the last two layers (.63) and the "
    "head (.73)",
    source="Igamberdiev 2023, section 4.5.1",
)
def sentiment_bert_without_privacy_training(scores: Scores) -> Judgment:
    return scores.above(
        score("trained.score", model="bert", data="sentiment", strategy="no-embeddings", epsilon=math.inf),
        score("trained.score", model="bert", data="sentiment", strategy=("last-2", "head"), epsilon=math.inf),
        each=["strategy"],
    )


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
    "Sentiment: BERT as a whole collapses to one class at epsilon 1",
    source="Igamberdiev 2023, table 4.4",
)
def sentiment_bert_whole_collapses_one(scores: Scores) -> Judgment:
    return scores.above(
        score("trained.collapsed", model="bert", data="sentiment", strategy="no-embeddings", epsilon=1), 0.5
    )


@findings.says(
    "Inference, BERT: under privacy the last two layers are worse than the head alone",
    source="Igamberdiev 2023, section 4.5.2",
)
def inference_bert_under_privacy_last(scores: Scores) -> Judgment:
    return scores.below(
        score("trained.score", model="bert", data="inference", strategy="last-2", epsilon=(1, 5)),
        score("trained.score", model="bert", data="inference", strategy="head", epsilon=(1, 5)),
        each=["epsilon"],
    )


@findings.says(
    "Inference, BERT: under privacy training everything is better than the last two layers",
    source="Igamberdiev 2023, section 4.5.2 and table 4.6",
)
def inference_bert_under_privacy_training(scores: Scores) -> Judgment:
    return scores.below(
        score("trained.score", model="bert", data="inference", strategy="last-2", epsilon=(1, 5)),
        score("trained.score", model="bert", data="inference", strategy="no-embeddings", epsilon=(1, 5)),
        each=["epsilon"],
    )


@findings.says(
    "Inference, distilled encoder: training everything is as good at every epsilon (.85)",
    source="Igamberdiev 2023, section 4.6.2",
)
def inference_distilled_encoder_training_everything(scores: Scores) -> Judgment:
    return scores.is_flat(
        score("trained.score", model="distilled", data="inference", strategy="no-embeddings", epsilon=(1, 2, 5)),
        along="epsilon",
        within=0.05,
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
    "Entities: the BiLSTM becomes random only at epsilon 0.00837",
    source="Igamberdiev 2023, section 4.5.3",
    reason="an epsilon that small needs noise thousands of times the clipping bound, which a run refuses.",
)


findings.not_testable(
    "WikiANN, BERT: with larger classes the head loses little by privacy (.81 to .75 at epsilon 1)",
    source="Igamberdiev 2023, section 4.5.3",
    reason="WikiANN is not at hand; the full size reads it if its files are there.",
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
    "Parts of speech: with BERT at epsilon 1 the head alone (.62) is better than everything (.35)",
    source="Igamberdiev 2023, section 4.5.3",
)
def parts_speech_bert_epsilon_head(scores: Scores) -> Judgment:
    return scores.above(
        score("trained.score", model="bert", data="parts-of-speech-gum", strategy="head", epsilon=1),
        score("trained.score", model="bert", data="parts-of-speech-gum", strategy="no-embeddings", epsilon=1),
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
    "Questions, BERT: without privacy training everything (.73) is better than the last two layers (.64)",
    source="Igamberdiev 2023, section 4.5.4",
)
def questions_bert_without_privacy_training(scores: Scores) -> Judgment:
    return scores.above(
        score("trained.score", model="bert", data="questions", strategy="no-embeddings", epsilon=math.inf),
        score("trained.score", model="bert", data="questions", strategy="last-2", epsilon=math.inf),
    )


@findings.says(
    "Distilled encoders help sentiment under privacy",
    source="Igamberdiev 2023, section 4.6.3",
)
def distilled_encoders_help_sentiment_under(scores: Scores) -> Judgment:
    return scores.above(
        score("trained.score", model="distilled", data="sentiment", strategy="no-embeddings", epsilon=1),
        score("trained.score", model="bert", data="sentiment", strategy="no-embeddings", epsilon=1),
    )


@findings.says(
    "Distilled encoders help inference under privacy",
    source="Igamberdiev 2023, section 4.6.3",
)
def distilled_encoders_help_inference_under(scores: Scores) -> Judgment:
    return scores.above(
        score("trained.score", model="distilled", data="inference", strategy="no-embeddings", epsilon=1),
        score("trained.score", model="bert", data="inference", strategy="no-embeddings", epsilon=1),
    )


@findings.says(
    "Distilled encoders hurt tagging",
    source="Igamberdiev 2023, section 4.6.3",
)
def distilled_encoders_hurt_tagging(scores: Scores) -> Judgment:
    return scores.below(
        score("trained.score", model="distilled", data="entities", strategy="head", epsilon=1),
        score("trained.score", model="bert", data="entities", strategy="head", epsilon=1),
    )


findings.not_testable(
    "No strategy is best everywhere: it has to be searched for each task and epsilon",
    source="Igamberdiev 2023, chapter 4",
    reason=("a check compares means and cannot say 'not the same everywhere'; the findings on single tasks show it."),
)


findings.not_testable(
    "A private epoch costs 2.4 to 41 times as much as one without privacy",
    source="Igamberdiev 2023, section 4.5.6 and table 4.13",
    reason=(
        "a time differs between equal runs, and a run that was killed must end with the same scores as an undisturbed"
        " one, so that times are no scores; the cost tables of the page compare the epochs of this run, and "
        "benchmarks/dp_step.py measures 1.35 times a step without privacy where the hooks of Opacus, which the thesis"
        " used, take 4 times (docs/training.md)."
    ),
)


findings.not_testable(
    "Training everything costs more under privacy than training the last two layers, in each task",
    source="Igamberdiev 2023, table 4.13",
    reason=(
        "a time differs between equal runs, and a run that was killed must end with the same scores as an undisturbed"
        " one, so that times are no scores; the cost tables of the page have both."
    ),
)


findings.not_testable(
    "An epoch of the distilled encoder costs .02 to .31 of one of BERT under privacy",
    source="Igamberdiev 2023, section 4.6.4 and table 4.15",
    reason=(
        "a time differs between equal runs, and a run that was killed must end with the same scores as an undisturbed"
        " one, so that times are no scores; the cost tables of the full size have both."
    ),
)


findings.not_testable(
    "Training biases alone is 2 to 30 times faster under privacy than training everything",
    source="Bu et al. 2022 (DP-BiTFiT), abstract",
    reason=(
        "a time differs between equal runs, and a run that was killed must end with the same scores as an undisturbed"
        " one, so that times are no scores; the cost tables of the full size have both."
    ),
)


findings.not_testable(
    "LoRA under privacy keeps 87.8 % of 90.2 % (MNLI, RoBERTa-Large, epsilon 6.7)",
    source="Yu et al. 2022, abstract",
    reason=(
        "Neither MNLI nor RoBERTa-Large is at hand; the strategy lora is run in the full size on the data sets of the"
        " thesis."
    ),
)


findings.not_testable(
    "Reparametrized gradients keep 83.9 % on average over four tasks at epsilon 8, with a loss below 5 %",
    source="Yu et al. 2021 (RGP), abstract",
    reason="The method is not built.",
)


findings.not_testable(
    "Noise on representations in the forward pass keeps 91.34 % on average over four tasks at an epsilon below 3,"
    " with a loss of 0.9 %",
    source="Du & Mi 2021 (DP-FP), abstract",
    reason="The method is not built: its proof has not been checked independently.",
)


findings.not_testable(
    "Noise on the output of a layer gains up to 7.7 points over DP-SGD, is 3 times cheaper, and lowers inversion "
    "by 88 and attribute inference by 41 points",
    source="Du et al. 2023 (DP-Forward), abstract",
    reason="The method is not built.",
)


findings.not_testable(
    "Ghost clipping needs hardly more memory than training without privacy",
    source="Li et al. 2021, abstract",
    reason=(
        "The memory of a step is not among the scores; a private step here uses these norms and works through 32 "
        "examples at a time (docs/training.md)."
    ),
)


findings.not_testable(
    "Book-keeping costs less than 1 % of memory and 1.03 times the operations (0.83 of the speed) of training "
    "without privacy",
    source="Bu et al. 2023, abstract",
    reason=(
        "No GPT-2 is trained here. The private step is built in this way; benchmarks/dp_step.py measures 1.27 times "
        "the time of a step without privacy for a small GPT-2 (docs/training.md)."
    ),
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


findings.not_testable(
    "DP-FTRL, without any sampling, is competitive with amplified DP-SGD",
    source="Kairouz et al. 2021, abstract",
    reason=(
        "No step of the experiments trains over users; benchmarks/federated.py compares the two on authors of blog "
        "posts (.630 and .632 at epsilon 8, docs/federated.md)."
    ),
)


findings.not_testable(
    "The Edgeworth accountant needs up to 5.6 % less noise, which gives 1.1 % better models",
    source="Behnia et al. 2022 (EW-Tune), abstract",
    reason=(
        "That accountant is not built; epsilons here are counted exactly (privacy loss distributions), which cannot "
        "be improved on."
    ),
)
