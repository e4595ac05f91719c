"""Question answering: windows of a record that are clipped as one, targets that no cut turns into "no answer", ranked
answers."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from hypothesis import given  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

from tacit.errors import BadParameterError  # noqa: E402
from tacit.training.clipping import FlatClipping  # noqa: E402
from tacit.training.gradients import UNITS  # noqa: E402
from tacit.training.plan import TrainingPlan  # noqa: E402
from tacit.training.prediction import predict_rows, ranked_rows  # noqa: E402
from tacit.training.record_rows import RecordRows  # noqa: E402
from tacit.training.run import TrainingRun, TrainingSettings  # noqa: E402
from tacit.training.strategies import apply_strategy  # noqa: E402
from tacit.training.tasks import Answering  # noqa: E402
from tacit.training.tasks.ranked_answers import AnswerSpan, Ranking, WindowSpans  # noqa: E402
from tacit.training.tasks.windows import windows_of  # noqa: E402

WORDS = ["the", "a", "film", "good", "bad", "great", "poor", "sad"]


@pytest.fixture(scope="module")
def pieces():
    return made_tokenizer()


def made_tokenizer():
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    names = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *WORDS, *(f"##{word}" for word in WORDS), "##s", "s"]
    made = Tokenizer(models.WordPiece({name: i for i, name in enumerate(names)}, unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    made.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=made, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]"
    )


def network(tokenizer):
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=len(tokenizer), hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16,
        max_position_embeddings=64, pad_token_id=0,
    )  # fmt: skip
    return transformers.BertForQuestionAnswering(config)


def long_rows():
    """Records of one to many windows of 16 pieces: with an answer early, late, cut everywhere, and without one."""
    generator = np.random.default_rng(0)
    rows = []
    for number in range(12):
        context = [str(word) for word in generator.choice(WORDS[:5], (4, 11, 30, 60)[number % 4])]
        answer = ""
        if number % 3:
            context[(number * 5) % len(context)] = answer = "great"
        if number == 11:
            answer = " ".join(context[3:40])
        rows.append({"question": "the film", "context": " ".join(context), "answer": answer})
    return rows


# One record, one unit ---------------------------------------------------------------------------------------------


def true_gradient(model, task, tokenizer, row):
    """The gradient of the mean loss over the windows of one record, each alone in its batch."""
    parameters = list(model.parameters())
    total = torch.zeros(())
    for encoded in task.encode_rows(row, tokenizer):
        total = total + task.loss(model, task.collate([encoded], tokenizer)).sum()
    gradients = torch.autograd.grad(total, parameters, allow_unused=True)
    return torch.cat([
        (torch.zeros_like(p) if g is None else g).flatten() for g, p in zip(gradients, parameters, strict=True)
    ])  # fmt: skip


def clipped_sum(run, records, physical):
    """What a step adds up before its noise, from the run itself."""
    run.settings = replace(run.settings, physical=physical)
    step = run._step()
    sums = {name: torch.zeros_like(p) for name, p in step.engine.parameters.items()}
    step.over_parts(np.asarray(records), lambda part: step._add(part, sums))
    return torch.cat([value.flatten() for value in sums.values()])


@pytest.fixture(scope="module")
def prepared(pieces, tmp_path_factory):
    """A run whose steps have no dropout, and the true gradient of each of its records."""
    rows = long_rows()
    task = Answering(length=16, learned="all", most_windows=3)
    task.learn(rows)
    model = network(pieces).eval()
    bound = 0.5
    run = TrainingRun(
        task, model, pieces, rows, TrainingPlan(len(rows), 4, 2, 1.0, 1e-5),
        TrainingSettings(bound=bound, strategy="full", model="tiny", clipping="flat"), tmp_path_factory.mktemp("run"),
        seed=0,
    )  # fmt: skip
    return run, torch.stack([true_gradient(model, task, pieces, row) for row in rows]).detach(), bound


@pytest.mark.parametrize("engine", ["taps", "loop"])
@pytest.mark.parametrize("physical", [1, 4, 64])
def test_a_record_of_many_windows_is_clipped_as_one(prepared, engine, physical):
    """However the step is cut into batches: the sum is that of the clipped gradients of single records."""
    run, truth, bound = prepared
    run.settings = replace(run.settings, engine=engine)
    total = clipped_sum(run, range(len(truth)), physical)
    norms = truth.norm(dim=1)
    assert float(norms.max()) > bound, "some are shortened"
    expected = ((bound / norms).clamp(max=1.0)[:, None] * truth).sum(0)
    # Factors lie a little below those of exact norms, on purpose.
    assert float((total - expected).norm()) < 2e-3 * bound * len(truth)


def test_removing_a_record_of_many_windows_moves_the_sum_by_its_bound_at_most(prepared):
    run, truth, bound = prepared
    run.settings = replace(run.settings, engine="taps")
    counts = RecordRows.of(run.task, run.rows, run.tokenizer).counts
    longest = int(np.argmax(counts))
    assert counts[longest] == 3
    everybody = list(range(len(truth)))
    whole, rest = (clipped_sum(run, records, 5) for records in (everybody, [i for i in everybody if i != longest]))
    assert float((whole - rest).norm()) <= bound
    alone = clipped_sum(run, [longest], 5)
    assert torch.allclose(whole - rest, alone, atol=1e-5)


def test_windows_above_frozen_layers_are_those_of_their_record(pieces, tmp_path):
    """The states of the lower half are kept for every window, in half precision."""
    rows, task = long_rows(), Answering(length=16, learned="all", most_windows=3)
    model = apply_strategy(network(pieces), "head").eval()
    run = TrainingRun(
        task, model, pieces, rows, TrainingPlan(len(rows), 4, 2, 1.0, 1e-5),
        TrainingSettings(bound=100.0, strategy="head", model="tiny", clipping="flat"), tmp_path, seed=0,
    )  # fmt: skip
    trained = [p for p in model.parameters() if p.requires_grad]
    truth = torch.zeros(())
    for row in rows:
        truth = truth + sum(task.loss(model, task.collate([e], pieces)).sum() for e in task.encode_rows(row, pieces))
    gradient = torch.cat([g.flatten() for g in torch.autograd.grad(truth, trained)])
    assert torch.allclose(clipped_sum(run, range(len(rows)), 5), gradient, rtol=5e-3, atol=5e-3)


def test_units_are_named_whether_or_not_a_record_has_several_rows(pieces):
    short = [row for row in long_rows() if len(row["context"].split()) == 4]
    for learned, named in (("all", True), ("best", False)):
        task = Answering(length=16, learned=learned)
        encoded = RecordRows.of(task, short, pieces)
        batch = encoded.batch([0, 2], lambda rows, task=task: task.collate(rows, pieces))
        assert (UNITS in batch) is named
        assert all((UNITS in probe) is named for probe in task.probes(pieces))


def test_sixteen_bits_refuse_records_without_a_shape(prepared):
    run, _, _ = prepared
    before, run.settings = run.settings, replace(run.settings, precision="bf16")
    try:
        with pytest.raises(BadParameterError, match="up to 3 windows"):
            run._step()
    finally:
        run.settings = before


# Targets ------------------------------------------------------------------------------------------------------------

contexts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=60)
TOKENIZER = None


def tokenizer_of_properties():
    global TOKENIZER
    TOKENIZER = TOKENIZER or made_tokenizer()
    return TOKENIZER


@given(contexts, st.data())
def test_an_answer_that_is_cut_off_never_becomes_no_answer(words, data):
    """Every window that is learned from shows the whole answer, or nothing of it (then its target is nothing), but for
    the first one, whose target is the part that it shows where no window shows more."""
    begin = data.draw(st.integers(0, len(words) - 1))
    stop = data.draw(st.integers(begin + 1, len(words)))
    marked = [*words[:begin], *["poors"] * (stop - begin), *words[stop:]]
    row = {"question": "the film", "context": " ".join(marked), "answer": " ".join(marked[begin:stop])}
    unanswerable, most = data.draw(st.booleans()), data.draw(st.integers(1, 5))
    task = Answering(length=16, learned="all", most_windows=most, unanswerable=unanswerable)
    first = row["context"].find(row["answer"])
    encoded = task.encode_rows(row, tokenizer_of_properties())
    assert 1 <= len(encoded) <= most
    assert sum(record["weight"] for record in encoded) == pytest.approx(1.0)
    for place, record in enumerate(encoded):
        shows = any(
            inside and b < first + len(row["answer"]) and e > first
            for inside, b, e in zip(record["inside"], record["begins"], record["ends"], strict=True)
        )
        if not shows:
            assert unanswerable
            assert (record["start"], record["end"]) == (0, 0)
            continue
        text = row["context"][record["begins"][record["start"]] : record["ends"][record["end"]]]
        assert text
        assert text == row["answer"] or (place == 0 and text in row["answer"])
    assert task.encode(row, tokenizer_of_properties(), train=True)["start"] > 0


def test_windows_of_a_question_without_answer_depend_on_its_text_only(pieces):
    task = Answering(length=16, learned="all", most_windows=2)
    row = {"question": "the", "context": " ".join(WORDS * 6), "answer": ""}
    encoded = task.encode_rows(row, pieces)
    assert len(encoded) == 2
    assert encoded == task.encode_rows(dict(row), pieces)
    assert all((record["start"], record["end"], record["weight"]) == (0, 0, 0.5) for record in encoded)


def test_an_answer_without_a_piece_adds_a_gradient_of_zero(pieces):
    """It is no question without answer either: the record is clipped like all others and moves nothing."""
    row = {"question": "the film", "context": "the film \u2003 good", "answer": " \u2003 "}
    for learned in ("best", "all"):
        task = Answering(length=16, learned=learned)
        task.learn([row])
        encoded = task.encode_rows(row, pieces)
        assert [record["weight"] for record in encoded] == [0.0]
        gradient = true_gradient(network(pieces), task, pieces, row)
        assert float(gradient.norm()) == 0.0
        squared = {"all": gradient.norm()[None]}
        factors = FlatClipping(1.0).clip(squared).factors["all"]
        assert bool(torch.isfinite(factors).all())
        assert "1 of 1 answers have no word piece" in task.remarks([row], encoded)[0]


def test_the_place_of_an_answer_is_where_its_start_says(pieces):
    task = Answering(length=16)
    row = {"question": "the", "context": "good film good", "answer": '[{"text": "good", "start": 10}]'}
    record = task.encode(row, pieces, train=True)
    assert record["begins"][record["start"]] == 10
    assert task.is_right("good", row)
    assert not task.is_right("", row)


# Questions ----------------------------------------------------------------------------------------------------------

questions = st.lists(st.sampled_from([*WORDS, "goods", "filmbads", "unknown", "\u00e9", ""]), max_size=40)


@given(questions, contexts, st.integers(5, 24), st.data())
def test_no_question_and_no_length_end_in_a_bare_error(question, context, length, data):
    """Whatever a row holds: the windows fit, cover the context, and say whether the question is whole."""
    stride = data.draw(st.integers(0, length // 2))
    joined = " ".join(question)
    windows = windows_of(joined, " ".join(context), tokenizer_of_properties(), length=length, stride=stride)
    assert all(len(window["input_ids"]) <= length for window in windows)
    covered = {
        b
        for window in windows
        for inside, b in zip(window["inside"], window["begins"], strict=True)
        if inside
    }  # fmt: skip
    assert len(covered) == len(context)
    whole = len(tokenizer_of_properties()(joined, add_special_tokens=False)["input_ids"]) <= min(
        length // 2, length - 4
    )
    assert windows[0]["question_cut"] == (not whole)


def test_what_cannot_be_read_is_a_sentence(pieces):
    with pytest.raises(BadParameterError, match="leaves no room for a question"):
        windows_of("the", "film", pieces, length=4)
    with pytest.raises(BadParameterError, match="share at most 8 of them, not 9"):
        Answering(length=16, stride=9).learn(long_rows())
    with pytest.raises(BadParameterError, match="some"):
        Answering(learned="some").learn(long_rows())
    row = {"question": "the film " * 9, "context": "good", "answer": ""}
    task = Answering(length=16)
    assert (
        "1 of 1 questions are longer than half of 16" in task.remarks([row], [task.encode(row, pieces, train=True)])[0]
    )


# Ranked answers -------------------------------------------------------------------------------------------------------


def test_answers_of_all_windows_are_ranked_together():
    context = "the film good film"
    film, good, later = AnswerSpan(3.0, 4, 8), AnswerSpan(2.0, 9, 13), AnswerSpan(5.0, 14, 18)
    ranking = Ranking.of_windows(context, [WindowSpans([film, good], 1.0), WindowSpans([later], 4.0)])
    assert ranking.answers == [("film", 5.0), ("good", 2.0)], "each text once, by its best score"
    assert ranking.nothing == 1.0, "no answer counts by the window that has one"
    assert ranking.difference == -4.0
    assert (ranking.predicted(-4.0), ranking.predicted(-4.1), ranking.predicted(None)) == ("film", "", "film")
    for threshold in (0.0, -4.0, -5.0):
        best = ranking.best(20, threshold)
        assert best[0].answer == ranking.predicted(threshold)
        assert sum(answer.probability for answer in best) == pytest.approx(1.0)
        assert {answer.answer: answer.score for answer in best} == {"film": 5.0, "good": 2.0, "": 1.0}
        others = [answer.score for answer in best[1:]]
        assert others == sorted(others, reverse=True)
    assert [answer.answer for answer in ranking.best(1, None)] == ["film"]
    empty = Ranking.of_windows("", [WindowSpans([], 0.0)])
    assert (empty.predicted(0.0), empty.predicted(None), empty.difference) == ("", "", math.inf)
    assert empty.best(3, None) == []


def test_the_best_answers_are_those_of_trying_every_span(pieces):
    task, model, rows = Answering(length=16), network(pieces).eval(), long_rows()
    rankings = ranked_rows(task, model, pieces, rows, batch=5)
    assert predict_rows(task, model, pieces, rows, batch=3) == [ranking.predicted(0.0) for ranking in rankings]
    for row, ranking in zip(rows, rankings, strict=True):
        scores, nothing = {}, math.inf
        for window in task.windows(row, pieces):
            ids = {name: torch.tensor([window[name]]) for name in ("input_ids", "attention_mask")}
            with torch.no_grad():
                output = model(**ids)
            start, end = output.start_logits[0].tolist(), output.end_logits[0].tolist()
            nothing = min(nothing, start[0] + end[0])
            inside = [i for i, place in enumerate(window["inside"]) if place]
            for i in inside:
                for j in inside:
                    if i <= j:
                        text = row["context"][window["begins"][i] : window["ends"][j]]
                        scores[text] = max(scores.get(text, -math.inf), start[i] + end[j])
        assert ranking.nothing == pytest.approx(nothing, abs=1e-5)
        best = sorted(scores.values(), reverse=True)[: min(5, len(scores))]
        assert [score for _, score in ranking.answers[:5]] == pytest.approx(best, abs=1e-5)
        assert all(scores[text] == pytest.approx(score, abs=1e-5) for text, score in ranking.answers)
