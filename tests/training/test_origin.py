"""Where weights, words and texts come from decides what a model promises."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest

torch = pytest.importorskip("torch")

from tacit.card import Card, ReleaseFacts  # noqa: E402
from tacit.errors import BadInputError, NoGuaranteeError  # noqa: E402
from tacit.guarantee import Adjacency, Guarantee, Notion, Provenance, Unit  # noqa: E402
from tacit.text.digest import file_digest  # noqa: E402
from tacit.training.origin import Origin, released_text, starting_weights, with_tokenizer  # noqa: E402
from tacit.training.plan import TrainingPlan  # noqa: E402
from tests.test_lineage import as_version_1, write_lineage  # noqa: E402

PLAN = TrainingPlan(records=1000, batch=100, steps=10, multiplier=1.0, delta=1e-4)


def trained(plan=PLAN, secure=True):
    return plan.guarantee(steps=10, secure=secure, what="DP-SGD", parameters={})


def test_plain_training_promises_nothing_and_says_why():
    plan = TrainingPlan.without_privacy(records=1000, batch=100, epochs=1)
    promise = Origin().with_training(plan.guarantee(steps=10, secure=True, what="SGD", parameters={}), "m")
    assert not promise.is_private
    assert "without noise" in promise.void
    assert plan.epsilon() == math.inf
    public = Origin(public="Tatoeba").with_training(trained(plan), "m")
    assert "Tatoeba" in public.void


def test_weights_from_elsewhere_are_assumed_public():
    promise = Origin().with_training(trained(), "bert")
    assert promise.is_private
    assert "assumed to be trained on public text" in promise.provenance[-1].source


def test_weights_that_were_trained_without_privacy_void_what_follows():
    plain = trained(TrainingPlan.without_privacy(records=1000, batch=100, epochs=1))
    promise = Origin(start=plain).with_training(trained(), "m")
    assert not promise.is_private
    assert "started from weights without a guarantee" in promise.void
    declared = Origin(start=plain, start_public="Tatoeba").with_training(trained(), "m")
    assert declared.is_private
    assert "Tatoeba" in declared.provenance[-1].source


def test_weights_with_a_card_keep_it_for_their_own_records():
    promise = Origin(start=trained()).with_training(trained(), "m")
    assert promise.epsilon == trained().epsilon
    assert any("both budgets" in item for item in promise.not_covered)


def test_a_private_vocabulary_is_paid_for():
    words = replace(trained(), epsilon=0.5, delta=1e-6, mechanism="vocabulary")
    promise = Origin(vocabulary=words).with_training(trained(), "m")
    assert promise.epsilon == pytest.approx(trained().epsilon + 0.5)
    assert promise.delta == pytest.approx(1e-4 + 1e-6)
    with pytest.raises(NoGuaranteeError):
        Origin(vocabulary=replace(words, adjacency=Adjacency.REPLACE_ONE)).with_training(trained(), "m")
    with pytest.raises(NoGuaranteeError):
        Origin(vocabulary=replace(words, unit=Unit.USER)).with_training(trained(), "m")


def test_training_on_released_text_keeps_the_promise_of_the_text(tmp_path):
    release = Guarantee(
        notion=Notion.PURE, epsilon=3.0, unit=Unit.DOCUMENT, adjacency=Adjacency.ANY_TWO, mechanism="codebook"
    )
    (tmp_path / "elsewhere").mkdir()
    data = tmp_path / "elsewhere" / "out.csv"
    data.write_text("text,label\n")
    facts = ReleaseFacts(
        10, 10, 10, 5, 5, columns=("text",), kept_columns=("label",), output="out.csv", digest=file_digest(data)
    )
    (tmp_path / "card.json").write_text(Card(release, facts).to_json())
    of_file = (str(data), 10)
    plain = trained(TrainingPlan.without_privacy(records=1000, batch=100, epochs=1))
    promise = released_text(tmp_path / "card.json", *of_file, ["text"])
    promised = Origin(released=promise).with_training(plain, "m")
    for other in (("in.csv", 10), ("out.csv", 11)):
        with pytest.raises(BadInputError, match=r"speaks of out\.csv with 10 rows"):
            released_text(tmp_path / "card.json", *other, ["text"])
    with pytest.raises(BadInputError, match=r"'label' of .* was not rewritten"):
        released_text(tmp_path / "card.json", *of_file, ["text", "label"])
    (tmp_path / "bare.json").write_text(Card(release).to_json())
    with pytest.raises(BadInputError, match="speaks of no file"):
        released_text(tmp_path / "bare.json", *of_file, ["text"])
    assert promised.is_private
    assert (promised.notion, promised.epsilon, promised.unit) == (Notion.PURE, 3.0, Unit.DOCUMENT)
    assert "post-processing" in promised.history[-1]
    (tmp_path / "void.json").write_text(Card(release.voided("a test seed")).to_json())
    with pytest.raises(BadInputError, match="promises nothing"):
        released_text(tmp_path / "void.json", *of_file, ["text"])
    with pytest.raises(BadInputError, match="there is no card"):
        released_text(tmp_path / "none.json", *of_file, ["text"])


def test_a_card_belongs_to_one_file_and_not_to_all_of_its_name(tmp_path):
    release = Guarantee(
        notion=Notion.PURE, epsilon=3.0, unit=Unit.DOCUMENT, adjacency=Adjacency.ANY_TWO, mechanism="codebook"
    )
    data, card = tmp_path / "out.csv", tmp_path / "card.json"
    data.write_text("text\nreleased\n")
    facts = ReleaseFacts(1, 1, 1, 1, 1, columns=("text",), output="out.csv", digest=file_digest(data))
    card.write_text(Card(release, facts).to_json())
    assert released_text(card, str(data), 1, ["text"]).epsilon == 3.0
    data.write_text("text\noriginal\n")
    with pytest.raises(BadInputError, match="is not the file that the card"):
        released_text(card, str(data), 1, ["text"])
    card.write_text(Card(release, replace(facts, digest="")).to_json())
    with pytest.raises(BadInputError, match=r"does not say what .* holds"):
        released_text(card, str(data), 1, ["text"])


def test_a_folder_says_what_it_is(tmp_path):
    assert starting_weights("facebook/bart-base") == Origin()
    (tmp_path / "card.json").write_text(Card(trained()).to_json())
    (tmp_path / "task.json").write_text(json.dumps({"task": "classify", "public": "Tatoeba"}))
    origin_read = starting_weights(tmp_path)
    assert origin_read.start is not None
    assert origin_read.start_public == "Tatoeba"
    (tmp_path / "card.json").write_text("{}")
    with pytest.raises(BadInputError, match="not a privacy card"):
        starting_weights(tmp_path)


# Training on public text washes nothing -----------------------------------------------------------------------------


def one_run(folder, origin, own, name="m"):
    """What a finished run leaves in its folder, as the next run finds it."""
    folder.mkdir()
    (folder / "card.json").write_text(Card(origin.with_training(own, name)).to_json())
    (folder / "task.json").write_text(json.dumps(origin.settings()))
    return starting_weights(folder)


def declared_public():
    return Origin(public="Tatoeba", from_scratch=True).with_training(plain_training(), "bilstm")


def plain_training():
    return trained(TrainingPlan.without_privacy(records=1000, batch=100, epochs=1))


def test_public_text_gives_no_guarantee_to_weights_that_had_none(tmp_path):
    leaky = one_run(tmp_path / "leaky", Origin(), plain_training())
    washed = one_run(tmp_path / "washed", replace(leaky, public="Tatoeba"), plain_training())
    assert washed.start_public is None
    final = washed.with_training(trained(), "washed")
    assert not final.is_private
    assert "started from weights without a guarantee" in final.void


def test_public_text_leaves_private_weights_their_budget(tmp_path):
    paid = one_run(tmp_path / "paid", Origin(), trained())
    more = one_run(tmp_path / "more", replace(paid, public="Tatoeba"), plain_training())
    assert more.start_public is None
    assert more.start.epsilon == trained().epsilon, "training on public text is post-processing"
    assert more.start.is_private
    final = more.with_training(trained(), "more")
    assert any("both budgets" in item for item in final.not_covered)
    assert any(item.paid_by and "epsilon" in item.paid_by for item in final.provenance)


def test_public_text_on_public_weights_is_public(tmp_path):
    first = one_run(tmp_path / "first", Origin(public="Tatoeba"), plain_training())
    second = one_run(tmp_path / "second", replace(first, public="WikiText"), plain_training())
    assert second.start_public == "Tatoeba and WikiText"
    final = second.with_training(trained(), "second")
    assert final.is_private
    assert "Tatoeba and WikiText" in final.provenance[-1].source


def test_a_private_vocabulary_stays_on_the_card_of_a_model_of_public_text(tmp_path):
    words = replace(trained(), epsilon=0.5, delta=1e-6, mechanism="vocabulary")
    origin = Origin(vocabulary=words, public="Tatoeba", from_scratch=True)
    finished = one_run(tmp_path / "model", origin, plain_training())
    assert finished.start_public is None
    assert finished.start.epsilon == 0.5


def test_the_budgets_of_all_earlier_weights_are_named():
    first = Origin(start=replace(trained(), epsilon=1.25)).with_training(replace(trained(), epsilon=2.5), "a")
    second = Origin(start=first).with_training(trained(), "b")
    for epsilon in ("epsilon 1.25", "epsilon 2.5"):
        assert any(epsilon in item for item in second.not_covered)


@pytest.mark.parametrize(
    ("void", "source"),
    [
        ("it started from weights without a guarantee (m: no noise)", "m"),
        ("it was trained without noise, on text that was declared public: x", "m, trained privately by Tacit: epsilon"),
    ],
)
def test_folders_that_were_declared_public_by_mistake_are_not(tmp_path, void, source):
    """Before this was checked, such folders got a `public` in task.json."""
    promise = replace(trained().voided(void), provenance=(Provenance("pre-trained weights", source),))
    (tmp_path / "card.json").write_text(as_version_1(promise))
    (tmp_path / "task.json").write_text(json.dumps({"public": "x"}))
    assert not starting_weights(tmp_path).with_training(trained(), "m").is_private


# Word pieces --------------------------------------------------------------------------------------------------------


def test_where_the_word_pieces_come_from_is_on_the_card(tmp_path):
    scratch = Origin(from_scratch=True)
    promise = with_tokenizer(scratch, tmp_path / "pieces").with_training(trained(), "bilstm")
    assert promise.provenance[-1].name == "tokenizer"
    assert "the tokenizer of pieces, assumed to be made from public text" in promise.provenance[-1].source
    paid = with_tokenizer(scratch, write_lineage(tmp_path / "paid", trained())).with_training(trained(), "bilstm")
    assert "epsilon" in paid.provenance[-1].paid_by
    assert any("what the tokenizer learned" in item for item in paid.not_covered)
    public = with_tokenizer(scratch, write_lineage(tmp_path / "public", declared_public(), "Tatoeba"))
    assert "Tatoeba" in public.with_training(trained(), "bilstm").provenance[-1].source
    with pytest.raises(NoGuaranteeError, match="leaky has no guarantee"):
        with_tokenizer(scratch, write_lineage(tmp_path / "leaky", plain_training()))


def test_a_private_vocabulary_is_its_own_line(tmp_path):
    (tmp_path / "vocabulary-card.json").write_text(Card(replace(trained(), epsilon=0.5)).to_json())
    origin_read = with_tokenizer(Origin(from_scratch=True), tmp_path)
    assert origin_read.tokenizer is None
    assert origin_read.vocabulary.epsilon == 0.5
