"""Statements about embedding_perturbation.toml, each with the function that judges it."""

from __future__ import annotations

from tacit.experiments.declared import Value
from tacit.experiments.findings import Findings, Judgment, Scores
from tacit.experiments.quantities import LARGEST, SMALLEST, Quantity, score, share
from tacit.experiments.verdicts import Word, not_testable

findings = Findings()


@findings.says(
    "Laplace noise: the loss of utility shrinks as epsilon grows",
    source="Riecker 2023, tables 5.1 to 5.9",
)
def laplace_noise_loss_utility_shrinks(scores: Scores) -> Judgment:
    return scores.increases(
        score("task.change", mechanism="laplace", learner="lstm"), along="epsilon", each=["data", "bounding"]
    )


@findings.says(
    "Laplace noise: the gain of privacy shrinks as epsilon grows",
    source="Riecker 2023, tables 5.1 to 5.9",
)
def laplace_noise_gain_privacy_shrinks(scores: Scores) -> Judgment:
    return scores.decreases(
        score("attacker.privacy gain", mechanism="laplace", learner="lstm"), along="epsilon", each=["data", "bounding"]
    )


@findings.says(
    "On AG News the LSTM collapses at epsilon 1, whatever the bounding map",
    source="Riecker 2023, tables 5.1 to 5.9 (cells left out as random guessing)",
    explanation=(
        "the noise has norm d / epsilon: 50 here and 300 in the thesis, so that the wide spaces (none, clip, observed"
        " range) are not drowned yet"
    ),
)
def ag_news_lstm_collapses_epsilon(scores: Scores) -> Judgment:
    return scores.below(
        share(score("task.macro-F1", data="news", mechanism="laplace", learner="lstm", epsilon=1)),
        0.25,
        each=["bounding"],
    )


@findings.says(
    "After normalization to [-1, 1] it collapses up to epsilon 10 (asked at epsilon 1: the noise has norm d / "
    "epsilon, and 50 / 1 lies in the range from 300 / 10 on, 50 / 10 does not)",
    source="Riecker 2023, table 5.6 (cells left out as random guessing)",
)
def after_normalization_collapses_up_epsilon(scores: Scores) -> Judgment:
    return scores.below(
        share(
            score(
                "task.macro-F1",
                data="news",
                mechanism="laplace",
                bounding="minus-one-to-one",
                learner="lstm",
                epsilon=1,
            )
        ),
        0.25,
    )


@findings.says(
    "After unit length it collapses up to epsilon 50 (asked at epsilon 1: the noise has norm d / epsilon, and 50 "
    "/ 1 lies in the range from 300 / 50 on, 50 / 10 does not)",
    source="Riecker 2023, table 5.3 (cells left out as random guessing)",
)
def after_unit_length_collapses_up(scores: Scores) -> Judgment:
    return scores.below(
        share(score("task.macro-F1", data="news", mechanism="laplace", bounding="unit", learner="lstm", epsilon=1)),
        0.25,
    )


@findings.says(
    "What collapses is told by the norm of the noise over the diameter of the space: narrow spaces collapse at "
    "larger epsilons than wide ones",
    source="derived from Riecker 2023, tables 5.1 to 5.9",
    ours=True,
)
def what_collapses_told_norm_noise(scores: Scores) -> Judgment:
    return scores.below(
        score("task.change", data="news", mechanism="laplace", bounding="unit", epsilon=10, learner="lstm"),
        score("task.change", data="news", mechanism="laplace", bounding="none", epsilon=10, learner="lstm"),
    )


@findings.says(
    "Truncated Gumbel is nearly flat in epsilon: utility",
    source="Riecker 2023, tables 5.1, 5.3, 5.5 to 5.9",
)
def truncated_gumbel_nearly_flat_epsilon(scores: Scores) -> Judgment:
    return scores.is_flat(
        score("task.change", mechanism="truncated-gumbel", learner="pooled"),
        along="epsilon",
        within=0.1,
        most=["data", "bounding"],
    )


@findings.says(
    "Truncated Gumbel is nearly flat in epsilon: privacy",
    source="Riecker 2023, tables 5.1, 5.3, 5.5 to 5.9",
)
def truncated_gumbel_nearly_flat_epsilon_privacy(scores: Scores) -> Judgment:
    return scores.is_flat(
        score("attacker.privacy gain", mechanism="truncated-gumbel", learner="pooled"),
        along="epsilon",
        within=0.1,
        most=["data", "bounding"],
    )


@findings.says(
    "Most cells of truncated Gumbel lie outside the domain where its noise exists (31 of 42 in the thesis)",
    source="derived from the constants of Riecker 2023, chapter 5",
    ours=True,
)
def most_cells_truncated_gumbel_lie(scores: Scores) -> Judgment:
    return scores.below(score("perturbed.inside the domain", mechanism="truncated-gumbel"), 0.5, each=["data"])


@findings.says(
    "After unit length (both forms) and random projection no epsilon of the grid lies in the domain of truncated "
    "Gumbel",
    source="derived from the constants of Riecker 2023, chapter 5",
    ours=True,
)
def after_unit_length_both_forms(scores: Scores) -> Judgment:
    return scores.at_most(
        score("perturbed.inside the domain", mechanism="truncated-gumbel", bounding=("unit", "adapted-unit", "jl")),
        0,
        each=["data"],
    )


@findings.says(
    "Truncated Gumbel is favorable more often than Laplace noise (36 of 84 cells with an LSTM against 14 of 64): "
    "cell by cell its trade-off is mostly higher",
    source="Riecker 2023, tables 5.1 to 5.9 (here with pooled vectors, which are run in all cells)",
)
def truncated_gumbel_favorable_more_often(scores: Scores) -> Judgment:
    return scores.above(
        score("task.change", mechanism="truncated-gumbel", learner="pooled")
        + score("attacker.privacy gain", mechanism="truncated-gumbel", learner="pooled"),
        score("task.change", mechanism="laplace", learner="pooled")
        + score("attacker.privacy gain", mechanism="laplace", learner="pooled"),
        most=["data", "bounding", "epsilon"],
    )


@findings.says(
    "For small budgets truncated Gumbel loses less utility than Laplace noise",
    source="Riecker 2023, chapters 7 and 8 (here with pooled vectors, at the smallest epsilon)",
)
def small_budgets_truncated_gumbel_loses(scores: Scores) -> Judgment:
    return scores.above(
        score("task.change", mechanism="truncated-gumbel", epsilon=SMALLEST, learner="pooled"),
        score("task.change", mechanism="laplace", epsilon=SMALLEST, learner="pooled"),
        each=["data", "bounding"],
    )


@findings.says(
    "For small budgets truncated Gumbel is the better option: its trade-off is mostly higher",
    source="Riecker 2023, chapters 7 and 8 (here with pooled vectors, at the smallest epsilon)",
    explanation=(
        "On news it is, after every map. On blogs Laplace noise leaves a random guesser at epsilon 1, whose trade-off"
        " is favorable because the attacker has more to lose (.10 above the floor) than the task (.05); the thesis "
        "warns of such cells, and left those of AG News out."
    ),
)
def small_budgets_truncated_gumbel_better(scores: Scores) -> Judgment:
    return scores.above(
        score("task.change", mechanism="truncated-gumbel", epsilon=SMALLEST, learner="pooled")
        + score("attacker.privacy gain", mechanism="truncated-gumbel", epsilon=SMALLEST, learner="pooled"),
        score("task.change", mechanism="laplace", epsilon=SMALLEST, learner="pooled")
        + score("attacker.privacy gain", mechanism="laplace", epsilon=SMALLEST, learner="pooled"),
        most=["data", "bounding"],
    )


@findings.says(
    "The mapping that truncated Gumbel has built in works better than nearest neighbors added to Laplace noise: "
    "its trade-off is mostly higher",
    source="Riecker 2023, chapter 7 (here with pooled vectors)",
)
def mapping_truncated_gumbel_built_works(scores: Scores) -> Judgment:
    return scores.above(
        score("task.change", mechanism="truncated-gumbel", learner="pooled")
        + score("attacker.privacy gain", mechanism="truncated-gumbel", learner="pooled"),
        score("task.change", mechanism=("laplace+nn", "laplace+v2"), learner="pooled")
        + score("attacker.privacy gain", mechanism=("laplace+nn", "laplace+v2"), learner="pooled"),
        most=["data", "bounding", "epsilon", "mechanism"],
    )


@findings.says(
    "On AG News truncated Gumbel is favorable after unit length, its adapted form and random projection (6 of 6 each)",
    source="Riecker 2023, tables 5.3, 5.5, 5.9",
)
def ag_news_truncated_gumbel_favorable(scores: Scores) -> Judgment:
    return scores.above(
        score(
            "task.change",
            data="news",
            mechanism="truncated-gumbel",
            bounding=("unit", "adapted-unit", "jl"),
            learner="lstm",
        )
        + score(
            "attacker.privacy gain",
            data="news",
            mechanism="truncated-gumbel",
            bounding=("unit", "adapted-unit", "jl"),
            learner="lstm",
        ),
        0,
        each=["bounding"],
    )


@findings.says(
    "On AG News truncated Gumbel is not favorable after normalization to a range (0 of 6 each)",
    source="Riecker 2023, tables 5.6 and 5.7",
    explanation=(
        "Asked at epsilon 150. The attacker, an LSTM on vectors of 50 dimensions, knows a name by its own vector and "
        "loses more than half of an F1 of about .9; the topic hangs on no single word and loses a few points."
    ),
)
def ag_news_truncated_gumbel_not(scores: Scores) -> Judgment:
    return scores.below(
        score(
            "task.change",
            data="news",
            mechanism="truncated-gumbel",
            bounding=("minus-one-to-one", "observed-range"),
            learner="lstm",
        )
        + score(
            "attacker.privacy gain",
            data="news",
            mechanism="truncated-gumbel",
            bounding=("minus-one-to-one", "observed-range"),
            learner="lstm",
        ),
        0,
        each=["bounding"],
    )


@findings.says(
    "On the other data set (gender) truncated Gumbel is favorable after normalization to a range (6 and 5 of 6)",
    source="Riecker 2023, tables 5.6 and 5.7",
    explanation=(
        "It is after [-1, 1] and not after the observed range, both within chance: on blogs the task is less than .1 "
        "and the attacker .11 above the floor."
    ),
)
def other_data_set_gender_truncated(scores: Scores) -> Judgment:
    return scores.above(
        score(
            "task.change",
            data="blogs",
            mechanism="truncated-gumbel",
            bounding=("minus-one-to-one", "observed-range"),
            learner="lstm",
        )
        + score(
            "attacker.privacy gain",
            data="blogs",
            mechanism="truncated-gumbel",
            bounding=("minus-one-to-one", "observed-range"),
            learner="lstm",
        ),
        0,
        each=["bounding"],
    )


@findings.says(
    "On unperturbed text BERT is better at the task than an LSTM",
    source="Riecker 2023, table 4.3",
)
def unperturbed_text_bert_better_task(scores: Scores) -> Judgment:
    return scores.above(
        score("plain_task.macro-F1", learner="bert"), score("plain_task.macro-F1", learner="lstm"), each=["data"]
    )


@findings.says(
    "Of the five names 'bush' is found worst in unperturbed text (its F1 is below the mean of the others)",
    source="Riecker 2023, section 4.3",
    explanation=(
        "In the news of this benchmark 'bush' is nearly always the president, and is found as well as the others by "
        "the LSTM (.9) and best of all by the probe (.83). 'british' is found worst."
    ),
)
def five_names_bush_found_worst(scores: Scores) -> Judgment:
    return scores.below(
        score("plain_attacker.F1 of bush", data="news", learner=("lstm", "bert"))
        + score("plain_attacker.F1 of bush", data="news", learner=("lstm", "bert"))
        + score("plain_attacker.F1 of bush", data="news", learner=("lstm", "bert"))
        + score("plain_attacker.F1 of bush", data="news", learner=("lstm", "bert")),
        score("plain_attacker.F1 of iraq", data="news", learner=("lstm", "bert"))
        + score("plain_attacker.F1 of china", data="news", learner=("lstm", "bert"))
        + score("plain_attacker.F1 of united states", data="news", learner=("lstm", "bert"))
        + score("plain_attacker.F1 of british", data="news", learner=("lstm", "bert")),
        each=["learner"],
    )


@findings.says(
    "With truncated Gumbel BERT loses less utility than an LSTM",
    source="Riecker 2023, table 5.1",
    explanation=(
        "'bert' is a linear probe on frozen vectors of MiniLM in the quick size, which cannot get used to perturbed "
        "text as a fine-tuned BERT or an LSTM that is trained on it from the start."
    ),
)
def truncated_gumbel_bert_loses_less(scores: Scores) -> Judgment:
    return scores.above(
        score("task.change", mechanism="truncated-gumbel", bounding="none", epsilon=150, learner="bert"),
        score("task.change", mechanism="truncated-gumbel", bounding="none", epsilon=150, learner="lstm"),
        each=["data"],
    )


@findings.says(
    "With truncated Gumbel BERT gains less privacy than an LSTM",
    source="Riecker 2023, table 5.1",
    explanation=(
        "On news it does. On blogs neither attacker has much to lose (.1 above the floor, or less): the LSTM keeps "
        "all of it, and the probe on frozen vectors, which cannot get used to perturbed text, loses a few points."
    ),
)
def truncated_gumbel_bert_gains_less(scores: Scores) -> Judgment:
    return scores.below(
        score("attacker.privacy gain", mechanism="truncated-gumbel", bounding="none", epsilon=150, learner="bert"),
        score("attacker.privacy gain", mechanism="truncated-gumbel", bounding="none", epsilon=150, learner="lstm"),
        each=["data"],
    )


@findings.says(
    "A pretrained encoder recovers the task nearly to its baseline",
    source="Riecker 2023, table 5.1",
    explanation=(
        "It loses between .03 and .06: nearly, but the encoder is frozen in the quick size and cannot get used to "
        "perturbed text, as the BERT of the thesis can."
    ),
)
def pretrained_encoder_recovers_task_nearly(scores: Scores) -> Judgment:
    return scores.above(score("task.change", mechanism="truncated-gumbel", learner="bert"), -0.05, each=["data"])


@findings.says(
    "A pretrained encoder recovers the attack nearly to its baseline as well",
    source="Riecker 2023, table 5.1",
    explanation=(
        "On blogs it does. On news the probe on frozen vectors of MiniLM loses more than .1 of an F1 of .52: unlike "
        "the BERT of the thesis it cannot get used to perturbed text."
    ),
)
def pretrained_encoder_recovers_attack_nearly(scores: Scores) -> Judgment:
    return scores.below(
        score("attacker.privacy gain", mechanism="truncated-gumbel", learner="bert"), 0.05, each=["data"]
    )


@findings.says(
    "With a pretrained encoder the attribute gender is often easier to infer than from unperturbed text",
    source="Riecker 2023, table 5.1",
    explanation=(
        "The quick size asks one cell. Its attacker, a probe on frozen vectors of MiniLM, is .11 above the floor on "
        "unperturbed text and loses a few points: it is not trained on perturbed text from the start, as the BERT of "
        "the thesis is."
    ),
)
def pretrained_encoder_attribute_gender_often(scores: Scores) -> Judgment:
    return scores.below(score("attacker.privacy gain", data="blogs", mechanism="truncated-gumbel", learner="bert"), 0)


@findings.says(
    "Mapping to words usually reduces the loss of utility",
    source="Riecker 2023, tables 6.1 to 6.4",
    explanation=(
        "Without a bounding map it does at epsilon 10. At epsilon 1 everything is at the floor, and at 150 nothing is"
        " lost with 50 dimensions; after unit length a mapping costs more."
    ),
)
def mapping_words_usually_reduces_loss(scores: Scores) -> Judgment:
    return scores.above(
        score("task.change", mechanism=("laplace+nn", "laplace+v2"), learner="lstm"),
        score("task.change", mechanism="laplace", learner="lstm"),
        most=["data", "bounding", "epsilon", "mechanism"],
    )


@findings.says(
    "Mapping to words usually reduces the gain of privacy",
    source="Riecker 2023, tables 6.1 to 6.4",
)
def mapping_words_usually_reduces_gain(scores: Scores) -> Judgment:
    return scores.below(
        score("attacker.privacy gain", mechanism=("laplace+nn", "laplace+v2"), learner="lstm"),
        score("attacker.privacy gain", mechanism="laplace", learner="lstm"),
        most=["data", "bounding", "epsilon", "mechanism"],
    )


@findings.says(
    "Mapping to words rarely improves the trade-off",
    source="Riecker 2023, chapter 8 and tables 6.1 to 6.4",
)
def mapping_words_rarely_improves_trade(scores: Scores) -> Judgment:
    return scores.at_most(
        score("task.change", mechanism=("laplace+nn", "laplace+v2"), learner="lstm")
        + score("attacker.privacy gain", mechanism=("laplace+nn", "laplace+v2"), learner="lstm"),
        score("task.change", mechanism="laplace", learner="lstm")
        + score("attacker.privacy gain", mechanism="laplace", learner="lstm"),
        most=["data", "bounding", "epsilon", "mechanism"],
    )


@findings.says(
    "A random projection damages the task more than the other maps do on average, already without noise",
    source="Riecker 2023, table 5.4",
)
def random_projection_damages_task_more(scores: Scores) -> Judgment:
    return scores.below(
        score("bounded_task.change", bounding="jl"),
        score("bounded_task.change", bounding=("unit", "adapted-unit", "minus-one-to-one", "observed-range", "clip")),
        each=["data"],
    )


@findings.says(
    "With noise, too, a random projection damages the task more than the other maps do",
    source="Riecker 2023, section 5.7 and chapter 7 (here with pooled vectors, at the largest epsilon)",
    explanation=(
        "On news it does, compared with every other map. On blogs, where the task is only .05 above the floor, all "
        "differences are within chance."
    ),
)
def noise_too_random_projection_damages(scores: Scores) -> Judgment:
    return scores.below(
        score("task.change", mechanism="laplace", bounding="jl", epsilon=LARGEST, learner="pooled"),
        score(
            "task.change",
            mechanism="laplace",
            bounding=("none", "unit", "adapted-unit", "minus-one-to-one", "observed-range", "clip"),
            epsilon=LARGEST,
            learner="pooled",
        ),
        each=["data", "bounding"],
    )


@findings.says(
    "... and the attacker as well",
    source="Riecker 2023, section 5.7 and table 5.9 (here with pooled vectors, at the largest epsilon)",
)
def attacker_well(scores: Scores) -> Judgment:
    return scores.above(
        score("attacker.privacy gain", mechanism="laplace", bounding="jl", epsilon=LARGEST, learner="pooled"),
        score(
            "attacker.privacy gain",
            mechanism="laplace",
            bounding=("none", "unit", "adapted-unit", "minus-one-to-one", "observed-range", "clip"),
            epsilon=LARGEST,
            learner="pooled",
        ),
        most=["data", "bounding"],
    )


@findings.says(
    "Bounding maps alone, without any noise and any guarantee, already raise empirical privacy",
    source="Riecker 2023, table 5.4",
    explanation=(
        "On news all five do. On blogs, where the attacker is only .11 above the floor, they change hardly anything."
    ),
)
def bounding_maps_alone_without_noise(scores: Scores) -> Judgment:
    return scores.above(
        score(
            "bounded_attacker.privacy gain",
            bounding=("unit", "adapted-unit", "minus-one-to-one", "observed-range", "jl"),
        ),
        0,
        each=["data", "bounding"],
    )


@findings.says(
    "Clipping to the observed range tends to help the task and the attacker",
    source="Riecker 2023, chapter 7",
    explanation=(
        "An exact argument: the range is that of the public vocabulary (of the training tokens in the thesis), so "
        "every vector lies in it and clipping moves none. Without noise task and attacker are the same to the last "
        "digit; what differed in the thesis was another start of the network, or another draw of the noise."
    ),
)
def clipping_observed_range_helps(scores: Scores) -> Judgment:
    return clipped_is_the_same(scores)


@findings.says(
    "Clipping to the observed range changes no word of the vocabulary",
    source=(
        "follows from where the range is taken from (Riecker 2023, table 5.8, has the same distances as without a map)"
    ),
    ours=True,
)
def clipping_observed_range_changes_no(scores: Scores) -> Judgment:
    return scores.near(
        score("bounded.diameter after the map", bounding="clip"),
        score("bounded.diameter after the map", bounding="none"),
        within=1e-06,
        each=["data"],
    )


@findings.says(
    "The strength of the guarantee does not predict empirical privacy: adapted unit length has the same promise "
    "as no map, and much more privacy at the same epsilon",
    source="Riecker 2023, tables 5.1, 5.2 and 5.5",
    explanation=(
        "On news it is so. On blogs the attacker is at most .1 above the floor on unperturbed text, which leaves "
        "little privacy to gain by any map."
    ),
)
def strength_guarantee_does_not_predict(scores: Scores) -> Judgment:
    return scores.above(
        score("attacker.privacy gain", mechanism="laplace", bounding="adapted-unit", epsilon=10, learner="pooled"),
        score("attacker.privacy gain", mechanism="laplace", bounding="none", epsilon=10, learner="pooled") + 0.05,
        each=["data"],
    )


@findings.says(
    "Explicit attributes (names in news) are masked more easily than implicit ones (gender): the attacker mostly "
    "keeps a smaller share of what he had",
    source="Riecker 2023, chapter 7",
)
def explicit_attributes_names_news_masked(scores: Scores) -> Judgment:
    return scores.below(
        share(score("attacker.macro-F1", data="news", mechanism="laplace", learner="lstm")),
        share(score("attacker.macro-F1", data="blogs", mechanism="laplace", learner="lstm")),
        most=["bounding", "epsilon"],
    )


@findings.says(
    "A good trade-off may be a random guesser: on AG News after unit length, at the smallest epsilon, the "
    "trade-off is favorable by more than what is left of the task",
    source="Riecker 2023, chapter 7",
)
def good_trade_off_may_random(scores: Scores) -> Judgment:
    return scores.above(
        score("task.change", data="news", mechanism="laplace", bounding="unit", epsilon=SMALLEST, learner="lstm")
        + score(
            "attacker.privacy gain", data="news", mechanism="laplace", bounding="unit", epsilon=SMALLEST, learner="lstm"
        )
        - share(
            score("task.macro-F1", data="news", mechanism="laplace", bounding="unit", epsilon=SMALLEST, learner="lstm")
        ),
        0,
    )


@findings.says(
    "Utility and privacy mirror each other: the attacker keeps about the share of his success that the task keeps",
    source="Riecker 2023, chapters 7 and 8 (here with pooled vectors)",
    explanation=(
        "The shares compared are those of small differences: on blogs task and attacker are about .1 above their "
        "floors, so that one point is a tenth of all there is. On news the attacker needs single names and the task "
        "does not."
    ),
)
def utility_privacy_mirror_each_other(scores: Scores) -> Judgment:
    return scores.near(
        share(score("attacker.macro-F1", mechanism="laplace", learner="pooled")),
        share(score("task.macro-F1", mechanism="laplace", learner="pooled")),
        within=0.25,
        most=["data", "bounding", "epsilon"],
    )


@findings.says(
    "Truncated Gumbel with an LSTM is the recommended starting point; for large budgets Laplace noise may win",
    source=(
        "Riecker 2023, chapter 8 (the first half, asked of the trade-off at the largest epsilon, where both have an "
        "LSTM: truncated Gumbel is mostly above Laplace noise, with and without a mapping)"
    ),
)
def truncated_gumbel_recommended(scores: Scores) -> Judgment:
    gumbel = trade_off(mechanism="truncated-gumbel", epsilon=LARGEST, learner="lstm")
    others = ("laplace", "laplace+nn", "laplace+v2")
    return scores.above(
        gumbel,
        trade_off(mechanism=others, epsilon=LARGEST, learner="lstm"),
        most=["data", "bounding", "mechanism"],
    )


def trade_off(**where: Value | tuple[Value, ...]) -> Quantity:
    """What the task loses and the attacker loses, added: above 0 it is favorable."""
    return score("task.change", **where) + score("attacker.privacy gain", **where)


def clipped_is_the_same(scores: Scores) -> Judgment:
    """Disagrees if clipping changes no score at all of a learner on vectors without noise."""
    frame = scores.frame
    clipped = frame
    if len(frame):
        clipped = frame[frame["step"].isin(["bounded_task", "bounded_attacker"]) & frame["measure"].eq("change")]
        clipped = clipped[clipped["bounding"].eq("clip")] if len(clipped) else clipped
    if not len(clipped):
        return not_testable("no learner was trained on clipped vectors")
    most = float(clipped["value"].abs().max())
    if most > 0:
        return Judgment(word=Word.UNDECIDED, detail=f"a score changes by {most:.3g}", leaning=None)
    return Judgment(word=Word.DISAGREE, detail=f"{len(clipped)} of {len(clipped)} scores are exactly the same")
