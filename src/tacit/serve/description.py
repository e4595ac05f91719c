"""The OpenAPI description of the service, made from its routes and the shapes of its answers."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from typing import Any, Final

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from pydantic.json_schema import models_json_schema
from starlette.routing import BaseRoute

from tacit.serve.answers import Answer, Refusal
from tacit.serve.errors import STATUS_CODES
from tacit.serve.messages import Message

Description = dict[str, Any]
"""A part of an OpenAPI document, which nests as its standard says."""

EVERYWHERE: Final = (401, 403, 429, 500, 503)
"""A wrong key, a foreign page, too many requests, our own mistake, a ledger or file of keys that cannot be used."""
WITH_BODY: Final = (400, 413, 415, 422)
TEXT: Final[Description] = {"schema": {"type": "string"}}
BYTES: Final[Description] = {"schema": {"type": "string", "format": "binary"}}
PLACE: Final = "#/components/schemas/{model}"
REFUSED: Final[Mapping[str, Description]] = {
    "application/json": {"schema": {"$ref": PLACE.format(model=Refusal.__name__)}}
}
"""The form of all refusals. The framework would make a validator of it for every status of every route."""
Responses = dict[int | str, Description]


def answers(
    model: type[Answer] | None = None,
    *statuses: int,
    ok: int = 200,
    media: Mapping[str, Description] | None = None,
    common: tuple[int, ...] = EVERYWHERE,
) -> Responses:
    """The responses of a route: what it answers, and the refusals that can occur there."""
    good: Description = {"description": "As asked for"}
    if model is not None:
        good["model"] = model
    if media is not None:
        good["content"] = dict(media)
    refusals: Responses = {
        status: {"description": STATUS_CODES[status].replace("_", " ").capitalize(), "content": REFUSED}
        for status in sorted({*common, *statuses})
    }
    return {ok: good, **refusals}


SECURITY: Final[Description] = {
    "bearer": {"type": "http", "scheme": "bearer", "description": "A key of 'tacit serve keys add'."},
    "key": {"type": "apiKey", "in": "header", "name": "X-API-Key", "description": "The same key."},
}
OPEN: Final = ("/healthz",)


def described(app: FastAPI) -> Description:
    """The OpenAPI description. A service without keys asks for none, so keys are one of the ways in."""
    routes = [_without_head(route) for route in app.routes]
    schema = get_openapi(title=app.title, version=app.version, summary=app.summary, routes=routes)
    components = schema.setdefault("components", {})
    components["securitySchemes"] = SECURITY
    for path, operations in schema["paths"].items():
        for operation in operations.values():
            if path not in OPEN:
                operation["security"] = [{"bearer": []}, {"key": []}, {}]
            _without_framework_errors(operation)
    schemas = components.setdefault("schemas", {})
    _, refusals = models_json_schema([(Refusal, "serialization")], ref_template=PLACE)
    schemas.update(refusals["$defs"])
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    return schema


def _without_head(route: BaseRoute) -> BaseRoute:
    """A route without the method HEAD, which every route for GET has: it would be listed twice."""
    if not isinstance(route, APIRoute):
        return route
    listed = copy(route)
    listed.methods = {*(route.methods or ())} - {"HEAD"}
    return listed


def _without_framework_errors(operation: Description) -> None:
    """The framework believes that it refuses parameters in its own form; ours are any text, and it never does."""
    refused = operation["responses"].get("422")
    if refused is not None and "HTTPValidationError" in str(refused):
        del operation["responses"]["422"]


def body_of(kind: type[Message]) -> Description:
    """The description of a JSON body."""
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": kind.model_json_schema()}}}}


def upload_body(settings: type[Message]) -> Description:
    """The description of the form of a job with these settings."""
    properties = {"file": {"type": "string", "format": "binary"}, "settings": settings.model_json_schema()}
    schema = {"type": "object", "required": ["file", "settings"], "properties": properties}
    encoding = {"settings": {"contentType": "application/json"}}
    content = {"multipart/form-data": {"schema": schema, "encoding": encoding}}
    return {"requestBody": {"required": True, "content": content}}
