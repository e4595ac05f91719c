"""Jobs on files, kept on disk: a job that was accepted survives a restart, a crash and kill -9.

Each job has a folder under `jobs/` in the state folder, named by 128 random bits:

    job.json                       what is asked for and how far it is; replaced as a whole at every change
    input.csv                      the upload; deleted as soon as the job is done
    output.csv, output.csv.card.*  the result and its card
    output.csv.partial, .resume    a run that is not finished (see `tacit.engines.local`)
    sketch.tacit, report.html, …   of a corpus in place of the rows (see `tacit.serve.synthesis`)

The name that a client gives its file is kept for showing and is never part of a path. Files are deleted when the job is
deleted or canceled, and `keep_hours` after it was made; what stays until the same time has passed again is a record
without a name, so that a client learns that its job has expired. A folder whose record cannot be read is left as it is,
results included, and the log says so at every start; only an upload that never became a job is cleared away.

What happens to a job is known at once and written down as soon as the disk takes it: on a full disk a job that fails is
failed, not running for ever.
"""

from __future__ import annotations

import contextlib
import json
import logging
import re
import secrets
import shutil
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final, TypedDict, Unpack

from pydantic import ConfigDict

from tacit.errors import BadInputError
from tacit.serve.answers import JobFacts, JsonObject
from tacit.serve.errors import RequestError, ServiceError
from tacit.serve.settings import make_private_folder, write_private
from tacit.text.files import format_named

OPEN_STATES: Final = ("queued", "running")
STATES: Final = (*OPEN_STATES, "done", "failed", "canceled", "expired")
MOST_OPEN_JOBS: Final = 20
REWRITE: Final = "rewrite"
SYNTHESIZE: Final = "synthesize"
CORPUS_FORMAT: Final = "csv"
"""The format of a corpus, whatever the upload was: it has a text and a label."""
_ID = re.compile(r"[0-9a-f]{32}")
log = logging.getLogger("tacit.serve")


class Job(JobFacts):
    """A job as the service keeps it. Fields of the record that this version does not know are kept as they are.

    owner       the name of the key, or None on a service without keys
    attempts    how often its worker was started without coming to an end since `mark`
    mark        how much of the output was written when its worker was last started
    """

    model_config = ConfigDict(frozen=True, extra="allow")

    owner: str | None
    attempts: int
    mark: int

    def shown(self) -> JobFacts:
        """The job as its owner sees it."""
        return JobFacts.model_validate(self.model_dump(include=set(JobFacts.model_fields)))

    def record(self) -> bytes:
        return self.model_dump_json().encode()

    def changed(self, **changes: Unpack[Changes]) -> Job:
        return self.model_copy(update=dict(changes))

    @property
    def is_open(self) -> bool:
        return self.state in OPEN_STATES


class Changes(TypedDict, total=False):
    """The fields of a job that change while it is worked on."""

    state: str
    rows: int
    units: int
    bytes_done: int
    error: str | None
    resumable: bool
    attempts: int
    mark: int


NEW: Final[Changes] = {
    "state": "queued",
    "rows": 0,
    "units": 0,
    "bytes_done": 0,
    "error": None,
    "resumable": False,
    "attempts": 0,
    "mark": 0,
}
"""How a job begins, and what a record of an earlier version does not say."""


@dataclass(frozen=True)
class JobFolder:
    """Where the files of a job lie; those of a corpus are there for a job of that kind."""

    path: Path
    format: str
    kind: str = REWRITE

    @property
    def output_format(self) -> str:
        return CORPUS_FORMAT if self.kind == SYNTHESIZE else self.format

    @property
    def input(self) -> Path:
        return self.path / f"input.{self.format}"

    @property
    def output(self) -> Path:
        return self.path / f"output.{self.output_format}"

    def card(self, kind: str) -> Path:
        return self.path / f"output.{self.output_format}.card.{kind}"

    @property
    def attribution(self) -> Path:
        return self.path / f"output.{self.output_format}.ATTRIBUTION.txt"

    @property
    def sketch(self) -> Path:
        return self.path / "sketch.tacit"

    @property
    def report(self) -> Path:
        return self.path / "report.html"

    @property
    def view(self) -> Path:
        """The file with the parts of a corpus that the page shows."""
        return self.path / "view.json"


@dataclass
class JobStore:
    """All jobs of a state folder. Its methods may be called from any thread."""

    root: Path
    keep_hours: float
    _jobs: dict[str, Job] = field(default_factory=dict)
    _lock: threading.RLock = field(default_factory=threading.RLock)
    _uploading: Counter[str | None] = field(default_factory=Counter)
    _unsaved: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        make_private_folder(self.root)
        for folder in sorted(self.root.iterdir()):
            if not _ID.fullmatch(folder.name) or not folder.is_dir():
                continue  # nothing of ours
            job = _read(folder)
            if job is not None:
                self._jobs[job.id] = job
            elif _is_mere_upload(folder):
                shutil.rmtree(folder, ignore_errors=True)
            else:
                log.error(
                    "the record of a job in '%s' cannot be read: its files are left as they are, restore job.json or "
                    "delete the folder",
                    folder,
                )

    # Records --------------------------------------------------------------------------------------------------

    def get(self, id: str, owner: str | None) -> Job:
        """A job of this owner; the jobs of others do not exist for him."""
        job = self.current(id)
        if job is None or job.owner != owner:
            raise ServiceError(404, RequestError("no-such-job", "there is no such job: GET /v1/jobs lists yours"))
        return job

    def current(self, id: str) -> Job | None:
        """A job as it is now: one that is over its time is so from that moment on, whenever it is swept."""
        with self._lock:
            job = self._jobs.get(id)
            return None if job is None else self._in_time(job, time.time())

    def of(self, owner: str | None) -> list[Job]:
        """The jobs of one owner, newest first."""
        with self._lock:
            own = [job for job in map(self.current, list(self._jobs)) if job is not None and job.owner == owner]
        return sorted(own, key=lambda job: (job.created, job.id), reverse=True)

    def open_jobs(self) -> list[Job]:
        """Jobs to work on, oldest first."""
        with self._lock:
            return sorted((job for job in self._jobs.values() if job.is_open), key=lambda job: (job.created, job.id))

    def counts(self) -> dict[str, int]:
        with self._lock:
            jobs_by_state = Counter(job.state for job in self._jobs.values())
        return {state: jobs_by_state.get(state, 0) for state in STATES}

    @contextlib.contextmanager
    def room(self, owner: str | None) -> Iterator[None]:
        """A place for one more job of this owner, taken while its upload comes in: uploads at the same time cannot all
        take the last one."""
        with self._lock:
            self._check_room(owner)
            self._uploading[owner] += 1
        try:
            yield
        finally:
            with self._lock:
                self._uploading[owner] -= 1

    def _check_room(self, owner: str | None) -> None:
        if sum(job.is_open for job in self.of(owner)) + self._uploading[owner] >= MOST_OPEN_JOBS:
            raise ServiceError(
                429,
                RequestError(
                    "too-many-open-jobs",
                    "{jobs} of your jobs are not finished: wait for one of them",
                    jobs=MOST_OPEN_JOBS,
                ),
                retry_after=60,
            )

    # Changes --------------------------------------------------------------------------------------------------

    def new_folder(self) -> Path:
        return make_private_folder(self.root / secrets.token_hex(16))

    def add(
        self, folder: Path, owner: str | None, name: str, format: str, settings: JsonObject, kind: str = REWRITE
    ) -> Job:
        """A job whose upload lies in its folder."""
        now = datetime.now(UTC)
        job = Job(
            id=folder.name,
            kind=kind,
            owner=owner,
            name=shown_name(name),
            format=format,
            settings=settings,
            **NEW,
            total_bytes=JobFolder(folder, format).input.stat().st_size,
            created=now.isoformat(timespec="milliseconds"),
            expires=(now + timedelta(hours=self.keep_hours)).isoformat(timespec="seconds"),
        )
        write_private(folder / "job.json", job.record())  # what cannot be written down was never accepted
        with self._lock:
            self._jobs[job.id] = job
        return job

    def reopen(self, id: str, owner: str | None) -> Job:
        """A failed job in its line again, with all its attempts."""
        with self._lock:
            job = self.get(id, owner)
            if job.state != "failed" or not job.resumable:
                raise ServiceError(
                    409,
                    RequestError(
                        "job-cannot-go-on", "only a job that failed and is resumable can go on: see its 'state'"
                    ),
                )
            self._check_room(owner)
            return self._save(job.changed(state="queued", error=None, resumable=False, attempts=0))

    def update(self, id: str, *, durable: bool = True, **changes: Unpack[Changes]) -> Job | None:
        """Change a job, unless it was deleted or canceled meanwhile. Mere progress need not reach the disk."""
        with self._lock:
            job = self._jobs.get(id)
            if job is None or job.state in ("canceled", "expired"):
                return None
            job = job.changed(**changes)
            if durable:
                return self._save(job)
            self._jobs[id] = job
            return job

    def end(self, id: str, state: str, error: str | None = None) -> None:
        """Delete the files of a job and keep its record, as canceled, expired or failed."""
        with self._lock:
            job = self._jobs[id]
            for path in self.folder(id).iterdir():  # first, because on a full disk the record cannot be written
                if path.name != "job.json":
                    path.unlink(missing_ok=True)
            ended = job.changed(state=state, error=error, resumable=False)
            self._save(ended.model_copy(update={"name": ""}) if state == "expired" else ended)

    def forget(self, id: str) -> None:
        with self._lock:
            self._jobs.pop(id, None)
            shutil.rmtree(self.root / id, ignore_errors=True)

    def sweep(self, now: float | None = None) -> None:
        """Delete what is over its time."""
        moment = time.time() if now is None else now
        for job in list(self._each()):
            with self._lock:
                self._in_time(job, moment)

    def _in_time(self, job: Job, moment: float) -> Job | None:
        """The job, expired or forgotten if its time is over."""
        end = datetime.fromisoformat(job.expires).timestamp()
        if moment > end + 3600 * self.keep_hours:
            self.forget(job.id)
        elif moment > end and job.state != "expired":
            self.end(job.id, "expired")
        return self._jobs.get(job.id)

    def _each(self) -> Iterator[Job]:
        with self._lock:
            yield from list(self._jobs.values())

    def _save(self, job: Job) -> Job:
        """The job as it is from now on; written down now, or by `flush` as soon as the disk takes it."""
        with self._lock:
            self._jobs[job.id] = job
            try:
                write_private(self.folder(job.id) / "job.json", job.record())
            except OSError as error:
                if job.id not in self._unsaved:
                    log.error("the record of a job cannot be written (%s): trying again", error.strerror)
                self._unsaved.add(job.id)
                return job
            self._unsaved.discard(job.id)
            if job.state == "done":  # only now: a job that is not known to be done would be worked on again
                self.files(job).input.unlink(missing_ok=True)
            return job

    def flush(self) -> None:
        """Write down what could not be written before."""
        with self._lock:
            for id in sorted(self._unsaved):
                if id in self._jobs:
                    self._save(self._jobs[id])
                else:
                    self._unsaved.discard(id)

    # Files ----------------------------------------------------------------------------------------------------

    def folder(self, id: str) -> Path:
        assert _ID.fullmatch(id)
        return self.root / id

    def files(self, job: Job) -> JobFolder:
        return JobFolder(self.folder(job.id), job.format, job.kind)


def _read(folder: Path) -> Job | None:
    """The job of a folder; None if its record is not there or cannot be understood."""
    try:
        record = json.loads((folder / "job.json").read_bytes())
        job = Job.model_validate({"total_bytes": 0, "kind": REWRITE, **NEW, **record})
        datetime.fromisoformat(job.expires).timestamp()
        usable = job.id == folder.name and job.state in STATES and job.kind in (REWRITE, SYNTHESIZE)
        return job if usable and str(format_named(job.format)) == job.format else None
    except (OSError, ValueError, TypeError, BadInputError):
        return None


def _is_mere_upload(folder: Path) -> bool:
    """Whether there is nothing but an upload in a folder, which never became a job."""
    return all(path.name.startswith("input.") or path.name.endswith(".draft") for path in folder.iterdir())


def shown_name(name: str) -> str:
    """A file name fit to be shown: its last part, printable, not too long."""
    last = re.split(r"[/\\]", name)[-1]
    return "".join(character for character in last if character.isprintable()).strip()[:100] or "upload"
