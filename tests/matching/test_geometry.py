"""The geometry of vectors: exact in any batch, never longer than 1, and what it is for."""

import numpy as np
import pytest

from tacit.matching.blocks import EncoderBlock
from tacit.matching.encoder import StaticEncoder
from tacit.matching.features import FeatureMap
from tacit.matching.geometry import Geometry, fitted_geometry, known_geometry
from tacit.matching.pool import load_pool
from tacit.matching.whole_numbers import GRID, bound_of

TEXTS = ["Where is my parcel?", "", "I want my money back!", "\U0001f600", "a " * 30_000, "It rains in Paris today."]


@pytest.fixture(scope="module")
def geometry() -> Geometry:
    loaded = known_geometry(StaticEncoder().digest)
    assert loaded is not None, "the geometry of the bundled encoder comes with the package"
    return loaded


def test_a_vector_is_the_same_bit_for_bit_in_every_batch(geometry):
    vectors = StaticEncoder().encode(TEXTS * 50)
    together = geometry.apply(vectors)
    for place in (0, 3, 7, 299):
        assert np.array_equal(geometry.apply(vectors[place : place + 1])[0], together[place])
    assert np.array_equal(geometry.apply(vectors[::-1])[::-1], together)


def test_vectors_have_length_one_or_are_zero(geometry):
    lengths = np.linalg.norm(geometry.apply(StaticEncoder().encode(TEXTS)), axis=1)
    assert lengths[1] == 0
    assert np.allclose(lengths[[0, 2, 4, 5]], 1)
    wild = geometry.apply(np.full((1, StaticEncoder().dimension), np.nan, dtype=np.float32))
    assert not wild.any()


def test_no_row_is_longer_than_its_bound():
    block = EncoderBlock.of("static", 0.7)
    assert block.balanced
    steps = FeatureMap((block,), 0.2).features(TEXTS, alone=True).dense.astype(np.int64)
    assert (steps * steps).sum(axis=1).max() <= bound_of(0.7) ** 2 < GRID**2


def test_the_common_part_is_gone():
    sentences = load_pool("general").sentences[::60]
    vectors = StaticEncoder().encode(sentences).astype(np.float64)
    block = FeatureMap((EncoderBlock.of("static", 0.9),), 0.2)
    features = block.features(sentences).dense_values().astype(np.float64)
    assert np.linalg.norm(features.mean(axis=0)) < 0.4 * np.linalg.norm(vectors.mean(axis=0))


def test_a_negative_power_makes_directions_more_alike():
    vectors = StaticEncoder().encode(load_pool("general").sentences[::60])
    spreads = [
        np.linalg.eigvalsh(np.cov(fitted_geometry(vectors, power).apply(vectors).T)) for power in (0.0, -0.25, -0.5)
    ]
    plain, half, alike = (spread[-1] / spread.mean() for spread in spreads)
    assert alike < 0.7 * half < 0.7 * 0.7 * plain


def test_a_geometry_is_a_function_of_its_vectors_alone():
    vectors = StaticEncoder().encode(load_pool("general").sentences[::100])
    first, second = fitted_geometry(vectors), fitted_geometry(vectors.copy())
    assert np.array_equal(first.matrix, second.matrix)
    assert np.array_equal(first.mean, second.mean)
