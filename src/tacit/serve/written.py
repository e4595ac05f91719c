"""JSON that is written once and sent many times.

The guarantees of an answer are some kilobytes and the same for most answers of a mechanism; writing them anew for each
would take longer than rewriting a short text. The library that writes JSON cannot take a piece that is written already,
so the two pieces of an object are joined here, and nowhere else.
"""

from __future__ import annotations

import json
from collections.abc import Mapping


def written(value: object) -> bytes:
    """A value as JSON in UTF-8."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode("utf-8")


class WrittenFields:
    """The last fields of JSON objects, written once.

    >>> WrittenFields({"b": [2]}).after({"a": 1})
    b'{"a":1,"b":[2]}'
    """

    def __init__(self, fields: Mapping[str, object]) -> None:
        assert fields, "an object without further fields needs no joining"
        self._end = b"," + written(fields)[1:]

    def after(self, fields: Mapping[str, object]) -> bytes:
        """One JSON object: these fields, then the written ones."""
        assert fields, "the written fields stand behind others"
        return written(fields)[:-1] + self._end
