"""Facts that a release shows anyway: its counts, columns and names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class ReleaseFacts:
    """Facts that a release shows anyway: counts of the output, never anything of the input that the output hides.

    `digest` is the SHA-256 of the output (text/digest.py), by which a card knows its own file; empty where there is no
    file. `configuration` holds the options that decided the release, by name (`Config.identity`).
    """

    rows: int
    documents: int
    units: int
    longest_document: int
    longest_row: int
    columns: tuple[str, ...] = ()
    kept_columns: tuple[str, ...] = ()
    randomized_columns: tuple[str, ...] = ()
    dropped_columns: int = 0
    output: str = ""
    command: str = ""
    created: str = ""
    digest: str = ""
    configuration: Mapping[str, Any] = field(default_factory=dict)
