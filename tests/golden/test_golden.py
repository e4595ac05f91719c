"""Options, routes, released bytes and cards are those of the golden files, or the change of a file is reviewed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.golden.surface import FOLDER, PARTS


@pytest.mark.parametrize("part", PARTS)
def test_what_users_rely_on_is_unchanged(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if part == "service":
        pytest.importorskip("fastapi")
        monkeypatch.setenv("TACIT_LEDGER_KEY", "a key for tests, nothing more")
    golden: dict[str, Any] = json.loads((FOLDER / f"{part}.json").read_text())
    now = json.loads(json.dumps(PARTS[part]()))
    assert sorted(now) == sorted(golden), "run `python -m tests.golden.surface` if this change is wanted"
    for name in golden:
        assert now[name] == golden[name], f"{name}: run `python -m tests.golden.surface` if this change is wanted"
