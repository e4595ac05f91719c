"""The engine 'ray': a data set in, a folder of parts (or one file) and one card out.

    files --> read_parts --> PartWriter x workers --> records --> assemble --> card --> output
              Ray Data       Ray Data, actor pool     here        actors       here

This process sees records only: how many rows and units each part has, never a text. It can be killed at any moment, and
so can any worker; the same job with `resume` keeps the finished parts and goes on.

What is guaranteed, in the order of its strength:

* A row is published once. Parts lie in the staging folder until all of them are finished, and one version of each
  becomes part of the output.
* The same key and input make the same bytes, however often a worker or the command is killed, on machines that compute
  alike (one kind of processor, the same versions).
* For a data set of one file and an output of one file, these are the bytes of the local engine.
"""

from __future__ import annotations

import contextlib
from dataclasses import replace
from pathlib import Path
from typing import Final

from tacit.engines.blocks import fingerprint
from tacit.engines.cluster.dataset import ClusterDataSet, check_files, find_data_set, opened
from tacit.engines.cluster.parts import WorkerPlan, part_characters
from tacit.engines.cluster.run import DatasetRun, is_one_file, remainder_reported
from tacit.engines.cluster.session import starting
from tacit.engines.cluster.staging import LedgerEntry, Staging, staging_url
from tacit.engines.cluster.storage import Folder, local_path
from tacit.engines.job import (
    RewriteJob,
    check_output_name,
    check_users,
    describe,
)
from tacit.engines.local import OnLedger, OnProgress, OnPromise, opened_ledger, spent_by
from tacit.engines.nominal import refuse_nominal_dataset
from tacit.engines.output_errors import complete_error, exists_error, output_is_input_error, unfinished_error
from tacit.engines.release import PublishedRelease, release_card, write_cards
from tacit.engines.shuffling import shuffle_needs_local_engine
from tacit.errors import BadInputError, BadParameterError
from tacit.labels import labels_need_local_engine
from tacit.text.files import (
    ColumnSelection,
    FileFormat,
    OutputError,
    RowEncoder,
    choose_columns,
    encoder_for,
    suffix_format,
)
from tacit.text.files.partial import no_such_folder

FILES_SHOWN: Final = "how many files there are, and how many rows each of them has"


def rewrite_dataset(
    job: RewriteJob,
    *,
    address: str | None = None,
    progress: OnProgress | None = None,
    on_promise: OnPromise | None = None,
    on_ledger: OnLedger | None = None,
) -> PublishedRelease:
    """The release of a data set with its card, made by `job.workers` actors, of a Ray started here or of the cluster at
    `address`.

    The output is one file if its name ends in that of a format, else a folder with one file for each file of the input,
    named by their order, since the name of a file can tell who is in it. The card is written when all parts are
    finished and the output does not have its name yet. `on_promise` sees what will be promised before anything is read,
    `on_ledger` the ledger that was opened; every worker opens it for itself.
    """
    output = check_cluster_output(job)
    with opened_ledger(job, on_ledger) as charged:
        published = _released(charged, output, address, progress, on_promise)
        return replace(published, spent=spent_by(charged))


def _released(
    job: RewriteJob, output: str, address: str | None, progress: OnProgress | None, on_promise: OnPromise | None
) -> PublishedRelease:
    data = find_data_set(str(job.input), job.input_format)
    selection, encoder = _layout(job, output, data)
    if job.refuse_nominal:
        refuse_nominal_dataset(job, selection)
    staging = Staging(staging_url(output))
    try:
        with contextlib.ExitStack() as stack:
            # What is quickly found to be wrong has been found; the rest of the plan is made while Ray starts.
            if staging.is_publishing():
                staging.check_release()
            ray = None if staging.is_publishing() else stack.enter_context(starting(address, job.workers))
            promised = job.promise()
            if on_promise is not None:
                on_promise(promised)
            plan = _planned(job, output, data, selection, encoder)
            run = DatasetRun(job, output, data, selection, plan, staging, job.row_delta(), _entry(job))
            run.start(describe(job, selection, data.format, encoder.format))
            with remainder_reported(run):
                if ray is not None:
                    run.rewrite(ray(), progress)
                    run.assemble(ray())
        with remainder_reported(run):
            facts = run.facts()
            if facts.rows == 0:
                staging.discard()
                raise BadInputError("no-rows", "'{input}' has no rows: there is nothing to rewrite", input=job.input)
            facts = replace(facts, digest=staging.output_digest(whole=run.whole))
            card = release_card(job, facts, *(() if run.whole else (FILES_SHOWN,)))
            card_files = write_cards(job, card)
            staging.publish(output, whole=run.whole, overwrite=run.overwrite)
    finally:
        staging.close()
    return PublishedRelease(card, facts, card_files, encoder.format)


def check_cluster_output(job: RewriteJob) -> str:
    """The place of the output. Says early that it cannot be written as asked; cleans up behind a run that was stopped
    at its very end."""
    if job.input_path is None:
        raise BadInputError(
            "cluster-reads-files",
            "the engine 'ray' reads files: use {option.engine[local]} for standard input and for data in memory",
        )
    if job.file_output is None:
        raise BadInputError(
            "cluster-writes-files",
            "the engine 'ray' writes a folder of parts, or a file: give its name with {option.output}",
        )
    if job.labels is not None:
        raise labels_need_local_engine()
    if job.shuffle:
        raise shuffle_needs_local_engine()
    check_output_name(job.file_output)
    output, staging = Folder(job.file_output), Staging(staging_url(job.file_output))
    _check_place(job.input_path, job.file_output, output)
    if staging.is_left_over():
        staging.discard()
    unfinished = staging.exists()
    if job.resume and output.exists() and not unfinished:
        raise complete_error(job.file_output)
    if unfinished and not job.resume and not job.force:
        raise unfinished_error(staging.folder.url)
    if output.exists() and not job.force and not (job.resume and unfinished and _may_overwrite(staging)):
        raise exists_error(job.file_output)
    return job.file_output


def _check_place(source_name: str, output_name: str, output: Folder) -> None:
    source = local_path(source_name)
    if output.path is None or source is None:
        if output.url == source_name.rstrip("/"):
            raise output_is_input_error()
        return
    if not output.path.parent.is_dir():
        raise no_such_folder(output.path.parent)
    if output.path == source or output.path in source.parents or source in output.path.parents:
        raise OutputError(
            "output-in-input", "input and output lie in each other: choose another name with {option.output}"
        )
    if suffix_format(output_name) and output.path.is_dir():
        raise OutputError(
            "is-a-folder",
            "'{path}' is a folder: give the name of a file, or one without a suffix for a folder",
            path=output.path,
        )


def _may_overwrite(staging: Staging) -> bool:
    return staging.is_publishing() or staging.load().overwrite


# The plan ---------------------------------------------------------------------------------------------------------


def _layout(job: RewriteJob, output: str, data: ClusterDataSet) -> tuple[ColumnSelection, RowEncoder]:
    """Which columns, and how they are written: everything that can be checked without reading texts."""
    with opened(data.files[0], data.format) as table:
        selection = choose_columns(table.columns, job.columns, job.keep)
        check_users(job.users, table, selection)
        if job.charging is not None:
            job.charging.check(table, selection, job.users)
        encoder = encoder_for(output_format(output, data.format), selection.written, table, selection.texts)
    if job.users is not None and len(data.files) > 1:
        raise BadInputError(
            "users-in-several-files",
            "{option.user_column} needs all rows of the data set in one file, since the rows of a user may lie in "
            "several: put them into one file, or use {option.engine[local]} file by file if no user is in two of them",
        )
    others = (None if job.users is None else job.users.column, _document_column(job))
    check_files(data, selection, [*selection.written, *(name for name in others if name is not None)])
    return selection, encoder


def _planned(
    job: RewriteJob, output: str, data: ClusterDataSet, selection: ColumnSelection, encoder: RowEncoder
) -> WorkerPlan:
    return WorkerPlan(
        mechanism=type(job.mechanism),
        parameters=job.mechanism.get_params(deep=False),
        selection=selection,
        format=data.format,
        encoder=encoder,
        users=job.users,
        document_column=_document_column(job),
        command=job.command,
        fingerprint=fingerprint(job.mechanism, selection.texts),
        characters=part_characters(data.size, job.mechanism.block_characters),
        staging=staging_url(output),
    )


def _document_column(job: RewriteJob) -> str | None:
    return None if job.charging is None else job.charging.document_column


def _entry(job: RewriteJob) -> LedgerEntry | None:
    if job.charging is None:
        return None
    place = job.charging.place
    if place is None:
        raise BadParameterError(
            "ledger-without-place", "the workers of a cluster open the ledger for themselves: say where it is"
        )
    if not place.startswith("postgres"):
        place = str(Path(place.removeprefix("sqlite:///")).absolute())  # workers have other working folders
    return LedgerEntry(place, job.charging.ledger.id, job.charging.dataset)


def output_format(output: str, input_format: FileFormat) -> FileFormat:
    """The format of the output: by the name of one file; in a folder that of the input, unzipped."""
    named = suffix_format(output) if is_one_file(output) else None
    if named is None:
        return FileFormat(input_format.kind)
    if named.kind == "tsv" and input_format.kind == "tsv-raw":
        return FileFormat("tsv-raw", named.gzip)
    return named
