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


class ServiceError(Exception):
    """A refusal, ready to be sent. `cause` is an error whose own code and fields the client may see: its sentence is
    the message, so they hold nothing that the message does not say."""

    def __init__(
        self,
        status: int,
        message: str,
        code: str | None = None,
        retry_after: int | None = None,
        *,
        cause: TacitError | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code or STATUS_CODES[status]
        self.message = message
        self.retry_after = retry_after
        self.cause = cause

    @property
    def headers(self) -> dict[str, str]:
        headers = {} if self.retry_after is None else {"retry-after": str(self.retry_after)}
        return {**headers, "www-authenticate": "Bearer"} if self.status == 401 else headers

    def facts(self) -> dict[str, Any]:
        """The body of the answer: the code of the refusal, its sentence, and the code and fields of its cause."""
        cause = {} if self.cause is None else {"cause": self.cause.code, "fields": self.cause.plain_fields()}
        return {"code": self.code, "message": self.message, **cause}

    def body(self) -> bytes:
        return error_body(self.facts())


def error_body(facts: Mapping[str, Any]) -> bytes:
    return json.dumps({"error": facts}, ensure_ascii=False).encode("utf-8", "replace")


def as_service_error(error: Exception) -> ServiceError:
    """The answer to any error. An unforeseen error is named by its kind and place only: its
    message could quote the text."""
    if isinstance(error, ServiceError):
        return error
    if isinstance(error, BudgetExceededError):
        return ServiceError(403, budget_sentence(error), "budget_exceeded")
    if isinstance(error, WrongLedgerError | MissingLimitError | RolledBackError):
        return ServiceError(
            503,
            "what was spent cannot be looked up, because the ledger is missing, another one, an older one or without "
            "the limit of this key; nothing was released: ask the operator of the service to look at its log",
            "ledger",
            60,
        )
    if isinstance(error, LedgerError):
        return ServiceError(503, "the ledger cannot be used now, so nothing was released: try again", "ledger", 5)
    if isinstance(error, UnavailableError):
        return ServiceError(503, "the service cannot be used now: ask its operator to look at its log", retry_after=5)
    if isinstance(error, MissingExtraError):
        return ServiceError(503, error.rendered(HTTP), "not_installed", cause=error)
    if isinstance(error, NominalError):
        return ServiceError(403, error.rendered(HTTP), "nominal", cause=error)
    if isinstance(error, NoGuaranteeError):
        return ServiceError(422, error.rendered(HTTP), "no_guarantee", cause=error)
    if isinstance(error, BadParameterError | BadInputError):
        return ServiceError(422, error.rendered(HTTP), cause=error)
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return disk_full()
    if isinstance(error, MemoryError):
        return ServiceError(503, "out of memory: send fewer texts at a time", retry_after=5)
    if isinstance(error, TacitError):
        return ServiceError(500, error.rendered(HTTP), cause=error)
    return ServiceError(500, f"unexpected {place_of(error)}: nothing was released. Please report this")


def note(error: Exception) -> None:
    """The log tells the operator what is damaged, and of an error that we did not foresee its kind and place: neither
    quotes a text."""
    if isinstance(error, LedgerError | UnavailableError):
        log.error("%s", error)
    elif not isinstance(error, ServiceError | TacitError):
        log.error("unexpected %s", place_of(error))


def budget_sentence(error: BudgetExceededError) -> str:
    """The facts of a refusal for a key: numbers of its own account only. What documents, users and data sets have spent
    was spent by other keys as well, so about them the sentence is always the same."""
    if error.kind == OWN_KIND or not error.of_others:
        return str(error)
    kind = {"dataset": "data set"}.get(error.kind, error.kind)
    return (
        f"a limit that the operator has set per {kind} does not allow this release, so nothing of it was drawn: "
        "release less, or ask the operator"
    )


def disk_full() -> ServiceError:
    return ServiceError(507, "the disk of the service is full: ask its operator to free some space, then try again")
