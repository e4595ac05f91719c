"""The options of training on a private graph, and of labeling nodes with the result."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from tacit.account.delta import automatic_delta
from tacit.errors import BadParameterError
from tacit.guarantee import Adjacency, check_epsilon
from tacit.jobs.charging import check_name_of_rows
from tacit.jobs.config import Config, Group, Option, Varied
from tacit.jobs.fields import (
    AutoDelta,
    Bound,
    DatasetOfInput,
    Device,
    Force,
    LabelColumn,
    LearningRate,
    Ledger,
    Model,
    Optimizer,
    Output,
    PublicWords,
    ReplaceOne,
    StartSeed,
    TestSeed,
    TrainingEpsilon,
    Trials,
)
from tacit.jobs.sources import Source, needs_of_source
from tacit.jobs.values import CommaSeparated
from tacit.needs import ACCOUNTING, MODELS, Ability, needs_of_encoder, needs_of_ledger, needs_of_place

Nodes = Annotated[
    Source,
    Field(description="One row per node: its name, its words, its label (csv, tsv, jsonl …)."),
    Option(Group.DATA, positional=True, metavar="NODES", private=True),
]
CleanLinks = Annotated[
    bool, Field(description="Drop self-loops and repeated links instead of refusing them."), Option(Group.DATA)
]


Links = Annotated[
    Source,
    Field(description="One row per link, columns source and target, each link once."),
    Option(Group.DATA, positional=True, metavar="LINKS", private=True),
]


class GraphConfig(Config):
    """Nodes, links, and what pays for what is learned from them."""

    job: ClassVar[str] = "graph train"

    nodes: Nodes
    links: Links
    output: Output[Path]
    epsilon: Annotated[
        TrainingEpsilon[float],
        Field(description="The privacy budget of one node; subgraphs: 'inf' trains without privacy, for comparison."),
    ]
    method: Annotated[
        Literal["messages", "words", "subgraphs", "as-published"],
        Field(
            description="messages: noisy messages between nodes; words: no links at all; subgraphs: a graph "
            "convolution on random subgraphs; as-published: the same as its authors' code, without clipping and "
            "without a guarantee."
        ),
        Option(Group.MODEL),
    ] = "messages"
    features: Annotated[
        Literal["indices", "words", "minilm"],
        Field(
            description="indices: numbers of the words a node has; words: a column of texts, bag of words; minilm: a "
            "column of texts, vectors of a public encoder."
        ),
        Option(Group.DATA),
    ] = "indices"
    feature_column: Annotated[
        str | None,
        Field(description="The column of words; by default 'features', or 'text' for texts."),
        Option(Group.DATA),
    ] = None
    feature_count: Annotated[
        int | None,
        Field(
            ge=1,
            description="indices: how many words there are, known beforehand; else the largest index is visible.",
        ),
        Option(Group.DATA),
    ] = None
    public_words: Annotated[
        PublicWords[Path | None],
        Field(description="A public list of words, one per line; without it words are hashed."),
        Varied(group=Group.DATA, old_names=("vocabulary",)),
    ] = None
    name_column: Annotated[str, Field(description="The column of the names of the nodes."), Option(Group.DATA)] = "node"
    label_column: Annotated[
        LabelColumn[str], Field(description="The column of labels; empty or -1: a node to predict.")
    ] = "label"
    split_column: Annotated[
        str | None,
        Field(description="A column that says which nodes train; else all that have a label."),
        Option(Group.DATA),
    ] = None
    train_on: Annotated[
        tuple[str, ...],
        CommaSeparated,
        Field(description="Its values that mean training, separated by commas."),
        Option(Group.DATA, comma_separated=True),
    ] = ("train",)
    hold_out: Annotated[
        float,
        Field(
            ge=0,
            lt=1,
            description="Share of the labeled nodes kept from training (drawn at random) to score on.",
        ),
        Option(Group.DATA),
    ] = 0.0
    clean_links: CleanLinks = False
    delta: Annotated[
        AutoDelta, Field(description="What every probability may grow by; 'auto': well below 1 / nodes.")
    ] = "auto"
    replace_one: Annotated[
        ReplaceOne, Field(description="messages, words: hide what a node is, not only whether it is there.")
    ] = False
    use_links: Annotated[
        int, Field(description="messages: links of a node that are used, at most."), Option(Group.TRAINING)
    ] = 2
    subgraphs: Annotated[int, Field(description="subgraphs, as-published: how many."), Option(Group.TRAINING)] = 10
    passes: Annotated[
        int, Field(description="subgraphs, as-published: passes over all of them."), Option(Group.TRAINING)
    ] = 10
    optimizer: Annotated[
        Optimizer[Literal["adam", "sgd"]],
        Field(description="subgraphs, as-published: how steps follow from gradients."),
    ] = "adam"
    learning_rate: Annotated[
        LearningRate[float], Field(description="subgraphs, as-published: how far a step goes.")
    ] = 0.01
    bound: Annotated[Bound, Field(description="subgraphs: longest gradient of one subgraph.")] = 1.0
    reading: Annotated[
        Literal["node", "subgraph"],
        Field(description="subgraphs: what is hidden, a 'node' (sensitivity 2 C) or a whole 'subgraph' (C)."),
        Option(Group.PRIVACY),
    ] = "node"
    sampling: Annotated[
        Literal["poisson", "visits"],
        Field(description="subgraphs: 'poisson' (secret random ones) or 'visits' (each once per pass)."),
        Option(Group.PRIVACY),
    ] = "poisson"
    trials: Trials = 1
    seed: TestSeed = None
    start_seed: Annotated[
        StartSeed, Field(description="Seed of what is drawn in public, 0 by default: subgraphs, links, new weights.")
    ] = None
    device: Annotated[
        Device, Field(description="subgraphs: where the network computes: auto, cpu, cuda, cuda:N, mps.")
    ] = "auto"
    ledger: Ledger = None
    dataset: DatasetOfInput = None

    def needs(self) -> list[Ability]:
        return [
            *([MODELS] if self.is_convolution else []),
            *([ACCOUNTING] if self.method == "subgraphs" and self.private else []),
            *(needs_of_encoder("minilm") if self.features == "minilm" else []),
            *needs_of_source(self.nodes),
            *needs_of_source(self.links),
            *needs_of_ledger(self.ledger),
        ]

    @model_validator(mode="after")
    def _options_fit_together(self) -> Self:
        check_name_of_rows(self, self.nodes)
        if self.private or self.method != "subgraphs":
            check_epsilon(self.epsilon)
        if self.feature_count is not None and self.features != "indices":
            raise BadParameterError(
                "feature-count-without-indices", "{option.feature_count} belongs to {option.features[indices]}"
            )
        if self.public_words is not None and self.features != "words":
            raise BadParameterError("vocabulary-without-words", "a vocabulary belongs to {option.features[words]}")
        return self

    @property
    def private(self) -> bool:
        """Whether there is noise."""
        return math.isfinite(self.epsilon)

    @property
    def is_convolution(self) -> bool:
        """Whether a network is trained, which reads links when it predicts."""
        return self.method in ("subgraphs", "as-published")

    @property
    def adjacency(self) -> Adjacency:
        """How neighbors differ."""
        return Adjacency.REPLACE_ONE if self.replace_one else Adjacency.ADD_REMOVE

    def delta_of_one_run(self, nodes: int) -> float:
        """The delta of one run; by default that of all trials together stays below one over the nodes."""
        return automatic_delta(nodes, self.trials) if self.delta == "auto" else self.delta

    def columns(self) -> dict[str, str]:
        """The settings that a saved model needs to read other nodes."""
        return {"name": self.name_column, "label": self.label_column, "encoder": self.features}


class GraphPredictConfig(Config):
    """A trained graph model, and the nodes that it labels."""

    job: ClassVar[str] = "graph predict"

    model: Annotated[
        Model[Path],
        Field(description="A folder made by 'tacit graph train'."),
        Varied(positional=True, metavar="MODEL"),
    ]
    nodes: Nodes
    links: Annotated[
        Links, Field(description="The links, for models of the method 'subgraphs'."), Varied(metavar="[LINKS]")
    ] = None
    output: Annotated[Output[Path | None], Field(description="The file to write: node, label (csv, tsv, jsonl …).")] = (
        None
    )
    clean_links: CleanLinks = False
    force: Annotated[Force, Field(description="Replace the output if it exists.")] = False

    def needs(self) -> list[Ability]:
        links = [] if self.links is None else needs_of_source(self.links)
        return [*needs_of_source(self.nodes), *links, *needs_of_place(str(self.output or ""))]
