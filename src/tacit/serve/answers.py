"""What the service answers: the shapes of its JSON, and the OpenAPI description of every route made from them.

The shapes describe; nothing is checked against them while the service runs, because a rewriting answer is put together
faster than it could be checked. The tests hold real answers against them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel, ConfigDict

from tacit.serve.errors import STATUS_CODES

JsonObject = dict[str, Any]


class Answer(BaseModel):
    model_config = ConfigDict(extra="forbid")


# Shapes ---------------------------------------------------------------------------------------------------------------


class ErrorFacts(Answer):
    """A code for programs and one sentence for people."""

    code: str
    message: str


class Refusal(Answer):
    """Every error looks like this."""

    error: ErrorFacts


class Draw(Answer):
    """The released texts; with `tokens`, each original token beside what it became."""

    texts: list[str]
    pieces: list[list[tuple[str, str]]] | None


class SpentBudget(Answer):
    """What it cost the key: no epsilon where none is proven for whole texts, nothing remaining without a limit."""

    epsilon: float | None
    delta: float | None
    remaining: float | None


class Rewritten(Answer):
    """Released texts and what was promised; the guarantees are privacy cards."""

    mechanism: str
    draws: list[Draw]
    units: list[int]
    spent: SpentBudget
    guarantee: JsonObject
    document_guarantee: JsonObject | None
    document_note: str | None
    plain: str


class EpsilonRange(Answer):
    default: float
    low: float
    high: float


class OptionFacts(Answer):
    name: str
    default: str | int | float | bool | None
    help: str
    choices: list[str]
    low: float | None
    high: float | None


class MechanismFacts(Answer):
    name: str
    title: str
    level: str
    notion: str
    unit: str
    paper: str
    summary: str
    available: bool
    why_not: str | None
    epsilon: EpsilonRange
    options: list[OptionFacts]


class Mechanisms(Answer):
    """All mechanisms, and the name of the usual one of each level."""

    default: dict[str, str]
    mechanisms: list[MechanismFacts]


class Calibrated(Answer):
    epsilon: float
    guarantee: JsonObject


class CurvePoint(Answer):
    """Shares of words: that change, and that the best attacker guesses (null where there is no closed law)."""

    epsilon: float
    changed: float
    guessed: float | None


class Curve(Answer):
    points: list[CurvePoint]
    how: str
    blind: float | None
    guessed_how: str | None


class AuditReport(BaseModel):
    """A report of findings, as `tacit audit` writes it."""

    model_config = ConfigDict(extra="allow")

    title: str
    light: str
    refuted: bool
    sections: list[JsonObject]


class JobFacts(Answer):
    id: str
    name: str
    format: str
    settings: JsonObject
    state: str
    rows: int
    units: int
    bytes_done: int
    total_bytes: int
    created: str
    expires: str
    error: str | None
    resumable: bool


class Jobs(Answer):
    jobs: list[JobFacts]


class ApartFacts(Answer):
    measure: str
    releases: int


class UnitSpent(Answer):
    unit: str
    epsilon: float
    delta: float
    releases: int


class KeySpent(Answer):
    """What is held against a limit, the same by the unit of the releases, and what no sum holds."""

    epsilon: float
    delta: float
    releases: int
    by_unit: list[UnitSpent]
    apart: list[ApartFacts]


class KeyLimit(Answer):
    epsilon: float
    delta: float


class KeyFacts(Answer):
    name: str
    spent: KeySpent
    limit: KeyLimit | None


class LimitFacts(Answer):
    kind: str
    dataset: str | None
    epsilon: float
    delta: float


class ReleaseFacts(Answer):
    id: int
    time: str
    dataset: str
    unit: str
    mechanism: str
    epsilon: float | None
    delta: float | None
    state: str


class Overview(Answer):
    """What a key has spent, its latest releases, and the limits that concern it."""

    dataset_limits: list[LimitFacts]
    key: KeyFacts
    releases: list[ReleaseFacts]


class ReportFacts(Answer):
    name: str
    title: str
    kind: str
    created: str
    url: str


class Reports(Answer):
    reports: list[ReportFacts]


class Health(Answer):
    status: str
    version: str
    ledger: str
    keys: str


# Routes ---------------------------------------------------------------------------------------------------------------

EVERYWHERE: Final = (401, 403, 429, 500, 503)
"""A wrong key, a foreign page, too many requests, our own mistake, a ledger or file of keys that cannot be used."""
WITH_BODY: Final = (400, 413, 415, 422)
TEXT: Final[JsonObject] = {"schema": {"type": "string"}}
BYTES: Final[JsonObject] = {"schema": {"type": "string", "format": "binary"}}
Responses = dict[int | str, dict[str, Any]]


def answers(
    model: type[BaseModel] | None = None,
    *statuses: int,
    ok: int = 200,
    media: Mapping[str, JsonObject] | None = None,
    common: tuple[int, ...] = EVERYWHERE,
) -> Responses:
    """The responses of a route: what it answers, and the refusals that can occur there."""
    good: JsonObject = {"description": "As asked for"}
    if model is not None:
        good["model"] = model
    if media is not None:
        good["content"] = dict(media)
    refusals: Responses = {
        status: {"model": Refusal, "description": STATUS_CODES[status].replace("_", " ").capitalize()}
        for status in sorted({*common, *statuses})
    }
    return {ok: good, **refusals}


SECURITY: Final[JsonObject] = {
    "bearer": {"type": "http", "scheme": "bearer", "description": "A key of 'tacit serve keys add'."},
    "key": {"type": "apiKey", "in": "header", "name": "X-API-Key", "description": "The same key."},
}
OPEN: Final = ("/healthz",)


def described(app: FastAPI) -> JsonObject:
    """The OpenAPI description. A service without keys asks for none, so keys are one of the ways in."""
    schema = get_openapi(title=app.title, version=app.version, summary=app.summary, routes=app.routes)
    components = schema.setdefault("components", {})
    components["securitySchemes"] = SECURITY
    for path, operations in schema["paths"].items():
        for operation in operations.values():
            if path not in OPEN:
                operation["security"] = [{"bearer": []}, {"key": []}, {}]
            _without_framework_errors(operation)
    for name in ("HTTPValidationError", "ValidationError"):
        components.get("schemas", {}).pop(name, None)
    return schema


def _without_framework_errors(operation: JsonObject) -> None:
    """The framework believes that it refuses parameters in its own form; ours are any text, and it never does."""
    refused = operation["responses"].get("422")
    if refused is not None and "HTTPValidationError" in str(refused):
        del operation["responses"]["422"]
