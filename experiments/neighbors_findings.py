"""Statements about neighbors.toml, each with the function that judges it."""

from __future__ import annotations

from tacit.experiments.findings import Findings, Judgment, Scores, all_of
from tacit.experiments.quantities import score
from tacit.experiments.verdicts import Word, not_testable

findings = Findings()


@findings.says(
    "Mapping to the nearest neighbor can return the original word, above all rare words in sparse regions",
    source="Xu et al. 2021b, as reported by Riecker 2023, chapter 6",
)
def rare_words_come_back(scores: Scores) -> Judgment:
    return scores.above(score("back.stays, alone"), score("back.stays, others"), each=["epsilon"])


@findings.says(
    "Going from one neighbor to two helps most; more than two level off",
    source="Xu et al. 2021b, as reported by Riecker 2023, chapter 6 (asked of what an attacker loses)",
    explanation=(
        "At epsilon 10 three more neighbors hide as much again as the second one did. With more than two of them a "
        "word is drawn by its distance alone, and the nearest five are about as far away as one another."
    ),
)
def two_neighbors_help_most(scores: Scores) -> Judgment:
    two = score("attacker.privacy gain", choice="two")
    return scores.above(
        two - score("attacker.privacy gain", choice="one"),
        score("attacker.privacy gain", choice="five") - two,
        each=["epsilon"],
    )


@findings.says(
    "Noise adds about 3 minutes to the training of an LSTM, a mapping 3 more, a bounding map 3 seconds",
    source="Riecker 2023, chapter 7 (asked of the bounding map: it costs less than the noise, and than the mapping)",
)
def maps_cost_little(scores: Scores) -> Judgment:
    return all_of(
        scores.below(score("cost.map seconds", way="laplace"), score("cost.noise seconds", way="laplace")),
        scores.below(score("cost.map seconds", way="laplace"), score("cost.mapping seconds", way="laplace")),
    )


@findings.says(
    "Among k = 2 neighbors, empirical privacy rises with t up to 0.75 and not beyond",
    source="Xu et al. 2021b, as reported by Riecker 2023, chapter 6 (asked of what an attacker loses, within .02)",
)
def second_neighbor_up_to_three_quarters(scores: Scores) -> Judgment:
    gain = {
        t: score("attacker.privacy gain", choice=choice)
        for t, choice in (("0.25", "two, t 0.25"), ("0.75", "two"), ("1", "two, t 1"))
    }
    return all_of(
        scores.above(gain["0.75"], gain["0.25"], each=["epsilon"]),
        scores.at_most(gain["1"], gain["0.75"] + 0.02, each=["epsilon"]),
    )


@findings.says(
    "Laplace noise and the nearest word cost a binary classifier less than 2 %",
    source=(
        "Feyisetan et al. 2020, abstract, which names no epsilon (asked whether there is one among those run at which "
        "a tenth of the words change, or more)"
    ),
)
def binary_classifier_loses_little(scores: Scores) -> Judgment:
    frame = scores.frame
    if not len(frame):
        return not_testable("nothing was run")
    changed = frame[frame["step"].eq("binary") & frame["measure"].eq("words kept") & (frame["value"] <= 0.9)]
    tasks = frame[frame["step"].eq("binary_task") & frame["measure"].eq("change")]
    tasks = tasks[tasks["epsilon"].isin(changed["epsilon"])].sort_values("epsilon")
    if not len(tasks):
        return not_testable("no epsilon changes a tenth of the words")
    detail = "; ".join(
        f"{row.epsilon:g}: {row.value:+.3f} ({row.low:+.3f} to {row.high:+.3f})" for row in tasks.itertuples()
    )
    if (tasks["low"] > -0.02).any():
        return Judgment(word=Word.AGREE, detail=detail)
    if (tasks["high"] < -0.02).all():
        return Judgment(word=Word.DISAGREE, detail=detail)
    return Judgment(word=Word.UNDECIDED, detail=detail, leaning=bool((tasks["value"] > -0.02).any()))


@findings.says(
    "The second neighbor (Vickrey) gains up to 50 % of utility at equal empirical privacy",
    source="Xu et al. 2021b, abstract (asked whether it keeps more of the task than the nearest word does)",
)
def second_neighbor_gains_utility(scores: Scores) -> Judgment:
    return scores.above(
        score("matched.task kept", mechanism="laplace+v2"),
        score("matched.task kept", mechanism="laplace+nn"),
        each=["data"],
    )


@findings.says(
    "SanText sanitizes SST-2 in 2 minutes where the noise of Feyisetan et al. needs 117",
    source="Yue et al. 2021, section 5.2 (asked which of the two takes longer for the same words)",
    explanation=(
        "The nearest words of noisy vectors are found by products of matrices here, which take as long as drawing from "
        "the law of a word, once that law is at hand; the paper searched for each token by itself."
    ),
)
def santext_is_faster(scores: Scores) -> Judgment:
    return scores.below(score("cost.seconds", way="santext"), score("cost.seconds", way="laplace"))
