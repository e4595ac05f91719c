"""How a service is set up. Everything has a default that is safe on one machine, without keys."""

from __future__ import annotations

import ipaddress
import os
from functools import lru_cache
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

MEGABYTE = 1_000_000
BODIES_AT_ONCE = 20

Positive = Annotated[int, Field(gt=0)]
Seconds = Annotated[float, Field(gt=0, le=1e6, allow_inf_nan=False)]
Hours = Annotated[float, Field(gt=0, le=1e5, allow_inf_nan=False)]


def default_state() -> Path:
    """Where keys, jobs and the ledger are kept: `TACIT_STATE`, or the place for state of the user's system."""
    chosen = os.environ.get("TACIT_STATE")
    if chosen:
        return Path(chosen)
    base = os.environ.get("XDG_STATE_HOME")
    return (Path(base) if base else Path.home() / ".local" / "state") / "tacit"


class Settings(BaseModel):
    """
    state             folder of keys, jobs and the ledger; only its owner may read it
    ledger            where the spent budget is written down; None: `ledger.sqlite` in the state folder
    host, port        where to listen; beyond this machine only with keys
    hosts             further names under which the service is reached (the Host header of a request)
    reports           folder of HTML reports to show
    body_bytes        largest JSON body
    upload_bytes      largest upload of a job
    texts             most texts in a request, counting each draw
    text_characters   most characters of one text in a request; longer ones go into a job
    waiting           most requests that wait for their turn; one key has at most half of the places
    connections       most connections at a time; half of them may be of strangers, who have shown no key yet
    connections_per_address   most of them from one address; behind a proxy all come from one
    requests_per_key  most requests of one key that are open at the same time
    operators         names of keys that may read the counts of the whole service (/metrics)
    timeout           seconds until a request is given up
    keep_hours        hours until the files of a job are deleted
    mechanisms        how many prepared mechanisms are kept in memory
    threads           how many batches are worked on at the same time
    jobs              jobs worked on at the same time; one key has at most all places but one
    job_workers       processes that rewrite one job; 1 is the process of the job itself
    job_memory        bytes of memory that a process of a job may use
    unpacked          most characters of text that the file of a job may hold, unpacked
    refuse_nominal    whether releases whose formal bound no longer protects are refused to everybody; a key may have
                      the same rule of its own
    allowed           values of options beyond the built-in ones that requests may use, such as a vector file
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    state: Path = Field(default_factory=default_state)
    ledger: str | None = None
    host: str = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65535)] = 8000
    hosts: tuple[str, ...] = ()
    reports: Path | None = None
    body_bytes: Positive = 10 * MEGABYTE
    upload_bytes: Positive = 1_000 * MEGABYTE
    texts: Positive = 10_000
    text_characters: Positive = 100_000
    waiting: Positive = 256
    connections: Positive = 2_000
    connections_per_address: Positive = 500
    requests_per_key: Positive = 128
    operators: tuple[str, ...] = ()
    timeout: Seconds = 60.0
    keep_hours: Hours = 24.0
    mechanisms: Positive = 12
    threads: Positive = 2
    jobs: Positive = 2
    job_workers: Positive = 1
    job_memory: Positive = 4_000 * MEGABYTE
    unpacked: Positive = 10_000 * MEGABYTE
    refuse_nominal: bool = False
    allowed: tuple[tuple[str, str], ...] = ()

    @property
    def bodies_bytes(self) -> int:
        """Most bytes of JSON bodies in memory, of all requests together."""
        return BODIES_AT_ONCE * self.body_bytes

    @property
    def ledger_place(self) -> str:
        return self.ledger or str(self.state / "ledger.sqlite")


@lru_cache(maxsize=100)
def is_local(host: str) -> bool:
    """Whether an address can only be reached from this machine."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def make_private_folder(folder: Path) -> Path:
    """A folder that only its owner can look into."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder.chmod(0o700)
    return folder


def write_private(path: Path, data: bytes) -> None:
    """Write a small file that only its owner may read: it is there completely or not at all, even after a crash."""
    draft = path.with_name(path.name + ".draft")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except OSError:
        draft.unlink(missing_ok=True)
        raise
