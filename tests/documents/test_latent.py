"""The latent mechanism: length safety, the guarantee, and rules for every text."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from tacit.card import Card  # noqa: E402
from tacit.documents.adept import Adept, PublishedAdept, published_adept  # noqa: E402
from tacit.documents.bounds import ClipL1, ClipL2  # noqa: E402
from tacit.documents.dp_bart import DPBart  # noqa: E402
from tacit.documents.latent import LatentMechanism  # noqa: E402
from tacit.documents.latent_narrow import NarrowLatent, built_in_model  # noqa: E402
from tacit.errors import BadInputError, BadParameterError, NoGuaranteeError  # noqa: E402
from tacit.guarantee import Adjacency, Notion, Unit  # noqa: E402
from tacit.noise.source import Source  # noqa: E402
from tests.documents.test_latent_models import save_tiny  # noqa: E402

KINDS = {"bart": DPBart, "narrow": NarrowLatent, "adept": Adept}


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    place = tmp_path_factory.mktemp("models")
    return {kind: save_tiny(kind, place / kind) for kind in KINDS}


def make(folders, kind: str, **options) -> LatentMechanism:
    values = {"epsilon": 50.0, "model": folders[kind], "beams": 1 if kind == "adept" else 2, **options}
    return KINDS[kind](**values)


TEXTS = ["", "cat", "the red cat sees two birds", "word " * 100_000]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("noise", ["gaussian", "laplace", "none"])
def test_every_text_is_rewritten_and_the_guarantee_fits_the_noise(folders, kind, noise):
    mechanism = make(folders, kind, noise=noise)
    release = mechanism.rewrite(TEXTS)
    assert len(release) == 4
    assert release.units == [1] * 4
    promised = release.guarantee
    assert promised.unit is Unit.DOCUMENT
    assert promised.adjacency is Adjacency.ANY_TWO
    assert promised.provenance[0].source == "sentences made for a test"
    expected = {
        "gaussian": (Notion.APPROXIMATE, 1e-6, "l2 sensitivity"),
        "laplace": (Notion.PURE, 0.0, "l1 sensitivity"),
        "none": (Notion.NONE, 0.0, "bound"),
    }
    notion, delta, shown = expected[noise]
    assert (promised.notion, promised.delta) == (notion, delta)
    assert shown in promised.parameters
    assert "/" not in str(promised.parameters["model"])
    if noise == "none":
        assert "no noise" in str(promised.void)


@pytest.mark.parametrize("kind", KINDS)
def test_same_latent_same_output_law_whatever_the_length(folders, kind):
    """The decoder sees the noisy latent only: with equal latents and equal noise, equal texts for any input."""
    mechanism = make(folders, kind)
    shape = (mechanism.autoencoder.positions, mechanism.autoencoder.width)
    latent = np.random.default_rng(3).standard_normal(shape).astype(np.float32)
    encoded: list[list[str]] = []

    class SameLatent:
        def __getattr__(self, name: str):
            return getattr(original, name)

        def encode(self, texts):
            encoded.append(list(texts))
            return np.stack([latent] * len(texts))

    original = mechanism.autoencoder
    mechanism.__dict__["autoencoder"] = SameLatent()
    outputs = [mechanism.rewrite_texts([text], Source.from_test_seed(7)).texts for text in TEXTS]
    assert encoded == [[text] for text in TEXTS]
    assert all(output == outputs[0] for output in outputs)
    twice = mechanism.rewrite_texts(TEXTS, Source.from_test_seed(7)).texts
    assert len(twice) == 4


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_of_the_input_reaches_the_decoder(folders, kind, monkeypatch):
    mechanism = make(folders, kind)
    seen: list[tuple[int, ...]] = []
    original = type(mechanism.autoencoder).generate

    def watched(self, latents, beams):
        seen.append(tuple(latents.shape))
        return original(self, latents, beams)

    monkeypatch.setattr(type(mechanism.autoencoder), "generate", watched)
    masks: list[bool] = []
    if kind != "adept":
        model = mechanism.autoencoder.model
        generate = model.generate

        def generate_watched(**options):
            masks.append(bool(options["attention_mask"].bool().all()))
            assert "input_ids" not in options
            assert "inputs" not in options
            assert set(options) <= {
                "encoder_outputs", "attention_mask", "num_beams", "do_sample", "max_length", "min_length",
                "early_stopping",
            }  # fmt: skip
            return generate(**options)

        monkeypatch.setattr(model, "generate", generate_watched)
    for text in TEXTS:
        mechanism.rewrite_texts([text], Source.from_test_seed(1))
    assert set(seen) == {(1, mechanism.autoencoder.positions, mechanism.autoencoder.width)}
    assert all(masks)


def test_the_noise_is_that_of_the_card(folders):
    mechanism = make(folders, "bart", epsilon=100.0, delta=1e-5)
    shown = mechanism.guarantee().parameters
    n = shown["released numbers"]
    assert n == 6 * 16
    assert shown["C"] == 0.5  # half of what the model was trained with
    assert shown["l2 sensitivity"] == pytest.approx(2 * 0.5 * n**0.5)
    texts = ["cat"] * 600
    noisy = mechanism.noisy_latents(mechanism.autoencoder.encode(texts), Source.from_test_seed(0))
    clean = mechanism.bound.apply(mechanism.autoencoder.encode(texts))
    # 57,600 draws: 5 standard errors, a false alarm in less than one of a million seeds.
    assert (noisy - clean).std() == pytest.approx(shown["noise scale"], rel=0.015)


def test_a_seed_voids_the_card(folders):
    release = make(folders, "narrow", seed=3).rewrite("cat")
    assert release.guarantee.notion is Notion.NONE
    assert make(folders, "narrow", seed=3).rewrite("cat").texts == release.texts


def test_changing_epsilon_keeps_the_loaded_model(folders):
    mechanism = make(folders, "adept")
    before = mechanism.autoencoder
    scale = mechanism.guarantee().parameters["noise scale"]
    mechanism.set_params(epsilon=5.0)
    assert mechanism.autoencoder is before
    assert mechanism.guarantee().parameters["noise scale"] > scale


def test_another_epsilon_than_trained_for_warns(tmp_path):
    trained = {"noise": "gaussian", "delta": 1e-6, "epsilons": [100.0, 500.0]}
    folder = save_tiny("narrow", tmp_path / "m", trained_for=trained)
    NarrowLatent(epsilon=250, model=folder).rewrite("cat")
    with pytest.warns(UserWarning, match="trained for epsilon 100 to 500, not 10"):
        NarrowLatent(epsilon=10, model=folder).rewrite("cat")


def test_a_command_warns_in_one_line_and_the_card_has_a_note(tmp_path, capsys):
    from tacit.cli.main import run

    trained = {"noise": "gaussian", "delta": 1e-6, "epsilons": [100.0, 500.0]}
    folder = save_tiny("narrow", tmp_path / "m", trained_for=trained)
    (tmp_path / "in.txt").write_text("cat\ndog\n")
    arguments = ["rewrite", tmp_path / "in.txt", "-m", "narrow", "--epsilon", 10, "--option", f"model={folder}", "-q"]
    assert run([str(item) for item in (*arguments, "-o", tmp_path / "out.txt")]) == 0
    messages = capsys.readouterr().err
    assert messages.startswith("warning: this model was trained for epsilon 100 to 500, not 10")
    assert ".py" not in messages
    assert len(messages.strip().splitlines()) == 1
    card = Card.from_json((tmp_path / "out.txt.card.json").read_text())
    assert "trained for epsilon 100 to 500" in card.guarantee.parameters["note"]


def test_narrow_takes_the_noise_its_model_was_trained_with(tmp_path):
    laplace = {"noise": "laplace", "delta": 0.0, "epsilons": [10.0]}
    on_simplex = save_tiny("narrow", tmp_path / "low", bound=ClipL1(1.0).to_dict(), trained_for=laplace)
    promised = NarrowLatent(epsilon=10, model=on_simplex).rewrite(["cat", ""]).guarantee
    assert (promised.notion, promised.delta, promised.epsilon) == (Notion.PURE, 0.0, 10.0)
    assert promised.parameters["l1 sensitivity"] == 2.0
    assert promised.parameters["noise"] == "laplace"
    assert promised.parameters["model"] == "low"
    other = NarrowLatent(epsilon=10, model=on_simplex, noise="gaussian").guarantee()
    assert (other.notion, other.delta) == (Notion.APPROXIMATE, 1e-6)
    gaussian = save_tiny("narrow", tmp_path / "high", trained_for={**laplace, "noise": "gaussian", "delta": 1e-6})
    assert NarrowLatent(epsilon=10, model=gaussian).guarantee().notion is Notion.APPROXIMATE
    with pytest.raises(BadParameterError, match="not below one over the 100 records"):
        NarrowLatent(epsilon=10, model=gaussian, delta=0.01).rewrite(["cat"] * 100)


def test_the_built_in_narrow_model_follows_from_epsilon():
    names = [built_in_model(epsilon) for epsilon in (1, 10, 150, 150.1, 2500)]
    assert names == ["narrow-20-low"] * 3 + ["narrow-20"] * 2
    assert built_in_model(10, "gaussian") == built_in_model(10, "none") == "narrow-20"
    for epsilon, name, notion in ((50, "narrow-20-low", Notion.PURE), (250, "narrow-20", Notion.APPROXIMATE)):
        promised = NarrowLatent(epsilon=epsilon).guarantee()
        assert promised.parameters["model"] == name
        assert promised.notion is notion
        assert name in promised.provenance[0].name
    mechanism = NarrowLatent(epsilon=100)
    assert mechanism.guarantee().parameters["model"] == "narrow-20-low"
    mechanism.set_params(epsilon=500)
    assert mechanism.guarantee().parameters["model"] == "narrow-20"


def test_delta_above_one_over_n(folders):
    with pytest.raises(BadParameterError, match="not below one over the 100 records"):
        make(folders, "adept", delta=0.01).rewrite(["cat"] * 100)


def test_bad_options(folders):
    with pytest.raises(BadParameterError, match="noise must be one of"):
        make(folders, "bart", noise="uniform")
    with pytest.raises(BadParameterError, match="beams"):
        make(folders, "bart", beams=0)
    with pytest.raises(BadParameterError, match="delta"):
        make(folders, "bart", delta=0.0)
    with pytest.raises(BadParameterError, match="give a model"):
        DPBart(epsilon=1.0, model="").prepare()
    for kind, cls in KINDS.items():
        other = folders["adept" if kind != "adept" else "bart"]
        with pytest.raises(BadInputError, match="of the kind"):
            cls(epsilon=1.0, model=other).prepare()


def test_private_weights_are_refused(tmp_path):
    folder = save_tiny("narrow", tmp_path / "m", private="")
    with pytest.raises(NoGuaranteeError, match="learned from private data"):
        NarrowLatent(epsilon=50.0, model=folder).rewrite("cat")


@pytest.mark.parametrize("kind", KINDS)
def test_a11_a_latent_is_the_same_to_the_last_bit_beside_any_number_of_texts(folders, kind, monkeypatch):
    model = make(folders, kind).autoencoder
    shapes: list[tuple[int, ...]] = []
    latents = type(model).latents
    monkeypatch.setattr(type(model), "latents", lambda self, ids: shapes.append(tuple(ids.shape)) or latents(self, ids))
    alone = model.encode(["the red cat"])[0]
    for count in (1, 2, 3, 7, 8, 11):
        beside = ["", "cat", "word " * 50, "two birds see"] * 3
        np.testing.assert_array_equal(model.encode([*beside[:count], "the red cat"])[count], alone)
    assert len(set(shapes)) == 1
    assert model.encode([]).shape == (0, model.positions, model.width)


def test_a11_the_built_in_models_encode_in_constant_shapes():
    for cls in (Adept, DPBart, NarrowLatent):
        model = cls(epsilon=500.0).autoencoder
        texts = ["book a table for two", "", "what is the weather like", "x"] * 5
        together = model.encode([*texts, "my knee hurts"])[-1]
        np.testing.assert_array_equal(together, model.encode(["my knee hurts"])[0])


def test_a11_the_card_says_how_texts_are_decoded(folders):
    assert make(folders, "adept").guarantee().parameters["decoding"] == "greedy"
    assert make(folders, "bart", beams=1).guarantee().parameters["decoding"] == "greedy"
    for kind in ("bart", "narrow", "adept"):
        shown = make(folders, kind, beams=3).guarantee().parameters
        assert shown["decoding"] == "beam search with 3 beams"
        assert "beams" not in shown
    assert make(folders, "adept", beams=3).rewrite(["cat"]).texts


def test_a11_an_adept_without_clipping_is_clipped_at_its_average_norm(tmp_path):
    n = 2 * 16
    folder = save_tiny("adept", tmp_path / "m", bound=None, sigma=0.25)
    assert Adept(epsilon=50.0, model=folder).bound == ClipL2(0.25 * n**0.5)
    spread = Adept(epsilon=50.0, model=folder, norm="l1").bound
    average = 0.25 * n**0.5 * (2 * n / np.pi) ** 0.5
    assert pytest.approx(average) == spread.C
    assert Adept(epsilon=50.0, model=folder, clip=3.0).bound == ClipL2(3.0)


@pytest.mark.parametrize("epsilon", [250.0, 500.0, 2500.0])
def test_a6_gaussian_latents_assume_nothing_about_a_sampler(folders, epsilon):
    """Two states at the bound are 9 to 34 sigma apart here; the noise is exact at every distance."""
    mechanism = make(folders, "adept", epsilon=epsilon)
    promised = mechanism.guarantee()
    apart = promised.parameters["l2 sensitivity"] / promised.parameters["noise scale"]
    assert apart > 9.0
    assert not any("sampler" in line or "standard deviation" in line for line in promised.assumptions)
    assert promised.slack == 0.0
    assert len(mechanism.rewrite(["cat"])) == 1


# ADePT ------------------------------------------------------------------------------------------------------------


def test_both_repairs_of_adept(folders):
    n = 2 * 16
    l2_gauss = make(folders, "adept").guarantee().parameters
    assert l2_gauss["l2 sensitivity"] == pytest.approx(2.0)
    l2_laplace = make(folders, "adept", noise="laplace").guarantee().parameters
    assert l2_laplace["l1 sensitivity"] == pytest.approx(2 * n**0.5)
    l1 = make(folders, "adept", noise="laplace", norm="l1", clip=5.0).guarantee().parameters
    assert (l1["l1 sensitivity"], l1["C"]) == (10.0, 5.0)
    by_default = make(folders, "adept", noise="laplace", norm="l1").guarantee().parameters
    assert by_default["C"] == pytest.approx((2 * n / np.pi) ** 0.5)
    with pytest.raises(BadParameterError, match="norm must be one of l1, l2"):
        make(folders, "adept", norm="max")


def test_the_published_adept_is_void_and_releases_nothing(folders):
    broken = published_adept(1.0, model=folders["adept"], clip=5.0)
    promised = broken.guarantee()
    assert promised.notion is Notion.NONE
    assert "sqrt(n) * epsilon" in str(promised.void)
    for attempt in (
        lambda: broken.rewrite("cat"),
        lambda: broken.rewrite_texts(["cat"], Source.from_test_seed(0)),
        lambda: broken.fit_transform(["cat"]),
    ):
        with pytest.raises(NoGuaranteeError, match="use the mechanism 'adept'"):
            attempt()
    assert isinstance(broken, PublishedAdept)


def test_the_published_adept_is_not_in_the_catalog():
    from tacit.catalog import class_names

    assert class_names()["Adept"] is Adept
    assert PublishedAdept not in class_names().values()


def test_tacit_rewrite_refuses_the_published_adept(folders, tmp_path):
    from tacit.engines.job import RewriteJob
    from tacit.engines.local import rewrite_file

    source = tmp_path / "in.txt"
    source.write_text("cat\n")
    job = RewriteJob(
        mechanism=published_adept(1.0, model=folders["adept"]), input=str(source), output=str(tmp_path / "out.txt")
    )
    with pytest.raises(NoGuaranteeError, match="Nothing is released"):
        rewrite_file(job)
    assert not (tmp_path / "out.txt").exists()


def test_statistics_refute_the_published_adept_and_not_the_repair(folders):
    """The event "mean above 0.4" tells the worst pair apart. Under epsilon-DP its odds are at most e**epsilon."""
    epsilon, shape = 2.0, (2, 16)
    pair = np.stack([np.full(shape, 32**-0.5), np.full(shape, -(32**-0.5))])

    def interval(mechanism, sign: int, draws: int) -> tuple[float, float]:
        """The probability of the event within 5 standard errors: wrong for one of a million seeds."""
        latents = np.broadcast_to(pair[sign], (draws, *shape)).astype(np.float32)
        noisy = mechanism.noisy_latents(latents, Source.from_test_seed(11 + sign))
        share = float((noisy.mean(axis=(1, 2)) > 0.4).mean())
        error = 5 * (share * (1 - share) / draws) ** 0.5
        return share - error, share + error

    broken = published_adept(epsilon, model=folders["adept"], clip=1.0)
    assert interval(broken, 0, 20_000)[0] > np.exp(epsilon) * interval(broken, 1, 20_000)[1]
    repaired = Adept(epsilon=epsilon, model=folders["adept"], clip=1.0, noise="laplace")
    assert interval(repaired, 0, 1_000)[0] <= np.exp(epsilon) * interval(repaired, 1, 1_000)[1]


def test_tacit_rewrite_end_to_end(folders, tmp_path, capsys):
    import json

    from tacit.cli.main import run

    (tmp_path / "in.csv").write_text("text,label\nthe red cat,1\n,0\nmany birds,1\n")
    output = tmp_path / "out.csv"
    command = [
        "rewrite", str(tmp_path / "in.csv"), "-m", "narrow", "-e", "250", "--option", f"model={folders['narrow']}",
        "--option", "beams=1", "--column", "text", "--keep", "label", "-o", str(output), "-q",
    ]  # fmt: skip
    assert run(command) == 0, capsys.readouterr().err
    assert len(output.read_text().splitlines()) == 4
    card = json.loads((tmp_path / "out.csv.card.json").read_text())
    assert card["guarantee"]["unit"] == "document"
    assert card["guarantee"]["epsilon"] == 250
    assert str(tmp_path) not in json.dumps(card)
    wrong = [word.replace("narrow", "adept") if word == "narrow" else word for word in command]
    assert run([*wrong[:-2], str(tmp_path / "other.csv"), "-q"]) == 2
    assert "of the kind 'narrow'" in capsys.readouterr().err
    assert not (tmp_path / "other.csv").exists()
