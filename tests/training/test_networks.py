"""LSTM networks: the recurrence of torch, exact norms, padding, saving; strategies on every family of models."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from tacit.errors import BadInputError, BadParameterError  # noqa: E402
from tacit.training.gradients import choose  # noqa: E402
from tacit.training.gradients.loop import Loop  # noqa: E402
from tacit.training.models import load_model  # noqa: E402
from tacit.training.networks import HEADS, BiLstmConfig  # noqa: E402
from tacit.training.plan import TrainingPlan  # noqa: E402
from tacit.training.recurrent import Recurrent  # noqa: E402
from tacit.training.run import TrainingRun, TrainingSettings  # noqa: E402
from tacit.training.start import is_from_scratch  # noqa: E402
from tacit.training.strategies import apply_strategy  # noqa: E402
from tacit.training.tasks import Classification, task_named  # noqa: E402
from tests.training.test_run import accuracy, rows, tokenizer  # noqa: E402, F401
from tests.training.test_tasks import ROWS, model_for  # noqa: E402
from tests.training.zoo import batch, build  # noqa: E402

TASKS = ("classify", "regress", "tag", "answer")


def task_of(name):
    task = task_named(name)(length=24)
    task.learn(ROWS[name])
    return task


def small(task, words, **more):
    torch.manual_seed(0)
    config = BiLstmConfig(vocab_size=len(words), embedding=7, hidden=6, layers=2, **more, **task.model_options())
    return HEADS[task.model_class][0](config)


def test_the_recurrence_is_that_of_torch_and_padding_changes_nothing():
    torch.manual_seed(1)
    ours = Recurrent(7, 4, 2, dropout=0.0)
    theirs = torch.nn.LSTM(7, 4, 2, batch_first=True, bidirectional=True)
    with torch.no_grad():
        for layer in range(2):
            for suffix, directions in (("", ours.forwards), ("_reverse", ours.backwards)):
                cell = directions[layer]
                for kind, ours_weight in (("ih", cell.inputs.weight), ("hh", cell.recurrent.weight)):
                    getattr(theirs, f"weight_{kind}_l{layer}{suffix}").copy_(ours_weight)
                getattr(theirs, f"bias_ih_l{layer}{suffix}").copy_(cell.inputs.bias)
                getattr(theirs, f"bias_hh_l{layer}{suffix}").zero_()
    values, lengths = torch.randn(4, 9, 7), torch.tensor([9, 4, 1, 6])
    mask = (torch.arange(9) < lengths[:, None]).long()
    packed = torch.nn.utils.rnn.pack_padded_sequence(values, lengths, batch_first=True, enforce_sorted=False)
    expected, _ = torch.nn.utils.rnn.pad_packed_sequence(theirs(packed)[0], batch_first=True)
    states = ours(values, mask)
    for i, length in enumerate(lengths.tolist()):
        assert torch.allclose(states[i, :length], expected[i, :length], atol=1e-6)
        alone = ours(values[i : i + 1, :length], mask[i : i + 1, :length])
        assert torch.allclose(states[i, :length], alone[0], atol=1e-6)


@pytest.mark.parametrize("name", TASKS)
def test_every_norm_of_a_bilstm_is_exact_in_one_pass(name, tokenizer, tmp_path):  # noqa: F811
    task = task_of(name)
    model = small(task, tokenizer)
    engine, checked = choose(model, task.loss, task.probes(tokenizer))
    assert engine.name == "taps", checked.refused
    model.eval().save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    again, _ = load_model(task, str(tmp_path))
    inputs = task.collate([task.encode(row, tokenizer, train=True) for row in ROWS[name]], tokenizer)
    assert torch.equal(task.loss(model, inputs), task.loss(again.eval(), inputs))
    assert len(task.predict(again, inputs, tokenizer, ROWS[name])) == len(ROWS[name])


@pytest.mark.parametrize("length", [2, 3, 6, 8, 9, 16])
def test_a_bilstm_is_checked_with_all_the_steps_it_will_take(length, tokenizer):  # noqa: F811
    task = Classification(length=length, labels=["a", "b"])
    engine, checked = choose(small(task, tokenizer), task.loss, task.probes(tokenizer), "taps")
    longest = {"input_ids": torch.ones(4, length, dtype=torch.long), "attention_mask": torch.ones(4, length)}
    assert engine.run({**longest, "label": torch.tensor([0, 1, 0, 1])}).losses.shape == (4,), checked


def test_norms_stay_exact_over_many_batches_of_the_same_shape(tokenizer):  # noqa: F811
    """Products that are remembered by place in memory must not outlive what lay there."""
    task = task_of("classify")
    model = small(task, tokenizer).eval()
    engine, _ = choose(model, task.loss, task.probes(tokenizer), "taps")
    generator = torch.Generator().manual_seed(0)
    for size in (4, 4, 6, 4, 6, 6):
        ids = torch.randint(0, len(tokenizer), (size, 12), generator=generator)
        gradients = {
            "input_ids": ids,
            "attention_mask": torch.ones_like(ids),
            "label": torch.randint(0, 2, (size,), generator=generator),
        }
        ours, alone = engine.run(gradients).squared_norms, Loop(model, task.loss).run(gradients).squared_norms
        for parameter, norms in alone.items():
            assert torch.allclose(ours[parameter], norms, rtol=1e-4, atol=1e-9), parameter


@pytest.mark.parametrize("strategy", ["frozen-lstm", "all-layers"])
@pytest.mark.parametrize("name", TASKS)
def test_a_frozen_encoder_trains_what_is_new_and_loads_again(name, strategy, tokenizer, tmp_path):  # noqa: F811
    task = task_of(name)
    whole = model_for(task, tokenizer)
    before = {k: v.clone() for k, v in whole.base_model.state_dict().items()}
    model = apply_strategy(whole, strategy)
    trained = [n for n, p in model.named_parameters() if p.requires_grad]
    assert trained
    assert not any("encoder" in n for n in trained)
    engine, checked = choose(model, task.loss, task.probes(tokenizer))
    assert engine.name == "taps", checked.refused
    kept = model.body.encoder.state_dict()
    assert all(torch.equal(kept[k], v) for k, v in before.items() if k in kept)
    model.train()
    assert not model.body.encoder.training, "features of a frozen encoder have no dropout"
    model.eval().save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    again, _ = load_model(task, str(tmp_path))
    inputs = task.collate([task.encode(row, tokenizer, train=True) for row in ROWS[name]], tokenizer)
    assert torch.equal(task.loss(model, inputs), task.loss(again.eval(), inputs))


def test_a_bilstm_learns_from_scratch_under_noise(tokenizer, tmp_path):  # noqa: F811
    tokenizer.save_pretrained(tmp_path / "words")
    task, data = Classification(length=16), rows(400)
    task.learn(data)
    torch.manual_seed(0)
    model, words = load_model(task, "bilstm-1x16", tokenizer=str(tmp_path / "words"))
    assert len(words) == len(tokenizer)
    model = apply_strategy(model, "full")
    plan = TrainingPlan(records=400, batch=400, steps=40, multiplier=6.0, delta=1e-3)
    settings = TrainingSettings(learning_rate=2e-2, model="bilstm", physical=400)
    run = TrainingRun(task, model, words, data, plan, settings, tmp_path / "out", seed=1)
    run.run()
    assert accuracy(run) > 0.8
    loaded, _ = load_model(task, str(tmp_path / "out"))
    assert type(loaded).__name__ == "BiLstmForSequenceClassification"


def test_a_model_from_scratch_starts_from_public_vectors(tokenizer, tmp_path):  # noqa: F811
    tokenizer.save_pretrained(tmp_path / "words")
    (tmp_path / "v.txt").write_text("good 1 2 3\nbad -1 -2 -3\nzebra 0 0 1\n")
    task = Classification(labels=["a", "b"])
    model, words = load_model(task, "bilstm", tokenizer=str(tmp_path / "words"), vectors=str(tmp_path / "v.txt"))
    weight, ids = model.get_input_embeddings().weight, words.get_vocab()
    good, bad = weight[ids["good"], :3], weight[ids["bad"], :3]
    assert torch.allclose(good, -bad)
    assert torch.allclose(good / good[0], torch.tensor([1.0, 2.0, 3.0]))
    with pytest.raises(BadParameterError, match="has its own"):
        load_model(task, "minilm", vectors="default")


@pytest.mark.parametrize("strategy", ["lora", "ia3", "head", "bias", "last-1", "all-layers", "frozen-lstm"])
def test_random_weights_are_not_kept(strategy, tokenizer, tmp_path):  # noqa: F811
    tokenizer.save_pretrained(tmp_path)
    model, _ = load_model(Classification(labels=["a", "b"]), "bilstm", tokenizer=str(tmp_path))
    with pytest.raises(BadParameterError, match="nothing worth keeping"):
        apply_strategy(model, strategy)


def test_a_pre_trained_model_keeps_its_own_pieces(tokenizer, tmp_path):  # noqa: F811
    task = Classification(labels=["a", "b"])
    model_for(task, tokenizer).save_pretrained(tmp_path / "model")
    tokenizer.save_pretrained(tmp_path / "model")
    tokenizer.save_pretrained(tmp_path / "same")
    load_model(task, str(tmp_path / "model"), tokenizer=str(tmp_path / "same"))
    other = transformers.AutoTokenizer.from_pretrained(tmp_path / "same")
    other.add_tokens(["zebra"])
    other.save_pretrained(tmp_path / "other")
    with pytest.raises(BadInputError, match="pieces"):
        load_model(task, str(tmp_path / "model"), tokenizer=str(tmp_path / "other"))


def test_names_of_models_from_scratch(tokenizer, tmp_path):  # noqa: F811
    assert [is_from_scratch(n) for n in ("bilstm", "bilstm-2x64", "bilstm-2", "minilm")] == [True, True, False, False]
    tokenizer.save_pretrained(tmp_path)
    with pytest.raises(BadParameterError, match="classifies, tags and answers"):
        load_model(task_named("write")(), "bilstm", tokenizer=str(tmp_path))
    (tmp_path / "empty").mkdir()
    with pytest.raises(BadInputError, match="has no tokenizer"):
        load_model(Classification(labels=["a", "b"]), "bilstm", tokenizer=str(tmp_path / "empty"))


# Strategies on every family -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", ["lora", "ia3"])
@pytest.mark.parametrize(
    "name", ["bert", "bert masked, tied", "roberta", "distilbert", "bart, tied", "t5", "gpt2, tied"]
)
def test_small_weights_are_clipped_in_one_pass_and_merge_without_a_trace(name, strategy):
    model, loss = build(name)
    names = set(dict(model.named_parameters()))
    with torch.no_grad():  # large enough that a change is seen in the loss
        for parameter in model.parameters():
            parameter.mul_(5.0 if parameter.dim() == 2 else 1.0)
    examples = batch(3)
    plain = loss(model.eval(), examples).detach()
    model = apply_strategy(model, strategy, rank=2)
    engine, checked = choose(model, loss, [batch(3), batch(5)])
    assert engine.name == "taps", checked.refused
    with torch.no_grad():
        for parameter_name, parameter in model.named_parameters():
            if parameter.requires_grad and ("lora_B" in parameter_name or parameter_name.endswith("scale")):
                parameter.add_(torch.linspace(-1.0, 1.0, parameter.numel()).view_as(parameter))
    moved = loss(model.eval(), examples).detach()
    assert not torch.allclose(moved, plain, atol=1e-4)
    merged = model.merge_and_unload()
    assert torch.allclose(loss(merged.eval(), examples), moved, rtol=1e-4, atol=1e-5)
    assert set(dict(merged.named_parameters())) == names


def test_a_pre_trained_output_layer_stays_as_it_is():
    for strategy in ("lora", "ia3"):
        model = apply_strategy(build("t5")[0], strategy)
        assert not any("lm_head" in n for n, p in model.named_parameters() if p.requires_grad)
