"""Training on public text: refusal of any other, exact resume, early stopping, noise schedule."""

from __future__ import annotations

import json

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from tacit.documents.bounds import AnalyticGaussian, ClipL1, ClipL2, ClipValue, Laplace  # noqa: E402
from tacit.documents.pretraining import PublicText  # noqa: E402
from tacit.documents.pretraining.corpus import NotPublicError, declared, read_public  # noqa: E402
from tacit.documents.pretraining.loop import (  # noqa: E402
    CHECKPOINT,
    LOG,
    Plan,
    clipped,
    noisy,
    plain,
    reconstruction_bleu,
    train,
)
from tacit.errors import BadInputError, BadParameterError  # noqa: E402
from tests.documents.test_latent_models import PUBLIC_TEXTS, tiny  # noqa: E402

CORPUS = PublicText(texts=PUBLIC_TEXTS, name="sentences made for a test")
PLAN = {"batch_size": 8, "evaluate_every": 4, "held_out": 10, "learning_rate": 1e-2}


class StoppedError(Exception):
    pass


@pytest.mark.parametrize("kind", ["bart", "adept", "narrow"])
def test_a_stopped_training_goes_on_as_if_it_had_not_been(kind, tmp_path):
    plan = Plan(steps=12, epsilons=(100.0, 500.0), plain_share=0.5, **PLAN)
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
    train(tiny("adept"), CORPUS, Plan(steps=4, **PLAN), tmp_path)
    with pytest.raises(BadInputError, match=r"learning_rate changed.*start over without --resume"):
        train(tiny("adept"), CORPUS, Plan(steps=4, **{**PLAN, "learning_rate": 0.5}), tmp_path, resume=True)
    (tmp_path / CHECKPOINT).write_bytes(b"damaged")
    with pytest.raises(BadInputError, match="damaged: start over"):
        train(tiny("adept"), CORPUS, Plan(steps=4, **PLAN), tmp_path, resume=True)


def test_a_stopped_training_may_end_sooner(tmp_path):
    def stop(step):
        if step.done == 7:
            raise StoppedError

    with pytest.raises(StoppedError):
        train(tiny("adept"), CORPUS, Plan(steps=100, **PLAN), tmp_path, progress=stop)
    facts = train(tiny("adept"), CORPUS, Plan(steps=8, **PLAN), tmp_path, resume=True)
    assert facts["steps"] == 8
    assert facts["steps_planned"] == [[0, 100], [4, 8]]


def test_training_learns_and_keeps_the_best_weights(tmp_path):
    model = tiny("adept")
    texts = CORPUS.split(10)[1]
    before = reconstruction_bleu(model, texts)
    facts = train(model, CORPUS, Plan(steps=150, **{**PLAN, "evaluate_every": 50}), tmp_path, bound=ClipL2(1.0))
    lines = [json.loads(line) for line in (tmp_path / LOG).read_text().splitlines()]
    assert facts["held_out_loss"] == pytest.approx(min(line["held_out_loss"] for line in lines), abs=1e-4)
    assert lines[-1]["held_out_loss"] < lines[0]["held_out_loss"]
    assert reconstruction_bleu(model, texts, bound=ClipL2(1.0)) > before


def test_training_stops_early(tmp_path):
    model = tiny("adept")
    plan = Plan(steps=1000, batch_size=8, evaluate_every=1, patience=3, held_out=10, learning_rate=0.9)
    facts = train(model, CORPUS, plan, tmp_path)
    assert facts["stopped_early"]
    assert facts["steps"] < 1000


def test_private_text_is_refused():
    with pytest.raises(NotPublicError, match="DP-SGD"):
        train(tiny("adept"), PUBLIC_TEXTS, Plan(steps=1), None)
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
    found = clipped(torch.from_numpy(latents), bound).numpy()
    np.testing.assert_allclose(found, bound.apply(latents), atol=1e-6)


@pytest.mark.parametrize("noise", [Laplace(), AnalyticGaussian(1e-5)])
def test_training_noise_has_the_scale_of_the_release(noise):
    torch.manual_seed(0)
    bound = ClipValue(0.5, (1, 4))
    found = noisy(torch.zeros(5000, 3, 6), bound, noise, 20.0).numpy()
    assert not found[:, :, [0, 2, 3, 5]].any()
    scale = noise.scale(bound, 6, 20.0) * (2**0.5 if noise.kind == "laplace" else 1)
    assert found[:, :, [1, 4]].std() == pytest.approx(scale, rel=0.05)  # 30,000 draws, 5 standard errors
    assert noisy(torch.ones(1, 3, 6), None, noise, 20.0).sum() == 18


def test_schedules():
    plan = Plan(steps=1000, epsilons=(10.0,), first_epsilon=1000.0, ramp=0.5, learning_rate=0.1)
    assert plan.epsilon(0, 10.0) == pytest.approx(1000)
    assert plan.epsilon(250, 10.0) == pytest.approx(100)
    assert plan.epsilon(500, 10.0) == pytest.approx(10)
    assert plan.epsilon(0, 5000.0) == 5000
    assert plan.rate(0) < plan.rate(49)
    assert plan.rate(50) == pytest.approx(0.1)
    assert plan.rate(999) < 0.002


def test_bad_plans(tmp_path):
    for name in ("steps", "batch_size", "patience"):
        with pytest.raises(BadParameterError, match="at least 1"):
            Plan(**{name: 0})
    with pytest.raises(BadParameterError, match="learning rate"):
        Plan(learning_rate=2.0)
    with pytest.raises(BadParameterError, match="plain share"):
        Plan(plain_share=2.0)
    with pytest.raises(BadParameterError, match="needs a bound and a noise"):
        train(tiny("adept"), CORPUS, Plan(epsilons=(1.0,)), tmp_path)


def test_plain_style():
    assert plain("Isn't it, Tom?") == "isn't it tom"
