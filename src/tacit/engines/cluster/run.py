"""One run over a data set: what is finished of it, the work that Ray Data does, and what is left when it stops."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

from tacit.card import ReleaseFacts
from tacit.engines.cluster.crew import MOST_INPUT_BLOCKS, WORKERS_PER_READER, done_apart
from tacit.engines.cluster.dataset import ClusterDataSet
from tacit.engines.cluster.outcomes import FileEnd, FileRow, PartOutcome, unpacked
from tacit.engines.cluster.parts import PartWriter, WorkerPlan, part_name, read_parts
from tacit.engines.cluster.session import Cluster, streaming
from tacit.engines.cluster.staging import WHOLE, Done, JobFile, LedgerEntry, Staging
from tacit.engines.job import DeltaTooLargeError, RewriteJob, RewriteProgress, check_delta
from tacit.engines.local import OnProgress
from tacit.engines.outputs import GO_ON, NOTHING_WRITTEN, Remains, Totals, new_key
from tacit.engines.release import release_facts
from tacit.engines.resume import Configuration
from tacit.errors import StoppedError, TacitError, place_of
from tacit.text.files import ColumnSelection, RowEncoder, suffix_format

QUICK_BLOCK: Final = 1_000_000
"""Mechanisms with blocks of so many characters rewrite one in seconds."""


def is_one_file(output: str) -> bool:
    """Whether the name of an output stands for one file, not for a folder."""
    return suffix_format(output) is not None and not output.endswith("/")


class DatasetRun:
    """A run on a cluster: the parts that are finished so far, and what remains when it stops."""

    def __init__(
        self,
        job: RewriteJob,
        output: str,
        data: ClusterDataSet,
        selection: ColumnSelection,
        plan: WorkerPlan,
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

    def start(self, configuration: Configuration) -> None:
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
        for outcome in outcomes(ray, self.plan, self.items()):
            if isinstance(outcome, TacitError):
                raise outcome
            if isinstance(outcome, FileEnd):
                self._ends[outcome.file] = outcome.parts
                if self._job.users is not None:
                    self._job.users.left_out += outcome.left_out
            else:
                read += outcome.bytes_read
                self._add(outcome.done)
            if progress is not None:
                progress(RewriteProgress(read, self._data.size, self.totals.rows, self.totals.units))
        self._check_complete()

    def _add(self, done: Done) -> None:
        name = part_name(done.file, done.finished.block)
        if name in self._finished:  # Ray may tell of a part twice; it is one part all the same
            return
        check_delta(self._delta, self.totals.rows + done.finished.rows)
        self._finished[name] = done
        self.totals = self.totals.plus(done.finished)

    def items(self) -> list[FileRow]:
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
        done_apart(ray, assembled_file, items)

    def facts(self) -> ReleaseFacts:
        return release_facts(self._job, self._selection, self.totals)

    def remains(self) -> Remains:
        if not self.totals.rows:
            return NOTHING_WRITTEN
        return Remains(GO_ON, {"rows": self.totals.rows, "name": Path(self.staging.folder.url).name})


def assembled_file(staging: str, encoder: RowEncoder, name: str, parts: list[str]) -> None:
    Staging(staging).assemble(encoder, name, parts)


def outcomes(cluster: Cluster, plan: WorkerPlan, items: list[FileRow]) -> Iterator[PartOutcome]:
    """The outcome of each part, as the parts are finished."""
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
                yield unpacked(row["outcome"])
        except TacitError:
            raise
        except Exception as error:
            raise _broken(error) from None


def _broken(error: Exception) -> TacitError:
    """Ray gave up. Its messages can be long and can quote anything, so only their kind is reported."""
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


@contextlib.contextmanager
def remainder_reported(run: DatasetRun) -> Iterator[None]:
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
