"""The release of texts under differential privacy: a file or data in memory in, rewritten texts and their card out.

    result = tacit.rewrite("reviews.csv", columns="text", keep="stars", epsilon=2, output="private.csv")
    print(result)

The engines write the card (`tacit.engines.release`), whoever calls them.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from tacit.account.ledger import Ledger
from tacit.arrays import Floats32
from tacit.card import SECOND, Card, ReleaseFacts, for_file, plain_sentence, row_sentences
from tacit.engines.job import (
    RewriteJob,
    check_input,
    check_output_name,
    choose_for,
    choose_output_format,
    input_format,
    is_matrix,
)
from tacit.engines.local import OnBlock, OnLedger, OnProgress, OnPromise, rewrite_file
from tacit.engines.release import PublishedRelease
from tacit.errors import TacitWarning
from tacit.guarantee import Guarantee, Unit
from tacit.jobs.rewrite_config import RewriteConfig, python_call
from tacit.jobs.row_release import RowReleaseConfig
from tacit.mechanism import Mechanism
from tacit.text.files import ColumnSelection, FileFormat, open_table
from tacit.text.files.memory import in_kind_of, is_in_memory, memory_columns

__all__ = ["RewriteConfig", "RewriteResult", "rewrite", "rewrite_job", "run"]


@dataclass(frozen=True, repr=False)
class RewriteResult:
    """A release: what was promised, the facts of the output, and the released texts where they are in memory.

    card        the privacy card; of a dry run, the one that a release would have
    output      the file or folder that was written; None where there is none
    card_files  where the card lies
    data        the released rows in the container that the input came in; None where they went into a file
    texts       the released texts, row by row; None where they went into a file
    vectors     the released vectors in their place, of a job that releases vectors
    left_out    rows beyond the maximum of their user, for the owner's eyes
    spent       what one document of the data set has now spent by the ledger
    """

    config: RowReleaseConfig
    card: Card
    facts: ReleaseFacts
    selection: ColumnSelection | None = None
    output: str | None = None
    card_files: tuple[str, ...] = ()
    format: FileFormat | None = None
    data: object = None
    texts: list[str] | None = None
    vectors: list[Floats32] | None = None
    left_out: int = 0
    spent: str | None = None

    @property
    def guarantee(self) -> Guarantee:
        return self.card.guarantee

    def sentences(self) -> list[str]:
        """The promise in words: a sentence for a unit and one for a row of several texts."""
        second = self.card.shuffled
        of_shuffled = [] if second is None else [f"{SECOND}: {plain_sentence(second)}"]
        return [plain_sentence(self.guarantee), *row_sentences(self.guarantee, self.facts), *of_shuffled]

    def counts(self) -> str:
        """How much was released.

        >>> import tacit
        >>> "1 row" in tacit.rewrite(["good film"], epsilon=2, seed=1).counts()
        True
        """
        rows = f"{self.facts.rows:,} row{'' if self.facts.rows == 1 else 's'}"
        if self.facts.units == self.facts.documents:
            return rows
        part = Unit.SENTENCE if self.card.guarantee.unit is Unit.SENTENCE else Unit.TOKEN
        return f"{rows}, {self.facts.units:,} {part.value}s"

    def __str__(self) -> str:
        cards = f"; card: {', '.join(self.card_files)}" if self.card_files else ""
        return "\n".join([f"{self.counts()} -> {self.facts.output}{cards}", *self.sentences()])

    def __repr__(self) -> str:
        return f"<RewriteResult of {self.counts()}: {self.card!r}>"

    def _repr_html_(self) -> str:
        return self.card._repr_html_()


def rewrite(
    input: object,
    mechanism: str | None = None,
    *,
    epsilon: float | None = None,
    columns: str | tuple[str, ...] | list[str] = (),
    keep: str | tuple[str, ...] | list[str] = (),
    output: str | Path | None = None,
    progress: OnProgress | None = None,
    **options: Any,
) -> RewriteResult:
    """The release of texts: of a file, a list of texts or rows, a pandas frame or Series, an Arrow table, a data set.

    Without `output` the released rows are `result.data`, in the same kind of container; `result.card` says what was
    promised. Columns that are neither rewritten nor kept are dropped. Further options are those of `RewriteConfig`.

    >>> import tacit
    >>> result = tacit.rewrite(["a charming film"], "santext", epsilon=2)
    >>> len(result.data), result.card.guarantee.epsilon
    (1, 2.0)
    """
    config = RewriteConfig(
        input=list(input) if isinstance(input, Iterator) else input,
        mechanism=mechanism,
        epsilon=epsilon,
        columns=several(columns),
        keep=several(keep),
        output=None if output is None else str(output),
        **options,
    )
    return run(config, progress)


def several(names: str | tuple[str, ...] | list[str]) -> tuple[str, ...]:
    """One name or several as a tuple."""
    return (names,) if isinstance(names, str) else tuple(names)


def run(
    config: RewriteConfig,
    progress: OnProgress | None = None,
    *,
    mechanism: Mechanism | None = None,
    on_block: OnBlock | None = None,
    on_promise: OnPromise | None = None,
    on_ledger: OnLedger | None = None,
    command: str | None = None,
) -> RewriteResult:
    """The release that a configuration describes, with its card, or of a dry run the card alone.

    The callbacks are those of the engines; `mechanism` is given where it is built already, and `command` is how the
    call is shown on the card.
    """
    job = replace(rewrite_job(config, mechanism), command=command or python_call(config))
    if config.dry_run:
        return planned(config, job)
    ledger_seen = on_ledger or warn_of_new_ledger
    if config.on_cluster:
        from tacit.engines.cluster.rewrite import rewrite_dataset

        published = rewrite_dataset(
            job, address=config.address, progress=progress, on_promise=on_promise, on_ledger=ledger_seen
        )
    else:
        published = rewrite_file(
            job, progress=progress, on_block=on_block, on_promise=on_promise, on_ledger=ledger_seen
        )
    return release_result(config, job, published)


def rewrite_job(config: RowReleaseConfig, mechanism: Mechanism | None = None) -> RewriteJob:
    """The work of the engines; `mechanism` is given where it is built already."""
    return RewriteJob(
        mechanism=mechanism or config.build_mechanism(),
        input=memory_columns(config.input) if is_in_memory(config.input) else str(config.input),
        output=config.output,
        columns=config.columns,
        keep=config.keep,
        input_format=config.format,
        workers=config.workers,
        resume=config.resume,
        force=config.force,
        seed=config.seed,
        users=config.users(),
        labels=config.label_rule(),
        refuse_nominal=config.refuse_nominal,
        shuffle=config.is_shuffled,
        ledger=config.ledger_place(),
        card_kinds=config.card,
        card_file=config.card_file,
        configuration=config.identity(),
    )


def release_result(config: RowReleaseConfig, job: RewriteJob, published: PublishedRelease) -> RewriteResult:
    """The result of a job that was done."""
    facts, columns = published.facts, published.columns
    data = texts = vectors = None
    if columns is not None:
        data = in_kind_of(config.input, columns, facts.kept_columns)
        rows = zip(*(columns[name] for name in facts.columns), strict=True)
        values = [value for row in rows for value in row]
        if config.releases_vectors:
            vectors = [np.array(value, dtype=np.float32) for value in values]
        else:
            texts = [str(value) for value in values]
    return RewriteResult(
        config,
        published.card,
        facts,
        output=job.file_output,
        card_files=published.card_files,
        format=published.format,
        data=data,
        texts=texts,
        vectors=vectors,
        left_out=0 if job.users is None else job.users.left_out,
        spent=published.spent,
    )


def planned(config: RowReleaseConfig, job: RewriteJob) -> RewriteResult:
    """The card and the fate of each column, from the header alone."""
    source = job.input
    if config.on_cluster:
        from tacit.engines.cluster.dataset import find_data_set

        source = find_data_set(str(job.input), job.input_format).files[0].url
        job = replace(job, input=source)
    else:
        check_input(job)
    if job.file_output is not None and not is_matrix(job):
        check_output_name(job.file_output)
    source_format = input_format(job)
    with open_table(source, source_format) as table:
        selection = choose_for(job, table)
    choose_output_format(job, source_format)
    selection = replace(selection, kept=tuple(name for name in selection.kept if name != config.randomize))
    facts = ReleaseFacts(
        rows=0, documents=0, units=0, longest_document=0, longest_row=0,
        columns=selection.texts, kept_columns=selection.kept,
    )  # fmt: skip
    promised = for_file(job.promise(), selection.kept, shuffled=config.is_shuffled)
    return RewriteResult(config, Card(promised, facts), facts, selection)


def warn_of_new_ledger(ledger: Ledger) -> None:
    """Report a new ledger: after a misspelled name or a lost file, earlier spending is not counted."""
    if ledger.making is not None:
        warnings.warn(TacitWarning(ledger.making), stacklevel=2)
