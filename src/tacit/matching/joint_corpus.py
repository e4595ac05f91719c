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
from tacit.matching.composing import drawn_documents, joined
from tacit.matching.corpus import (
    MatchedCorpus,
    corpus_guarantee,
    corpus_lengths,
    in_order,
    most_repeats,
    pool_places,
    public_sentences,
    scored_pool,
    used_places,
    usual_rows,
)
from tacit.matching.drawing import rows_per_label
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
    lengths = sketch.side[sketch.rule.side_size :]
    return replace(sketch, rule=sketch.rule.columns[column][1], totals=sketch.totals[lines], side=lengths)


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
    sentences: int | None = None,
    progress: WorkProgress | None = None,
) -> MatchedCorpus:
    """Public sentences of the pools with a label of every column of a sketch; options as in `matched_corpus`."""
    rule = sketch.rule
    assert isinstance(rule, JointLabels)
    places, public = pool_places(pools)
    lengths = corpus_lengths(sketch, sentences)
    views = [column_view(sketch, column) for column in range(len(rule.columns))]
    scored = [
        scored_pool(view, public, progress, topics=column == 0 and not lengths.one_sentence)
        for column, view in enumerate(views)
    ]
    known = public_sentences(public, scored[0])
    domain = np.mean([each.domain for each in scored], axis=0)
    generator = public_generator(seed)
    law = joint_law(sketch)
    wanted = rows_per_label(law.reshape(-1), usual_rows(views[0], lengths) if rows is None else rows, generator)
    repeats = most_repeats(wanted, len(public))
    combinations = np.flatnonzero(wanted)
    values = np.stack(np.unravel_index(combinations, law.shape), axis=1)
    drawn = []
    for combination, of_columns in zip(combinations, values, strict=True):
        score = np.sum([each.log_probabilities[:, at] for each, at in zip(scored, of_columns, strict=True)], axis=0)
        drawn.append(drawn_documents(score, domain, int(wanted[combination]), lengths, known, generator, repeats))
    labels = np.repeat(np.arange(len(drawn)), [len(each) for each in drawn])
    chosen, order = in_order(drawn, labels)
    valued = values[labels[order]]
    columns = {
        name: [rule_of.names[value] for value in valued[:, column]]
        for column, (name, rule_of) in enumerate(rule.columns)
    }
    return MatchedCorpus(
        texts=[joined([public[place] for place in document]) for document in chosen],
        labels=[" / ".join(row) for row in zip(*columns.values(), strict=True)],
        guarantee=corpus_guarantee(sketch, pools, lengths),
        attribution=attribution_of([(pools[places[place][0]], places[place][1]) for place in used_places(chosen)]),
        sentences=[[public[place] for place in document] for document in chosen],
        columns=columns,
    )
