"""Where weights, words and texts come from decides what a model promises."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest

torch = pytest.importorskip("torch")

from tacit.card import Card, ReleaseFacts  # noqa: E402
from tacit.errors import BadInputError, NoGuaranteeError  # noqa: E402
from tacit.guarantee import Adjacency, Guarantee, Notion, Unit  # noqa: E402
from tacit.training.origin import Origin, released_text, starting_weights  # noqa: E402
from tacit.training.plan import Plan  # noqa: E402

PLAN = Plan(records=1000, batch=100, steps=10, multiplier=1.0, delta=1e-4)


def trained(plan=PLAN, secure=True):
    return plan.guarantee(steps=10, secure=secure, what="DP-SGD", parameters={})


def test_plain_training_promises_nothing_and_says_why():
    plan = Plan.without_privacy(records=1000, batch=100, epochs=1)
    found = Origin().with_training(plan.guarantee(steps=10, secure=True, what="SGD", parameters={}), "m")
    assert not found.is_private
    assert "without noise" in found.void
    assert plan.epsilon() == math.inf
    public = Origin(public="Tatoeba").with_training(trained(plan), "m")
    assert "Tatoeba" in public.void


def test_weights_from_elsewhere_are_assumed_public():
    found = Origin().with_training(trained(), "bert")
    assert found.is_private
    assert "assumed to be trained on public text" in found.provenance[-1].source


def test_weights_that_were_trained_without_privacy_void_what_follows():
    plain = trained(Plan.without_privacy(records=1000, batch=100, epochs=1))
    found = Origin(start=plain).with_training(trained(), "m")
    assert not found.is_private
    assert "started from weights without a guarantee" in found.void
    declared = Origin(start=plain, start_public="Tatoeba").with_training(trained(), "m")
    assert declared.is_private
    assert "Tatoeba" in declared.provenance[-1].source


def test_weights_with_a_card_keep_it_for_their_own_records():
    found = Origin(start=trained()).with_training(trained(), "m")
    assert found.epsilon == trained().epsilon
    assert any("both budgets" in item for item in found.not_covered)


def test_a_private_vocabulary_is_paid_for():
    words = replace(trained(), epsilon=0.5, delta=1e-6, mechanism="vocabulary")
    found = Origin(vocabulary=words).with_training(trained(), "m")
    assert found.epsilon == pytest.approx(trained().epsilon + 0.5)
    assert found.delta == pytest.approx(1e-4 + 1e-6)
    with pytest.raises(NoGuaranteeError):
        Origin(vocabulary=replace(words, adjacency=Adjacency.REPLACE_ONE)).with_training(trained(), "m")
    with pytest.raises(NoGuaranteeError):
        Origin(vocabulary=replace(words, unit=Unit.USER)).with_training(trained(), "m")


def test_training_on_released_text_keeps_the_promise_of_the_text(tmp_path):
    release = Guarantee(
        notion=Notion.PURE, epsilon=3.0, unit=Unit.DOCUMENT, adjacency=Adjacency.ANY_TWO, mechanism="codebook"
    )
    facts = ReleaseFacts(10, 10, 10, 5, 5, columns=("text",), kept_columns=("label",), output="out.csv")
    (tmp_path / "card.json").write_text(Card(release, facts).to_json())
    of_file = ("elsewhere/out.csv", 10)
    plain = trained(Plan.without_privacy(records=1000, batch=100, epochs=1))
    promise = released_text(tmp_path / "card.json", *of_file, ["text"])
    found = Origin(released=promise).with_training(plain, "m")
    for other in (("in.csv", 10), ("out.csv", 11)):
        with pytest.raises(BadInputError, match=r"speaks of out\.csv with 10 rows"):
            released_text(tmp_path / "card.json", *other, ["text"])
    with pytest.raises(BadInputError, match=r"'label' of .* was not rewritten"):
        released_text(tmp_path / "card.json", *of_file, ["text", "label"])
    (tmp_path / "bare.json").write_text(Card(release).to_json())
    with pytest.raises(BadInputError, match="speaks of no file"):
        released_text(tmp_path / "bare.json", *of_file, ["text"])
    assert found.is_private
    assert (found.notion, found.epsilon, found.unit) == (Notion.PURE, 3.0, Unit.DOCUMENT)
    assert "post-processing" in found.history[-1]
    (tmp_path / "void.json").write_text(Card(release.voided("a test seed")).to_json())
    with pytest.raises(BadInputError, match="promises nothing"):
        released_text(tmp_path / "void.json", *of_file, ["text"])
    with pytest.raises(BadInputError, match="there is no card"):
        released_text(tmp_path / "none.json", *of_file, ["text"])


def test_a_folder_says_what_it_is(tmp_path):
    assert starting_weights("facebook/bart-base") == Origin()
    (tmp_path / "card.json").write_text(Card(trained()).to_json())
    (tmp_path / "task.json").write_text(json.dumps({"task": "classify", "public": "Tatoeba"}))
    found = starting_weights(tmp_path)
    assert found.start is not None
    assert found.start_public == "Tatoeba"
    (tmp_path / "card.json").write_text("{}")
    with pytest.raises(BadInputError, match="not a privacy card"):
        starting_weights(tmp_path)
