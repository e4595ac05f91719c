"""How a service is set up. Everything has a default that is safe on one machine, without keys."""

from __future__ import annotations

import ipaddress
import os
from functools import lru_cache
from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import BeforeValidator, Field

from tacit.atomic import write_file
from tacit.errors import BadParameterError
from tacit.jobs.config import Config, Group, Option, Varied
from tacit.jobs.fields import Ledger, RefuseNominal
from tacit.needs import SERVICE, Ability, needs_of_ledger

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


def _name_and_value(pair: object) -> object:
    """`vectors=FILE` as a name and a value; pairs as they are."""
    if not isinstance(pair, str):
        return pair
    name, equals, value = pair.partition("=")
    if not equals or not name or not value:
        raise BadParameterError(
            "not-name-and-value", "write an allowed option as {option.allow[vectors=FILE]}, not '{pair}'", pair=pair
        )
    return name.replace("-", "_"), value


StateFolder = Annotated[
    Path, Field(description="Folder of keys, jobs and ledger. Default: TACIT_STATE or your own."), Option(Group.DATA)
]
LedgerPlace = Annotated[
    Ledger,
    Field(description="File or postgresql:// URL of the ledger; by default in the state folder."),
    Varied(group=Group.DATA, metavar=None),
]


class ServiceState(Config):
    """Where a service keeps its keys and jobs; only its owner may read them."""

    job: ClassVar[str] = "service state"

    state: StateFolder = Field(default_factory=default_state)

    def needs(self) -> list[Ability]:
        return [SERVICE]


class ServicePlace(ServiceState):
    """The same, and where spent budget is written down."""

    job: ClassVar[str] = "service place"

    ledger: LedgerPlace = None

    def needs(self) -> list[Ability]:
        return [*super().needs(), *needs_of_ledger(self.ledger)]

    @property
    def ledger_place(self) -> str:
        return self.ledger or str(self.state / "ledger.sqlite")


class ServiceSettings(ServicePlace):
    """How a service is reached, what it keeps, and what nobody may ask more of."""

    job: ClassVar[str] = "serve"

    host: Annotated[
        str, Field(description="Address to listen on; beyond this machine only with keys."), Option(Group.RUN)
    ] = "127.0.0.1"
    port: Annotated[
        int, Field(ge=0, le=65535, description="Port to listen on; 0 takes a free one."), Option(Group.RUN)
    ] = 8000
    hosts: Annotated[
        tuple[str, ...],
        Field(description="A further name under which the service is reached (the Host header of a request)."),
        Option(Group.RUN, name="allow_host", metavar="NAME"),
    ] = ()
    reports: Annotated[Path | None, Field(description="Folder of HTML reports to show."), Option(Group.DATA)] = None
    operators: Annotated[
        tuple[str, ...],
        Field(description="A key that may read /metrics, which counts all keys."),
        Option(Group.PRIVACY, metavar="NAME"),
    ] = ()
    refuse_nominal: Annotated[
        RefuseNominal[bool],
        Field(
            description="Refuse everybody's releases whose formal bound no longer protects; a key may have the same "
            "rule of its own."
        ),
        Varied(variable="TACIT_REFUSE_NOMINAL"),
    ] = False
    allowed: Annotated[
        tuple[Annotated[tuple[str, str], BeforeValidator(_name_and_value)], ...],
        Field(description="An option value beyond the built-in ones that requests may use, such as vectors=FILE."),
        Option(Group.PRIVACY, name="allow", metavar="OPTION=VALUE"),
    ] = ()
    keep_hours: Annotated[
        Hours, Field(description="Hours until the files of a job are deleted."), Option(Group.RUN)
    ] = 24.0
    body_bytes: Annotated[
        Positive,
        Field(description="Largest JSON body in megabytes."),
        Option(Group.RUN, name="body_mb", scale=MEGABYTE),
    ] = 10 * MEGABYTE
    upload_bytes: Annotated[
        Positive,
        Field(description="Largest uploaded file in megabytes."),
        Option(Group.RUN, name="upload_mb", scale=MEGABYTE),
    ] = 1_000 * MEGABYTE
    texts: Annotated[Positive, Field(description="Most texts in one request, counting draws."), Option(Group.RUN)] = (
        10_000
    )
    text_characters: Annotated[
        Positive,
        Field(description="Most characters of one text in a request; longer ones go into a job."),
        Option(Group.RUN),
    ] = 100_000
    waiting: Annotated[
        Positive,
        Field(description="Most requests that wait for their turn; one key has at most half of the places."),
        Option(Group.RUN),
    ] = 256
    connections: Annotated[
        Positive,
        Field(
            description="Most connections at the same time; half of them may be of strangers, who have shown no key."
        ),
        Option(Group.RUN),
    ] = 2_000
    connections_per_address: Annotated[
        Positive,
        Field(description="Most of them from one address; behind a proxy all come from one."),
        Option(Group.RUN),
    ] = 500
    requests_per_key: Annotated[
        Positive, Field(description="Most requests of one key that are open at the same time."), Option(Group.RUN)
    ] = 128
    timeout: Annotated[Seconds, Field(description="Seconds until a request is given up."), Option(Group.RUN)] = 60.0
    mechanisms: Annotated[
        Positive, Field(description="How many prepared mechanisms are kept in memory."), Option(Group.RUN)
    ] = 12
    threads: Annotated[
        Positive, Field(description="How many batches are worked on at the same time."), Option(Group.RUN)
    ] = 2
    jobs: Annotated[
        Positive, Field(description="Jobs at the same time; one key has at most all places but one."), Option(Group.RUN)
    ] = 2
    job_workers: Annotated[
        Positive, Field(description="Processes that rewrite a job; 1 is that of the job itself."), Option(Group.RUN)
    ] = 1
    job_memory: Annotated[
        Positive,
        Field(description="Memory that a process of a job may use, in megabytes."),
        Option(Group.RUN, name="job_memory_mb", scale=MEGABYTE),
    ] = 4_000 * MEGABYTE
    unpacked: Annotated[
        Positive,
        Field(description="Most characters of text in an upload, unpacked, in millions."),
        Option(Group.RUN, name="unpacked_mb", scale=MEGABYTE),
    ] = 10_000 * MEGABYTE

    @property
    def bodies_bytes(self) -> int:
        """Most bytes of JSON bodies in memory, of all requests together."""
        return BODIES_AT_ONCE * self.body_bytes


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
    write_file(path, data, private=True)
