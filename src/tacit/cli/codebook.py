"""`tacit codebook`: build the public part of the private codebook, and show what to expect of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from tacit.cli.engine import ADDRESS_HELP, ENGINE_HELP, LOCAL, WORKERS_HELP, cluster_of
from tacit.errors import BadInputError, BadParameterError

EPSILONS = (0.5, 1.0, 2.0, 3.0, 5.0, 8.0, 10.0, 15.0, 30.0)

app = typer.Typer(
    help="Codebooks of public sentences, from which 'tacit rewrite --mechanism codebook' takes what it releases.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)


@app.command()
def build(
    text: Annotated[
        str, typer.Argument(metavar="PUBLIC_TEXT", help="A file of public texts (txt, csv, tsv, jsonl …).")
    ],
    output: Annotated[Path, typer.Option("-o", "--output", help="The folder to write; it must not exist yet.")],
    public: Annotated[
        str | None,
        typer.Option("--public", metavar="NAME", help="Declare the text public, by the name it is known by."),
    ] = None,
    column: Annotated[
        str | None, typer.Option("-c", "--column", help="The column of texts; by default the only one, or 'text'.")
    ] = None,
    format: Annotated[str | None, typer.Option(help="Format of the file, if its name does not tell.")] = None,
    license: Annotated[str, typer.Option(help="License of the text, for the privacy card.")] = "",
    encoder: Annotated[
        str, typer.Option(help="Sentence encoder: 'minilm', a folder, or a name on the model hub.")
    ] = "minilm",
    sizes: Annotated[
        str | None, typer.Option(help="Numbers of cells, separated by commas; by default 16 to 16384 in steps of 4.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the (public) randomness.")] = 0,
    engine: Annotated[str, typer.Option(help=ENGINE_HELP)] = LOCAL,
    address: Annotated[str | None, typer.Option(help=ADDRESS_HELP)] = None,
    workers: Annotated[int, typer.Option("-w", "--workers", help=WORKERS_HELP)] = 1,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="No progress bar and no table.")] = False,
) -> None:
    """Build a codebook from public text: the closer its kind to the private texts, the better.

    Releases consist of these texts, word for word, so they must be public: say so with --public NAME. Never build a
    codebook from the texts you want to protect.

    Example: tacit codebook build questions.txt --public "my public questions" -o questions-codebook
    """
    if not (public or "").strip():
        raise BadInputError(
            "every release repeats sentences of the codebook word for word, so they must be public: if they are, say "
            "so with --public NAME; never build a codebook from the texts you want to protect"
        )
    if output.exists():
        raise BadInputError(f"'{output}' exists already: choose another folder, or remove it first")
    from tacit.documents.codebook_build import SIZES, build_codebook
    from tacit.documents.encoder import SentenceEncoder
    from tacit.guarantee import Provenance

    wanted = SIZES if sizes is None else _sizes(sizes)
    with cluster_of(engine, address, workers) as cluster, _progress(shown=not quiet) as update:
        vectors = None
        if cluster is None:
            texts = _texts(text, format, column)
        else:
            from tacit.jobs.cluster import encoded_texts

            texts, vectors = encoded_texts(cluster, text, column, format, encoder, update)
        made = build_codebook(
            texts,
            Provenance(str(public).strip(), str(public).strip()),
            SentenceEncoder(encoder),
            vectors=vectors,
            license=license,
            sizes=wanted,
            seed=seed,
            progress=update,
        )
    made.save(output)
    if not quiet:
        typer.echo(f"{len(made.sentences):,} sentences of {len(texts):,} texts -> {output}", err=True)
        typer.echo(_table(made))


@app.command()
def show(
    codebook: Annotated[str, typer.Argument(metavar="DIR", help="A codebook folder, or 'default'.")] = "default",
    epsilon: Annotated[
        list[float] | None, typer.Option("-e", "--epsilon", help="A budget to show; may be repeated.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a table.")] = False,
) -> None:
    """Where a codebook comes from, its sizes, and what to expect at each epsilon."""
    from tacit.documents.codebook_build import load_codebook

    found = load_codebook(codebook)
    budgets = tuple(epsilon) if epsilon else EPSILONS
    if as_json:
        import json

        typer.echo(json.dumps({**_facts(found), "expected": _expected(found, budgets)}, ensure_ascii=False))
        return
    for name, value in _facts(found).items():
        shown = ", ".join(f"{item:,}" for item in value) if isinstance(value, list) else value
        typer.echo(f"{name + ':':<12}{shown}")
    typer.echo(_table(found, budgets))


def _sizes(listed: str) -> tuple[int, ...]:
    try:
        return tuple(int(size) for size in listed.split(","))
    except ValueError:
        raise BadParameterError(f"--sizes takes whole numbers, such as --sizes 256,1024,4096, not '{listed}'") from None


def _texts(path: str, format: str | None, column: str | None) -> list[str]:
    from tacit.text.files import choose_columns, format_of, open_table, text_value

    with open_table(path, format_of(path, format)) as table:
        names = choose_columns(table.columns, () if column is None else (column,), ()).texts
        table.select(names)
        return [text_value(value, row, names[0]) for row, values in table.rows() for value in values]


def _facts(codebook: Any) -> dict[str, Any]:
    return {
        "name": codebook.provenance.name,
        "source": codebook.provenance.source,
        "license": codebook.license or "not stated",
        "encoder": codebook.encoder,
        "sentences": len(codebook.sentences),
        "held out": codebook.held_out,
        "sizes": codebook.sizes,
        "digest": codebook.digest,
    }


def _expected(codebook: Any, budgets: tuple[float, ...]) -> list[dict[str, Any]]:
    """What is chosen at each budget, and the similarity of one sentence. Chance: a sentence drawn without any text."""
    from tacit.documents.codebook import staircase_shares

    rows = []
    for budget in budgets:
        symbols = codebook.choose_symbols(budget)
        choice = codebook.choose(budget / symbols)
        level = codebook.level(choice.k)
        t, w = staircase_shares(budget / symbols, choice.k, choice.s)
        near = choice.s * t / (choice.s * t + (choice.k - choice.s) * w)
        rows.append(
            {
                "epsilon": budget,
                "k": choice.k,
                "s": choice.s,
                "symbols": symbols,
                "near": near,
                "similarity": choice.similarity,
                "chance": level.chance(),
            }
        )
    return rows


def _table(codebook: Any, budgets: tuple[float, ...] = EPSILONS) -> str:
    """Expected similarity of a held-out public text with what is released for it."""
    lines = [f"{'epsilon':>8} {'k':>7} {'s':>6} {'symbols':>8} {'near':>7} {'similarity':>11} {'chance':>7}"]
    for row in _expected(codebook, budgets):
        lines.append(
            f"{row['epsilon']:>8g} {row['k']:>7,} {row['s']:>6,} {row['symbols']:>8} {row['near']:>7.1%} "
            f"{row['similarity']:>11.3f} {row['chance']:>7.3f}"
        )
    return "\n".join(lines)


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
        task = bar.add_task("encoding", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
