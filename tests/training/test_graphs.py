"""Reading graphs, features by public rules, and the graph convolution."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from tacit.errors import BadInputError, BadParameterError
from tacit.training.graphs.graph import Features, Graph, feature_rows, read_graph, unit_rows

NODES = "node\tlabel\tsplit\tfeatures\na\tx\ttrain\t0 2\nb\ty\ttrain\t1\nc\t-1\ttest\t\n"
LINKS = "source\ttarget\na\tb\nb\tc\n"
INDICES = Features("indices", "features")


def write(tmp_path, nodes=NODES, links=LINKS):
    for name, text in (("nodes.tsv", nodes), ("links.tsv", links)):
        (tmp_path / name).write_text(text)
    return tmp_path / "nodes.tsv", tmp_path / "links.tsv"


def test_a_graph_is_read_with_rows_of_length_one_and_nodes_without_labels(tmp_path):
    graph = read_graph(*write(tmp_path), INDICES, split_column="split")
    assert graph.names == ("a", "b", "c")
    assert graph.classes == ("x", "y")
    assert graph.labels.tolist() == [0, 1, -1]
    assert graph.links.tolist() == [[0, 1], [1, 2]]
    np.testing.assert_allclose(graph.features.toarray(), [[0.5**0.5, 0, 0.5**0.5], [0, 1, 0], [0, 0, 0]])
    assert graph.in_split("train").tolist() == [0, 1]


@pytest.mark.parametrize(
    ("nodes", "links", "message"),
    [
        (NODES, "source\ttarget\na\tz\n", "row 1 of .* does not have"),
        (NODES, "source\ttarget\na\tb\nc\tc\n", "row 2 .* with itself"),
        (NODES, "source\ttarget\na\tb\nb\ta\n", "row 2 .* links already"),
        (NODES.replace("\ty\t", "\tx\t"), LINKS, "the same label"),
        (NODES.replace("\ty\t", "\t\t").replace("\tx\t", "\t\t"), LINKS, "no node has a label"),
        (NODES.replace("b\ty", "a\ty"), LINKS, "comes again"),
        (NODES.replace("0 2", "zero"), LINKS, "not whole numbers"),
        (NODES.replace("0 2", "0 -2"), LINKS, "negative"),
    ],
)
def test_what_cannot_be_used_is_said_without_quoting_the_data(tmp_path, nodes, links, message):
    with pytest.raises(BadInputError, match=message) as error:
        read_graph(*write(tmp_path, nodes, links), INDICES)
    assert "zero" not in str(error.value)


def test_clean_drops_loops_and_repeated_links(tmp_path):
    paths = write(tmp_path, links="source\ttarget\na\tb\nb\ta\nc\tc\nb\tc\n")
    assert read_graph(*paths, INDICES, clean=True).links.tolist() == [[0, 1], [1, 2]]


def test_words_of_a_text_are_looked_up_or_hashed_and_nothing_is_learned_from_other_texts():
    vocabulary = ("graph", "node")
    rows, made = feature_rows(["A graph, a NODE!", "unknown"], Features("words", "text", vocabulary=vocabulary), None)
    assert made.size == 2
    np.testing.assert_allclose(rows.toarray(), [[0.5**0.5, 0.5**0.5], [0, 0]])
    hashed = Features("words", "text", size=64)
    alone, _ = feature_rows(["one two"], hashed, None)
    together, _ = feature_rows(["three", "one two", "two"], hashed, None)
    np.testing.assert_array_equal(alone.toarray()[0], together.toarray()[1])


def test_vectors_of_an_encoder_are_brought_to_length_one():
    rows, made = feature_rows(["a", "b"], Features("vectors", "text"), lambda texts: np.array([[3.0, 4.0], [0.0, 2.0]]))
    np.testing.assert_allclose(rows.toarray(), [[0.6, 0.8], [0, 1]])
    assert made.size == 2
    with pytest.raises(BadParameterError, match="encoder"):
        feature_rows(["a"], Features("vectors", "text"), None)


def test_a_drawn_split_covers_all_labeled_nodes_once_and_repeats_with_its_seed(tmp_path):
    graph = planted(nodes=100)
    parts = graph.drawn_split((0.75, 0.10), 3)
    assert [len(part) for part in parts] == [75, 10, 15]
    assert sorted(np.concatenate(parts).tolist()) == list(range(100))
    assert all((a == b).all() for a, b in zip(parts, graph.drawn_split((0.75, 0.10), 3), strict=True))


def test_real_graphs_have_their_known_sizes(data_folder):
    graph = read_graph(
        data_folder / "citeseer" / "nodes.tsv", data_folder / "citeseer" / "edges.tsv", INDICES, split_column="split"
    )
    assert (graph.nodes, len(graph.links), len(graph.classes), graph.features.shape[1]) == (3327, 4552, 6, 3703)
    assert graph.nodes - len(graph.labeled) == 15
    assert len(graph.in_split("train")) == 120
    assert len(graph.in_split("train", "none")) == 1812  # 1,827 in the thesis, which counts the 15 without a label


# The graph convolution ------------------------------------------------------------------------------------------------


def planted(nodes=120, classes=3, words=30, inside=0.10, outside=0.01, seed=0):
    """Nodes of a class share words and links."""
    generator = np.random.default_rng(seed)
    labels = np.arange(nodes) % classes
    own = labels[:, None] == np.arange(words) % classes
    rows = sparse.csr_matrix((generator.random((nodes, words)) < np.where(own, 0.3, 0.1)).astype(float))
    chance = np.where(labels[:, None] == labels, inside, outside)
    links = np.argwhere(np.triu(generator.random((nodes, nodes)) < chance, 1))
    names = tuple(f"n{i}" for i in range(nodes))
    made_by = Features("indices", "features", words)
    return Graph(names, unit_rows(rows), labels.astype(np.int64), tuple("abc"[:classes]), links, made_by=made_by)


def test_the_smoothing_of_five_nodes_by_hand():
    pytest.importorskip("torch")
    from tacit.training.graphs.gcn import smoothing_matrix

    # A path 0-1-2 and a pair 3-4: degrees with the loop are 2, 3, 2 and 2, 2.
    matrix = smoothing_matrix(5, np.array([[0, 1], [1, 2], [3, 4]])).to_dense().numpy()
    six = 6.0**-0.5
    expected = [
        [1 / 2, six, 0, 0, 0],
        [six, 1 / 3, six, 0, 0],
        [0, six, 1 / 2, 0, 0],
        [0, 0, 0, 1 / 2, 1 / 2],
        [0, 0, 0, 1 / 2, 1 / 2],
    ]
    np.testing.assert_allclose(matrix, expected, atol=1e-7)


def test_torch_geometric_loads_the_weights_and_gives_the_same_logits():
    torch = pytest.importorskip("torch")
    geometric = pytest.importorskip("torch_geometric.nn")
    from tacit.training.graphs.gcn import GCN, predict

    graph = planted()
    torch.manual_seed(0)
    model = GCN(30, 3)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter)
    theirs = torch.nn.ModuleDict({"conv1": geometric.GCNConv(30, 32), "conv2": geometric.GCNConv(32, 3)})
    theirs.load_state_dict(model.state_dict())
    data = graph.to_torch_geometric()
    hidden = torch.relu(theirs["conv1"](data.x, data.edge_index))
    expected = theirs["conv2"](hidden, data.edge_index).softmax(1).detach().numpy()
    np.testing.assert_allclose(predict(model, graph), expected, atol=1e-5)
    again = Graph.from_torch_geometric(data)
    assert again.links.tolist() == graph.links.tolist()


def test_a_padded_batch_gives_each_subgraph_what_it_gets_alone():
    torch = pytest.importorskip("torch")
    from tacit.training.gradients import check, choose
    from tacit.training.graphs.gcn import GCN, collate_subgraphs, predict, probes, subgraph_loss

    graph = planted()
    torch.manual_seed(0)
    model = GCN(30, 3)
    groups = [np.arange(0, 40), np.arange(40, 45), np.arange(45, 120)]
    counted = np.ones(120, dtype=bool)
    engine, result = choose(model, subgraph_loss, probes(30, 3))
    assert result.norm_deviation < 1e-6
    assert check(engine, model, subgraph_loss, [collate_subgraphs(graph, groups, counted)]).passed
    model.eval()
    batch = collate_subgraphs(graph, groups, counted)
    with torch.no_grad():
        together = model(batch["features"], batch["smoothing"]).softmax(2).numpy()
    keep = np.isin(graph.links, groups[0]).all(axis=1)
    alone = Graph(graph.names[:40], graph.features[:40], graph.labels[:40], graph.classes, graph.links[keep])
    np.testing.assert_allclose(together[0, :40], predict(model, alone), atol=1e-6)
