"""Noise on the nodes of a binary tree over the rounds of a run, as a factorization (`tacit.account.matrix`).

One number for every complete node (Dwork et al. 2010; Chan et al. 2011; Kairouz et al., "Practical and private (deep)
learning without sampling or shuffling", ICML 2021).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tacit.account.matrix import check_counts, error_of
from tacit.arrays import Floats
from tacit.errors import BadParameterError


@dataclass(frozen=True)
class Tree:
    """Binary trees over the rounds, a new one after every `restart` rounds (0: one tree for all).

    C has a row for every complete node, with ones over its rounds: node (h, i) covers the rounds i 2**h to
    (i + 1) 2**h - 1 of its tree, and is only used when all of them are over. A running sum over t rounds of a tree is
    the sum of the nodes at the ones of t in binary. `efficient` (Honaker 2015) uses, for a node, its own noise and that
    of everything below it: with v_0 = 1 the best combination has the variance v_h = 2 v_{h-1} / (2 v_{h-1} + 1), down
    to one half.

    Sensitivity: one visit is covered by one node per level, at most floor(log2 n) + 1 = ceil(log2(n + 1)) of them: the
    rho = ceil(log2(n + 1)) / (2 sigma**2) of the paper. For several visits the squared number of visits in each node is
    added up, for each j < separation, and the largest sum is taken.
    """

    restart: int = 0
    efficient: bool = True

    name: ClassVar[str] = "tree"

    def __post_init__(self) -> None:
        if self.restart < 0:
            raise BadParameterError(
                "impossible-restart",
                "a tree restarts after a positive number of rounds, not {restart}",
                restart=self.restart,
            )

    @property
    def label(self) -> str:
        again = f", restarted every {self.restart:,} rounds" if self.restart else ""
        return f"binary tree{' (efficient)' if self.efficient else ''}{again}"

    def span(self, rounds: int) -> int:
        """Rounds of one tree."""
        return min(self.restart, rounds) if self.restart else rounds

    def sensitivity(self, rounds: int, separation: int) -> float:
        check_counts(rounds=rounds, separation=separation)
        first = np.arange(min(separation, rounds))
        visits = first[:, None] + separation * np.arange(-(-rounds // separation))
        inside = visits < rounds
        span = self.span(rounds)
        tree, place = visits // span, visits % span
        squared = np.zeros(len(first))
        for level in range(span.bit_length()):
            node = place >> level
            end = (node + 1) << level
            used = inside & (end <= span) & (tree * span + end <= rounds)
            squared += used.sum(axis=1)
            for lag in range(1, visits.shape[1]):
                if lag * separation >= 1 << level:
                    break
                same = (tree[:, lag:] == tree[:, :-lag]) & (node[:, lag:] == node[:, :-lag])
                squared += 2 * (same & used[:, lag:] & used[:, :-lag]).sum(axis=1)
        return math.sqrt(float(squared.max()))

    def node_variance(self, level: int) -> float:
        """Of the estimate of a node's sum, for noise of variance 1."""
        return 2.0**level / (2.0 ** (level + 1) - 1.0) if self.efficient else 1.0

    def variances(self, rounds: int) -> Floats:
        span = self.span(rounds)
        levels = np.arange(span.bit_length())
        each = np.array([self.node_variance(int(level)) for level in levels])
        within = ((np.arange(span + 1)[:, None] >> levels) & 1) @ each
        sums = np.arange(1, rounds + 1)
        variances: Floats = (sums // span) * within[span] + within[sums % span]
        return variances

    def nodes(self, rounds: int) -> list[tuple[int, int, int]]:
        """(tree, level, number) of every node that is complete after so many rounds, in the order of completion."""
        nodes = []
        span = self.span(rounds)
        for done in range(1, rounds + 1):
            tree, place = divmod(done - 1, span)
            for level in range((place + 1).bit_length()):
                if (place + 1) % (1 << level) == 0:
                    nodes.append((tree, level, ((place + 1) >> level) - 1))
        return nodes

    def encoder(self, rounds: int) -> Floats:
        nodes = self.nodes(rounds)
        matrix = np.zeros((len(nodes), rounds))
        for row, (tree, level, number) in enumerate(nodes):
            first = tree * self.span(rounds) + (number << level)
            matrix[row, first : first + (1 << level)] = 1.0
        return matrix

    def decoder(self, rounds: int) -> Floats:
        nodes = {node: row for row, node in enumerate(self.nodes(rounds))}
        span = self.span(rounds)

        def estimate(tree: int, level: int, number: int) -> Floats:
            own = np.zeros(len(nodes))
            own[nodes[tree, level, number]] = 1.0
            if level == 0 or not self.efficient:
                return own
            below = estimate(tree, level - 1, 2 * number) + estimate(tree, level - 1, 2 * number + 1)
            weight = self.node_variance(level)
            return weight * own + (1.0 - weight) * below

        matrix = np.zeros((rounds, len(nodes)))
        for done in range(1, rounds + 1):
            trees, place = divmod(done, span)
            parts = [(tree, span) for tree in range(trees)] + ([(trees, place)] if place else [])
            for tree, length in parts:
                for level in range(length.bit_length()):
                    if length >> level & 1:
                        matrix[done - 1] += estimate(tree, level, (length >> level) - 1)
        return matrix


def best_tree(rounds: int, separation: int, *, efficient: bool = True) -> Tree:
    """One tree, or a new one whenever the users come back, whichever has the smaller error here."""
    choices = [Tree(0, efficient), Tree(separation, efficient)]
    return min(choices, key=lambda tree: error_of(tree, rounds, separation))
