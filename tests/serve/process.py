"""`tacit serve` as a process of its own, for tests that kill it or read what it writes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import httpx


class Process:
    """A running service; `log` holds everything it has written to standard output and standard error."""

    def __init__(self, state: Path, *options: str) -> None:
        state.mkdir(parents=True, exist_ok=True)
        self.log = state.parent / f"log-{time.monotonic_ns()}.txt"
        environment = {**os.environ, "TACIT_LEDGER_KEY": "a key for tests, nothing more"}
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tacit", "serve", "--port", "0", "--state", str(state), *options],
                stdout=log,
                stderr=subprocess.STDOUT,
                env=environment,
            )
        self.client = httpx.Client(base_url=self._address(), timeout=30)

    def _address(self) -> str:
        end = time.monotonic() + 60
        while time.monotonic() < end and self.process.poll() is None:
            match = re.search(r"http://127\.0\.0\.1:\d+", self.log.read_text())
            if match:
                return match[0]
            time.sleep(0.05)
        raise AssertionError(f"the service did not start: {self.log.read_text()}")

    def kill(self) -> None:
        """kill -9: no goodbye of any kind."""
        self.client.close()
        self.process.kill()
        self.process.wait(timeout=30)

    def stop(self) -> None:
        self.client.close()
        if self.process.poll() is None:
            self.process.terminate()
            self.process.wait(timeout=60)
