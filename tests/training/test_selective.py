"""Selective privacy: redaction in place, an honest promise, two phases that can be stopped."""

from __future__ import annotations

import math
import shutil
from dataclasses import replace

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from hypothesis import given  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

from tacit.card import Card, plain_sentence  # noqa: E402
from tacit.errors import BadInputError, BadParameterError, NoGuaranteeError  # noqa: E402
from tacit.guarantee import Adjacency, Notion  # noqa: E402
from tacit.text.sensitive import pattern_detector  # noqa: E402
from tacit.text.tokens import normalize, split  # noqa: E402
from tacit.training.plan import TrainingPlan  # noqa: E402
from tacit.training.redaction import flagged_spans, list_detector, list_digest, redact_rows, redact_text, token_places  # noqa: E402
from tacit.training.run import TrainingSettings  # noqa: E402
from tacit.training.selective import First, FirstKind, TwoPhases, needed_adjacency, selective_guarantee  # noqa: E402
from tacit.training.synthesis import ControlledWriting  # noqa: E402
from tests.training.test_synthesis import PLACES, small_model, small_rows, small_tokenizer  # noqa: E402

# Redaction -----------------------------------------------------------------------------------------------------------


def test_runs_of_sensitive_words_become_one_placeholder_and_the_rest_stays():
    rows = [
        {"text": "Call Dr. Miller at 555-1234 now, OK?", "label": "a"},
        {"text": "No “numbers” here…", "label": "b"},
        {"text": "Mail bob@example.org 12 34 56!", "label": "c"},
    ]
    redacted = redact_rows(rows, ["text"], pattern_detector)
    assert redacted.rows[1] == rows[1]
    assert redacted.rows[2] == {"text": "Mail ___!", "label": "c"}
    assert "555" not in redacted.rows[0]["text"]
    assert redacted.rows[0]["text"].startswith("Call ___")
    assert redacted.rows[0]["text"].endswith("now, OK?")
    assert redacted.touched == 2
    assert redacted.removed == sum(map(sum, pattern_detector([row["text"] for row in rows])))
    assert 0 < redacted.share < 1
    assert rows[2]["text"].startswith("Mail bob"), "the rows that were given stay as they are"


@given(st.text(max_size=60))
def test_every_token_has_its_place_in_any_text(text):
    places = token_places(text)
    tokens = split(text)
    assert len(places) == len(tokens)
    for (start, stop), token in zip(places, tokens, strict=True):
        assert 0 <= start < stop <= len(text)
        # A final sigma is the only letter whose small form depends on its neighbors.
        assert token.replace("ς", "σ") in normalize(text[start:stop]).replace("ς", "σ")
    # Characters without width are in no token; around one they stay.
    redacted = redact_text(text, flagged_spans(text, [True] * len(tokens))).replace("\u00ad", "").replace("\u200b", "")
    assert redacted.split() == (["___"] if tokens else [])


def test_how_many_words_were_redacted_does_not_show():
    redacted = redact_rows([{"text": "pay 5 now"}], ["text"], pattern_detector).rows
    many = redact_rows([{"text": "pay 5 6  7 now"}], ["text"], pattern_detector).rows
    assert redacted == many == [{"text": "pay ___ now"}]


def test_a_list_of_words_is_a_detector(tmp_path):
    (tmp_path / "words.txt").write_text("Oslo\nnew york\n")
    redacted = redact_rows(
        [{"text": "From Oslo to New York, new!"}, {"text": "nothing"}], ["text"], list_detector(tmp_path / "words.txt")
    )
    assert [row["text"] for row in redacted.rows] == ["From ___ to ___, ___!", "nothing"]


def test_a_detector_that_answers_for_other_texts_is_refused():
    with pytest.raises(BadInputError, match="flags for 1 of 2"):
        redact_rows([{"text": "a"}, {"text": "b"}], ["text"], lambda texts: [[True]])
    with pytest.raises(BadInputError, match="2 flags for a text of 1"):
        redact_rows([{"text": "a"}], ["text"], lambda texts: [[True, False]])
    with pytest.raises(BadParameterError, match="placeholder"):
        redact_rows([{"text": "a"}], ["text"], pattern_detector, placeholder=" ")


# The promise ---------------------------------------------------------------------------------------------------------


def plan(adjacency=Adjacency.REPLACE_ONE, steps=10):
    return TrainingPlan(records=400, batch=200, steps=steps, multiplier=6.0, delta=5e-4, adjacency=adjacency)


def test_the_delta_of_both_phases_together_is_below_one_over_the_records(tmp_path):
    good = make_phases(tmp_path / "m", FirstKind.PRIVATE)
    large = replace(good.plan, delta=2e-3)
    with pytest.raises(BadParameterError, match="not below one over"):
        type(good)(**{**vars(good), "plan": large, "first_plan": large})


def promise(adjacency=Adjacency.REPLACE_ONE):
    return plan(adjacency).guarantee(steps=10, secure=True, what="DP-ADAMW", parameters={})


def test_after_redacted_text_only_redacted_places_are_promised_anything():
    second = promise()
    promised = selective_guarantee(second, First(FirstKind.REDACTED, "the detector 'patterns'"))
    assert promised.adjacency is Adjacency.SAME_REDACTED
    assert promised.epsilon == second.epsilon
    sentence = plain_sentence(promised)
    assert "redacted places" in sentence
    assert "not protected at all" in sentence
    assert "Whatever one record was" not in sentence
    assert any("missed" in line for line in promised.not_covered)
    assert any("removing a whole record" in line for line in promised.not_covered)
    assert "patterns" in promised.domain
    assert any("outside of the promise" in (item.paid_by or "") for item in promised.provenance)
    assert any("fixed rule" in line for line in promised.assumptions)
    with pytest.raises(NoGuaranteeError, match="adjacency"):
        _ = promised < second
    with pytest.raises(NoGuaranteeError, match="adjacency"):
        promised.then(second)
    other = selective_guarantee(second, First(FirstKind.REDACTED, "a word list (00)"))
    with pytest.raises(NoGuaranteeError, match="domain"):
        promised.then(other)
    assert "redacted places only" in Card(promised).to_text()
    assert Card.from_json(Card(promised).to_json()).guarantee == promised


def test_the_second_phase_is_accounted_for_replaced_records():
    """Another name in the redacted place is a replaced record: adding and removing would count half of it."""
    assert needed_adjacency(FirstKind.REDACTED) is Adjacency.REPLACE_ONE
    assert needed_adjacency(FirstKind.PUBLIC) is Adjacency.ADD_REMOVE
    assert promise().epsilon > 1.5 * promise(Adjacency.ADD_REMOVE).epsilon
    with pytest.raises(NoGuaranteeError, match="replacing one record"):
        selective_guarantee(promise(Adjacency.ADD_REMOVE), First(FirstKind.REDACTED, "x"))


def test_strict_variants_promise_to_whole_records():
    second = promise(Adjacency.ADD_REMOVE)
    public = selective_guarantee(second, First(FirstKind.PUBLIC, "x", public="Tatoeba"))
    assert (public.epsilon, public.adjacency) == (second.epsilon, Adjacency.ADD_REMOVE)
    assert any("Tatoeba" in item.source for item in public.provenance)
    both = selective_guarantee(second, First(FirstKind.PRIVATE, "x", guarantee=second))
    assert both.epsilon == pytest.approx(2 * second.epsilon)
    assert both.delta == pytest.approx(2 * second.delta)
    with pytest.raises(NoGuaranteeError, match="comes with its guarantee"):
        selective_guarantee(second, First(FirstKind.PRIVATE, "x"))
    void = second.voided("a test")
    assert selective_guarantee(void, First(FirstKind.REDACTED, "x")) == void


# The two phases ------------------------------------------------------------------------------------------------------


def make_phases(folder, kind=FirstKind.REDACTED, *, steps=10, seed=None, **changes):
    words = small_tokenizer()
    words.add_tokens(["___"])
    rows = small_rows(400)

    def load(place):
        if place is None:
            model = small_model(words)
            model.resize_token_embeddings(len(words), mean_resizing=False)
            return model, words
        return transformers.AutoModelForCausalLM.from_pretrained(place), words

    def places(texts):
        return [[token in PLACES for token in split(text)] for text in texts]

    redacted = redact_rows(rows, ["text"], places).rows
    assert not any(place in row["text"] for row in redacted for place in PLACES)
    adjacency = needed_adjacency(kind)
    first_private = kind is FirstKind.PRIVATE
    first_plan = plan(adjacency, 5) if first_private else TrainingPlan.without_privacy(records=400, batch=50, epochs=3)
    plain = private = TrainingSettings(learning_rate=1e-2, model="tiny", physical=400)
    return TwoPhases(
        ControlledWriting(length=12), load, rows, redacted, kind, "a list", first_plan, plan(adjacency, steps),
        plain, private, folder, seed=seed, **changes,
    )  # fmt: skip


def test_two_phases_make_one_model_with_the_honest_card(tmp_path):
    seen = []
    phases = make_phases(tmp_path / "m")
    outcome = phases.run(lambda phase, now: seen.append(phase))
    assert seen == sorted(seen)
    assert set(seen) == {1, 2}
    assert outcome.adjacency is Adjacency.SAME_REDACTED
    assert outcome.epsilon == pytest.approx(phases.plan.epsilon())
    card = Card.from_json((tmp_path / "m" / "card.json").read_text()).guarantee
    assert card == outcome
    first = Card.from_json((tmp_path / "m.private" / "first-phase" / "card.json").read_text()).guarantee
    assert first.notion is Notion.NONE, "the first phase alone promises nothing"
    assert not phases.working_folder.exists()
    # As if the power had gone out before the last move: nothing is trained again.
    (tmp_path / "m.private" / "first-phase").rename(phases.working_folder)
    assert make_phases(tmp_path / "m").run(lambda phase, now: pytest.fail("it is finished"), resume=True) == outcome
    transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "m")


def test_a_private_first_phase_adds_its_budget(tmp_path):
    phases = make_phases(tmp_path / "m", FirstKind.PRIVATE, steps=3)
    outcome = phases.run()
    assert outcome.adjacency is Adjacency.ADD_REMOVE
    assert outcome.epsilon == pytest.approx(phases.plan.epsilon() + phases.first_plan.epsilon())
    assert outcome.delta == pytest.approx(phases.plan.delta + phases.first_plan.delta)


def test_a_run_stopped_in_either_phase_goes_on_and_seeds_void_it(tmp_path):
    def stop(at):
        def interrupt(phase, now):
            if (phase, now.step) == at:
                raise KeyboardInterrupt

        return interrupt

    with pytest.raises(BadInputError, match="no unfinished run"):
        make_phases(tmp_path / "m", steps=3, seed=1).run(resume=True)
    with pytest.raises(KeyboardInterrupt):
        make_phases(tmp_path / "m", steps=3, seed=1).run(stop((1, 2)))
    with pytest.raises(BadInputError, match="go on with resume"):
        make_phases(tmp_path / "m", steps=3, seed=1).run()
    with pytest.raises(KeyboardInterrupt):
        make_phases(tmp_path / "m", steps=3, seed=1).run(stop((2, 2)), resume=True)
    assert not (tmp_path / "m" / "card.json").exists(), "no card before the end"
    phases = []
    outcome = make_phases(tmp_path / "m", steps=3, seed=1).run(lambda phase, now: phases.append(phase), resume=True)
    assert set(phases) == {2}
    assert not outcome.is_private
    assert math.isinf(outcome.epsilon)


def test_plans_that_would_promise_too_much_are_refused(tmp_path):
    good = make_phases(tmp_path / "m")
    for name, value, message in (
        ("plan", plan(Adjacency.ADD_REMOVE), "replacing one record"),
        ("first_plan", plan(), "exactly if"),
        ("kind", FirstKind.PRIVATE, "exactly if"),
        ("kind", FirstKind.PUBLIC, "name the public text"),
    ):
        with pytest.raises(BadParameterError, match=message):
            type(good)(**{**vars(good), name: value})


@pytest.mark.parametrize("at", [(1, 2), (2, 1), (2, 2)])
def test_a_run_goes_on_only_after_the_same_first_phase(tmp_path, at):
    """Otherwise the card would speak of a first phase that never was: a public one, or another redaction."""

    def stop(phase, now):
        if (phase, now.step) == at:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        make_phases(tmp_path / "m", steps=3, rule="list 1").run(stop)
    if at == (2, 1):
        shutil.rmtree(tmp_path / "m.private")  # as if stopped before the first checkpoint of the second phase
    for changes, message in (
        ({"rule": "list 2"}, "another redaction"),
        ({"rule": "list 1", "public": "Tatoeba"}, "another public text"),
    ):
        with pytest.raises(BadInputError, match=message):
            make_phases(tmp_path / "m", steps=3, **changes).run(resume=True)
    other = make_phases(tmp_path / "m", steps=3, rule="list 1")
    other.first_rows = [{**row, "text": "other"} for row in other.first_rows]
    with pytest.raises(BadInputError, match=r"another (data|text of the first phase)"):
        other.run(resume=True)
    other = make_phases(tmp_path / "m", steps=3, rule="list 1")
    other.plan, other.kind, other.public = plan(Adjacency.ADD_REMOVE, 3), FirstKind.PUBLIC, "Tatoeba"
    with pytest.raises(BadInputError, match="another kind of first phase"):
        other.run(resume=True)
    again = make_phases(tmp_path / "m", steps=3, rule="list 1")
    again.redaction = "a list (of another run)"
    outcome = again.run(resume=True)
    assert outcome.domain == ("redaction by a list (of another run)" if at[0] == 1 else "redaction by a list")


def test_word_lists_are_told_apart_by_their_words(tmp_path):
    for name, words in (("a", "Oslo"), ("b", "Oslo"), ("c", "Paris")):
        (tmp_path / name).write_text(words)
    assert list_digest(tmp_path / "a") == list_digest(tmp_path / "b")
    assert list_digest(tmp_path / "a") != list_digest(tmp_path / "c")
