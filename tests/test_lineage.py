"""What a folder of weights says about the text it has read."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from tacit.card import Card
from tacit.errors import BadInputError, NoGuaranteeError
from tacit.guarantee import Adjacency, Guarantee, Model, Notion, Unit
from tacit.lineage import Lineage, lineage_of

PAID = Guarantee(
    notion=Notion.APPROXIMATE, epsilon=2.0, delta=1e-6, model=Model.CENTRAL, unit=Unit.RECORD,
    adjacency=Adjacency.ADD_REMOVE, mechanism="DP-SGD",
)  # fmt: skip
VOID = PAID.voided("it was trained without noise")


def write_lineage(folder: Path, promise: Guarantee, public: str | None = None) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "card.json").write_text(Card(promise).to_json(), encoding="utf-8")
    (folder / "task.json").write_text(json.dumps({} if public is None else {"public": public}), encoding="utf-8")
    return folder


def test_weights_from_elsewhere_are_what_their_user_says():
    assert lineage_of("facebook/bart-base") == Lineage()
    found = Lineage().provenance("language model", "the model hub")
    assert (found.public, found.source) == (True, "the model hub")


def test_private_weights_are_paid_by_their_own_budget(tmp_path):
    found = lineage_of(write_lineage(tmp_path, PAID)).provenance("language model", "the folder m")
    assert not found.public
    assert "epsilon 2, delta 1e-06 for one record" in (found.paid_by or "")


def test_weights_without_a_guarantee_are_refused_unless_their_text_was_public(tmp_path):
    with pytest.raises(NoGuaranteeError, match=r"the folder m has no guarantee .*train it with an epsilon"):
        lineage_of(write_lineage(tmp_path, VOID)).provenance("language model", "the folder m")
    found = lineage_of(write_lineage(tmp_path, VOID, "Tatoeba")).provenance("language model", "the folder m")
    assert found.public
    assert "Tatoeba, which was declared public" in found.source


def test_a_declaration_does_not_undo_a_private_card(tmp_path):
    assert not lineage_of(write_lineage(tmp_path, PAID, "Tatoeba")).provenance("language model", "m").public


def test_a_rewriting_model_of_private_weights_promises_nothing_without_a_card(tmp_path):
    (tmp_path / "tacit.json").write_text(json.dumps({"private": "epsilon 2"}))
    assert lineage_of(tmp_path).unpaid is not None
    (tmp_path / "tacit.json").write_text(json.dumps({"private": None}))
    assert lineage_of(tmp_path) == Lineage()


def test_damaged_files_are_said(tmp_path):
    (tmp_path / "task.json").write_text("{")
    with pytest.raises(BadInputError, match="is damaged"):
        lineage_of(tmp_path)
    (tmp_path / "card.json").write_text("{}")
    with pytest.raises(BadInputError, match="not a privacy card"):
        lineage_of(tmp_path)
    assert VOID.epsilon == math.inf
