"""The Bayes-optimal guess of the original for every output word."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tacit.arrays import Floats, Ids
from tacit.errors import NoGuaranteeError
from tacit.noise.source import Source
from tacit.progress import StepProgress
from tacit.words.base import BLOCK_CELLS, WordMechanism

SAMPLED_WORDS = 5_000
SAMPLED_DRAWS = 40


@dataclass(frozen=True)
class Posterior:
    """The evidence of each output word y about the input.

    guess           argmax_x prior(x) P(y|x)
    certainty       its posterior probability
    stays           P(x|x) of each word
    vulnerability   expected success of the guess under the prior (exact when `exact`)
    exact           from the closed form of the law, not from samples
    """

    guess: Ids
    certainty: Floats
    stays: Floats
    vulnerability: float
    exact: bool


def posterior(
    mechanism: WordMechanism, prior: Floats, *, seed: int = 0, progress: StepProgress | None = None
) -> Posterior:
    """The Bayes-optimal guess for every output word; sampled where the law has no closed form."""
    mechanism.prepare()
    try:
        mechanism.laws(np.array([0], dtype=np.int64))
    except NoGuaranteeError:
        return _sampled_posterior(mechanism, prior, seed, progress)
    words = len(prior)
    best, owner, total = np.zeros(words), np.arange(words, dtype=np.int64), np.zeros(words)
    stays = np.zeros(words)
    # The likeliest words first: later blocks then rarely win, and ties go to the likelier word.
    order = np.argsort(-prior, kind="stable")
    height = max(1, BLOCK_CELLS // words)
    for start in range(0, words, height):
        ids = order[start : start + height]
        joint = mechanism.laws(ids)
        stays[ids] = joint[np.arange(len(ids)), ids]
        joint *= prior[ids, None]
        total += joint.sum(axis=0)
        row = joint.argmax(axis=0)
        likelihood = joint[row, np.arange(words)]
        wins = likelihood > best
        best[wins], owner[wins] = likelihood[wins], ids[row[wins]]
        if progress is not None:
            progress(min(start + height, words), words)
    return Posterior(owner, _quotient(best, total), stays, float(best.sum()), True)


@dataclass(frozen=True)
class GuessingRates:
    """The rates at which one of some frequent words is guessed: `blind` without the release, `seeing` with it."""

    blind: float
    seeing: float


def guessing(mechanism: WordMechanism, prior: Floats, words: int, height: int = 32) -> GuessingRates:
    """Expected success of the Bayes guess when the original is one of the likeliest `words`, from the exact law: the
    vulnerability of `posterior`, at a cost that a page can wait for. Raises NoGuaranteeError without a closed form."""
    likely = np.argsort(-prior, kind="stable")[:words]
    best = np.zeros(len(prior))
    for start in range(0, len(likely), height):
        ids = likely[start : start + height]
        np.maximum(best, (mechanism.laws(ids) * prior[ids, None]).max(axis=0), out=best)
    among = float(prior[likely].sum())
    return GuessingRates(float(prior[likely[0]]) / among, float(best.sum()) / among)


def _sampled_posterior(mechanism: WordMechanism, prior: Floats, seed: int, progress: StepProgress | None) -> Posterior:
    """P(y|x) counted in draws of the likeliest words; an output that was never drawn is guessed to be itself."""
    words = len(prior)
    likely = np.argsort(-prior, kind="stable")[:SAMPLED_WORDS]
    source = Source.from_test_seed(seed)  # a simulation of the public mechanism: nothing of this is released
    best, owner, total = np.zeros(words), np.arange(words, dtype=np.int64), np.zeros(words)
    stays = np.full(words, np.nan)
    step = 250
    for start in range(0, len(likely), step):
        ids = likely[start : start + step]
        drawn = mechanism.released_ids(np.repeat(ids, SAMPLED_DRAWS), source)
        inputs = np.repeat(np.arange(len(ids)), SAMPLED_DRAWS)
        pairs, counts = np.unique(inputs * words + drawn, return_counts=True)
        x, y = np.divmod(pairs, words)
        joint = prior[ids[x]] * counts / SAMPLED_DRAWS
        np.add.at(total, y, joint)
        stays[ids] = 0.0
        same = ids[x] == y
        stays[y[same]] = counts[same] / SAMPLED_DRAWS
        for i in np.argsort(joint, kind="stable"):  # the last assignment to an output is its largest
            if joint[i] > best[y[i]]:
                best[y[i]], owner[y[i]] = joint[i], ids[x[i]]
        if progress is not None:
            progress(start + len(ids), len(likely))
    return Posterior(owner, _quotient(best, total), stays, float(best.sum()), False)


def _quotient(above: Floats, below: Floats) -> Floats:
    result = np.zeros(len(above))
    np.divide(above, below, out=result, where=below > 0)
    return result
