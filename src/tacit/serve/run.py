"""Starting the service: checks that it may listen where it is asked to, quiet logs, and uvicorn."""

from __future__ import annotations

import gc
import logging
import multiprocessing
import os
import socket
import sys
import threading

from tacit.errors import BadInputError, BadParameterError, place_of, require
from tacit.loading import collection_paused
from tacit.serve.app import create_app
from tacit.serve.connections import protocol_for
from tacit.serve.guiding import CommandWriter
from tacit.serve.keys import Keys
from tacit.serve.settings import ServiceSettings, is_local

log = logging.getLogger("tacit.serve")
OTHER_FILES = 256
"""Open files beside connections: the ledger, uploads, results."""
COLLECTED_AFTER = (20_000, 10, 10)
"""Requests that wait hold many objects: with Python's own numbers a tenth of the time goes into looking at them again
and again."""


def run(settings: ServiceSettings, *, quiet: bool = False, write_command: CommandWriter | None = None) -> None:
    """Serve until interrupted."""
    uvicorn = require("uvicorn", extra="serve", purpose="the service")
    keys = Keys(settings.state).active()
    if not keys and not is_local(settings.host):
        raise BadParameterError(
            "service-without-keys",
            "without keys the service listens on this machine only: make one with 'tacit serve keys add NAME', or "
            "leave out {option.host}",
        )
    if settings.reports is not None and not settings.reports.is_dir():
        raise BadInputError(
            "no-such-folder",
            "there is no folder '{folder}' for {option.reports}: make it first",
            folder=settings.reports,
        )
    os.umask(0o077)  # whatever the service writes is for its owner only
    settings = settings.model_copy(update={"connections": _files_for(settings.connections)})
    listening = _socket(settings)
    _quiet_errors()
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(message)s", stream=sys.stderr)
    log.setLevel(logging.WARNING if quiet else logging.INFO)
    with collection_paused():
        app = create_app(settings, write_command=write_command)
    config = uvicorn.Config(
        app,
        access_log=False,
        log_config=None,
        server_header=False,
        proxy_headers=False,
        http=protocol_for(settings),
        timeout_keep_alive=30,
        timeout_graceful_shutdown=10,
        ws="none",
    )
    host, port = listening.getsockname()[:2]
    place = f"[{host}]" if ":" in host else host
    who = f"{len(keys)} key{'' if len(keys) == 1 else 's'}" if keys else "no keys: this machine only"
    print(f"Tacit serves http://{place}:{port} ({who}; state in {settings.state})", file=sys.stderr, flush=True)
    gc.freeze()  # what was imported stays
    gc.set_threshold(*COLLECTED_AFTER)
    try:
        uvicorn.Server(config).run([listening])
    finally:
        _end_now()


def _end_now() -> None:
    """End the process even if a computation goes on in a thread, which Python would wait for without a limit."""
    for child in multiprocessing.active_children():
        child.kill()
    if any(thread is not threading.current_thread() and not thread.daemon for thread in threading.enumerate()):
        log.warning("a computation was cut off by the shutdown: its budget is spent, and nothing of it was released")
        logging.shutdown()
        os._exit(0)


def _files_for(connections: int) -> int:
    """How many connections this process can have: as many as wanted, if the system allows so many open files."""
    try:
        import resource
    except ImportError:  # Windows
        return connections
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = connections + OTHER_FILES
    if soft != resource.RLIM_INFINITY and soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return connections if soft == resource.RLIM_INFINITY else max(1, min(connections, soft - OTHER_FILES))


def _socket(settings: ServiceSettings) -> socket.socket:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((settings.host.strip("[]"), settings.port))
        listening.listen(settings.connections)  # clients can connect as soon as they read that the service is up
    except OSError as error:
        listening.close()
        raise BadInputError(
            "port-in-use",
            "cannot listen on {host} port {port} ({reason}): choose another {option.port} or {option.host}",
            host=settings.host,
            port=settings.port,
            reason=error.strerror,
        ) from None
    return listening


def _quiet_errors() -> None:
    """Log an uncaught error by its kind and place only: its message could quote a text."""

    def tell(kind: object, error: BaseException | None, *rest: object) -> None:
        log.error("unexpected %s", place_of(error) if error is not None else getattr(kind, "__name__", "error"))

    sys.excepthook = tell
    threading.excepthook = lambda caught: tell(caught.exc_type, caught.exc_value)
    sys.unraisablehook = lambda caught: tell(caught.exc_type, caught.exc_value)
