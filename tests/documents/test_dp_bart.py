"""DP-BART: variants, the choice of C, and pruning by the published rule."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from tacit.documents.autoencoders.bottleneck import LinearNeck  # noqa: E402
from tacit.documents.bounds import ClipL1, ClipL2, ClipValue  # noqa: E402
from tacit.documents.dp_bart import DPBart, estimate_clip  # noqa: E402
from tacit.documents.pretraining import PublicText, measures  # noqa: E402
from tacit.documents.pretraining.corpus import NotPublicError  # noqa: E402
from tacit.documents.pretraining.plan import PretrainingPlan  # noqa: E402
from tacit.documents.pretraining.prune import (  # noqa: E402
    FIRST_KEYS,
    PruningRule,
    narrowed,
    next_kept,
    prune,
    width_to_rewrite_with,
)
from tacit.errors import BadInputError, BadParameterError  # noqa: E402
from tests.documents.test_latent_models import PUBLIC_TEXTS, save_tiny, tiny  # noqa: E402

CORPUS = PublicText(texts=PUBLIC_TEXTS, name="sentences made for a test")


def test_golden_pruning_of_bart_base():
    rng = np.random.default_rng(0)
    kept = tuple(range(768))
    pruned = []
    for _ in range(6):
        kept = next_kept(rng.random(768), kept)
        pruned.append(768 - len(kept))
    assert pruned == [192, 336, 444, 525, 586, 632]


def test_the_least_important_neurons_go():
    importance = np.array([5.0, 1.0, 4.0, 0.1, 3.0, 2.0, 9.0, 8.0])
    assert next_kept(importance, range(8)) == (0, 2, 4, 5, 6, 7)
    assert next_kept(importance, (0, 2, 4, 5, 6, 7), 0.5) == (0, 6, 7)
    with pytest.raises(BadParameterError, match="quantile"):
        next_kept(importance, range(8), 1.0)


def test_importance_reads_the_columns_of_the_first_cross_attention():
    model = tiny("bart")
    weight = model.model.get_decoder().layers[0].encoder_attn.k_proj.weight
    with torch.no_grad():
        weight[:, 3] = 0.0
    importance = FIRST_KEYS.importance(model, 0)
    assert importance.shape == (16,)
    assert importance.argmin() == 3
    # Column 3 is encoder neuron 3: the first layer's keys do not change with it.
    latents = torch.randn(1, 6, 16)
    changed = latents.clone()
    changed[:, :, 3] += 5.0
    keys = model.model.get_decoder().layers[0].encoder_attn.k_proj
    assert torch.allclose(keys(latents), keys(changed), atol=1e-6)
    with pytest.raises(BadInputError, match="defined for a BART"):
        FIRST_KEYS.importance(tiny("adept"), 0)


@pytest.mark.parametrize(("by", "layer"), [("keys", 1), ("values", 1), ("keys", 2), ("values", 2)])
def test_each_pruning_rule_reads_its_own_projection(by, layer):
    model = tiny("bart", layers=2)
    attention = model.model.get_decoder().layers[layer - 1].encoder_attn
    with torch.no_grad():
        getattr(attention, {"keys": "k_proj", "values": "v_proj"}[by]).weight[:, 5] = 0.0
    for other in (PruningRule(b, n) for b in ("keys", "values") for n in (1, 2)):
        least = other.importance(model, 0)[5]
        assert (least == 0.0) == (other == PruningRule(by, layer))


def test_random_pruning_is_drawn_anew_at_each_stage_and_depends_on_the_seed_alone():
    model, rule = tiny("bart"), PruningRule("random")
    first = rule.importance(model, 1)
    assert np.array_equal(first, rule.importance(tiny("bart"), 1))
    assert not np.array_equal(first, rule.importance(model, 2))
    assert len(next_kept(first, range(16))) == 12


def test_pruning_rules_that_do_not_exist_are_refused_before_training(tmp_path):
    with pytest.raises(BadParameterError) as refused:
        prune(tiny("bart"), CORPUS, tmp_path, PLAN, **OPTIONS, rule=PruningRule("keys", 9))
    assert refused.value.code == "no-such-decoder-layer"
    assert not list(tmp_path.iterdir())
    for by, layer in (("queries", 1), ("random", 2)):
        with pytest.raises(BadParameterError):
            PruningRule(by, layer)


def test_every_stage_is_a_model_to_rewrite_with_and_names_its_public_text(tmp_path):
    model, corpus = tiny("bart"), PublicText(texts=PUBLIC_TEXTS, name="another public text")
    prune(model, corpus, tmp_path / "pruned", PLAN, **OPTIONS, rule=PruningRule("values"))
    for stage, pruned in enumerate((4, 7, 9), start=1):
        mechanism = DPBart(epsilon=500, model=str(tmp_path / "pruned" / f"stage-{stage}"), beams=1)
        assert mechanism.bound == ClipValue(0.5, mechanism.bound.kept)
        assert len(mechanism.bound.kept) == 16 - pruned
        promised = mechanism.guarantee()
        assert promised.parameters["l2 sensitivity"] == pytest.approx(((16 - pruned) * 6) ** 0.5)
        assert corpus.name in str(promised.provenance)
        assert len(mechanism.rewrite(["cat"])) == 1
        record = mechanism.autoencoder.record
        assert record.pruning["neurons"] == {"by": "values", "layer": 1}
    assert model.record.corpora == tiny("bart").record.corpora, "the caller adds the text to the record of the model"
    with pytest.raises(BadInputError) as refused:
        prune(tiny("bart"), corpus, tmp_path / "pruned", PLAN, **OPTIONS, resume=True)
    assert refused.value.code == "another-pruning-rule"


PLAN = PretrainingPlan(steps=2, batch_size=8, held_out=10, learning_rate=1e-4, evaluate_every=1)
OPTIONS = {"C": 1.0, "stages": 3, "least_bleu": 0.0}


def test_pruning_trains_keeps_the_stage_before_and_resumes(tmp_path):
    model = tiny("bart")
    bound = prune(model, CORPUS, tmp_path / "a", PLAN, **OPTIONS)
    assert model.record.pruning["pruned"] == [4, 7, 9]
    assert bound.kept is not None
    assert len(bound.kept) == 16 - 7  # weights of stage 3, columns of stage 2
    assert model.record.trained_bound() == bound
    # A run that finished one stage goes on from there.
    stopped = tiny("bart")
    prune(stopped, CORPUS, tmp_path / "b", PLAN, **{**OPTIONS, "stages": 2})
    again = tiny("bart")
    assert prune(again, CORPUS, tmp_path / "b", PLAN, **OPTIONS, resume=True) == bound
    assert again.record.pruning == model.record.pruning
    for name, value in again.module.state_dict().items():
        assert torch.equal(value, model.module.state_dict()[name]), name
    with pytest.raises(BadParameterError, match="2 stages"):
        prune(tiny("bart"), CORPUS, tmp_path / "c", PLAN, **{**OPTIONS, "stages": 1})


def test_pruning_ends_where_public_texts_are_no_longer_repeated(tmp_path, monkeypatch):
    scores = iter([99.0, 96.0, 94.0, 98.0])
    monkeypatch.setattr(measures, "reconstruction_bleu", lambda *_, **__: next(scores))
    model = tiny("bart")
    bound = prune(model, CORPUS, tmp_path / "a", PLAN, C=1.0, stages=6)
    assert model.record.pruning["held_out_bleu"] == [99.0, 96.0, 94.0]
    assert model.record.pruning["stages"] == 3
    assert bound.kept is not None
    assert len(bound.kept) == 16 - 7  # what stage 2 kept, the last with BLEU 95 and more
    monkeypatch.setattr(measures, "reconstruction_bleu", lambda *_, **__: 94.0)
    with pytest.raises(BadInputError, match=r"BLEU 94\.0 only: train longer"):
        prune(tiny("bart"), CORPUS, tmp_path / "b", PLAN, C=1.0)
    assert prune(tiny("bart"), CORPUS, tmp_path / "b", PLAN, **OPTIONS, resume=True).kept is not None


def test_only_stages_of_pruning_are_resumed(tmp_path):
    tiny("bart").save_pretrained(tmp_path / "stage-1")
    with pytest.raises(BadInputError, match="'stage-1' is no stage of this pruning"):
        prune(tiny("bart"), CORPUS, tmp_path, PLAN, **OPTIONS, resume=True)


def test_variants(tmp_path):
    whole = save_tiny("bart", tmp_path / "clv")
    bound = ClipValue(1.0, kept=(0, 1, 2)).to_dict()
    pruned = save_tiny("bart", tmp_path / "pr", bound=bound)
    trained = {"noise": "gaussian", "delta": 1e-6, "epsilons": [500.0]}
    noisy = save_tiny("bart", tmp_path / "pr+", bound=bound, trained_for=trained)
    sizes = {
        (whole, None): 6 * 16,
        (pruned, None): 6 * 3,
        (pruned, "clv"): 6 * 16,
        (noisy, None): 6 * 3,
        (noisy, "pr"): 6 * 3,
    }
    for (model, variant), size in sizes.items():
        mechanism = DPBart(epsilon=500, model=model, variant=variant)
        assert mechanism.released_numbers == size
        # Trained with C = 1: half of it to rewrite with, unless the model knows the noise of that C.
        C = 1.0 if (model, variant) == (noisy, None) else 0.5
        assert mechanism.bound.C == C
        assert mechanism.guarantee().parameters["l2 sensitivity"] == pytest.approx(2 * C * size**0.5)
    DPBart(epsilon=500, model=noisy, beams=1).rewrite("cat")
    with pytest.warns(UserWarning, match="trained for epsilon 500, not 250"):
        DPBart(epsilon=250, model=noisy, beams=1).rewrite("cat")
    with pytest.raises(BadInputError, match="tacit pretrain prune"):
        DPBart(epsilon=1, model=whole, variant="pr").prepare()
    with pytest.raises(BadInputError, match="tacit pretrain noise"):
        DPBart(epsilon=1, model=pruned, variant="pr+").prepare()
    with pytest.raises(BadParameterError, match="variant must be one of"):
        DPBart(epsilon=1, model=whole, variant="prx")
    assert DPBart(epsilon=1, model=whole, clip=0.25).bound.C == 0.25
    unclipped = save_tiny("bart", tmp_path / "unclipped", bound=None, sigma=1.4)
    assert DPBart(epsilon=1, model=unclipped).bound.C == 0.7, "half the standard deviation of its values"
    unknown = save_tiny("bart", tmp_path / "unknown", bound=None)
    assert DPBart(epsilon=1, model=unknown).bound.C == 0.1, "the C of the thesis"


@pytest.mark.parametrize("bound", [ClipL2(5.0), ClipL1(3.0)])
def test_a11_a_model_trained_with_a_norm_is_used_with_that_norm(tmp_path, bound):
    folder = save_tiny("bart", tmp_path / "m", bound=bound.to_dict())
    mechanism = DPBart(epsilon=500, model=folder, beams=1)
    assert mechanism.bound == bound
    shown = mechanism.guarantee().parameters
    assert (shown["bound"], shown["C"]) == (bound.kind, bound.C)
    assert shown["l2 sensitivity"] == 2 * bound.C
    assert len(mechanism.rewrite(["cat"])) == 1
    assert DPBart(epsilon=500, model=folder, clip=2.0).bound == type(bound)(2.0)
    with pytest.raises(BadParameterError, match="leave out the variant"):
        DPBart(epsilon=500, model=folder, variant="clv").prepare()


def test_choosing_c_on_public_text():
    model = tiny("bart")
    bound = estimate_clip(model, CORPUS)
    values = model.encode(PUBLIC_TEXTS).astype(np.float64)
    assert bound.sigma == pytest.approx(values.std(), rel=1e-6)
    assert bound.mean == pytest.approx(values.mean(), abs=1e-6)
    assert bound.sigma / 2 == bound.C
    with pytest.raises(NotPublicError, match="DP-SGD"):
        estimate_clip(model, PUBLIC_TEXTS)


def test_length_of_a_trained_model_is_its_own(tmp_path):
    folder = save_tiny("bart", tmp_path / "m")
    assert DPBart(epsilon=1, model=folder, length=6).released_numbers == 96
    with pytest.raises(BadParameterError, match="trained for length 6"):
        DPBart(epsilon=1, model=folder, length=5).prepare()


def test_a_bottleneck_is_as_wide_as_what_pruning_leaves_and_is_clamped_like_clv(tmp_path):
    bart = tiny("bart")
    model = narrowed(bart, CORPUS, tmp_path / "training", PLAN, C=1.0, stages=3)
    assert model.width == width_to_rewrite_with(16, 3) == 9
    down = model.neck.down.weight.detach()
    assert down.shape == (9, 16)
    model.save_pretrained(tmp_path / "model")
    mechanism = DPBart(epsilon=500, model=str(tmp_path / "model"), beams=1)
    assert mechanism.bound == ClipValue(0.5)
    assert mechanism.guarantee().parameters["l2 sensitivity"] == pytest.approx((6 * 9) ** 0.5)
    assert mechanism.guarantee().parameters["released numbers"] == 54
    latents = model.encode(["the red cat", ""])
    assert np.allclose(mechanism.autoencoder.encode(["the red cat", ""]), latents, atol=1e-5)
    assert latents.shape == (2, 6, 9)
    assert len(mechanism.rewrite(["cat", ""])) == 2
    assert torch.equal(model.memory(torch.zeros(1, 6, 9)), torch.zeros(1, 6, 16)), "a latent of zeros says nothing"
    with pytest.raises(BadInputError, match="defined for a BART"):
        narrowed(model, CORPUS, tmp_path / "again", PLAN, C=1.0)
    with pytest.raises(BadInputError, match="pruned model"):
        DPBart(epsilon=500, model=str(tmp_path / "model"), variant="pr").bound  # noqa: B018


def test_a_drawn_bottleneck_has_orthonormal_directions_and_their_inverse():
    drawn = LinearNeck.drawn(16, 9, seed=3)
    product = (drawn.down.weight @ drawn.up.weight).detach().numpy()
    assert np.allclose(product, np.eye(9), atol=1e-6)
    assert torch.equal(drawn.down.weight, LinearNeck.drawn(16, 9, seed=3).down.weight)
    with pytest.raises(BadParameterError, match="does not fit a model 16 wide"):
        LinearNeck.drawn(16, 16, seed=3)


def test_a_model_that_knows_its_noise_keeps_its_c(tmp_path):
    """Its decoder has learned from latents of this size; half the C would halve them."""
    noise = {"noise": "gaussian", "delta": 1e-5, "epsilons": [500.0]}
    for trained_for, C in ((None, 0.5), (noise, 1.0)):
        name = str(tmp_path / f"model-{C}")
        tiny("bart", trained_for=trained_for).save_pretrained(name)
        assert DPBart(epsilon=500, model=name).bound == ClipValue(C)
