"""Waiting for a job, for tests of the service."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from starlette.testclient import TestClient


def finished(client: TestClient, id: str, seconds: float = 20.0, **options: Any) -> dict[str, Any]:
    """The job as soon as it is neither queued nor running."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        job: dict[str, Any] = client.get(f"/v1/jobs/{id}", **options).json()
        if job["state"] not in ("queued", "running"):
            return job
        time.sleep(0.02)
    raise AssertionError(f"the job is still {job['state']} after {seconds} s")
