"""Audits from Python, on data in memory and on files: what is given decides which one it is."""

from __future__ import annotations

import doctest
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

import tacit
from tacit.errors import BadInputError, BadParameterError
from tacit.jobs import audit as audits
from tacit.jobs.audit import audit, mechanism, model, text
from tacit.jobs.audit.mechanism import MechanismAuditConfig
from tacit.jobs.audit.model import ModelAuditConfig
from tacit.jobs.audit.text import TextAuditConfig
from tests.conftest import small_table

KNOWN = [f"an old text with number {i}" for i in range(30)]
UNKNOWN = [f"a new text with number {i}" for i in range(30)]


def losses(texts: Sequence[str]) -> list[float]:
    """A model that knows its training texts by heart."""
    return [0.1 if line in KNOWN else 1.0 + len(line) / 100 for line in texts]


@pytest.mark.parametrize("module", [audits, mechanism, model, text])
def test_examples_in_docstrings(module: object) -> None:
    assert doctest.testmod(module).failed == 0  # type: ignore[arg-type]


def test_a_mechanism_that_is_built_already_is_audited() -> None:
    built = tacit.SanText(epsilon=2.0, vectors=small_table(words=40, dimension=3))
    report = audit(built)
    assert report.title == "Audit of santext"
    assert not report.refuted
    with pytest.raises(BadParameterError) as raised:
        audit(built, epsilon=3)
    assert raised.value.code == "options-of-a-built-mechanism"


def test_a_function_in_memory_is_audited_with_words_in_memory() -> None:
    def response(word: str) -> dict[str, float]:
        return {"yes": 0.75, "no": 0.25} if word == "yes" else {"yes": 0.25, "no": 0.75}

    words = ["yes", "no"]
    assert not tacit.audit_mechanism(callable=response, words=words, epsilon=np.log(3) + 1e-6).refuted
    assert tacit.audit_mechanism(callable=response, words=words, epsilon=1).refuted
    distances = [[0, 2], [2, 0]]
    assert not tacit.audit_mechanism(callable=response, words=words, epsilon=0.6, metric=distances).refuted


def test_two_texts_are_an_audit_of_a_release() -> None:
    report = audit(["call 0711 123456", "nothing"], ["call 0711 123456", "no"], attacks="entities")
    assert report.facts["original"] == "the data in memory"
    assert report.findings[0].numbers["rate"] == 1.0


def test_members_are_an_audit_of_a_model(tmp_path: Path) -> None:
    report = audit(losses, members=KNOWN, non_members=UNKNOWN, split="random", claim_epsilon=0.1, claim_delta=0)
    assert report.facts["members"] == "30 of the 30 texts in the data in memory"
    assert report.refuted
    unknown = audit(losses, members=KNOWN, non_members=UNKNOWN, claim_epsilon=0.1, claim_delta=0)
    assert not unknown.refuted
    (tmp_path / "in.txt").write_text("\n".join(KNOWN))
    with pytest.raises(BadInputError) as raised:
        audit(losses, members=tmp_path / "in.txt")
    assert raised.value.code == "non-members-missing"


@pytest.mark.parametrize(
    ("config", "values", "code"),
    [
        (MechanismAuditConfig, {}, "nothing-to-audit"),
        (MechanismAuditConfig, {"mechanism": "santext", "delta": 0.1}, "claim-of-a-named-mechanism"),
        (MechanismAuditConfig, {"matrix": [[1.0]], "deniability": True}, "options-without-mechanism"),
        (MechanismAuditConfig, {"mechanism": "santext", "mechanism_options": ["limit"]}, "not-name-and-value"),
        (MechanismAuditConfig, {"mechanism": "santext", "mechanism_options": ["a=1", "a=2"]}, "option-twice"),
        (MechanismAuditConfig, {"mechanism": "santext", "mechanism_options": {"seed": 1}}, "seed-as-mechanism-option"),
        (MechanismAuditConfig, {"callable": losses, "epsilon": 1}, "function-without-words"),
        (TextAuditConfig, {"original": ["a"], "private": ["b"], "attacks": "magic"}, "unknown-attack"),
        (TextAuditConfig, {"original": ["a"], "private": ["b"], "sample": 3}, "bad-option"),
        (ModelAuditConfig, {"model": losses, "members": KNOWN, "non_members": UNKNOWN, "prompts": ["a"]},
         "prompt-without-extraction"),
    ],
)  # fmt: skip
def test_options_that_do_not_fit(config: type, values: dict[str, object], code: str) -> None:
    with pytest.raises(BadParameterError) as raised:
        config(**values)
    assert raised.value.code == code


def test_a_configuration_survives_a_file() -> None:
    import tomllib

    config = MechanismAuditConfig(mechanism="santext", epsilon=2, mechanism_options={"limit": "100"}, words="10")
    assert MechanismAuditConfig.from_mapping(tomllib.loads(config.to_toml())) == config
    plain = TextAuditConfig(original="a.csv", private="b.csv", attacks="linkage,entities")
    assert TextAuditConfig.from_mapping(tomllib.loads(plain.to_toml())) == plain
