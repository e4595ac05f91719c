"""What the thesis says about private graph networks, of its published code, and what holds with a guarantee."""

from tacit.experiments.findings import Findings, Judgment, Scores
from tacit.experiments.quantities import score

findings = Findings()

NO_CLIPPING = (
    "These scores promise nothing: the published code never cuts a gradient and reads the whole graph in every step. "
    "The same statement about gradients that are cut is judged in the experiment 'graphs'."
)


@findings.says(
    "As published (without clipping): on the whole graph at epsilon 2 DP-Adam is better than the largest class",
    source="Igamberdiev 2023, section 3.6.2 and table 3.3 (.36 and .52 against .18 and .32)",
    explanation=NO_CLIPPING,
)
def whole_graph_adam_is_useful(scores: Scores) -> Judgment:
    return scores.above(
        score("published.accuracy", optimizer="adam", epsilon=2), score("majority.accuracy"), each=["data"]
    )


@findings.says(
    "As published (without clipping): on the whole graph DP-Adam is better than DP-SGD, or as good",
    source="Igamberdiev 2023, section 3.6.2 and table 3.3 (.36 and .52 against .36 and .39)",
    explanation=NO_CLIPPING,
)
def adam_outperforms_sgd(scores: Scores) -> Judgment:
    return scores.at_least(
        score("published.accuracy", optimizer="adam", epsilon=2),
        score("published.accuracy", optimizer="sgd", epsilon=2),
        each=["data"],
    )


@findings.says(
    "As published (without clipping): DP-SGD results stay the same, whatever the noise",
    source="Igamberdiev 2023, section 3.6.2",
    explanation=NO_CLIPPING,
)
def sgd_does_not_feel_the_noise(scores: Scores) -> Judgment:
    return scores.near(
        score("published.accuracy", optimizer="sgd", epsilon=2),
        score("published.accuracy", optimizer="sgd", epsilon=137),
        within=0.05,
        each=["data"],
    )


@findings.says(
    "As published (without clipping): DP-Adam needs huge learning rates, 10 is better than the usual 0.01",
    source="Igamberdiev 2023, section 3.6.2",
    explanation=NO_CLIPPING,
)
def adam_needs_huge_rates(scores: Scores) -> Judgment:
    return scores.above(
        score("published-rates.accuracy", learning_rate=10),
        score("published-rates.accuracy", learning_rate=0.01),
        each=["data"],
    )


@findings.says(
    "As published (without clipping): splitting makes epsilon 1 useful, better than the largest class",
    source="Igamberdiev 2023, section 3.6.3 and table 3.3",
    explanation=NO_CLIPPING,
)
def splitting_makes_epsilon_one_useful(scores: Scores) -> Judgment:
    return scores.above(
        score("published-split.accuracy", epsilon=1, optimizer="adam"), score("majority.accuracy"), each=["data"]
    )


@findings.says(
    "As published (without clipping): ten subgraphs are mostly better than the whole graph at epsilon 2",
    source="Igamberdiev 2023, section 3.6.3 and table 3.3",
    explanation=NO_CLIPPING,
)
def splitting_helps(scores: Scores) -> Judgment:
    return scores.above(
        score("published-split.accuracy", epsilon=2),
        score("published.accuracy", epsilon=2),
        most=["data", "optimizer"],
    )


@findings.says(
    "With a guarantee (gradients that are cut): on the whole graph at epsilon 2 DP-Adam is not better than the largest "
    "class",
    source="ours, about Igamberdiev 2023, table 3.3",
    ours=True,
)
def whole_graph_with_a_guarantee(scores: Scores) -> Judgment:
    return scores.at_most(score("guaranteed.accuracy", optimizer="adam"), score("majority.accuracy"), each=["data"])


@findings.says(
    "With a guarantee (gradients that are cut): ten subgraphs at epsilon 1 are not better than the largest class",
    source="ours, about Igamberdiev 2023, table 3.3",
    ours=True,
)
def splitting_with_a_guarantee(scores: Scores) -> Judgment:
    return scores.at_most(
        score("guaranteed-split.accuracy", optimizer="adam", epsilon=1), score("majority.accuracy"), each=["data"]
    )


@findings.says(
    "At epsilon 8 for one node that is replaced, noisy messages between nodes are more than 15 points above the "
    "largest class",
    source="ours: noisy messages after Sajadmanesh et al. 2023 (docs/graphs.md)",
    ours=True,
)
def messages_are_useful(scores: Scores) -> Judgment:
    return scores.above(
        score("node.accuracy", method="messages"), score("node-majority.accuracy") + 0.15, each=["data"]
    )


@findings.says(
    "At epsilon 8 for one node that is replaced, a linear model of the node's own words is more than 15 points above "
    "the largest class",
    source="ours (docs/graphs.md)",
    ours=True,
)
def own_words_are_useful(scores: Scores) -> Judgment:
    return scores.above(score("node.accuracy", method="words"), score("node-majority.accuracy") + 0.15, each=["data"])
