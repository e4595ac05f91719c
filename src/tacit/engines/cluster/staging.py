"""`OUTPUT.partial/`: the folder of an unfinished job.

    job.json     the key of the job, what it is, and the names of the input's files
    parts/       the finished parts, each written elsewhere and committed by a rename
    done/        one record per finished part, written after the part
    release/     the files of the output, made of the parts when all are finished
    digests/     the SHA-256 of each of these files
    attempts/    marks of the workers that are at work
    drafts/      files that are being written
    publishing   there since the files began to become the output

Whoever has the key and the texts can repeat the noise, so the folder is as secret as the input. On this machine only
its owner may enter it, a folder that somebody else can have planted is refused (`tacit.noise.kept_key`), and the key is
overwritten before the folder is deleted, when the output is complete. In a store, its own access rules do that.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import BinaryIO, Final

from tacit.engines.cluster.storage import Folder, scratch
from tacit.engines.resume import Configuration, Finished, another_run_error, differences, in_use_error, locked
from tacit.errors import BadInputError
from tacit.noise.kept_key import check_private_folder, open_private
from tacit.text.digest import file_digest, folder_digest
from tacit.text.files import OutputError, RowEncoder

STAGING_VERSION: Final = 3
RECORDS_AT_A_TIME: Final = 16
JOB, PUBLISHING, WHOLE, REPLACED = "job.json", "publishing", "whole", "replaced"


@dataclass(frozen=True)
class Done:
    """One finished part; in `finished`, `block` is the number of the part and `offset` its size in bytes."""

    file: int
    finished: Finished


@dataclass(frozen=True)
class LedgerEntry:
    """Which ledger the workers write into. Its place can hold a password, so it stays in this folder."""

    place: str
    id: str
    dataset: str


@dataclass(frozen=True)
class JobFile:
    key: str
    secure: bool
    overwrite: bool
    characters: int
    files: list[str]
    configuration: Configuration
    ledger: LedgerEntry | None = None


def staging_url(output: str) -> str:
    return f"{output.rstrip('/')}.partial"


class Staging:
    def __init__(self, url: str) -> None:
        self.folder = Folder(url)
        self.parts, self.done, self.release, self.digests, self.attempts, self.drafts = (
            self.folder / name for name in ("parts", "done", "release", "digests", "attempts", "drafts")
        )
        self._lock: io.FileIO | None = None

    # The job ------------------------------------------------------------------------------------------------------

    def exists(self) -> bool:
        """Whether there is a run to go on with."""
        return self.folder.holds(JOB)

    def create(self, job: JobFile) -> None:
        for folder in (
            self.folder, self.parts, self.done, self.release, self.digests, self.attempts, self.drafts
        ):  # fmt: skip
            folder.make(secret=folder is not self.release)
        self._check_private()
        self.folder.write(JOB, json.dumps({"tacit": STAGING_VERSION, **asdict(job)}).encode(), secret=True)
        self.lock()

    def _check_private(self) -> None:
        """Only this user can have made the folder, and nobody else may look into it."""
        if self.folder.path is not None:
            check_private_folder(self.folder.path)

    def load(self) -> JobFile:
        try:
            record = json.loads(self._job_bytes())
            if record.pop("tacit") != STAGING_VERSION:
                raise ValueError
            ledger = record.pop("ledger")
            if not any(bytes.fromhex(record["key"])):
                raise ValueError
            return JobFile(**record, ledger=None if ledger is None else LedgerEntry(**ledger))
        except (OSError, OutputError, ValueError, KeyError, TypeError, AttributeError):
            raise BadInputError(
                "unreadable-state",
                "'{path}' cannot be read (damaged, or of another version of Tacit), and without it the run cannot go "
                "on with the same noise: add {option.force} to start over",
                path=f"{self.folder.url}/{JOB}",
            ) from None

    def _job_bytes(self) -> bytes:
        if self.folder.path is None:
            return self.folder.read(JOB)
        self._check_private()
        with open_private(self.folder.path / JOB) as file:
            return file.readall() or b""

    def lock(self) -> None:
        """Two runs on one output would tear it apart. The lock goes with the process; only this machine knows it."""
        if self.folder.path is None:
            return
        file = open_private(self.folder.path / JOB)
        if not locked(file):
            file.close()
            raise in_use_error(self.folder.path.stem)
        self._lock = file

    def close(self) -> None:
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def go_on(self, configuration: Configuration, files: Sequence[str]) -> JobFile:
        """The job that was stopped, if this is the same one."""
        job = self.load()
        self.lock()
        changes = differences(job.configuration, configuration)
        if changes:
            raise another_run_error(changes)
        if job.files != list(files):
            other = sorted({*job.files} ^ {*files})
            raise BadInputError(
                "input-has-changed",
                "the input has other files than when the run was stopped ('{file}'): restore it, or add {option.force} "
                "to start over",
                file=other[0] if other else files[0],
            )
        # Marks of workers that died with the run say nothing about the parts.
        self.attempts.remove_all()
        self.attempts.make(secret=True)
        return job

    def discard(self) -> None:
        """The key goes first: without it, nothing that is left can be connected with the texts."""
        self.close()
        self.folder.erase(JOB)
        self.folder.remove_all()

    # Parts --------------------------------------------------------------------------------------------------------

    def record(self, name: str, done: Done) -> None:
        self.done.write(f"{name}.json", json.dumps(asdict(done)).encode())

    def finished(self) -> dict[str, Done]:
        """The parts that are recorded and there, by name."""
        sizes = self.parts.sizes()
        publishing = self.is_publishing()
        finished: dict[str, Done] = {}
        records = sorted(self.done.sizes())
        with ThreadPoolExecutor(RECORDS_AT_A_TIME) as pool:
            contents = list(pool.map(self.done.read, records))
        for record, content in zip(records, contents, strict=True):
            item = json.loads(content)
            done = Done(item["file"], Finished(**item["finished"]))
            name = record.partition(".")[0]
            if publishing or sizes.get(name) == done.finished.offset:
                finished[name] = done
        return finished

    # The output ---------------------------------------------------------------------------------------------------

    def assemble(self, encoder: RowEncoder, name: str, parts: Sequence[str]) -> None:
        """One finished file of these parts; done again, it is the same file. Each part must be what was recorded."""
        if self._is_assembled(name):
            return
        with scratch(self.drafts) as folder:
            draft = folder / name
            with draft.open("wb") as file:
                file.write(encoder.head())
                for part in parts:
                    self._copy_part(part, file)
            ready = encoder.finish(draft)
            # Before the file: what is there has a digest.
            self.digests.write(name, file_digest(ready).encode())
            self.release.take(ready, name)

    def output_digest(self, *, whole: bool) -> str:
        """The digest of all that was assembled, whether or not it has got its name already."""
        digests = {name: self.digests.read(name).decode() for name in self.digests.sizes()}
        return digests[WHOLE] if whole else folder_digest(digests)

    def _is_assembled(self, name: str) -> bool:
        """Whether a file of the output is there, as it was made."""
        if not self.release.holds(name):
            return False
        return self.digests.holds(name) and self.release.digest(name) == self.digests.read(name).decode()

    def check_release(self) -> None:
        """Before publishing is resumed, make damaged files again from their parts."""
        damaged = [name for name in self.release.sizes() if not self._is_assembled(name)]
        if damaged:
            for name in damaged:
                self.release.remove(name)
            self.folder.remove(PUBLISHING)
            raise OutputError(
                "damaged-output",
                "{count:,} files of the finished output were damaged before they got their names: run the same command "
                "with {option.resume} to make them again",
                count=len(damaged),
            )

    def _copy_part(self, part: str, file: BinaryIO) -> None:
        recorded = json.loads(self.done.read(f"{part}.json"))["finished"]["written"]
        digest = hashlib.blake2b(digest_size=16)
        with self._opened(part) as blocks:
            while piece := blocks.read(1 << 20):
                digest.update(piece)
                file.write(piece)
        if digest.hexdigest() != recorded:
            # Without its record the part is rewritten, with the noise that it had.
            self.done.remove(f"{part}.json")
            self.parts.remove(part)
            raise OutputError(
                "damaged-part",
                "a finished part of the data set was damaged in the staging folder: run the same command with "
                "{option.resume} to write it again, with the noise that it had",
            )

    @contextlib.contextmanager
    def _opened(self, part: str) -> Iterator[BinaryIO]:
        if self.parts.path is not None:
            with (self.parts.path / part).open("rb") as file:
                yield file
        else:
            yield io.BytesIO(self.parts.read(part))

    def is_publishing(self) -> bool:
        """Whether everything is finished and has begun to become the output."""
        return self.folder.holds(PUBLISHING)

    def is_left_over(self) -> bool:
        """Whether the folder is the rest of a run that was stopped before its first part, or after its output had got
        its name."""
        if not self.exists():
            return self.folder.exists()
        return self.is_publishing() and not self.release.sizes()

    def publish(self, output: str, *, whole: bool, overwrite: bool) -> None:
        """Move the assembled files to the output; repeating it after a crash continues where it stopped."""
        target = Folder(output)
        if not self.is_publishing():
            if target.exists() and overwrite:
                self._put_away(target)
            self.folder.write(PUBLISHING, b"")
        if whole:
            self.release.give(WHOLE, target)
        else:
            self.release.move_to(target)
        self.discard()

    def _put_away(self, target: Folder) -> None:
        """Move or remove the output that is overwritten. On this machine it is kept until the new output has its
        name."""
        if target.path is not None and self.folder.path is not None:
            target.path.rename(self.folder.path / REPLACED)
        else:
            target.remove_all()
