"""Every task: from a row to a loss per example that can be clipped exactly, and back to a prediction."""

from __future__ import annotations

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
    asked = task.collate([task.encode(row, tokenizer, train=False) for row in rows], tokenizer)
    found = task.predict(model, asked, tokenizer, rows)
    assert len(found) == len(rows)
    assert all(isinstance(item, str) for item in found)
    if name == "tag":
        assert [len(line.split()) for line in found] == [3, 1]
    if name == "answer":
        assert all(answer in row["context"] for answer, row in zip(found, rows, strict=True))


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
    with pytest.raises(BadInputError, match="leave out --always-answered"):
        Answering(unanswerable=False).learn(some_without)
