"""Every task: from a row to a loss per example that can be clipped exactly, and back to a prediction."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from tacit.errors import BadInputError  # noqa: E402
from tacit.training.gradients import choose  # noqa: E402
from tacit.training.tasks import TASKS, Answering, Tagging, task_named  # noqa: E402
from tests.training.test_run import tokenizer  # noqa: E402, F401

ROWS = {
    "classify": [{"text": "good film", "label": "a"}, {"text": "", "label": "b"}, {"text": "bad film", "label": "a"}],
    "regress": [{"text": "good", "pair": "fine", "label": "1.5"}, {"text": "a", "pair": "the", "label": "-2"}],
    "tag": [{"text": "the good film", "tags": "D A N"}, {"text": "film", "tags": "N"}],
    "answer": [{"question": "the film", "context": "the film was good", "answer": "good"},
               {"question": "a", "context": "bad film", "answer": "bad film"}],
    "write": [{"text": "the good film"}, {"text": "bad"}],
    "fill": [{"text": "the good film"}, {"text": "a bad film"}],
    "translate": [{"source": "good film", "target": "bad"}, {"source": "the", "target": "a film"}],
}  # fmt: skip


def model_for(task, words):
    shape = {
        "vocab_size": len(words), "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2,
        "intermediate_size": 16, "max_position_embeddings": 64, "pad_token_id": 0, "bos_token_id": 2, "eos_token_id": 3,
    }  # fmt: skip
    torch.manual_seed(0)
    if task.name == "write":
        return transformers.LlamaForCausalLM(transformers.LlamaConfig(**shape))
    if task.name == "translate":
        config = transformers.T5Config(
            vocab_size=len(words), d_model=16, d_kv=8, d_ff=16, num_layers=1, num_heads=2, pad_token_id=0,
            decoder_start_token_id=0, eos_token_id=3,
        )  # fmt: skip
        return transformers.T5ForConditionalGeneration(config)
    kinds = {
        "tag": transformers.BertForTokenClassification,
        "answer": transformers.BertForQuestionAnswering,
        "fill": transformers.BertForMaskedLM,
    }
    made = kinds.get(task.name, transformers.BertForSequenceClassification)
    return made(transformers.BertConfig(**shape, **task.model_options()))


@pytest.mark.parametrize("name", TASKS)
def test_losses_can_be_clipped_and_predictions_are_written_like_targets(name, tokenizer):  # noqa: F811
    rows, task = ROWS[name], task_named(name)(length=32)
    task.learn(rows)
    model = model_for(task, tokenizer)
    engine, checked = choose(model, task.loss, task.probes(tokenizer))
    assert engine.name == "taps", checked.refused
    batch = task.collate([task.encode(row, tokenizer, train=True) for row in rows], tokenizer)
    losses = task.loss(model.eval(), batch)
    assert losses.shape == (len(rows),)
    assert bool(torch.isfinite(losses).all())
    inputs = task.collate([task.encode(row, tokenizer, train=False) for row in rows], tokenizer)
    predictions = task.predict(model, inputs, tokenizer, rows)
    assert len(predictions) == len(rows)
    assert all(isinstance(item, str) for item in predictions)
    if name == "tag":
        assert [len(line.split()) for line in predictions] == [3, 1]
    if name == "answer":
        assert all(answer in row["context"] for answer, row in zip(predictions, rows, strict=True))


def test_texts_are_drawn_at_a_temperature(tokenizer):  # noqa: F811
    """The likeliest text is always the same; drawn ones of an untrained model are not, and repeat with their seed."""
    task = task_named("translate")(length=32)
    model = model_for(task, tokenizer).eval()
    inputs = task.collate([task.encode(ROWS["translate"][0], tokenizer, train=False)] * 8, tokenizer)
    rows = [ROWS["translate"][0]] * 8
    assert len(set(task.predict(model, inputs, tokenizer, rows))) == 1
    task.temperature = 1.0
    assert "temperature" not in task.settings()
    drawn = []
    for _ in range(2):
        torch.manual_seed(3)
        drawn.append(task.predict(model, inputs, tokenizer, rows))
    assert len(set(drawn[0])) > 1
    assert drawn[0] == drawn[1]


def test_the_pieces_of_an_answer_are_found(tokenizer):  # noqa: F811
    task = Answering(length=32)
    row = ROWS["answer"][0]
    encoded = task.encode(row, tokenizer, train=True)
    begin, end = encoded["begins"][encoded["start"]], encoded["ends"][encoded["end"]]
    assert row["context"][begin:end] == "good"


def test_rows_that_do_not_fit_a_task_are_named():
    with pytest.raises(BadInputError, match="row 1 has 2 words and 1 tags"):
        Tagging().learn([{"text": "a b", "tags": "X"}])
    with pytest.raises(BadInputError, match="tags that are not in the given list: 1 of them"):
        Tagging(labels=["X", "Y"]).learn([{"text": "a b", "tags": "X SECRET"}])
    with pytest.raises(BadInputError, match="answer of row 1"):
        Answering().learn([{"question": "q", "context": "c", "answer": "x"}])
    with pytest.raises(BadInputError, match="row 2 is not a finite number"):
        task_named("regress")().learn([{"text": "a", "label": "1"}, {"text": "b", "label": "nan"}])


def test_whether_questions_may_have_no_answer_is_never_read_off_the_rows():
    """It is saved with the model, so one private row without an answer would show."""
    answered = [{"question": "q", "context": "c d", "answer": "c"}]
    some_without = [*answered, {"question": "q", "context": "c d", "answer": ""}]
    saved = []
    for rows in (answered, some_without):
        task = Answering()
        task.learn(rows)
        saved.append(task.settings())
    assert saved[0] == saved[1]
    with pytest.raises(BadInputError, match="with unanswerable"):
        Answering(unanswerable=False).learn(some_without)


def test_c3_a_long_context_is_read_in_windows_and_no_answer_is_cut(tokenizer):  # noqa: F811
    """Every answer that fits is found at its place; the number of those that do not is said, and is private."""
    generator = np.random.default_rng(0)
    words = ["the", "a", "film", "good", "bad"]
    rows = []
    for place in range(0, 60, 3):
        context = [str(word) for word in generator.choice(words, 60)]
        context[place] = "great"
        rows.append({"question": "the film", "context": " ".join(context), "answer": "great"})
    task = Answering(length=24)
    encoded = [task.encode(row, tokenizer, train=True) for row in rows]
    for row, record in zip(rows, encoded, strict=True):
        assert len(record["input_ids"]) <= 24
        assert row["context"][record["begins"][record["start"]] : record["ends"][record["end"]]] == "great"
    assert task.remarks(rows, encoded) == []
    long = {"question": "the film", "context": rows[0]["context"], "answer": rows[0]["context"]}
    record = task.encode(long, tokenizer, train=True)
    assert record["start"] > 0, "as much of it as is seen is the target, not nothing"
    assert "1 of 21 answers" in task.remarks([*rows, long], [*encoded, record])[0]


def test_c3_an_unanswered_question_has_a_window_that_depends_on_its_own_text_only(tokenizer):  # noqa: F811
    task = Answering(length=12)
    rows = [{"question": "the", "context": " ".join(["film", "good", "a"] * 9) + f" {w}", "answer": ""} for w in "ab"]
    first = [task.encode(row, tokenizer, train=True) for row in rows]
    assert first == [task.encode(row, tokenizer, train=True) for row in rows]
    assert all((record["start"], record["end"]) == (0, 0) for record in first)


def test_c3_answers_are_looked_for_in_every_window(tokenizer):  # noqa: F811
    """A made-up model that knows one word finds it wherever it stands, however the batch is cut."""
    wanted = tokenizer.convert_tokens_to_ids("great")

    class Knows(torch.nn.Module):
        def forward(self, input_ids, attention_mask, **_):
            logits = (input_ids == wanted).float() * 10.0
            logits[:, 0] += 1.0  # nothing scores 2, the word 20
            return transformers.modeling_outputs.QuestionAnsweringModelOutput(start_logits=logits, end_logits=logits)

    task = Answering(length=12)
    rows = [
        {"question": "the", "context": " ".join(["film"] * place + ["great"] + ["film"] * (40 - place))}
        for place in (0, 7, 22, 40)
    ]
    rows.append({"question": "the", "context": " ".join(["film"] * 40)})
    assert len(task.windows(rows[0], tokenizer)) > 3
    from tacit.training.prediction import predict_rows

    for batch in (1, 2, 5):
        predictions = predict_rows(task, Knows(), tokenizer, rows, batch=batch)
        assert predictions == ["great"] * 4 + [""]


def test_c3_a_question_that_is_longer_than_the_length_stops_nothing(tokenizer):  # noqa: F811
    task = Answering(length=12)
    row = {"question": "the film " * 50, "context": "a good film", "answer": "good"}
    record = task.encode(row, tokenizer, train=True)
    assert len(record["input_ids"]) <= 12
    assert row["context"][record["begins"][record["start"]] : record["ends"][record["end"]]] == "good"


def test_a_missing_label_is_no_class():
    with pytest.raises(BadInputError, match="row 2 has no label"):
        task_named("classify")().learn([{"text": "a", "label": "x"}, {"text": "b", "label": " "}])
