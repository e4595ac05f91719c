"""What a record adds depends on no other record: not on its neighbors in a batch, and not on how long they are."""

from __future__ import annotations

import json

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from tacit.noise.source import public_generator  # noqa: E402
from tacit.training.clipping import FlatClipping  # noqa: E402
from tacit.training.federated import LocalTraining  # noqa: E402
from tacit.training.federated.local import local_update  # noqa: E402
from tacit.training.frozen import cut  # noqa: E402
from tacit.training.gradients import Filled, PaddingError, choose  # noqa: E402
from tacit.training.gradients.examples import trainable  # noqa: E402
from tacit.training.gradients.loop import Loop  # noqa: E402
from tacit.training.gradients.padding import padding_deviation  # noqa: E402
from tacit.training.layout import choose_layout  # noqa: E402
from tacit.training.plan import TrainingPlan  # noqa: E402
from tacit.training.prediction import load_trained, predict_rows  # noqa: E402
from tacit.training.run import TrainingRun, TrainingSettings  # noqa: E402
from tacit.training.step import PrivateStep  # noqa: E402
from tacit.training.strategies import apply_strategy  # noqa: E402
from tacit.training.synthesis.codes import ControlCodes, ControlledWriting  # noqa: E402
from tacit.training.tasks import (  # noqa: E402
    TASKS,
    Answering,
    CausalLanguage,
    Classification,
    SanitizedMasking,
    task_named,
)
from tacit.training.tasks.rewriting import Rewriting  # noqa: E402
from tests.training.test_run import rows, tokenizer  # noqa: E402, F401
from tests.training.test_tasks import ROWS, model_for  # noqa: E402

LENGTH = 32


def shape(words):
    return {
        "vocab_size": len(words), "hidden_size": 32, "num_hidden_layers": 2, "intermediate_size": 48,
        "max_position_embeddings": 80, "pad_token_id": 0, "bos_token_id": 2, "eos_token_id": 3,
    }  # fmt: skip


def xlnet(words, labels):
    config = transformers.XLNetConfig(
        vocab_size=len(words), d_model=32, n_layer=2, n_head=4, d_inner=48, pad_token_id=0, **labels
    )
    return transformers.XLNetForSequenceClassification(config)


def fnet(words, labels):
    return transformers.FNetForSequenceClassification(transformers.FNetConfig(**shape(words), **labels))


def yoso(words, labels):
    config = transformers.YosoConfig(**shape(words), num_attention_heads=4, **labels)
    return transformers.YosoForSequenceClassification(config)


def canine(words, labels):
    config = transformers.CanineConfig(
        **shape(words), num_attention_heads=4, num_hash_buckets=50, local_transformer_stride=8, **labels
    )
    return transformers.CanineForSequenceClassification(config)


def convbert(words, labels):
    config = transformers.ConvBertConfig(**shape(words), num_attention_heads=4, embedding_size=32, **labels)
    return transformers.ConvBertForSequenceClassification(config)


def bert(words, labels):
    config = transformers.BertConfig(**shape(words), num_attention_heads=4, **labels)
    return transformers.BertForSequenceClassification(config)


READS_THE_FILLING = {"fnet": fnet, "yoso": yoso, "canine": canine, "convbert": convbert}
OTHERS = {"xlnet": xlnet, "bert": bert}


def built(kind, words, task):
    torch.manual_seed(0)
    return {**READS_THE_FILLING, **OTHERS}[kind](words, task.model_options()).eval()


def clipped_sum(model, task, words, records, bound=1.0):
    """What these records add to a step, as one vector, worked on as one batch."""
    result = Loop(model, task.loss).run(task.collate(records, words))
    clipped = FlatClipping(bound).clip(result.safe_squared_norms)
    return torch.cat([value.flatten() for value in result.weighted_sums(clipped.factors).values()])


def made_up(task, words, length, seed):
    generator = public_generator(seed)
    ids = [int(i) for i in generator.integers(5, len(words), length)]
    return {"input_ids": ids, "attention_mask": [1] * length, "label": int(generator.integers(len(task.labels)))}


def moved_by_one_record(model, task, words):
    short = [made_up(task, words, 5, seed) for seed in range(12)]
    longer = made_up(task, words, LENGTH, 99)
    return float((clipped_sum(model, task, words, [*short, longer]) - clipped_sum(model, task, words, short)).norm())


@pytest.mark.parametrize("kind", READS_THE_FILLING)
def test_a7_a_model_that_reads_the_filling_is_refused_or_filled_up_to_one_length(kind, tokenizer):  # noqa: F811
    task = Classification(length=LENGTH, labels=["a", "b", "c"])
    model = built(kind, tokenizer, task)
    with pytest.raises(PaddingError, match="how far it is filled up"):
        choose(model, task.loss, task.probes(tokenizer), filled=task.filled(tokenizer))
    warned = []
    choose_layout(task, model, tokenizer, warned.append)
    assert task.constant
    assert "filled up to 32" in warned[0]
    engine, _ = choose(model, task.loss, task.probes(tokenizer), filled=task.filled(tokenizer))
    assert engine.run(task.probes(tokenizer)[0]).losses.shape == (3,)
    assert moved_by_one_record(model, task, tokenizer) <= 1.0 + 1e-5


@pytest.mark.parametrize("kind", ["xlnet", "fnet"])
def test_a7_one_longer_record_moved_the_sum_by_more_than_the_bound(kind, tokenizer):  # noqa: F811
    """The defect itself: filled up to the longest on the right, as all records were."""
    task = Classification(length=LENGTH, labels=["a", "b", "c"], side="right")
    model = built(kind, tokenizer, task)
    assert moved_by_one_record(model, task, tokenizer) > 1.3
    choose_layout(task, model, tokenizer)
    assert moved_by_one_record(model, task, tokenizer) <= 1.0 + 1e-5


def test_a7_the_side_of_the_tokenizer_comes_first_and_any_side_without_influence_will_do(tokenizer):  # noqa: F811
    task = Classification(length=LENGTH, labels=["a", "b", "c"])
    choose_layout(task, built("xlnet", tokenizer, task), tokenizer)
    assert (task.side, task.constant) == ("left", False), "an XLNet sees nothing of the filling before a text"
    choose_layout(task, built("bert", tokenizer, task), tokenizer)
    assert (task.side, task.constant) == ("right", False)
    side = tokenizer.padding_side
    try:
        tokenizer.padding_side = "left"
        fresh = Classification(length=LENGTH, labels=["a", "b", "c"])
        batch = fresh.collate([made_up(fresh, tokenizer, 3, 1), made_up(fresh, tokenizer, 5, 2)], tokenizer)
        assert batch["attention_mask"][0].tolist() == [0, 0, 1, 1, 1]
        choose_layout(fresh, built("bert", tokenizer, fresh), tokenizer)
        assert (fresh.side, fresh.constant) == ("right", False), "positions of a BERT count from the first piece"
    finally:
        tokenizer.padding_side = side


def every_task(words):
    for name in TASKS:
        task = task_named(name)(length=LENGTH)
        task.learn(ROWS[name])
        yield task, model_for(task, words)
    sanitized = SanitizedMasking(length=LENGTH)
    yield sanitized, model_for(task_named("fill")(), words)
    codes = ControlledWriting(length=LENGTH, codes=ControlCodes(("label",), (("a", "b"),), True))
    yield codes, model_for(task_named("write")(), words)


@pytest.mark.parametrize("number", range(len(TASKS) + 2))
@pytest.mark.parametrize("side", ["right", "left"])
def test_a7_records_of_every_task_add_the_same_alone_and_beside_longer_ones(number, side, tokenizer):  # noqa: F811
    task, model = list(every_task(tokenizer))[number]
    model.eval()
    before = tokenizer.padding_side
    try:
        tokenizer.padding_side = side
        deviation = choose_layout(task, model, tokenizer)
    finally:
        tokenizer.padding_side = before
    assert not task.constant
    assert deviation < 1e-6
    engine, _ = choose(model, task.loss, task.probes(tokenizer), filled=task.filled(tokenizer))
    generator = public_generator(21)
    records = sorted((task.probe(generator, tokenizer) for _ in range(6)), key=lambda r: len(r["input_ids"]))
    assert len(records[0]["input_ids"]) < len(records[-1]["input_ids"])
    together = engine.run(task.collate(records, tokenizer)).squared_norms
    for place, record in enumerate(records):
        alone = Loop(model, task.loss).run(task.collate([record], tokenizer)).squared_norms
        for name, squared in together.items():
            torch.testing.assert_close(squared[place].sqrt(), alone[name][0].sqrt(), rtol=1e-4, atol=1e-5)


def test_a7_a_rewriting_model_reads_one_length_only(tokenizer):  # noqa: F811
    class Pieces:
        padding_side, pad_token_id = "right", 0

        def __len__(self):
            return len(tokenizer)

    task = Rewriting(length=12, filling=0)
    assert task.filled(Pieces()) == []
    assert {batch["input_ids"].shape[1] for batch in task.probes(Pieces())} == {12}


def test_a7_a_part_that_starts_at_zero_hides_nothing(tokenizer):  # noqa: F811
    """LoRA starts with a second matrix of zeros, behind which no gradient is seen."""
    pytest.importorskip("peft")
    task = Classification(length=LENGTH, labels=["a", "b", "c"])
    model = apply_strategy(built("bert", tokenizer, task), "lora").eval()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    seen = []

    def loss(network, batch):
        results = {name: p for name, p in trainable(network).items() if "lora_B" in name}
        seen.append(max(float(p.detach().abs().max()) for p in results.values()))
        return task.loss(network, batch)

    deviation, _ = padding_deviation(model, loss, task.filled(tokenizer))
    assert deviation < 1e-5
    assert min(seen) == 0.0
    assert max(seen) > 0.0, "weights near the first ones are tried as well"
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


class Cheat(torch.nn.Module):
    """Depends on the length of the batch by an amount that is given."""

    def __init__(self, much):
        super().__init__()
        self.words = torch.nn.Embedding(97, 6)
        self.much = much

    def forward(self, ids):
        return self.words(ids[:, :2]).sum(1)[:, :3] * (1.0 + self.much * ids.shape[1])


@pytest.mark.parametrize(("much", "refused"), [(0.0, False), (1e-3, True), (float("nan"), True)])
def test_a7_what_deviates_is_refused(much, refused):
    torch.manual_seed(0)
    model = Cheat(much)

    def loss(network, batch):
        return torch.nn.functional.cross_entropy(network(batch["input_ids"]), batch["labels"], reduction="none")

    def of(size, length):
        return {"input_ids": torch.ones(size, length, dtype=torch.long), "labels": torch.zeros(size, dtype=torch.long)}

    records = [Filled(of(1, 3), (of(1, 4), of(1, 9)))]
    if not refused:
        choose(model, loss, [of(3, 4), of(5, 4)], filled=records)
        return
    with pytest.raises(PaddingError):
        choose(model, loss, [of(3, 4), of(5, 4)], filled=records)


def test_a7_answers_stay_at_their_place_when_records_are_filled_up_on_the_left(tokenizer):  # noqa: F811
    task = Answering(length=LENGTH, side="left")
    encoded = [task.encode(row, tokenizer, train=True) for row in ROWS["answer"]]
    batch = task.collate(encoded, tokenizer)
    for row, start, end in zip(range(2), batch["start"].tolist(), batch["end"].tolist(), strict=True):
        own = encoded[row]
        assert batch["input_ids"][row, start] == own["input_ids"][own["start"]]
        assert batch["input_ids"][row, end] == own["input_ids"][own["end"]]
    right = Answering(length=LENGTH, side="right").collate(encoded, tokenizer)
    assert right["start"].tolist() == [record["start"] for record in encoded]


def test_a7_the_upper_half_of_a_model_is_checked_as_it_is_used(tokenizer):  # noqa: F811
    task = Classification(length=LENGTH, labels=["a", "b", "c"])
    model = apply_strategy(built("bert", tokenizer, task), "last-1").eval()
    halves = cut(model, task, task.probes(tokenizer))
    assert halves is not None
    records = [halves.continued_alone(record) for record in task.filled(tokenizer)]
    assert all(not bool(batch["inputs_embeds"][0, -1].any()) for record in records for batch in record.longer)
    deviation, _ = padding_deviation(halves.top, task.loss, records)
    assert deviation < 1e-6


def test_a7_the_update_of_a_user_is_the_same_whoever_else_takes_part(tokenizer):  # noqa: F811
    """Federated: even a model that reads the filling sees one user's rows only."""
    from tacit.noise.source import StreamKey

    task = Classification(length=LENGTH, labels=["a", "b"])
    model = built("fnet", tokenizer, task)
    records = [made_up(task, tokenizer, 4, 1), made_up(task, tokenizer, 6, 2), made_up(task, tokenizer, LENGTH, 3)]
    key = StreamKey.from_test_seed(1)

    def collate(picked):
        return task.collate([records[i] for i in picked], tokenizer)

    def update(others):
        for user in [0, 1] if others else [0]:
            mine = [0, 1] if user == 0 else [2]
            result, _ = local_update(
                model, trainable(model), task.loss, collate, mine, LocalTraining(), key.stream(0, b"user/%d" % user)
            )
            if user == 0:
                kept = result
        return kept

    with_others, alone = update(True), update(False)
    assert all(torch.equal(with_others[name], alone[name]) for name in alone)


def test_a7_a_run_keeps_its_layout_for_prediction_and_says_so_on_the_card(tokenizer, tmp_path):  # noqa: F811
    data = rows(60)
    task = Classification(length=12, labels=["neg", "pos"])
    model = built("fnet", tokenizer, task)
    plan = TrainingPlan(60, 20, 2, 1.0, 1e-3)
    folder = tmp_path / "m"
    run = TrainingRun(task, model, tokenizer, data, plan, TrainingSettings(model="fnet"), folder)
    promised = run.run()
    assert promised.parameters["filled up"] == "every record to 12 word pieces"
    assert json.loads((folder / "task.json").read_text())["constant"] is True
    again, network, words = load_trained(folder)
    assert again.constant
    together = predict_rows(again, network, words, data[:6])
    assert together == [predict_rows(again, network, words, [row])[0] for row in data[:6]]


def test_a7_a_private_step_of_a_model_that_reads_the_filling_moves_by_the_bound(tokenizer):  # noqa: F811
    """End to end: the noisy sums of neighboring data differ by one clipped gradient, with the same noise."""
    from tacit.noise.source import StreamKey

    task = Classification(length=LENGTH, labels=["a", "b", "c"])
    model = built("fnet", tokenizer, task)
    choose_layout(task, model, tokenizer)
    records = [made_up(task, tokenizer, 5, seed) for seed in range(8)] + [made_up(task, tokenizer, LENGTH, 50)]
    results = []
    for count in (8, 9):
        engine, _ = choose(model, task.loss, task.probes(tokenizer))
        plan = TrainingPlan(count, count, 1, 1e-9, 1e-3)
        step = PrivateStep(
            plan=plan, collate=lambda picked: task.collate([records[i] for i in picked], tokenizer), engine=engine,
            clipping=FlatClipping(1.0), model=model,
        )  # fmt: skip
        step.run(0, StreamKey.from_test_seed(3))
        results.append(torch.cat([p.grad.flatten() for p in engine.parameters.values()]) * count)
    assert float((results[0] - results[1]).norm()) <= 1.0 + 1e-4


def test_a7_a_causal_model_does_not_guess_its_first_piece_from_filling(tokenizer):  # noqa: F811
    task = CausalLanguage(length=LENGTH)
    model = model_for(task, tokenizer).eval()
    record = task.encode({"text": "good film"}, tokenizer, train=True)
    losses = []
    for side in ("right", "left"):
        task.side = side
        other = task.encode({"text": "the good film a bad film"}, tokenizer, train=True)
        losses.append(float(task.loss(model, task.collate([record, other], tokenizer))[0].detach()))
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)
