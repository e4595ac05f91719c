"""The trainings on a graph: how nodes become numbers, which of them train, and the two kinds of models."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Ids
from tacit.devices import device_named
from tacit.documents.encoder import SentenceEncoder
from tacit.errors import BadInputError, require
from tacit.guarantee import Guarantee, Provenance
from tacit.jobs.graph_config import GraphConfig
from tacit.noise.source import StreamKey, public_generator
from tacit.training.graphs.graph import Encode, Features, Graph, read_graph
from tacit.training.graphs.messages import NodeModel, NodePlan, node_guarantee, train_messages
from tacit.training.graphs.saved import save_network, save_nodes

if TYPE_CHECKING:
    from tacit.training.graphs.gcn import GCN
    from tacit.training.graphs.published import PublishedPlan
    from tacit.training.graphs.subgraphs import SubgraphPlan, SubgraphSettings


BeforeNoise = Callable[[Guarantee], None]


class GraphProgress:
    """Callbacks of a training on a graph while it runs; override those that should show something."""

    def planned(self, plan: SubgraphPlan) -> None:
        """The noise of a graph convolution is fixed, and nothing has been trained yet."""

    def stepped(self, done: int, total: int) -> None:
        """Called when so many steps are done."""


def features_of(config: GraphConfig) -> Features:
    """How a node of a configuration becomes numbers."""
    if config.features == "minilm":
        return Features("vectors", config.feature_column or "text")
    usual = "features" if config.features == "indices" else "text"
    words = () if config.public_words is None else _listed_words(config.public_words)
    return Features(config.features, config.feature_column or usual, config.feature_count or 0, words)


def encoder_of(features: str) -> Encode | None:
    """The public encoder of texts, where features come from one."""
    if features != "minilm":
        return None

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
    if config.public_words is not None:
        return (Provenance("vocabulary", f"{config.public_words.name}, given as public"),)
    if config.features == "indices":
        return (Provenance("words", "numbered in the nodes file, assumed to be a public list"),)
    return ()


def held_out_nodes(training: Ids, share: float) -> tuple[Ids, Ids]:
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


@dataclass(frozen=True)
class LearnedGraph:
    """A model of a graph before it is saved: what it promises, the label of each node, and its plan."""

    guarantee: Guarantee
    labels: Ids
    plan: NodePlan | SubgraphPlan | PublishedPlan
    model: NodeModel | GCN = field(repr=False)

    def save(self, config: GraphConfig, graph: Graph) -> None:
        """Write weights and card to the folder of a configuration."""
        if isinstance(self.plan, NodePlan):
            assert isinstance(self.model, NodeModel)
            method = "messages" if self.plan.links else "words"
            save_nodes(config.output, graph, self.model, self.guarantee, method, config.columns(), config.identity())
        else:
            assert not isinstance(self.model, NodeModel)
            save_network(
                config.output, graph, self.model, self.guarantee, config.columns(), config.identity(),
                method=config.method,
            )  # fmt: skip


def read_nodes_and_links(config: GraphConfig) -> Graph:
    """The graph of a configuration."""
    return read_graph(
        config.nodes,
        config.links,
        features_of(config),
        name_column=config.name_column,
        label_column=config.label_column,
        split_column=config.split_column,
        clean=config.clean_links,
        encode=encoder_of(config.features),
    )


def learn_labels(
    config: GraphConfig,
    graph: Graph,
    training: Ids,
    progress: GraphProgress,
    key: StreamKey | None = None,
    before_noise: BeforeNoise = lambda promised: None,
) -> LearnedGraph:
    """A model that has learned from some nodes of a graph; nothing is written.

    key            that of the noise, where the caller keeps it; by default a new one, or that of the test seed
    before_noise   called with the promise before any noise is drawn; what it raises stops the training
    """
    if key is None:
        key = StreamKey.from_os() if config.seed is None else StreamKey.from_test_seed(config.seed)
    by_method = {"subgraphs": _learn_by_subgraphs, "as-published": _learn_as_published}
    learn = by_method.get(config.method, _learn_by_nodes)
    return learn(config, graph, training, progress, key, before_noise)


def _learn_by_nodes(
    config: GraphConfig,
    graph: Graph,
    training: Ids,
    progress: GraphProgress,
    key: StreamKey,
    before_noise: BeforeNoise,
) -> LearnedGraph:
    """A model of words, or of words and noisy messages."""
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
        not_covered=features_of(config).not_covered,
    )
    before_noise(guarantee)
    model = train_messages(graph, training, plan, key, seed=config.start_seed or 0, progress=progress.stepped)
    return LearnedGraph(guarantee, model.logits(graph.features, model.evidence).argmax(1), plan, model)


def _learn_by_subgraphs(
    config: GraphConfig,
    graph: Graph,
    training: Ids,
    progress: GraphProgress,
    key: StreamKey,
    before_noise: BeforeNoise,
) -> LearnedGraph:
    """A graph convolution."""
    require("torch", extra="training", purpose="a graph convolution")
    from tacit.training.graphs.gcn import predict as predict_all
    from tacit.training.graphs.subgraphs import plan_subgraphs, split_nodes, subgraph_guarantee, train_subgraphs

    settings = _settings(config)
    split_nodes(training, config.subgraphs)
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
        not_covered=features_of(config).not_covered,
    )
    before_noise(guarantee)
    progress.planned(plan)
    network, _ = train_subgraphs(graph, training, plan, key, settings, progress.stepped, device_named(config.device))
    return LearnedGraph(guarantee, predict_all(network, graph).argmax(1), plan, network)


def _learn_as_published(
    config: GraphConfig,
    graph: Graph,
    training: Ids,
    progress: GraphProgress,
    key: StreamKey,
    before_noise: BeforeNoise,
) -> LearnedGraph:
    """A graph convolution by the published code, whose card promises nothing."""
    require("torch", extra="training", purpose="a graph convolution")
    from tacit.training.graphs.gcn import predict as predict_all
    from tacit.training.graphs.published import (
        as_zeros_and_ones,
        plan_as_published,
        published_guarantee,
        train_as_published,
    )
    from tacit.training.graphs.subgraphs import split_nodes

    settings = _settings(config)
    split_nodes(training, config.subgraphs)
    plan = plan_as_published(
        epsilon=config.epsilon,
        parts=config.subgraphs,
        passes=config.passes,
        delta=config.delta_of_one_run(graph.nodes),
    )
    guarantee = published_guarantee(plan, settings, _provenance(config))
    before_noise(guarantee)
    network = train_as_published(
        graph, training, plan, key, settings, progress.stepped, device_named(config.device)
    )  # fmt: skip
    return LearnedGraph(guarantee, predict_all(network, as_zeros_and_ones(graph)).argmax(1), plan, network)


def _settings(config: GraphConfig) -> SubgraphSettings:
    """How a graph convolution is trained."""
    from tacit.training.graphs.subgraphs import SubgraphSettings

    return SubgraphSettings(
        optimizer=config.optimizer,
        learning_rate=config.learning_rate,
        bound=config.bound,
        seed=config.start_seed or 0,
    )
