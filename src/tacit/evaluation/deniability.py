"""Plausible deniability of words (Yue et al. 2021, section 5; figure 5; after Feyisetan et al. 2020).

    N_x     Pr[M(x) = x]: how often a word stays as it is
    S_x     how many different outputs a word has in `runs` runs (1,000 in the paper)
    S*_y    how many different inputs give the output y in `runs` runs of all words that were looked at

The paper counts them. Where the law is known their expectations are exact sums, without any run:

    E[S_x]  =  sum over y of 1 - (1 - Pr[M(x) = y])^runs,      E[S*_y]  =  sum over x of the same

Also: the effective support, the smallest number of outputs that together have probability 1 - eta, and the entropy of
the output in bits. With growing epsilon N_x rises, S_x and S*_y fall: fewer words could have been there instead.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit.arrays import Floats, Ids
from tacit.errors import BadParameterError, NoGuaranteeError
from tacit.mechanism import Mechanism
from tacit.noise.source import new_source, public_generator
from tacit.progress import StepProgress
from tacit.report import Figure, Finding, Light, Section, Table
from tacit.report.plot import axes, figure
from tacit.words.base import WordMechanism

RUNS = 1_000
ETA = 0.05
ROUNDING = 1e-12
WORDS = 500
BLOCK_CELLS = 2_000_000
EPSILONS = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0)


@dataclass(frozen=True, eq=False)
class Deniability:
    """One number per word that was looked at. `exact` tells expectations from counts of one simulation."""

    epsilon: float
    words: tuple[str, ...]
    stays: Floats
    outputs: Floats
    inputs: Floats
    effective: Floats
    entropy: Floats
    runs: int
    exact: bool


def exact_deniability(
    laws: Callable[[Ids], Floats], ids: Ids, *, runs: int = RUNS, eta: float = ETA
) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    """N_x, E[S_x], E[S*_y] among these words, effective support and entropy, from the exact law."""
    count = len(ids)
    stays, outputs, effective, entropy = (np.empty(count) for _ in range(4))
    inputs = np.zeros(count)
    width = laws(ids[:1]).shape[1]
    step = max(1, BLOCK_CELLS // width)
    for start in range(0, count, step):
        block = slice(start, start + step)
        law = laws(ids[block])
        rows = np.arange(len(law))
        stays[block] = law[rows, ids[block]]
        with np.errstate(divide="ignore"):
            seen = -np.expm1(runs * np.log1p(-law))
            entropy[block] = -(law * np.log2(law, where=law > 0, out=np.zeros_like(law))).sum(axis=1)
        outputs[block] = seen.sum(axis=1)
        inputs += seen[:, ids].sum(axis=0)
        # The smallest set of mass 1 - eta consists of the most likely outputs.
        mass = np.cumsum(-np.sort(-law, axis=1), axis=1)
        effective[block] = np.minimum((mass < 1.0 - eta - ROUNDING).sum(axis=1) + 1, width)
    return stays, outputs, inputs, effective, entropy


def counted_deniability(
    draw: Callable[[Ids], Ids], ids: Ids, *, runs: int = RUNS, eta: float = ETA
) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    """The same from `runs` draws of each word: shares and counts, entropy of the shares seen (at most log2 runs)."""
    count = len(ids)
    drawn = draw(np.repeat(ids, runs)).reshape(count, runs)
    stays = (drawn == ids[:, None]).mean(axis=1)
    outputs, effective, entropy = (np.empty(count) for _ in range(3))
    inputs = np.zeros(count)
    place = {int(word): i for i, word in enumerate(ids.tolist())}
    for row in range(count):
        words, times = np.unique(drawn[row], return_counts=True)
        shares = -np.sort(-times) / runs
        outputs[row] = len(words)
        effective[row] = int((np.cumsum(shares) < 1.0 - eta - ROUNDING).sum()) + 1
        entropy[row] = -(shares * np.log2(shares)).sum()
        for word in words.tolist():
            if word in place:
                inputs[place[word]] += 1
    return stays, outputs, inputs, effective, entropy


def deniability(
    mechanism: Mechanism,
    ids: Ids | None = None,
    *,
    words: int = WORDS,
    runs: int = RUNS,
    eta: float = ETA,
    seed: int | None = None,
) -> Deniability:
    """N_x, S_x, S*_y of a word mechanism: exact where it has a law, else by drawing. Without `ids`, of a public random
    choice of words."""
    if not isinstance(mechanism, WordMechanism):
        raise BadParameterError("deniability-of-documents", "deniability is about words: choose a word-level mechanism")
    if runs < 1 or not 0 < eta < 1:
        raise BadParameterError(
            "impossible-runs",
            "runs must be at least 1 and eta between 0 and 1, not {runs} and {eta:g}",
            runs=runs,
            eta=eta,
        )
    mechanism.prepare()
    vocabulary = mechanism.vocabulary
    if ids is None:
        size = min(words, len(vocabulary))
        ids = np.sort(public_generator(0).choice(len(vocabulary), size=size, replace=False)).astype(np.int64)
    try:
        numbers = exact_deniability(mechanism.laws, ids, runs=runs, eta=eta)
        exact = True
    except NoGuaranteeError:
        source = new_source(seed)
        numbers = counted_deniability(lambda chosen: mechanism.released_ids(chosen, source), ids, runs=runs, eta=eta)
        exact = False
    names = tuple(str(vocabulary[i]) for i in ids.tolist())
    stays, outputs, inputs, effective, entropy = numbers
    return Deniability(mechanism.epsilon, names, stays, outputs, inputs, effective, entropy, runs, exact)


def over_epsilon(
    mechanism: WordMechanism,
    epsilons: Sequence[float] = EPSILONS,
    *,
    progress: StepProgress | None = None,
    **options: Any,
) -> list[Deniability]:
    """The same words at several budgets."""
    series = []
    for number, epsilon in enumerate(sorted(epsilons)):
        # The loaded table stands for its name, so that it is not read again.
        changed = type(mechanism)(**{**mechanism.get_params(), "vectors": mechanism.table, "limit": None,
                                     "epsilon": epsilon})  # fmt: skip
        series.append(deniability(changed, **options))
        if progress is not None:
            progress(number + 1, len(epsilons))
    return series


# For the report -------------------------------------------------------------------------------------------------------


def deniability_section(series: Sequence[Deniability], *, shown: float | None = None, draw: bool = True) -> Section:
    """Medians and extremes at each epsilon, a drawing, and the words that are told apart most easily."""
    if not series:
        raise BadParameterError("nothing-measured", "there is nothing to show: measure at least one epsilon")
    # The words shown are those at the chosen epsilon, or at the middle one.
    last = next((d for d in series if d.epsilon == shown), series[len(series) // 2])
    rows = [
        [
            d.epsilon,
            float(np.median(d.stays)),
            float(d.stays.max()),
            float(np.median(d.outputs)),
            float(np.median(d.inputs)),
            float(np.median(d.effective)),
            float(np.median(d.entropy)),
        ]
        for d in series
    ]
    how = "exact expectations" if last.exact else "counts of one simulation"
    table = Table(
        "Deniability by epsilon (medians over words)",
        ["epsilon", "N_x", "largest N_x", "S_x", "S*_y", "outputs of 95 % mass", "entropy in bits"],
        rows,
        note=f"{len(last.words):,} words, {last.runs:,} runs, {how}; S*_y counts inputs among these words",
    )
    worst = np.argsort(-last.stays)[:10]
    words = Table(
        f"Words that stay most often, at epsilon {last.epsilon:g}",
        ["word", "N_x", "S_x", "S*_y", "entropy in bits"],
        [[last.words[i], last.stays[i], last.outputs[i], last.inputs[i], last.entropy[i]] for i in worst.tolist()],
    )
    median = float(np.median(last.stays))
    finding = Finding(
        "Plausible deniability",
        Light.NONE,
        f"At epsilon {last.epsilon:g} half of the words stay with probability {median:.3g} or more; a word has "
        f"{float(np.median(last.outputs)):,.0f} different outputs in {last.runs:,} runs (median).",
        "A description, without a threshold: it bounds no attack.",
        numbers={"epsilon": [d.epsilon for d in series], "N_x": [row[1] for row in rows],
                 "S_x": [row[3] for row in rows], "S*_y": [row[4] for row in rows], "exact": last.exact},
    )  # fmt: skip
    figures = [deniability_figure(series)] if draw and len(series) > 1 else []
    return Section("Deniability", "How often a word stays, and how many others it hides among.", [finding],
                   [table, words], figures)  # fmt: skip


def deniability_figure(series: Sequence[Deniability]) -> Figure:
    canvas, area = axes()
    epsilons = [d.epsilon for d in series]
    many = max(float(np.median(d.outputs)) for d in series)
    inputs = max(float(np.median(d.inputs)) for d in series)
    area.plot(epsilons, [np.median(d.stays) for d in series], marker="o", label="$N_x$ (stays)")
    low, high = ([float(np.quantile(d.stays, q)) for d in series] for q in (0.1, 0.9))
    area.fill_between(epsilons, low, high, alpha=0.15)
    area.plot(epsilons, [np.median(d.outputs) / max(many, 1.0) for d in series], marker="s",
              label=f"$S_x$ (outputs, of {many:,.0f})")  # fmt: skip
    area.plot(epsilons, [np.median(d.inputs) / max(inputs, 1.0) for d in series], marker="^",
              label=f"$S^*_y$ (inputs, of {inputs:,.0f})")  # fmt: skip
    area.set_xscale("log")
    area.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
    area.minorticks_off()
    area.set_xlabel("epsilon")
    area.set_ylabel("probability, or share of the largest")
    area.set_ylim(-0.02, 1.05)
    area.legend(frameon=False)
    return figure(
        canvas,
        "Deniability over epsilon",
        "Medians over words. The probability that a word stays rises with epsilon (band: 10 % to 90 % of the words), "
        "the numbers of its outputs and of the inputs behind an output fall.",
    )
