"""The layer that every request passes before the application (ASGI).

In this order: the Host and Origin headers (a web page of a stranger must not reach a service on localhost), the key
and its rate, the size and the patience for the body; then the answer gets its security headers, is counted, and is
logged with method, route, status and time. Paths, query strings, headers and bodies are never logged, and an error
that we did not foresee is logged by kind and place, without its message.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import Response

from tacit.serve.errors import RequestError, ServiceError, as_service_error, note, service_busy
from tacit.serve.keys import NO_OPTIONS, KeyOptions, Keys, RateLimit
from tacit.serve.metrics import Metrics
from tacit.serve.settings import ServiceSettings, is_local

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
Headers = Mapping[bytes, bytes]
Endpoint = Callable[[Request], Awaitable[Response]]

log = logging.getLogger("tacit.serve")

OPEN_ROUTES = ("/", "/healthz", "/openapi.json")
SECURITY_HEADERS = (
    (
        b"content-security-policy",
        b"default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; form-action 'self'; "
        b"frame-ancestors 'none'",
    ),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
)
REPORT_POLICY = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'self'"
BODY_PAUSE_SECONDS = 30.0
BODY_SECONDS = 60.0
SLOWEST_BYTES_PER_SECOND = 50_000
"""How long a body may take in all: a minute, and more only while it comes at least so fast. Somebody who sends a byte
now and then would otherwise keep a place for ever."""


SMALL_BODY_BYTES = 64_000
"""Largest body of questions about public data."""
UPLOADS = ("/v1/jobs", "/v1/jobs/synthesize")
LARGE_BODIES = ("/v1/rewrite", *UPLOADS)
MOST_DIGITS = 18
KEY_SECONDS = 0.5
"""How often the key is looked at again while an answer is sent."""


@dataclass(frozen=True)
class Caller:
    """The sender of a request: the name of a key with its options, or None on a service without keys. An operator may
    see the counts of everybody."""

    name: str | None
    options: KeyOptions = NO_OPTIONS
    operator: bool = False


class Gate:
    """`direct` are endpoints of the application, by method and path, that are called from here: where time counts, the
    framework's own way to them takes more of it than the work. Without them the application answers the same."""

    def __init__(
        self,
        app: App,
        settings: ServiceSettings,
        keys: Keys,
        metrics: Metrics,
        tickets: Callable[[Scope], bool],
        direct: Mapping[tuple[str, str], Endpoint],
    ) -> None:
        self._app = app
        self._direct = direct
        self._settings = settings
        self._keys = keys
        self._metrics = metrics
        self._rates = RateLimit()
        self._open: Counter[str | None] = Counter()
        self._bodies = Bodies(settings.bodies_bytes)
        self._tickets = tickets
        # Once keys are needed they stay needed, even if the file with the keys disappears.
        self._needs_key = bool(keys.all()) or not is_local(settings.host)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started, status = time.perf_counter(), 0
        body = Body(scope, receive, self._bodies, self._settings)
        caller = Caller(None)
        looked_at = time.monotonic()

        async def sending(message: Message) -> None:
            nonlocal status, looked_at
            if time.monotonic() - looked_at >= KEY_SECONDS:
                self._check_key(caller)
                looked_at = time.monotonic()
            await answering(message)

        async def answering(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                present = {name for name, _ in message["headers"]}
                added = [header for header in SECURITY_HEADERS if header[0] not in present]
                message["headers"] = [*message["headers"], *added]
            elif scope["method"] == "HEAD" and message["type"] == "http.response.body":
                message = {**message, "body": b""}
            await send(message)

        try:
            headers = dict(scope["headers"])
            self._check_place(headers)
            caller = scope["caller"] = self._caller(scope, headers)
            scope["let_in"] = caller.name is not None or not self._needs_key
            self._enter(caller)
            try:
                body.check_declared(headers)
                endpoint = self._direct.get((scope["method"], scope["path"]))
                if endpoint is None:
                    await self._app(scope, body, sending)
                else:
                    scope["endpoint"] = endpoint
                    response = await endpoint(Request(scope, body))
                    await response(scope, body, sending)
            finally:
                self._open[caller.name] -= 1
        except asyncio.CancelledError:  # the service stops, and has waited long enough for this answer
            if status == 0:
                stopping = RequestError("service-stops", "the service stops: try again later")
                await _send_error(ServiceError(503, stopping, "stopping", 30), answering)
        except Exception as error:
            refusal = as_service_error(error)
            if refusal.status >= 500:
                note(error)
            if status == 0:
                await _send_error(refusal, answering)
        finally:
            body.release()
            route = route_of(scope)
            seconds = time.perf_counter() - started
            self._metrics.answered(route, status, seconds)
            log.info("%s %s %d %.1f ms", scope["method"], route, status, 1000 * seconds)

    def _enter(self, caller: Caller) -> None:
        """Count a request of a key, if it has not too many already."""
        if caller.name is not None and self._open[caller.name] >= self._settings.requests_per_key:
            raise ServiceError(
                429,
                RequestError("too-many-requests-at-once", "too many requests at the same time: wait for some of them"),
                retry_after=1,
            )
        self._open[caller.name] += 1

    def _check_key(self, caller: Caller) -> None:
        """A key that is revoked ends what is being sent to it."""
        if caller.name is not None and not self._keys.is_active(caller.name):
            raise _wrong_key()

    def _check_place(self, headers: Headers) -> None:
        """Only for a service without keys: there the machine itself is the permission, and a web page that the user has
        open must not borrow it (by its own requests, or by a name that it lets point to 127.0.0.1)."""
        host = _netloc("//" + headers.get(b"host", b"").decode("latin-1"))
        if not self._keys_needed() and not self._is_ours(_name(host)):
            raise ServiceError(
                403,
                RequestError(
                    "foreign-host",
                    "this name does not belong to the service: use localhost, or let its operator allow it "
                    "(allow_host)",
                ),
            )
        origin = headers.get(b"origin")
        if origin is not None and _netloc(origin.decode("latin-1")) != host:
            raise ServiceError(
                403,
                RequestError(
                    "foreign-page", "requests from pages of other sites are refused: call the service from its own page"
                ),
            )

    def _keys_needed(self) -> bool:
        self._needs_key = self._needs_key or bool(self._keys.all())
        return self._needs_key

    def _is_ours(self, name: str) -> bool:
        return is_local(name) or name in (self._settings.host, *self._settings.hosts)

    def _caller(self, scope: Scope, headers: Headers) -> Caller:
        if scope["path"] in OPEN_ROUTES or scope["path"].startswith("/assets/") or self._tickets(scope):
            return Caller(None)
        if not self._keys_needed():
            if presented_key(headers):
                # A client with a key counts on its budget: without the keys it must not be answered as if it had none.
                raise ServiceError(
                    503,
                    RequestError(
                        "service-without-keys",
                        "a key was sent, and this service has no keys: ask its operator, or send none",
                    ),
                    retry_after=60,
                )
            return Caller(None, KeyOptions(refuse_nominal=self._settings.refuse_nominal), operator=True)
        key = self._keys.find(presented_key(headers))
        if key is None:
            raise _wrong_key()
        wait = self._rates.wait(key)
        if wait > 0:
            seconds = max(1, math.ceil(wait))
            raise ServiceError(
                429,
                RequestError("too-many-requests", "too many requests: wait {seconds} s", seconds=seconds),
                retry_after=seconds,
            )
        options = replace(key.options, refuse_nominal=self._settings.refuse_nominal or key.options.refuse_nominal)
        return Caller(key.name, options, operator=key.name in self._settings.operators)


class Bodies:
    """How many bytes of JSON bodies are in memory, of all requests together."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._held = 0

    def take(self, size: int) -> None:
        if self._held + size > self._most:
            raise service_busy()
        self._held += size

    def release(self, size: int) -> None:
        self._held -= size


class Body:
    """The body of a request, stopped as soon as it is larger than allowed, stands still, or takes too long in all."""

    def __init__(self, scope: Scope, receive: Receive, bodies: Bodies, settings: ServiceSettings) -> None:
        path = scope["path"]
        self._is_upload = path in UPLOADS  # which go to the disk
        self._limit = settings.upload_bytes if self._is_upload else settings.body_bytes
        if path not in LARGE_BODIES:
            self._limit = min(SMALL_BODY_BYTES, self._limit)
        self._receive = receive
        self._bodies = bodies
        self._seen, self._held, self._complete, self._started = 0, 0, False, time.monotonic()

    def check_declared(self, headers: Headers) -> None:
        declared = headers.get(b"content-length", b"0")
        if declared.isdigit() and (len(declared) > MOST_DIGITS or int(declared) > self._limit):
            raise _too_large(self._limit)

    async def __call__(self) -> Message:
        if self._complete:
            return await self._receive()
        left = self._started + BODY_SECONDS + self._seen / SLOWEST_BYTES_PER_SECOND - time.monotonic()
        try:
            async with asyncio.timeout(max(0.0, min(BODY_PAUSE_SECONDS, left))):
                message = await self._receive()
        except TimeoutError:
            raise ServiceError(
                400, RequestError("body-too-slow", "the body did not arrive in time: send it again"), "slow_body"
            ) from None
        if message["type"] == "http.request":
            size = len(message.get("body", b""))
            self._seen += size
            self._complete = not message.get("more_body", False)
            if self._seen > self._limit:
                raise _too_large(self._limit)
            if not self._is_upload:
                self._bodies.take(size)
                self._held += size
        return message

    def release(self) -> None:
        self._bodies.release(self._held)
        self._held = 0


def route_of(scope: Scope) -> str:
    """The route that was matched, such as /v1/jobs/{id}: what a client wrote into a path is nobody's business."""
    path = getattr(scope.get("route"), "path", None)
    if path is None and scope.get("endpoint") is not None and not scope.get("path_params"):
        path = scope["path"]  # a route without parameters is its own path
    return path or "unknown route"


def presented_key(headers: Headers) -> str:
    scheme, _, credentials = headers.get(b"authorization", b"").decode("latin-1").partition(" ")
    if scheme.lower() == "bearer":
        return credentials.strip()
    return headers.get(b"x-api-key", b"").decode("latin-1").strip()


def _netloc(address: str) -> str:
    """The host of an address, with its port."""
    try:
        return urlsplit(address).netloc
    except ValueError:
        raise ServiceError(
            400,
            RequestError("bad-host-header", "the header Host or Origin is no address: leave it to your HTTP library"),
        ) from None


def _name(netloc: str) -> str:
    """A host without its port; an IPv6 address keeps its brackets."""
    return netloc.rpartition(":")[0] if netloc.rpartition(":")[2].isdigit() and not netloc.endswith("]") else netloc


def _wrong_key() -> ServiceError:
    return ServiceError(401, RequestError("wrong-key", "give a valid key in the header 'Authorization: Bearer KEY'"))


def _too_large(limit: int) -> ServiceError:
    return ServiceError(
        413, RequestError("body-too-large", "the body is larger than {most:,} bytes: send less at a time", most=limit)
    )


async def _send_error(error: ServiceError, send: Send) -> None:
    body = error.body()
    headers = {"content-type": "application/json", "content-length": str(len(body)), **error.headers}
    encoded = [(name.encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": error.status, "headers": encoded})
    await send({"type": "http.response.body", "body": body})
