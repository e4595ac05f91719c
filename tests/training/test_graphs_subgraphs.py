"""Random subgraphs: what one node moves, and the epsilon of each reading and sampling."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("dp_accounting")

from tacit.account import classic_rdp_epsilon, sgd_epsilon  # noqa: E402
from tacit.errors import BadParameterError  # noqa: E402
from tacit.guarantee import Adjacency, Notion, Unit  # noqa: E402
from tacit.noise.source import StreamKey  # noqa: E402
from tacit.training.clipping import FlatClipping  # noqa: E402
from tacit.training.gradients.loop import Loop  # noqa: E402
from tacit.training.graphs.gcn import GCN, collate_subgraphs, predict, subgraph_loss  # noqa: E402
from tacit.training.graphs.subgraphs import (  # noqa: E402
    SubgraphPlan,
    SubgraphSettings,
    plan_subgraphs,
    side_by_side,
    split_nodes,
    subgraph_guarantee,
    train_subgraphs,
)
from tests.training.test_graphs import planted  # noqa: E402

OPTIONS = {"epsilon": 4.0, "nodes": 120, "subgraphs": 12, "passes": 2, "batch": 3, "delta": 1e-4}


@pytest.mark.parametrize(("nodes", "groups"), [(1208, 10), (11, 3), (7, 7), (5, 1)])
def test_groups_are_disjoint_cover_all_nodes_and_differ_by_one_at_most(nodes, groups):
    ids = np.arange(nodes) * 2
    parts = split_nodes(ids, groups, seed=4)
    assert sorted(np.concatenate(parts).tolist()) == ids.tolist()
    sizes = [len(part) for part in parts]
    assert max(sizes) - min(sizes) <= 1
    assert all((a == b).all() for a, b in zip(parts, split_nodes(ids, groups, seed=4), strict=True))


def clipped_sum(graph, groups, model, bound):
    counted = graph.labels >= 0
    outcome = Loop(model, subgraph_loss).run(collate_subgraphs(graph, groups, counted))
    sums = outcome.weighted_sums(FlatClipping(bound).clip(outcome.squared_norms).factors)
    return torch.cat([value.flatten() for value in sums.values()])


def test_replacing_one_node_moves_the_clipped_sum_by_more_than_c_but_never_more_than_2c():
    graph = planted(nodes=24)
    groups = split_nodes(np.arange(24), 4, seed=1)
    torch.manual_seed(1)
    model = GCN(30, 3, hidden=4, dropout=0.0)
    for parameter in model.parameters():  # confident and wrong: gradients of all lengths
        torch.nn.init.normal_(parameter, std=2.0)
    bound = 0.05
    before = clipped_sum(graph, groups, model, bound)
    generator = np.random.default_rng(0)
    moved = []
    for node in range(24):
        others = graph.links[(graph.links != node).all(axis=1)]
        for _ in range(3):
            new = np.array([[min(node, v), max(node, v)] for v in generator.choice(24, 6, False) if v != node])
            rows = graph.features.tolil()
            rows[node] = generator.permutation(rows[node].toarray().ravel())
            labels = graph.labels.copy()
            labels[node] = generator.integers(0, 3)
            changed = replace(graph, links=np.concatenate([others, new]), features=rows.tocsr(), labels=labels)
            moved.append(float((clipped_sum(changed, groups, model, bound) - before).norm()))
            touched = [i for i, group in enumerate(groups) if node in group]
            rest = [group for i, group in enumerate(groups) if i not in touched]
            torch.testing.assert_close(clipped_sum(changed, rest, model, bound), clipped_sum(graph, rest, model, bound))
    assert max(moved) <= 2 * bound
    assert max(moved) > bound, "the reading with C would have been right for one node"


def test_epsilons_of_the_thesis():
    """sigma 112 for 2,000 steps on the whole graph: 2.00 if a change moves the gradient by C, 4.15 if by 2 C. Ten fixed
    subgraphs, sigma 69.3, 2,000 epochs: 1 if they were Poisson sampled, 3.3 as they are visited."""

    def classic(rate, sigma, steps):
        return classic_rdp_epsilon(sampling_rate=rate, noise_multiplier=sigma, steps=steps, delta=1e-5)

    assert classic(1.0, 112, 2000) == pytest.approx(2.00, abs=0.005)
    assert classic(1.0, 56, 2000) == pytest.approx(4.15, abs=0.01)
    assert classic(0.1, 69.3, 20_000) == pytest.approx(1.0, abs=0.01)
    assert classic(1.0, 69.3, 2000) == pytest.approx(3.3, abs=0.05)
    plan = SubgraphPlan(10, 1, 20_000, 69.3, 1e-5, nodes=1208, visits=True)
    assert 2.6 < plan.epsilon() < 2.7  # exact, so below the bound
    assert plan.epsilon() == sgd_epsilon(sampling_rate=1, noise_multiplier=69.3, steps=2000, delta=1e-5)
    assert plan.epsilon(1) == sgd_epsilon(sampling_rate=1, noise_multiplier=69.3, steps=1, delta=1e-5)


def test_four_epsilons_of_the_same_noise_in_their_order():
    epsilons = side_by_side(plan_subgraphs(**OPTIONS, reading="node", sampling="poisson"))
    assert epsilons["node", "poisson"] == pytest.approx(4.0, rel=0.01)
    assert epsilons["subgraph", "poisson"] < epsilons["node", "poisson"] < epsilons["node", "visits"]
    assert epsilons["subgraph", "poisson"] < epsilons["subgraph", "visits"] < epsilons["node", "visits"]


@pytest.mark.parametrize("reading", ["node", "subgraph"])
@pytest.mark.parametrize("sampling", ["poisson", "visits"])
def test_each_card_names_its_unit_and_keeps_its_epsilon(reading, sampling):
    plan = plan_subgraphs(**OPTIONS, reading=reading, sampling=sampling)
    promised = subgraph_guarantee(plan, SubgraphSettings(), secure=True)
    assert promised.epsilon <= 4.0
    assert promised.delta < 1 / 120
    expected = (Unit.NODE, Adjacency.REPLACE_ONE) if reading == "node" else (Unit.SUBGRAPH, Adjacency.ADD_REMOVE)
    assert (promised.unit, promised.adjacency) == expected
    assert any("one node" in item for item in promised.not_covered) == (reading == "subgraph")
    assert any("predict" in item for item in promised.not_covered)
    assert subgraph_guarantee(plan, SubgraphSettings(), secure=False).notion is Notion.NONE
    assert subgraph_guarantee(plan, SubgraphSettings(), secure=True, trials=3).epsilon == 3 * promised.epsilon


def test_visits_take_each_subgraph_once_per_pass_and_poisson_takes_its_share():
    key = StreamKey.from_test_seed(1)
    visits = SubgraphPlan(10, 4, 6, 1.0, 1e-4, nodes=100, visits=True)
    assert np.concatenate([visits.sample(step, key) for step in range(3)]).tolist() == list(range(10))
    assert (visits.sample(3, key) == visits.sample(0, key)).all()
    poisson = SubgraphPlan(10, 4, 6, 1.0, 1e-4, nodes=100)
    taken = sum(len(poisson.sample(step, key)) for step in range(300))
    # Binomial with 3,000 draws of 0.4: five standard deviations, a false alarm in a million with other seeds.
    assert abs(taken - 1200) < 5 * (3000 * 0.24) ** 0.5


def test_without_noise_the_network_learns_and_with_much_it_does_not():
    graph = planted()
    train, test = np.arange(0, 90), np.arange(90, 120)
    scores = {}
    for multiplier in (1e-6, 1e3):
        plan = SubgraphPlan(9, 3, 90, multiplier, 1e-4, nodes=120)
        settings = SubgraphSettings(dropout=0.0, learning_rate=0.03)
        model, checked = train_subgraphs(graph, train, plan, StreamKey.from_test_seed(0), settings)
        assert checked.norm_deviation < 1e-5
        scores[multiplier] = (predict(model, graph)[test].argmax(1) == graph.labels[test]).mean()
    assert scores[1e-6] > 0.85
    assert scores[1e3] < 0.65  # three equal classes


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"reading": "edge"}, "no reading"),
        ({"sampling": "shuffled"}, "no sampling"),
        ({"passes": 0}, "at least 1 pass"),
        ({"batch": 13}, "does not fit"),
        ({"delta": 0.05}, "not below one over the 120"),
    ],
)
def test_bad_plans_are_refused(change, message):
    with pytest.raises(BadParameterError, match=message):
        plan_subgraphs(**(OPTIONS | change))


def test_more_subgraphs_than_nodes_are_refused():
    with pytest.raises(BadParameterError, match="cannot be cut"):
        split_nodes(np.arange(5), 6)
