"""A whole run on a small model: the plan, the card, resuming, bad input."""

from __future__ import annotations

import copy
import json
import math
import os
import stat
from itertools import pairwise

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from tacit.account.delta import (  # noqa: E402
    LEAST_DELTA,
    automatic_delta,
    leak_probability,
)
from tacit.card import Card  # noqa: E402
from tacit.errors import BadInputError, BadParameterError  # noqa: E402
from tacit.guarantee import Adjacency, Notion, Unit  # noqa: E402
from tacit.noise.kept_key import NotPrivateError  # noqa: E402
from tacit.noise.source import Source, StreamKey  # noqa: E402
from tacit.training.clipping import (  # noqa: E402
    AutomaticClipping,
    DampedClipping,
    FlatClipping,
    LayerClipping,
    QuantileClipping,
)
from tacit.training.gradients import choose  # noqa: E402
from tacit.training.origin import Origin  # noqa: E402
from tacit.training.plan import TrainingPlan  # noqa: E402
from tacit.training.run import TrainingRun, TrainingSettings  # noqa: E402
from tacit.training.step import PlainStep, PrivateStep, add_noise  # noqa: E402
from tacit.training.strategies import apply_strategy  # noqa: E402
from tacit.training.tasks import Classification  # noqa: E402
from tests.training.zoo import batch, build  # noqa: E402

GOOD, BAD = "good fine great happy", "bad poor awful sad"


LEARNING, FOR_EPSILON_8 = 80, 1.1407
"""Steps in which a run learns something, and their noise multiplier at a sampling rate of .2 and a delta of 4e-4: to
calibrate it takes seconds."""
MUCH_NOISE = 8.0
"""Of runs that need not learn: accounting for it takes a tenth of the time."""


@pytest.fixture(scope="module")
def tokenizer():
    from tokenizers import Tokenizer, models, pre_tokenizers

    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *GOOD.split(), *BAD.split(), "the", "a", "film"]
    made = Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}, unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=made, pad_token="[PAD]", unk_token="[UNK]", mask_token="[MASK]", cls_token="[CLS]"
    )


def rows(count=1000, seed=0):
    generator = np.random.default_rng(seed)
    made = []
    for i in range(count):
        words = [*generator.choice((GOOD if i % 2 else BAD).split(), 2), *generator.choice(["the", "a", "film"], 3)]
        made.append({"text": " ".join(generator.permutation(words)), "label": "pos" if i % 2 else "neg"})
    return made


def tiny(tokenizer, task, layers=1):
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=len(tokenizer), hidden_size=32, num_hidden_layers=layers, num_attention_heads=2,
        intermediate_size=32, max_position_embeddings=32, pad_token_id=0, **task.model_options(),
    )  # fmt: skip
    return transformers.BertForSequenceClassification(config)


def make_run(tokenizer, folder, **changes):
    task = Classification(length=16)
    data = rows()
    task.learn(data)
    steps = changes.pop("steps", LEARNING)
    plan = TrainingPlan(len(data), 200, steps, FOR_EPSILON_8 if steps == LEARNING else MUCH_NOISE, 4e-4)
    settings = TrainingSettings(learning_rate=1e-2, model="tiny", checkpoint_every=5, **changes.pop("settings", {}))
    return TrainingRun(task, tiny(tokenizer, task), tokenizer, data, plan, settings, folder, **changes)


def accuracy(run):
    fresh = rows(100, seed=9)
    encoded = [run.task.encode(row, run.tokenizer, train=False) for row in fresh]
    run.model.eval()
    predictions = run.task.predict(run.model, run.task.collate(encoded, run.tokenizer), run.tokenizer, fresh)
    return np.mean([a == row["label"] for a, row in zip(predictions, fresh, strict=True)])


def test_a_run_learns(tokenizer, tmp_path):
    run = make_run(tokenizer, tmp_path / "model", seed=1)
    run.run()
    assert accuracy(run) > 0.9


def test_the_folder_of_a_run_is_a_model_with_a_card(tokenizer, tmp_path):
    run = make_run(tokenizer, tmp_path / "model", steps=6)
    seen = []
    guarantee = run.run(seen.append)
    assert guarantee.notion is Notion.APPROXIMATE
    assert guarantee.unit is Unit.RECORD
    assert guarantee.epsilon == pytest.approx(run.plan.epsilon(6))
    assert guarantee.delta < 1 / 1000
    assert [p.step for p in seen] == list(range(1, run.plan.steps + 1))
    assert all(a.epsilon <= b.epsilon for a, b in pairwise(seen))
    loaded = transformers.AutoModelForSequenceClassification.from_pretrained(tmp_path / "model")
    assert loaded.config.id2label == {0: "neg", 1: "pos"}
    card = Card.from_json((tmp_path / "model" / "card.json").read_text())
    assert card.guarantee.epsilon == guarantee.epsilon
    assert card.guarantee.parameters["gradients"].startswith("taps, within ")
    engine = json.loads((tmp_path / "model.private" / "engine.json").read_text())
    assert engine["engine"] == "taps"
    assert engine["norm_deviation"] < 1e-5
    assert not (tmp_path / "model.private" / "checkpoint.pt").exists(), "the key of the noise must be gone"


def test_a12_the_key_of_the_noise_is_written_once_kept_private_and_overwritten(tokenizer, tmp_path):
    """A checkpoint is written many times, and each version would leave the key on the disk."""

    class StoppedError(Exception):
        pass

    def stop(progress):
        if progress.step == 7:
            raise StoppedError

    folder = tmp_path / "model"
    with pytest.raises(StoppedError):
        make_run(tokenizer, folder, steps=12).run(stop)
    private = tmp_path / "model.private"
    assert not folder.exists(), "nothing of an unfinished run lies where the model will be"
    key = (private / "noise.key").read_bytes()
    assert stat.S_IMODE((private / "noise.key").stat().st_mode) == 0o600
    assert key not in (private / "checkpoint.pt").read_bytes()
    os.link(private / "noise.key", tmp_path / "other name")
    (private / "noise.key").chmod(0o644)
    with pytest.raises(NotPrivateError, match="others may read or write it"):
        make_run(tokenizer, folder, steps=12).run(resume=True)
    (private / "noise.key").chmod(0o600)
    private.chmod(0o777)
    with pytest.raises(NotPrivateError, match="mode 777"):
        make_run(tokenizer, folder, steps=12).run(resume=True)
    private.chmod(0o700)
    (private / "noise.key").rename(private / "away")
    with pytest.raises(BadInputError, match="key of the noise is missing"):
        make_run(tokenizer, folder, steps=12).run(resume=True)
    (private / "away").rename(private / "noise.key")
    make_run(tokenizer, folder, steps=12).run(resume=True)
    assert not (private / "noise.key").exists()
    assert (tmp_path / "other name").read_bytes() == bytes(len(key))


def test_a_run_of_an_earlier_version_goes_on_where_its_private_folder_is(tokenizer, tmp_path):
    def stop(progress):
        if progress.step == 1:
            raise KeyboardInterrupt

    folder = tmp_path / "model"
    with pytest.raises(KeyboardInterrupt):
        make_run(tokenizer, folder, steps=2).run(stop)
    with pytest.raises(BadInputError, match="unfinished run"):
        make_run(tokenizer, folder, steps=2).run()
    folder.mkdir()
    (tmp_path / "model.private").rename(folder / "private")
    make_run(tokenizer, folder, steps=2).run(resume=True)
    assert not (folder / "private" / "noise.key").exists()
    assert not (tmp_path / "model.private").exists()
    # A private folder whose model is gone is not written over.
    (folder / "private").rename(tmp_path / "other.private")
    with pytest.raises(BadInputError, match="is left of an earlier run"):
        make_run(tokenizer, tmp_path / "other", steps=2).run()


def test_a_run_that_is_stopped_and_resumed_is_the_same_run(tokenizer, tmp_path):
    whole = make_run(tokenizer, tmp_path / "whole", seed=1, steps=12)
    whole.run()

    class StoppedError(Exception):
        pass

    def stop_at_7(progress):
        if progress.step == 7:
            raise StoppedError

    first = make_run(tokenizer, tmp_path / "parts", seed=1, steps=12)
    with pytest.raises(StoppedError):
        first.run(stop_at_7)
    second = make_run(tokenizer, tmp_path / "parts", seed=1, steps=12)
    guarantee = second.run(resume=True)
    assert not guarantee.is_private, "a test seed gives no guarantee"
    for a, b in zip(whole.model.parameters(), second.model.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-7)


def test_another_command_cannot_go_on_with_a_run(tokenizer, tmp_path):
    run = make_run(tokenizer, tmp_path / "m", seed=1, steps=12)
    with pytest.raises(KeyboardInterrupt):
        run.run(lambda p: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(BadInputError, match="unfinished run"):
        make_run(tokenizer, tmp_path / "m", seed=1, steps=12).run()
    other = make_run(tokenizer, tmp_path / "m", seed=1, steps=12, settings={"bound": 5.0})
    with pytest.raises(BadInputError, match="another settings"):
        other.run(resume=True)
    changed = make_run(tokenizer, tmp_path / "m", seed=1, steps=12)
    changed.rows[3]["text"] = "a film"
    with pytest.raises(BadInputError, match="another data"):
        changed.run(resume=True)
    with pytest.raises(BadInputError, match="no unfinished run"):
        make_run(tokenizer, tmp_path / "n").run(resume=True)


def test_a_run_with_other_weights_or_pieces_cannot_go_on(tokenizer, tmp_path):
    def made(rank=2):
        run = make_run(tokenizer, tmp_path / "m", seed=1, steps=12, settings={"strategy": "lora"})
        run.model = apply_strategy(run.model, "lora", rank=rank)
        return run

    with pytest.raises(KeyboardInterrupt):
        made().run(lambda p: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(BadInputError, match="another set of trained weights"):
        made(rank=4).run(resume=True)
    other = made()
    other.tokenizer = copy.deepcopy(tokenizer)
    other.tokenizer.add_tokens(["another"])
    with pytest.raises(BadInputError, match="another tokenizer"):
        other.run(resume=True)
    made().run(resume=True)


# The plan ------------------------------------------------------------------------------------------------------------


def test_the_plan_spends_what_it_says_and_not_more():
    plan = TrainingPlan.calibrated(epsilon=1.0, records=10_000, batch=100, epochs=10)
    assert plan.steps == 1000
    assert 0.99 < plan.epsilon() <= 1.0
    assert plan.epsilon(500) < plan.epsilon()
    assert plan.epsilon(0) == 0.0
    replacing = TrainingPlan.calibrated(
        epsilon=1.0, records=10_000, batch=100, epochs=10, adjacency=Adjacency.REPLACE_ONE
    )
    assert replacing.multiplier > plan.multiplier
    three = plan.guarantee(steps=1000, secure=True, what="x", parameters={}, trials=3)
    assert three.epsilon == pytest.approx(3 * plan.epsilon())
    assert three.delta == pytest.approx(3 * plan.delta)


def test_records_are_drawn_independently_at_the_rate_of_the_plan():
    """Counts within 5 standard deviations; false-alarm rate below 1e-5 for all together."""
    plan = TrainingPlan(records=1000, batch=50, steps=400, multiplier=1.0, delta=1e-4)
    key = StreamKey.from_test_seed(4)
    samples = [plan.sample(step, key) for step in range(400)]
    sizes = np.array([len(s) for s in samples])
    assert abs(sizes.mean() - 50) < 5 * math.sqrt(1000 * 0.05 * 0.95 / 400)
    assert len(set(sizes.tolist())) > 10, "a Poisson sample has no fixed size"
    times = np.bincount(np.concatenate(samples), minlength=1000)
    assert np.abs(times - 20).max() < 6 * math.sqrt(400 * 0.05 * 0.95)
    assert np.array_equal(plan.sample(7, key), samples[7]), "a repeated step draws the same records"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"batch": 2000}, "does not fit"),
        ({"records": 0}, "no record"),
        ({"delta": 0.01}, "not below one over"),
        ({"multiplier": 0.0}, "positive"),
        ({"steps": 0}, "at least 1 step"),
    ],
)
def test_impossible_plans_are_refused(changes, message):
    good = {"records": 1000, "batch": 50, "steps": 10, "multiplier": 1.0, "delta": 1e-4}
    with pytest.raises(BadParameterError, match=message):
        TrainingPlan(**{**good, **changes})


def test_an_epsilon_that_needs_endless_noise_is_refused():
    with pytest.raises(BadParameterError, match="nothing can be learned"):
        TrainingPlan.calibrated(epsilon=1e-4, records=1000, batch=1000, epochs=100)


def test_automatic_delta_is_well_below_one_over_the_records():
    for records in (2, 10, 999, 67_349, 10**7, 10**9, 10**12):
        assert 0 < automatic_delta(records) < 1 / records
        assert automatic_delta(records) <= max(records**-1.5, LEAST_DELTA)
    assert automatic_delta(20) == pytest.approx(0.01)
    assert automatic_delta(67_349) == pytest.approx(5e-8)
    assert leak_probability(automatic_delta(67_349), 67_349) < 0.005


@pytest.mark.parametrize(("batch_size", "said"), [(50, 1), (1000, 0)])
def test_amplification_by_sampling_assumes_that_the_sample_stays_secret(batch_size, said):
    plan = TrainingPlan(records=1000, batch=batch_size, steps=2, multiplier=2.0, delta=1e-5, unit=Unit.USER)
    promise = plan.guarantee(steps=2, secure=True, what="x", parameters={})
    assert sum("nobody learns which users were drawn" in item for item in promise.assumptions) == said


@pytest.mark.parametrize("records", [20, 80, 67_349])
def test_trials_and_phases_share_the_automatic_delta(records):
    for releases in (1, 2, 10, 50):
        assert releases * automatic_delta(records, releases) <= records**-1.5 * (1 + 1e-9)
    plan = TrainingPlan.calibrated(epsilon=8, records=80, batch=80, epochs=1, releases=20)
    assert plan.guarantee(steps=1, secure=True, what="x", parameters={}, trials=20).delta < 1 / 80
    with pytest.raises(BadParameterError, match="at least 1, not 0"):
        TrainingPlan.calibrated(epsilon=8, records=80, batch=80, epochs=1, releases=0)
    with pytest.raises(BadParameterError, match="at least 1, not 0"):
        plan.guarantee(steps=1, secure=True, what="x", parameters={}, trials=0)


def test_a_composed_delta_is_below_one_over_the_records_too(tokenizer, tmp_path):
    plan = TrainingPlan(records=100, batch=50, steps=2, multiplier=2.0, delta=6e-3)
    words = plan.guarantee(steps=1, secure=True, what="vocabulary", parameters={})
    task = Classification(labels=["neg", "pos"])
    run = TrainingRun(
        task, tiny(tokenizer, task), tokenizer, rows(100), plan, TrainingSettings(), tmp_path / "m",
        origin=Origin(vocabulary=words),
    )  # fmt: skip
    with pytest.raises(BadParameterError, match="not below one over"):
        run.promise()


# Clipping and noise --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "clipping",
    [FlatClipping(0.1), LayerClipping(0.1, 100), AutomaticClipping(0.1), DampedClipping(0.1), QuantileClipping(0.1)],
)
def test_no_example_adds_more_than_the_bound(clipping):
    model, loss = build("gpt2, tied")
    engine, _ = choose(model, loss, [batch(3), batch(5, seed=3)])
    for i in range(6):
        example = {name: value[i : i + 1] for name, value in batch(6, seed=8).items()}
        result = engine.run(example)
        sums = result.weighted_sums(clipping.clip(result.squared_norms).factors)
        total = math.sqrt(sum(float(value.double().square().sum()) for value in sums.values()))
        assert 0 < total <= 0.1


@pytest.mark.parametrize("clipping", [AutomaticClipping(0.5), DampedClipping(0.5), DampedClipping(0.5, damping=1e-3)])
def test_factors_bound_gradients_of_every_length(clipping):
    """The bound in single precision, from the shortest to the longest gradient that a norm can be computed of."""
    norms = torch.logspace(-18, 18, 20_001, dtype=torch.float32)
    factors = clipping.clip({"w": norms.square()}).factors["w"]
    assert bool((norms.double() * factors.double() <= 0.5).all())
    assert bool((factors[norms > 1e15] > 0).all())


def test_damped_clipping_does_not_blow_up_small_gradients():
    """Xia et al. 2023: the weight is not monotone; it is the bound at 0 and largest at the root of the damping."""
    damped, automatic = DampedClipping(1.0, damping=0.01), AutomaticClipping(1.0, gamma=0.01)
    norms = torch.tensor([1e-6, 0.1, 10.0])
    small, middle, large = damped.clip({"w": norms.square()}).factors["w"].tolist()
    assert small == pytest.approx(1.0, abs=1e-3)
    assert middle > 4.0 > small > large
    assert automatic.clip({"w": norms.square()}).factors["w"][0] > 90.0


def test_the_quantile_bound_finds_the_median_and_pays_for_it():
    clipping = QuantileClipping(bound=10.0, count_noise=1.0)
    source = Source.from_test_seed(0)
    norms = np.random.default_rng(0).lognormal(0.0, 0.5, 2000)
    for _ in range(200):
        clipping.update(int((norms <= clipping.bound).sum()), len(norms), len(norms), source)
    assert clipping.bound == pytest.approx(1.0, rel=0.1)
    z = QuantileClipping(count_noise=10.0).gradient_multiplier(1.0)
    assert z**-2 + (2 * 10.0) ** -2 == pytest.approx(1.0)
    with pytest.raises(BadParameterError, match="count_noise"):
        QuantileClipping(count_noise=0.4).gradient_multiplier(1.0)


def test_noise_has_the_promised_size():
    """Variance of a million normals within 5 standard errors: false-alarm rate 6e-7."""
    sums = {"w": torch.zeros(1000, 1000)}
    add_noise(sums, 3.0, Source.from_test_seed(1))
    assert float(sums["w"].var()) == pytest.approx(9.0, abs=5 * 9.0 * math.sqrt(2 / 1e6))


def test_cutting_a_batch_into_parts_changes_nothing_and_an_empty_batch_is_noise():
    model, loss = build("bert")
    model.eval()
    engine, _ = choose(model, loss, [batch(3), batch(5, seed=3)])
    data = batch(40, seed=2)
    gradients = []
    for physical in (40, 7):
        plan = TrainingPlan(records=40, batch=20, steps=1, multiplier=1e-6, delta=1e-3)
        step = PrivateStep(
            plan,
            lambda ids: {n: v[list(ids)] for n, v in data.items()},
            physical,
            lengths=np.arange(40)[::-1] if physical == 7 else None,
            engine=engine,
            clipping=FlatClipping(1.0),
        )
        facts = step.run(0, StreamKey.from_test_seed(5))
        gradients.append([p.grad.clone() for p in engine.parameters.values()])
        assert facts.examples > 0
    for a, b in zip(*gradients, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-6)
    rare = TrainingPlan(records=40, batch=1, steps=1, multiplier=1.0, delta=1e-3)
    seed = next(s for s in range(100) if len(rare.sample(0, StreamKey.from_test_seed(s))) == 0)
    PrivateStep(rare, lambda ids: pytest.fail("no record was drawn"), engine=engine, clipping=FlatClipping(1.0)).run(
        0, StreamKey.from_test_seed(seed)
    )
    assert all(float(p.grad.abs().max()) > 0 for p in engine.parameters.values())


def test_records_are_worked_on_with_others_of_similar_length():
    """Every record once, in parts that fit; a long record does not pad thirty short ones."""
    model, loss = build("bert")
    plan = TrainingPlan.without_privacy(records=64, batch=64, epochs=1)
    lengths = np.where(np.arange(64) % 16 == 0, 48, 5 + np.arange(64) % 5)
    parts = []

    def collate(ids):
        parts.append(list(ids))
        return batch(len(ids))

    PlainStep(plan, collate, 32, lengths=lengths, model=model, loss=loss).run(0, StreamKey.from_test_seed(5))
    drawn = plan.sample(0, StreamKey.from_test_seed(5))
    assert sorted(i for part in parts for i in part) == sorted(drawn.tolist())
    assert all(4 <= len(part) <= 32 for part in parts[:-1])
    padded = sum(len(part) * max(lengths[part]) for part in parts)
    assert padded <= 1.5 * sum(lengths[drawn])


def test_what_a_model_keeps_besides_its_weights_is_the_same_after_each_step():
    model, loss = build("bert")
    model.eval()
    engine, _ = choose(model, loss, [batch(3), batch(5, seed=3)])
    model.register_buffer("seen", torch.zeros(1))
    whole = engine.run

    def counting(examples):
        model.seen += len(examples["input_ids"])
        return whole(examples)

    engine.run = counting
    data = batch(40, seed=2)
    plan = TrainingPlan(records=40, batch=20, steps=1, multiplier=1.0, delta=1e-3)
    collate = lambda ids: {n: v[list(ids)] for n, v in data.items()}  # noqa: E731
    step = PrivateStep(plan, collate, engine=engine, clipping=FlatClipping(1.0), model=model)
    assert step.run(0, StreamKey.from_test_seed(5)).examples > 0
    assert float(model.seen) == 0.0


def test_out_of_memory_halves_the_part_and_goes_on(monkeypatch):
    model, loss = build("bert")
    model.eval()
    engine, _ = choose(model, loss, [batch(3), batch(5, seed=3)])
    whole = engine.run

    def limited(examples):
        if len(examples["input_ids"]) > 5:
            raise RuntimeError("not enough memory: you tried to allocate 8 GB")
        return whole(examples)

    monkeypatch.setattr(engine, "run", limited)
    said = []
    plan = TrainingPlan(records=40, batch=20, steps=1, multiplier=1.0, delta=1e-3)
    data = batch(40, seed=2)
    step = PrivateStep(
        plan,
        lambda ids: {n: v[list(ids)] for n, v in data.items()},
        16,
        said.append,
        engine=engine,
        clipping=FlatClipping(1.0),
    )
    step.run(0, StreamKey.from_test_seed(5))
    assert step.physical == 4
    assert len(said) == 2


# Strategies ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", ["full", "no-embeddings", "last-1", "head", "bias", "lora", "ia3", "adapter"])
def test_every_strategy_can_be_clipped_exactly(strategy):
    if strategy in ("lora", "ia3"):
        pytest.importorskip("peft")
    model, loss = build("bert")
    total = sum(p.numel() for p in model.parameters())
    model = apply_strategy(model, strategy)
    engine, result = choose(model, loss, [batch(3), batch(5, seed=3)])
    assert engine.name == "taps", result.refused
    trained = sum(p.numel() for p in engine.parameters.values())
    assert trained == total if strategy == "full" else trained < total
    assert any("classifier" in name for name in engine.parameters), "the new head is always trained"


def test_unknown_strategies_are_named():
    model, _ = build("bert")
    with pytest.raises(BadParameterError, match="choose full"):
        apply_strategy(model, "half")
    with pytest.raises(BadParameterError, match="2 layers"):
        apply_strategy(model, "last-5")


def test_one_class_and_unknown_labels_are_refused():
    with pytest.raises(BadInputError, match="same label"):
        Classification().learn([{"text": "a", "label": "x"}] * 3)
    with pytest.raises(BadInputError, match="not in the given list"):
        Classification(labels=["x", "y"]).learn([{"text": "a", "label": "z"}])
    with pytest.raises(BadInputError, match="no rows"):
        Classification().learn([])


def test_settings_are_json(tokenizer):
    assert json.loads(json.dumps(Classification(labels=["a", "b"]).settings()))["labels"] == ["a", "b"]
