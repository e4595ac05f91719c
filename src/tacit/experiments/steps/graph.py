"""`graph`: learn to label the nodes of a graph of texts, privately or not, and test on nodes that were held out.

    convolution   the two-layer network on random disjoint subgraphs (Igamberdiev 2023, chapter 3), each clipped; with
                  epsilon = inf the same network without clipping and noise, with subgraphs = 1 the whole graph
    published     the same network by the published code: nothing is cut, the split only masks the loss; card void
    words         no links: a linear model of the words
    messages      one node is the unit: the linear model and noisy messages along the links
    majority      the commonest training label

What an epsilon means is `reading`: a whole "subgraph" comes or goes (one clipped gradient of length C), or one "node"
is replaced, with its words, its label and its links (2 C). `sampling`: subgraphs drawn in secret ("poisson", amplified)
or each once per pass ("visits"). The scores hold the epsilons of the same noise under the other readings and samplings.
`words` and `messages` are about one node that is replaced, under whatever reading; the epsilon of `published` is what
its accounting claims.

Nodes: "random" draws 75 % of the labeled nodes for training and 15 % for test, "rest" trains on all nodes that the
split of the file neither validates nor tests on, as the thesis does; `fraction` then keeps a part of the training
nodes. Accuracy is what the thesis calls F1 (micro-averaged; its number for the largest class is that class's share).
"above the largest class" is what accuracy says beyond that share, and 0 if it is below: of two networks that have
learned nothing, none is better.

Weights are covered by the card. Predictions of `convolution` read the neighbors of a node and are not.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
from pydantic import Field

from tacit.arrays import Ids
from tacit.card import Card
from tacit.errors import BadInputError, require
from tacit.evaluation.scores import Interval, mean_interval, most_frequent
from tacit.experiments.config import Parameters
from tacit.experiments.inputs import data_in
from tacit.experiments.raw import read_json, read_lines, write_json, write_lines
from tacit.experiments.steps import OF_CLASSES, OF_THE_CARD, RUN_FOLDER, Input, Kind, PlannedCell, Progress
from tacit.experiments.steps.downstream import RESAMPLES
from tacit.experiments.steps.rewrite import step_key
from tacit.experiments.steps.train import REPEATED, repetition_seed
from tacit.experiments.task_scores import class_scores
from tacit.jobs.graph_config import GraphConfig
from tacit.jobs.training.graphs import GraphProgress, learn_labels, read_nodes_and_links
from tacit.noise.source import public_generator
from tacit.training.graphs.graph import Graph
from tacit.training.graphs.messages import NodePlan

if TYPE_CHECKING:
    from tacit.training.graphs.published import PublishedPlan
    from tacit.training.graphs.subgraphs import SubgraphPlan

TRAIN_SHARE, VALID_SHARE = 0.75, 0.10
JOB_METHODS: Mapping[str, Literal["words", "messages", "as-published"]] = {
    "words": "words", "messages": "messages", "published": "as-published",
}  # fmt: skip


class GraphTraining(Parameters):
    method: Literal["convolution", "published", "words", "messages", "majority"]
    epsilon: float = Field(default=math.inf, gt=0)
    delta: float | None = None
    reading: Literal["node", "subgraph"] = "node"
    sampling: Literal["poisson", "visits"] = "poisson"
    subgraphs: int = Field(default=10, ge=1)
    passes: int = Field(default=10, ge=1)
    optimizer: Literal["adam", "sgd"] = "adam"
    learning_rate: float = Field(default=0.01, gt=0)
    bound: float = Field(default=1.0, gt=0)
    links: int = Field(default=2, ge=1)
    nodes: Literal["random", "rest"] = "random"
    fraction: float = Field(default=1.0, gt=0, le=1)
    label: str = "label"
    split: str | None = None
    seed: int = 1
    test_seed: int | None = None

    @property
    def private(self) -> bool:
        return math.isfinite(self.epsilon)

    def job(self, data: Path) -> GraphConfig:
        """The job that learns the labels. Only its predictions are kept, and its model is not saved."""
        files = {name: next(data.glob(f"{name}.*"), None) for name in ("nodes", "edges")}
        if None in files.values():
            raise BadInputError(
                "graph-files-missing",
                "a graph needs two files: files.nodes and files.edges of the data set",
            )
        return GraphConfig(
            nodes=files["nodes"], links=files["edges"], output=data / RUN_FOLDER, clean_links=True,
            label_column=self.label, split_column=self.split, epsilon=self.epsilon,
            delta="auto" if self.delta is None else self.delta, replace_one=True,
            method=JOB_METHODS.get(self.method, "subgraphs"), use_links=self.links,
            subgraphs=self.subgraphs, passes=self.passes, reading=self.reading, sampling=self.sampling,
            optimizer=self.optimizer, learning_rate=self.learning_rate, bound=self.bound, start_seed=self.seed,
        )  # fmt: skip


class _Steps(GraphProgress):
    def __init__(self, progress: Progress) -> None:
        self.progress = progress

    def stepped(self, done: int, total: int) -> None:
        self.progress(done, total)


def run(parameters: GraphTraining, inputs: Mapping[str, Path], folder: Path, progress: Progress) -> None:
    config = parameters.job(inputs["data"])
    graph = read_nodes_and_links(config)
    train, test = parts(graph, parameters)
    names = graph.classes
    counts = np.bincount(graph.labels[train], minlength=len(names))
    if parameters.method == "majority":
        predicted: Ids = np.full(graph.nodes, counts.argmax())
    else:
        # The runner keeps the key until the step is finished: a step that is run again draws the same noise.
        seed = repetition_seed(parameters.test_seed, parameters.seed) if parameters.private else parameters.seed
        learned = learn_labels(config, graph, train, _Steps(progress), step_key(folder, seed))
        predicted = learned.labels
        if parameters.private:
            write_json(folder / "readings.json", readings(learned.plan))
            write_json(folder / "card.json", Card(learned.guarantee.also_not_covered(REPEATED)).to_dict())
    write_lines(
        folder / "predictions.jsonl",
        ({"node": graph.names[i], "true": names[graph.labels[i]], "predicted": names[predicted[i]]} for i in test),
    )
    write_json(
        folder / "about.json",
        {"train labels": dict(zip(names, counts.tolist(), strict=True)), "train nodes": len(train)},
    )


# Nodes ------------------------------------------------------------------------------------------------------------


def parts(graph: Graph, parameters: GraphTraining) -> tuple[Ids, Ids]:
    """Nodes for training and for test. Both are drawn by public randomness, without a look at words and links."""
    if parameters.nodes == "random":
        train, _, test = graph.drawn_split((TRAIN_SHARE, VALID_SHARE), parameters.seed)
    else:
        train, test = graph.in_split("train", "none"), graph.in_split("test")
    kept = max(1, round(parameters.fraction * len(train)))
    return np.sort(public_generator(parameters.seed).permutation(train)[:kept]), test


def readings(plan: NodePlan | SubgraphPlan | PublishedPlan) -> dict[str, float]:
    """The epsilons of the noise of a convolution, in every reading and sampling, and the noise."""
    if isinstance(plan, NodePlan):
        return {}
    from tacit.training.graphs.published import PublishedPlan
    from tacit.training.graphs.subgraphs import side_by_side

    if isinstance(plan, PublishedPlan):
        return {"claimed epsilon": plan.claimed, "noise multiplier": plan.multiplier}

    epsilons = {
        f"epsilon of a {reading}, {sampling}": value for (reading, sampling), value in side_by_side(plan).items()
    }
    return {**epsilons, "noise multiplier": plan.multiplier}


# Scores -----------------------------------------------------------------------------------------------------------


def score(folder: Path) -> dict[str, float]:
    about = read_json(folder / "about.json")
    rows = list(read_lines(folder / "predictions.jsonl"))
    numbers = class_scores([[row["true"]] for row in rows], [[row["predicted"]] for row in rows], about["train labels"])
    numbers["training nodes"] = float(about["train nodes"])
    above = above_largest([row["true"] for row in rows], [row["predicted"] for row in rows], about["train labels"])
    exact = replace(above, value=numbers["accuracy"] - numbers["accuracy.floor"])  # the last digit of a mean may differ
    numbers |= {name: max(0.0, value) for name, value in exact.named("above the largest class").items()}
    if (folder / "readings.json").is_file():
        numbers |= {name: float(value) for name, value in read_json(folder / "readings.json").items()}
    return numbers


def above_largest(truth: Sequence[str], predicted: Sequence[str], train: Mapping[str, int]) -> Interval:
    """Accuracy beyond that of always naming the largest class, on the same nodes."""
    largest = most_frequent(list(Counter(train).elements()))
    gained = [float(said == true) - float(true == largest) for true, said in zip(truth, predicted, strict=True)]
    return mean_interval(gained, resamples=RESAMPLES)


def check(parameters: GraphTraining, inputs: frozenset[str] = frozenset()) -> None:
    if parameters.method in JOB_METHODS and not parameters.private:
        raise BadInputError(
            "method-needs-epsilon",
            "the method '{method}' needs an epsilon: give one, or vary over epsilon",
            method=parameters.method,
        )
    if parameters.method == "majority" and parameters.private:
        raise BadInputError(
            "method-without-noise",
            "the method 'majority' has no noise, so an epsilon says nothing: leave it out",
        )
    if parameters.method in ("convolution", "published"):
        require("torch", extra="training", purpose="a graph convolution")
    if parameters.nodes == "rest" and parameters.split is None:
        raise BadInputError(
            "rest-without-split",
            "nodes = \"rest\" reads the split of the file: name its column with 'split'",
        )


def fits(parameters: GraphTraining, inputs: Mapping[str, PlannedCell]) -> None:
    files = data_in(inputs).files
    if missing := [name for name in ("nodes", "edges") if name not in files]:
        raise BadInputError(
            "graph-files-missing",
            "a graph needs two files, and 'files.{file}' of the data set is missing: add it",
            file=missing[0],
        )


def meaning(parameters: GraphTraining) -> str:
    """The unit that the epsilon of a cell is counted per; the linear models always speak of one node."""
    if parameters.method == "published":
        return "claimed by the published code"
    whole = parameters.method == "convolution" and parameters.reading == "subgraph"
    return "per subgraph that comes or goes" if whole else "per node that is replaced"


KIND = Kind(
    "graph", 2, GraphTraining, run, score, {"data": Input(("data",))}, check, epsilon=meaning,
    measures=("accuracy", "above the largest class", "macro-F1", "epsilon of a node, poisson",
              "epsilon of a node, visits", "epsilon of a subgraph, poisson"), fits=fits,
    further=(*OF_CLASSES, *OF_THE_CARD, "training nodes", "epsilon of a *", "claimed epsilon",
             "noise multiplier"),
)  # fmt: skip
