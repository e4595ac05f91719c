"""`/v1/jobs`: upload a file, watch its progress, fetch the result and its card, cancel."""

from __future__ import annotations

import asyncio
import csv
import io
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Final, ParamSpec, TypeVar

from starlette.datastructures import UploadFile
from starlette.requests import Request
from starlette.responses import FileResponse, Response, StreamingResponse

from tacit.errors import BadInputError
from tacit.serve.answers import Jobs
from tacit.serve.errors import RequestError, ServiceError, disk_full
from tacit.serve.gate import REPORT_POLICY
from tacit.serve.jobs import REWRITE, SYNTHESIZE, Job, JobFolder, JobStore
from tacit.serve.keys import Keys
from tacit.serve.messages import JobSettings, SynthesisSettings, beside, parse_message
from tacit.serve.pool import Pool
from tacit.serve.runner import check_columns, check_job, check_labels
from tacit.serve.schedule import Schedule
from tacit.serve.texts import json_response
from tacit.text.files import SUPPORTED, allow_long_cells, format_of, other_kind

CARD_TYPES: Final = {"json": "application/json", "md": "text/markdown; charset=utf-8", "html": "text/html"}
POLL_SECONDS: Final = 0.2
HEARTBEAT_SECONDS: Final = 15.0
FORMULA_STARTS: Final = ("=", "+", "-", "@", "\t", "\r")
P = ParamSpec("P")
R = TypeVar("R")


class JobRoutes:
    """The routes of jobs. Disk work is done beside the event loop."""

    def __init__(self, store: JobStore, schedule: Schedule, pool: Pool, keys: Keys) -> None:
        self._store = store
        self._schedule = schedule
        self._pool = pool
        self._keys = keys

    async def upload(self, request: Request) -> Response:
        """A job that rewrites a file."""
        return await self._accepted(request, JobSettings)

    async def upload_for_corpus(self, request: Request) -> Response:
        """A job that releases a corpus in place of a file."""
        return await self._accepted(request, SynthesisSettings)

    async def _accepted(self, request: Request, kind: type[JobSettings] | type[SynthesisSettings]) -> Response:
        owner = request.scope["caller"].name
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "multipart/form-data":
            raise ServiceError(
                415,
                RequestError(
                    "content-type-is-no-form",
                    "send a form with 'file' and 'settings' (Content-Type: multipart/form-data)",
                ),
            )
        with self._store.room(owner):
            job = await self._received(request, owner, kind)
        self._schedule.put(job)
        return json_response(job.shown(), 202)

    async def _received(
        self, request: Request, owner: str | None, kind: type[JobSettings] | type[SynthesisSettings]
    ) -> Job:
        declared = request.headers.get("content-length", "")
        if declared.isdecimal() and shutil.disk_usage(tempfile.gettempdir()).free < int(declared):
            raise disk_full()  # an upload passes through the folder for temporary files
        async with request.form(max_files=1, max_fields=1) as form:
            file, settings = form.get("file"), form.get("settings")
            if not isinstance(file, UploadFile) or not isinstance(settings, str):
                raise ServiceError(
                    422,
                    RequestError(
                        "form-incomplete", "the form needs a file called 'file' and a field 'settings' with JSON"
                    ),
                )
            data = settings.encode("utf-8", "surrogatepass")
            settings_of_job = await beside(len(data), lambda: parse_message(data, kind))
            if isinstance(settings_of_job, JobSettings):
                check_job(self._pool, settings_of_job)
            else:
                check_labels(settings_of_job)
            format = upload_format(file.filename or "")
            return await aside(self._stored, file, owner, format, settings_of_job)

    def _stored(
        self, file: UploadFile, owner: str | None, format: str, settings: JobSettings | SynthesisSettings
    ) -> Job:
        folder = self._store.new_folder()
        try:
            size = file.size or 0
            if shutil.disk_usage(folder).free < 2 * size:
                raise disk_full()
            descriptor = os.open(folder / f"input.{format}", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "wb") as target:
                shutil.copyfileobj(file.file, target)
                target.flush()
                os.fsync(target.fileno())
            check_columns(folder / f"input.{format}", settings)
            kind = REWRITE if isinstance(settings, JobSettings) else SYNTHESIZE
            return self._store.add(folder, owner, file.filename or "", format, settings.model_dump(), kind)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise

    def listed(self, request: Request) -> Response:
        return json_response(Jobs(jobs=[job.shown() for job in self._store.of(request.scope["caller"].name)]))

    def shown(self, request: Request, id: str) -> Response:
        return json_response(self._own(request, id).shown())

    async def canceled(self, request: Request, id: str) -> Response:
        """Stop the job if it is not finished, and delete its files."""
        job = self._own(request, id)
        if job.is_open:
            await aside(self._store.end, id, "canceled")
        else:
            await aside(self._store.forget, id)
        return json_response(job.changed(state="canceled" if job.is_open else "deleted").shown())

    async def resumed(self, request: Request, id: str) -> Response:
        """Go on with a failed job, with the noise it had."""
        again = await aside(self._store.reopen, id, request.scope["caller"].name)
        self._schedule.put(again)
        return json_response(again.shown(), 202)

    def result(self, request: Request, id: str, spreadsheet: bool) -> Response:
        job = self._finished(request, id)
        files = self._store.files(job)
        path, format = files.output, files.output_format
        name = f"{'corpus' if job.kind == SYNTHESIZE else 'rewritten'}.{format}"
        if not spreadsheet:
            return FileResponse(path, media_type="application/octet-stream", filename=name)
        if format not in ("csv", "tsv"):
            raise ServiceError(
                422, RequestError("not-for-spreadsheets", "'spreadsheet' is for csv and tsv results: leave it out")
            )
        headers = {"content-disposition": f'attachment; filename="{name}"'}
        if request.method == "HEAD":
            return Response(media_type="text/csv", headers=headers)
        return StreamingResponse(without_formulas(path, format), media_type="text/csv", headers=headers)

    def card(self, request: Request, id: str, kind: str) -> Response:
        if kind not in CARD_TYPES:
            raise ServiceError(404, RequestError("no-such-card", "a card is there as card.json, card.md and card.html"))
        path = self._store.files(self._finished(request, id)).card(kind)
        headers = {"content-security-policy": REPORT_POLICY} if kind == "html" else {}
        return FileResponse(path, media_type=CARD_TYPES[kind], headers=headers)

    def sketch(self, request: Request, id: str) -> Response:
        path = self._of_corpus(request, id).sketch
        return FileResponse(path, media_type="application/octet-stream", filename="sketch.tacit")

    def attribution(self, request: Request, id: str) -> Response:
        path = self._of_corpus(request, id).attribution
        return FileResponse(path, media_type="text/plain; charset=utf-8", filename="ATTRIBUTION.txt")

    def report(self, request: Request, id: str) -> Response:
        path = self._of_corpus(request, id).report
        return FileResponse(path, media_type="text/html", headers={"content-security-policy": REPORT_POLICY})

    def view(self, request: Request, id: str) -> Response:
        return Response(self._of_corpus(request, id).view.read_bytes(), media_type="application/json")

    def _of_corpus(self, request: Request, id: str) -> JobFolder:
        """The files of a job that has released a corpus."""
        job = self._finished(request, id)
        if job.kind != SYNTHESIZE:
            raise ServiceError(
                404,
                RequestError(
                    "job-is-no-corpus", "this job has rewritten a file: only one that has released a corpus has this"
                ),
            )
        return self._store.files(job)

    def events(self, request: Request, id: str) -> Response:
        """Server-sent events: progress whenever something changed, and how it ended."""
        self._own(request, id)
        if request.method == "HEAD":
            return Response(media_type="text/event-stream")
        return StreamingResponse(self._events_of(id), media_type="text/event-stream")

    async def _events_of(self, id: str) -> AsyncIterator[bytes]:
        before: Job | None = None
        quiet = 0.0
        while True:
            job = self._store.current(id)
            if job is None:
                yield b"event: canceled\ndata: {}\n\n"
                return
            if not job.is_open:
                yield event(job.state, job)
                return
            if job.owner is not None and not self._keys.is_active(job.owner):
                return
            if job != before:
                yield event("progress", job)
                before, quiet = job, 0.0
            elif quiet >= HEARTBEAT_SECONDS:
                yield b": still there\n\n"
                quiet = 0.0
            await asyncio.sleep(POLL_SECONDS)
            quiet += POLL_SECONDS

    def _own(self, request: Request, id: str) -> Job:
        return self._store.get(id, request.scope["caller"].name)

    def _finished(self, request: Request, id: str) -> Job:
        job = self._own(request, id)
        if job.state != "done":
            raise ServiceError(
                409,
                RequestError(
                    "job-not-done",
                    "the state of this job is '{state}': only one that is done has a result",
                    state=job.state,
                ),
            )
        return job


async def aside(function: Callable[P, R], *arguments: P.args, **options: P.kwargs) -> R:
    """Run what may wait for the disk in a thread."""
    return await asyncio.to_thread(function, *arguments, **options)


def upload_format(name: str) -> str:
    """The format that the name of an upload tells; nothing else of the name is used."""
    own_name = Path(name.replace("\\", "/")).name or "upload"
    if (what := other_kind(own_name)) is not None:
        raise ServiceError(
            422,
            RequestError(
                "format-not-read",
                "this file is {format}, a format that is not read here: save the texts as {supported}",
                format=what,
                supported=SUPPORTED,
            ),
        )
    try:
        return str(format_of(own_name))
    except BadInputError:
        raise ServiceError(
            422,
            RequestError(
                "format-not-named",
                "the name of the file must tell its format: .txt, .csv, .tsv, .jsonl or .parquet, or with .gz",
            ),
        ) from None


def event(kind: str, job: Job) -> bytes:
    return f"event: {kind}\ndata: {job.shown().model_dump_json()}\n\n".encode()


def without_formulas(path: Path, format: str) -> Iterator[bytes]:
    """The rows of a result for a spreadsheet program: a cell that it would take for a formula gets an apostrophe in
    front. This changes texts, so it is only done when it is asked for."""
    allow_long_cells()  # after a restart no table has been read yet
    delimiter = "\t" if format == "tsv" else ","
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.reader(file, delimiter=delimiter):
            line = io.StringIO()
            cells = [f"'{cell}" if cell.startswith(FORMULA_STARTS) else cell for cell in row]
            csv.writer(line, delimiter=delimiter, lineterminator="\n").writerow(cells)
            yield line.getvalue().encode("utf-8")
