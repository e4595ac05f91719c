"""`tacit mechanisms`: the list, one mechanism, and JSON for programs."""

from __future__ import annotations

import json

import pytest

from tacit.catalog import DEFAULT_MECHANISM, mechanism_names
from tacit.cli.main import run


def test_the_list_names_all(capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["mechanisms"]) == 0
    out = capfd.readouterr().out
    assert "notion" in out
    for name in mechanism_names():
        assert any(line.split()[:1] == [name] for line in out.splitlines())
    assert "model needed" in out
    assert "masked language model (give one)" in out
    assert "(the default)" in " ".join(out.split())


@pytest.mark.parametrize("name", mechanism_names())
def test_each_can_be_explained(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["mechanisms", name]) == 0
    out = capfd.readouterr().out
    assert f"({name})" in out
    assert "epsilon" in out
    assert "seed" not in [line.split()[0] for line in out.splitlines() if line.split()]


def test_json(capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["mechanisms", "--json"]) == 0
    listed = json.loads(capfd.readouterr().out)
    assert [item["name"] for item in listed] == [*mechanism_names(), *mechanism_names(vectors=True)]
    assert all({"notion", "unit", "needs", "paper", "summary", "parameters"} <= set(item) for item in listed)
    assert run(["mechanisms", DEFAULT_MECHANISM, "--json"]) == 0
    description = json.loads(capfd.readouterr().out)
    assert description in listed
    epsilon = {
        "name": "epsilon",
        "type": "float",
        "default": None,
        "required": True,
        "meaning": "the budget of one token",
        "choices": [],
        "low": None,
        "high": None,
    }
    assert epsilon in description["parameters"]
    unexplained = [
        (item["name"], each["name"]) for item in listed for each in item["parameters"] if not each["meaning"]
    ]
    assert not unexplained, "every parameter has a line in the docstring of its class"


def test_unknown_name(capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["mechanisms", "santex"]) == 2
    assert "did you mean 'santext'" in capfd.readouterr().err
