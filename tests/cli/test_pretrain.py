"""`tacit pretrain`, end to end with tiny models."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner

pytest.importorskip("torch")
pytest.importorskip("transformers")

from tacit.cli.naming import TERMINAL
from tacit.cli.pretrain import command as pretrain
from tacit.documents.adept import Adept
from tacit.documents.autoencoders import load_autoencoder
from tacit.documents.bounds import ClipL2
from tacit.documents.dp_bart import DPBart
from tacit.errors import BadParameterError, NoGuaranteeError, TacitError
from tests.documents.test_latent_models import PUBLIC_TEXTS

TINY = [
    "--length",
    "6",
    "--vocabulary",
    "300",
    "--width",
    "16",
    "--layers",
    "1",
    "--heads",
    "2",
    "--feed-forward",
    "16",
    "--steps",
    "4",
    "--batch-size",
    "8",
    "--evaluate-every",
    "2",
    "--held-out",
    "10",
]


def run(*arguments: str) -> str:
    called = CliRunner().invoke(pretrain, list(arguments), catch_exceptions=False)
    assert called.exit_code == 0, called.output
    return called.output


@contextmanager
def refused(kind: type[TacitError], message: str) -> Iterator[None]:
    """An error whose sentence on a terminal has this in it."""
    with pytest.raises(kind) as caught:
        yield
    assert re.search(message, caught.value.rendered(TERMINAL))


@pytest.fixture
def text(tmp_path: Path) -> str:
    path = tmp_path / "public.txt"
    path.write_text("\n".join(PUBLIC_TEXTS))
    return str(path)


def test_from_text_to_pr_plus(text, tmp_path):
    bart, pruned, noisy = (str(tmp_path / name) for name in ("bart", "pruned", "noisy"))
    public = ["--public", "made-up sentences"]
    assert "BLEU" in run("autoencoder", text, "-o", bart, *public, "--clip", "1", "--half", *TINY)
    record = json.loads((Path(bart) / "tacit.json").read_text())
    assert record["corpora"] == ["made-up sentences"]
    assert record["results"]["steps"] == 4
    assert record["trained_for"] is None
    assert not (Path(bart) / "checkpoint.pt").exists()
    prune = ["--stages", "3", "--steps", "2", "--batch-size", "8", "--least-bleu", "0", "--dropout", "0.1"]
    run("prune", bart, text, "-o", pruned, *public, *prune)
    record = load_autoencoder(pruned).record
    assert record.pruning["pruned"] == [4, 7, 9]
    # Stopped between saving and measuring: not complete, and nothing is trained twice.
    record.results = {}
    record.write(Path(pruned))
    with refused(TacitError, "unfinished training"):
        run("prune", bart, text, "-o", pruned, *public, *prune)
    assert "BLEU" in run("prune", bart, text, "-o", pruned, *public, *prune, "--resume")
    assert load_autoencoder(pruned).record.results["kept"] == 9
    run("noise", pruned, text, "-o", noisy, *public, "--epsilon", "500", "--steps", "4", "--batch-size", "8")
    made = load_autoencoder(noisy).record
    assert made.epsilons() == [500.0]
    assert len(made.bound["kept"]) == 9
    assert made.corpora == ["made-up sentences"]
    assert len(made.commands) == 3


def test_what_was_trained_is_not_overwritten(text, tmp_path):
    command = ["autoencoder", text, "-o", str(tmp_path / "m"), "--public", "x", "--kind", "adept", *TINY]
    run(*command)
    before = (tmp_path / "m" / "model.safetensors").read_bytes()
    assert "already complete" in run(*command, "--resume")
    with refused(TacitError, "holds a model"):
        run(*command)
    assert (tmp_path / "m" / "model.safetensors").read_bytes() == before
    (tmp_path / "n").mkdir()
    (tmp_path / "n" / "checkpoint.pt").touch()
    with refused(TacitError, "unfinished training"):
        run("autoencoder", text, "-o", str(tmp_path / "n"), "--public", "x", *TINY)


def test_other_kinds(text, tmp_path):
    public = ["--public", "made-up sentences"]
    run("autoencoder", text, "-o", str(tmp_path / "a"), *public, "--kind", "adept", "--embedding", "8", *TINY)
    made = load_autoencoder(tmp_path / "a")
    assert (made.kind, made.positions, made.width) == ("adept", 2, 16)
    narrow = ["--kind", "narrow", "--latent-positions", "2", "--latent-width", "3", "--lowercase"]
    with refused(BadParameterError, "give --epsilon"):
        run("autoencoder", text, "-o", str(tmp_path / "n"), *public, *narrow, *TINY)
    run("autoencoder", text, "-o", str(tmp_path / "n"), *public, *narrow, "--epsilon", "250", *TINY)
    made = load_autoencoder(tmp_path / "n")
    assert (made.kind, made.positions, made.width) == ("narrow", 2, 3)
    assert made.record.trained_for == {"noise": "gaussian", "delta": 1e-5, "epsilons": [250.0]}


def test_weights_between_two_models(text, tmp_path):
    import torch

    first, second, between, other = (str(tmp_path / name) for name in ("first", "second", "between", "other"))
    public = ["--public", "made-up sentences"]
    run("autoencoder", text, "-o", first, *public, "--clip", "1", *TINY)
    run("noise", first, text, "-o", second, *public, "--epsilon", "500", "--steps", "4", "--batch-size", "8")
    run("average", first, second, text, "-o", between, *public, "--share", "0.25", "--held-out", "10")
    weights = [load_autoencoder(folder).module.state_dict() for folder in (first, second, between)]
    for name, value in weights[2].items():
        assert torch.allclose(value, 0.75 * weights[0][name] + 0.25 * weights[1][name], atol=1e-6), name
    assert any(not torch.equal(value, weights[1][name]) for name, value in weights[2].items())
    record = load_autoencoder(between).record
    assert record.trained_for["epsilons"] == [500.0]
    assert record.results["share"] == 0.25
    with refused(BadParameterError, "above 0 and at most 1"):
        run("average", first, second, text, "-o", other, *public, "--share", "0")
    run("autoencoder", text, "-o", other, *public, "--clip", "1", *[{"16": "8"}.get(word, word) for word in TINY])
    with refused(TacitError, "different shapes"):
        run("average", other, second, text, "-o", str(tmp_path / "none"), *public)


def test_a_model_without_clipping_knows_how_large_its_values_are(text, tmp_path):
    public = ["--public", "made-up sentences"]
    first, on, pruned = (str(tmp_path / name) for name in ("first", "on", "pruned"))
    run("autoencoder", text, "-o", first, *public, *TINY)
    model = load_autoencoder(first)
    assert model.record.bound is None
    assert model.record.sigma == pytest.approx(model.encode(PUBLIC_TEXTS).std(), rel=1e-3)
    run("autoencoder", text, "-o", on, *public, "--from", first, "--steps", "2", "--batch-size", "8")
    later = load_autoencoder(on)
    assert later.record.sigma == pytest.approx(later.encode(PUBLIC_TEXTS).std(), rel=1e-3)
    run(
        "prune",
        first,
        text,
        "-o",
        pruned,
        *public,
        "--stages",
        "2",
        "--steps",
        "2",
        "--batch-size",
        "8",
        "--least-bleu",
        "0",
    )
    record = load_autoencoder(pruned).record
    assert record.bound["C"] == model.record.sigma, "trained with one standard deviation"


GO_ON = ["--public", "made-up sentences", "--steps", "2", "--batch-size", "8", "--held-out", "10"]


def test_a11_another_bound_is_honored_when_a_model_is_trained_on(text, tmp_path):
    first = str(tmp_path / "first")
    run("autoencoder", text, "-o", first, "--public", "made-up sentences", "--clip", "1", *TINY)
    cases = {
        ("--bound", "l2", "--clip", "5"): {"kind": "l2", "C": 5.0},
        ("--clip", "0.5"): {"kind": "value", "C": 0.5, "kept": None},
        ("--unclipped",): None,
        (): {"kind": "value", "C": 1.0, "kept": None},
    }
    for number, (options, bound) in enumerate(cases.items()):
        folder = str(tmp_path / f"on-{number}")
        run("autoencoder", text, "-o", folder, "--from", first, *options, *GO_ON)
        record = load_autoencoder(folder).record
        assert record.bound == bound, options
        assert (record.sigma is None) == (bound is not None)
    # What was trained with a norm is used with it, and its C is no C of single values.
    assert DPBart(epsilon=500, model=str(tmp_path / "on-0")).bound == ClipL2(5.0)
    few = ["--stages", "2", "--steps", "2", "--batch-size", "8", "--least-bleu", "0"]
    run("prune", str(tmp_path / "on-0"), text, "-o", str(tmp_path / "pruned"), "--public", "x", *few)
    assert load_autoencoder(tmp_path / "pruned").record.bound["C"] != 5.0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--bound", "l2"), "give its C with --clip"),
        (("--unclipped", "--clip", "1"), "exclude each other"),
    ],
)
def test_a11_a_bound_that_cannot_be_honored_is_refused(options, message, text, tmp_path):
    first = str(tmp_path / "first")
    run("autoencoder", text, "-o", first, "--public", "made-up sentences", "--clip", "1", *TINY)
    with refused(BadParameterError, message):
        run("autoencoder", text, "-o", str(tmp_path / "on"), "--from", first, *options, *GO_ON)
    with refused(BadParameterError, "add --clip to --clip-by"):
        run("autoencoder", text, "-o", str(tmp_path / "new"), "--public", "x", "--bound", "l2", *TINY)


def test_a11_an_adept_can_be_trained_without_clipping(text, tmp_path):
    kind = ["--public", "made-up sentences", "--kind", "adept", "--embedding", "8"]
    run("autoencoder", text, "-o", str(tmp_path / "free"), *kind, "--unclipped", *TINY)
    model = load_autoencoder(tmp_path / "free")
    assert model.record.bound is None
    assert model.record.sigma == pytest.approx(model.encode(PUBLIC_TEXTS).std(), rel=1e-3)
    mechanism = Adept(epsilon=500, model=str(tmp_path / "free"))
    assert pytest.approx(model.record.sigma * (2 * 16) ** 0.5) == mechanism.bound.C
    assert len(mechanism.rewrite(["the red cat"])) == 1
    run("autoencoder", text, "-o", str(tmp_path / "clipped"), *kind, *TINY)
    assert load_autoencoder(tmp_path / "clipped").record.bound == {"kind": "l2", "C": 1.0}
    with refused(BadParameterError, "noise needs a bound"):
        run("autoencoder", text, "-o", str(tmp_path / "no"), *kind, "--unclipped", "--epsilon", "5", *TINY)


@pytest.mark.parametrize("command", ["autoencoder", "prune", "noise"])
def test_text_that_is_not_declared_public_is_refused(command, text, tmp_path):
    model = [] if command == "autoencoder" else ["bart-20"]
    more = ["--epsilon", "1"] if command == "noise" else []
    with refused(TacitError, r"not declared public.*DP-SGD"):
        run(command, *model, text, "-o", str(tmp_path / "m"), *more)
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--layers", "0"), "--layers must be at least 1"),
        (("--feed-forward", "0"), "--feed-forward must be at least 1"),
        (("--heads", "5"), "cannot be shared by 5 heads"),
        (("--vocabulary", "0"), "--vocabulary-size must be at least"),
        (("--kind", "narrow", "--epsilon", "5", "--latent-width", "0"), "--latent-width must be at least 1"),
        (("--kind", "adept", "--embedding", "0"), "--embedding must be at least 1"),
    ],
)
def test_shapes_that_no_network_can_have_are_refused(more, message, text, tmp_path):
    with refused(TacitError, message):
        run("autoencoder", text, "--public", "x", "-o", str(tmp_path / "m"), *more)
    assert not (tmp_path / "m").exists()


def test_help_names_the_three_commands():
    output = run("--help")
    assert all(name in output for name in ("autoencoder", "prune", "noise"))


def test_models_without_a_guarantee_are_not_trained_on(tmp_path):
    from tests.documents.test_lineage import save_bart
    from tests.test_lineage import VOID, write_lineage

    write_lineage(save_bart(tmp_path / "leaky"), VOID)
    text = tmp_path / "public.txt"
    text.write_text("".join(f"sentence number {i}\n" for i in range(40)))
    leaky, shared = str(tmp_path / "leaky"), [str(text), "--public", "x", "-o", str(tmp_path / "out")]
    for command in (
        ["prune", leaky, *shared],
        ["noise", leaky, *shared, "--epsilon", "500"],
        ["average", leaky, leaky, *shared],
        ["autoencoder", *shared, "--from", leaky],
    ):
        called = CliRunner().invoke(pretrain, command)
        assert isinstance(called.exception, NoGuaranteeError)
        assert "leaky has no guarantee" in str(called.exception)
