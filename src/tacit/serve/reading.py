"""JSON bodies, read no further than the first thing that does not belong.

Ten megabytes can hold five million values. The usual way makes objects of all of them before anything is checked, and
lists what is wrong with each: gigabytes of memory, and a minute in which no other request moves. All our messages have
the same form, an object whose fields are values, lists of values or objects of values, so a large body is read value by
value, and whatever has another form, an unknown field or too many values ends it there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection
from typing import Final, NoReturn

from tacit.serve.errors import RequestError, ServiceError

READ_AT_ONCE: Final = 64_000
"""Bytes that are few enough to be read in one step: some milliseconds at most."""
MOST_VALUES: Final = 1_000
"""Values of one field, unless a route takes more."""

_SPACE: Final = re.compile(r"[ \t\n\r]*")
_DECODER: Final = json.JSONDecoder()


def read_object(data: bytes, known: Collection[str], most_values: int = MOST_VALUES) -> dict[str, object]:
    """The one JSON object of a body, with fields of these names only."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        raise ServiceError(
            400, RequestError("body-not-utf-8", "the body is not UTF-8: encode it as UTF-8"), "bad_encoding"
        ) from None
    try:
        content = json.loads(text) if len(data) <= READ_AT_ONCE else _LargeBody(text, known, most_values).content()
    except (ValueError, RecursionError):
        raise ServiceError(
            400, RequestError("body-not-json", "the body is not JSON: send one JSON object"), "bad_json"
        ) from None
    if not isinstance(content, dict):
        raise _no_object()
    for name, value in content.items():
        if name not in known:
            _refuse_name(known)
        if isinstance(value, list | dict) and len(value) > most_values:
            _refuse_count(name, most_values)
    return content


def _no_object() -> ServiceError:
    return ServiceError(400, RequestError("body-not-an-object", "the body must be one JSON object"), "bad_json")


def bad_field(field: object, reason: str) -> RequestError:
    """The error for a field of a request whose value does not fit."""
    return RequestError("bad-field", "the field '{field}' is not right: {reason}", field=field, reason=reason)


def unknown_field(known: Collection[str]) -> RequestError:
    """A field that a message of these fields does not have; its name could be the client's text and is not quoted."""
    return RequestError(
        "unknown-field", "there is a field that is not known: the fields are {known}", known=", ".join(known)
    )


def _refuse_name(known: Collection[str]) -> NoReturn:
    raise ServiceError(422, unknown_field(known))


def _refuse_count(name: str, most: int) -> NoReturn:
    raise ServiceError(
        413,
        RequestError(
            "too-many-values",
            "the field '{field}' holds more than {most:,} values: send fewer at a time",
            field=name,
            most=most,
        ),
    )


class _LargeBody:
    """A cursor over a long text. Mistakes of JSON are `ValueError`s."""

    def __init__(self, text: str, known: Collection[str], most_values: int) -> None:
        self._text = text
        self._known = known
        self._most = most_values
        self._place = 0

    def content(self) -> dict[str, object]:
        if self._ahead() != "{":
            raise _no_object()
        content: dict[str, object] = {}

        def field() -> None:
            name = self._name()
            if name not in self._known:
                _refuse_name(self._known)
            content[name] = self._field(name)

        self._each("}", field)
        if self._ahead():
            raise ValueError
        return content

    def _field(self, name: str) -> object:
        """A value, a list of values, or an object of values."""
        values: list[object] = []
        pairs: dict[str, object] = {}

        def item() -> None:
            values.append(self._value(name))
            if len(values) > self._most:
                _refuse_count(name, self._most)

        def pair() -> None:
            key = self._name()
            pairs[key] = self._value(name)
            if len(pairs) > self._most:
                _refuse_count(name, self._most)

        opening = self._ahead()
        if opening == "[":
            self._each("]", item)
            return values
        if opening == "{":
            self._each("}", pair)
            return pairs
        return self._value(name)

    def _value(self, name: str) -> object:
        if self._ahead() in ("[", "{"):
            raise ServiceError(422, bad_field(name, "it holds a list or an object where a value belongs"))
        value: object
        value, self._place = _DECODER.raw_decode(self._text, self._place)
        return value

    def _name(self) -> str:
        if self._ahead() != '"':
            raise ValueError
        name, self._place = _DECODER.raw_decode(self._text, self._place)
        self._expect(":")
        return str(name)

    def _each(self, closing: str, read: Callable[[], None]) -> None:
        """Read what stands between the bracket at the cursor and the one that closes it."""
        self._place += 1
        if self._ahead() == closing:
            self._place += 1
            return
        while True:
            read()
            if self._ahead() == closing:
                self._place += 1
                return
            self._expect(",")

    def _expect(self, sign: str) -> None:
        if self._ahead() != sign:
            raise ValueError
        self._place += 1

    def _ahead(self) -> str:
        """The next character that is not white space, under the cursor; empty at the end."""
        space = _SPACE.match(self._text, self._place)
        assert space is not None
        self._place = space.end()
        return self._text[self._place : self._place + 1]
