"""Statements about tasks_costs.toml, each with the function that judges it."""

from __future__ import annotations

from tacit.experiments.findings import Findings, Judgment, Scores
from tacit.experiments.quantities import score

findings = Findings()


@findings.says(
    "A private epoch costs 2.4 to 41 times as much as one without privacy",
    source="Igamberdiev 2023, section 4.5.6 and table 4.13",
    explanation=(
        "The thesis took the hooks of Opacus, which keep a gradient for each example. Here the norms are worked out "
        "from what goes into and comes out of each layer, and one more pass sums the clipped gradients."
    ),
)
def private_epochs_cost_more(scores: Scores) -> Judgment:
    return scores.at_least(
        score("cost.ratio", network="distilled", part=("last-2", "no-embeddings")), 2.4, each=["data", "part"]
    )


@findings.says(
    "Training everything costs more under privacy than training the last two layers, in each task",
    source="Igamberdiev 2023, table 4.13",
)
def everything_costs_more_than_two_layers(scores: Scores) -> Judgment:
    return scores.above(
        score("cost.private seconds", network="distilled", part="no-embeddings"),
        score("cost.private seconds", network="distilled", part="last-2"),
        each=["data"],
    )


@findings.says(
    "An epoch of the distilled encoder costs .02 to .31 of one of BERT under privacy",
    source="Igamberdiev 2023, section 4.6.4 and table 4.15",
)
def distilled_epochs_cost_less(scores: Scores) -> Judgment:
    return scores.at_most(
        score("cost.private seconds", network="distilled beside bert", part="no-embeddings"),
        score("cost.private seconds", network="bert", part="no-embeddings") * 0.31,
        each=["data"],
    )


@findings.says(
    "Training biases alone is 2 to 30 times faster under privacy than training everything",
    source="Bu et al. 2022 (DP-BiTFiT), abstract",
    explanation=(
        "Their baseline keeps a gradient for each example. Both sides have ghost norms here, and the pass back through "
        "the layers, which biases need as well, is most of the cost."
    ),
)
def biases_are_faster(scores: Scores) -> Judgment:
    return scores.at_most(
        score("cost.private seconds", network="distilled", part="biases") * 2,
        score("cost.private seconds", network="distilled", part="no-embeddings"),
        each=["data"],
    )


@findings.says(
    "Ghost clipping needs hardly more memory than training without privacy",
    source="Li et al. 2021, abstract (asked of tensors: at most a fifth more, all weights but embeddings trained)",
)
def ghost_clipping_needs_little_memory(scores: Scores) -> Judgment:
    return scores.at_most(score("cost.memory ratio", network="distilled", part="no-embeddings, memory"), 1.2)


@findings.says(
    "Book-keeping costs less than 1 % of memory and 1.03 times the operations (0.83 of the speed) of training without"
    " privacy",
    source="Bu et al. 2023, abstract (asked of the speed of a network of the shape of GPT-2 that labels texts)",
)
def book_keeping_costs_little(scores: Scores) -> Judgment:
    return scores.at_most(score("cost.ratio", network="gpt2", part="everything"), 1 / 0.83)


@findings.says(
    "The memory of the same: less than 1 % more",
    source="Bu et al. 2023, abstract (asked of the tensors of a network of the shape of GPT-2 that labels texts)",
)
def book_keeping_needs_little_memory(scores: Scores) -> Judgment:
    return scores.at_most(score("cost.memory ratio", network="gpt2", part="everything"), 1.01)
