"""Angular noise, depth vectors and word vectors: what they promise and release."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tacit.catalog import build, find, mechanism_names
from tacit.documents.bounds import AnalyticGaussian, ClipL2
from tacit.embeddings.angular import Angular
from tacit.embeddings.depth import DepthVectors
from tacit.embeddings.shared_noise import SharedNoise
from tacit.embeddings.words import WordLaplace
from tacit.errors import BadParameterError
from tacit.guarantee import Notion, Unit
from tacit.noise.gaussian import gaussian_epsilon
from tacit.noise.source import new_source

TEXTS = ["", "play some music", "It is late. We go home. The cat sleeps."]


def test_angular_releases_unit_vectors_on_a_grid_and_promises_the_angle():
    for form, diameter in (("angle", math.pi), ("normalize", 2.0)):
        mechanism = Angular(epsilon=5, form=form)
        release = mechanism.embed(TEXTS)
        assert release.matrix.shape == (3, 16)
        assert np.abs(np.linalg.norm(release.matrix, axis=1) - 1).max() < 1e-5
        assert (release.matrix.astype(np.float64) * 2.0**20 % 1 == 0).all()
        promised = release.guarantee
        assert (promised.notion, promised.unit) == (Notion.METRIC, Unit.DOCUMENT)
        assert promised.metric.diameter == pytest.approx(diameter)
        assert promised.metric.diameter >= diameter
        plain = promised.over_diameter()
        assert plain.epsilon == pytest.approx(5 * diameter)
    assert (mechanism.units([""])[0] == np.eye(16)[0]).all()


def test_angular_forms_turn_as_much_as_their_law_says():
    """Mean cosines at d = 16: .54 at epsilon 10 by the angle; false alarm far below 1e-4 at this tolerance."""
    units = np.tile(np.eye(16)[0], (4_000, 1))
    turned = Angular(epsilon=10).turned(units, new_source(1))
    assert turned[:, 0].mean() == pytest.approx(0.54, abs=0.02)
    other = Angular(epsilon=10, form="normalize").turned(units, new_source(1))
    assert 0.4 < other[:, 0].mean() < 0.6


def test_depth_vectors_are_those_of_candidates():
    mechanism = DepthVectors(epsilon=5, candidates=64)
    release = mechanism.embed(TEXTS)
    assert release.units == [1, 1, 3]
    assert release.guarantee.unit is Unit.SENTENCE
    candidates = mechanism.chooser.candidate_vectors
    assert np.abs(release.matrix[:, None, :] - candidates[None]).max(axis=2).min(axis=1).max() < 1e-5


def test_word_vectors_have_one_row_per_word():
    for mechanism in (WordLaplace(epsilon=20, limit=2_000), SharedNoise(epsilon=20, limit=2_000)):
        release = mechanism.embed(TEXTS)
        assert [vector.shape for vector in release.vectors] == [(0, 50), (3, 50), (12, 50)]
        assert release.units == mechanism.count_units(TEXTS) == [0, 3, 12]
        assert release.guarantee.unit is Unit.TOKEN
        assert mechanism.releases == "vectors"
        with pytest.raises(Exception, match="no matrix"):
            _ = release.matrix


def test_word_laplace_is_the_noise_of_the_word_mechanism():
    vectors = WordLaplace(epsilon=20, limit=500, seed=4).embed(["the cat sees the sea"]).vectors[0]
    own, _ = build("laplace", {"epsilon": 20, "limit": 500, "seed": 4}).release_vectors(["the cat sees the sea"])
    assert (vectors == own[0].astype(np.float32)).all()
    assert WordLaplace(epsilon=20, limit=500).promise().epsilon == 20


def test_one_noise_level_keeps_the_claim_and_one_per_component_does_not():
    """NADP as published: a level for each connected component. Two words of different components get noise of different
    size, and that alone tells them apart; words of two components are as far apart as the vocabulary allows."""
    mechanism = SharedNoise(epsilon=2, delta=1e-6, limit=500)
    vectors = mechanism.bounded_vectors
    assert np.linalg.norm(vectors, axis=1).max() <= 1.0
    farthest = np.linalg.norm(vectors[:, None] - vectors[None], axis=2).max()
    assert gaussian_epsilon(mechanism.noise_scale, 1e-6, farthest) <= 2.0
    # The fixture: components of words within 0.6 of each other, noise for the diameter of the own component.
    distances = np.linalg.norm(vectors[:, None] - vectors[None], axis=2)
    component = np.arange(len(vectors))
    for _ in range(len(vectors)):
        smaller = np.array([component[row < 0.6].min() for row in distances])
        if (smaller == component).all():
            break
        component = smaller
    pairs = [np.flatnonzero(component == each) for each in np.unique(component)]
    diameters = [distances[np.ix_(words, words)].max() for words in pairs]
    noise = AnalyticGaussian(1e-6)
    levels = sorted({noise.scale(ClipL2(max(diameter, 1e-3) / 2), 50, 2.0) for diameter in diameters})
    assert len(levels) > 1
    # 50 squares of residuals tell a level from another one: their mean, as a guess of the component.
    generator = np.random.default_rng(0)
    guesses = [np.square(generator.normal(0, level, 50)).mean() for level in (levels[0], levels[-1])]
    assert guesses[0] < (levels[0] * levels[-1]) < guesses[1]
    assert gaussian_epsilon(levels[0], 1e-6, farthest) > 100 * 2.0


def test_names_are_of_one_kind():
    assert {"forward", "angular", "depth", "word-laplace", "word-gaussian"} <= set(mechanism_names(vectors=True))
    assert "forward" not in mechanism_names()
    with pytest.raises(BadParameterError, match="tacit embed"):
        find("angular")
    with pytest.raises(BadParameterError, match="tacit rewrite"):
        find("santext", vectors=True)
    assert find("depth").releases == "text"
    assert find("depth", vectors=True).releases == "vector"
