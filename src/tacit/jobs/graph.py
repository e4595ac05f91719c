"""Labels for the nodes of a private graph, such as papers that cite each other or users who know each other.

result = tacit.jobs.graph.train("nodes.tsv", "links.tsv", epsilon=8, output="model", hold_out=0.15)
labels = tacit.jobs.graph.predict("model", "nodes.tsv", output="labels.csv")
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from tacit.arrays import Ids
from tacit.card import Card
from tacit.errors import BadInputError, BadParameterError, require
from tacit.evaluation.scores import ClassificationScores, classification_scores
from tacit.guarantee import Adjacency, Guarantee, Provenance, check_epsilon
from tacit.jobs.config import Config, Group, Option
from tacit.jobs.fields import (
    CommaSeparated,
    Delta,
    Epsilon,
    LabelColumn,
    Output,
    ReplaceOne,
    Source,
    TestSeed,
    Trials,
    needs_of_source,
)
from tacit.needs import ACCOUNTING, MODELS, Ability, needs_of_encoder, needs_of_place
from tacit.noise.source import StreamKey, public_generator
from tacit.text.files import write_columns, write_whole
from tacit.training.graphs.graph import Encode, Features, Graph, read_graph
from tacit.training.graphs.messages import NodePlan, node_guarantee, train_messages
from tacit.training.graphs.saved import (
    check_folder,
    load_saved,
    predict_saved,
    prediction_guarantee,
    save_network,
    save_nodes,
)
from tacit.training.plan import automatic_delta

if TYPE_CHECKING:
    from tacit.training.graphs.subgraphs import SubgraphPlan


Nodes = Annotated[
    Source,
    Field(description="One row per node: its name, its words, its label (csv, tsv, jsonl …)."),
    Option(Group.DATA, positional=True, metavar="NODES"),
]
CleanLinks = Annotated[
    bool, Field(description="Drop self-loops and repeated links instead of refusing them."), Option(Group.DATA)
]


class GraphConfig(Config):
    """Nodes, links, and what pays for what is learned from them."""

    job: ClassVar[str] = "graph train"

    nodes: Nodes
    links: Annotated[
        Source,
        Field(description="One row per link, columns source and target, each link once."),
        Option(Group.DATA, positional=True, metavar="LINKS"),
    ]
    output: Output
    epsilon: Annotated[Epsilon[float], Field(description="The privacy budget of one node.")]
    method: Annotated[
        Literal["messages", "words", "subgraphs"],
        Field(
            description="messages: noisy messages between nodes; words: no links at all; subgraphs: a graph "
            "convolution on random subgraphs."
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
    vocabulary: Annotated[
        Path | None,
        Field(description="A public list of words, one per line; without it words are hashed."),
        Option(Group.DATA),
    ] = None
    name_column: Annotated[str, Field(description="The column of the names of the nodes."), Option(Group.DATA)] = "node"
    label_column: Annotated[LabelColumn, Field(description="The column of labels; empty or -1: a node to predict.")] = (
        "label"
    )
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
    delta: Annotated[Delta, Field(description="What every probability may grow by; 'auto': well below 1 / nodes.")] = (
        "auto"
    )
    replace_one: Annotated[
        ReplaceOne, Field(description="messages, words: hide what a node is, not only whether it is there.")
    ] = False
    use_links: Annotated[
        int, Field(description="messages: links of a node that are used, at most."), Option(Group.TRAINING)
    ] = 2
    subgraphs: Annotated[int, Field(description="subgraphs: how many."), Option(Group.TRAINING)] = 10
    passes: Annotated[int, Field(description="subgraphs: passes over all of them."), Option(Group.TRAINING)] = 10
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

    def needs(self) -> list[Ability]:
        return [
            *([MODELS, ACCOUNTING] if self.method == "subgraphs" else []),
            *(needs_of_encoder("minilm") if self.features == "minilm" else []),
            *needs_of_source(self.nodes),
            *needs_of_source(self.links),
        ]

    @model_validator(mode="after")
    def _options_fit_together(self) -> Self:
        check_epsilon(self.epsilon)
        if self.feature_count is not None and self.features != "indices":
            raise BadParameterError(
                "feature-count-without-indices", "{option.feature_count} belongs to {option.features[indices]}"
            )
        if self.vocabulary is not None and self.features != "words":
            raise BadParameterError("vocabulary-without-words", "a vocabulary belongs to {option.features[words]}")
        return self

    @property
    def adjacency(self) -> Adjacency:
        """How neighbors differ."""
        return Adjacency.REPLACE_ONE if self.replace_one else Adjacency.ADD_REMOVE

    def delta_of_one_run(self, nodes: int) -> float:
        """The delta of one run; by default that of all trials together stays below one over the nodes."""
        return automatic_delta(nodes, self.trials) if self.delta == "auto" else self.delta

    def columns(self) -> dict[str, str]:
        """What a saved model has to know to read other nodes."""
        return {"name": self.name_column, "label": self.label_column or "label", "encoder": self.features}


class GraphPredictConfig(Config):
    """A trained graph model, and the nodes that it labels."""

    job: ClassVar[str] = "graph predict"

    model: Annotated[
        Path,
        Field(description="A folder made by 'tacit graph train'."),
        Option(Group.MODEL, positional=True, metavar="MODEL"),
    ]
    nodes: Nodes
    links: Annotated[
        Source,
        Field(description="The links, for models of the method 'subgraphs'."),
        Option(Group.DATA, positional=True, metavar="[LINKS]"),
    ] = None
    output: Annotated[
        Path | None, Field(description="The file to write: node, label (csv, tsv, jsonl …)."), Option(Group.DATA)
    ] = None
    clean_links: CleanLinks = False
    force: Annotated[bool, Field(description="Replace the output if it exists."), Option(Group.RUN)] = False

    def needs(self) -> list[Ability]:
        links = [] if self.links is None else needs_of_source(self.links)
        return [*needs_of_source(self.nodes), *links, *needs_of_place(str(self.output or ""))]


class GraphProgress:
    """Hears of a training on a graph while it works; override what should be shown."""

    def planned(self, plan: SubgraphPlan) -> None:
        """The noise of a graph convolution is fixed, and nothing has been trained yet."""

    def stepped(self, done: int, total: int) -> None:
        """So many steps are done."""


@dataclass(frozen=True)
class GraphResult:
    """A trained graph model: what it promises, where it lies, and its scores on nodes that were held out.

    The scores are of private nodes, so no guarantee covers them.
    """

    guarantee: Guarantee
    folder: Path
    trained: int
    held_out: int
    scores: ClassificationScores | None

    @property
    def card(self) -> Card:
        return Card(self.guarantee)

    def __str__(self) -> str:
        return f"{self.folder}: {self.guarantee}"


@dataclass(frozen=True)
class GraphLabels:
    """A label for each node, and what they promise."""

    names: tuple[str, ...]
    labels: tuple[str, ...]
    guarantee: Guarantee

    @property
    def card(self) -> Card:
        return Card(self.guarantee)


def run(config: GraphConfig, progress: GraphProgress | None = None) -> GraphResult:
    """A model of a private graph, in its folder, with its card."""
    check_folder(config.output)
    features = features_of(config)
    graph = read_graph(
        config.nodes,
        config.links,
        features,
        name_column=config.name_column,
        label_column=config.columns()["label"],
        split_column=config.split_column,
        clean=config.clean_links,
        encode=encoder_of(config.features),
    )
    training = graph.in_split(*config.train_on) if config.split_column else graph.labeled
    training, held = _held_out(training, config.hold_out) if config.hold_out else (training, training[:0])
    train_model = _trained_on_subgraphs if config.method == "subgraphs" else _trained_on_nodes
    guarantee, predicted = train_model(config, _Part(graph, training, features), progress or GraphProgress())
    scores = None
    if len(held):
        truth, labels = ([graph.classes[i] for i in numbers[held]] for numbers in (graph.labels, predicted))
        scores = classification_scores(truth, labels)
    return GraphResult(guarantee, config.output, len(training), len(held), scores)


def train(
    nodes: Any,
    links: Any,
    *,
    epsilon: float,
    output: str | Path,
    progress: GraphProgress | None = None,
    **options: Any,
) -> GraphResult:
    """A model that labels nodes, trained under differential privacy; files or data in memory, options as in
    `GraphConfig`."""
    return run(GraphConfig(nodes=nodes, links=links, epsilon=epsilon, output=Path(output), **options), progress)


def predict(model: str | Path, nodes: Any, links: Any = None, **options: Any) -> GraphLabels:
    """A label for each node; files or data in memory, options as in `GraphPredictConfig`."""
    return run_predict(GraphPredictConfig(model=Path(model), nodes=nodes, links=links, **options))


def run_predict(config: GraphPredictConfig) -> GraphLabels:
    """A label for each node of a file, and beside the written file its card."""
    saved = load_saved(config.model)
    card = None if config.output is None else config.output.with_name(config.output.name + ".card.json")
    for path in (config.output, card):
        if path is not None and path.exists() and not config.force:
            raise BadInputError(
                "file-exists", "{path} exists: give another name, or {option.force} to replace it", path=path
            )
    if saved.needs_links and config.links is None:
        raise BadInputError(
            "links-missing", "this model reads the links of the graph when it predicts: give them after the nodes"
        )
    graph = read_graph(
        config.nodes,
        config.links,
        saved.features,
        name_column=saved.columns["name"],
        label_column=saved.columns["label"],
        clean=config.clean_links,
        encode=encoder_of(saved.columns["encoder"]),
        classes=saved.classes,
    )
    made = GraphLabels(graph.names, tuple(predict_saved(saved, graph)), prediction_guarantee(saved))
    if config.output is not None and card is not None:
        # The card first: no file of labels is there without one.
        write_whole(card, made.card.to_json())
        write_columns(config.output, {"node": list(made.names), "label": list(made.labels)}, force=config.force)
    return made


# Parts ----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Part:
    """The nodes of a graph that train, and how nodes became numbers."""

    graph: Graph
    training: Ids
    features: Features


def features_of(config: GraphConfig) -> Features:
    """How a node of a configuration becomes numbers."""
    if config.features == "minilm":
        return Features("vectors", config.feature_column or "text")
    usual = "features" if config.features == "indices" else "text"
    words = () if config.vocabulary is None else _listed_words(config.vocabulary)
    return Features(config.features, config.feature_column or usual, config.feature_count or 0, words)


def encoder_of(features: str) -> Encode | None:
    """The public encoder of texts, where features come from one."""
    if features != "minilm":
        return None
    from tacit.documents.encoder import SentenceEncoder

    encoder = SentenceEncoder("minilm")

    def encode(texts: Sequence[str]) -> NDArray[np.float64]:
        # Each text alone: the last bits of a node's vector must not tell of the texts of other nodes.
        return np.stack(list(map(encoder.encode_alone, texts)))

    return encode


def _listed_words(path: Path) -> tuple[str, ...]:
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise BadInputError(
            "unreadable-word-list",
            "the vocabulary {path} cannot be read: give a text file, a word per line",
            path=path,
        ) from error
    return tuple(dict.fromkeys(line.strip().lower() for line in lines if line.strip()))


def _provenance(config: GraphConfig) -> tuple[Provenance, ...]:
    """Where the meaning of the features comes from."""
    if config.features == "minilm":
        return (Provenance("text encoder", "all-MiniLM-L6-v2, assumed to be trained on public text"),)
    if config.vocabulary is not None:
        return (Provenance("vocabulary", f"{config.vocabulary.name}, given as public"),)
    if config.features == "indices":
        return (Provenance("words", "numbered in the nodes file, assumed to be a public list"),)
    return ()


def _held_out(training: Ids, share: float) -> tuple[Ids, Ids]:
    """Nodes to train on and nodes to score on, drawn by public randomness."""
    order = public_generator(0).permutation(training)
    held = round(share * len(order))
    if not 0 < held < len(order):
        raise BadInputError(
            "nothing-held-out",
            "a share of {share:g} ({option.hold_out}) of {nodes:,} labeled nodes leaves nothing to train or to score "
            "on",
            share=share,
            nodes=len(order),
        )
    return order[held:], order[:held]


def _key(config: GraphConfig) -> StreamKey:
    return StreamKey.from_os() if config.seed is None else StreamKey.from_test_seed(config.seed)


def _trained_on_nodes(config: GraphConfig, part: _Part, progress: GraphProgress) -> tuple[Guarantee, Ids]:
    """A model of words, or of words and noisy messages, saved; what it promises, and the label of each node."""
    graph, key = part.graph, _key(config)
    plan = NodePlan.calibrated(
        epsilon=config.epsilon,
        nodes=graph.nodes,
        delta=config.delta_of_one_run(graph.nodes),
        links=config.use_links if config.method == "messages" else 0,
        adjacency=config.adjacency,
    )
    guarantee = node_guarantee(
        plan,
        secure=key.secure,
        trials=config.trials,
        provenance=_provenance(config),
        not_covered=part.features.not_covered,
    )
    model = train_messages(graph, part.training, plan, key, progress=progress.stepped)
    save_nodes(config.output, graph, model, guarantee, "messages" if plan.links else "words", config.columns())
    return guarantee, model.logits(graph.features, model.evidence).argmax(1)


def _trained_on_subgraphs(config: GraphConfig, part: _Part, progress: GraphProgress) -> tuple[Guarantee, Ids]:
    """A graph convolution, saved; what it promises, and the label of each node."""
    require("torch", extra="training", purpose="a graph convolution")
    from tacit.training.graphs.gcn import predict as predict_all
    from tacit.training.graphs.subgraphs import (
        SubgraphSettings,
        plan_subgraphs,
        split_nodes,
        subgraph_guarantee,
        train_subgraphs,
    )

    graph, key, settings = part.graph, _key(config), SubgraphSettings()
    split_nodes(part.training, config.subgraphs)
    plan = plan_subgraphs(
        epsilon=config.epsilon,
        nodes=graph.nodes,
        delta=config.delta_of_one_run(graph.nodes),
        subgraphs=config.subgraphs,
        passes=config.passes,
        reading=config.reading,
        sampling=config.sampling,
    )
    guarantee = subgraph_guarantee(
        plan,
        settings,
        secure=key.secure,
        trials=config.trials,
        provenance=_provenance(config),
        not_covered=part.features.not_covered,
    )
    progress.planned(plan)
    network, _ = train_subgraphs(graph, part.training, plan, key, settings, progress.stepped)
    save_network(config.output, graph, network, guarantee, config.columns())
    return guarantee, predict_all(network, graph).argmax(1)
