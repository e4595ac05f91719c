"""Attacks on released vectors: floors and ceilings, and a release with too little noise is refuted."""

from __future__ import annotations

import json

import numpy as np
import pytest

import tacit
from tacit.auditing.claims.published_forward import published_noisy_latents
from tacit.auditing.vectors.claim import angle_distribution
from tacit.auditing.vectors.inversion import by_nearest, by_training, nearest_places, wiener_filtered, words_in
from tacit.cli.main import run as tacit_command
from tacit.embeddings.angular import Angular
from tacit.embeddings.forward import Forward
from tacit.embeddings.shared_noise import SharedNoise
from tacit.embeddings.words import WordLaplace
from tacit.errors import BadInputError
from tacit.noise.source import new_source
from tacit.noise.sphere import AngularNoise

THINGS = {
    "music": ("play the new song by the band", "turn the music up", "add this track to my playlist"),
    "food": ("book a table at the restaurant", "order two pizzas for dinner", "find a cafe with good bread"),
    "weather": ("will it rain tomorrow", "is there snow in the mountains", "how hot is it in the city today"),
}
ROWS = [
    {"text": f"{text} {place}", "topic": topic}
    for place in ("please", "now", "for me", "again", "in Rome", "later", "with Ann", "on Monday")
    for topic, texts in THINGS.items()
    for text in texts
]
TEXTS = [row["text"] for row in ROWS]


@pytest.fixture
def files(tmp_path):
    original = tmp_path / "rows.jsonl"
    original.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    released = tmp_path / "v.jsonl"
    tacit.embed(str(original), columns="text", keep="topic", epsilon=2, output=released, dimensions=8)
    return original, released


def test_a_release_with_its_noise_is_not_refuted_and_hardly_helps(files):
    pytest.importorskip("sklearn")
    report = tacit.audit_vectors(str(files[0]), str(files[1]), attribute_columns=("topic",))
    assert not report.refuted
    names = {finding.name: finding for finding in report.findings}
    link = names["released texts linked to their originals"].numbers
    assert link["floor"] == pytest.approx(1 / len(ROWS))
    assert link["ceiling"] > 0.8
    assert link["rate"] < 0.2
    topic = names["topic inferred (adaptive attacker)"].numbers
    assert topic["ceiling"] > 0.8
    assert topic["rate"] < 0.6
    words = names["words by a trained inversion"].numbers
    assert words["floor"] < words["ceiling"]
    assert report.private  # it quotes originals


def test_vectors_without_noise_are_found_out(files, tmp_path):
    """The file beside the card is replaced by the clean vectors: every attack reaches its ceiling, and exit code 3."""
    mechanism = Forward(epsilon=2, dimensions=8)
    clean = mechanism.clean_vectors(TEXTS)
    lines = [json.dumps({"text": vector.tolist()}) for vector in clean]
    files[1].write_text("\n".join(lines) + "\n")
    report = tacit.audit_vectors(str(files[0]), str(files[1]))
    assert report.refuted
    assert tacit_command(["audit", "vectors", str(files[0]), str(files[1]), "--column", "text", "--quiet"]) == 3
    link = next(f for f in report.findings if f.name == "released texts linked to their originals").numbers
    assert link["rate"] == pytest.approx(link["ceiling"], abs=0.05)


def test_noise_for_half_the_sensitivity_is_refuted(files):
    mechanism = Forward(epsilon=2, dimensions=8)
    broken = published_noisy_latents(mechanism.clean_vectors(TEXTS)[:, None, :], 2.0, 1e-6, new_source(3))[:, 0]
    options = {"mechanism": "forward", "epsilon": 2, "options": {"dimensions": 8}}
    report = tacit.audit_vectors(ROWS, broken, column="text", **options)
    assert report.refuted
    right = mechanism.noisy_latents(mechanism.clean_vectors(TEXTS)[:, None, :], new_source(3))[:, 0]
    assert not tacit.audit_vectors(ROWS, right, column="text", **options).refuted


def test_angles_that_are_too_small_are_refuted():
    mechanism = Angular(epsilon=3, dimensions=8)
    options = {"mechanism": "angular", "epsilon": 3, "options": {"dimensions": 8}, "column": "text"}
    right = mechanism.turned(mechanism.units(TEXTS), new_source(2))
    assert not tacit.audit_vectors(ROWS, right, **options).refuted
    weak = Angular(epsilon=9, dimensions=8).turned(mechanism.units(TEXTS), new_source(2))
    assert tacit.audit_vectors(ROWS, weak, **options).refuted


def test_the_distribution_of_angles_is_that_of_the_sampler():
    from scipy.stats import kstest

    noise = AngularNoise(5.0, 8)
    assert kstest(angle_distribution(noise, noise.angles(3_000, new_source(1))), "uniform").pvalue > 1e-4


def test_inversions_between_their_floors_and_ceilings():
    generator = np.random.default_rng(1)
    clean = Forward(epsilon=1, dimensions=16).clean_vectors(TEXTS)
    noise = generator.normal(0, 50, clean.shape)
    drowned, kept = (clean + noise).astype(np.float32), clean.astype(np.float32)
    for released, low, high in ((drowned, -0.3, 0.4), (kept, 0.95, 1.05)):
        trained = by_training(TEXTS, released, clean, seed=0, looks=1)
        nearest = by_nearest(TEXTS, released, clean, TEXTS, clean, looks=1)
        assert low <= trained.share <= high
        assert low <= nearest.share <= high
    assert (nearest_places(clean, clean) == np.array([TEXTS.index(text) for text in TEXTS])).all()
    assert words_in("The a 12 CAT's") == {"the", "cat"}


def test_what_cannot_be_audited_is_said(files, tmp_path):
    with pytest.raises(BadInputError, match="no card"):
        tacit.audit_vectors(ROWS, np.zeros((len(ROWS), 8)), column="text")
    with pytest.raises(BadInputError, match="do not align"):
        tacit.audit_vectors(ROWS[:-1], str(files[1]), column="text")
    with pytest.raises(BadInputError, match="each word"):
        tacit.audit_vectors(
            ROWS, str(files[1]), column="text", mechanism="word-laplace", epsilon=2, options={"limit": 500}
        )
    with pytest.raises(BadInputError, match="numbers"):
        tacit.audit_vectors(ROWS, np.zeros((len(ROWS), 8)), column="text", mechanism="forward", epsilon=2)


def test_a_filter_that_knows_the_noise_never_falls_below_the_floor():
    """Drowned vectors say nothing: the guess is that of the commonest words, and does not fit noise."""
    generator = np.random.default_rng(1)
    clean = Forward(epsilon=1, dimensions=16).clean_vectors(TEXTS)
    drowned = (clean + generator.normal(0, 50, clean.shape)).astype(np.float32)
    trained = by_training(TEXTS, drowned, clean, seed=0, looks=1)
    assert trained.rate == pytest.approx(trained.floor, abs=0.03)
    train, test = np.arange(60), np.arange(60, len(TEXTS))
    assert np.allclose(wiener_filtered(clean, clean, train, test), clean[test], atol=1e-6)


@pytest.mark.parametrize("kind", [WordLaplace, SharedNoise])
def test_words_are_attacked_and_too_little_noise_is_refuted(kind):
    """A release at epsilon 40 under a card of 4: refuted, and more words are found than under the true noise."""
    pytest.importorskip("scipy")
    claimed = {"mechanism": kind.name, "epsilon": 4, "options": {"limit": 2_000}}
    recovered = {}
    for epsilon in (4, 40):
        mechanism = kind(epsilon=epsilon, limit=2_000)
        rows = [{"text": each.tolist()} for each in mechanism.rewrite_texts(TEXTS, new_source(5)).vectors]
        report = tacit.audit_vectors(ROWS, rows, column="text", **claimed)
        assert report.refuted == (epsilon == 40)
        numbers = {finding.name: finding.numbers for finding in report.findings}
        recovered[epsilon] = numbers["words by the nearest vector"]["rate"]
        assert numbers["words by the nearest vector"]["ceiling"] == 1.0
        likeliest = numbers["words by Bayes's rule"]
        assert likeliest["floor"] - 0.1 <= likeliest["rate"] <= likeliest["ceiling"]
    assert recovered[4] < recovered[40]


def test_directions_of_another_public_file_are_refused(tmp_path, monkeypatch):
    """A card names the file of public texts without its folder: one of the same name with other texts is noticed."""
    for folder, words in (("first", "red green blue"), ("second", "cat dog bird")):
        (tmp_path / folder).mkdir()
        lines = [f"{words} {word} number {n}" for n, word in enumerate(words.split() * 40)]
        (tmp_path / folder / "public.txt").write_text("\n".join(lines))
    monkeypatch.chdir(tmp_path / "first")
    released = tmp_path / "v.jsonl"
    tacit.embed(
        ROWS, columns="text", keep="topic", epsilon=8, output=released, dimensions=4, options={"public": "public.txt"}
    )
    tacit.train("classify", vectors=str(released), label_column="topic", output=tmp_path / "m")
    assert len(tacit.predict(tmp_path / "m", ROWS).predictions) == len(ROWS)
    tacit.audit_vectors(ROWS, str(released), column="text")
    for place in ("second", "."):
        monkeypatch.chdir(tmp_path / place)
        for attempt in (
            lambda: tacit.predict(tmp_path / "m", ROWS),
            lambda: tacit.audit_vectors(ROWS, str(released), column="text"),
        ):
            with pytest.raises(BadInputError) as refused:
                attempt()
            assert refused.value.code == "other-public-parts"
