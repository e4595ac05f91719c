"""`tacit graph`: labels for the nodes of a private graph, such as papers that cite each other or users who know each
other."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from tacit.errors import BadInputError, BadParameterError
from tacit.rounding import rounded_up

app = typer.Typer(
    help="Private graph models: train on nodes, their words and their links so that no single node can be recognized.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)

METHODS = ("messages", "words", "subgraphs")

Nodes = Annotated[
    str, typer.Argument(metavar="NODES", help="One row per node: its name, its words, its label (csv, tsv, jsonl …).")
]
FeatureKind = Annotated[
    str,
    typer.Option(
        help="indices: numbers of the words a node has; words: a column of texts, bag of words; "
        "minilm: a column of texts, vectors of a public encoder."
    ),
]


@app.command()
def train(
    nodes: Nodes,
    links: Annotated[
        str, typer.Argument(metavar="LINKS", help="One row per link, columns source and target, each link once.")
    ],
    output: Annotated[Path, typer.Option("-o", "--output", help="The folder for the model and its privacy card.")],
    epsilon: Annotated[float, typer.Option(help="The privacy budget of one node.")],
    method: Annotated[
        str,
        typer.Option(
            help="messages: noisy messages between nodes; words: no links at all; "
            "subgraphs: a graph convolution on random subgraphs."
        ),
    ] = "messages",
    features: FeatureKind = "indices",
    feature_column: Annotated[
        str | None, typer.Option(help="The column of words; by default 'features', or 'text' for texts.")
    ] = None,
    feature_count: Annotated[
        int | None,
        typer.Option(help="indices: how many words there are, known beforehand; else the largest index is visible."),
    ] = None,
    vocabulary: Annotated[
        Path | None, typer.Option(help="A public list of words, one per line; without it words are hashed.")
    ] = None,
    name_column: Annotated[str, typer.Option(help="The column of the names of the nodes.")] = "node",
    label_column: Annotated[str, typer.Option(help="The column of labels; empty or -1: a node to predict.")] = "label",
    split_column: Annotated[
        str | None, typer.Option(help="A column that says which nodes train; else all that have a label.")
    ] = None,
    train_on: Annotated[str, typer.Option(help="Its values that mean training, separated by commas.")] = "train",
    hold_out: Annotated[
        float, typer.Option(help="Share of the labeled nodes kept from training (drawn at random) to score on.")
    ] = 0.0,
    clean_links: Annotated[
        bool, typer.Option("--clean-links", help="Drop self-loops and repeated links instead of refusing them.")
    ] = False,
    delta: Annotated[
        str, typer.Option(help="What every probability may grow by; 'auto': well below 1 / nodes.")
    ] = "auto",
    replace_one: Annotated[
        bool, typer.Option("--replace-one", help="messages, words: hide what a node is, not only whether it is there.")
    ] = False,
    use_links: Annotated[int, typer.Option(help="messages: links of a node that are used, at most.")] = 2,
    subgraphs: Annotated[int, typer.Option(help="subgraphs: how many.")] = 10,
    passes: Annotated[int, typer.Option(help="subgraphs: passes over all of them.")] = 10,
    reading: Annotated[
        str, typer.Option(help="subgraphs: what is hidden, a 'node' (sensitivity 2 C) or a whole 'subgraph' (C).")
    ] = "node",
    sampling: Annotated[
        str, typer.Option(help="subgraphs: 'poisson' (secret random ones) or 'visits' (each once per pass).")
    ] = "poisson",
    trials: Annotated[
        int, typer.Option(help="How many runs on this graph you compare before keeping one: their budgets add up.")
    ] = 1,
    seed: Annotated[int | None, typer.Option(help="Test seed: repeatable, and without any guarantee.")] = None,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="No progress bar and no card.")] = False,
) -> None:
    """Learn to label nodes from some that have a label.

    Which nodes have a label, how many nodes there are and their names count as public; words, labels and links are
    private. Example:

    tacit graph train nodes.tsv edges.tsv --epsilon 8 --hold-out 0.15 -o model
    """
    from tacit.guarantee import check_epsilon
    from tacit.noise.source import StreamKey
    from tacit.training.graphs.graph import read_graph
    from tacit.training.graphs.saved import check_folder

    check_epsilon(epsilon)
    if method not in METHODS:
        raise BadParameterError(f"there is no method '{method}': choose {', '.join(METHODS)}")
    if not 0.0 <= hold_out < 1.0:
        raise BadParameterError(f"--hold-out is a share between 0 and 1, not {hold_out:g}")
    if trials < 1:
        raise BadParameterError(f"--trials counts runs, so it is at least 1, not {trials}")
    check_folder(output)
    wanted, encode = _features(features, feature_column, vocabulary, feature_count)
    columns = {"name": name_column, "label": label_column, "encoder": features}
    graph = read_graph(
        nodes,
        links,
        wanted,
        name_column=name_column,
        label_column=label_column,
        split_column=split_column,
        clean=clean_links,
        encode=encode,
    )
    training = graph.in_split(*train_on.split(",")) if split_column else graph.labeled
    held = training[:0]
    if hold_out:
        training, held = _held_out(training, hold_out)
    key = StreamKey.from_os() if seed is None else StreamKey.from_test_seed(seed)
    promise = {"secure": key.secure, "trials": trials, "provenance": _provenance(features, vocabulary)}
    promise["not_covered"] = wanted.not_covered
    options: dict[str, Any] = {"epsilon": epsilon, "nodes": graph.nodes, "delta": _delta(delta, graph.nodes, trials)}
    if method == "subgraphs":
        options |= {"subgraphs": subgraphs, "passes": passes, "reading": reading, "sampling": sampling}
        guarantee, predicted = _train_subgraphs(graph, training, options, key, promise, output, columns, quiet)
    else:
        options |= {"links": use_links if method == "messages" else 0, "adjacency": _adjacency(replace_one)}
        guarantee, predicted = _train_nodes(graph, training, options, key, promise, output, columns, quiet)
    if not quiet:
        _report(graph, training, held, predicted, guarantee)
    from tacit.card import Card
    from tacit.cli.terminal import warn_if_nominal

    warn_if_nominal(Card(guarantee))


@app.command()
def predict(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A folder made by 'tacit graph train'.")],
    nodes: Nodes,
    links: Annotated[
        str, typer.Argument(metavar="[LINKS]", help="The links, for models of the method 'subgraphs'.")
    ] = "",
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="The file to write: node, label (csv, tsv, jsonl …).")
    ] = None,
    clean_links: Annotated[
        bool, typer.Option("--clean-links", help="Drop self-loops and repeated links instead of refusing them.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace the output if it exists.")] = False,
) -> None:
    """Label the nodes of a file with a trained model, and write a privacy card for the predictions beside them.

    Models of the method 'messages' know what each node of the training graph received, so links are not read again;
    new nodes are labeled from their words alone.

    Example: tacit graph predict model nodes.tsv -o labels.csv
    """
    from tacit.card import Card
    from tacit.text.files import write_columns
    from tacit.training.graphs.graph import read_graph
    from tacit.training.graphs.saved import load_saved, predict_saved, prediction_guarantee

    saved = load_saved(model)
    if output is None:
        raise BadParameterError("say where to write the labels: -o labels.csv")
    card = output.with_name(output.name + ".card.json")
    for path in (output, card):
        if path.exists() and not force:
            raise BadInputError(f"{path} exists: give another name, or --force to replace it")
    if saved.needs_links and not links:
        raise BadInputError("this model reads the links of the graph when it predicts: give them after the nodes")
    _, encode = _features(saved.columns["encoder"], saved.features.column, None)
    graph = read_graph(
        nodes,
        links,
        saved.features,
        name_column=saved.columns["name"],
        label_column=saved.columns["label"],
        clean=clean_links,
        encode=encode,
        classes=saved.classes,
    )
    labels = predict_saved(saved, graph)
    write_columns(output, {"node": list(graph.names), "label": labels}, force=force)
    card.write_text(Card(prediction_guarantee(saved)).to_json(), encoding="utf-8")
    typer.echo(f"{len(labels):,} nodes -> {output}, card in {card}", err=True)


# Parts ----------------------------------------------------------------------------------------------------------------


def _features(
    kind: str, column: str | None, vocabulary: Path | None, count: int | None = None
) -> tuple[Any, Callable[[Any], Any] | None]:
    from tacit.training.graphs.graph import Features

    if count is not None and kind != "indices":
        raise BadParameterError("--feature-count belongs to --features indices")
    if count is not None and count < 1:
        raise BadParameterError(f"--feature-count is at least 1, not {count}")
    if vocabulary is not None and kind != "words":
        raise BadParameterError("a vocabulary belongs to --features words")
    if kind == "minilm":
        import numpy as np

        from tacit.documents.encoder import SentenceEncoder

        # Each text alone: the last bits of a node's vector must not tell of the texts of other nodes.
        encoder = SentenceEncoder("minilm")
        return Features("vectors", column or "text"), lambda texts: np.stack(list(map(encoder.encode_alone, texts)))
    if kind not in ("indices", "words"):
        raise BadParameterError(f"there are no features '{kind}': choose indices, words or minilm")
    words: tuple[str, ...] = ()
    if vocabulary is not None:
        try:
            lines = vocabulary.read_text(encoding="utf-8").split("\n")
        except (OSError, UnicodeDecodeError) as error:
            raise BadInputError(
                f"the vocabulary {vocabulary} cannot be read: give a text file, a word per line"
            ) from error
        words = tuple(dict.fromkeys(line.strip().lower() for line in lines if line.strip()))
    return Features(kind, column or ("features" if kind == "indices" else "text"), count or 0, words), None


def _provenance(kind: str, vocabulary: Path | None) -> tuple[Any, ...]:
    from tacit.guarantee import Provenance

    if kind == "minilm":
        return (Provenance("text encoder", "all-MiniLM-L6-v2, assumed to be trained on public text"),)
    if vocabulary is not None:
        return (Provenance("vocabulary", f"{vocabulary.name}, given as public"),)
    return (
        (Provenance("words", "numbered in the nodes file, assumed to be a public list"),) if kind == "indices" else ()
    )


def _held_out(training: Any, share: float) -> tuple[Any, Any]:
    from tacit.noise.source import public_generator

    order = public_generator(0).permutation(training)
    held = round(share * len(order))
    if not 0 < held < len(order):
        raise BadInputError(
            f"--hold-out {share:g} of {len(order):,} labeled nodes leaves nothing to train or to score on"
        )
    return order[held:], order[:held]


def _train_nodes(
    graph: Any, training: Any, options: Any, key: Any, promise: Any, output: Path, columns: Any, quiet: bool
) -> Any:
    from tacit.training.graphs.messages import NodePlan, node_guarantee, train_messages
    from tacit.training.graphs.saved import save_nodes

    plan = NodePlan.calibrated(**options)
    guarantee = node_guarantee(plan, **promise)
    with _progress(shown=not quiet) as update:
        model = train_messages(graph, training, plan, key, progress=update)
    save_nodes(output, graph, model, guarantee, "messages" if plan.links else "words", columns)
    return guarantee, model.logits(graph.features, model.evidence).argmax(1)


def _train_subgraphs(
    graph: Any, training: Any, options: Any, key: Any, promise: Any, output: Path, columns: Any, quiet: bool
) -> Any:
    from tacit.cli.terminal import error_console
    from tacit.errors import require

    require("torch", extra="training", purpose="a graph convolution")
    from tacit.training.graphs.gcn import predict as predict_all
    from tacit.training.graphs.saved import save_network
    from tacit.training.graphs.subgraphs import (
        SubgraphSettings,
        plan_subgraphs,
        side_by_side,
        split_nodes,
        subgraph_guarantee,
        train_subgraphs,
    )

    split_nodes(training, options["subgraphs"])
    plan = plan_subgraphs(**options)
    settings = SubgraphSettings()
    guarantee = subgraph_guarantee(plan, settings, **promise)
    if not quiet:
        console = error_console()
        console.print(
            f"noise {plan.multiplier:.3f} x the bound, delta {rounded_up(plan.delta)}; epsilon of this noise:"
        )
        for (reading, sampling), value in side_by_side(plan).items():
            mark = "  <- this run" if (reading, sampling) == (options["reading"], options["sampling"]) else ""
            console.print(f"  one {reading:<9} {sampling:<8} {rounded_up(value, 4):>8}{mark}")
    with _progress(shown=not quiet) as update:
        network, _ = train_subgraphs(graph, training, plan, key, settings, update)
    save_network(output, graph, network, guarantee, columns)
    return guarantee, predict_all(network, graph).argmax(1)


def _report(graph: Any, training: Any, held: Any, predicted: Any, guarantee: Any) -> None:
    from tacit.card import Card
    from tacit.cli.terminal import error_console, output_console
    from tacit.evaluate.collapse import prediction_flags
    from tacit.evaluate.scores import classification_scores

    if not len(held):
        error_console().print(
            "No score yet: --hold-out 0.2 keeps a fifth of the labeled nodes from training and scores on it; or write "
            "labels with 'tacit graph predict' and compare them where the true ones are not private."
        )
    else:
        truth, found = ([graph.classes[i] for i in labels[held]] for labels in (graph.labels, predicted))
        scores = classification_scores(truth, found)
        console = error_console()
        console.print(
            f"{len(training):,} nodes trained, {len(held):,} held out: macro-F1 {scores.macro_f1:.3f}, accuracy "
            f"{scores.accuracy:.3f} (a score of private nodes: not covered by the guarantee)"
        )
        for flag in prediction_flags(scores):
            console.print(f"note: {flag.sentence}")
    Card(guarantee).print_to(output_console())


def _adjacency(replace_one: bool) -> Any:
    from tacit.guarantee import Adjacency

    return Adjacency.REPLACE_ONE if replace_one else Adjacency.ADD_REMOVE


def _delta(given: str, nodes: int, trials: int) -> float:
    """The delta of one run; 'auto' keeps that of all trials together below one over the nodes."""
    from tacit.training.plan import automatic_delta

    if given == "auto":
        return automatic_delta(nodes, trials)
    try:
        return float(given)
    except ValueError:
        raise BadParameterError(f"delta is a number or 'auto', not '{given}'") from None


@contextmanager
def _progress(*, shown: bool) -> Iterator[Any]:
    """A bar on a terminal; silent anywhere else."""
    from rich.progress import Progress

    from tacit.cli.terminal import error_console

    console = error_console()
    if not (shown and console.is_terminal):
        yield None
        return
    with Progress(console=console, transient=True) as bar:
        task = bar.add_task("training", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
