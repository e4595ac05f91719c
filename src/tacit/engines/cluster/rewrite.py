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
import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from tacit.card import ReleaseFacts
from tacit.engines.blocks import fingerprint
from tacit.engines.cluster.crew import MOST_INPUT_BLOCKS, WORKERS_PER_READER, done_apart
from tacit.engines.cluster.dataset import DataSet, check_files, find_data_set, opened
from tacit.engines.cluster.parts import PartWriter, Plan, part_characters, part_name, read_parts
from tacit.engines.cluster.session import Cluster, starting, streaming
from tacit.engines.cluster.staging import WHOLE, Done, JobFile, LedgerEntry, Staging, staging_url
from tacit.engines.cluster.storage import Folder, local_path
from tacit.engines.job import (
    AlreadyCompleteError,
    DeltaTooLargeError,
    Progress,
    RewriteJob,
    check_delta,
    check_output_name,
    check_users,
    describe,
    exists_error,
    unfinished_error,
)
from tacit.engines.local import OnLedger, OnProgress, OnPromise, opened_ledger, spent_by
from tacit.engines.nominal import refuse_nominal_dataset
from tacit.engines.outputs import GO_ON, NOTHING_WRITTEN, Remains, Totals, new_key
from tacit.engines.release import Published, release_card, write_cards
from tacit.engines.resume import Finished
from tacit.errors import BadInputError, BadParameterError, StoppedError, TacitError, place_of
from tacit.labels import labels_need_local_engine
from tacit.text.files import (
    Encoder,
    FileFormat,
    OutputError,
    Selection,
    choose_columns,
    encoder_for,
    suffix_format,
)

FILES_SHOWN: Final = "how many files there are, and how many rows each of them has"
QUICK_BLOCK: Final = 1_000_000
"""Mechanisms with blocks of so many characters rewrite one in seconds."""


def rewrite_dataset(
    job: RewriteJob,
    *,
    address: str | None = None,
    progress: OnProgress | None = None,
    on_promise: OnPromise | None = None,
    on_ledger: OnLedger | None = None,
) -> Published:
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
) -> Published:
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
            run = _Run(job, output, data, selection, plan, staging, job.row_delta(), _entry(job))
            run.start(describe(job, selection, data.format, encoder.format))
            with _remainder_reported(run):
                if ray is not None:
                    run.rewrite(ray(), progress)
                    run.assemble(ray())
        with _remainder_reported(run):
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
    return Published(card, facts, card_files, encoder.format)


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
    check_output_name(job.file_output)
    output, staging = Folder(job.file_output), Staging(staging_url(job.file_output))
    _check_place(job.input_path, job.file_output, output)
    if staging.is_left_over():
        staging.discard()
    unfinished = staging.exists()
    if job.resume and output.exists() and not unfinished:
        raise AlreadyCompleteError(
            "already-complete", "'{output}' is already complete: there is nothing to resume", output=job.file_output
        )
    if unfinished and not job.resume and not job.force:
        raise unfinished_error(staging.folder.url)
    if output.exists() and not job.force and not (job.resume and unfinished and _may_overwrite(staging)):
        raise exists_error(job.file_output)
    return job.file_output


def _check_place(source_name: str, output_name: str, output: Folder) -> None:
    source = local_path(source_name)
    if output.path is None or source is None:
        if output.url == source_name.rstrip("/"):
            raise OutputError(
                "output-is-input", "the output is the input itself: choose another name with {option.output}"
            )
        return
    if not output.path.parent.is_dir():
        raise OutputError(
            "no-such-folder", "the folder '{folder}' does not exist: make it first", folder=output.path.parent
        )
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


def _layout(job: RewriteJob, output: str, data: DataSet) -> tuple[Selection, Encoder]:
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


def _planned(job: RewriteJob, output: str, data: DataSet, selection: Selection, encoder: Encoder) -> Plan:
    return Plan(
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


def is_one_file(output: str) -> bool:
    """Whether the name of an output stands for one file, not for a folder."""
    return suffix_format(output) is not None and not output.endswith("/")


def output_format(output: str, input_format: FileFormat) -> FileFormat:
    """The format of one file is told by its name; the files of a folder have that of the input, unzipped."""
    named = suffix_format(output) if is_one_file(output) else None
    if named is None:
        return FileFormat(input_format.kind)
    if named.kind == "tsv" and input_format.kind == "tsv-raw":
        return FileFormat("tsv-raw", named.gzip)
    return named


# The run ----------------------------------------------------------------------------------------------------------


class _Run:
    """What is finished so far, and what is left of it when the run stops."""

    def __init__(
        self,
        job: RewriteJob,
        output: str,
        data: DataSet,
        selection: Selection,
        plan: Plan,
        staging: Staging,
        delta: float,
        ledger: LedgerEntry | None,
    ) -> None:
        self._job, self._output, self._data = job, output, data
        self._selection, self._delta = selection, delta
        self.plan, self.staging, self._ledger = plan, staging, ledger
        self.overwrite = job.force
        self.whole = is_one_file(output)
        self.totals = Totals()
        self._finished: dict[str, Done] = {}
        self._ends: dict[int, int] = {}

    def start(self, configuration: dict[str, Any]) -> None:
        """Begin, or go on with the key, the cuts and the finished parts of the run that was stopped."""
        names = [file.url for file in self._data.files]
        if self._job.resume and self.staging.exists():
            stopped = self.staging.go_on(configuration, names)
            self.overwrite = stopped.overwrite
            self.plan = replace(self.plan, characters=stopped.characters)
            self._finished = self.staging.finished()
            for done in self._finished.values():
                self.totals = self.totals.plus(done.finished)
            return
        self.staging.discard()
        key = new_key(self._job.seed)
        self.staging.create(
            JobFile(
                key.key.hex(), key.secure, self._job.force, self.plan.characters, names, configuration, self._ledger
            )
        )

    def rewrite(self, ray: Cluster, progress: OnProgress | None) -> None:
        read = 0
        for outcome in _outcomes(ray, self.plan, self._items()):
            if "error" in outcome:
                raise _error_of(outcome)
            if "parts" in outcome:
                self._ends[outcome["file"]] = outcome["parts"]
                if self._job.users is not None:
                    self._job.users.left_out += outcome["left out"]
            else:
                read += outcome.pop("bytes read")
                self._add(Done(outcome["file"], Finished(**outcome["finished"])))
            if progress is not None:
                progress(Progress(read, self._data.size, self.totals.rows, self.totals.units))
        self._check_complete()

    def _add(self, done: Done) -> None:
        name = part_name(done.file, done.finished.block)
        if name in self._finished:  # Ray may tell of a part twice; it is one part all the same
            return
        check_delta(self._delta, self.totals.rows + done.finished.rows)
        self._finished[name] = done
        self.totals = self.totals.plus(done.finished)

    def _items(self) -> list[dict[str, Any]]:
        """One row per file, with the finished parts of it."""
        digests: dict[int, dict[str, str]] = {}
        for name, done in self._finished.items():
            digests.setdefault(done.file, {})[name] = done.finished.digest
        return [
            {"file": number, "url": file.url, "size": file.size, "done": json.dumps(digests.get(number, {}))}
            for number, file in enumerate(self._data.files)
        ]

    def _check_complete(self) -> None:
        """Every part of every file is finished and stored, and nothing else is there."""
        expected = {part_name(file, part) for file, parts in self._ends.items() for part in range(parts)}
        stored = self.staging.parts.sizes()
        whole = {name for name, done in self._finished.items() if stored.get(name) == done.finished.offset}
        if len(self._ends) != len(self._data.files) or expected != whole or len(whole) != len(stored):
            raise TacitError(
                "parts-are-missing",
                "some parts of the data set did not come back: run the same command with {option.resume}",
            )

    def assemble(self, ray: Cluster) -> None:
        """The files of the output, made of the parts by the workers."""
        parts = {
            file: [part_name(file, part) for part in range(self._ends[file])] for file in range(len(self._data.files))
        }
        encoder = self.plan.encoder
        wanted = {f"part-{file:06d}.{encoder.format}": names for file, names in parts.items()}
        if self.whole:
            wanted = {WHOLE: [name for names in parts.values() for name in names]}
        items = [(self.plan.staging, encoder, name, names) for name, names in wanted.items()]
        done_apart(ray, _assembled, items)

    def facts(self) -> ReleaseFacts:
        return ReleaseFacts(
            rows=self.totals.rows,
            documents=self.totals.documents,
            units=self.totals.units,
            longest_document=self.totals.longest_document,
            longest_row=self.totals.longest_row,
            columns=self._selection.texts,
            kept_columns=self._selection.kept,
            dropped_columns=len(self._selection.dropped),
            output=Path(self._output.rstrip("/")).name,
            command=self._job.command,
            configuration=dict(self._job.configuration),
            created=datetime.now(UTC).isoformat(timespec="seconds"),
        )

    def remains(self) -> Remains:
        if not self.totals.rows:
            return NOTHING_WRITTEN
        return Remains(GO_ON, {"rows": self.totals.rows, "name": Path(self.staging.folder.url).name})


def _assembled(staging: str, encoder: Encoder, name: str, parts: list[str]) -> None:
    Staging(staging).assemble(encoder, name, parts)


def _outcomes(cluster: Cluster, plan: Plan, items: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """What became of each part, as the parts are finished."""
    ray, workers = cluster.ray, cluster.workers
    readers = min(len(items), 1 + workers // WORKERS_PER_READER)
    with streaming(ray):
        rows = ray.data.from_items(items, override_num_blocks=min(len(items), MOST_INPUT_BLOCKS))
        # Readers wait for workers most of the time: they take no core from them.
        parts = rows.map_batches(read_parts, batch_size=1, fn_args=(plan,), num_cpus=0, concurrency=readers)
        # Parts of seconds: the next one is there when a worker is done. Parts that take long: one on the way to each,
        # since at the end a worker would have two of them and another one none.
        waiting = 2 if plan.mechanism.block_characters >= QUICK_BLOCK else 1
        pool = ray.data.ActorPoolStrategy(size=workers, max_tasks_in_flight_per_actor=waiting)
        done = parts.map_batches(PartWriter, batch_size=1, fn_constructor_args=(plan,), num_cpus=1, compute=pool)
        try:
            for row in done.iter_rows():
                yield json.loads(row["outcome"])
        except TacitError:
            raise
        except Exception as error:
            raise _broken(error) from None


def _broken(error: Exception) -> TacitError:
    """Ray gave up. Its messages can be long and can quote anything, so only their kind is told."""
    kind = type(error).__name__
    cause = error.__cause__
    if isinstance(error, ModuleNotFoundError) or isinstance(cause, ModuleNotFoundError):
        return TacitError(
            "worker-of-another-version",
            "a worker of the cluster cannot import Tacit: install the same version of it on all machines",
        )
    return TacitError(
        "cluster-gave-up",
        "the cluster gave up ({error}; {place}): see Ray's own logs",
        error=kind,
        place=place_of(error),
    )


def _error_of(outcome: dict[str, Any]) -> TacitError:
    error = TacitError(outcome["code"], outcome["sentence"], **outcome["fields"])
    error.exit_code = outcome["exit code"]
    return error


@contextlib.contextmanager
def _remainder_reported(run: _Run) -> Iterator[None]:
    """Whatever stops the run, the user learns what is left; a run without a finished part leaves nothing."""
    try:
        yield
    except BaseException as error:
        if isinstance(error, DeltaTooLargeError):  # going on would fail again: nothing of it is kept
            run.totals = Totals()
        if not run.totals.rows and not run.staging.is_publishing():
            run.staging.discard()
        left = run.remains()
        if isinstance(error, KeyboardInterrupt):
            raise StoppedError("stopped", f"stopped: {left.sentence}", **left.fields) from None
        if isinstance(error, TacitError) and run.totals.rows:
            error.add_remark(left.sentence, **left.fields)
        raise
