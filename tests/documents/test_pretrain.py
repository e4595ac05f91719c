"""Training on public text: refusal of any other, exact resume, early stopping, noise schedule."""

from __future__ import annotations

import json

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from tacit.documents.bounds import AnalyticGaussian, ClipL1, ClipL2, ClipValue, Laplace  # noqa: E402
from tacit.documents.pretraining import PublicText  # noqa: E402
from tacit.documents.pretraining.batches import content_weights, mixed, plain, texts_to_train_and_measure  # noqa: E402
from tacit.documents.pretraining.corpus import NotPublicError, declared, joined, read_public  # noqa: E402
from tacit.documents.pretraining.folders import CHECKPOINT  # noqa: E402
from tacit.documents.pretraining.loop import LOG, dropping, train  # noqa: E402
from tacit.documents.pretraining.measures import clipped, mean_size, noisy, reconstruction_bleu  # noqa: E402
from tacit.documents.pretraining.plan import PretrainingPlan  # noqa: E402
from tacit.errors import BadInputError, BadParameterError  # noqa: E402
from tests.documents.test_latent_models import PUBLIC_TEXTS, tiny  # noqa: E402

CORPUS = PublicText(texts=PUBLIC_TEXTS, name="sentences made for a test")
PLAN = {"batch_size": 8, "evaluate_every": 4, "held_out": 10, "learning_rate": 1e-2}


class StoppedError(Exception):
    pass


@pytest.mark.parametrize("kind", ["bart", "adept", "narrow"])
def test_a_stopped_training_goes_on_as_if_it_had_not_been(kind, tmp_path):
    dropout = None if kind == "adept" else 0.1
    plan = PretrainingPlan(steps=12, epsilons=(100.0, 500.0), plain_share=0.5, dropout=dropout, **PLAN)
    parts = {"bound": ClipL2(1.0), "noise": AnalyticGaussian(1e-5)}
    whole = tiny(kind)
    facts = train(whole, CORPUS, plan, tmp_path / "whole", **parts)
    assert facts["steps"] == 12

    def stop(step):
        if step.done == 7:
            raise StoppedError

    half = tiny(kind)
    with pytest.raises(StoppedError):
        train(half, CORPUS, plan, tmp_path / "half", progress=stop, **parts)
    assert (tmp_path / "half" / CHECKPOINT).exists()
    again = tiny(kind)
    train(again, CORPUS, plan, tmp_path / "half", resume=True, **parts)
    for name, value in whole.module.state_dict().items():
        assert torch.equal(value, again.module.state_dict()[name]), name
    lines = [json.loads(line) for line in (tmp_path / "half" / LOG).read_text().splitlines()]
    assert [line["step"] for line in lines] == [4, 8, 12]
    assert {"loss", "held_out_loss", "learning_rate", "seconds"} <= lines[0].keys()


def test_another_training_cannot_be_resumed(tmp_path):
    train(tiny("adept"), CORPUS, PretrainingPlan(steps=4, **PLAN), tmp_path)
    with pytest.raises(BadInputError, match=r"learning_rate changed.*start over without resume"):
        train(tiny("adept"), CORPUS, PretrainingPlan(steps=4, **{**PLAN, "learning_rate": 0.5}), tmp_path, resume=True)
    (tmp_path / CHECKPOINT).write_bytes(b"damaged")
    with pytest.raises(BadInputError, match="damaged: start over"):
        train(tiny("adept"), CORPUS, PretrainingPlan(steps=4, **PLAN), tmp_path, resume=True)


def test_a_stopped_training_may_end_sooner(tmp_path):
    def stop(step):
        if step.done == 7:
            raise StoppedError

    with pytest.raises(StoppedError):
        train(tiny("adept"), CORPUS, PretrainingPlan(steps=100, **PLAN), tmp_path, progress=stop)
    facts = train(tiny("adept"), CORPUS, PretrainingPlan(steps=8, **PLAN), tmp_path, resume=True)
    assert facts["steps"] == 8
    assert facts["steps_planned"] == [[0, 100], [4, 8]]


def test_training_learns_and_keeps_the_best_weights(tmp_path):
    model = tiny("adept")
    texts = CORPUS.split(10)[1]
    before = reconstruction_bleu(model, texts)
    facts = train(
        model, CORPUS, PretrainingPlan(steps=150, **{**PLAN, "evaluate_every": 50}), tmp_path, bound=ClipL2(1.0)
    )
    lines = [json.loads(line) for line in (tmp_path / LOG).read_text().splitlines()]
    assert facts["held_out_loss"] == pytest.approx(min(line["held_out_loss"] for line in lines), abs=1e-4)
    assert lines[-1]["held_out_loss"] < lines[0]["held_out_loss"]
    assert reconstruction_bleu(model, texts, bound=ClipL2(1.0)) > before


def test_training_stops_early(tmp_path):
    model = tiny("adept")
    plan = PretrainingPlan(steps=1000, batch_size=8, evaluate_every=1, patience=3, held_out=10, learning_rate=0.9)
    facts = train(model, CORPUS, plan, tmp_path)
    assert facts["stopped_early"]
    assert facts["steps"] < 1000


def test_private_text_is_refused():
    with pytest.raises(NotPublicError, match="DP-SGD"):
        train(tiny("adept"), PUBLIC_TEXTS, PretrainingPlan(steps=1), None)
    with pytest.raises(NotPublicError):
        declared(PUBLIC_TEXTS)
    with pytest.raises(NotPublicError):
        PublicText(texts=PUBLIC_TEXTS, name=" ")
    with pytest.raises(BadInputError, match="has no text"):
        PublicText(texts=["", " "], name="nothing")


def test_reading_public_text(tmp_path):
    path = tmp_path / "t.txt"
    path.write_text("one\n\ntwo\n")
    assert read_public(path, "numbers").texts == ["one", "", "two"]
    with pytest.raises(NotPublicError):
        read_public(path, None)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(BadInputError, match="not UTF-8"):
        read_public(path, "numbers")
    with pytest.raises(BadInputError, match="cannot be read"):
        read_public(tmp_path / "none", "numbers")


def test_the_split_does_not_depend_on_the_order():
    training, held_out = CORPUS.split(10)
    again = PublicText(texts=PUBLIC_TEXTS[::-1] * 2, name="x").split(10)
    assert (training, held_out) == again
    assert len(held_out) == 10
    assert not set(training) & set(held_out)


@pytest.mark.parametrize("bound", [ClipL1(0.5), ClipL2(0.5), ClipValue(0.5), ClipValue(0.5, (1, 4))])
def test_training_clips_like_the_release(bound):
    latents = np.random.default_rng(0).standard_normal((5, 3, 6)).astype(np.float32)
    bounded = clipped(torch.from_numpy(latents), bound).numpy()
    np.testing.assert_allclose(bounded, bound.apply(latents), atol=1e-6)


@pytest.mark.parametrize("noise", [Laplace(), AnalyticGaussian(1e-5)])
def test_training_noise_has_the_scale_of_the_release(noise):
    torch.manual_seed(0)
    bound = ClipValue(0.5, (1, 4))
    drawn = noisy(torch.zeros(5000, 3, 6), bound, noise, noise.scale(bound, 6, 20.0)).numpy()
    assert not drawn[:, :, [0, 2, 3, 5]].any()
    scale = noise.scale(bound, 6, 20.0) * (2**0.5 if noise.kind == "laplace" else 1)
    assert drawn[:, :, [1, 4]].std() == pytest.approx(scale, rel=0.05)  # 30,000 draws, 5 standard errors
    assert noisy(torch.ones(1, 3, 6), None, noise, 20.0).sum() == 18


def test_schedules():
    plan = PretrainingPlan(steps=1000, epsilons=(10.0,), ramp=0.5, learning_rate=0.1)
    assert plan.scale(0, 0.01, 1.0) == pytest.approx(0.01)
    assert plan.scale(250, 0.01, 1.0) == pytest.approx(0.1)
    assert plan.scale(500, 0.01, 1.0) == pytest.approx(1.0)
    assert plan.scale(999, 0.01, 1.0) == pytest.approx(1.0)
    assert plan.scale(0, 2.0, 1.0) == 1.0  # never more noise than the target's
    assert plan.rate(0) < plan.rate(49)
    assert plan.rate(50) == plan.rate(500) == pytest.approx(0.1)  # no decay while the noise grows
    assert plan.rate(999) < 0.002
    assert PretrainingPlan(steps=1000, learning_rate=0.1).rate(500) < 0.06


@pytest.mark.parametrize("known", [None, 4000.0])
def test_noise_starts_gently_or_where_the_model_is(known, tmp_path, monkeypatch):
    """The first step's noise: a tenth of C in a cube, or that of the epsilon the model was trained for."""
    from tacit.documents.pretraining import loop

    seen: list[float] = []
    monkeypatch.setattr(loop, "noisy", lambda latents, bound, noise, scale: (seen.append(scale), latents)[1])
    bound, noise = ClipValue(1.0, tuple(range(8))), AnalyticGaussian(1e-5)
    plan = PretrainingPlan(steps=10, epsilons=(100.0,), known_epsilon=known, ramp=0.5, **{**PLAN, "evaluate_every": 10})
    train(tiny("bart"), CORPUS, plan, tmp_path, bound=bound, noise=noise)
    target = noise.scale(bound, 6 * 8, 100.0)
    assert seen[0] == pytest.approx(0.1 if known is None else noise.scale(bound, 6 * 8, known))
    assert seen[:6] == sorted(seen[:6])
    assert seen[5] == pytest.approx(target)
    assert seen[-1] == pytest.approx(target)  # held-out texts are measured at the target


def test_the_mean_size_is_attained():
    n = 24
    flat = np.full((1, 4, 6), 100.0)
    for bound in (ClipL1(0.5), ClipL2(0.5), ClipValue(0.5)):
        assert np.sqrt(np.square(bound.apply(flat)).mean()) == pytest.approx(mean_size(bound, n))


def test_mixed_texts_keep_their_lengths():
    ids = np.array([[5, 6, 7, 2, 0, 0], [8, 9, 2, 0, 0, 0], [10, 11, 12, 13, 2, 0]] * 50)
    masked = mixed(ids, {0, 2}, 1.0, np.random.default_rng(0))
    assert ((masked == 0) == (ids == 0)).all()
    assert ((masked == 2) == (ids == 2)).all()
    changed = (masked != ids).sum() / np.isin(ids, [0, 2], invert=True).sum()
    assert 0.1 < changed < 0.3  # 1/4 of the pieces that have a counterpart
    assert (mixed(ids, {0, 2}, 0.0, np.random.default_rng(0)) == ids).all()


def test_dropout_is_for_training_only(tmp_path):
    model = tiny("bart")
    ids = torch.from_numpy(model.ids(PUBLIC_TEXTS[:2]))
    model.module.train()
    with torch.no_grad():
        assert torch.equal(model.latents(ids), model.latents(ids))
        with dropping(model.module, 0.5):
            assert not torch.equal(model.latents(ids), model.latents(ids))
        assert torch.equal(model.latents(ids), model.latents(ids))
        with dropping(model.module, 0.1), dropping(model.module, None):  # None: what the model has
            assert not torch.equal(model.latents(ids), model.latents(ids))
    with pytest.raises(BadParameterError, match="has no dropout"):
        train(tiny("adept"), CORPUS, PretrainingPlan(steps=1, dropout=0.1, **PLAN), tmp_path)


def test_rare_pieces_count_more():
    weights = content_weights(np.array([[1, 1, 1, 2], [1, 1, 1, 3]]), 5, 0.125).numpy()
    assert weights[1] == pytest.approx(0.125 / (0.125 + 0.75))
    assert weights[2] == weights[3] == pytest.approx(0.5)
    assert weights[4] == 1.0
    model = tiny("narrow")
    ids = torch.from_numpy(model.ids(PUBLIC_TEXTS[:4]))
    only = torch.zeros(model.pieces)
    only[int(ids[0, 0])] = 1.0
    with torch.no_grad():
        latents = model.latents(ids)
        equal, first = (float(model.loss(latents, ids, weights)) for weights in (torch.ones(model.pieces), only))
        assert equal == pytest.approx(float(model.loss(latents, ids)))
        assert first == pytest.approx(float(model.loss(latents, ids[:, :1])), rel=1e-4)


def test_joined_texts_fit_and_use_every_sentence_once():
    texts = [f"w{number}" for number in range(30)]
    parts = joined(texts, lambda text: len(text.split()) <= 3)
    assert " ".join(parts).split() == texts
    assert [len(text.split()) for text in parts[:6]] == [1, 2, 3, 3, 3, 3]
    long = joined(["a b c d", "e"], lambda text: len(text.split()) <= 3)
    assert long == ["a b c d", "e"]  # a sentence that is too long alone stays one text
    assert joined([], lambda text: True) == []
    model = tiny("bart")
    training, held_out = texts_to_train_and_measure(model, CORPUS, 10, join=True)
    sentences = CORPUS.split(10)
    assert all(any(sentence in text for text in held_out) for sentence in sentences[1])
    assert not any(sentence in text for text in training for sentence in sentences[1])


def test_going_on_with_a_longer_model(tmp_path, capsys):
    from tacit.cli.main import run
    from tacit.documents.autoencoders import load_autoencoder

    text = tmp_path / "public.txt"
    text.write_text("\n".join(PUBLIC_TEXTS))
    tiny("bart").save_pretrained(tmp_path / "short")
    tiny("adept").save_pretrained(tmp_path / "adept")
    options = ["--public", "sentences", "--steps", "2", "--batch-size", "8", "--held-out", "10", "--join"]
    command = ["pretrain", "autoencoder", str(text), "--length", "12", *options]
    assert run([*command, "--from", str(tmp_path / "short"), "-o", str(tmp_path / "long")]) == 0
    loaded = load_autoencoder(tmp_path / "long")
    assert (loaded.positions, loaded.length) == (12, 12)
    assert loaded.record.corpora == ["sentences made for a test", "sentences"]
    assert {"held_out_bleu_without_noise", "held_out_bleu_joined"} <= loaded.record.results.keys()
    assert loaded.record.trained_bound() == ClipValue(1.0)
    assert loaded.encode(["word " * 100_000]).shape == (1, 12, 16)
    assert run([*command, "--from", str(tmp_path / "adept"), "-o", str(tmp_path / "no")]) == 2
    assert "only a BART can be made longer" in capsys.readouterr().err
    noise = ["--epsilon", "10", "--from", str(tmp_path / "short"), "-o", str(tmp_path / "no")]
    assert run([*command, *noise]) == 2
    assert "tacit pretrain noise" in capsys.readouterr().err
    assert not (tmp_path / "no").exists()


def test_bad_plans(tmp_path):
    for name in ("steps", "batch_size", "patience"):
        with pytest.raises(BadParameterError, match="at least 1"):
            PretrainingPlan(**{name: 0})
    with pytest.raises(BadParameterError, match="learning rate"):
        PretrainingPlan(learning_rate=2.0)
    with pytest.raises(BadParameterError, match="plain share"):
        PretrainingPlan(plain_share=2.0)
    with pytest.raises(BadParameterError, match="dropout lies between"):
        PretrainingPlan(dropout=1.0)
    with pytest.raises(BadParameterError, match="content"):
        PretrainingPlan(content=0.0)
    with pytest.raises(BadParameterError, match="needs a bound and a noise"):
        train(tiny("adept"), CORPUS, PretrainingPlan(epsilons=(1.0,)), tmp_path)


def test_plain_style():
    assert plain("Isn't it, Tom?") == "isn't it tom"
