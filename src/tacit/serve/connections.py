"""Connections: how many there are, and how long one may take to say what it wants.

Whoever has no key can still open connections and send half of a request. So the head of a request has a largest size
and a time; when there are too many connections, in all, of one address or of strangers, the one of them goes that has
waited longest for a head, and somebody who sends his request at once is served while others hold thousands open.
A body has its limits in the gate; here it only may not stop being one (chunk extensions and trailers are counted like a
head). An answer that nobody reads is given up.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, OrderedDict
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from tacit.serve.errors import RequestError, ServiceError
from tacit.serve.settings import ServiceSettings

log = logging.getLogger("tacit.serve")

HEAD_BYTES: Final = 32_000
MOST_HEADERS: Final = 100
MOST_PIPELINED: Final = 20
"""Requests that a client sends before it has the answer to the first."""
HEAD_SECONDS: Final = 10.0
LINGER_SECONDS: Final = 2.0
"""How long what is left of a body is taken in after its answer, so that the client can read why it was refused."""
READ_SECONDS: Final = 30.0
LEAST_READ_BYTES: Final = 30_000
"""What a client must take of a waiting answer in that time."""


class Connections:
    """All connections of a service. `waiting` are those without a request at the moment, the oldest first; strangers
    are those that have not been let in yet, by a key or because none is needed."""

    def __init__(self, settings: ServiceSettings) -> None:
        self._most = settings.connections
        self._most_of_address = settings.connections_per_address
        self._most_strangers = max(1, settings.connections // 2)
        self._all: set[GuardedProtocol] = set()
        self._strangers: set[GuardedProtocol] = set()
        self._of_address: Counter[str] = Counter()
        self._waiting: OrderedDict[GuardedProtocol, None] = OrderedDict()
        self._waiting_strangers: OrderedDict[GuardedProtocol, None] = OrderedDict()
        self._waiting_of: dict[str, OrderedDict[GuardedProtocol, None]] = {}

    def enter(self, new: GuardedProtocol) -> bool:
        """Whether there is room for one more, if need be in place of one that waits."""
        of_address = self._waiting_of.get(new.address, OrderedDict())
        full = (
            (self._of_address[new.address] >= self._most_of_address, of_address),
            (len(self._strangers) >= self._most_strangers, self._waiting_strangers),
            (len(self._all) >= self._most, self._waiting),
        )
        for is_full, candidates in full:
            if is_full and not self._make_room(candidates):
                return False
        self._all.add(new)
        self._strangers.add(new)
        self._of_address[new.address] += 1
        self.waits(new)
        return True

    def _make_room(self, candidates: OrderedDict[GuardedProtocol, None]) -> bool:
        oldest = next(iter(candidates), None)
        if oldest is None:
            return False
        self.leave(oldest)
        oldest.transport.abort()
        return True

    def leave(self, connection: GuardedProtocol) -> None:
        if connection not in self._all:
            return
        self.works(connection)
        self._all.discard(connection)
        self._strangers.discard(connection)
        self._of_address[connection.address] -= 1
        if not self._of_address[connection.address]:
            del self._of_address[connection.address]

    def waits(self, connection: GuardedProtocol) -> None:
        """Count the connection among those that wait for a request."""
        if connection in self._all:
            self._waiting[connection] = None
            self._waiting_of.setdefault(connection.address, OrderedDict())[connection] = None
            if connection in self._strangers:
                self._waiting_strangers[connection] = None

    def works(self, connection: GuardedProtocol) -> None:
        """Count the connection among those whose request is being answered."""
        self._waiting.pop(connection, None)
        self._waiting_strangers.pop(connection, None)
        of_address = self._waiting_of.get(connection.address)
        if of_address is not None:
            of_address.pop(connection, None)
            if not of_address:
                del self._waiting_of[connection.address]

    def let_in(self, connection: GuardedProtocol) -> None:
        self._strangers.discard(connection)


class GuardedProtocol(HttpToolsProtocol):
    """One connection. A request is first its head, then perhaps a body, and at any time the answer."""

    def __init__(self, connections: Connections, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.address = ""
        self._connections = connections
        self._timer: asyncio.TimerHandle | None = None
        self._reading_timer: asyncio.TimerHandle | None = None
        self._in_head = True
        self._begun = False
        self._headers_seen = 0
        self._head_size = 0
        self._apart = 0
        self._got_on = False

    # What asyncio tells -------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.address = self.client[0] if self.client else ""
        if not self._connections.enter(self):
            self._refuse(
                ServiceError(
                    503, RequestError("too-many-connections", "too many connections: try again in a moment"), "busy", 5
                )
            )
            return
        self._arm(HEAD_SECONDS, self._head_is_late)

    def connection_lost(self, exc: Exception | None) -> None:
        self._connections.leave(self)
        self._disarm()
        if self._reading_timer is not None:
            self._reading_timer.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        self._got_on = False
        super().data_received(data)
        if self.transport.is_closing():
            return
        # Neither a head nor what stands between two pieces of a body may grow without end.
        self._apart = 0 if self._got_on else self._apart + len(data)
        nothing_more = self._got_on and not self._begun  # the data ended with a request
        if self._apart > HEAD_BYTES:
            self._refuse(_large_head())
        elif self._in_head and self._timer is None and not nothing_more:
            self._arm(HEAD_SECONDS, self._head_is_late)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._watch_reading(self.transport.get_write_buffer_size())

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._reading_timer is not None:
            self._reading_timer.cancel()
            self._reading_timer = None

    # What the parser tells ----------------------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        self._begun, self._headers_seen, self._head_size = True, 0, 0
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        self._grow_head(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers_seen += 1
        self._grow_head(len(name) + len(value))
        super().on_header(name, value)

    def _grow_head(self, size: int) -> None:
        """Trailers, which come after the body, belong to the head."""
        self._head_size += size
        if self._head_size > HEAD_BYTES or self._headers_seen > MOST_HEADERS:
            raise ValueError("the head is too large")  # which the parser takes for a bad request

    def on_headers_complete(self) -> None:
        self._in_head, self._got_on = False, True
        self._disarm()
        self._connections.works(self)
        if len(self.pipeline) >= MOST_PIPELINED:
            raise ValueError("too many requests before the first was answered")
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._got_on = True
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._in_head, self._begun, self._got_on = True, False, True
        super().on_message_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.cycle.scope.get("let_in"):
            self._connections.let_in(self)
        if self.transport.is_closing() or not self.cycle.response_complete:
            return
        if self._in_head:
            self._connections.waits(self)
        else:  # the answer did not need the whole body
            self._arm(LINGER_SECONDS, self.transport.close)

    def send_400_response(self, msg: str) -> None:
        if self._head_size > HEAD_BYTES or self._headers_seen > MOST_HEADERS:
            self._refuse(_large_head())
        else:
            self._refuse(
                ServiceError(
                    400, RequestError("unreadable-request", "this is no HTTP request that can be read: send it again")
                )
            )

    # Ends ---------------------------------------------------------------------------------------------------------

    def _arm(self, seconds: float, then: Callable[[], object]) -> None:
        self._disarm()
        self._timer = self.loop.call_later(seconds, then)

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _head_is_late(self) -> None:
        self._timer = None
        if self.cycle is not None and not self.cycle.response_complete:
            self._arm(HEAD_SECONDS, self._head_is_late)  # the next request cannot be read before this one is answered
        elif self._begun:
            self._refuse(
                ServiceError(
                    408, RequestError("head-too-slow", "the request did not arrive in time: send it again"), "slow_head"
                )
            )
        else:
            self.transport.close()

    def _watch_reading(self, size: int) -> None:
        self._reading_timer = self.loop.call_later(READ_SECONDS, self._check_reading, size)

    def _check_reading(self, before: int) -> None:
        size = self.transport.get_write_buffer_size()
        if before - size < LEAST_READ_BYTES:
            self.transport.abort()
        else:
            self._watch_reading(size)

    def _refuse(self, error: ServiceError) -> None:
        """Answer without the application, and close."""
        log.info("refused a connection: %s", error.code)
        body = error.body()
        head = f"HTTP/1.1 {error.status} {error.code}\r\ncontent-type: application/json\r\nconnection: close\r\n"
        head += "".join(f"{name}: {value}\r\n" for name, value in error.headers.items())
        if self.cycle is None or self.cycle.response_complete:  # not in the middle of another answer
            self.transport.write(f"{head}content-length: {len(body)}\r\n\r\n".encode() + body)
        self._connections.leave(self)
        self._disarm()
        self.transport.close()


def _large_head() -> ServiceError:
    return ServiceError(
        431,
        RequestError(
            "head-too-large",
            "the head of a request has at most {headers} headers and {bytes:,} bytes",
            headers=MOST_HEADERS,
            bytes=HEAD_BYTES,
        ),
        "large_head",
    )


def protocol_for(settings: ServiceSettings) -> Callable[..., GuardedProtocol]:
    """The factory by which uvicorn makes a protocol for every connection."""
    return partial(GuardedProtocol, Connections(settings))
