"""Checks of given pairs, of all pairs, and of the columns of a law."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from tacit.arrays import Floats, Ids
from tacit.auditing.claims.claim import Claim
from tacit.auditing.claims.exact.losses import Worst, log_ratios, result_of
from tacit.auditing.claims.exact.result import TOLERANCE, ExactResult, Witness
from tacit.auditing.claims.laws import Law
from tacit.errors import BadInputError
from tacit.progress import StepProgress

BLOCK_CELLS = 4_000_000
MOST_CELLS = 60_000_000
"""Inputs times outputs that are kept in memory for all pairs: half a gigabyte."""


def check_pairs(
    law: Law,
    claim: Claim,
    pairs: Ids,
    *,
    scope: str | None = None,
    tolerance: float = TOLERANCE,
    progress: StepProgress | None = None,
) -> ExactResult:
    """Every output of every given pair (pairs, 2)."""
    pairs = np.asarray(pairs, dtype=np.int64)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or not len(pairs):
        raise BadInputError("too-few-inputs", "give at least one pair of inputs to check")
    given, pairs = len(pairs), pairs[np.isfinite(claim.bounds(pairs[:, 0], pairs[:, 1]))]
    if not len(pairs):
        raise BadInputError(
            "no-claim-about-pairs", "nothing is claimed about any of these pairs: choose inputs of the same set"
        )
    scope = scope or f"{given:,} pairs"
    if len(pairs) < given:
        scope += f" ({len(pairs):,} of them, about which something is claimed)"
    worst = Worst(law, claim)
    step = max(1, BLOCK_CELLS // len(law.outputs) // 2)
    for start in range(0, len(pairs), step):
        block = pairs[start : start + step]
        rows, place = np.unique(block, return_inverse=True)
        known = law.rows(rows)
        place = place.reshape(block.shape)
        worst.compare(block[:, 0], block[:, 1], known[place[:, 0]], known[place[:, 1]])
        if progress is not None:
            progress(min(start + step, len(pairs)), len(pairs))
    return result_of(worst, scope, tolerance)


def check_all(
    law: Law,
    claim: Claim,
    ids: Ids | None = None,
    *,
    tolerance: float = TOLERANCE,
    progress: StepProgress | None = None,
) -> ExactResult:
    """All pairs of these inputs (default: all inputs) and all outputs."""
    ids = np.arange(len(law.inputs)) if ids is None else np.unique(np.asarray(ids, dtype=np.int64))
    if len(ids) < 2:
        raise BadInputError("too-few-inputs", "a privacy claim compares two inputs: give at least two")
    scope = f"all {len(ids) * (len(ids) - 1) // 2:,} pairs of {len(ids):,} inputs, all {len(law.outputs):,} outputs"
    if claim.sets is not None:
        scope = f"all pairs of {len(ids):,} inputs ({claim.among}), all {len(law.outputs):,} outputs"
    if not claim.is_metric and not claim.delta:
        return _check_columns(law, claim, ids, scope, tolerance, progress)
    if len(ids) * len(law.outputs) > MOST_CELLS:
        raise BadInputError(
            "too-many-pairs",
            "all pairs of {inputs:,} inputs over {outputs:,} outputs are too many: check fewer inputs, or the "
            "closest pairs ({option.words[closest:500]})",
            inputs=len(ids),
            outputs=len(law.outputs),
        )
    worst = Worst(law, claim)
    known = law.rows(ids)
    step = max(1, BLOCK_CELLS // len(law.outputs))
    for i in range(len(ids) - 1):
        for start in range(i + 1, len(ids), step):
            others = ids[start : start + step]
            worst.compare(np.full(len(others), ids[i]), others, known[i], known[start : start + step])
        if progress is not None:
            progress((i + 1) * (2 * len(ids) - i - 2), len(ids) * (len(ids) - 1))
    return result_of(worst, scope, tolerance, shared=shared_output(law, claim, ids, known))


def shared_output(law: Law, claim: Claim, ids: Ids, known: Floats) -> Witness | None:
    """An unprotected output that two inputs can give, though a utility-optimized claim allows one only."""
    if claim.protected is None:
        return None
    open_columns = np.flatnonzero(~claim.protected)
    shared = np.flatnonzero((known[:, open_columns] > 0).sum(axis=0) > 1)
    if not shared.size:
        return None
    column = int(open_columns[shared[0]])
    first, second = np.flatnonzero(known[:, column] > 0)[:2]
    loss = float(np.log(known[first, column] / known[second, column]))
    names = (str(law.inputs[ids[first]]), str(law.inputs[ids[second]]))
    return Witness(*names, str(law.outputs[column]), loss, 0.0)


def _check_columns(
    law: Law, claim: Claim, ids: Ids, scope: str, tolerance: float, progress: StepProgress | None
) -> ExactResult:
    """The largest over the smallest probability of each column: every pair at once."""
    worst = Worst(law, claim)
    groups: Iterator[Ids] = iter([ids])
    if claim.sets is not None:
        owners = claim.sets[ids]
        groups = (ids[owners == owner] for owner in np.unique(owners))
    done = 0
    for group in groups:
        highest, lowest, top, bottom = _extremes(law, group, progress if claim.sets is None else None)
        if len(group) > 1:
            losses = log_ratios(highest, lowest)
            bound = claim.epsilon + claim.slack

            def place(
                column: int, top: Ids = top, bottom: Ids = bottom, losses: Floats = losses, bound: float = bound
            ) -> tuple[int, int, int | None, float, float, float | None]:
                return int(top[column]), int(bottom[column]), column, float(losses[column]), bound, None

            worst.loss.offer(losses, place)
            worst.excess.offer(losses - bound, place)
            worst.pairs += len(group) * (len(group) - 1) // 2
        done += len(group)
        if progress is not None and claim.sets is not None:
            progress(done, len(ids))
    return result_of(worst, scope, tolerance)


def _extremes(law: Law, ids: Ids, progress: StepProgress | None) -> tuple[Floats, Floats, Ids, Ids]:
    """Largest and smallest probability of each column, and the inputs that have them."""
    width = len(law.outputs)
    highest, lowest = np.full(width, -math.inf), np.full(width, math.inf)
    top, bottom = np.zeros(width, dtype=np.int64), np.zeros(width, dtype=np.int64)
    step = max(1, BLOCK_CELLS // width)
    for start in range(0, len(ids), step):
        block = ids[start : start + step]
        rows = law.rows(block)
        for pick, best, owner, better in (
            (rows.argmax(axis=0), highest, top, np.greater),
            (rows.argmin(axis=0), lowest, bottom, np.less),
        ):
            values = rows[pick, np.arange(width)]
            new = better(values, best)
            best[new], owner[new] = values[new], block[pick[new]]
        if progress is not None:
            progress(start + len(block), len(ids))
    return highest, lowest, top, bottom


def words_of(law: Law, names: Sequence[str]) -> Ids:
    """The numbers of these inputs."""
    place = {str(name): number for number, name in enumerate(law.inputs)}
    missing = [name for name in names if name not in place]
    if missing:
        raise BadInputError(
            "unknown-input",
            "there is no input '{name}': the inputs are {known}, …",
            name=missing[0],
            known=", ".join(list(place)[:5]),
        )
    return np.array([place[name] for name in names], dtype=np.int64)
