"""Graph convolutions with random disjoint subgraphs (Igamberdiev 2023, chapter 3), clipped, and read correctly.

The training nodes are cut into s groups by a public permutation of their *positions in the file*, without a look at
features or links; the number of nodes and their order are public, so no change of one node moves another one to another
group. Links between groups are dropped and degrees counted inside each group. One subgraph is one example: its loss is
the mean over its own nodes, its gradient is cut to length C, and noise N(0, (sigma C)^2) is added to the sum.

What one change moves, in every step that takes the subgraph:

    subgraph   add or remove a whole subgraph, all its nodes and their links: a gradient of length <= C comes or goes.
    node       replace one node: its words, its label, all its links; taking it out is replacing it by a node with no
               words, no label and no link. The node lies in exactly one group, links to other groups are not read, so
               exactly one clipped gradient changes, from one vector of length <= C into any other: 2 C.

The thesis claims the individual node and computes with C; its published code never cuts a gradient at all (the function
it calls reads another tensor than the one it is given), so its scores at epsilon 1 and 2 come without a guarantee.

How often a subgraph is taken:

    poisson    each step takes each subgraph with probability q = batch / s, in secret: amplified by sampling, accounted
               by privacy-loss distributions (replace-one accounting for the node).
    visits     each pass takes each subgraph exactly once in a fixed order: no amplification. A pass is one Gaussian
               step on each subgraph; P passes have the epsilon of noise sigma / sqrt(P), exactly.

Predicting with the trained network reads the words and links of the neighbors of a node. Weights are covered by the
guarantee; predictions on a private graph are not.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray

from tacit.account.delta import automatic_delta, check_delta
from tacit.account.sgd import sgd_epsilon, sgd_noise_multiplier
from tacit.devices import moved
from tacit.errors import BadParameterError, check_choice
from tacit.guarantee import Adjacency, Guarantee, Model, Notion, Provenance, Unit
from tacit.noise.source import StreamKey, public_generator
from tacit.progress import StepProgress
from tacit.training.clipping import make_clipping
from tacit.training.gradients import Checked, choose
from tacit.training.graphs.gcn import GCN, collate_subgraphs, links_within, probes, smoothing_matrix, subgraph_loss
from tacit.training.graphs.graph import Graph
from tacit.training.plan import TrainingPlan, unless_seeded
from tacit.training.step import PrivateStep

READINGS = {
    "node": (Unit.NODE, Adjacency.REPLACE_ONE),
    "subgraph": (Unit.SUBGRAPH, Adjacency.ADD_REMOVE),
}
SAMPLINGS = ("poisson", "visits")

PREDICTION_CAVEAT = (
    "predictions: the network reads the words and links of a node's neighbors when it predicts, and no noise covers "
    "that"
)


@dataclass(frozen=True)
class SubgraphPlan(TrainingPlan):
    """A plan whose records are subgraphs. nodes: all nodes of the graph, below one over which delta lies; visits: each
    pass takes each subgraph once, in a fixed order."""

    nodes: int = 0
    visits: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.private:
            check_delta(self.delta, max(self.nodes, self.records))

    @property
    def pass_length(self) -> int:
        """Steps of one pass over all subgraphs."""
        return math.ceil(self.records / self.batch)

    def epsilon(self, steps: int | None = None) -> float:
        done = self.steps if steps is None else steps
        if not self.visits:
            return super().epsilon(done)
        return _epsilon_of_visits(self.multiplier, math.ceil(done / self.pass_length), self.delta, self.adjacency)

    def epsilon_at_most(self, steps: int) -> float:
        return self.epsilon(steps) if self.visits else super().epsilon_at_most(steps)

    def sample(self, step: int, key: StreamKey) -> NDArray[np.int64]:
        if not self.visits:
            return super().sample(step, key)
        first = (step % self.pass_length) * self.batch
        return np.arange(first, min(first + self.batch, self.records))


def plan_subgraphs(
    *,
    epsilon: float,
    nodes: int,
    subgraphs: int,
    passes: int,
    batch: int = 1,
    reading: str = "node",
    sampling: str = "poisson",
    delta: float | None = None,
) -> SubgraphPlan:
    """The plan with the least noise within epsilon, for this reading and sampling; delta by default below 1 / nodes.
    With an infinite epsilon there is neither clipping nor noise, and each pass takes each subgraph once."""
    check_choice(reading, READINGS, code="unknown-reading", what="reading")
    check_choice(sampling, SAMPLINGS, code="unknown-sampling", what="sampling")
    if passes < 1:
        raise BadParameterError(
            "impossible-number-of-steps", "training takes at least 1 pass, not {passes}", passes=passes
        )
    unit, adjacency = READINGS[reading]
    if epsilon == math.inf:
        draft = SubgraphPlan(subgraphs, batch, 1, 0.0, 0.0, adjacency, unit, private=False, nodes=nodes, visits=True)
        return replace(draft, steps=passes * draft.pass_length)
    chosen = automatic_delta(nodes) if delta is None else delta
    visits = sampling == "visits"
    draft = SubgraphPlan(subgraphs, batch, 1, 1.0, chosen, adjacency, unit, nodes=nodes, visits=visits)
    steps = passes * draft.pass_length
    multiplier = sgd_noise_multiplier(
        epsilon=epsilon,
        sampling_rate=1.0 if visits else draft.rate,
        steps=passes if visits else steps,
        delta=chosen,
        adjacency=adjacency,
    )
    return replace(draft, steps=steps, multiplier=multiplier)


def side_by_side(plan: SubgraphPlan) -> dict[tuple[str, str], float]:
    """Epsilon of the same noise and the same number of passes, for every reading and sampling; rounded up by 0.001."""
    epsilons = {}
    for reading, (unit, adjacency) in READINGS.items():
        for sampling in SAMPLINGS:
            same = replace(plan, unit=unit, adjacency=adjacency, visits=sampling == "visits")
            epsilons[reading, sampling] = same.epsilon_at_most(plan.steps)
    return epsilons


def split_nodes(nodes: NDArray[np.int64], groups: int, seed: int = 0) -> list[NDArray[np.int64]]:
    """Disjoint random groups whose sizes differ by at most 1; a function of positions and a public seed only."""
    if not 1 <= groups <= len(nodes):
        raise BadParameterError(
            "impossible-number-of-subgraphs",
            "{nodes:,} training nodes cannot be cut into {groups:,} subgraphs: give between 1 and {nodes:,}",
            nodes=len(nodes),
            groups=groups,
        )
    order = public_generator(seed).permutation(len(nodes))
    return [np.sort(nodes[part]) for part in np.array_split(order, groups)]


@dataclass(frozen=True)
class SubgraphSettings:
    """Settings of a training; none may depend on the private graph. The gradient of a mean over many nodes is
    short, so that 'automatic' clipping, which brings each gradient to length C, loses less to the noise than 'flat'."""

    hidden: int = 32
    dropout: float = 0.5
    optimizer: str = "adam"
    learning_rate: float = 0.01
    clipping: str = "automatic"
    bound: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        check_choice(self.optimizer, ("adam", "sgd"), code="unknown-optimizer", what="optimizer")
        check_choice(self.clipping, ("automatic", "flat"), code="unknown-clipping", what="clipping of subgraphs")

    def optimizer_of(self, weights: list[torch.nn.Parameter]) -> torch.optim.Optimizer:
        """The optimizer of some weights."""
        kind = torch.optim.Adam if self.optimizer == "adam" else torch.optim.SGD
        return kind(weights, lr=self.learning_rate)


def train_subgraphs(
    graph: Graph,
    train: NDArray[np.int64],
    plan: SubgraphPlan,
    key: StreamKey,
    settings: SubgraphSettings | None = None,
    progress: StepProgress | None = None,
    device: torch.device | str = "cpu",
) -> tuple[GCN, Checked | None]:
    """The trained network, and how exactly the gradient of one subgraph was known; without noise nobody has to."""
    chosen = settings or SubgraphSettings()
    if not plan.private:
        return _train_without_noise(graph, train, plan, chosen, progress, device), None
    groups = split_nodes(train, plan.records, chosen.seed)
    counted = np.zeros(graph.nodes, dtype=bool)
    counted[train] = True
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(chosen.seed)
        model = GCN(graph.features.shape[1], len(graph.classes), chosen.hidden, chosen.dropout).to(device)
        made_up = [moved(probe, device) for probe in probes(graph.features.shape[1], len(graph.classes))]
        engine, checked = choose(model, subgraph_loss, made_up)
        step = PrivateStep(
            plan=plan,
            collate=lambda records: moved(collate_subgraphs(graph, [groups[i] for i in records], counted), device),
            physical=8,
            engine=engine,
            clipping=make_clipping(chosen.clipping, chosen.bound, len(engine.parameters)),
        )
        optimizer = chosen.optimizer_of(list(engine.parameters.values()))
        model.train()
        for number in range(plan.steps):
            optimizer.zero_grad(set_to_none=True)
            step.run(number, key)
            optimizer.step()
            if progress is not None:
                progress(number + 1, plan.steps)
    return model, checked


def _train_without_noise(
    graph: Graph,
    train: NDArray[np.int64],
    plan: SubgraphPlan,
    settings: SubgraphSettings,
    progress: StepProgress | None,
    device: torch.device | str,
) -> GCN:
    """The same network on the same subgraphs, one after the other in each pass, without clipping and noise."""
    ready = [
        (
            torch.from_numpy(graph.features[group].toarray().astype(np.float32)).to(device),
            smoothing_matrix(len(group), links_within(graph.links, group, graph.nodes)).to(device),
            torch.from_numpy(graph.labels[group]).to(device),
        )
        for group in split_nodes(train, plan.records, settings.seed)
    ]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(settings.seed)
        model = GCN(graph.features.shape[1], len(graph.classes), settings.hidden, settings.dropout).to(device)
        optimizer = settings.optimizer_of(list(model.parameters()))
        model.train()
        for number in range(plan.steps):
            rows, smoothing, labels = ready[number % len(ready)]
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(rows, smoothing), labels).backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            if progress is not None:
                progress(number + 1, plan.steps)
    return model


def subgraph_guarantee(
    plan: SubgraphPlan,
    settings: SubgraphSettings,
    *,
    secure: bool,
    trials: int = 1,
    provenance: tuple[Provenance, ...] = (),
    not_covered: tuple[str, ...] = (),
) -> Guarantee:
    """The guarantee of the trained weights, in the reading and for the sampling of the plan."""
    if not plan.private:
        network = f"graph convolution on random subgraphs, {settings.optimizer.upper()}"
        return plan.guarantee(
            steps=plan.steps, secure=True, what=network, parameters={"subgraphs": plan.records}, trials=trials
        )
    check_delta(plan.delta * trials, plan.nodes)
    per_node = plan.unit is Unit.NODE
    promised = Guarantee(
        notion=Notion.APPROXIMATE,
        epsilon=plan.epsilon() * trials,
        delta=plan.delta * trials,
        model=Model.CENTRAL,
        unit=plan.unit,
        adjacency=plan.adjacency,
        mechanism=f"graph convolution on random subgraphs, DP-{settings.optimizer.upper()}",
        parameters={
            "noise multiplier": round(plan.multiplier, 4),
            "sensitivity": "2 C: one clipped gradient changes" if per_node else "C: one clipped gradient comes or goes",
            "clipping": f"{settings.clipping}, C = {settings.bound:g}",
            "subgraphs": plan.records,
            "sampling": "fixed visits, no amplification" if plan.visits else f"Poisson, rate {plan.rate:.4g}",
            "steps": plan.steps,
        },
        not_covered=(
            *(
                ()
                if per_node
                else ("one node: only whole subgraphs come and go; for one node choose the reading 'node'",)
            ),
            PREDICTION_CAVEAT,
            "how many nodes there are, their names and order, which of them are used for training, and the names of "
            "the labels",
            *not_covered,
        ),
        assumptions=(
            "the groups are drawn without a look at the graph, and the number and order of the nodes are public",
            *(() if plan.visits else ("nobody learns which subgraphs a step has taken",)),
            "the noise is Gaussian in the real numbers; single precision approximates it",
            "the noise comes from a secret random key of the operating system, which is not shown",
        ),
        provenance=provenance,
        history=() if trials == 1 else (f"{trials} runs on the same graph, added up",),
    )
    return unless_seeded(promised, secure=secure)


def _epsilon_of_visits(multiplier: float, passes: int, delta: float, adjacency: Adjacency) -> float:
    if passes < 1:
        return 0.0
    return sgd_epsilon(sampling_rate=1.0, noise_multiplier=multiplier, steps=passes, delta=delta, adjacency=adjacency)
