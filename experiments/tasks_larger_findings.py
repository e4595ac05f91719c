"""Statements about tasks_larger.toml, each with the function that judges it.

Those about BERT are asked of an encoder of its shape: `larger`.
"""

from __future__ import annotations

import math

from tacit.experiments.findings import Findings, Judgment, Scores
from tacit.experiments.quantities import score

findings = Findings()


@findings.says(
    "Sentiment, BERT: under privacy a frozen encoder with an LSTM is better than training everything",
    source="Igamberdiev 2023, section 4.5.1, tables 4.4 and 4.5",
)
def sentiment_bert_under_privacy_frozen(scores: Scores) -> Judgment:
    return scores.above(
        score("trained.score", model="larger", data="sentiment", strategy="frozen-lstm", epsilon=1),
        score("trained.score", model="larger", data="sentiment", strategy="no-embeddings", epsilon=1),
    )


@findings.says(
    "Sentiment, BERT: it is the best of all private models: better than the last two layers and than the head",
    source="Igamberdiev 2023, section 4.5.1",
)
def sentiment_bert_best_private_models(scores: Scores) -> Judgment:
    return scores.above(
        score("trained.score", model="larger", data="sentiment", strategy="frozen-lstm", epsilon=1),
        score("trained.score", model="larger", data="sentiment", strategy=("last-2", "head"), epsilon=1),
        each=["strategy"],
    )


@findings.says(
    "Sentiment, BERT: at epsilon 1 the last two layers (.74) are better than everything (.46)",
    source="Igamberdiev 2023, section 4.5.1",
)
def sentiment_bert_epsilon_last_two(scores: Scores) -> Judgment:
    return scores.above(
        score("trained.score", model="larger", data="sentiment", strategy="last-2", epsilon=1),
        score("trained.score", model="larger", data="sentiment", strategy="no-embeddings", epsilon=1),
    )


@findings.says(
    "Sentiment, BERT: without privacy training everything (.92) is better than the last two layers (.63) and the "
    "head (.73)",
    source="Igamberdiev 2023, section 4.5.1",
)
def sentiment_bert_without_privacy_training(scores: Scores) -> Judgment:
    return scores.above(
        score("trained.score", model="larger", data="sentiment", strategy="no-embeddings", epsilon=math.inf),
        score("trained.score", model="larger", data="sentiment", strategy=("last-2", "head"), epsilon=math.inf),
        each=["strategy"],
    )


@findings.says(
    "Sentiment: BERT as a whole collapses to one class at epsilon 1",
    source="Igamberdiev 2023, table 4.4",
)
def sentiment_bert_whole_collapses_one(scores: Scores) -> Judgment:
    return scores.above(
        score("trained.collapsed", model="larger", data="sentiment", strategy="no-embeddings", epsilon=1), 0.5
    )


@findings.says(
    "Inference, BERT: under privacy the last two layers are worse than the head alone",
    source="Igamberdiev 2023, section 4.5.2",
)
def inference_bert_under_privacy_last(scores: Scores) -> Judgment:
    return scores.below(
        score("trained.score", model="larger", data="inference", strategy="last-2", epsilon=1),
        score("trained.score", model="larger", data="inference", strategy="head", epsilon=1),
    )


@findings.says(
    "Inference, BERT: under privacy training everything is better than the last two layers",
    source="Igamberdiev 2023, section 4.5.2 and table 4.6",
)
def inference_bert_under_privacy_training(scores: Scores) -> Judgment:
    return scores.below(
        score("trained.score", model="larger", data="inference", strategy="last-2", epsilon=1),
        score("trained.score", model="larger", data="inference", strategy="no-embeddings", epsilon=1),
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
    "Parts of speech: with BERT at epsilon 1 the head alone (.62) is better than everything (.35)",
    source="Igamberdiev 2023, section 4.5.3",
)
def parts_speech_bert_epsilon_head(scores: Scores) -> Judgment:
    return scores.above(
        score("trained.score", model="larger", data="parts-of-speech-gum", strategy="head", epsilon=1),
        score("trained.score", model="larger", data="parts-of-speech-gum", strategy="no-embeddings", epsilon=1),
    )


@findings.says(
    "Questions, BERT: without privacy training everything (.73) is better than the last two layers (.64)",
    source="Igamberdiev 2023, section 4.5.4",
)
def questions_bert_without_privacy_training(scores: Scores) -> Judgment:
    return scores.above(
        score("trained.score", model="larger", data="questions", strategy="no-embeddings", epsilon=math.inf),
        score("trained.score", model="larger", data="questions", strategy="last-2", epsilon=math.inf),
    )


@findings.says(
    "Distilled encoders help sentiment under privacy",
    source="Igamberdiev 2023, section 4.6.3",
)
def distilled_encoders_help_sentiment_under(scores: Scores) -> Judgment:
    return scores.above(
        score("trained.score", model="distilled", data="sentiment", strategy="no-embeddings", epsilon=1),
        score("trained.score", model="larger", data="sentiment", strategy="no-embeddings", epsilon=1),
    )


@findings.says(
    "Distilled encoders help inference under privacy",
    source="Igamberdiev 2023, section 4.6.3",
)
def distilled_encoders_help_inference_under(scores: Scores) -> Judgment:
    return scores.above(
        score("trained.score", model="distilled", data="inference", strategy="no-embeddings", epsilon=1),
        score("trained.score", model="larger", data="inference", strategy="no-embeddings", epsilon=1),
    )


@findings.says(
    "Distilled encoders hurt tagging",
    source="Igamberdiev 2023, section 4.6.3",
)
def distilled_encoders_hurt_tagging(scores: Scores) -> Judgment:
    return scores.below(
        score("trained.score", model="distilled", data="entities", strategy="head", epsilon=1),
        score("trained.score", model="larger", data="entities", strategy="head", epsilon=1),
    )


@findings.says(
    "Entities: the BiLSTM becomes random only at epsilon 0.00837",
    source="Igamberdiev 2023, section 4.5.3",
)
def entities_bilstm_becomes_random(scores: Scores) -> Judgment:
    return scores.above(
        score("trained.collapsed", data="entities", strategy="bilstm", epsilon=1),
        score("trained.collapsed", data="entities", strategy="bilstm", epsilon=0.00837) + 0.5,
    )
