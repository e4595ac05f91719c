"""A service in this process, with a vocabulary of forty words, so that a request takes milliseconds."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the service needs pip install 'tacit-dp[serve]'")

from starlette.testclient import TestClient

from tacit.serve.app import create_app
from tacit.serve.settings import ServiceSettings
from tests.conftest import small_table

Start = Callable[..., TestClient]
Body = Callable[..., dict[str, Any]]
TWO_ROWS = b"text,label\nw1 w2,a\nw3,b\n"


@pytest.fixture(scope="session")
def vectors(tmp_path_factory: pytest.TempPathFactory) -> str:
    table = small_table(words=40, dimension=3)
    path = tmp_path_factory.mktemp("vectors") / "small.txt"
    rows = zip(table.words, table.vectors.tolist(), strict=True)
    path.write_text("".join(f"{word} {' '.join(map(str, vector))}\n" for word, vector in rows))
    return str(path)


@pytest.fixture(autouse=True, scope="module")
def _ledger_key() -> Iterator[None]:
    """For whole modules, because a service opens its ledger when it starts, and some are started once for a module."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TACIT_LEDGER_KEY", "a key for tests, nothing more")
        yield


@pytest.fixture
def start(tmp_path: Path, vectors: str) -> Iterator[Start]:
    """Start a service in a state folder of its own; the same folder again is a restart. Jobs are worked on in threads,
    where tests can look at them and be quick, unless they ask for processes."""
    running: list[TestClient] = []

    def starting(state: Path | None = None, *, jobs_apart: bool = False, **settings: Any) -> TestClient:
        allowed = (("vectors", vectors),)
        place = state or tmp_path / "state"
        app = create_app(ServiceSettings(state=place, **{"allowed": allowed, **settings}), jobs_apart=jobs_apart)
        client = TestClient(app, base_url="http://localhost", raise_server_exceptions=False)
        client.__enter__()
        running.append(client)
        return client

    yield starting
    for client in running:
        client.__exit__(None, None, None)


@pytest.fixture
def client(start: Start) -> TestClient:
    return start()


@pytest.fixture
def request_body(vectors: str) -> Body:
    """The body of a rewriting request."""

    def body(**changes: Any) -> dict[str, Any]:
        common = {"mechanism": "santext", "epsilon": 2.0, "options": {"vectors": vectors}}
        return {**common, **({} if {"text", "texts"} & changes.keys() else {"text": "w1 w2 w3"}), **changes}

    return body


@pytest.fixture
def job_form(vectors: str) -> Body:
    """The form of a job: keyword arguments for `client.post`."""

    def form(content: bytes = TWO_ROWS, name: str = "private.csv", **changes: Any) -> dict[str, Any]:
        settings = {"mechanism": "santext", "epsilon": 2.0, "options": {"vectors": vectors}, **changes}
        return {"files": {"file": (name, content)}, "data": {"settings": json.dumps(settings)}}

    return form
