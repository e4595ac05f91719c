"""Linear heads on vectors: post-processing of released ones, exact sums of private ones."""

from __future__ import annotations

import itertools
import json
import math

import numpy as np
import pytest

import tacit
from tacit.card import Card
from tacit.embeddings.heads import (
    ADD_REMOVE_SENSITIVITY,
    REPLACE_SENSITIVITY,
    class_numbers,
    exact_class_sums,
    private_head,
    released_head,
)
from tacit.errors import BadInputError, BadParameterError
from tacit.guarantee import Adjacency
from tacit.noise.source import new_source

TOPICS = {"music": "play the new song number", "food": "book a table for dinner at place"}
ROWS = [{"text": f"{text} {n}", "topic": topic} for n in range(60) for topic, text in TOPICS.items()]


@pytest.fixture
def released(tmp_path):
    path = tmp_path / "v.jsonl"
    tacit.embed(ROWS, columns="text", keep="topic", epsilon=30, output=path, dimensions=8)
    return path


def weights(folder):
    with np.load(folder / "head.npz") as arrays:
        return arrays["weights"].tobytes(), arrays["offsets"].tobytes()


def test_the_head_is_a_function_of_the_released_file_alone(released, tmp_path):
    """Another text behind the same released vector: equal weights, bit by bit; the card is that of the vectors."""
    first = tacit.train("classify", vectors=str(released), label_column="topic", output=tmp_path / "a", test=ROWS)
    second = tacit.train("classify", vectors=str(released), label_column="topic", output=tmp_path / "b")
    assert weights(tmp_path / "a") == weights(tmp_path / "b")
    own = Card.from_json(released.with_name("v.jsonl.card.json").read_text()).guarantee
    assert (first.guarantee.epsilon, first.guarantee.delta) == (own.epsilon, own.delta)
    assert "post-processing" in second.guarantee.history[-1]
    assert "not covered" in first.guarantee.parameters["labels of training"]
    assert first.score > 0.9
    predicted = tacit.predict(tmp_path / "a", [{"text": "play the new song number 7", "topic": "music"}], score=True)
    assert predicted.predictions == ["music"]
    noisy = tacit.predict(tmp_path / "a", str(released), score=True)
    assert noisy.score > 0.5


def test_randomized_labels_are_said_to_be_covered(tmp_path):
    path = tmp_path / "v.jsonl"
    tacit.embed(
        ROWS, columns="text", epsilon=30, output=path, dimensions=8, randomize="topic", labels=("music", "food"),
        label_epsilon=3,
    )  # fmt: skip
    result = tacit.train("classify", vectors=str(path), label_column="topic", output=tmp_path / "m")
    assert "covered by the card" in result.guarantee.parameters["labels of training"]
    assert result.guarantee.epsilon == 33


def test_vectors_that_were_changed_or_have_no_card_are_refused(released, tmp_path):
    released.write_text(released.read_text().replace("food", "music", 1))
    with pytest.raises(BadInputError, match="changed"):
        tacit.train("classify", vectors=str(released), label_column="topic", output=tmp_path / "m")
    released.with_name("v.jsonl.card.json").unlink()
    with pytest.raises(BadParameterError, match="no card"):
        tacit.train("classify", vectors=str(released), label_column="topic", output=tmp_path / "m")
    with pytest.raises(BadParameterError, match="all labels"):
        tacit.train("classify", vectors=str(released), label_column="topic", output=tmp_path / "m", epsilon=1)
    with pytest.raises(BadParameterError, match="as data, or"):
        tacit.train("classify", output=tmp_path / "m", epsilon=1)
    result = tacit.train(
        "classify", vectors=str(released), label_column="topic", output=tmp_path / "m", epsilon=1, labels="music,food"
    )
    assert result.guarantee.adjacency is Adjacency.ADD_REMOVE
    assert result.guarantee.epsilon == 1
    with pytest.raises(BadInputError, match="no card describes"):
        tacit.predict(tmp_path / "m", ["a text"])
    assert json.loads((tmp_path / "m" / "vectors.json").read_text())["labels"] == ["music", "food"]


def test_a_column_of_lists_that_was_kept_is_not_taken_for_the_released_one(tmp_path):
    """The card speaks of one column; another one with lists of numbers, even if it stands first, is private."""
    rows = [{"secret": [float(n % 2)] * 8, **row} for n, row in enumerate(ROWS)]
    path = tmp_path / "v.jsonl"
    tacit.embed(rows, columns="text", keep=["secret", "topic"], epsilon=1, output=path, dimensions=8)
    tacit.train("classify", vectors=str(path), label_column="topic", output=tmp_path / "a")
    plain = tmp_path / "plain.jsonl"
    plain.write_text(path.read_text())
    vectors = np.array([json.loads(line)["text"] for line in path.read_text().splitlines()], dtype=np.float32)
    labels = class_numbers([row["topic"] for row in ROWS], ("food", "music"))
    sigma = Card.from_json(path.with_name("v.jsonl.card.json").read_text()).guarantee.parameters["noise scale"]
    expected = released_head(vectors, labels, ("food", "music"), sigma)
    assert weights(tmp_path / "a")[0] == expected.weights.tobytes()


def test_a_label_that_is_listed_twice_is_refused(released, tmp_path):
    """It would be a class without rows, whose mean is no number."""
    with pytest.raises(BadParameterError, match="listed twice"):
        tacit.train(
            "classify", vectors=str(released), label_column="topic", output=tmp_path / "m", labels="music,food,food"
        )


def test_options_without_a_meaning_are_refused(released, tmp_path):
    for options in ({"trials": 3}, {"strategy": "full"}, {"epsilon": math.inf}):
        with pytest.raises(BadParameterError):
            tacit.train("classify", vectors=str(released), label_column="topic", output=tmp_path / "m", **options)
    assert not (tmp_path / "m").exists()


def test_sums_move_by_at_most_their_sensitivity_and_reach_it():
    """All data sets of three records from a grid with extreme vectors, with one more, and with one exchanged."""
    grid = [np.array(each) for each in itertools.product((-5.0, 0.0, 5.0), repeat=2)]
    rest = (np.array([[0.3, 0.1], [4.0, -2.0], [0.0, 0.0]]), np.array([0, 1, 0]))
    base = exact_class_sums(rest[0], rest[1], 2)
    added, replaced = 0.0, 0.0
    sums = {}
    for (number, vector), label in itertools.product(enumerate(grid), (0, 1)):
        more = exact_class_sums(np.vstack([rest[0], vector]), np.append(rest[1], label), 2)
        added = max(added, float(np.linalg.norm(more - base)))
        sums[number, label] = more
    for first, second in itertools.combinations(sums.values(), 2):
        replaced = max(replaced, float(np.linalg.norm(first - second)))
    assert 0.999 * ADD_REMOVE_SENSITIVITY < added <= ADD_REMOVE_SENSITIVITY
    assert 0.999 * REPLACE_SENSITIVITY < replaced <= REPLACE_SENSITIVITY


def test_sums_do_not_depend_on_the_order_of_rows():
    generator = np.random.default_rng(2)
    vectors, labels = generator.standard_normal((500, 7)), generator.integers(0, 3, 500)
    order = generator.permutation(500)
    assert (exact_class_sums(vectors, labels, 3) == exact_class_sums(vectors[order], labels[order], 3)).all()


def test_heads_find_classes_under_noise():
    generator = np.random.default_rng(0)
    names = ("a", "b", "c")
    means = np.eye(3, 12)
    labels = generator.integers(0, 3, 6_000)
    clean = means[labels]
    head = released_head((clean + generator.normal(0, 1.0, clean.shape)).astype(np.float32), labels, names, 1.0)
    assert head.predict(means) == list(names)
    private, sigma = private_head(
        clean, labels, names, epsilon=1.0, delta=1e-6, adjacency=Adjacency.ADD_REMOVE, source=new_source(1)
    )
    assert private.predict(means) == list(names)
    assert sigma > math.sqrt(2)
    assert class_numbers(["b", "a"], names).tolist() == [1, 0]
