"""The two-layer graph convolution (Kipf & Welling 2017; Igamberdiev 2023, equation 3.1):

    H = ReLU( S X W1 + b1 ),   logits = S H W2 + b2,   S = D^(-1/2) (A + I) D^(-1/2),   D the degrees of A + I

Degrees are those of the graph at hand: inside a subgraph they are counted anew, else they would tell of links that were
cut. A batch holds several subgraphs as padded blocks, so that the gradient of each comes from the same engines as for
texts. Weights carry the names they have in torch-geometric's GCNConv, which loads them as they are.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from tacit.devices import device_of
from tacit.noise.source import public_generator
from tacit.training.gradients import Batch
from tacit.training.graphs.graph import Graph
from tacit.training.tasks.base import IGNORED, cross_entropy_per_token


class Convolution(nn.Module):
    """S X W + b, for one graph (n, d) or a batch of them (B, n, d); S dense or sparse."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.lin = nn.Linear(inputs, outputs, bias=False)
        self.bias = nn.Parameter(torch.zeros(outputs))
        nn.init.xavier_uniform_(self.lin.weight)

    def forward(self, rows: Tensor, smoothing: Tensor) -> Tensor:
        mixed: Tensor = smoothing @ self.lin(rows)
        return mixed + self.bias


class GCN(nn.Module):
    def __init__(self, inputs: int, classes: int, hidden: int = 32, dropout: float = 0.5) -> None:
        super().__init__()
        self.conv1 = Convolution(inputs, hidden)
        self.conv2 = Convolution(hidden, classes)
        self.dropout = nn.Dropout(dropout)

    def forward(self, rows: Tensor, smoothing: Tensor) -> Tensor:
        hidden = self.dropout(torch.relu(self.conv1(rows, smoothing)))
        logits: Tensor = self.conv2(hidden, smoothing)
        return logits


def subgraph_loss(model: nn.Module, batch: Batch) -> Tensor:
    """(B,): the mean cross-entropy over the labeled nodes of each subgraph."""
    return cross_entropy_per_token(model(batch["features"], batch["smoothing"]), batch["labels"])


def smoothing_matrix(nodes: int, links: NDArray[np.int64]) -> Tensor:
    """S of a graph, sparse, with the degrees of this graph."""
    loops = np.arange(nodes)
    rows = np.concatenate([links[:, 0], links[:, 1], loops])
    columns = np.concatenate([links[:, 1], links[:, 0], loops])
    root = 1.0 / np.sqrt(np.bincount(rows, minlength=nodes))
    values = torch.from_numpy((root[rows] * root[columns]).astype(np.float32))
    return torch.sparse_coo_tensor(
        torch.from_numpy(np.stack([rows, columns])), values, (nodes, nodes), check_invariants=False
    ).coalesce()


def collate_subgraphs(
    graph: Graph, groups: Sequence[NDArray[np.int64]], counted: NDArray[np.bool_]
) -> dict[str, Tensor]:
    """Subgraphs as padded blocks. Links to other groups are cut; only `counted` nodes add to the loss."""
    longest = max(1, *(len(group) for group in groups)) if len(groups) > 1 else max(1, len(groups[0]))
    features = np.zeros((len(groups), longest, graph.features.shape[1]), dtype=np.float32)
    smoothing = np.zeros((len(groups), longest, longest), dtype=np.float32)
    labels = np.full((len(groups), longest), IGNORED, dtype=np.int64)
    for b, group in enumerate(groups):
        size = len(group)
        features[b, :size] = graph.features[group].toarray()
        smoothing[b, :size, :size] = smoothing_matrix(size, links_within(graph.links, group, graph.nodes)).to_dense()
        labels[b, :size] = np.where(counted[group], graph.labels[group], IGNORED)
    return {
        "features": torch.from_numpy(features),
        "smoothing": torch.from_numpy(smoothing),
        "labels": torch.from_numpy(labels),
    }


def links_within(links: NDArray[np.int64], group: NDArray[np.int64], nodes: int) -> NDArray[np.int64]:
    """The links between nodes of the group, numbered as in the group."""
    place = np.full(nodes, -1, dtype=np.int64)
    place[group] = np.arange(len(group))
    moved = place[links]
    return moved[(moved >= 0).all(axis=1)]


def probes(inputs: int, classes: int) -> list[Batch]:
    """Made-up batches of 3 and 5 small graphs, for checking an engine: nothing of the private graph is needed."""
    generator = public_generator(11)
    made: list[Batch] = []
    for size in (3, 5):
        near = (generator.random((size, 6, 6)) < 0.4).astype(np.float32)
        made.append(
            {
                "features": torch.from_numpy(generator.random((size, 6, inputs)).astype(np.float32)),
                "smoothing": torch.from_numpy(near + near.transpose(0, 2, 1) + np.eye(6, dtype=np.float32)) / 3.0,
                "labels": torch.from_numpy(generator.integers(0, classes, (size, 6))),
            }
        )
    return made


@torch.no_grad()
def predict(model: GCN, graph: Graph) -> NDArray[np.float64]:
    """Class probabilities (n, classes) of every node of the whole graph."""
    model.eval()
    device = device_of(model)
    rows = torch.from_numpy(graph.features.toarray().astype(np.float32)).to(device)
    logits = model(rows, smoothing_matrix(graph.nodes, graph.links).to(device))
    return np.asarray(logits.softmax(1).cpu().numpy(), dtype=np.float64)
