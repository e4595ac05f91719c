"""One node is the unit: a linear model with noise, then noisy messages along the links.

After GAP (Sajadmanesh et al. 2023): noise is added to what a node receives from its neighbors, once, and whatever is
computed from the noisy sums is free. Three steps, for training nodes T with labels and all other nodes U:

1.  Words. Softmax regression on the words of T by full-batch gradient descent; the gradient of each node, x (p - y)^T,
    is cut to length C and noise N(0, (g C)^2) is added to the sum in each of S steps. Links are not read.
2.  Labels. Each node draws at most D of its links to nodes of U, by public priorities. Along them each node of T sends
    its label e_y, and node v in U receives   A_v = sum of the messages + N(0, a^2).
3.  Guesses. Each node of U sends q_v = softmax(2 ln p_v + w r A_v / a^2) along its drawn links (p from step 1, r the
    share of nodes in T), and v receives   B_v = sum of the messages + N(0, b^2).

The class of v in U is the largest entry of   2 ln p_v + w (r A_v / a^2 + (1 - r) B_v / b^2).   p_v is a function of the
weights and of the words of v itself.

Proof obligation. The record of a node is its words, its label and *its own list* of links; a link stands in the lists
of both its ends. Fix a node v; everything is compared with the record of v emptied (no words, no label, no list) or
replaced by any other. The lists of other nodes, which may name v, are their records and stay. Whether a node belongs
to T is public. The view is: the weights, and the noisy sums of all nodes *but v*.

*   Draws. The draw of a node depends on its own list of links and public priorities, on nothing else.
*   Step 1. If v is in T, one clipped gradient comes or goes (C) or changes (2 C); else nothing changes.
*   Steps 2 and 3. A message is a probability vector: length <= 1, any two <= sqrt(2) apart. v reaches at most D other
    nodes. Taking v out: at most D sums change by at most 1 each, sqrt(D) in all. Replacing v: of the old and the new
    receivers, those in both lists change by at most sqrt(2), the others by at most 1, so 2 D in squares: sqrt(2 D).
    Nodes of T send in step 2 only, nodes of U in step 3 only. What v sends may depend on anything v knows, its own A_v
    included: the bound holds for any message, and what other nodes send in step 3 depends on v through the weights and
    the noisy sums alone, which are part of the view.
*   Composition. Gaussian steps, each chosen after the ones before: the squares of sensitivity / noise add up. Nodes of
    T take part in steps 1 and 2, nodes of U in step 3 alone, which may therefore spend the whole budget again:

        mu_T^2 = S (C or 2C)^2 / (g C)^2 + D' / a^2,     mu_U^2 = D' / b^2,     D' = D or 2 D,

    and (epsilon, delta) is that of one Gaussian step with noise 1 / max(mu_T, mu_U), exactly.

So the weights may be shown, and so may the predictions of all other nodes. Two things the view leaves out: the
prediction of v itself reads the words of v and the sum v received, which tells of its links. And that others list v is
not hidden: were v struck from their lists as well, a neighbor with more than D links would draw another one in its
place. GAP and other methods that sample links have the same gap and do not name it. It closes, and the promise is that
of node-level privacy in full, if D is at least the largest number of links of any node in any graph considered.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tacit.account.delta import automatic_delta, check_delta
from tacit.arrays import Floats
from tacit.errors import BadParameterError
from tacit.guarantee import Adjacency, Guarantee, Model, Notion, Provenance, Unit
from tacit.noise.gaussian import add_gaussian, analytic_gaussian_sigma, gaussian_epsilon
from tacit.noise.source import StreamKey
from tacit.progress import StepProgress
from tacit.training.graphs.graph import Graph
from tacit.training.plan import unless_seeded

MARGIN = 1e-9
"""Clipped gradients are shorter than their bound by this share, more than double precision can err."""

OWN_WEIGHT = 2.0
MESSAGE_WEIGHT = 1.2
"""Weights of the two kinds of evidence, found on the validation nodes of CiteSeer and fixed for all graphs. The linear
model is stopped early and timid, so that its logarithms count twice."""


@dataclass(frozen=True)
class NodePlan:
    """nodes: of the whole graph, public; delta; links: D, the most links of a node that are used, 0 for words alone;
    steps: S; the three noises g, a, b; the adjacency. The epsilon is worked out from the noises."""

    nodes: int
    delta: float
    steps: int
    links: int
    gradient_noise: float
    label_noise: float
    guess_noise: float
    adjacency: Adjacency = Adjacency.ADD_REMOVE

    def __post_init__(self) -> None:
        check_delta(self.delta, self.nodes)

    @classmethod
    def calibrated(
        cls,
        *,
        epsilon: float,
        nodes: int,
        links: int = 2,
        share: float | None = None,
        steps: int = 40,
        adjacency: Adjacency = Adjacency.ADD_REMOVE,
        delta: float | None = None,
    ) -> NodePlan:
        """The plan with the least noise within epsilon. share: the part of a training node's budget (in squares) that
        its gradients get, see `gradient_share`; the rest pays for sending its label."""
        if adjacency not in (Adjacency.ADD_REMOVE, Adjacency.REPLACE_ONE):
            raise BadParameterError(
                "adjacency-not-accounted", "a node is taken out or replaced: choose one of these adjacencies"
            )
        if links < 0:
            raise BadParameterError(
                "impossible-count", "the number of links that a node uses is at least 0, not {count}", count=links
            )
        if steps < 1:
            raise BadParameterError(
                "impossible-number-of-steps", "training takes at least 1 step, not {steps}", steps=steps
            )
        chosen = automatic_delta(nodes) if delta is None else delta
        mu = 1.0 / analytic_gaussian_sigma(epsilon, chosen, 1.0)
        part = gradient_share(mu) if share is None else share
        if not 0.0 < part < 1.0:
            raise BadParameterError(
                "impossible-share", "the share of the gradients lies between 0 and 1, not {share}", share=share
            )
        words = mu * math.sqrt(part) if links else mu
        gradient = gradient_reach(adjacency) * math.sqrt(steps) / words
        if not links:
            return cls(nodes, chosen, steps, 0, gradient, math.inf, math.inf, adjacency)
        reach = message_reach(links, adjacency)
        return cls(nodes, chosen, steps, links, gradient, reach / (mu * math.sqrt(1.0 - part)), reach / mu, adjacency)

    @property
    def epsilon(self) -> float:
        gradients = self.steps * (gradient_reach(self.adjacency) / self.gradient_noise) ** 2
        reach = message_reach(self.links, self.adjacency)
        training = math.sqrt(gradients + (reach / self.label_noise) ** 2)
        others = reach / self.guess_noise
        return gaussian_epsilon(1.0 / max(training, others), self.delta, 1.0)


def gradient_share(mu: float) -> float:
    """max(0.6, 1 - mu^2 / 8). A label that drowns in noise is worth nothing, so small budgets go to the gradients."""
    return max(0.6, 1.0 - mu**2 / 8.0)


def gradient_reach(adjacency: Adjacency) -> float:
    """How far one training node moves a sum of gradients cut to 1."""
    return 2.0 if adjacency is Adjacency.REPLACE_ONE else 1.0


def message_reach(links: int, adjacency: Adjacency) -> float:
    """How far one node moves the sums of all other nodes, if it uses at most so many links."""
    return math.sqrt(2.0 * links if adjacency is Adjacency.REPLACE_ONE else links)


# Steps ----------------------------------------------------------------------------------------------------------------


def clipped_gradient(rows: sparse.csr_matrix, labels: NDArray[np.int64], weights: Floats) -> Floats:
    """Sum over the nodes of the gradient x (p - y)^T of each, cut to length 1; rows (n, d) sparse, weights (d, k)."""
    residuals = softmax(np.asarray(rows @ weights))
    residuals[np.arange(len(labels)), labels] -= 1.0
    lengths = row_lengths(rows) * np.linalg.norm(residuals, axis=1)
    factors = np.minimum(1.0, 1.0 / np.maximum(lengths, 1e-300)) * (1.0 - MARGIN)
    return np.asarray(rows.T @ (residuals * factors[:, None]))


def train_words(
    rows: sparse.csr_matrix,
    labels: NDArray[np.int64],
    classes: int,
    plan: NodePlan,
    key: StreamKey,
    rate: float = 8.0,
    progress: StepProgress | None = None,
) -> Floats:
    """Step 1: weights (d, classes), the mean over the second half of the steps, with momentum 0.9."""
    weights = np.zeros((rows.shape[1], classes))
    velocity, mean, kept = np.zeros_like(weights), np.zeros_like(weights), 0
    for step in range(plan.steps):
        exact = clipped_gradient(rows, labels, weights)
        noisy = add_gaussian(exact, sigma=plan.gradient_noise, source=key.stream(step, b"words"))
        velocity = 0.9 * velocity + noisy
        weights = weights - rate * velocity / len(labels)
        if step >= plan.steps // 2:
            mean, kept = mean + weights, kept + 1
        if progress is not None:
            progress(step + 1, plan.steps)
    return mean / kept


def draw_links(
    links: NDArray[np.int64], receiving: NDArray[np.bool_], most: int | None, seed: int = 0
) -> NDArray[np.int64]:
    """Pairs (sender, receiver): for each node, of its links to receiving nodes the `most` with the lowest priority.

    A priority is a public hash of the pair, so that the draw of a node depends on its own list alone. None: all links,
    which bounds nothing.
    """
    both = np.concatenate([links, links[:, ::-1]])
    both = both[receiving[both[:, 1]]]
    order = np.lexsort((pair_priority(both, seed), both[:, 0]))
    both = both[order]
    if most is None or not len(both):
        return np.asarray(both)
    starts = np.flatnonzero(np.r_[True, np.diff(both[:, 0]) != 0])
    rank = np.arange(len(both)) - np.repeat(starts, np.diff(np.r_[starts, len(both)]))
    return np.asarray(both[rank < most])


def pair_priority(pairs: NDArray[np.int64], seed: int) -> NDArray[np.uint64]:
    """A public hash of each pair (splitmix64, twice)."""
    with np.errstate(over="ignore"):
        value = _mixed(pairs[:, 0].astype(np.uint64) + np.uint64(seed) * np.uint64(0x9E3779B97F4A7C15))
        return _mixed(value ^ pairs[:, 1].astype(np.uint64))


def received(pairs: NDArray[np.int64], messages: Floats) -> Floats:
    """The sum of the messages (n, k) that each node receives."""
    nodes = len(messages)
    ones = np.ones(len(pairs))
    return np.asarray(sparse.csr_matrix((ones, (pairs[:, 1], pairs[:, 0])), shape=(nodes, nodes)) @ messages)


def softmax(logits: Floats) -> Floats:
    raised = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(raised / raised.sum(axis=1, keepdims=True))


def row_lengths(rows: sparse.csr_matrix) -> Floats:
    return np.asarray(np.sqrt(np.asarray(rows.multiply(rows).sum(axis=1)).ravel()))


# The model ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class NodeModel:
    """weights (d, classes) of the words. evidence (n, classes): what the noisy sums of each node say, in logits; zero
    for training nodes. A node's evidence is covered for all nodes but itself."""

    weights: Floats
    evidence: Floats

    def logits(self, rows: sparse.csr_matrix, evidence: Floats | None = None) -> Floats:
        """From the words of each node itself, and its evidence."""
        own: Floats = OWN_WEIGHT * log_probabilities(np.asarray(rows @ self.weights))
        return own if evidence is None else np.asarray(own + evidence)


def train_messages(
    graph: Graph,
    train: NDArray[np.int64],
    plan: NodePlan,
    key: StreamKey,
    *,
    rate: float = 8.0,
    seed: int = 0,
    progress: StepProgress | None = None,
) -> NodeModel:
    """Steps 1 to 3. `seed` is that of the public priorities."""
    classes = len(graph.classes)
    weights = train_words(graph.features[train], graph.labels[train], classes, plan, key, rate, progress)
    nothing = np.zeros((graph.nodes, classes))
    model = NodeModel(weights, nothing)
    if not plan.links:
        return model
    unlabeled = np.ones(graph.nodes, dtype=bool)
    unlabeled[train] = False
    if not unlabeled.any():
        return model
    pairs = draw_links(graph.links, unlabeled, plan.links, seed)
    from_training = ~unlabeled[pairs[:, 0]]
    share = len(train) / graph.nodes
    labels = nothing.copy()
    labels[train, graph.labels[train]] = 1.0
    sums = received(pairs[from_training], labels)
    noisy = add_gaussian(sums, sigma=plan.label_noise, source=key.stream(0, b"labels"))
    evidence = np.where(unlabeled[:, None], MESSAGE_WEIGHT * share / plan.label_noise**2 * noisy, 0.0)
    guesses = softmax(model.logits(graph.features, evidence))
    sums = received(pairs[~from_training], np.where(unlabeled[:, None], guesses, 0.0))
    noisy = add_gaussian(sums, sigma=plan.guess_noise, source=key.stream(0, b"guesses"))
    more = np.where(unlabeled[:, None], MESSAGE_WEIGHT * (1.0 - share) / plan.guess_noise**2 * noisy, 0.0)
    return NodeModel(weights, evidence + more)


def log_probabilities(logits: Floats) -> Floats:
    top = logits - logits.max(axis=1, keepdims=True)
    return np.asarray(top - np.log(np.exp(top).sum(axis=1, keepdims=True)))


def node_guarantee(
    plan: NodePlan,
    *,
    secure: bool,
    trials: int = 1,
    provenance: tuple[Provenance, ...] = (),
    not_covered: tuple[str, ...] = (),
) -> Guarantee:
    """The guarantee of the weights, and of the predictions of all other nodes, for one node."""
    check_delta(plan.delta * trials, plan.nodes)
    words_alone = not plan.links
    parameters: dict[str, object] = {
        "steps": plan.steps,
        "noise on the sum of gradients (each at most 1 long)": round(plan.gradient_noise, 4),
    }
    if not words_alone:
        parameters |= {
            "links of a node that are used, at most": plan.links,
            "reach of one node's messages": round(message_reach(plan.links, plan.adjacency), 4),
            "noise on received labels": round(plan.label_noise, 4),
            "noise on received guesses": round(plan.guess_noise, 4),
        }
    of_links = (
        "that other nodes list a node: a link stands in two lists, and only the node's own is hidden (unless no node "
        f"has more than {plan.links} links)",
    )
    promised = Guarantee(
        notion=Notion.APPROXIMATE,
        epsilon=plan.epsilon * trials,
        delta=plan.delta * trials,
        model=Model.CENTRAL,
        unit=Unit.NODE,
        adjacency=plan.adjacency,
        mechanism="softmax regression with noise" if words_alone else "noisy messages between nodes",
        parameters=parameters,
        not_covered=(
            "the prediction of a node, as far as the node itself is concerned: it reads the node's own words"
            + ("" if words_alone else " and the noisy sum it received"),
            *(() if words_alone else of_links),
            "how many nodes there are, their names, which of them are used for training, and the names of the labels",
            *not_covered,
        ),
        assumptions=(
            "the number of nodes and of features, and which nodes are used for training, are public",
            "the record of a node is its words, its label and its own list of links",
            "the noise comes from a secret random key of the operating system, which is not shown",
        ),
        provenance=provenance,
        history=() if trials == 1 else (f"{trials} runs on the same graph, added up",),
    )
    return unless_seeded(promised, secure=secure)


def _mixed(value: NDArray[np.uint64]) -> NDArray[np.uint64]:
    value = value + np.uint64(0x9E3779B97F4A7C15)
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))
