"""The feature map: whole numbers, whose length no text can bring above the bound."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from tacit.encoders import ENCODERS
from tacit.errors import BadInputError, BadParameterError
from tacit.matching.blocks import EncoderBlock, FourierBlock, WordsBlock, known_encoder, turned
from tacit.matching.features import FeatureMap, default_map, weighted_map
from tacit.matching.pool import load_pool
from tacit.matching.whole_numbers import GRID, bound_of, bounded_steps, root_above, shortened

HOSTILE = [
    "",
    " \n\t",
    "🙂 emoji 👩‍👩‍👧 flags 🇩🇪",
    " ".join(f"word{i} the of cat" for i in range(25_000)),
    " ".join(load_pool().sentences[:4_000]),
    "half \udc00 pair",
    "\x00\x1f",
    "İstanbul ﬁ ß ǆ",
    "9" * 5_000,
]


@pytest.fixture(scope="module")
def rich() -> FeatureMap:
    """All kinds of blocks, with weights whose squares add up to 1."""
    return FeatureMap(
        (EncoderBlock.of(weight=0.6), FourierBlock.of(weight=0.5, frequencies=96), WordsBlock.of(weight=0.6)),
        math.sqrt(1 - 0.36 - 0.25 - 0.36),
    )


def squared_lengths_of_rows(features: FeatureMap, texts: list[str]) -> list[int]:
    """With Python's integers, number by number."""
    made = features.features(texts, alone=True)
    rows = [[int(value) for value in row] for row in made.dense]
    for row, steps in zip(made.rows.tolist(), made.word_steps.tolist(), strict=True):
        rows[row].append(steps)
    return [sum(value * value for value in row) + features.count_steps**2 for row in rows]


def test_no_hostile_text_is_longer_than_the_bound(rich: FeatureMap) -> None:
    for features in (rich, default_map()):
        lengths = squared_lengths_of_rows(features, HOSTILE)
        assert max(lengths) <= GRID**2
        assert lengths[0] == features.count_steps**2, "an empty text is only counted"


@settings(max_examples=80)
@given(st.lists(st.text(max_size=60) | st.sampled_from(load_pool().sentences[::5000]), min_size=1, max_size=5))
def test_no_text_is_longer_than_the_bound(rich_texts: list[str]) -> None:
    features = FeatureMap((EncoderBlock.of(weight=0.7), FourierBlock.of(weight=0.3), WordsBlock.of(weight=0.6)), 0.24)
    assert max(squared_lengths_of_rows(features, rich_texts)) <= GRID**2


@settings(max_examples=300)
@given(
    arrays.arrays(np.float32, st.tuples(st.integers(1, 4), st.integers(1, 40)), elements=st.floats(width=32)),
    st.integers(1, GRID),
)
def test_whatever_an_encoder_gives_is_bounded(vectors: np.ndarray, bound: int) -> None:
    steps = bounded_steps(vectors, bound)
    for row in steps:
        assert sum(int(value) ** 2 for value in row) <= bound**2


@settings(max_examples=200)
@given(st.lists(st.integers(-(2**28), 2**28), min_size=1, max_size=20), st.integers(1, GRID))
def test_shortening_is_exact_and_leaves_short_rows_alone(values: list[int], bound: int) -> None:
    short = [int(value) for value in shortened(np.array([values], dtype=np.int64), bound)[0]]
    square = sum(value**2 for value in values)
    if square <= bound**2:
        assert short == values
    assert sum(value**2 for value in short) <= bound**2
    assert all(value * other >= 0 for value, other in zip(values, short, strict=True))


@settings(max_examples=300)
@given(st.integers(0, 2**52 - 1))
def test_the_root_is_the_least_that_is_not_below(square: int) -> None:
    root = int(root_above(np.array([square]))[0])
    assert root * root >= square
    assert root == 0 or (root - 1) ** 2 < square


def test_a_text_has_the_same_features_in_every_batch(rich: FeatureMap) -> None:
    texts = [*load_pool().sentences[::4000], *HOSTILE]
    together = rich.features(texts)
    for place, text in enumerate(texts):
        alone = rich.features([text])
        assert alone.dense.tobytes() == together.dense[place : place + 1].tobytes()
        mine = together.rows == place
        assert (alone.words == together.words[mine]).all()
        assert (alone.word_steps == together.word_steps[mine]).all()


def test_most_of_the_budget_is_used() -> None:
    features = default_map()
    made = features.features(list(load_pool().sentences[:2_000]))
    assert np.median(made.squared_lengths() + features.count_steps**2) > 0.997 * GRID**2


def test_words_are_present_or_not_and_rare_ones_weigh_more() -> None:
    block = WordsBlock.of(weight=1.0)
    rows, words, steps = block.entries(["the the THE volcano", "unknownwordxyz", ""])
    assert rows.tolist() == [0, 0]
    assert len(set(words.tolist())) == 2
    assert max(steps) > 3 * min(steps)


def test_fourier_features_approximate_the_gaussian_kernel() -> None:
    block = FourierBlock.of(weight=1.0, frequencies=2_000, bandwidth=0.8)
    vectors = known_encoder("static").encode(list(load_pool().sentences[:40]))
    values = block.steps(vectors) / GRID
    distances = ((vectors[:, None] - vectors[None]) ** 2).sum(axis=2)
    assert np.abs(values @ values.T - np.exp(-distances / (2 * 0.8**2))).max() < 0.12


def test_angles_come_from_exact_products() -> None:
    assert turned(np.array([0.0, 2.0**34, 2.0**33, -(2.0**32)])).tolist() == [0, 0, 32768, 49152]


def test_weights_that_are_too_large_are_refused() -> None:
    words = WordsBlock.of(weight=0.8, size=10)
    with pytest.raises(BadParameterError, match="add up to at most 1"):
        FeatureMap((EncoderBlock.of(weight=0.6), words), 0.1)
    FeatureMap((EncoderBlock.of(weight=0.59), words), 0.1)
    for weight in (0.0, -0.5, 1.5, math.nan):
        with pytest.raises(BadParameterError):
            FeatureMap((EncoderBlock.of(weight=weight),), 0.1)
    with pytest.raises(BadParameterError, match="stands last"):
        FeatureMap((WordsBlock.of(weight=0.1, size=5), EncoderBlock.of(weight=0.1)), 0.1)
    with pytest.raises(BadParameterError):
        WordsBlock.of(size=0)


@settings(max_examples=50)
@given(st.floats(0.01, 0.99), st.floats(0.01, 5), st.floats(0.01, 5))
def test_scaled_weights_always_fit(count: float, dense: float, words: float) -> None:
    made = weighted_map([("static", dense), ("words", words)], count=count, words=10)
    assert sum(bound_of(weight) ** 2 for weight in (made.count_weight, *(b.weight for b in made.blocks))) <= GRID**2


def test_a_map_is_the_same_after_a_way_through_json(rich: FeatureMap) -> None:
    again = FeatureMap.from_dict(json.loads(json.dumps(rich.to_dict())))
    assert again == rich
    assert again.digest == rich.digest
    assert default_map().digest != rich.digest
    other = rich.to_dict()
    other["blocks"][0]["digest"] = "another encoder"
    with pytest.raises(BadInputError, match="not the one"):
        FeatureMap.from_dict(other).features(["a"])
    other = rich.to_dict()
    other["blocks"][2]["digest"] = "other words"
    with pytest.raises(BadInputError, match="vocabulary"):
        FeatureMap.from_dict(other).features(["a"])


class Drifting:
    """An encoder whose vectors depend on the batch, and which is sometimes longer than 1."""

    name = "drifting"
    dimension = 4

    def encode(self, texts: list[str], progress: object = None) -> np.ndarray:
        return np.full((len(texts), 4), 0.9 + 0.01 * len(texts), dtype=np.float32)

    def encode_alone(self, text: str) -> np.ndarray:
        return np.full(4, len(text) * 0.1, dtype=np.float32)


def test_an_encoder_that_drifts_with_the_batch_is_asked_for_each_text_alone() -> None:
    ENCODERS.register("drifting", Drifting)
    features = FeatureMap((EncoderBlock.of("drifting", 0.5),), 0.5)
    together = features.features(["a", "bbbbbbbbbbbbbbb", " "], alone=True).dense
    assert (together[0] == features.features(["a"], alone=True).dense[0]).all()
    assert (together[0] != features.features(["a", "b"]).dense[0]).any()
    assert not together[2].any()
    assert int((together[1].astype(np.int64) ** 2).sum()) <= bound_of(0.5) ** 2
