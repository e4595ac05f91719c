"""What a folder of weights says about the text it has read."""

from __future__ import annotations

import json
import math
import pickle
from dataclasses import replace
from pathlib import Path

import pytest

from tacit.card import Card
from tacit.catalog import build
from tacit.errors import BadInputError, NoGuaranteeError
from tacit.guarantee import Adjacency, Exclusion, ExclusionKind, Guarantee, Model, Notion, Unit, VoidReason
from tacit.lineage import Lineage, lineage_of
from tacit.training.origin import Origin
from tests.conftest import small_table

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
    provenance = Lineage().provenance("language model", "the model hub")
    assert (provenance.public, provenance.source) == (True, "the model hub")


def test_private_weights_are_paid_by_their_own_budget(tmp_path):
    provenance = lineage_of(write_lineage(tmp_path, PAID)).provenance("language model", "the folder m")
    assert not provenance.public
    assert "epsilon 2, delta 1e-06 for one record" in (provenance.paid_by or "")


def test_weights_without_a_guarantee_are_refused_unless_their_text_was_public(tmp_path):
    with pytest.raises(NoGuaranteeError, match=r"the folder m has no guarantee .*train it with an epsilon"):
        lineage_of(write_lineage(tmp_path, VOID)).provenance("language model", "the folder m")
    public = PAID.voided("it was trained on public text", VoidReason.DECLARED_PUBLIC)
    provenance = lineage_of(write_lineage(tmp_path, public, "Tatoeba")).provenance("language model", "the folder m")
    assert provenance.public
    assert "Tatoeba, which was declared public" in provenance.source


@pytest.mark.parametrize("reason", [reason for reason in VoidReason if reason is not VoidReason.DECLARED_PUBLIC])
def test_a_declaration_beside_a_card_that_is_void_for_another_reason_counts_for_nothing(tmp_path, reason):
    folder = write_lineage(tmp_path, PAID.voided("it promises nothing", reason), "Tatoeba")
    lineage = lineage_of(folder)
    assert lineage.public is None
    assert lineage.unpaid == "it promises nothing"
    with pytest.raises(NoGuaranteeError):
        lineage.provenance("language model", "m")
    own = PAID.voided("without noise", VoidReason.NO_NOISE)
    made = Origin(lineage.promise, lineage.public, public="more public text").with_training(own, "m")
    assert made.void_reason is VoidReason.STARTING_WEIGHTS


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


def as_version_1(promise: Guarantee) -> str:
    """The card as version 1 wrote it: sentences only."""
    card = json.loads(Card(promise).to_json())
    card["card_version"] = 1
    promised = card["guarantee"]
    for name in ("void_reason", "not_covered_kinds"):
        promised.pop(name)
    for item in promised["provenance"]:
        item.pop("kind")
    if promised["metric"]:
        promised["metric"].pop("kind")
    return json.dumps(card)


def test_a_card_of_version_1_is_read_with_its_lineage(tmp_path):
    again = Origin(start=PAID).with_training(PAID, "m")
    broken = Origin(start=VOID).with_training(PAID, "m")
    for promise in (PAID, again, broken, build("brr", {"epsilon": 1, "vectors": small_table()}).guarantee()):
        assert Card.from_json(as_version_1(promise)).guarantee == promise
        assert Card.from_json(Card(promise).to_json()).guarantee == promise
        assert pickle.loads(pickle.dumps(promise)).to_dict() == promise.to_dict()
    kinds = [Exclusion.kind_of(line) for line in Card.from_json(as_version_1(again)).guarantee.not_covered]
    assert kinds == [ExclusionKind.EARLIER_WEIGHTS]
    for text in (as_version_1(broken), Card(broken).to_json()):
        folder = write_lineage(tmp_path, broken, "Tatoeba")
        (folder / "card.json").write_text(text)
        assert lineage_of(folder).public is None, "the declaration counts for nothing"


def test_a_sentence_that_version_1_did_not_have_grants_nothing():
    card = json.loads(as_version_1(VOID))
    card["guarantee"]["void"] = "x"
    read = Card.from_json(json.dumps(card)).guarantee
    assert (read.void_reason, read.is_private) == (VoidReason.OTHER, False)
    assert Lineage(read).unpaid == "x"


def test_lineage_does_not_read_sentences(tmp_path):
    """All sentences of a card replaced by "x": the same is public, paid and void as before."""

    def silent(promise: Guarantee) -> Guarantee:
        return replace(
            promise,
            void=promise.void and "x",
            not_covered=tuple(Exclusion("x", Exclusion.kind_of(line)) for line in promise.not_covered),
            provenance=tuple(replace(item, name="x", source="x") for item in promise.provenance),
        )

    private, broken = Origin(start=PAID).with_training(VOID, "m"), Origin(start=VOID).with_training(VOID, "m")
    public = Origin(public="Tatoeba").with_training(VOID, "m")
    for promise, counts in ((private, False), (broken, False), (public, True)):
        spoken = lineage_of(write_lineage(tmp_path, promise, "Tatoeba"))
        assert (spoken.public is not None) is counts
        assert (lineage_of(write_lineage(tmp_path, silent(promise), "Tatoeba")).public is not None) is counts
    chain = Origin(start=silent(Origin(start=PAID).with_training(PAID, "m"))).with_training(PAID, "n")
    assert [Exclusion.kind_of(line) for line in chain.not_covered] == [ExclusionKind.EARLIER_WEIGHTS] * 2
