"""What every request passes, whatever it asks for: one small ASGI layer around the application.

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
from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from starlette.responses import Response

from tacit.serve.errors import ServiceError, as_service_error, note
from tacit.serve.keys import Keys, RateLimit
from tacit.serve.metrics import Metrics
from tacit.serve.settings import Settings, is_local

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
Headers = Mapping[bytes, bytes]
Answer = Callable[["Caller", Headers, Receive], Awaitable[Response | bytes]]

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
JSON_HEADERS = ((b"content-type", b"application/json"), *SECURITY_HEADERS)
REPORT_POLICY = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'self'"
BODY_PAUSE_SECONDS = 30.0
BODY_SECONDS = 60.0
SLOWEST_BYTES_PER_SECOND = 50_000
"""How long a body may take in all: a minute, and more only while it comes at least so fast. Somebody who sends a byte
now and then would otherwise keep a place for ever."""


@dataclass(frozen=True)
class Caller:
    """Who asks: the name of a key, or None on a service without keys; and whether nominal releases are refused."""

    name: str | None
    refuse_nominal: bool = False


class Gate:
    """`direct` routes, by method and path, are answered here: where time counts, the framework's own way to them would
    take more of it than the work. Bytes as an answer are JSON, and all is well."""

    def __init__(
        self,
        app: App,
        settings: Settings,
        keys: Keys,
        metrics: Metrics,
        tickets: Callable[[Scope], bool],
        direct: Mapping[tuple[str, str], Answer],
    ) -> None:
        self._app = app
        self._direct = direct
        self._settings = settings
        self._keys = keys
        self._metrics = metrics
        self._rates = RateLimit()
        self._tickets = tickets
        # Once keys are needed they stay needed, even if the file with the keys disappears.
        self._needs_key = bool(keys.all()) or not is_local(settings.host)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started, status = time.perf_counter(), 0

        async def sending(message: Message) -> None:
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
            scope["caller"] = self._caller(scope, headers)
            body = self._limited(scope["path"], headers, receive)
            answer = self._direct.get((scope["method"], scope["path"]))
            if answer is None:
                await self._app(scope, body, sending)
            else:
                scope["endpoint"] = answer
                response = await answer(scope["caller"], headers, body)
                if isinstance(response, bytes):
                    status = 200
                    await _send(200, [*JSON_HEADERS, (b"content-length", b"%d" % len(response))], response, send)
                else:
                    await response(scope, body, sending)
        except Exception as error:
            refusal = as_service_error(error)
            if refusal.status >= 500:
                note(error)
            if status == 0:
                await _send_error(refusal, sending)
        finally:
            route = route_of(scope)
            seconds = time.perf_counter() - started
            self._metrics.answered(route, status, seconds)
            log.info("%s %s %d %.1f ms", scope["method"], route, status, 1000 * seconds)

    def _check_place(self, headers: Headers) -> None:
        """Only for a service without keys: there the machine itself is the permission, and a web page that the user has
        open must not borrow it (by its own requests, or by a name that it lets point to 127.0.0.1)."""
        host = urlsplit("//" + headers.get(b"host", b"").decode("latin-1")).netloc
        if not self._keys_needed() and not self._is_ours(_name(host)):
            raise ServiceError(
                403, "this name does not belong to the service: use localhost, or start it with --allow-host NAME"
            )
        origin = headers.get(b"origin")
        if origin is not None and urlsplit(origin.decode("latin-1")).netloc != host:
            raise ServiceError(
                403, "requests from pages of other sites are refused: call the service from its own page"
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
            return Caller(None, self._settings.refuse_nominal)
        key = self._keys.find(presented_key(headers))
        if key is None:
            raise ServiceError(401, "give a valid key in the header 'Authorization: Bearer KEY'")
        wait = self._rates.wait(key)
        if wait > 0:
            seconds = max(1, math.ceil(wait))
            raise ServiceError(429, f"too many requests: wait {seconds} s", retry_after=seconds)
        return Caller(key.name, self._settings.refuse_nominal or key.refuse_nominal)

    def _limited(self, path: str, headers: Headers, receive: Receive) -> Receive:
        """The body, stopped as soon as it is larger than allowed, stands still, or takes too long in all."""
        limit = self._settings.upload_bytes if path == "/v1/jobs" else self._settings.body_bytes
        declared = headers.get(b"content-length", b"0")
        if declared.isdigit() and int(declared) > limit:
            raise _too_large(limit)
        seen, complete, started = 0, False, time.monotonic()

        async def receiving() -> Message:
            nonlocal seen, complete
            if complete:
                return await receive()
            left = started + BODY_SECONDS + seen / SLOWEST_BYTES_PER_SECOND - time.monotonic()
            try:
                async with asyncio.timeout(max(0.0, min(BODY_PAUSE_SECONDS, left))):
                    message = await receive()
            except TimeoutError:
                raise ServiceError(400, "the body did not arrive in time: send it again", "slow_body") from None
            if message["type"] == "http.request":
                seen += len(message.get("body", b""))
                complete = not message.get("more_body", False)
                if seen > limit:
                    raise _too_large(limit)
            return message

        return receiving


def route_of(scope: Scope) -> str:
    """The route that was matched, such as /v1/jobs/{id}: what a client wrote into a path is nobody's business."""
    found = getattr(scope.get("route"), "path", None)
    if found is None and scope.get("endpoint") is not None and not scope.get("path_params"):
        found = scope["path"]  # a route without parameters is its own path
    return found or "unknown route"


def presented_key(headers: Headers) -> str:
    scheme, _, credentials = headers.get(b"authorization", b"").decode("latin-1").partition(" ")
    if scheme.lower() == "bearer":
        return credentials.strip()
    return headers.get(b"x-api-key", b"").decode("latin-1").strip()


def _name(netloc: str) -> str:
    """A host without its port; an IPv6 address keeps its brackets."""
    return netloc.rpartition(":")[0] if netloc.rpartition(":")[2].isdigit() and not netloc.endswith("]") else netloc


def _too_large(limit: int) -> ServiceError:
    return ServiceError(413, f"the body is larger than {limit:,} bytes: send less at a time")


async def _send_error(error: ServiceError, send: Send) -> None:
    body = error.body()
    headers = {"content-type": "application/json", "content-length": str(len(body)), **error.headers}
    await _send(error.status, [(name.encode(), value.encode()) for name, value in headers.items()], body, send)


async def _send(status: int, headers: Sequence[tuple[bytes, bytes]], body: bytes, send: Send) -> None:
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
