"""Where the output of a job goes: a file that can be gone on with, or standard output."""

from __future__ import annotations

import hashlib
import os
import sys
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tacit.arrays import Integers
from tacit.atomic import sync
from tacit.engines.job import RewriteJob, is_unfinished
from tacit.engines.resume import Configuration, Finished, Header, ResumeFile, another_run_error, differences
from tacit.engines.shuffling import secret_order, shuffled_file
from tacit.errors import TacitWarning
from tacit.noise.source import StreamKey
from tacit.text.digest import file_digest
from tacit.text.files import (
    SHUFFLED,
    ArrowCell,
    OutputError,
    PartialOutput,
    RowEncoder,
    block_digest,
    storage_error,
)
from tacit.text.files.formats import MISSING


@dataclass(frozen=True)
class Totals:
    rows: int = 0
    documents: int = 0
    units: int = 0
    longest_document: int = 0
    longest_row: int = 0

    def plus(self, block: Finished) -> Totals:
        return Totals(
            self.rows + block.rows,
            self.documents + block.documents,
            self.units + block.units,
            max(self.longest_document, block.longest_document),
            max(self.longest_row, block.longest_row),
        )


@dataclass(frozen=True)
class Remains:
    """The remains of a stopped run: a sentence, and the fields it names."""

    sentence: str
    fields: dict[str, int | str]


NOTHING_WRITTEN = Remains("nothing was written; run the same command again", {})
GO_ON = "{rows:,} rows are in {name}; run the same command with {option.resume} to go on"

Rows = list[list[object]]


class JobOutput(ABC):
    """Where the rows of a job go."""

    def __init__(self) -> None:
        self.totals = Totals()
        self.finished: list[Finished] = []

    @abstractmethod
    def start(self, job: RewriteJob, configuration: Configuration) -> StreamKey:
        """Begin, or go on; returns the key that all noise of the job comes from."""

    @abstractmethod
    def append(self, rows: Rows, block: Finished) -> None:
        """Add the rows of a block."""

    @abstractmethod
    def finish(self, before_release: Callable[[str], None]) -> None:
        """Everything was appended: `before_release` gets the digest of the output."""

    @abstractmethod
    def remains(self) -> Remains:
        """The remains of a stopped run, in words."""

    def discard(self) -> None:
        return

    def close(self) -> None:
        return


class StandardOutput(JobOutput):
    def __init__(self, encoder: RowEncoder) -> None:
        super().__init__()
        self.encoder = encoder
        self._digest = hashlib.sha256()

    def start(self, job: RewriteJob, configuration: Configuration) -> StreamKey:
        self._write(self.encoder.head())
        return new_key(job.seed)

    def append(self, rows: Rows, block: Finished) -> None:
        self._write(self.encoder.block(rows))
        self.totals = self.totals.plus(block)

    def finish(self, before_release: Callable[[str], None]) -> None:
        before_release(self._digest.hexdigest())

    def remains(self) -> Remains:
        sentence = "{rows:,} rows were written to standard output; such a run cannot be resumed"
        return Remains(sentence, {"rows": self.totals.rows})

    def _write(self, data: bytes) -> None:
        try:
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()
            self._digest.update(data)
        except BrokenPipeError:
            raise
        except OSError as error:
            # What is still buffered cannot be written either, and would be tried again at the very end.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise storage_error(error, "standard output") from error


class MemoryOutput(JobOutput):
    """Rows that stay in this process, column by column."""

    def __init__(self, columns: Sequence[str]) -> None:
        super().__init__()
        self.columns: dict[str, list[object]] = {name: [] for name in columns}
        self._order_key: StreamKey | None = None

    def start(self, job: RewriteJob, configuration: Configuration) -> StreamKey:
        key = new_key(job.seed)
        self._order_key = key if job.shuffle else None
        return key

    def append(self, rows: Rows, block: Finished) -> None:
        for values, column in zip(zip(*rows, strict=True), self.columns.values(), strict=True):
            column += [_plain(value) for value in values]
        self.totals = self.totals.plus(block)

    def finish(self, before_release: Callable[[str], None]) -> None:
        if self._order_key is not None:
            order = secret_order(self.totals.rows, self._order_key).tolist()
            self.columns = {name: [values[place] for place in order] for name, values in self.columns.items()}
        before_release("")

    def remains(self) -> Remains:
        return NOTHING_WRITTEN


def _plain(value: object) -> object:
    """A value of a file as one of Python; what a row does not have is None."""
    if value is MISSING:
        return None
    return value.as_py() if isinstance(value, ArrowCell) else value


class FileOutput(JobOutput):
    """Bytes go to the partial file first and into the state afterwards, so the state never promises too much."""

    def __init__(self, path: Path, encoder: RowEncoder) -> None:
        super().__init__()
        self.encoder = encoder
        self.path = path
        self._partial = PartialOutput(path)
        self._state = ResumeFile(path)
        self._blocks: list[Finished] = []
        self._order_key: StreamKey | None = None

    def start(self, job: RewriteJob, configuration: Configuration) -> StreamKey:
        unfinished = job.resume and is_unfinished(self.path)
        key = self._go_on(configuration) if unfinished else self._begin(job, configuration)
        self._order_key = key if job.shuffle else None
        return key

    def _begin(self, job: RewriteJob, configuration: Configuration) -> StreamKey:
        key, head = new_key(job.seed), self.encoder.head()
        header = Header(key.key.hex(), key.secure, job.force, len(head), configuration)
        self._state.create(header)
        try:
            if job.force:
                self._partial.discard()
            self._partial.create()
        except BaseException:
            self._state.delete()
            raise
        try:
            self._partial.append(head)
        except BaseException:
            self.discard()
            raise
        return key

    def _go_on(self, configuration: Configuration) -> StreamKey:
        header, finished = self._state.load()
        if changes := differences(header.configuration, configuration):
            raise another_run_error(changes)
        intact = self._intact(finished)
        self.finished = finished[: max(0, intact)]
        self._blocks = list(self.finished)
        if len(self.finished) < len(finished):
            warnings.warn(
                TacitWarning(
                    f"'{self._partial.path}' is damaged after {sum(block.rows for block in self.finished):,} rows: the "
                    "rows after them are written again, with the noise that they had"
                ),
                stacklevel=2,
            )
        self._state.keep(header, self.finished)
        if intact < 0:
            self._partial.reopen(0)
            self._partial.append(self.encoder.head())
        else:
            self._partial.reopen(self.finished[-1].offset if self.finished else header.start)
        for block in self.finished:
            self.totals = self.totals.plus(block)
        return StreamKey(bytes.fromhex(header.key), secure=header.secure)

    def append(self, rows: Rows, block: Finished) -> None:
        data = self.encoder.block(rows)
        block = replace(block, offset=self._partial.append(data), written=block_digest(data))
        before = self.totals
        # Counted before it is stored: an interrupt in between must not make a finished block look like none.
        self.totals = before.plus(block)
        try:
            self._state.append(block)
        except OutputError:
            self.totals = before
            raise
        self._blocks.append(block)

    def _intact(self, blocks: list[Finished]) -> int:
        """How many blocks the partial file holds as they were written; -1 if it is not even begun."""
        return self._partial.intact(self.encoder.head(), [(block.offset, block.written) for block in blocks])

    def finish(self, before_release: Callable[[str], None]) -> None:
        if self._intact(self._blocks) != len(self._blocks):
            raise OutputError(
                "output-was-changed",
                "'{path}' does not hold what was written to it, so it is not released: check the disk, and who else "
                "writes there",
                path=self._partial.path,
            )
        try:
            ready = self.encoder.finish(self._partial.path)
            if self._order_key is not None:
                ready = self._shuffled(ready, secret_order(self.totals.rows, self._order_key))
            before_release(file_digest(ready))
        except OSError as error:
            raise storage_error(error, self.path) from error
        self._partial.release(ready)
        self._state.delete()

    def _shuffled(self, ready: Path, order: Integers) -> Path:
        """The finished file with its rows in another order; the one in the old order is removed."""
        target = self._partial.path.with_name(self._partial.path.name + SHUFFLED)
        shuffled_file(ready, target, self.encoder.format, self.encoder, order)
        sync(target)
        final = self.encoder.finish(target)
        for path in {ready, target} - {final, self._partial.path}:
            path.unlink()
        return final

    def remains(self) -> Remains:
        if self.totals.rows == 0:
            return NOTHING_WRITTEN
        return Remains(GO_ON, {"rows": self.totals.rows, "name": self._partial.path.name})

    def discard(self) -> None:
        self._partial.discard()
        self._state.delete()
        self._blocks = []
        self.totals = Totals()

    def close(self) -> None:
        self._partial.close()
        self._state.close()


def new_key(seed: int | None) -> StreamKey:
    return StreamKey.from_os() if seed is None else StreamKey.from_test_seed(seed)
