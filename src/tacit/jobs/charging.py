"""The budget of a job that makes one release: set aside before the noise, and spent when the release is there."""

from __future__ import annotations

import contextlib
import secrets
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from tacit.account.ledger import Reservation, Subject, open_ledger
from tacit.errors import BadParameterError, TacitWarning
from tacit.guarantee import Guarantee
from tacit.jobs.config import file_name
from tacit.text.files.memory import is_in_memory, is_standard_input


@dataclass
class ReleaseCharge:
    """The budget, set aside before the noise is drawn (`reserve` may refuse), and spent when the release is there."""

    reserve: Callable[[Guarantee], None]
    commit: Callable[[], None]


class ChargedConfig(Protocol):
    """The options that say what is charged, and where."""

    @property
    def data(self) -> Any: ...
    @property
    def ledger(self) -> str | None: ...
    @property
    def dataset(self) -> str | None: ...


def check_name_for_ledger(config: ChargedConfig) -> None:
    """Refuse rows that a ledger could not name, and a name without a ledger."""
    if config.ledger is None and config.dataset is not None:
        raise BadParameterError("no-ledger", "{option.dataset} is for a ledger: name it with {option.ledger[FILE]}")
    unnamed = is_in_memory(config.data) or is_standard_input(config.data)
    if config.ledger is not None and config.dataset is None and unnamed:
        raise BadParameterError(
            "dataset-without-name", "these rows have no name for the ledger: give one with {option.dataset[NAME]}"
        )


@contextlib.contextmanager
def charging(config: ChargedConfig, command: str, token: str | None = None) -> Iterator[ReleaseCharge]:
    """The charge of one release about a data set; it costs nothing where no ledger is named.

    token   names a run that may go on after a crash: the same token is charged once
    """
    if config.ledger is None:
        yield ReleaseCharge(lambda promised: None, lambda: None)
        return
    dataset = config.dataset or file_name(str(config.data))
    reserved: list[Reservation] = []
    with open_ledger(config.ledger) as ledger:
        if ledger.making is not None:
            warnings.warn(TacitWarning(ledger.making), stacklevel=4)

        def reserve(promised: Guarantee) -> None:
            reserved.append(
                ledger.reserve(
                    promised,
                    dataset=dataset,
                    subjects=[Subject("dataset", dataset, 1)],
                    token=token or secrets.token_hex(16),
                    command=command,
                )
            )

        def commit() -> None:
            for each in reserved:
                each.commit()

        yield ReleaseCharge(reserve, commit)
