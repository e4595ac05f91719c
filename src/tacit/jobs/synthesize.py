"""Synthetic rows: a corpus that may be shared in place of private rows.

made = tacit.synthesize("tickets.csv", label_column="intent", labels=["refund", "delivery"], epsilon=1)
made.texts, made.card

The usual way is matching: noisy sums of the rows are released once, as a sketch, and public sentences are drawn by it.
`by="training"` trains a language model under differential privacy instead (`tacit.jobs.synthesize_training`), and
`by="prompting"` lets a public one read the rows and draws its words privately (`tacit.jobs.synthesize_prompting`).
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from tacit.atomic import write_file
from tacit.jobs.released_rows import ReleasedRows, card_of_rows, write_rows_with_card
from tacit.jobs.sketch import run as build
from tacit.jobs.sketch_input import first_label_source, label_rule, row_source
from tacit.jobs.synthesize_config import MatchingConfig
from tacit.progress import WorkProgress
from tacit.text.files import write_whole

if TYPE_CHECKING:
    from tacit.jobs.synthesize_prompting import PromptedTexts, PromptingPlan
    from tacit.jobs.synthesize_training import SyntheticRows
    from tacit.matching.corpus import MatchedCorpus
    from tacit.matching.evolution.rounds import SentenceWriter
    from tacit.matching.pool import SentencePool
    from tacit.matching.sketch import Sketch

__all__ = ["MatchedRows", "MatchingConfig", "run", "synthesize"]

CONTINUATIONS, TOKENS, TEMPERATURE = 40, 28, 0.9
"""Of a language model that takes part in the rounds, for every label in every round."""
TEXT_COLUMN = "text"
LABEL_COLUMN = "label"
TOPIC_COLUMN = "topic"


@dataclass(frozen=True)
class MatchedRows(ReleasedRows):
    """A corpus of public sentences with labels, column by column, with its card; an attribution stands beside it too.

    sketch_path  the sketch that it was drawn from, which gives any amount more at no further cost
    report_path  the page about it that may be shared, if one was written
    private_report_path  the page for the holder of the private rows, if one was written
    """

    sketch_path: Path
    report_path: Path | None = None
    private_report_path: Path | None = None


def run(config: MatchingConfig, progress: WorkProgress | None = None) -> MatchedRows:
    """A corpus in a file, with its card and attribution; the sketch is built and saved first unless one is given.

    What was paid for is never lost: the sketch is on the disk before any sentence is drawn.
    """
    from tacit.jobs.private_pools import refuse_private_pools
    from tacit.matching.artifact import read_sketch
    from tacit.matching.corpus import matched_corpus
    from tacit.matching.drawable import check_drawable, warn_of_noise
    from tacit.matching.pool import load_pool

    config.check_files()
    pools = [load_pool(name) for name in config.pools]
    compared: tuple[str, ...] = ()
    if config.from_sketch is None:
        compared = refuse_private_pools(config.data, config.format, pools)
    # Before anything is paid for: a name that is wrong costs nothing.
    writer = None if config.writer is None else load_writer(config.writer)
    if config.from_sketch is None and config.labels_from_data is None:
        check_drawable(label_rule(config).names, pools)
    sketch = _built_sketch(config, progress) if config.from_sketch is None else read_sketch(config.from_sketch)
    check_drawable(sketch.labels, pools)
    warn_of_noise(sketch)
    seed = secrets.randbelow(1 << 31) if config.sample_seed is None else config.sample_seed
    if config.evolve:
        pools = [*pools, *_evolved(config, sketch, pools, writer, progress)]
    corpus = matched_corpus(
        sketch,
        pools,
        rows=config.rows,
        keep_proportions=config.keep_proportions,
        seed=seed,
        sentences=config.public_sentences,
        subject_lines=config.subject_lines,
        progress=progress,
    )
    corpus = replace(corpus, guarantee=corpus.guarantee.also_not_covered(*compared))
    if config.evolve:
        corpus = _with_evolution(config, corpus, writer)
    made = _written(config, sketch, corpus)
    if config.report is None:
        return made
    return _with_report(config, made, sketch, pools, corpus, progress)


def load_writer(model: str) -> SentenceWriter:
    """A public language model that takes part in the rounds of an evolution."""
    from tacit.documents.language_models.writing import PromptedWriter

    return PromptedWriter.of(model, rows=CONTINUATIONS, tokens=TOKENS, temperature=TEMPERATURE)


def _evolved(
    config: MatchingConfig,
    sketch: Sketch,
    pools: Sequence[SentencePool],
    writer: SentenceWriter | None,
    progress: WorkProgress | None,
) -> list[SentencePool]:
    """The pool of what the rounds made, if they made anything."""
    from tacit.matching.evolution.rounds import Evolution, evolved_pool

    stem = config.output.name.split(".")[0]
    evolution = Evolution(config.evolve, config.sample_seed or 0, writer, config.output.parent, stem)
    pool = evolved_pool(sketch, pools, evolution, progress)
    return [] if pool is None else [pool]


def _with_evolution(config: MatchingConfig, corpus: MatchedCorpus, writer: SentenceWriter | None) -> MatchedCorpus:
    """The corpus whose card says how sentences were varied."""
    rounds = f"{config.evolve} rounds against the released sketch (post-processing, at no cost)"
    written = "" if writer is None else f"; a public language model took part: {writer.source}"
    parameters = {**corpus.guarantee.parameters, "evolved sentences": rounds + written}
    return replace(corpus, guarantee=replace(corpus.guarantee, parameters=parameters))


def _with_report(
    config: MatchingConfig,
    made: MatchedRows,
    sketch: Sketch,
    pools: Sequence[SentencePool],
    corpus: MatchedCorpus,
    progress: WorkProgress | None,
) -> MatchedRows:
    """The same rows with the page about them, which sees the release and the pools only, and the page for the holder of
    the rows, if that is wanted."""
    from tacit.jobs.release_report import public_release, release_page
    from tacit.matching.joint_corpus import column_view

    labels, source = corpus.labels, row_source(config)
    if corpus.columns:  # the pages show one label of a row: that of the first column
        sketch, labels = column_view(sketch, 0), next(iter(corpus.columns.values()))
        source = first_label_source(config)
    release = public_release(sketch, pools, corpus.texts, labels, made.card)
    write_whole(config.report_path, release_page(release))
    if config.report != "private":
        return replace(made, report_path=config.report_path)
    from tacit.jobs.private_report import held_rows, judged, private_page

    held = held_rows(source, sketch)
    page = private_page(release, held, judged(release, held, progress))
    write_file(config.private_report_path, page.encode(), private=True)
    return replace(made, report_path=config.report_path, private_report_path=config.private_report_path)


def _built_sketch(config: MatchingConfig, progress: WorkProgress | None) -> Sketch:
    shown = None if progress is None else (lambda done, total: progress("reading the rows", done, total))
    return build(config.sketch_config(), shown).sketch


def _written(config: MatchingConfig, sketch: Sketch, corpus: MatchedCorpus) -> MatchedRows:
    text, label = _column_names(config, sketch)
    labels = {name: list(values) for name, values in corpus.columns.items()} or {label: list(corpus.labels)}
    columns = {text: list(corpus.texts), **labels}
    card = card_of_rows(config, corpus.guarantee, corpus.texts, command="tacit synthesize")
    write_rows_with_card(config.output, columns, card, attribution=corpus.attribution)
    return MatchedRows(columns, text, card, config.output, config.sketch_path)


def _column_names(config: MatchingConfig, sketch: Sketch) -> tuple[str, str]:
    """The names of the text and the label: those that were typed, now or when the sketch was built, so that learners
    find the columns that they know."""
    from tacit.matching.labels import Topics

    text = config.column or sketch.text_column or TEXT_COLUMN
    usual = TOPIC_COLUMN if isinstance(sketch.rule, Topics) else LABEL_COLUMN
    return text, config.label_column or sketch.label_column or usual


def synthesize(
    data: object = None,
    *,
    by: Literal["matching", "training", "prompting"] = "matching",
    progress: Any = None,
    **options: Any,
) -> MatchedRows | SyntheticRows | PromptedTexts | PromptingPlan:
    """Synthetic rows that may be shared; a file or data in memory.

    data   a file, a list of rows, a pandas frame, an Arrow table, a data set; not needed with `from_sketch`
    by     "matching" (options as in `MatchingConfig`), "training" (as in `TrainedSynthesisConfig`), or "prompting" (as
           in `PromptingConfig`)

        rows = [{"text": "where is my parcel", "intent": "delivery"}, ...]
        made = tacit.synthesize(rows, epsilon=1, label_column="intent", labels=["delivery", "refund"])
        made.rows[0], made.card
    """
    if by == "training":
        from tacit.jobs import synthesize_training

        return synthesize_training.run(synthesize_training.TrainedSynthesisConfig(data=data, **options), progress)
    if by == "prompting":
        from tacit.jobs import synthesize_prompting

        return synthesize_prompting.run(synthesize_prompting.PromptingConfig(data=data, **options), progress)
    return run(MatchingConfig(data=data, by=by, **options), progress)
