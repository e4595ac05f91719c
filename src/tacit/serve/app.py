"""The application: routes, and what they share. `create_app(settings)` is all there is to start."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from tacit.errors import place_of
from tacit.serve import catalog, site
from tacit.serve.batching import Lines
from tacit.serve.budget import Accounts
from tacit.serve.errors import STATUS_CODES, ServiceError, error_body, error_schema
from tacit.serve.files import Files
from tacit.serve.gate import Gate
from tacit.serve.jobs import JobStore
from tacit.serve.keys import Keys
from tacit.serve.messages import (
    AuditRequest,
    CalibrateRequest,
    CurveRequest,
    Message,
    RewriteRequest,
    body_of,
    read_message,
    upload_body,
)
from tacit.serve.metrics import Metrics
from tacit.serve.rewriting import Pool
from tacit.serve.runner import Runner
from tacit.serve.settings import Settings, make_private_folder
from tacit.serve.texts import Rewriting, json_response
from tacit.version import __version__

log = logging.getLogger("tacit.serve")


def create_app(settings: Settings) -> FastAPI:
    """The service, ready to be run by an ASGI server."""
    make_private_folder(settings.state)
    keys, metrics, pool = Keys(settings.state), Metrics(), Pool(settings.mechanisms, settings.allowed)
    accounts = Accounts(settings.ledger_place, metrics)
    workers = ThreadPoolExecutor(settings.threads, "tacit-batch")
    aside = ThreadPoolExecutor(1, "tacit-public")
    lines = Lines(accounts, workers, metrics, settings.waiting)
    rewriting = Rewriting(settings, pool, lines, accounts, workers, metrics)
    reports = site.Reports(settings.reports)
    store = JobStore(settings.state / "jobs", settings.keep_hours)
    runner = Runner(store, pool, accounts, keys, metrics, settings.job_workers)
    files = Files(store, runner, pool)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        _quiet_loop(asyncio.get_running_loop())
        await asyncio.to_thread(accounts.works)  # an operator reads at once what is wrong with the ledger
        runner.start()
        yield
        await asyncio.to_thread(runner.stop)
        workers.shutdown(wait=True, cancel_futures=True)
        aside.shutdown(wait=True, cancel_futures=True)
        accounts.close()

    app = FastAPI(
        title="Tacit",
        version=__version__,
        summary="Rewrite text under differential privacy, with the guarantee attached.",
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
        responses={status: _error_response(status) for status in STATUS_CODES if status != 405},
    )
    app.state.runner = runner
    app.add_middleware(Gate, settings=settings, keys=keys, metrics=metrics, tickets=reports.has_ticket,
                       direct={("POST", "/v1/rewrite"): rewriting.answer})  # fmt: skip
    app.add_exception_handler(HTTPException, _http_error)

    async def work_aside(function: Callable[..., dict[str, Any]], request: Request, kind: type[Message]) -> Response:
        """Long computations on public data, one at a time, beside the event loop."""
        asked = await read_message(request, kind)
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(settings.timeout):
                return json_response(await loop.run_in_executor(aside, function, pool, asked))
        except TimeoutError:
            raise ServiceError(503, "this took too long: ask for less, or use the command", "timeout", 5) from None

    @app.post("/v1/rewrite", openapi_extra=body_of(RewriteRequest), tags=["texts"])
    async def rewrite(request: Request) -> Response:
        """Rewrite one text or several."""
        return await rewriting.answer(request)  # usually answered before, by the gate

    @app.get("/v1/mechanisms", tags=["catalog"])
    async def mechanisms() -> Response:
        """What there is."""
        return json_response(catalog.mechanisms(pool))

    @app.post("/v1/calibrate", openapi_extra=body_of(CalibrateRequest), tags=["catalog"])
    async def calibrate(request: Request) -> Response:
        """The epsilon of one unit for a budget of a whole text."""
        return await work_aside(catalog.calibrate, request, CalibrateRequest)

    @app.post("/v1/curve", openapi_extra=body_of(CurveRequest), tags=["catalog"])
    async def curve(request: Request) -> Response:
        """How many words change, over epsilon."""
        return await work_aside(catalog.curve, request, CurveRequest)

    @app.post("/v1/audit/exact", openapi_extra=body_of(AuditRequest), tags=["catalog"])
    async def audit_exact(request: Request) -> Response:
        """Hold the exact law of a word mechanism against its claim."""
        return await work_aside(catalog.audit_exact, request, AuditRequest)

    @app.post("/v1/jobs", status_code=202, openapi_extra=upload_body(), tags=["jobs"])
    async def upload(request: Request) -> Response:
        """Rewrite a file: the job is stored, and worked on when its turn comes."""
        return await files.upload(request)

    @app.get("/v1/jobs", tags=["jobs"])
    async def jobs(request: Request) -> Response:
        """Your jobs, newest first."""
        return files.listed(request)

    @app.get("/v1/jobs/{id}", tags=["jobs"])
    async def job(request: Request, id: str) -> Response:
        """How far a job is."""
        return files.shown(request, id)

    @app.delete("/v1/jobs/{id}", tags=["jobs"])
    async def cancel(request: Request, id: str) -> Response:
        """Cancel a job and delete its files."""
        return await files.canceled(request, id)

    @app.post("/v1/jobs/{id}/resume", status_code=202, tags=["jobs"])
    async def resume(request: Request, id: str) -> Response:
        """Go on with a job that failed for a reason that has passed, such as a full disk."""
        return await files.resumed(request, id)

    @app.get("/v1/jobs/{id}/events", tags=["jobs"])
    async def events(request: Request, id: str) -> Response:
        """Progress as server-sent events."""
        return files.events(request, id)

    @app.get("/v1/jobs/{id}/result", tags=["jobs"])
    async def result(request: Request, id: str, spreadsheet: str = "false") -> Response:
        """The rewritten file; with `spreadsheet=true`, cells that look like formulas get an apostrophe in front."""
        return files.result(request, id, spreadsheet.lower() in ("true", "1", "yes"))

    @app.get("/v1/jobs/{id}/card.{kind}", tags=["jobs"])
    async def card(request: Request, id: str, kind: str) -> Response:
        """The privacy card of the result, as json, md or html."""
        return files.card(request, id, kind)

    @app.get("/v1/ledger", tags=["budget"])
    async def ledger(request: Request) -> Response:
        """What this key has spent, and its latest releases."""
        return json_response(await asyncio.to_thread(accounts.overview, request.scope["caller"].name))

    @app.get("/v1/reports", tags=["reports"])
    async def report_list() -> Response:
        """The reports of the folder that the service was given."""
        return json_response(reports.listed())

    @app.get("/v1/reports/{name}", tags=["reports"])
    async def report(name: str) -> Response:
        """One report, as a page that may load nothing."""
        return reports.page(name)

    @app.get("/healthz", tags=["operation"])
    async def healthz() -> Response:
        """Whether the service can release something: 503 while its ledger or its keys cannot be used."""
        ledger, known = await asyncio.to_thread(accounts.works), keys.works()
        found = {name: "ok" if works else "unavailable" for name, works in (("ledger", ledger), ("keys", known))}
        status = "ok" if ledger and known else "unavailable"
        return json_response({"status": status, "version": __version__, **found}, 200 if status == "ok" else 503)

    @app.get("/metrics", tags=["operation"])
    async def prometheus() -> Response:
        """Counts for Prometheus."""
        return Response(metrics.page(), media_type="text/plain; version=0.0.4; charset=utf-8")

    @app.get("/", include_in_schema=False)
    async def index() -> Response:
        return site.page_file("index.html")

    @app.get("/assets/{name:path}", include_in_schema=False)
    async def assets(name: str) -> Response:
        return site.page_file(name)

    return app


def _error_response(status: int) -> dict[str, Any]:
    return {"description": STATUS_CODES[status], "content": {"application/json": {"schema": error_schema()}}}


async def _http_error(request: Request, error: Exception) -> Response:
    """What the framework itself refuses, in our form; its own messages are kept out."""
    assert isinstance(error, HTTPException)
    messages = {404: "there is nothing at this address: /openapi.json lists what there is",
                405: "this address does not take this method: see /openapi.json"}  # fmt: skip
    code = STATUS_CODES.get(error.status_code, "bad_request")
    message = messages.get(error.status_code, "the request could not be read: see /openapi.json for its form")
    return Response(
        error_body(code, message), error.status_code, headers=dict(error.headers or {}), media_type="application/json"
    )


def _quiet_loop(loop: asyncio.AbstractEventLoop) -> None:
    """The same for errors of tasks and callbacks."""

    def tell(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        log.error("unexpected %s", place_of(error) if isinstance(error, BaseException) else "error in the event loop")

    loop.set_exception_handler(tell)
