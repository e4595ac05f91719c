"""Canaries with their coins in a file, one JSON object a line."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from tacit.auditing.models.canaries import Canary
from tacit.errors import BadInputError
from tacit.places import refuse_existing
from tacit.report.parts import put


def save_canaries(canaries: Sequence[Canary], path: str | Path, *, force: bool = False) -> None:
    """One JSON object a line. The file says which coins fell how: keep it from people who train or guess. Only its
    owner can read it."""
    target = Path(path)
    refuse_existing(target, force=force)
    lines = (json.dumps(_as_json(canary)) for canary in canaries)
    put(target, "".join(f"{line}\n" for line in lines), private=True)


def _as_json(canary: Canary) -> dict[str, object]:
    row: dict[str, object] = {"text": canary.text, "format": canary.pattern, "repeats": canary.repeats,
                              "included": canary.included}  # fmt: skip
    more = {"prefix": canary.prefix, "label": canary.label}
    return {**row, **{name: value for name, value in more.items() if value}}


def load_canaries(path: str | Path) -> list[Canary]:
    canaries = []
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise BadInputError(
            "unreadable-canaries", "the canaries '{path}' cannot be read: check the path", path=path
        ) from error
    for number, line in enumerate(lines, start=1):
        try:
            row = json.loads(line)
            if not isinstance(row["included"], bool) or int(row["repeats"]) < 1:
                raise ValueError
            label = row.get("label")
            canaries.append(
                Canary(
                    str(row["text"]), str(row["format"]), int(row["repeats"]), row["included"],
                    str(row.get("prefix", "")), None if label is None else str(label),
                )
            )  # fmt: skip
            if not canaries[-1].text.startswith(canaries[-1].prefix):
                raise ValueError
        except (ValueError, KeyError, TypeError):
            raise BadInputError(
                "not-a-canary",
                "line {number} of the canaries is not one: it needs text, format, repeats and included, as 'tacit "
                "audit canaries' writes them",
                number=number,
            ) from None
    if len({canary.text for canary in canaries}) < len(canaries):
        raise BadInputError("canary-twice", "a canary stands in the file twice: its coin would be counted twice")
    if not any(canary.included for canary in canaries) or all(canary.included for canary in canaries):
        raise BadInputError(
            "canaries-on-one-side", "the canaries need some that were included and some that were left out"
        )
    return canaries
