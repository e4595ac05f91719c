"""The work of a cluster's workers: cut a file into parts, rewrite the blocks of a part, commit the part.

    part    consecutive blocks of one file: the unit of work, of commit and of the ledger
    block   as on one machine (`tacit.engines.blocks`): the unit of noise

Where a file is cut depends on the lengths of its texts, which a release may have to hide. So parts stay in the staging
folder: what is published are whole files again, one for each file of the input, or one for all.

The cuts depend on the input alone. The noise of block b of file f is a function of the job's key, the number
f * 2**32 + b and the texts of the block, so whoever repeats a part, wherever and whenever, makes the same bytes; and
for a data set of one file the noise is that of the local engine. A part is written to a place of its own and committed
by a rename; its record (`done/`) is written after that, so a record never promises too much.

Nothing here raises: an error travels to the job as an outcome (`outcomes`), told by its place and without any text. The
job's key is read from the staging folder; it never travels through Ray.
"""

from __future__ import annotations

import hashlib
import json
import pickle
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final
from uuid import uuid4

from tacit.account.ledger import open_ledger
from tacit.engines.blocks import Block, cut_blocks, output_rows, rewrite_block
from tacit.engines.charging import BlockCharges, Charging
from tacit.engines.cluster.dataset import SourceFile, opened
from tacit.engines.cluster.outcomes import FileBatch, FileEnd, OutcomeBatch, PartBatch, PartDone, in_file, packed
from tacit.engines.cluster.staging import Done, LedgerEntry, Staging
from tacit.engines.cluster.storage import scratch
from tacit.engines.local import summarize
from tacit.engines.outputs import Totals
from tacit.engines.resume import Finished
from tacit.engines.users import UserRule
from tacit.errors import BadInputError, TacitError, place_of
from tacit.mechanism import Mechanism
from tacit.noise.source import StreamKey
from tacit.text.files import ColumnSelection, FileFormat, RowEncoder
from tacit.version import __version__

PARTS_WANTED: Final = 1_000
LARGEST_PART: Final = 16_000_000
BLOCKS_OF_A_PART: Final = 16
FILE_SHIFT: Final = 32
MOST_ATTEMPTS: Final = 3
END: Final = -1
"""The number of the row that says how many parts a file has."""


def part_characters(total_bytes: int, block_characters: int) -> int:
    """How much text a part holds: one block while there are few parts, more where there would be too many files.

    Slow mechanisms have small blocks, and so parts that take minutes, not hours: what a dead worker loses is one part.
    """
    return max(block_characters, min(LARGEST_PART, BLOCKS_OF_A_PART * block_characters, total_bytes // PARTS_WANTED))


@dataclass(frozen=True)
class WorkerPlan:
    """All that workers need to know, but for the key. Nothing in it is secret."""

    mechanism: type[Mechanism]
    parameters: Mapping[str, object]
    selection: ColumnSelection
    format: FileFormat
    encoder: RowEncoder
    users: UserRule | None
    document_column: str | None
    command: str
    fingerprint: bytes
    characters: int
    staging: str
    version: str = __version__


@dataclass(frozen=True)
class FilePart:
    file: int
    number: int
    blocks: list[Block]
    bytes_read: int

    @property
    def name(self) -> str:
        return part_name(self.file, self.number)

    @property
    def rows(self) -> int:
        return sum(block.rows for block in self.blocks)

    def digest(self) -> str:
        """A hash of all texts of the part."""
        return hashlib.blake2b(b"".join(block.content for block in self.blocks), digest_size=16).hexdigest()

    def span(self, file: str) -> str:
        first, last = self.blocks[0], self.blocks[-1]
        return f"rows {first.first_row:,} to {last.first_row + last.rows - 1:,} of {file}"


def part_name(file: int, number: int) -> str:
    """Names sort as the rows do."""
    return f"part-{file:06d}-{number:06d}"


# Reading ----------------------------------------------------------------------------------------------------------


def cut_parts(plan: WorkerPlan, number: int, file: SourceFile, users: UserRule | None) -> Iterator[FilePart]:
    """The parts of a file, in order."""
    with opened(file, plan.format) as table:
        blocks: list[Block] = []
        size, count, before = 0, 0, 0
        limit = plan.mechanism.block_characters
        for block in cut_blocks(table, plan.selection, limit, plan.fingerprint, users, plan.document_column):
            blocks.append(replace(block, index=(number << FILE_SHIFT) + block.index))
            size += sum(map(len, block.texts))
            # A whole block more may not fit in; the first block always does.
            if size + limit > plan.characters:
                yield FilePart(number, count, blocks, block.bytes_read - before)
                blocks, size, count, before = [], 0, count + 1, block.bytes_read
        if blocks:
            yield FilePart(number, count, blocks, table.bytes_read() - before)


def read_parts(batch: FileBatch, plan: WorkerPlan) -> Iterator[PartBatch]:
    """For Ray Data: files in, parts out, and for each file a last row that says how many there were.

    Parts that are finished are compared with what was read for them, and not handed out again.
    """
    for number, url, size, done in zip(batch["file"], batch["url"], batch["size"], batch["done"], strict=True):
        file = SourceFile(str(url), int(size))
        try:
            _check_version(plan)
            yield from _rows_of(plan, int(number), file, json.loads(str(done)))
        except TacitError as error:
            yield _row(int(number), END, packed(in_file(error, file.name)))
        except MemoryError:
            yield _row(int(number), END, packed(_memory_exceeded_reading(file.name)))
        except Exception as error:
            yield _row(int(number), END, packed(_reading_failed(file.name, error)))


def _rows_of(plan: WorkerPlan, number: int, file: SourceFile, done: dict[str, str]) -> Iterator[PartBatch]:
    users = None if plan.users is None else replace(plan.users)
    count = 0
    for part in cut_parts(plan, number, file, users):
        count += 1
        finished = done.pop(part.name, None)
        if finished is None:
            yield _row(number, part.number, pickle.dumps((part, file.name)))
        elif finished != part.digest():
            raise BadInputError(
                "input-has-changed",
                "{rows}, which are finished, have changed: restore the input, or add {option.force} to start over",
                rows=part.span("the file"),
            )
    if done:
        raise BadInputError(
            "input-is-shorter",
            "it has become shorter than what is finished: restore it, or add {option.force} to start over",
        )
    left_out = 0 if users is None else users.left_out
    yield _row(number, END, packed(FileEnd(number, count, left_out)))


def _row(file: int, part: int, payload: bytes) -> PartBatch:
    return {"file": [file], "part": [part], "payload": [payload]}


def _memory_exceeded_reading(file: str) -> TacitError:
    return TacitError("out-of-memory", "a worker ran out of memory while reading {file}", file=file)


def _memory_exceeded(where: str) -> TacitError:
    return TacitError(
        "out-of-memory",
        "a worker ran out of memory on {where}: use fewer {option.workers}, or machines with more",
        where=where,
    )


def _reading_failed(file: str, error: Exception) -> TacitError:
    return _unexpected("reading {file} failed: {place}. Please report this", file=file, place=place_of(error))


def _work_failed(where: str, error: Exception) -> TacitError:
    return _unexpected("a worker failed on {where}: {place}. Please report this", where=where, place=place_of(error))


def _unexpected(sentence: str, **fields: str) -> TacitError:
    error = TacitError("worker-failed", sentence, **fields)
    error.exit_code = 1
    return error


def _check_version(plan: WorkerPlan) -> None:
    if plan.version != __version__:
        raise TacitError(
            "worker-of-another-version",
            "a worker has Tacit {version} and this command {expected}: install one version on all machines",
            version=__version__,
            expected=plan.version,
        )


# Rewriting --------------------------------------------------------------------------------------------------------


class PartWriter:
    """For Ray Data: one actor. It builds the mechanism once, then rewrites and commits the parts it is given.

    Its constructor does nothing that could fail, since an actor that cannot be made is made again and again.
    """

    def __init__(self, plan: WorkerPlan) -> None:
        self._plan = plan
        self._ready: tuple[Mechanism, StreamKey, Staging, BlockCharges | None] | None = None

    def __call__(self, batch: PartBatch) -> OutcomeBatch:
        outcomes = [self._outcome(*row) for row in zip(batch["part"], batch["payload"], strict=True)]
        return {"outcome": outcomes}

    def _outcome(self, number: int, payload: bytes) -> bytes:
        if number == END:
            return payload
        part, file = pickle.loads(payload)
        where = part.span(file)
        try:
            mechanism, key, staging, charges = self._prepared()
            attempt = _begin(staging, part, where)
            done = commit_part(self._plan, mechanism, key, staging, part, charges)
            staging.attempts.remove(attempt)
        except TacitError as error:
            return packed(error)
        except MemoryError:
            return packed(_memory_exceeded(where))
        except Exception as error:
            return packed(_work_failed(where, error))
        return packed(PartDone(done, part.bytes_read))

    def _prepared(self) -> tuple[Mechanism, StreamKey, Staging, BlockCharges | None]:
        if self._ready is None:
            _check_version(self._plan)
            staging = Staging(self._plan.staging)
            build: Callable[..., Mechanism] = self._plan.mechanism
            mechanism = build(**self._plan.parameters)
            mechanism.prepare()
            job = staging.load()
            key = StreamKey(bytes.fromhex(job.key), secure=job.secure)
            charges = None if job.ledger is None else _charges(self._plan, job.ledger, mechanism, key)
            self._ready = mechanism, key, staging, charges
        return self._ready


def _charges(plan: WorkerPlan, entry: LedgerEntry, mechanism: Mechanism, key: StreamKey) -> BlockCharges:
    """How this worker writes its blocks into the ledger of the job."""
    ledger = open_ledger(entry.place, create=False)
    if ledger.id != entry.id:
        ledger.close()
        raise TacitError(
            "worker-with-another-ledger",
            "a worker found another ledger than the command: on several machines use one at postgresql://, and give "
            "all of them its TACIT_LEDGER_KEY",
        )
    charging = Charging(ledger, entry.dataset, plan.document_column)
    guarantee = mechanism.guarantee(secure=key.secure)
    return BlockCharges(charging, mechanism, guarantee, key, plan.command, len(plan.selection.texts))


def commit_part(
    plan: WorkerPlan,
    mechanism: Mechanism,
    key: StreamKey,
    staging: Staging,
    part: FilePart,
    charges: BlockCharges | None = None,
) -> Done:
    """Rewrite the blocks of a part, and give the part its name when all of them are written.

    Budget is set aside before any noise of the part is drawn, and spent for good before the part is recorded. A part
    that is repeated has the same tokens in the ledger and is counted once.
    """
    totals, width = Totals(), len(plan.selection.texts)
    reserved = [] if charges is None else [charges.reserve(block) for block in part.blocks]
    with scratch(staging.drafts) as folder:
        draft = folder / part.name
        written = hashlib.blake2b(digest_size=16)
        with draft.open("wb") as file:
            for block in part.blocks:
                result = rewrite_block(mechanism, key, block.index, block.content, block.texts)
                data = plan.encoder.block(output_rows(block, result.texts, plan.selection))
                file.write(data)
                written.update(data)
                totals = totals.plus(summarize(block, result, width))
        size = draft.stat().st_size
        staging.parts.take(draft, part.name)
    for reservation in reserved:
        reservation.commit()
    done = Done(
        part.file,
        Finished(
            block=part.number,
            rows=totals.rows,
            documents=totals.documents,
            units=totals.units,
            longest_document=totals.longest_document,
            longest_row=totals.longest_row,
            offset=size,
            digest=part.digest(),
            written=written.hexdigest(),
        ),
    )
    staging.record(part.name, done)
    return done


def _begin(staging: Staging, part: FilePart, where: str) -> str:
    """Leave a mark that is taken away after the part: three marks are three workers that did not come back."""
    marks = [name for name in staging.attempts.sizes() if name.startswith(part.name)]
    if len(marks) >= MOST_ATTEMPTS:
        raise TacitError(
            "workers-died",
            "{deaths} workers died one after the other on {where}, most likely for want of memory: use fewer "
            "{option.workers}, or machines with more memory",
            deaths=len(marks),
            where=where,
        )
    mark = f"{part.name}.{uuid4().hex}"
    staging.attempts.write(mark, b"")
    return mark
