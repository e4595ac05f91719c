"""The application: routes, and what they share. `create_app(settings)` is all there is to start."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import cache, partial

from fastapi import FastAPI
from fastapi.routing import APIRoute
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tacit.engines.job import RewriteProgress
from tacit.errors import place_of
from tacit.serve import catalog, site
from tacit.serve.answers import (
    Answer,
    AuditReport,
    Calibrated,
    CorpusView,
    Curve,
    Expected,
    Health,
    JobFacts,
    Jobs,
    Mechanisms,
    Overview,
    RewriteAnswer,
)
from tacit.serve.answers import Reports as ReportList
from tacit.serve.aside import Aside, ended
from tacit.serve.batching import OrderQueues
from tacit.serve.budget import Accounts
from tacit.serve.description import BYTES, TEXT, WITH_BODY, answers, body_of, described, upload_body
from tacit.serve.errors import RequestError, ServiceError, as_service_error
from tacit.serve.expecting import expected_of
from tacit.serve.files import JobRoutes
from tacit.serve.gate import Gate, Receive, Scope, Send
from tacit.serve.guiding import CommandWriter, add_guide, advice_of
from tacit.serve.jobs import JobStore
from tacit.serve.keys import Keys
from tacit.serve.lock import lock_state
from tacit.serve.messages import (
    AuditRequest,
    CalibrateRequest,
    CurveRequest,
    ExpectRequest,
    GuideRequest,
    JobSettings,
    M,
    RewriteRequest,
    SynthesisSettings,
    read_message,
)
from tacit.serve.metrics import Metrics
from tacit.serve.pool import Pool
from tacit.serve.runner import JobOutcome, JobTask, JobWork
from tacit.serve.schedule import Schedule, Work
from tacit.serve.settings import ServiceSettings, make_private_folder
from tacit.serve.texts import RewriteService, json_response
from tacit.serve.workplace import JobProcesses
from tacit.version import __version__

log = logging.getLogger("tacit.serve")


METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"
SHUTDOWN_SECONDS = 5.0
"""How long a shutdown waits for a computation. Its budget was written down before it began, and nothing of it is
released, so it may be cut off anywhere."""
MOST_ASIDE = 32
"""Questions about public data that may wait: the page asks about all mechanisms at once when it compares them."""


class Service(FastAPI):
    """Every request meets the gate first. Behind it the framework is entered below its telemetry, which would write
    messages of errors into traces."""

    gate: Gate

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.gate(scope, receive, send)

    async def framework(self, scope: Scope, receive: Receive, send: Send) -> None:
        await Starlette.__call__(self, scope, receive, send)


def create_app(
    settings: ServiceSettings, *, jobs_apart: bool = True, write_command: CommandWriter | None = None
) -> Service:
    """The service, ready to be run by an ASGI server. It has its state folder for itself until it is shut down.

    write_command   how the guide writes a job; without it, as a call in Python

    Jobs are worked on in processes of their own; with `jobs_apart=False` in threads of this one, which tests look into.
    """
    make_private_folder(settings.state)
    lock = lock_state(settings.state)
    keys, metrics, pool = Keys(settings.state), Metrics(), Pool(settings.mechanisms, settings.allowed)
    accounts = Accounts(settings.ledger_place, metrics, keys)
    workers = ThreadPoolExecutor(settings.threads, "tacit-batch")
    aside = Aside(MOST_ASIDE)
    lines = OrderQueues(accounts, workers, metrics, settings.waiting)
    rewriting = RewriteService(settings, pool, lines, accounts, workers, metrics)
    reports = site.ReportRoutes(settings.reports)
    store = JobStore(settings.state / "jobs", settings.keep_hours)

    def work_here(task: JobTask, tell: Callable[[RewriteProgress], None], check: Callable[[], None]) -> JobOutcome:
        return JobWork(task, pool, accounts, tell, check).outcome()

    work: Work = JobProcesses(settings) if jobs_apart else work_here
    schedule = Schedule(store, keys, metrics, work, settings)
    files = JobRoutes(store, schedule, pool, keys)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        _quiet_loop(asyncio.get_running_loop())
        await asyncio.to_thread(accounts.works)  # an operator reads at once what is wrong with the ledger
        schedule.start()
        yield
        await asyncio.to_thread(schedule.stop)
        await asyncio.to_thread(ended, (workers, aside.executor), SHUTDOWN_SECONDS)
        accounts.close()
        lock.release()

    app = Service(
        title="Tacit",
        version=__version__,
        summary="Rewrite text under differential privacy, with the guarantee attached.",
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
        default_response_class=Response,
    )
    app.state.schedule = schedule
    app.gate = Gate(app.framework, settings=settings, keys=keys, metrics=metrics, tickets=reports.has_ticket,
                    direct={("POST", "/v1/rewrite"): rewriting.answer})  # fmt: skip
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(Exception, _any_error)

    async def work_aside(function: Callable[[Pool, M], Answer], request: Request, kind: type[M]) -> Response:
        """Long computations on public data, one at a time, beside the event loop."""
        aside.check_room(request.scope["caller"].name)
        message = await read_message(request, kind)
        try:
            async with asyncio.timeout(settings.timeout):
                return json_response(await aside.run(request.scope["caller"].name, partial(function, pool, message)))
        except TimeoutError:
            raise ServiceError(
                503, RequestError("took-too-long", "this took too long: ask for less, or use the command"), "timeout", 5
            ) from None

    @app.post(
        "/v1/rewrite",
        openapi_extra=body_of(RewriteRequest),
        responses=answers(RewriteAnswer, 404, *WITH_BODY, media={"application/x-ndjson": TEXT}),
        tags=["texts"],
    )
    async def rewrite(request: Request) -> Response:
        """Rewrite one text or several."""
        return await rewriting.answer(request)

    @app.get("/v1/mechanisms", responses=answers(Mechanisms), tags=["catalog"])
    async def mechanisms() -> Response:
        """All mechanisms that this service offers, with their parameters and ranges."""
        return json_response(catalog.mechanisms(pool))

    @app.post(
        "/v1/calibrate",
        openapi_extra=body_of(CalibrateRequest),
        responses=answers(Calibrated, 404, *WITH_BODY),
        tags=["catalog"],
    )
    async def calibrate(request: Request) -> Response:
        """The epsilon of one unit for a budget of a whole text."""
        return await work_aside(catalog.calibrate, request, CalibrateRequest)

    @app.post(
        "/v1/curve",
        openapi_extra=body_of(CurveRequest),
        responses=answers(Curve, 404, *WITH_BODY),
        tags=["catalog"],
    )
    async def curve(request: Request) -> Response:
        """How many words change, over epsilon."""
        return await work_aside(catalog.curve, request, CurveRequest)

    @app.post(
        "/v1/audit/exact",
        openapi_extra=body_of(AuditRequest),
        responses=answers(AuditReport, 404, *WITH_BODY),
        tags=["catalog"],
    )
    async def audit_exact(request: Request) -> Response:
        """Hold the exact law of a word mechanism against its claim."""
        return await work_aside(catalog.audit_exact, request, AuditRequest)

    @app.post(
        "/v1/jobs",
        status_code=202,
        openapi_extra=upload_body(JobSettings),
        responses=answers(JobFacts, 404, 507, *WITH_BODY, ok=202),
        tags=["jobs"],
    )
    async def upload(request: Request) -> Response:
        """Rewrite a file: the job is stored, and worked on when its turn comes."""
        return await files.upload(request)

    @app.post(
        "/v1/expect", openapi_extra=body_of(ExpectRequest), responses=answers(Expected, *WITH_BODY), tags=["catalog"]
    )
    async def expect(request: Request) -> Response:
        """The promise of a corpus in place of so many rows; nothing private is asked for."""
        return await work_aside(expected_of, request, ExpectRequest)

    add_guide(app, lambda request: work_aside(partial(advice_of, write_command), request, GuideRequest))

    @app.post(
        "/v1/jobs/synthesize",
        status_code=202,
        openapi_extra=upload_body(SynthesisSettings),
        responses=answers(JobFacts, 404, 507, *WITH_BODY, ok=202),
        tags=["jobs"],
    )
    async def upload_for_corpus(request: Request) -> Response:
        """Release a corpus in place of the rows of a file: the job is stored, and worked on when its turn comes."""
        return await files.upload_for_corpus(request)

    @app.get("/v1/jobs", responses=answers(Jobs), tags=["jobs"])
    async def jobs(request: Request) -> Response:
        """Your jobs, newest first."""
        return files.listed(request)

    @app.get("/v1/jobs/{id}", responses=answers(JobFacts, 404), tags=["jobs"])
    async def job(request: Request, id: str) -> Response:
        """How far a job is."""
        return files.shown(request, id)

    @app.delete("/v1/jobs/{id}", responses=answers(JobFacts, 404, 507), tags=["jobs"])
    async def cancel(request: Request, id: str) -> Response:
        """Cancel a job and delete its files."""
        return await files.canceled(request, id)

    @app.post(
        "/v1/jobs/{id}/resume",
        status_code=202,
        responses=answers(JobFacts, 404, 409, 507, ok=202),
        tags=["jobs"],
    )
    async def resume(request: Request, id: str) -> Response:
        """Go on with a job that failed for a reason that has passed, such as a full disk."""
        return await files.resumed(request, id)

    @app.get("/v1/jobs/{id}/events", responses=answers(None, 404, media={"text/event-stream": TEXT}), tags=["jobs"])
    async def events(request: Request, id: str) -> Response:
        """Progress as server-sent events."""
        return files.events(request, id)

    @app.get(
        "/v1/jobs/{id}/result",
        responses=answers(None, 404, 409, 422, media={"application/octet-stream": BYTES, "text/csv": TEXT}),
        tags=["jobs"],
    )
    async def result(request: Request, id: str, spreadsheet: str = "false") -> Response:
        """The rewritten file; with `spreadsheet=true`, cells that look like formulas get an apostrophe in front."""
        return files.result(request, id, spreadsheet.lower() in ("true", "1", "yes"))

    @app.get(
        "/v1/jobs/{id}/card.{kind}",
        responses=answers(
            None,
            404,
            409,
            media={"application/json": {"schema": {"type": "object"}}, "text/markdown": TEXT, "text/html": TEXT},
        ),
        tags=["jobs"],
    )
    async def card(request: Request, id: str, kind: str) -> Response:
        """The privacy card of the result, as json, md or html."""
        return files.card(request, id, kind)

    @app.get(
        "/v1/jobs/{id}/sketch",
        responses=answers(None, 404, 409, media={"application/octet-stream": BYTES}),
        tags=["jobs"],
    )
    async def sketch(request: Request, id: str) -> Response:
        """The released sums of a corpus, of which more rows can be drawn anywhere at no further cost."""
        return files.sketch(request, id)

    @app.get("/v1/jobs/{id}/attribution", responses=answers(None, 404, 409, media={"text/plain": TEXT}), tags=["jobs"])
    async def attribution(request: Request, id: str) -> Response:
        """The attribution that the licenses of the sentences of a corpus ask for."""
        return files.attribution(request, id)

    @app.get("/v1/jobs/{id}/report", responses=answers(None, 404, 409, media={"text/html": TEXT}), tags=["jobs"])
    async def corpus_report(request: Request, id: str) -> Response:
        """A page about a corpus, which may be shared with it."""
        return files.report(request, id)

    @app.get("/v1/jobs/{id}/view", responses=answers(CorpusView, 404, 409), tags=["jobs"])
    async def corpus_view(request: Request, id: str) -> Response:
        """A corpus at a glance: rows of each label, map, proportions and promise."""
        return files.view(request, id)

    @app.get("/v1/ledger", responses=answers(Overview), tags=["budget"])
    async def ledger(request: Request) -> Response:
        """The budget that this key has spent, and its latest releases."""
        return json_response(await asyncio.to_thread(accounts.overview, request.scope["caller"].name))

    @app.get("/v1/reports", responses=answers(ReportList), tags=["reports"])
    async def report_list() -> Response:
        """The reports of the folder that the service was given."""
        return json_response(reports.listed())

    @app.get("/v1/reports/{name}", responses=answers(None, 404, media={"text/html": TEXT}), tags=["reports"])
    async def report(name: str) -> Response:
        """One report, as a page that may load nothing."""
        return reports.page(name)

    @app.get(
        "/healthz",
        responses={**answers(Health, 403, common=(500,)), 503: {"model": Health, "description": "Unavailable"}},
        tags=["operation"],
    )
    async def healthz() -> Response:
        """Whether the service can release something: 503 while its ledger or its keys cannot be used."""
        ledger, known = await asyncio.to_thread(accounts.works), keys.works()
        words = {True: "ok", False: "unavailable"}
        healthy = ledger and known
        health = Health(status=words[healthy], version=__version__, ledger=words[ledger], keys=words[known])
        return json_response(health, 200 if healthy else 503)

    @app.get("/metrics", responses=answers(None, media={METRICS_TYPE: TEXT}), tags=["operation"])
    async def prometheus(request: Request) -> Response:
        """Counts of the whole service for Prometheus: of other keys as well, so for keys of operators only."""
        if not request.scope["caller"].operator:
            raise ServiceError(
                403,
                RequestError(
                    "counts-of-all-keys",
                    "these counts are of all keys: only keys that the operator names may read them",
                ),
            )
        return Response(metrics.page(), media_type=METRICS_TYPE)

    @app.get("/", include_in_schema=False)
    async def index() -> Response:
        return site.page_file("index.html")

    @app.get("/assets/{name:path}", include_in_schema=False)
    async def assets(name: str) -> Response:
        return site.page_file(name)

    app.openapi = cache(partial(described, app))  # type: ignore[method-assign]  # made for the first who reads it
    for route in app.routes:
        methods = route.methods if isinstance(route, Route | APIRoute) else None
        if methods is not None and "GET" in methods:
            methods.add("HEAD")
    return app


async def _any_error(request: Request, error: Exception) -> Response:
    """The answer to any error of a route."""
    refusal = as_service_error(error)
    return Response(refusal.body(), refusal.status, headers=refusal.headers, media_type="application/json")


async def _http_error(request: Request, error: Exception) -> Response:
    """The answer to requests that the framework refuses; its own messages are left out."""
    assert isinstance(error, HTTPException)
    if error.status_code == 404:
        cause = RequestError("no-such-address", "there is nothing at this address: /openapi.json lists what there is")
    elif error.status_code == 405:
        cause = RequestError("method-not-taken", "this address does not take this method: see /openapi.json")
    else:
        cause = RequestError("unreadable-request", "the request could not be read: see /openapi.json for its form")
    body = ServiceError(error.status_code, cause).body()
    return Response(body, error.status_code, headers=dict(error.headers or {}), media_type="application/json")


def _quiet_loop(loop: asyncio.AbstractEventLoop) -> None:
    """The same for errors of tasks and callbacks."""

    def tell(_: asyncio.AbstractEventLoop, context: Mapping[str, object]) -> None:
        error = context.get("exception")
        log.error("unexpected %s", place_of(error) if isinstance(error, BaseException) else "error in the event loop")

    loop.set_exception_handler(tell)
