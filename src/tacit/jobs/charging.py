"""The budget of a job that makes one release: set aside before the noise, and spent when the release is there.

A run that may go on after a crash keeps the name under which it was charged, and what it was charged, in a file of its
private folder (`KeptCharge`): whenever it goes on the same charge is asked for again, and the ledger counts it once.
"""

from __future__ import annotations

import contextlib
import json
import secrets
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from tacit.account.ledger import Reservation, Subject, open_ledger
from tacit.account.release_charge import ReleaseCharge
from tacit.atomic import write_file
from tacit.errors import BadInputError, BadParameterError, TacitWarning
from tacit.guarantee import Guarantee
from tacit.jobs.config import file_name
from tacit.text.files.memory import is_in_memory, is_standard_input

CHARGE_FILE: Final = "charge.json"


class ChargedConfig(Protocol):
    """The options that say what is charged, and where."""

    @property
    def ledger(self) -> str | None: ...
    @property
    def dataset(self) -> str | None: ...


class ChargedData(ChargedConfig, Protocol):
    """A configuration whose private rows are its data."""

    @property
    def data(self) -> object: ...


def check_name_for_ledger(config: ChargedData) -> None:
    """Refuse rows that a ledger could not name, and a name without a ledger."""
    check_name_of_rows(config, config.data)


def check_name_of_rows(config: ChargedConfig, rows: object) -> None:
    """The same for private rows that are not the data of a configuration."""
    if config.ledger is None and config.dataset is not None:
        raise BadParameterError("no-ledger", "{option.dataset} is for a ledger: name it with {option.ledger[FILE]}")
    unnamed = is_in_memory(rows) or is_standard_input(rows)
    if config.ledger is not None and config.dataset is None and unnamed:
        raise BadParameterError(
            "dataset-without-name", "these rows have no name for the ledger: give one with {option.dataset[NAME]}"
        )


def check_something_is_spent(config: ChargedConfig, *, spends: bool) -> None:
    """Refuse a ledger where nothing is spent: whoever gives one counts on an entry."""
    if config.ledger is not None and not spends:
        raise BadParameterError(
            "needless-ledger",
            "nothing is spent on what is public, released or trained already: leave {option.ledger} out",
        )


@dataclass(frozen=True)
class KeptCharge:
    """The name of a run in the ledger, and its promise as it was charged first."""

    token: str
    promise: Guarantee

    @classmethod
    def of_run(cls, folder: Path, promised: Guarantee) -> KeptCharge:
        """The charge that the private folder of a run holds; a new one, written down there, where it has none."""
        place = folder / CHARGE_FILE
        if not place.exists():
            kept = {"token": secrets.token_hex(16), "promise": promised.to_dict()}
            write_file(place, json.dumps(kept).encode(), private=True)
        try:
            read = json.loads(place.read_text(encoding="utf-8"))
            return cls(str(read["token"]), Guarantee.from_dict(read["promise"]))
        except (ValueError, KeyError, TypeError) as error:
            raise BadInputError(
                "unreadable-charge",
                "'{path}' cannot be read, so nobody knows what this run was charged: start anew in another folder",
                path=place,
            ) from error


@contextlib.contextmanager
def charging(config: ChargedData, command: str, token: str | None = None) -> Iterator[ReleaseCharge]:
    """The charge of one release about a data set; it costs nothing where no ledger is named.

    token   names a run that may go on after a crash: the same token is charged once
    """
    with charging_rows(config, config.data, command, token) as charge:
        yield charge


@contextlib.contextmanager
def charging_rows(
    config: ChargedConfig, rows: object, command: str, token: str | None = None, kept_in: Path | None = None
) -> Iterator[ReleaseCharge]:
    """The charge of one release about some private rows.

    kept_in   the private folder of a run that may go on after a crash, which keeps its charge there
    """
    if config.ledger is None:
        yield ReleaseCharge()
        return
    dataset = config.dataset or file_name(str(rows))
    reserved: list[Reservation] = []
    with open_ledger(config.ledger) as ledger:
        if ledger.making is not None:
            warnings.warn(TacitWarning(ledger.making), stacklevel=5)

        def reserve(promised: Guarantee) -> None:
            kept = None if kept_in is None else KeptCharge.of_run(kept_in, promised)
            reserved.append(
                ledger.reserve(
                    promised if kept is None else kept.promise,
                    dataset=dataset,
                    subjects=[Subject("dataset", dataset, 1)],
                    token=(token or secrets.token_hex(16)) if kept is None else kept.token,
                    command=command,
                )
            )

        def commit() -> None:
            for each in reserved:
                each.commit()

        yield ReleaseCharge(reserve, commit)
