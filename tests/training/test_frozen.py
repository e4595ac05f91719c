"""Frozen lower layers are run once, and nothing else changes."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from tacit.training import frozen  # noqa: E402
from tacit.training.frozen import cut, keep  # noqa: E402
from tacit.training.gradients import choose  # noqa: E402
from tacit.training.strategies import apply_strategy  # noqa: E402
from tacit.training.tasks import Classification, MaskedLanguage, Tagging  # noqa: E402
from tests.training.test_run import accuracy, make_run, rows, tokenizer  # noqa: E402, F401

SMALL = {
    "hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 2, "intermediate_size": 32,
    "max_position_embeddings": 40, "pad_token_id": 0,
}  # fmt: skip


@pytest.fixture(autouse=True)
def nothing_remembered(monkeypatch):
    monkeypatch.setattr(frozen, "PROCESS_MEMORY", frozen.StateMemory())


def encoder(kind, words, head="SequenceClassification", labels=2):
    torch.manual_seed(0)
    shared = {**SMALL, "vocab_size": len(words), "num_labels": labels}
    if kind == "DistilBert":
        config = transformers.DistilBertConfig(
            vocab_size=len(words), dim=32, n_layers=3, n_heads=2, hidden_dim=32, num_labels=labels, pad_token_id=0
        )
    else:
        config = getattr(transformers, f"{kind}Config")(**shared)
    return getattr(transformers, f"{kind}For{head}")(config)


@pytest.mark.parametrize("strategy", ["last-1", "last-2", "head", "all-layers"])
@pytest.mark.parametrize("kind", ["Bert", "Roberta", "DistilBert"])
def test_the_upper_half_has_the_gradients_of_the_whole(kind, strategy, tokenizer):  # noqa: F811
    task = Classification(length=16, labels=["neg", "pos"])
    model = apply_strategy(encoder(kind, tokenizer), strategy)
    model.eval()
    probes = task.probes(tokenizer)
    halves = cut(model, task, probes)
    assert halves is not None
    whole, _ = choose(model, task.loss, probes)
    upper, _ = choose(halves.top, task.loss, [halves.continued(probe) for probe in probes])
    trained = {id(p) for p in model.parameters() if p.requires_grad}
    assert {id(p) for p in upper.parameters.values()} == trained, "the weights themselves, not copies"
    a, b = whole.run(probes[1]), upper.run(halves.continued(probes[1]))
    torch.testing.assert_close(
        torch.stack(list(a.squared_norms.values())).sum(0), torch.stack(list(b.squared_norms.values())).sum(0)
    )


def test_kept_outputs_are_those_of_the_lower_half(tokenizer):  # noqa: F811
    task = Classification(length=16, labels=["neg", "pos"])
    model = apply_strategy(encoder("Bert", tokenizer), "last-1").eval()
    halves = cut(model, task, task.probes(tokenizer))
    encoded = [task.encode(row, tokenizer, train=True) for row in rows(30)] + [
        task.encode({"text": "", "label": "neg"}, tokenizer, train=True)
    ]
    warnings = []
    kept = keep(halves, task, encoded, tokenizer, hidden=32, batch=7, progress=lambda a, b: warnings.append((a, b)))
    assert warnings[-1] == (31, 31)
    records = [30, 2, 17]
    batch = task.collate([encoded[i] for i in records], tokenizer)
    expected = halves.below(batch) * batch["attention_mask"][..., None]
    torch.testing.assert_close(kept.of(records, batch["input_ids"].shape[1]), expected, rtol=1e-2, atol=2e-3)


def test_the_same_records_below_the_same_layers_are_computed_once(tokenizer, monkeypatch):  # noqa: F811
    task = Classification(length=16, labels=["neg", "pos"])
    computed = []
    below = frozen.Halves.below
    monkeypatch.setattr(frozen.Halves, "below", lambda self, batch: computed.append(1) or below(self, batch))

    def kept(texts, *, strategy="last-1", length=16, change=None):
        model = apply_strategy(encoder("Bert", tokenizer), strategy).eval()
        if change:
            with torch.no_grad():
                change(model)
        task.length = length
        halves = cut(model, task, task.probes(tokenizer))
        encoded = [task.encode(row, tokenizer, train=True) for row in texts]
        progress = []
        computed.clear()
        result = keep(halves, task, encoded, tokenizer, hidden=32, progress=lambda a, b: progress.append((a, b)))
        assert progress[-1] == (len(texts), len(texts))
        return result, bool(computed)

    def nudge(model):
        next(model.base_model.embeddings.parameters())[5, 3] += 1e-3

    first, worked = kept(rows(30))
    assert worked
    again, worked = kept(rows(30))
    assert again is first, "another model with the same lower layers"
    assert not worked
    for other in ({"strategy": "head"}, {"length": 12}, {"change": nudge}):
        assert kept(rows(30), **other)[1], other
    assert kept(rows(29))[1]
    frozen.PROCESS_MEMORY.most_bytes = first.bytes
    assert kept(rows(25))[1]
    assert frozen.PROCESS_MEMORY.used_bytes <= first.bytes


def test_a_model_that_does_not_run_in_two_parts_runs_as_a_whole(tokenizer, monkeypatch):  # noqa: F811
    """Whatever its code raises, and the model is left in the mode that it was in."""
    task = Classification(length=16, labels=["neg", "pos"])
    model = apply_strategy(encoder("Bert", tokenizer), "head").train()

    def refuse(self, *given, **named):
        raise LookupError("no state of its own")

    monkeypatch.setattr(frozen.PassOn, "forward", refuse)
    assert cut(model, task, task.probes(tokenizer)) is None
    assert model.training


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize("alone", [False, True])
def test_what_is_kept_of_a_record_does_not_depend_on_the_others(tokenizer, alone, fast, monkeypatch):  # noqa: F811
    """Bit for bit: with half precision, another rounding error would be another number for many records at once."""
    if alone:
        monkeypatch.setattr(frozen, "_are_independent", lambda *_: False)
    task = Classification(length=40, labels=["neg", "pos"])
    halves = cut(apply_strategy(encoder("Bert", tokenizer), "last-1").eval(), task, task.probes(tokenizer))
    halves.fast = fast
    made = [{"text": " ".join([row["text"]] * (1 + i % 4)), "label": "neg"} for i, row in enumerate(rows(90))]
    encoded = [task.encode(row, tokenizer, train=True) for row in made]
    whole = keep(halves, task, encoded, tokenizer, hidden=32)
    # Without the longest ones, without every third, and with one record alone.
    short = [i for i, example in enumerate(encoded) if len(example["input_ids"]) < 12]
    for chosen in (short, list(range(0, 90, 3)), [17]):
        part = keep(halves, task, [encoded[i] for i in chosen], tokenizer, hidden=32)
        for place, record in enumerate(chosen):
            width = len(encoded[record]["input_ids"])
            assert torch.equal(part.of([place], width), whole.of([record], width))


def test_what_cannot_be_cut_is_trained_as_a_whole(tokenizer):  # noqa: F811
    task = Classification(length=16, labels=["neg", "pos"])
    probes = task.probes(tokenizer)
    assert cut(apply_strategy(encoder("Bert", tokenizer), "full"), task, probes) is None
    assert cut(apply_strategy(encoder("Bert", tokenizer), "bias"), task, probes) is None
    masked = MaskedLanguage(length=16)
    model = apply_strategy(encoder("Bert", tokenizer, head="MaskedLM"), "last-1")
    assert cut(model, masked, masked.probes(tokenizer)) is None, "masks differ from step to step"
    tagging = Tagging(length=16, labels=["A", "B", "C"])
    tagger = apply_strategy(encoder("Bert", tokenizer, head="TokenClassification", labels=3), "last-2")
    assert cut(tagger, tagging, tagging.probes(tokenizer)) is not None


def test_a_run_with_frozen_layers_learns_and_the_whole_model_is_saved(tokenizer, tmp_path):  # noqa: F811
    run = make_run(tokenizer, tmp_path / "model", seed=1, settings={"strategy": "last-1"})
    torch.manual_seed(0)
    run.model = apply_strategy(encoder("Bert", tokenizer), "last-1")
    before = run.model.bert.embeddings.word_embeddings.weight.detach().clone()
    steps = []
    run.prepared = lambda done, total: steps.append(done)
    run.run()
    assert steps[-1] == 1000
    assert accuracy(run) > 0.7
    loaded = transformers.AutoModelForSequenceClassification.from_pretrained(tmp_path / "model")
    assert loaded.config.num_hidden_layers == 3
    assert np.allclose(loaded.bert.embeddings.word_embeddings.weight.detach(), before)
