"""Graph models from Python: nodes and links in memory."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from tacit.card import Card
from tacit.errors import BadInputError, BadParameterError
from tacit.guarantee import Unit, VoidReason
from tacit.jobs.graph import GraphConfig, predict, train
from tests.training.test_graphs import planted


def tables() -> tuple[list[dict[str, str]], list[dict[str, str]], list[str]]:
    graph = planted(nodes=150, inside=0.08, outside=0.005)
    rows = graph.features.toarray()
    truth = [graph.classes[i] for i in graph.labels]
    nodes = [
        {"node": name, "label": truth[i] if i < 120 else "", "features": " ".join(map(str, np.flatnonzero(rows[i])))}
        for i, name in enumerate(graph.names)
    ]
    links = [{"source": graph.names[a], "target": graph.names[b]} for a, b in graph.links]
    return nodes, links, truth


def test_a_graph_in_memory_is_learned_and_predicted(tmp_path: Path) -> None:
    nodes, links, truth = tables()
    trained = train(nodes, links, epsilon=100, output=tmp_path / "model", hold_out=0.2)
    assert trained.guarantee.unit is Unit.NODE
    assert (trained.trained, trained.held_out) == (96, 24)
    assert trained.scores is not None
    assert trained.scores.accuracy > 0.5
    labels = predict(tmp_path / "model", nodes)
    assert np.mean([a == b for a, b in zip(labels.labels, truth, strict=True)]) > 0.6
    assert labels.guarantee.epsilon == pytest.approx(100)
    predict(tmp_path / "model", nodes, output=tmp_path / "labels.csv")
    for place, job in (("labels.csv.card.json", "graph predict"), ("model/card.json", "graph train")):
        assert Card.from_json((tmp_path / place).read_text()).made_by["job"] == job


def test_errors_do_not_quote_data_in_memory(tmp_path: Path) -> None:
    nodes, links, _ = tables()
    with pytest.raises(BadInputError) as refused:
        train([*nodes, nodes[0]], links, epsilon=1, output=tmp_path / "m")
    assert refused.value.code == "node-twice"
    assert str(refused.value).startswith("row 1 of the data in memory")


def test_options_that_do_not_fit_together(tmp_path: Path) -> None:
    for options, code in (
        ({"features": "words", "feature_count": 5}, "feature-count-without-indices"),
        ({"vocabulary": "words.txt"}, "vocabulary-without-words"),
    ):
        with pytest.raises(BadParameterError) as refused:
            GraphConfig(nodes=[], links=[], epsilon=1, output=tmp_path, **options)
        assert refused.value.code == code


def test_a_convolution_without_noise_is_there_to_compare_with_and_promises_nothing(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    nodes, links, _ = tables()
    usual = {"method": "subgraphs", "subgraphs": 3, "passes": 40, "learning_rate": 0.05, "hold_out": 0.2}
    plain = train(nodes, links, epsilon=math.inf, output=tmp_path / "plain", **usual)
    again = train(nodes, links, epsilon=math.inf, output=tmp_path / "again", **usual)
    other = train(nodes, links, epsilon=math.inf, output=tmp_path / "other", start_seed=4, **usual)
    assert plain.scores is not None
    assert plain.scores.accuracy > 0.6
    assert plain.guarantee.void_reason is VoidReason.NO_NOISE
    assert not Card.from_json((tmp_path / "plain" / "card.json").read_text()).guarantee.is_private
    first, second, third = (np.load(result.folder / "weights.npz") for result in (plain, again, other))
    assert all(np.array_equal(first[name], second[name]) for name in first)
    assert not all(np.array_equal(first[name], third[name]) for name in first)
    assert not predict(tmp_path / "plain", nodes, links).guarantee.is_private
    for method in ("messages", "words"):
        with pytest.raises(BadParameterError) as refused:
            GraphConfig(nodes=nodes, links=links, output=tmp_path, method=method, epsilon=math.inf)
        assert refused.value.code == "epsilon-protects-nothing"


def test_the_published_network_has_a_card_that_promises_nothing_and_so_have_its_predictions(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    nodes, links, _ = tables()
    trained = train(
        nodes, links, epsilon=2, output=tmp_path / "model", method="as-published", subgraphs=2, passes=30,
        optimizer="sgd", hold_out=0.2,
    )  # fmt: skip
    card = Card.from_json((tmp_path / "model" / "card.json").read_text())
    assert trained.guarantee.void_reason is card.guarantee.void_reason is VoidReason.REFUTED
    assert card.guarantee.parameters["claimed epsilon"] == 2
    labels = predict(tmp_path / "model", nodes, links)
    assert labels.guarantee.void_reason is VoidReason.REFUTED
    with pytest.raises(BadInputError) as refused:
        predict(tmp_path / "model", nodes)
    assert refused.value.code == "links-missing"
    with pytest.raises(BadParameterError):
        GraphConfig(nodes=nodes, links=links, output=tmp_path, method="as-published", epsilon=math.inf)
