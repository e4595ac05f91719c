"""The law of one token of an ensemble, exactly: all replacements of a shard on a small vocabulary, in whole numbers."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from fractions import Fraction
from typing import get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.arrays import Floats, Integers
from tacit.errors import BadParameterError
from tacit.noise.source import Source
from tacit.training.ensemble.band import TOTAL, Band, Way, drawn_shard, drawn_token, public_weights

WAYS = get_args(Way)


def members(outcomes: int) -> Iterator[Floats]:
    """Laws of a shard, from the public one to a secret that it knows alone, and some that are no laws at all."""
    yield from np.eye(outcomes)
    yield np.full(outcomes, 1 / outcomes)
    for token in range(outcomes):
        law = np.full(outcomes, 1e-6)
        law[token] = 1.0
        yield law / law.sum()
        yield np.where(np.arange(outcomes) == token, 0.0, 1 / (outcomes - 1))
    generator = np.random.default_rng(4)
    yield from generator.dirichlet(np.full(outcomes, 0.3), size=4)
    yield np.full(outcomes, np.nan)
    yield np.full(outcomes, np.inf)
    yield np.zeros(outcomes)
    yield -np.ones(outcomes)


def publics(outcomes: int) -> Iterator[Floats]:
    generator = np.random.default_rng(5)
    yield np.full(outcomes, 1 / outcomes)
    yield generator.dirichlet(np.full(outcomes, 0.5))
    sharp = np.full(outcomes, 1e-13)  # below one unit of the whole numbers
    sharp[-1] = 1.0
    yield sharp


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("outcomes", "shards"), [(2, 2), (3, 3), (5, 2), (5, 8)])
def test_no_replacement_of_a_shard_exceeds_the_bound(way: Way, outcomes: int, shards: int) -> None:
    """All pairs of laws of one shard, before all sets of equal others and some of mixed others."""
    band = Band(shards, up=0.7, down=0.4, way=way)
    bound = band.largest_ratio()
    reached = Fraction(0)
    for law in publics(outcomes):
        public = public_weights(law)
        held = [band.held(public, member) for member in members(outcomes)]
        others = [(shards - 1) * each for each in held]
        others += [sum(some) for some in itertools.islice(itertools.combinations(held, shards - 1), 0, 400, 7)]
        changed = np.array(held)
        for rest in others:
            laws = rest + changed  # one law for each possible shard, times shards * TOTAL
            assert (laws.sum(axis=1) == shards * TOTAL).all()
            for token in range(outcomes):
                ratio = Fraction(int(laws[:, token].max()), int(laws[:, token].min()))
                assert ratio <= bound
                reached = max(reached, ratio)
    if way == "nearest":
        assert reached > 1 + (bound - 1) * Fraction(99, 100), "the bound is reached"


def test_the_bound_is_reached_on_the_line_as_well() -> None:
    """All other shards push a token down as far as they may, and one pulls it up."""
    band = Band(4, up=0.3, down=0.3, way="mixed")
    public = public_weights(np.array([0.4, 0.6]))
    up, down = (band.held(public, np.array(law)) for law in ([1.0, 0.0], [0.0, 1.0]))
    ratio = Fraction(int(3 * down[0] + up[0]), int(4 * down[0]))
    assert band.largest_ratio() * Fraction(9999, 10000) < ratio <= band.largest_ratio()


@pytest.mark.parametrize("way", WAYS)
def test_two_shards_change_when_a_user_is_exchanged(way: Way) -> None:
    band = Band(5, up=0.5, down=0.5, way=way)
    public = public_weights(np.array([0.2, 0.3, 0.5]))
    held = [band.held(public, member) for member in members(3)]
    worst = Fraction(0)
    for rest in held:
        sums = [3 * rest + first + second for first, second in itertools.product(held, repeat=2)]
        for token in range(3):
            values = [int(law[token]) for law in sums]
            worst = max(worst, Fraction(max(values), min(values)))
    assert band.largest_ratio(1) < worst <= band.largest_ratio(2)


@settings(max_examples=150, deadline=None)
@given(
    outcomes=st.integers(2, 40),
    way=st.sampled_from(WAYS),
    up=st.floats(0.001, 3.0),
    down=st.floats(0.001, 3.0),
    seed=st.integers(0, 10_000),
    sharpness=st.floats(0.0, 60.0),
)
def test_weights_lie_in_the_band_and_add_up(
    outcomes: int, way: Way, up: float, down: float, seed: int, sharpness: float
) -> None:
    generator = np.random.default_rng(seed)
    laws = np.exp(-sharpness * generator.random((2, outcomes)))
    laws[1, generator.random(outcomes) < 0.2] = 0.0
    band = Band(3, up=up, down=down, way=way)
    public = public_weights(laws[0])
    weights = band.held(public, laws[1])
    assert int(public.sum()) == int(weights.sum()) == TOTAL
    assert public.min() >= 1
    for weight, own in zip(weights.tolist(), public.tolist(), strict=True):
        assert Fraction(weight, own) <= Fraction(band.up_factor, 2**20) <= Fraction(math.exp(up))
        assert Fraction(weight, own) >= Fraction(band.down_factor, 2**20) >= Fraction(math.exp(-down))


def divergence(law: Floats, weights: Integers) -> float:
    """Kullback-Leibler divergence of a law from the weights of a shard."""
    return float((law * np.log(law / (weights / TOTAL))).sum())


def test_nearest_is_nearer_than_the_line() -> None:
    """One rare token whose probability grows a hundredfold takes the line back to the public model, and nothing else
    from the nearest law."""
    generator = np.random.default_rng(0)
    public = generator.dirichlet(np.full(50, 0.5)) + 1e-5
    law = public * np.exp(generator.normal(0, 0.3, 50))
    law[public.argmin()] = 100 * public.min()
    public, law = public / public.sum(), law / law.sum()
    weights = public_weights(public)
    nearest, line = (divergence(law, Band(2, way=way).held(weights, law)) for way in ("nearest", "mixed"))
    assert nearest < 0.5 * line
    inside = Band(2, up=3.0, down=3.0)
    assert divergence(public, inside.held(weights, public)) < 1e-8


def test_nearest_is_the_nearest() -> None:
    """Moving any unit of weight from a token to another inside the band takes the weights farther from the law."""
    generator = np.random.default_rng(2)
    public, law = generator.dirichlet(np.full(6, 1.0), size=2)
    band = Band(2, up=0.4, down=0.2)
    own = public_weights(public)
    weights = band.held(own, law)
    best, unit = divergence(law, weights), 1 << 20
    low, high = band.lowest(own), band.highest(own)
    moves = 0
    for giver, taker in itertools.permutations(range(6), 2):
        moved = weights.copy()
        moved[giver] -= unit
        moved[taker] += unit
        if (moved >= low).all() and (moved <= high).all():
            moves += 1
            assert divergence(law, moved) >= best - 1e-12
    assert moves


def test_a_shard_that_is_drawn_has_the_law_of_the_mixture() -> None:
    """Chi-square over 15,000 draws; false-alarm rate 1e-4 (critical value of 4 degrees of freedom: 23.51)."""
    band = Band(3, up=1.0, down=1.0)
    public = public_weights(np.array([0.5, 0.2, 0.15, 0.1, 0.05]))
    laws = np.eye(5)[[0, 3, 4]] * 0.9 + 0.02
    source = Source.from_test_seed(1)
    counts = np.zeros(5)
    held = [band.held(public, law) for law in laws]
    for _ in range(15_000):
        counts[drawn_token(held[drawn_shard(3, source)], source)] += 1
    expected = band.mixture(public, laws) / (3 * TOTAL) * 15_000
    assert ((counts - expected) ** 2 / expected).sum() < 23.51


def test_epsilons_of_the_paper_of_the_band() -> None:
    assert Band(100, 0.5, 0.5).token_epsilon() == pytest.approx(math.log((99 + math.e) / 100), rel=1e-5)
    assert Band(100, 0.5, 0.5).token_epsilon() <= 0.0171


@pytest.mark.parametrize("half", [0.0, -1.0, 3.1, math.nan, math.inf])
def test_bands_that_are_none(half: float) -> None:
    with pytest.raises(BadParameterError):
        Band(4, up=half)
    with pytest.raises(BadParameterError):
        Band(4, down=half)
    with pytest.raises(BadParameterError):
        Band(1)
