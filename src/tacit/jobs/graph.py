"""Labels for the nodes of a private graph, such as papers that cite each other or users who know each other.

result = tacit.jobs.graph.train("nodes.tsv", "links.tsv", epsilon=8, output="model", hold_out=0.15)
labels = tacit.jobs.graph.predict("model", "nodes.tsv", output="labels.csv")
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tacit.card import Card
from tacit.errors import BadInputError
from tacit.evaluation.scores import ClassificationScores, classification_scores
from tacit.guarantee import Guarantee
from tacit.jobs.charging import charging_rows
from tacit.jobs.graph_config import GraphConfig, GraphPredictConfig
from tacit.jobs.training.graphs import (
    GraphProgress,
    encoder_of,
    held_out_nodes,
    learn_labels,
    read_nodes_and_links,
)
from tacit.places import refuse_taken_file
from tacit.text.files import write_columns, write_whole
from tacit.training.graphs.graph import read_graph
from tacit.training.graphs.saved import check_folder, load_saved, predict_saved, prediction_guarantee

__all__ = [
    "GraphConfig",
    "GraphLabels",
    "GraphPredictConfig",
    "GraphProgress",
    "GraphResult",
    "predict",
    "run",
    "run_predict",
    "train",
]


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
    configuration: Mapping[str, object] = field(default_factory=dict)

    @property
    def card(self) -> Card:
        return Card(self.guarantee, configuration=self.configuration)

    def __str__(self) -> str:
        return f"{self.folder}: {self.guarantee}"


@dataclass(frozen=True)
class GraphLabels:
    """A label for each node, and what they promise."""

    names: tuple[str, ...]
    labels: tuple[str, ...]
    guarantee: Guarantee
    configuration: Mapping[str, object] = field(default_factory=dict)

    @property
    def card(self) -> Card:
        return Card(self.guarantee, configuration=self.configuration)


def run(config: GraphConfig, progress: GraphProgress | None = None) -> GraphResult:
    """A model of a private graph, in its folder, with its card."""
    check_folder(config.output)
    graph = read_nodes_and_links(config)
    training = graph.in_split(*config.train_on) if config.split_column else graph.labeled
    training, held = held_out_nodes(training, config.hold_out) if config.hold_out else (training, training[:0])
    with charging_rows(config, config.nodes, "tacit graph train") as charge:
        learned = learn_labels(config, graph, training, progress or GraphProgress(), before_noise=charge.reserve)
        learned.save(config, graph)
        charge.commit()
    scores = None
    if len(held):
        truth, labels = ([graph.classes[i] for i in numbers[held]] for numbers in (graph.labels, learned.labels))
        scores = classification_scores(truth, labels)
    return GraphResult(learned.guarantee, config.output, len(training), len(held), scores, config.identity())


def train(
    nodes: object,
    links: object,
    *,
    epsilon: float,
    output: str | Path,
    progress: GraphProgress | None = None,
    **options: Any,
) -> GraphResult:
    """A model that labels nodes, trained under differential privacy; files or data in memory, options as in
    `GraphConfig`."""
    return run(GraphConfig(nodes=nodes, links=links, epsilon=epsilon, output=Path(output), **options), progress)


def predict(model: str | Path, nodes: object, links: object = None, **options: Any) -> GraphLabels:
    """A label for each node; files or data in memory, options as in `GraphPredictConfig`."""
    return run_predict(GraphPredictConfig(model=Path(model), nodes=nodes, links=links, **options))


def run_predict(config: GraphPredictConfig) -> GraphLabels:
    """A label for each node of a file, and beside the written file its card."""
    saved = load_saved(config.model)
    card = None if config.output is None else config.output.with_name(config.output.name + ".card.json")
    for path in (config.output, card):
        if path is not None:
            refuse_taken_file(path, force=config.force)
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
    made = GraphLabels(graph.names, tuple(predict_saved(saved, graph)), prediction_guarantee(saved), config.identity())
    if config.output is not None and card is not None:
        # The card first: no file of labels is there without one.
        write_whole(card, made.card.to_json())
        write_columns(config.output, {"node": list(made.names), "label": list(made.labels)}, force=config.force)
    return made
