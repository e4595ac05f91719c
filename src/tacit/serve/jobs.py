"""Jobs on files, kept on disk: a job that was accepted survives a restart, a crash and kill -9.

Each job has a folder under `jobs/` in the state folder, named by 128 random bits:

    job.json                       what is asked for and how far it is; replaced as a whole at every change
    input.csv                      the upload; deleted as soon as the job is done
    output.csv, output.csv.card.*  the result and its card
    output.csv.partial, .resume    a run that is not finished (see `tacit.engines.local`)

The name that a client gives its file is kept for showing and is never part of a path. Files are deleted when the job is
deleted or canceled, and `keep_hours` after it was made; what stays until the same time has passed again is a record
without a name, so that a client learns that its job has expired.
"""

from __future__ import annotations

import json
import re
import secrets
import shutil
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from tacit.serve.errors import ServiceError
from tacit.serve.settings import make_private_folder, write_private

OPEN_STATES: Final = ("queued", "running")
STATES: Final = (*OPEN_STATES, "done", "failed", "canceled", "expired")
MOST_OPEN_JOBS: Final = 20
_ID = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True)
class Job:
    """
    owner       the name of the key, or None on a service without keys
    name        what the client calls its file
    format      format of the upload and of the result, such as csv or jsonl.gz
    error       why it failed, in one sentence
    resumable   a failed job that can go on with the same noise
    """

    id: str
    owner: str | None
    name: str
    format: str
    settings: dict[str, Any]
    state: str = "queued"
    rows: int = 0
    units: int = 0
    bytes_done: int = 0
    total_bytes: int = 0
    created: str = ""
    expires: str = ""
    error: str | None = None
    resumable: bool = False

    def shown(self) -> dict[str, Any]:
        """What its owner sees."""
        return {name: value for name, value in asdict(self).items() if name not in ("owner",)}

    @property
    def is_open(self) -> bool:
        return self.state in OPEN_STATES


@dataclass
class JobStore:
    """All jobs of a state folder. Its methods may be called from any thread."""

    root: Path
    keep_hours: float
    _jobs: dict[str, Job] = field(default_factory=dict)
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def __post_init__(self) -> None:
        make_private_folder(self.root)
        for folder in sorted(self.root.iterdir()):
            job = _read(folder)
            if job is not None:
                self._jobs[job.id] = job
            elif folder.is_dir():
                shutil.rmtree(folder, ignore_errors=True)  # an upload that never became a job

    # Records --------------------------------------------------------------------------------------------------

    def get(self, id: str, owner: str | None) -> Job:
        """A job of this owner; the jobs of others do not exist for him."""
        job = self.current(id)
        if job is None or job.owner != owner:
            raise ServiceError(404, "there is no such job: GET /v1/jobs lists yours")
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
            found = Counter(job.state for job in self._jobs.values())
        return {state: found.get(state, 0) for state in STATES}

    def check_room(self, owner: str | None) -> None:
        if sum(job.is_open for job in self.of(owner)) >= MOST_OPEN_JOBS:
            raise ServiceError(
                429, f"{MOST_OPEN_JOBS} of your jobs are not finished: wait for one of them", retry_after=60
            )

    # Changes --------------------------------------------------------------------------------------------------

    def new_folder(self) -> Path:
        return make_private_folder(self.root / secrets.token_hex(16))

    def add(self, folder: Path, owner: str | None, name: str, format: str, settings: dict[str, Any]) -> Job:
        """A job whose upload lies in its folder."""
        now = datetime.now(UTC)
        job = Job(
            id=folder.name,
            owner=owner,
            name=shown_name(name),
            format=format,
            settings=settings,
            total_bytes=(folder / f"input.{format}").stat().st_size,
            created=now.isoformat(timespec="milliseconds"),
            expires=(now + timedelta(hours=self.keep_hours)).isoformat(timespec="seconds"),
        )
        return self._save(job)

    def update(self, id: str, *, durable: bool = True, **changes: Any) -> Job | None:
        """Change a job, unless it was deleted or canceled meanwhile. Mere progress need not reach the disk."""
        with self._lock:
            job = self._jobs.get(id)
            if job is None or job.state in ("canceled", "expired"):
                return None
            job = replace(job, **changes)
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
            job = replace(job, state=state, error=error, resumable=False, name="" if state == "expired" else job.name)
            self._jobs[id] = job
            self._save(job)

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
        with self._lock:
            write_private(self.folder(job.id) / "job.json", json.dumps(asdict(job)).encode())
            self._jobs[job.id] = job
            return job

    # Files ----------------------------------------------------------------------------------------------------

    def folder(self, id: str) -> Path:
        assert _ID.fullmatch(id)
        return self.root / id

    def input(self, job: Job) -> Path:
        return self.folder(job.id) / f"input.{job.format}"

    def output(self, job: Job) -> Path:
        return self.folder(job.id) / f"output.{job.format}"

    def card(self, job: Job, kind: str) -> Path:
        return self.folder(job.id) / f"output.{job.format}.card.{kind}"


def _read(folder: Path) -> Job | None:
    try:
        return Job(**json.loads((folder / "job.json").read_bytes())) if _ID.fullmatch(folder.name) else None
    except (OSError, ValueError, TypeError):
        return None


def shown_name(name: str) -> str:
    """A file name fit to be shown: its last part, printable, not too long."""
    last = re.split(r"[/\\]", name)[-1]
    return "".join(character for character in last if character.isprintable()).strip()[:100] or "upload"
