"""The graph network as its authors published the code: without clipping, so without any guarantee.

Igamberdiev & Habernal (LREC 2022; Igamberdiev 2023, chapter 3), privacy.py, utils.py and GCN.py of
github.com/trusthlt/privacy-preserving-gcn at commit 29b5a9f. For comparison with the printed scores only: nothing that
is trained so may leave the hands of those who hold the graph. What it does, and `subgraphs` does not:

    clipping     none. The code hands a detached copy of a gradient to torch's clip_grad_norm_, which scales the .grad
                 of what it gets. The copy has none and stays as it is.
    splitting    a subgraph is a part of the *loss*. Each step runs the network over the whole graph, along all links
                 and through all nodes, those of validation and test as well, and masks the loss.
    noise        N(0, sigma^2) with sigma = multiplier x C on the mean gradient of one part, C = 1 whatever the gradient
    sampling     each pass takes each part once, in a new order; counted as if it were drawn with rate 1 / parts
    features     the words of a node as 0 and 1, not brought to length 1
    accounting   integer-order Renyi bound, one part coming or going

Why nothing is promised: one gradient is a mean over the nodes of a part, and has no bound. With the features of one
node as large as wanted its gradient is as large as wanted, and no noise of a fixed size hides it. A test doubles the
features and finds the gradient moved by far more than C.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tacit.account.sgd import classic_rdp_epsilon
from tacit.errors import BadParameterError
from tacit.guarantee import Adjacency, Guarantee, Model, Notion, Provenance, Unit, VoidReason
from tacit.noise.source import StreamKey, public_generator
from tacit.progress import StepProgress
from tacit.training.graphs.gcn import GCN, smoothing_matrix
from tacit.training.graphs.graph import Graph
from tacit.training.graphs.subgraphs import SubgraphSettings, split_nodes
from tacit.training.step import add_noise, check_weights

AS_PUBLISHED = (
    "this is the published code, which never cuts a gradient and reads the whole graph in every step: without a bound "
    "no noise hides a node, whatever epsilon was claimed"
)


@dataclass(frozen=True)
class PublishedPlan:
    """parts: of the loss; passes over all of them; multiplier: the noise on each gradient, in units of C; claimed: the
    epsilon that the published accounting would print for it at this delta."""

    parts: int
    passes: int
    multiplier: float
    claimed: float
    delta: float

    @property
    def steps(self) -> int:
        return self.parts * self.passes


def plan_as_published(*, epsilon: float, parts: int, passes: int, delta: float) -> PublishedPlan:
    """The noise for which the published accounting claims this epsilon."""
    if passes < 1:
        raise BadParameterError(
            "impossible-number-of-steps", "training takes at least 1 pass, not {passes}", passes=passes
        )

    def claimed(multiplier: float) -> float:
        return classic_rdp_epsilon(
            sampling_rate=1.0 / parts, noise_multiplier=multiplier, steps=parts * passes, delta=delta
        )

    low, high = 0.3, 1.0
    while claimed(high) > epsilon:
        low, high = high, 2.0 * high
        if high > 1e6:
            raise BadParameterError(
                "epsilon-out-of-reach",
                "no noise gives epsilon {epsilon:g} by the published accounting: choose a larger one",
                epsilon=epsilon,
            )
    while high / low > 1.0 + 1e-6:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if claimed(middle) > epsilon else (low, middle)
    return PublishedPlan(parts, passes, high, claimed(high), delta)


def as_zeros_and_ones(graph: Graph) -> Graph:
    """The graph with the features that the published code reads: 1 for each word of a node. Vectors stay."""
    if graph.made_by.kind == "vectors":
        return graph
    rows = graph.features.copy()
    rows.data = np.ones_like(rows.data)
    return replace(graph, features=rows)


def train_as_published(
    graph: Graph,
    train: NDArray[np.int64],
    plan: PublishedPlan,
    key: StreamKey,
    settings: SubgraphSettings | None = None,
    progress: StepProgress | None = None,
    device: torch.device | str = "cpu",
) -> GCN:
    """The network of the published code. Of the settings, clipping has no effect: there is none."""
    chosen = settings or SubgraphSettings()
    graph = as_zeros_and_ones(graph)
    rows = _sparse_rows(graph).to(device)
    smoothing = smoothing_matrix(graph.nodes, graph.links).to(device)
    labels = torch.from_numpy(graph.labels).to(device)
    parts = [torch.from_numpy(part).to(device) for part in split_nodes(train, plan.parts, chosen.seed)]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(chosen.seed)
        model = GCN(graph.features.shape[1], len(graph.classes), chosen.hidden, chosen.dropout).to(device)
        optimizer = chosen.optimizer_of(list(model.parameters()))
        model.train()
        for number in range(plan.steps):
            done, place = divmod(number, plan.parts)
            part = parts[public_generator(chosen.seed + 1_000_003 * (done + 1)).permutation(plan.parts)[place]]
            gradients = gradient_of_part(model, rows, smoothing, labels, part)
            add_noise(gradients, plan.multiplier * chosen.bound, key.stream(number, b"noise"))
            for name, weight in model.named_parameters():
                weight.grad = gradients[name]
            optimizer.step()
            check_weights(model.parameters())
            if progress is not None:
                progress(number + 1, plan.steps)
    return model


def gradient_of_part(model: GCN, rows: Tensor, smoothing: Tensor, labels: Tensor, part: Tensor) -> dict[str, Tensor]:
    """The gradient of the mean loss over the nodes of a part, as long as it is."""
    loss = torch.nn.functional.cross_entropy(model(rows, smoothing)[part], labels[part])
    weights = dict(model.named_parameters())
    gradients = torch.autograd.grad(loss, list(weights.values()))
    return {name: gradient.contiguous() for name, gradient in zip(weights, gradients, strict=True)}


def published_guarantee(
    plan: PublishedPlan, settings: SubgraphSettings, provenance: tuple[Provenance, ...] = ()
) -> Guarantee:
    """The card of such a network: no guarantee, and what was claimed."""
    return Guarantee(
        notion=Notion.NONE,
        epsilon=math.inf,
        model=Model.CENTRAL,
        unit=Unit.SUBGRAPH,
        adjacency=Adjacency.ADD_REMOVE,
        mechanism=f"graph convolution as published, {settings.optimizer.upper()}",
        parameters={
            "claimed epsilon": round(plan.claimed, 4),
            "noise multiplier": round(plan.multiplier, 4),
            "clipping": "none",
            "parts of the loss": plan.parts,
            "steps": plan.steps,
        },
        provenance=provenance,
        void=AS_PUBLISHED,
        void_reason=VoidReason.REFUTED,
    )


def _sparse_rows(graph: Graph) -> Tensor:
    """The features as a sparse tensor."""
    entries = graph.features.tocoo()
    places = torch.from_numpy(np.stack([entries.row, entries.col]).astype(np.int64))
    values = torch.from_numpy(entries.data.astype(np.float32))
    return torch.sparse_coo_tensor(places, values, entries.shape, check_invariants=False).coalesce()
