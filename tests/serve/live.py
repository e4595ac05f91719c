"""A service behind real sockets, in a thread, for tests of what happens below HTTP."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn

from tacit.serve.app import create_app
from tacit.serve.connections import protocol_for
from tacit.serve.settings import ServiceSettings


@contextmanager
def served(settings: ServiceSettings) -> Iterator[int]:
    """The port of a running service."""
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    listening.listen(100)
    config = uvicorn.Config(
        create_app(settings, jobs_apart=False),
        http=protocol_for(settings),
        log_config=None,
        access_log=False,
        ws="none",
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
    thread.start()
    end = time.monotonic() + 20
    while not server.started and time.monotonic() < end:
        time.sleep(0.01)
    assert server.started
    try:
        yield listening.getsockname()[1]
    finally:
        server.should_exit = True
        thread.join(timeout=20)


def connect(port: int, data: bytes = b"") -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", port), timeout=10)
    connection.sendall(data)
    return connection


def everything(connection: socket.socket) -> bytes:
    """What comes until the other side closes; a broken connection is an end as well."""
    parts = []
    try:
        while data := connection.recv(65536):
            parts.append(data)
    except ConnectionError:
        pass
    return b"".join(parts)


def ask(
    port: int, path: str = "/healthz", headers: str = "", method: str = "GET", body: bytes = b""
) -> tuple[int, bytes]:
    """Status and body of one request on a connection of its own."""
    length = f"content-length: {len(body)}\r\n" if body else ""
    head = f"{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{length}{headers}\r\n"
    with connect(port, head.encode() + body) as connection:
        answer = everything(connection)
    first, _, rest = answer.partition(b"\r\n\r\n")
    return int(first.split(b" ")[1]), rest


def is_open(connection: socket.socket) -> bool:
    """Whether the other side has not closed."""
    connection.setblocking(False)
    try:
        return connection.recv(1, socket.MSG_PEEK) != b""
    except BlockingIOError:
        return True
    except ConnectionError:
        return False
    finally:
        connection.setblocking(True)
        connection.settimeout(10)


def error_code(body: bytes) -> str:
    return str(json.loads(body)["error"]["code"])
