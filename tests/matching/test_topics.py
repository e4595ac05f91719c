"""Public cells, their joining to topics, and the map: functions of single texts, or of released numbers."""

from __future__ import annotations

import numpy as np
import pytest

from tacit.errors import BadInputError
from tacit.matching.pool import SentencePool, load_pool
from tacit.matching.topics.cells import NO_CELL, PublicCells, load_cells, made_cells
from tacit.matching.topics.layout import circles
from tacit.matching.topics.merging import merged, noise_reach, usual_topics
from tacit.matching.topics.naming import near_sentences, ordered_words, topic_directions
from tacit.noise.source import public_generator

TEXTS = ["my credit card was declined", "how is the weather in Paris", "", "你好", "book a table for two", "x" * 40]


@pytest.fixture(scope="module")
def cells() -> PublicCells:
    return load_cells()


def test_the_cell_of_a_text_hangs_on_that_text_alone(cells: PublicCells) -> None:
    together = cells.places(TEXTS)
    assert [int(cells.places([text])[0]) for text in TEXTS] == together.tolist()
    assert cells.places(TEXTS[::-1] * 30)[::-1][: len(TEXTS)].tolist() == together.tolist()
    assert together[2] == NO_CELL


def test_bundled_cells_are_those_of_the_bundled_pools(cells: PublicCells) -> None:
    assert cells.centers.shape == (1024, 256)
    assert np.unique(cells.directions.round(6), axis=0).shape[0] > 1_000
    pool, place = cells.sentence(int(cells.nearest.max()))
    assert 20 <= len(pool.sentences[place]) <= 120
    own = [cells.sentence(int(place)) for place in cells.nearest[:50, 0]]
    assert (cells.places([pool.sentences[place] for pool, place in own]) == np.arange(50)).mean() > 0.9


def small_pool(size: int) -> SentencePool:
    pool = load_pool("requests")
    return SentencePool("small", pool.sentences[:size], pool.sources, pool.source_ids[:size], pool.credits[:size], "d")


def test_cells_of_another_pool_are_made_alike_every_time() -> None:
    first, second = made_cells([small_pool(800)]), made_cells([small_pool(800)])
    assert len(first) == 50
    assert first.digest == second.digest
    assert (first.nearest == second.nearest).all()
    with pytest.raises(BadInputError) as raised:
        made_cells([small_pool(20)])
    assert raised.value.code == "pool-too-small"


def clouds(count: int, each: int, dimension: int = 12) -> tuple[np.ndarray, np.ndarray]:
    """Directions in well separated groups, and the group of each."""
    generator = public_generator(1)
    centers = np.eye(dimension)[:count]
    points = np.repeat(centers, each, axis=0) + 0.05 * generator.normal(size=(count * each, dimension))
    return points / np.linalg.norm(points, axis=1, keepdims=True), np.repeat(np.arange(count), each)


def test_cells_that_are_alike_become_one_topic() -> None:
    directions, groups = clouds(6, 10)
    noisy = np.full(60, 100.0) + groups
    topics = merged(directions, noisy, 1.0, 6)
    for group in range(6):
        assert len(set(topics[groups == group].tolist())) == 1
    totals = np.bincount(topics, weights=noisy)
    assert (np.diff(totals) <= 0).all()  # the largest topic comes first


def test_a_cell_within_the_noise_belongs_to_its_neighbor() -> None:
    directions, groups = clouds(3, 4)
    noisy = np.where(np.arange(12) % 4 == 3, 1.0, 50.0)
    topics = merged(directions, noisy, 5.0, 3)
    assert all(len(set(topics[groups == group].tolist())) == 1 for group in range(3))


def test_every_cell_has_a_topic_even_if_all_is_noise() -> None:
    directions, _ = clouds(6, 10)
    topics = merged(directions, public_generator(2).laplace(0, 5, 60), 5.0, 20)
    assert sorted(set(topics.tolist())) == list(range(20))


def test_the_number_of_topics_follows_the_noisy_counts() -> None:
    assert usual_topics(np.full(100, -3.0), 28.0) == 20
    assert usual_topics(np.full(1000, 10.0), 28.0) == 51
    assert usual_topics(np.full(1000, 1000.0), 28.0) == 100


@pytest.mark.parametrize("number", [1, 2, 7, 60])
def test_intervals_hold_95_of_100_draws(number: int) -> None:
    """200,000 sums of Laplace draws: coverage within .004 of .95 (false alarm below 1 in 10,000)."""
    sums = public_generator(3).laplace(0, 5.0, size=(200_000 // number * number // number, number)).sum(axis=1)
    inside = (np.abs(sums) <= noise_reach(number, 5.0)).mean()
    spread = 4 * np.sqrt(0.05 * 0.95 / len(sums))
    assert 0.95 - spread < inside < 0.96 + spread
    assert noise_reach(1, 5.0) == pytest.approx(5 * np.log(20), rel=0.02)


def test_words_that_tell_most_come_first() -> None:
    counts = [{"please": 50.0, "card": 40.0}, {"please": 60.0, "rain": 30.0}, {}]
    assert ordered_words(counts, np.array([100.0, 100.0, 5.0])) == [["card", "please"], ["rain", "please"], []]


def test_sentences_near_a_topic_are_public_and_fit(cells: PublicCells) -> None:
    topics = np.zeros(len(cells), dtype=np.int64)
    card = int(cells.places(["is my credit card blocked"])[0])
    topics[card] = 1
    noisy = np.where(topics == 1, 500.0, 1.0)
    near = near_sentences(cells, noisy, topics, topic_directions(cells, noisy, topics, 2), [[], ["card", "credit"]])
    assert all("card" in pool.sentences[place].lower() for pool, place in near[1])


def test_circles_do_not_cover_each_other_and_lie_on_the_map() -> None:
    directions, _ = clouds(8, 5)
    totals = np.linspace(500, -20, 40)
    places, radii = circles(directions, totals)
    apart = np.linalg.norm(places[:, None] - places[None], axis=2) - radii[:, None] - radii[None]
    assert apart[~np.eye(40, dtype=bool)].min() > -0.01
    assert (np.abs(places) + radii[:, None] <= np.array([0.75, 0.5]) + 1e-9).all()
    assert radii[0] ** 2 / radii[10] ** 2 == pytest.approx(totals[0] / totals[10])
