"""Results of the workers of a cluster, and the batches of Ray Data in which they travel.

Nothing raises in a worker: an error is an outcome as well, because what Ray sees of an error it writes into its logs.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypedDict

from tacit.engines.cluster.staging import Done
from tacit.engines.workers import portable
from tacit.errors import TacitError


@dataclass(frozen=True)
class FileEnd:
    """A file was read to its end: how many parts it has, and how many rows were left out."""

    file: int
    parts: int
    left_out: int


@dataclass(frozen=True)
class PartDone:
    """A part is committed, for which so many bytes of its file were read."""

    done: Done
    bytes_read: int


PartOutcome = FileEnd | PartDone | TacitError


def packed(outcome: PartOutcome) -> bytes:
    """An outcome for the way through Ray."""
    return pickle.dumps(portable(outcome) if isinstance(outcome, TacitError) else outcome)


def unpacked(data: bytes) -> PartOutcome:
    outcome = pickle.loads(data)
    assert isinstance(outcome, PartOutcome)
    return outcome


def in_file(error: TacitError, file: str) -> TacitError:
    """The same error; the name of the file stands before its sentence."""
    located = TacitError(error.code, f"{{in_file}}: {error.sentence}", **error.plain_fields(), in_file=file)
    located.exit_code = error.exit_code
    return located


class FileRow(TypedDict):
    """A file to read: its number, and as JSON the digests of the parts of it that are finished, by name."""

    file: int
    url: str
    size: int
    done: str


class FileBatch(TypedDict):
    """Rows of files as Ray Data hands them out, column by column."""

    file: Sequence[int]
    url: Sequence[str]
    size: Sequence[int]
    done: Sequence[str]


class PartBatch(TypedDict):
    """Parts to rewrite; where the number of a part is `END`, what became of the reading of a file."""

    file: list[int]
    part: list[int]
    payload: list[bytes]


class OutcomeBatch(TypedDict):
    """The outcomes of parts and files."""

    outcome: list[bytes]
