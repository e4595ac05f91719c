"""Collective decoding: estimates without bias, by the exact law; a file decoded end to end."""

from __future__ import annotations

import csv
import itertools
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

import tacit
from tacit.account.shuffling import TwoWeights
from tacit.documents.staircase import staircase_shares
from tacit.errors import BadInputError
from tacit.matching.decoding import CellFeatures, LabelChannel, label_sums
from tacit.matching.pool import PoolSource, load_pool, write_pool
from tacit.noise.response import response_matrix

K, S, LABELS = 6, 2, 3
FEATURES = CellFeatures.of(np.random.default_rng(3).standard_normal((K, 4)).astype(np.float32))
NAMES = ("a", "b", "c")
RECORDS = [(0, (0, 1)), (0, (1, 4)), (2, (3, 5)), (1, (2, 0)), (2, (5, 4))]
"""Records: a label, and the cells near the text."""


def weights(epsilon: float, outcomes: int) -> TwoWeights:
    return TwoWeights(S, outcomes, *staircase_shares(epsilon, outcomes, S))


def law_of(kind: str, label: int, near: Sequence[int]) -> np.ndarray:
    """The exact probabilities (released labels, cells) of one record."""
    if kind == "joint":
        law = weights(2.0, LABELS * K)
        table = np.full((LABELS, K), law.w / law.total)
        table[label, list(near)] = law.t / law.total
        return table
    law = weights(2.0, K)
    cells = np.full(K, law.w / law.total)
    cells[list(near)] = law.t / law.total
    answers = np.eye(LABELS) if kind == "copied" else response_matrix(1.0, LABELS)
    return np.outer(answers[label], cells)


def channel(kind: str) -> LabelChannel:
    if kind == "joint":
        return LabelChannel.joint(LABELS, weights(2.0, LABELS * K))
    if kind == "copied":
        return LabelChannel.copied(LABELS, weights(2.0, K))
    answers = response_matrix(1.0, LABELS)
    return LabelChannel.response(LABELS, weights(2.0, K), answers[0, 0], answers[0, 1])


def near_mean(near: Sequence[int]) -> np.ndarray:
    return FEATURES.values[list(near)].mean(axis=0).astype(np.float64)


@pytest.mark.parametrize("kind", ["joint", "copied", "response"])
def test_estimates_have_no_bias(kind: str):
    """The expectation over every possible release of every record is what is estimated."""
    sums, counts = np.zeros((LABELS, 4)), np.zeros(LABELS)
    for label, near in RECORDS:
        table = law_of(kind, label, near)
        for released, cell in itertools.product(range(LABELS), range(K)):
            single = label_sums(np.array([cell]), np.array([released]), NAMES, channel(kind), FEATURES)
            sums += table[released, cell] * single.dense_sums
            counts += table[released, cell] * single.counts
    expected = np.zeros((LABELS, 4))
    for label, near in RECORDS:
        expected[label] += near_mean(near)
    np.testing.assert_allclose(sums, expected, atol=1e-5)
    np.testing.assert_allclose(counts, [2, 1, 2], atol=1e-9)


@pytest.mark.parametrize("kind", ["joint", "copied", "response"])
def test_the_covariance_is_that_of_the_law(kind: str):
    """Its expectation is the exact second moment: the covariance and the square of the mean, which is small."""
    for label in range(LABELS):
        estimated, second = np.zeros((4, 4)), np.zeros((4, 4))
        for true, near in RECORDS:
            table = law_of(kind, true, near)
            for released, cell in itertools.product(range(LABELS), range(K)):
                single = label_sums(np.array([cell]), np.array([released]), NAMES, channel(kind), FEATURES)
                estimated += table[released, cell] * single.covariance(label)
                second += table[released, cell] * np.outer(single.dense_sums[label], single.dense_sums[label])
                assert single.noise[label] == pytest.approx(np.trace(single.covariance(label)) / 4)
        np.testing.assert_allclose(estimated, second, rtol=1e-5)


def test_noise_of_counts_as_simulated():
    rng = np.random.default_rng(1)
    law = weights(2.0, LABELS * K)
    tables = np.stack([law_of("joint", label, near).ravel() for label, near in RECORDS * 40])
    estimates = []
    for _ in range(300):
        drawn = np.array([rng.choice(LABELS * K, p=table / table.sum()) for table in tables])
        made = label_sums(drawn % K, drawn // K, NAMES, LabelChannel.joint(LABELS, law), FEATURES)
        estimates.append(made.counts)
    np.testing.assert_allclose(np.mean(estimates, axis=0), [80, 40, 80], atol=4)
    np.testing.assert_allclose(np.std(estimates, axis=0).mean(), made.count_deviation, rtol=0.15)


def test_features_of_cells_are_centered_and_even():
    values = CellFeatures.of(np.random.default_rng(0).standard_normal((500, 8)).astype(np.float32) * np.arange(1, 9))
    np.testing.assert_allclose(values.values.sum(axis=0), 0.0, atol=1e-3)
    np.testing.assert_allclose(np.cov(values.values.T), np.eye(8) / 8, atol=1e-3)
    products = np.random.default_rng(1).standard_normal((3, 500)).astype(np.float32)
    for row, made in zip(products, values.of_texts(products, 20), strict=True):
        np.testing.assert_allclose(made, values.values[np.argsort(-row)[:20]].mean(axis=0), atol=1e-5)


# Files --------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pools") / "some.tacit"
    sentences = load_pool("general").sentences[::60]
    write_pool(path, "some", [PoolSource("a test", "CC0")], [(sentence, 0, "") for sentence in sentences])
    return path


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sentences about food and about travel, released with their labels."""
    folder = tmp_path_factory.mktemp("releases")
    food = ["we cooked rice and fish for dinner", "the soup needs more salt", "she ate bread with butter and cheese"]
    trips = ["the train to the airport leaves at noon", "we booked a hotel near the station", "the flight was late"]
    rows = [(text, label) for texts, label in ((food, "food"), (trips, "travel")) for text in texts] * 500
    with (folder / "in.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("text", "topic"), *rows])
    tacit.rewrite(
        str(folder / "in.csv"), "codebook", epsilon=4.0, columns="text", randomize="topic", labels=("food", "travel"),
        options={"codebook": "static"}, output=folder / "out.csv", shuffle=True,
    )  # fmt: skip
    return folder / "out.csv"


def test_a_release_is_decoded_with_its_own_promise(release: Path, pool: Path, tmp_path: Path):
    made = tacit.decode(release, output=tmp_path / "decoded.csv", pools=(str(pool),), rows=400, sample_seed=1)
    assert len(made) == 400
    assert set(made.columns) == {"text", "topic"}
    assert made.shares["food"] == pytest.approx(0.5, abs=0.1)
    card = json.loads((tmp_path / "decoded.csv.card.json").read_text())
    assert card["guarantee"]["epsilon"] == 4.0
    assert card["shuffled"]["model"] == "central"
    assert "Tatoeba" not in (tmp_path / "decoded.csv.ATTRIBUTION.txt").read_text()
    words = {
        "food": ("eat", "cook", "bread", "soup", "rice", "dinner"),
        "travel": ("train", "hotel", "flight", "station"),
    }
    hits = {
        (label, about): sum(any(word in text for word in words[about]) for text, topic in zip(
            made.texts, made.columns["topic"], strict=True) if topic == label)
        for label in words for about in words
    }  # fmt: skip
    assert hits["food", "food"] > 2 * hits["food", "travel"]
    assert hits["travel", "travel"] > 2 * hits["travel", "food"]


def test_what_cannot_be_decoded(release: Path, pool: Path, tmp_path: Path):
    def decode(path: Path, **options: object) -> None:
        tacit.decode(path, output=tmp_path / "x.csv", pools=(str(pool),), **options)

    with pytest.raises(BadInputError, match="there is no card"):
        decode(tmp_path / "nothing.csv")
    card = Path(f"{release}.card.json")
    changed = tmp_path / "changed.csv"
    changed.write_text(release.read_text() + "my own sentence,food\n")
    with pytest.raises(BadInputError, match="belongs to another file"):
        decode(changed, release_card=card)
    unnamed = json.loads(card.read_text())
    unnamed["release"]["digest"] = ""
    (tmp_path / "card.json").write_text(json.dumps(unnamed))
    with pytest.raises(BadInputError, match=r"row 3,001 holds no sentence"):
        decode(changed, release_card=tmp_path / "card.json")
    unnamed["guarantee"]["parameters"]["codebook digest"] = "0" * 32
    (tmp_path / "card.json").write_text(json.dumps(unnamed))
    with pytest.raises(BadInputError, match="another codebook"):
        decode(release, release_card=tmp_path / "card.json")
    with pytest.raises(BadInputError, match="which column"):
        decode(release, label_column="text")
    words = tacit.rewrite(["a text"], "santext", epsilon=2, output=tmp_path / "words.csv")
    with pytest.raises(BadInputError, match="not of a file"):
        decode(Path(str(words.output)))
    assert not (tmp_path / "x.csv").exists()
