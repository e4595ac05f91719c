"""The published graph network: its noise is that of the thesis, nothing is cut, and its card promises nothing."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from tacit.errors import BadParameterError  # noqa: E402
from tacit.guarantee import Notion, VoidReason  # noqa: E402
from tacit.noise.source import StreamKey  # noqa: E402
from tacit.training.graphs.gcn import GCN, predict, smoothing_matrix  # noqa: E402
from tacit.training.graphs.graph import Graph  # noqa: E402
from tacit.training.graphs.published import (  # noqa: E402
    as_zeros_and_ones,
    gradient_of_part,
    plan_as_published,
    published_guarantee,
    train_as_published,
)
from tacit.training.graphs.subgraphs import SubgraphSettings  # noqa: E402
from tests.training.test_graphs import planted  # noqa: E402


@pytest.mark.parametrize(
    ("epsilon", "parts", "passes", "multiplier"),
    [(2.0, 1, 2000, 112), (2.0, 1, 500, 56), (9.75, 1, 2000, 26), (136.51, 1, 500, 2), (1.0, 10, 2000, 69.3)],
)
def test_the_noise_is_that_of_the_thesis(epsilon, parts, passes, multiplier):
    """Table 3.2, and what its accounting gives for ten parts."""
    plan = plan_as_published(epsilon=epsilon, parts=parts, passes=passes, delta=1e-5)
    assert plan.multiplier == pytest.approx(multiplier, rel=0.005)
    assert epsilon * 0.999 < plan.claimed <= epsilon
    assert plan.steps == parts * passes


def test_an_epsilon_that_its_accounting_cannot_give_is_refused():
    with pytest.raises(BadParameterError) as refused:
        plan_as_published(epsilon=1e-9, parts=1, passes=1, delta=1e-5)
    assert refused.value.code == "epsilon-out-of-reach"
    with pytest.raises(BadParameterError, match="at least 1 pass"):
        plan_as_published(epsilon=1.0, parts=1, passes=0, delta=1e-5)


def gradient(model: GCN, graph: Graph, part: list[int]) -> torch.Tensor:
    rows = torch.from_numpy(graph.features.toarray().astype(np.float32))
    labels = torch.from_numpy(graph.labels)
    smoothing = smoothing_matrix(graph.nodes, graph.links)
    gradients = gradient_of_part(model, rows, smoothing, labels, torch.tensor(part))
    return torch.cat([value.flatten() for value in gradients.values()])


def test_one_node_moves_the_gradient_by_more_than_any_bound_and_from_outside_of_its_part():
    graph = planted(nodes=40)
    torch.manual_seed(0)
    model = GCN(30, 3, hidden=4, dropout=0.0)
    part = list(range(10))
    before = gradient(model, graph, part)
    neighbors = {int(b) for a, b in graph.links if a in part and b not in part}
    outside = min(neighbors)
    moved = []
    for size in (1.0, 10.0, 100.0):
        rows = graph.features.tolil()
        rows[outside] = size
        moved.append(float((gradient(model, replace(graph, features=rows.tocsr()), part) - before).norm()))
    assert moved[0] > 0.0, "a node outside of the part has a say in its gradient"
    assert moved[2] > 2.0, "more than 2 C with the published C = 1"
    assert moved[2] > 5 * moved[1]


def test_it_learns_reads_zeros_and_ones_and_repeats_itself():
    graph = planted()
    train, test = np.arange(90), np.arange(90, 120)
    assert set(np.unique(as_zeros_and_ones(graph).features.toarray())) == {0.0, 1.0}
    vectors = replace(graph, made_by=replace(graph.made_by, kind="vectors"))
    assert as_zeros_and_ones(vectors) is vectors
    plan = plan_as_published(epsilon=1e4, parts=3, passes=40, delta=1e-4)
    settings = SubgraphSettings(dropout=0.0, learning_rate=0.05)
    first, again = (train_as_published(graph, train, plan, StreamKey.from_test_seed(2), settings) for _ in range(2))
    best = predict(first, as_zeros_and_ones(graph))[test].argmax(1)
    assert (best == graph.labels[test]).mean() > 0.6  # three equal classes
    for own, other in zip(first.parameters(), again.parameters(), strict=True):
        assert torch.equal(own, other)


def test_the_card_promises_nothing_and_says_what_was_claimed():
    plan = plan_as_published(epsilon=2.0, parts=10, passes=5, delta=1e-5)
    promised = published_guarantee(plan, SubgraphSettings())
    assert promised.notion is Notion.NONE
    assert promised.epsilon == math.inf
    assert promised.void_reason is VoidReason.REFUTED
    assert promised.parameters["claimed epsilon"] == 2.0
    assert promised.parameters["clipping"] == "none"
