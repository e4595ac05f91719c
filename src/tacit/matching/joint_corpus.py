"""A corpus with several label columns: combinations of labels by their joint law, sentences by the scores of all.

The joint law of the columns is fitted to the noisy tables (`tacit.matching.marginals`). Each column has a classifier of
its own, made of the sums of its values (`tacit.matching.discriminant`), and a combination of labels has the sum of the
logarithms of their probabilities: the text is taken to depend on each label by itself. All of it is post-processing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tacit.arrays import Floats
from tacit.matching.corpus import (
    MatchedCorpus,
    corpus_guarantee,
    most_repeats,
    pool_places,
    scored_pool,
    usual_rows,
)
from tacit.matching.drawing import drawn_rows, rows_per_label
from tacit.matching.marginals import JointLabels, fitted_joint
from tacit.matching.pool import SentencePool, attribution_of
from tacit.matching.sketch import Sketch
from tacit.matching.whole_numbers import GRID, bound_of
from tacit.noise.source import public_generator
from tacit.progress import WorkProgress


def column_view(sketch: Sketch, column: int) -> Sketch:
    """The sketch of one of several label columns."""
    assert isinstance(sketch.rule, JointLabels)
    lines = sketch.rule.lines_of(column)
    empty = np.zeros(0, dtype=np.int64)
    return replace(sketch, rule=sketch.rule.columns[column][1], totals=sketch.totals[lines], side=empty)


def joint_law(sketch: Sketch) -> Floats:
    """The joint law of the label columns of a sketch: an array with one axis per column."""
    rule = sketch.rule
    assert isinstance(rule, JointLabels)
    views = [column_view(sketch, column) for column in range(len(rule.columns))]
    tables: dict[tuple[int, ...], Floats] = {(column,): view.counts for column, view in enumerate(views)}
    variances: dict[tuple[int, ...], float] = {(column,): view.count_deviation**2 for column, view in enumerate(views)}
    variance_of_pair = sketch.noise_variance * (GRID / bound_of(rule.pair_weight)) ** 2
    for pair, table in rule.pair_tables(sketch.side, sketch.step).items():
        tables[pair], variances[pair] = table, variance_of_pair
    return fitted_joint(rule.sizes, tables, variances)


def joint_corpus(
    sketch: Sketch,
    pools: Sequence[SentencePool],
    *,
    rows: int | None = None,
    seed: int = 0,
    progress: WorkProgress | None = None,
) -> MatchedCorpus:
    """Public sentences of the pools with a label of every column of a sketch."""
    rule = sketch.rule
    assert isinstance(rule, JointLabels)
    places, sentences = pool_places(pools)
    views = [column_view(sketch, column) for column in range(len(rule.columns))]
    scored = [scored_pool(view, sentences, progress) for view in views]
    scores = [each.log_probabilities for each in scored]
    domain = np.mean([each.domain for each in scored], axis=0)
    generator = public_generator(seed)
    law = joint_law(sketch)
    wanted = rows_per_label(law.reshape(-1), usual_rows(views[0]) if rows is None else rows, generator)
    repeats = most_repeats(wanted, len(sentences))
    chosen, labels = [], []
    for combination in np.flatnonzero(wanted):
        values = np.unravel_index(combination, law.shape)
        score = np.sum([scores[column][:, value] for column, value in enumerate(values)], axis=0)
        of_combination = wanted[combination : combination + 1]
        drawn = drawn_rows(score[:, None], domain, of_combination, generator, most_repeats=repeats)
        chosen.append(drawn.sentences)
        labels.append(np.tile(np.array(values), (len(drawn), 1)))
    order = generator.permutation(sum(map(len, chosen)))
    picked, valued = np.concatenate(chosen)[order], np.concatenate(labels)[order]
    columns = {
        name: [rule_of.names[value] for value in valued[:, column]]
        for column, (name, rule_of) in enumerate(rule.columns)
    }
    return MatchedCorpus(
        texts=[sentences[place] for place in picked],
        labels=[" / ".join(row) for row in zip(*columns.values(), strict=True)],
        guarantee=corpus_guarantee(sketch, pools),
        attribution=attribution_of([(pools[places[place][0]], places[place][1]) for place in np.unique(picked)]),
        columns=columns,
    )
