"""Statements about santext.toml, each with the function that judges it."""

from __future__ import annotations

from tacit.experiments.findings import Findings, Judgment, Scores
from tacit.experiments.quantities import score

findings = Findings()


@findings.says(
    "SanText gets more useful with epsilon, on every task",
    source="Yue et al. 2021, table 1",
    explanation=(
        "Up to epsilon 3 of the 50-d vectors nearly all words change and the scores stay at the floor, where chance "
        "decides their order; from epsilon 4 on they rise."
    ),
)
def santext_gets_more_useful_epsilon(scores: Scores) -> Judgment:
    return scores.increases(score("task.score", mechanism="santext"), along="epsilon", each=["data"])


@findings.says(
    "SanText+ gets more useful with epsilon, on every task",
    source="Yue et al. 2021, table 1",
)
def santext_plus_gets_more_useful(scores: Scores) -> Judgment:
    return scores.increases(score("task.score", mechanism="santext+"), along="epsilon", each=["data"])


@findings.says(
    "SanText+ is more useful than SanText at epsilon 1, on every task",
    source="Yue et al. 2021, section 5.2 and table 1",
    explanation=(
        "A probe trained on about a thousand rows gets next to nothing out of either text at this epsilon of the 50-d"
        " vectors, so that the order is left to chance; the paper fine-tunes BERT on 67,349 and 104,743 rows."
    ),
)
def santext_plus_more_useful_santext(scores: Scores) -> Judgment:
    return scores.above(
        score("task.score", mechanism="santext+", epsilon=1),
        score("task.score", mechanism="santext", epsilon=1),
        each=["data"],
    )


@findings.says(
    "SanText+ is more useful than SanText at epsilon 2, on every task",
    source="Yue et al. 2021, section 5.2 and table 1",
    explanation=(
        "A probe trained on about a thousand rows gets next to nothing out of either text at this epsilon of the 50-d"
        " vectors, so that the order is left to chance; the paper fine-tunes BERT on 67,349 and 104,743 rows."
    ),
)
def santext_plus_more_useful_santext_epsilon(scores: Scores) -> Judgment:
    return scores.above(
        score("task.score", mechanism="santext+", epsilon=2),
        score("task.score", mechanism="santext", epsilon=2),
        each=["data"],
    )


@findings.says(
    "SanText+ is more useful than SanText at epsilon 3, on every task",
    source="Yue et al. 2021, section 5.2 and table 1",
)
def santext_plus_more_useful_santext_epsilon_every(scores: Scores) -> Judgment:
    return scores.above(
        score("task.score", mechanism="santext+", epsilon=3),
        score("task.score", mechanism="santext", epsilon=3),
        each=["data"],
    )


@findings.says(
    "SanText+ is more useful than the noise of Feyisetan et al. at each epsilon, on every task",
    source="Yue et al. 2021, section 5.2 and table 1",
    explanation="On SST-2 and STS-B it is. On QNLI both are at the floor, where chance decides their order.",
)
def santext_plus_more_useful_noise(scores: Scores) -> Judgment:
    return scores.above(
        score("task.score", mechanism="santext+", epsilon=(1, 2, 3)),
        score("task.score", mechanism="feyisetan", epsilon=(1, 2, 3)),
        each=["data", "epsilon"],
    )


@findings.says(
    "SanText is more useful than the noise of Feyisetan et al. at epsilon 1, on every task",
    source="Yue et al. 2021, section 5.2 and table 1",
    explanation=(
        "The published differences (.0002, .0150 and .0210) are smaller than the chance error of a test set of 500 to "
        "1,400 rows (.03 to .06)."
    ),
)
def santext_more_useful_noise_feyisetan_one(scores: Scores) -> Judgment:
    return scores.above(
        score("task.score", mechanism="santext", epsilon=1),
        score("task.score", mechanism="feyisetan", epsilon=1),
        each=["data"],
    )


@findings.says(
    "SanText is more useful than the noise of Feyisetan et al. at epsilon 2, on every task",
    source="Yue et al. 2021, section 5.2 and table 1",
    explanation=(
        "With the 50-d vectors SanText changes 99 of 100 words at epsilon 2: both mechanisms are at the floor, where "
        "chance decides their order. SanText rises from epsilon 4 on."
    ),
)
def santext_more_useful_noise_feyisetan(scores: Scores) -> Judgment:
    return scores.above(
        score("task.score", mechanism="santext", epsilon=2),
        score("task.score", mechanism="feyisetan", epsilon=2),
        each=["data"],
    )


@findings.says(
    "SanText is more useful than the noise of Feyisetan et al. at epsilon 3, on every task",
    source="Yue et al. 2021, section 5.2 and table 1",
    explanation=(
        "With the 50-d vectors SanText still changes nearly nine of ten words of a text at epsilon 3: both mechanisms"
        " are at the floor, where chance decides their order. SanText rises from epsilon 4 on."
    ),
)
def santext_more_useful_noise_feyisetan_et(scores: Scores) -> Judgment:
    return scores.above(
        score("task.score", mechanism="santext", epsilon=3),
        score("task.score", mechanism="feyisetan", epsilon=3),
        each=["data"],
    )


@findings.says(
    "The noise of Feyisetan et al. keeps more than random words",
    source="Yue et al. 2021, section 5.2 and table 1",
    explanation=(
        "The published differences (.0005 to .0359) are smaller than the chance error of a test set of 500 to 1,400 "
        "rows (.03 to .09)."
    ),
)
def noise_feyisetan_keeps_more_random(scores: Scores) -> Judgment:
    return scores.above(
        score("task.score", mechanism="feyisetan", epsilon=(1, 2, 3)),
        score("task.score", mechanism="random"),
        each=["data", "epsilon"],
    )


@findings.says(
    "The noise of Feyisetan et al. leaves hardly more than random words, up to epsilon 3 (at most .036 more)",
    source="Yue et al. 2021, table 1",
)
def noise_feyisetan_et_al_leaves(scores: Scores) -> Judgment:
    return scores.near(
        score("task.score", mechanism="feyisetan", epsilon=(1, 2, 3)),
        score("task.score", mechanism="random"),
        within=0.1,
        each=["data", "epsilon"],
    )


@findings.says(
    "SanText at epsilon 1 is hardly better than random words (at most .022)",
    source="Yue et al. 2021, table 1",
)
def santext_epsilon_hardly_better_random(scores: Scores) -> Judgment:
    return scores.near(
        score("task.score", mechanism="santext", epsilon=1),
        score("task.score", mechanism="random"),
        within=0.1,
        each=["data"],
    )


@findings.says(
    "Unsanitized text is more useful than text that SanText or SanText+ has sanitized, at each epsilon of the table",
    source="Yue et al. 2021, table 1",
)
def unsanitized_text_more_useful_text(scores: Scores) -> Judgment:
    return scores.above(
        score("task.score", mechanism="none"),
        score("task.score", mechanism=("santext", "santext+"), epsilon=(1, 2, 3)),
        each=["data", "mechanism", "epsilon"],
    )


@findings.says(
    "Figure 3: SanText+ is useful because most common words stay: its utility falls as p grows (more of them are "
    "replaced)",
    source="Yue et al. 2021, section 5.2 and figure 3 (its values are not printed)",
)
def figure_santext_plus_useful_because(scores: Scores) -> Judgment:
    return scores.decreases(score("shared_task.score"), along="p", each=["data"])


@findings.says(
    "Figure 3: for the same reason its utility falls as w grows (more words count as sensitive)",
    source="Yue et al. 2021, section 5.2 and figure 3 (its values are not printed)",
)
def figure_same_reason_utility_falls(scores: Scores) -> Judgment:
    return scores.decreases(score("shared_task.score"), along="w", each=["data"])


@findings.says(
    "A word stays as it is more often at a larger epsilon (N_x grows)",
    source="Yue et al. 2021, section 5.5 and figure 5",
)
def word_stays_more_often_larger(scores: Scores) -> Judgment:
    return scores.increases(score("words.word stays"), along="epsilon", each=["mechanism"])


@findings.says(
    "A word has fewer different outputs at a larger epsilon (S_x falls)",
    source="Yue et al. 2021, section 5.5 and figure 5",
)
def word_fewer_different_outputs_larger(scores: Scores) -> Judgment:
    return scores.decreases(score("words.outputs of a word"), along="epsilon", each=["mechanism"])


@findings.says(
    "A word can come from fewer different words at a larger epsilon (S*_y falls)",
    source="Yue et al. 2021, section 5.5 and figure 5",
)
def word_can_come_fewer_different(scores: Scores) -> Judgment:
    return scores.decreases(score("words.inputs of a word"), along="epsilon", each=["mechanism"])


@findings.says(
    "Fewer words of a text change at a larger epsilon",
    source="what N_x says about words, asked of texts",
    ours=True,
)
def fewer_words_text_change_larger(scores: Scores) -> Judgment:
    return scores.decreases(
        score("kept.words changed", mechanism=("santext", "santext+")), along="epsilon", each=["data", "mechanism"]
    )


@findings.says(
    "The defense against mask token inference falls as epsilon grows, on SST-2 and QNLI",
    source="Yue et al. 2021, section 5.3 and figure 4",
)
def defense_against_mask_token_inference(scores: Scores) -> Judgment:
    return scores.decreases(score("guessed.defended", mechanism="santext"), along="epsilon", each=["data"])


@findings.says(
    "Sanitized text defends better against mask token inference than unsanitized text, on SST-2 and QNLI",
    source="Yue et al. 2021, section 5.3 and figure 4",
)
def sanitized_text_defends_better_against(scores: Scores) -> Judgment:
    return scores.above(
        score("guessed.defended", mechanism="santext"),
        score("guessed.defended", mechanism="none"),
        each=["data", "epsilon"],
    )
