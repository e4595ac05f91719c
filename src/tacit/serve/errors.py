"""Every refusal as JSON: a status, a code for programs, one sentence for people, and never a word of private text."""

from __future__ import annotations

import errno
import json
import logging
from collections.abc import Mapping
from typing import Any, Final

from tacit.account.ledger import BudgetExceededError, LedgerError, MissingLimitError, RolledBackError
from tacit.errors import (
    BadInputError,
    BadParameterError,
    MissingExtraError,
    NoGuaranteeError,
    NominalError,
    TacitError,
    place_of,
)

log = logging.getLogger("tacit.serve")

OWN_KIND: Final = "key"
"""The kind of subject in the ledger that is the caller himself."""
STATUS_CODES: Mapping[int, str] = {
    400: "bad_request",
    401: "wrong_key",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    409: "conflict",
    413: "too_large",
    415: "wrong_content_type",
    422: "bad_parameter",
    429: "too_many_requests",
    500: "internal",
    503: "unavailable",
    507: "disk_full",
}
"""The code of a status, where an error names none of its own."""


class HttpNaming:
    """Options as fields of a request: `'columns'`, `'user_mode': concatenate`."""

    def name(self, option: str) -> str:
        return f"'{option}'"

    def with_value(self, option: str, value: str) -> str:
        return f"'{option}': {value}"


HTTP: Final = HttpNaming()


class UnavailableError(BadInputError):
    """A file of the service itself cannot be used. Its operator reads why in the log; a client learns no more than that
    it is so."""


class WrongLedgerError(UnavailableError):
    """The ledger that counts is not the one that is there, so nobody knows what was spent."""


class RequestError(TacitError):
    """A request that the service refuses by itself, before any job sees it. Its fields hold no private text."""


class ServiceError(Exception):
    """A refusal, ready to be sent: a status, a code for the kind of refusal, and the cause, whose sentence is the
    message. The client sees its code and fields too, so they hold nothing that the sentence does not say."""

    def __init__(self, status: int, cause: TacitError, code: str | None = None, retry_after: int | None = None) -> None:
        self.message = cause.rendered(HTTP)
        super().__init__(self.message)
        self.status = status
        self.code = code or STATUS_CODES.get(status, "bad_request")
        self.retry_after = retry_after
        self.cause = cause

    @property
    def headers(self) -> dict[str, str]:
        headers = {} if self.retry_after is None else {"retry-after": str(self.retry_after)}
        return {**headers, "www-authenticate": "Bearer"} if self.status == 401 else headers

    def facts(self) -> dict[str, Any]:
        """The body of the answer: the code of the refusal, its sentence, and the code and fields of its cause."""
        return {
            "code": self.code,
            "message": self.message,
            "cause": self.cause.code,
            "fields": self.cause.plain_fields(),
        }

    def body(self) -> bytes:
        return json.dumps({"error": self.facts()}, ensure_ascii=False).encode("utf-8", "replace")


def as_service_error(error: Exception) -> ServiceError:
    """The answer to any error. An unforeseen error is named by its kind and place only: its
    message could quote the text."""
    if isinstance(error, ServiceError):
        return error
    if isinstance(error, BudgetExceededError):
        return ServiceError(403, budget_cause(error), "budget_exceeded")
    if isinstance(error, WrongLedgerError | MissingLimitError | RolledBackError):
        cause = RequestError(
            "spending-unknown",
            "what was spent cannot be looked up, because the ledger is missing, another one, an older one or without "
            "the limit of this key; nothing was released: ask the operator of the service to look at its log",
        )
        return ServiceError(503, cause, "ledger", 60)
    if isinstance(error, LedgerError):
        cause = RequestError("ledger-unusable", "the ledger cannot be used now, so nothing was released: try again")
        return ServiceError(503, cause, "ledger", 5)
    if isinstance(error, UnavailableError):
        cause = RequestError("service-unusable", "the service cannot be used now: ask its operator to look at its log")
        return ServiceError(503, cause, retry_after=5)
    if isinstance(error, MissingExtraError):
        return ServiceError(503, error, "not_installed")
    if isinstance(error, NominalError):
        return ServiceError(403, error, "nominal")
    if isinstance(error, NoGuaranteeError):
        return ServiceError(422, error, "no_guarantee")
    if isinstance(error, BadParameterError | BadInputError | RequestError):
        return ServiceError(422, error)
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return disk_full()
    if isinstance(error, MemoryError):
        cause = RequestError("out-of-memory", "out of memory: send fewer texts at a time")
        return ServiceError(503, cause, retry_after=5)
    if isinstance(error, TacitError):
        return ServiceError(500, error)
    cause = RequestError(
        "unexpected", "unexpected {place}: nothing was released. Please report this", place=place_of(error)
    )
    return ServiceError(500, cause)


def note(error: Exception) -> None:
    """The log tells the operator what is damaged, and of an error that we did not foresee its kind and place: neither
    quotes a text."""
    if isinstance(error, LedgerError | UnavailableError):
        log.error("%s", error)
    elif not isinstance(error, ServiceError | TacitError):
        log.error("unexpected %s", place_of(error))


def budget_cause(error: BudgetExceededError) -> TacitError:
    """The cause of a refusal for a key: with numbers of its own account only. What documents, users and data sets have
    spent was spent by other keys as well, so about them the sentence is always the same."""
    if error.kind == OWN_KIND or not error.of_others:
        return error
    return RequestError(
        "limit-of-operator",
        "a limit that the operator has set per {kind} does not allow this release, so nothing of it was drawn: "
        "release less, or ask the operator",
        kind={"dataset": "data set"}.get(error.kind, error.kind),
    )


def unpacks_too_large(most: int, row: int) -> BadInputError:
    """The error of an upload that holds more text than a job of this service may."""
    return BadInputError(
        "file-unpacks-too-large",
        "the file unpacks to more than {most:,} characters at row {row:,}: send it in smaller parts, or ask the "
        "operator of the service",
        most=most,
        row=row,
    )


def disk_full() -> ServiceError:
    return ServiceError(
        507,
        RequestError(
            "disk-full", "the disk of the service is full: ask its operator to free some space, then try again"
        ),
    )


def service_busy(retry_after: int = 1) -> ServiceError:
    cause = RequestError("service-busy", "the service is busy: try again in a moment")
    return ServiceError(503, cause, "busy", retry_after)
