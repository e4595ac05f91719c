"""`tacit vocabulary`: words and tokenizers learned from private text, with their privacy card."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from tacit.errors import BadInputError, BadParameterError

app = typer.Typer(
    help="Learn a vocabulary from private text: noisy word counts, and a tokenizer made from them.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)


@app.command()
def build(
    data: Annotated[
        str, typer.Argument(metavar="DATA", help="The private texts: csv, tsv, jsonl, parquet, txt (also .gz).")
    ],
    output: Annotated[Path, typer.Option("-o", "--output", help="The folder to write; it must not exist yet.")],
    epsilon: Annotated[float, typer.Option("-e", "--epsilon", help="The privacy budget of one record or user.")],
    column: Annotated[str, typer.Option("-c", "--column", help="The column of texts.")] = "text",
    delta: Annotated[
        str, typer.Option(help="What every probability may grow by; 'auto': well below 1 / records.")
    ] = "auto",
    kind: Annotated[
        str, typer.Option(help="Tokenizer: wordpiece (BERT), bpe (GPT-2), unigram; 'words' makes none.")
    ] = "wordpiece",
    size: Annotated[int, typer.Option(help="Most pieces of the tokenizer.")] = 8000,
    user_column: Annotated[
        str | None, typer.Option(help="The column that says who wrote a row: the promise is then made to users.")
    ] = None,
    most_words: Annotated[
        int, typer.Option(help="Different words of a record, or user, that count; others are left out.")
    ] = 100,
    weighting: Annotated[
        str | None,
        typer.Option(help="What a word of a record counts: 'one', or 'shared' (less the more words it has; default)."),
    ] = None,
    noise: Annotated[str, typer.Option(help="gaussian or laplace (which goes with weighting 'one').")] = "gaussian",
    public_words: Annotated[
        Path | None,
        typer.Option(help="A public word list, one per line: only these are counted, and all of them are shown."),
    ] = None,
    public: Annotated[
        str | None, typer.Option("--public", metavar="NAME", help="Declare the word list public, by its name.")
    ] = None,
    cased: Annotated[bool, typer.Option("--cased", help="Keep capitals; by default all words are lower case.")] = False,
    replace_one: Annotated[
        bool, typer.Option("--replace-one", help="Neighbors differ by replacing a record (twice the sensitivity).")
    ] = False,
    format: Annotated[str | None, typer.Option(help="Format of the file, if its name does not tell.")] = None,
    seed: Annotated[int | None, typer.Option(help="Test seed: repeatable, and without any guarantee.")] = None,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="No card and no summary.")] = False,
) -> None:
    """Learn the words of private texts, and a tokenizer from them.

    The folder holds words with noisy counts (words.tsv), the card (vocabulary-card.json) and a tokenizer that
    transformers loads. Each call spends its budget anew.

    Example: tacit vocabulary build reviews.csv --epsilon 1 --size 4000 -o vocabulary
    """
    if output.exists():
        raise BadInputError(f"'{output}' exists already: choose another folder, or remove it first")
    from tacit.card import Card
    from tacit.cli.terminal import error_console, output_console, warn_if_nominal
    from tacit.guarantee import Adjacency
    from tacit.text.files import read_columns
    from tacit.training.vocabulary import Contribution, build_tokenizer, private_histogram, save_vocabulary
    from tacit.training.vocabulary.tokenizer import KINDS

    if kind not in (*KINDS, "words"):
        raise BadParameterError(f"there is no tokenizer '{kind}': choose one of {', '.join(KINDS)}, or 'words'")
    listed = None if public_words is None else _words(public_words, public)
    contribution = Contribution(most_words, weighting or ("one" if noise == "laplace" else "shared"))
    names = [column] if user_column is None else [column, user_column]
    console = error_console()
    with console.status("counting words") if console.is_terminal and not quiet else _nothing():
        columns = read_columns(data, names, format=format)
        histogram = private_histogram(
            columns[column],
            epsilon=epsilon,
            delta=_delta(delta),
            users=None if user_column is None else columns[user_column],
            contribution=contribution,
            kind=noise,
            public_words=listed,
            public_name=(public or "").strip(),
            adjacency=Adjacency.REPLACE_ONE if replace_one else Adjacency.ADD_REMOVE,
            lowercase=not cased,
            seed=seed,
        )
        tokenizer = None if kind == "words" else build_tokenizer(histogram, kind=kind, size=size)
    save_vocabulary(output, histogram, tokenizer)
    card = Card(histogram.guarantee)
    if not quiet:
        made = "" if tokenizer is None else f", {len(tokenizer):,} pieces ({kind})"
        console.print(f"{len(histogram):,} words{made} -> {output}")
        card.print_to(output_console())
    warn_if_nominal(card)


@app.command()
def show(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A folder made by 'tacit vocabulary build'.")],
    words: Annotated[int, typer.Option("-n", "--words", help="How many of the most frequent words.")] = 20,
) -> None:
    """The most frequent words of a private vocabulary with their noisy counts, and its card."""
    from tacit.card import Card
    from tacit.cli.terminal import output_console
    from tacit.training.vocabulary import load_vocabulary

    found = load_vocabulary(folder)
    for word, count in zip(found.words[:words], found.counts[:words].tolist(), strict=True):
        typer.echo(f"{count:>12,.1f}  {word}")
    Card(found.guarantee).print_to(output_console())


def _words(path: Path, name: str | None) -> list[str]:
    if not (name or "").strip():
        raise BadInputError(
            "all words of the list are shown, so it must be public: if it is, say so with --public NAME; without a "
            "list the words are found privately"
        )
    try:
        return path.read_text(encoding="utf-8").split()
    except (OSError, UnicodeDecodeError) as error:
        raise BadInputError(f"'{path}' cannot be read as UTF-8 text, one word per line: check the name") from error


def _delta(given: str) -> float | None:
    if given == "auto":
        return None
    try:
        return float(given)
    except ValueError:
        raise BadParameterError(f"delta is a number or 'auto', not '{given}'") from None


def _nothing() -> Any:
    from contextlib import nullcontext

    return nullcontext()
