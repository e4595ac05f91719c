"""A sketch of private rows: sums of public features per public label, released once, as a file of its own.

built = tacit.sketch("tickets.csv", label_column="intent", labels=["refund", "delivery"], epsilon=1, output="s.tacit")
built.sketch.counts, built.card
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tacit.account.release_charge import ReleaseCharge
from tacit.card import Card
from tacit.errors import BadInputError, TacitWarning
from tacit.guarantee import Guarantee
from tacit.jobs.bought_labels import bought_labels, held_labels, price_of_labels
from tacit.jobs.charging import charging
from tacit.jobs.row_notes import RowNotes, said_first
from tacit.jobs.sketch_input import label_rule, map_for, row_source
from tacit.jobs.sketched_rows import SketchConfig
from tacit.matching.artifact import save_sketch
from tacit.matching.sketch import BuiltSketch, Sketch, build_sketch, with_guarantee
from tacit.matching.sums import PrivateFindings
from tacit.places import refuse_taken_file
from tacit.progress import StepProgress


@dataclass(frozen=True)
class SketchResult:
    """A sketch with its card, the file that holds it, and what only the holder of the rows may know (`findings`)."""

    sketch: Sketch
    output: Path | None
    findings: PrivateFindings = field(repr=False)

    @property
    def guarantee(self) -> Guarantee:
        return self.sketch.guarantee

    @property
    def card(self) -> Card:
        return self.sketch.card

    def __str__(self) -> str:
        return str(self.sketch)


def run(config: SketchConfig, progress: StepProgress | None = None) -> SketchResult:
    """The sketch of private rows, saved with its card. Every call spends its budget anew."""
    refuse_taken_file(config.output, force=config.force)
    return _released(config, config.output, progress)


def sketch(
    data: Any, *, epsilon: float, output: str | Path | None = None, progress: StepProgress | None = None, **options: Any
) -> SketchResult:
    """Noisy sums of public features per public label, from which a corpus can be made later; a file or data in memory,
    options as in `SketchConfig`. Without an output nothing is written: the result holds the sketch and its card.

        rows = [{"text": "where is my parcel", "intent": "delivery"}, ...]
        built = tacit.sketch(rows, label_column="intent", labels=["delivery", "refund"], epsilon=1)
        built.sketch.counts, built.card
    """
    if output is None:
        return _released(SketchConfig(data=data, epsilon=epsilon, **options), None, progress)
    return run(SketchConfig(data=data, epsilon=epsilon, output=Path(output), **options), progress)


def _released(config: SketchConfig, output: Path | None, progress: StepProgress | None) -> SketchResult:
    with charging(config, "tacit sketch build") as charge:
        return released_sketch(config, output, progress, charge)


def released_sketch(
    config: SketchConfig, output: Path | None, progress: StepProgress | None, charge: ReleaseCharge
) -> SketchResult:
    """The sketch of private rows, paid for as `charge` says: for callers that keep their own ledger."""
    build = _built if config.labels_from_data is None else _bought
    built = build(config, charge, progress)
    # Names that were typed are options, which a card shows as well; a header that was not typed is not written down.
    named = replace(built.sketch, text_column=config.column or "", label_column=config.label_column or "")
    made = named if output is None else save_sketch(named, output, force=config.force)
    charge.commit()
    _warn(built.findings)
    return SketchResult(made, output, built.findings)


def _built(config: SketchConfig, charge: ReleaseCharge, progress: StepProgress | None) -> BuiltSketch:
    rule = label_rule(config)
    notes = RowNotes(config.encoders)

    def before_noise(promised: Guarantee) -> None:
        said_first(notes, _say)
        charge.reserve(promised)

    return build_sketch(
        notes.watched(row_source(config, progress)),
        rule,
        map_for(config, rule),
        epsilon=config.epsilon,
        delta=None if config.delta == "auto" else config.delta,
        by_user=config.user_column is not None,
        seed=config.seed,
        before_noise=before_noise,
    )


def _say(sentence: str) -> None:
    warnings.warn(TacitWarning(sentence), stacklevel=4)


def _bought(config: SketchConfig, charge: ReleaseCharge, progress: StepProgress | None) -> BuiltSketch:
    """A sketch whose labels are found first; its promise is that of both releases together."""
    notes = RowNotes(config.encoders)
    for _ in notes.watched(row_source(config))():
        pass  # what there is to say about the rows is said before the labels are looked for
    said_first(notes, _say)
    held = held_labels(config)
    price = price_of_labels(config, config.epsilon, held)
    delta = price.guarantee.delta + price.sketch_delta
    charge.reserve(replace(price.guarantee, epsilon=config.epsilon, delta=delta))
    try:
        labels, paid = bought_labels(config, held, price)
    except BadInputError:
        charge.commit()  # that nothing was found is a release, too
        raise
    rule = label_rule(config, labels)
    built = build_sketch(
        row_source(config, progress),
        rule,
        map_for(config, rule),
        epsilon=price.sketch_epsilon,
        delta=price.sketch_delta,
        by_user=config.user_column is not None,
        seed=config.seed,
    )
    return replace(built, sketch=with_guarantee(built.sketch, paid.then(built.sketch.guarantee)))


def _warn(findings: PrivateFindings) -> None:
    """Warn the holder of the rows of what nobody else should know: it stands on no card."""
    if findings.unlabeled:
        warnings.warn(
            TacitWarning(
                f"{findings.unlabeled:,} of {findings.rows:,} rows have a label that is not in the public list and "
                "were left out (this line is private: it speaks of the rows)"
            ),
            stacklevel=3,
        )
