"""Labels that only the private rows know, found by a release of their own: a private set union, paid for.

Every record (or user) holds the labels of its rows; their counts get noise, and a label is shown only if its noisy
count passes a threshold, because noise cannot hide that a label exists (`tacit.training.vocabulary.word_noise` has the
proof).
A fixed part of epsilon, and half of delta, pay for it; the sketch has the rest, and the card composes the two:

    epsilon = SHARE epsilon + (1 - SHARE) epsilon,   delta = delta / 2 + delta / 2        (sequential composition)

A record has one label per column. With one column it moves one count by 1, and Laplace noise needs the lower threshold;
otherwise a unit holds several labels, at most `MOST_OF_USER` per column, and normal noise is taken.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tacit.account.delta import automatic_delta, check_delta
from tacit.account.parts import in_two_parts
from tacit.errors import BadInputError
from tacit.guarantee import Adjacency, Guarantee, Unit, VoidReason
from tacit.jobs.sketch_input import check_distinct_labels
from tacit.jobs.sketched_rows import SketchedRows
from tacit.matching.labels import ListedLabels, label_name
from tacit.mechanism import TEST_SEED_REASON
from tacit.noise.source import new_source
from tacit.text.files import cell_string, check_column, open_table
from tacit.text.identity import user_name
from tacit.training.vocabulary.contribution import Contribution
from tacit.training.vocabulary.histogram import count_words, histogram_guarantee
from tacit.training.vocabulary.word_noise import WordNoise, calibrate

SHARE = 0.2
"""Of epsilon; chosen so that a label needs about 75 rows at epsilon 1 and 10,000 rows, while the sums keep 0.8."""
MOST_OF_USER = 8
MOST_DIFFERENT = 1_000_000
MECHANISM = "private list of labels (noisy counts above a threshold)"
_BETWEEN = "\x1f"


@dataclass(frozen=True)
class LabelPrice:
    """The price of finding the labels, and the budget that is left for the sketch."""

    contribution: Contribution
    noise: WordNoise
    guarantee: Guarantee
    sketch_epsilon: float
    sketch_delta: float


@dataclass(frozen=True)
class HeldLabels:
    """The labels of every unit, each as column and name; private."""

    units: Sequence[Sequence[str]]
    columns: tuple[str, ...]
    by_user: bool


def held_labels(config: SketchedRows) -> HeldLabels:
    """The labels that records or users hold, in the columns whose labels nobody named."""
    named = {name for name, _ in (*config.labels_of, *config.bins_of)}
    columns = tuple(column for column in config.label_columns if column not in named)
    users: dict[str, list[str]] = {}
    records: list[list[str]] = []
    different: set[str] = set()
    with open_table(config.data, config.format) as table:
        selected = [*columns, *([] if config.user_column is None else [config.user_column])]
        for column in selected:
            check_column(column, table.columns)
        table.select(selected)
        for row, values in table.rows():
            names = [label_name(value) for value in values[: len(columns)]]
            held = [f"{column}{_BETWEEN}{name}" for column, name in zip(columns, names, strict=True) if name]
            different.update(held)
            check_distinct_labels(columns[0], len(different), MOST_DIFFERENT)
            if config.user_column is None:
                records.append(held)
            else:
                if not (user := user_name(cell_string(values[-1]))):
                    raise BadInputError("no-user", "row {row:,} has no user: every row must belong to one", row=row)
                users.setdefault(user, []).extend(held)
    by_user = config.user_column is not None
    return HeldLabels(list(users.values()) if by_user else records, columns, by_user)


def price_of_labels(config: SketchedRows, epsilon: float, held: HeldLabels) -> LabelPrice:
    """The noise that finds the labels, and the promise that it keeps."""
    units = len(held.units)
    delta = automatic_delta(units) if config.delta == "auto" else config.delta
    check_delta(delta, units)
    single = len(held.columns) == 1 and not held.by_user
    contribution = (
        Contribution(1, "one") if single else Contribution(len(held.columns) * (MOST_OF_USER if held.by_user else 1))
    )
    for_labels, for_sketch = in_two_parts(epsilon, SHARE)
    noise = calibrate(
        epsilon=for_labels,
        delta=delta / 2,
        contribution=contribution,
        kind="laplace" if single else "gaussian",
    )
    unit = Unit.USER if held.by_user else Unit.RECORD
    promised = histogram_guarantee(noise, contribution, Adjacency.ADD_REMOVE, unit, None)
    promised = replace(promised, mechanism=MECHANISM)
    return LabelPrice(contribution, noise, promised, for_sketch, delta - promised.delta)


def bought_labels(
    config: SketchedRows, held: HeldLabels, price: LabelPrice
) -> tuple[dict[str, ListedLabels], Guarantee]:
    """The labels whose noisy counts pass the threshold, by column; and the promise of this release. The noise is drawn
    here, so the budget is spent even if no label comes out."""
    source = new_source(config.seed)
    promised = price.guarantee
    if not source.secure:
        promised = promised.voided(TEST_SEED_REASON, VoidReason.TEST_SEED)
    exact = count_words(held.units, price.contribution)
    words = list(exact)
    shown, _ = price.noise.released(words, np.array([exact[word] for word in words], dtype=np.float64), source)
    rules = {column: _listed(config, column, shown) for column in held.columns}
    if missing := [column for column, rule in rules.items() if rule is None]:
        raise BadInputError(
            "no-label-found",
            "no label of the column '{column}' has enough rows to be shown ({rows:,} or so are needed at this "
            "epsilon), and looking has used up the budget: name the labels with {option.labels}, or give more "
            "{option.epsilon}",
            column=missing[0],
            rows=math.ceil(price.noise.threshold or 0),
        )
    return {column: rule for column, rule in rules.items() if rule is not None}, promised


def _listed(config: SketchedRows, column: str, shown: Iterable[str]) -> ListedLabels | None:
    names = sorted(word.partition(_BETWEEN)[2] for word in shown if word.partition(_BETWEEN)[0] == column)
    if config.other is not None and label_name(config.other) not in names:
        names.append(config.other)
    return ListedLabels(tuple(names), config.other, bought=True) if names else None
