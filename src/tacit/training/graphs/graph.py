"""A graph of texts: nodes with features and labels, undirected links between them.

Features are rows of length at most 1 that are made from each node alone, by public rules: an index over a fixed list of
words, words hashed into a fixed number of places, or vectors of a public encoder. Weights such as inverse document
frequencies would be learned from private texts, so there are none. Splits are drawn by public randomness and do not
look at features or links.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tacit.errors import BadInputError, BadParameterError, require
from tacit.noise.source import public_generator
from tacit.text.files import read_columns
from tacit.text.files.memory import source_name
from tacit.text.tokens import split as split_tokens

if TYPE_CHECKING:
    from torch_geometric.data import Data

NO_LABEL = -1
MISSING_LABELS = ("", "-1")
HASHED_WORDS = 2048
LARGEST_INDEX = (
    "the largest index of a word in the nodes file: the model is as wide (unless it is said how many there are)"
)

Encode = Callable[[Sequence[str]], NDArray[np.float64]]
"""Vectors of a public text encoder, one row per text."""


@dataclass(frozen=True)
class Features:
    """How a node becomes numbers. kind: 'indices' (numbers of the words it has, separated by spaces), 'words' (a text,
    hashed or looked up in `vocabulary`), 'vectors' (a text, by a public encoder). size: numbers per node; indices
    without one get as many as the largest of them, which is then visible in the model."""

    kind: str
    column: str
    size: int = 0
    vocabulary: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.kind not in ("indices", "words", "vectors"):
            raise BadParameterError(
                "unknown-features", "there are no features '{kind}': choose indices, words or vectors", kind=self.kind
            )
        if self.size < 0:
            raise BadParameterError("impossible-count", "a node has at least 1 feature, not {count}", count=self.size)

    @property
    def not_covered(self) -> tuple[str, ...]:
        """The facts about the nodes that the width of the weights shows."""
        return (LARGEST_INDEX,) if self.kind == "indices" and not self.size else ()


@dataclass(frozen=True)
class Graph:
    """names of the n nodes; features (n, d), sparse, rows of length at most 1; labels as numbers, -1 for none; classes:
    the names of the labels; links (m, 2), each undirected link once; split: a word per node, or nothing."""

    names: tuple[str, ...]
    features: sparse.csr_matrix
    labels: NDArray[np.int64]
    classes: tuple[str, ...]
    links: NDArray[np.int64]
    split: tuple[str, ...] = ()
    made_by: Features = Features("indices", "features")

    @property
    def nodes(self) -> int:
        return len(self.names)

    @property
    def labeled(self) -> NDArray[np.int64]:
        return np.flatnonzero(self.labels != NO_LABEL)

    def in_split(self, *values: str) -> NDArray[np.int64]:
        """Labeled nodes whose split is one of these."""
        if not self.split:
            raise BadInputError(
                "no-split-column",
                "the nodes have no split column: name it with {option.split_column}, or let one be drawn",
            )
        labeled = [i for i, value in enumerate(self.split) if value in values and self.labels[i] != NO_LABEL]
        if not labeled:
            raise BadInputError(
                "no-labeled-node",
                "no labeled node has the split {splits}: name another one",
                splits=" or ".join(values),
            )
        return np.array(labeled, dtype=np.int64)

    def drawn_split(
        self, shares: Sequence[float], seed: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Labeled nodes for training, validation and test (the rest), drawn by public randomness."""
        order = public_generator(seed).permutation(self.labeled)
        first = round(shares[0] * len(order))
        second = first + round(shares[1] * len(order))
        return order[:first], order[first:second], order[second:]

    def to_torch_geometric(self) -> Data:
        """The graph as torch-geometric holds it."""
        torch = require("torch", extra="training", purpose="torch-geometric")
        data = require("torch_geometric.data", extra="graphs", purpose="handing a graph to torch-geometric")
        both = np.concatenate([self.links, self.links[:, ::-1]]).T
        return data.Data(
            x=torch.from_numpy(self.features.toarray().astype(np.float32)),
            edge_index=torch.from_numpy(np.ascontiguousarray(both)),
            y=torch.from_numpy(self.labels.copy()),
        )

    @classmethod
    def from_torch_geometric(cls, data: Data) -> Graph:
        """From `torch_geometric.data.Data` with x, edge_index and y; self-loops and second directions are dropped."""
        pairs = np.sort(data.edge_index.numpy().T, axis=1)
        links = np.unique(pairs[pairs[:, 0] != pairs[:, 1]], axis=0)
        rows = unit_rows(sparse.csr_matrix(data.x.numpy().astype(np.float64)))
        labels = data.y.numpy().astype(np.int64)
        classes = tuple(str(c) for c in range(int(labels.max()) + 1))
        names = tuple(str(i) for i in range(rows.shape[0]))
        return checked(cls(names, rows, labels, classes, links, made_by=Features("indices", "x", rows.shape[1])))


# Reading --------------------------------------------------------------------------------------------------------------


def read_graph(
    nodes: object,
    links: object,
    features: Features,
    *,
    name_column: str = "node",
    label_column: str = "label",
    split_column: str | None = None,
    clean: bool = False,
    encode: Encode | None = None,
    classes: Sequence[str] | None = None,
) -> Graph:
    """Nodes and links from two tables, files or data in memory; without links (None) a model of words can predict.
    `clean` drops self-loops and repeated links instead of refusing them.

    `classes`, from a saved model, makes the labels optional: they are read only where they are there.
    """
    wanted = [name_column, features.column]
    optional = [c for c in (label_column, split_column) if c]
    if classes is None:
        cells = read_columns(nodes, [*wanted, *optional])
    else:
        cells = read_columns(nodes, wanted, optional=optional)
    names = tuple(cells[name_column])
    place = {name: i for i, name in enumerate(names)}
    if len(place) < len(names):
        first = next(i for i, name in enumerate(names) if place[name] != i)
        raise BadInputError(
            "node-twice",
            "row {row} of {nodes} names a node that comes again later: name each node once",
            row=first + 1,
            nodes=source_name(nodes),
        )
    spelled = cells.get(label_column, [""] * len(names))
    numbers, class_names = label_numbers(spelled, classes)
    rows, made_by = feature_rows(cells[features.column], features, encode)
    graph = Graph(
        names,
        rows,
        numbers,
        class_names,
        np.zeros((0, 2), dtype=np.int64) if links is None else read_links(links, place, clean=clean),
        tuple(cells[split_column]) if split_column and split_column in cells else (),
        made_by,
    )
    return graph if classes is not None else checked(graph)


def label_numbers(spelled: Sequence[str], classes: Sequence[str] | None) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """Labels as numbers; an empty cell or -1 is a node without one."""
    names = tuple(classes) if classes is not None else tuple(sorted({s for s in spelled if s not in MISSING_LABELS}))
    place = {name: i for i, name in enumerate(names)}
    return np.array([place.get(s, NO_LABEL) for s in spelled], dtype=np.int64), names


def checked(graph: Graph) -> Graph:
    """The graph, if something can be learned from it."""
    if not len(graph.labeled):
        raise BadInputError("no-labeled-node", "no node has a label: name the label column with {option.label_column}")
    if len(set(graph.labels[graph.labeled].tolist())) < 2:
        raise BadInputError("too-few-classes", "all labeled nodes have the same label: there is nothing to learn")
    return graph


def read_links(links: object, place: Mapping[str, int], *, clean: bool = False) -> NDArray[np.int64]:
    """The first two columns, 'source' and 'target', as pairs of node numbers, each undirected link once."""
    cells = read_columns(links, ["source", "target"])
    kept: dict[tuple[int, int], None] = {}
    for row, (source, target) in enumerate(zip(cells["source"], cells["target"], strict=True), start=1):
        for name in (source, target):
            if name not in place:
                raise BadInputError(
                    "link-of-unknown-node",
                    "row {row} of {links} links a node that the nodes file does not have: add or drop it",
                    row=row,
                    links=source_name(links),
                )
        pair = (min(place[source], place[target]), max(place[source], place[target]))
        if pair[0] == pair[1] or pair in kept:
            if not clean:
                what = "a node with itself" if pair[0] == pair[1] else "two nodes that an earlier row links already"
                raise BadInputError(
                    "link-not-clean",
                    "row {row} of {links} links {what}: drop such rows, or give {option.clean_links}",
                    row=row,
                    links=source_name(links),
                    what=what,
                )
            continue
        kept[pair] = None
    return np.array(list(kept), dtype=np.int64).reshape(-1, 2)


# Features -------------------------------------------------------------------------------------------------------------


def feature_rows(cells: Sequence[str], features: Features, encode: Encode | None) -> tuple[sparse.csr_matrix, Features]:
    """Sparse rows of length at most 1, and the features with their size filled in."""
    if features.kind == "vectors":
        if encode is None:
            raise BadParameterError("no-encoder", "vectors need a public text encoder: give one")
        rows = sparse.csr_matrix(np.asarray(encode(cells), dtype=np.float64))
        return unit_rows(rows), replace(features, size=rows.shape[1])
    if features.kind == "words":
        size = len(features.vocabulary) or features.size or HASHED_WORDS
        places_of_rows = word_places(cells, features.vocabulary, size)
    else:
        places_of_rows = [_indices(cell, row) for row, cell in enumerate(cells, start=1)]
        size = features.size or max((max(places) + 1 for places in places_of_rows if places), default=1)
        # A word the model never saw in training has no weight.
        places_of_rows = [[i for i in places if i < size] for places in places_of_rows]
    pairs = [(row, column) for row, places in enumerate(places_of_rows) for column in set(places)]
    where = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    rows = sparse.csr_matrix((np.ones(len(pairs)), (where[0], where[1])), shape=(len(cells), size))
    return unit_rows(rows), replace(features, size=size)


def word_places(texts: Sequence[str], vocabulary: Sequence[str], size: int) -> list[list[int]]:
    """The places of the words of each text: in a public vocabulary (other words are left out), or hashed."""
    place = {word: i for i, word in enumerate(vocabulary)}
    places_of_texts = []
    for text in texts:
        words = {word for word in split_tokens(text.lower()) if any(c.isalnum() for c in word)}
        places_of_texts.append([place[w] for w in words if w in place] if place else [_hashed(w, size) for w in words])
    return places_of_texts


def unit_rows(rows: sparse.csr_matrix) -> sparse.csr_matrix:
    """Each row divided by its length; rows of zeros stay."""
    lengths = np.sqrt(np.asarray(rows.multiply(rows).sum(axis=1)).ravel())
    scale = np.divide(1.0, lengths, out=np.zeros_like(lengths), where=lengths > 0)
    return sparse.csr_matrix(sparse.diags(scale) @ rows)


def _hashed(word: str, size: int) -> int:
    return int.from_bytes(hashlib.blake2b(word.encode(), digest_size=8).digest(), "little") % size


def _indices(cell: str, row: int) -> list[int]:
    try:
        places = [int(item) for item in cell.split()]
    except ValueError:
        raise BadInputError(
            "features-not-numbers",
            "row {row} has features that are not whole numbers: for a column of texts give {option.features[words]}",
            row=row,
        ) from None
    if any(place < 0 for place in places):
        raise BadInputError(
            "negative-feature-number", "row {row} has a negative feature number: number the features from 0", row=row
        )
    return places
