"""`tacit audit text`: attack a released file with the original beside it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tacit.cli.reports import FailOnOption, deliver, progress_bars
from tacit.errors import BadInputError, BadParameterError

if TYPE_CHECKING:
    from tacit.audit.text.release import MadeBy


def text(
    original: Annotated[str, typer.Argument(metavar="ORIGINAL", help="The private file (txt, csv, tsv, jsonl …).")],
    private: Annotated[str, typer.Argument(metavar="PRIVATE", help="The file that was made from it.")],
    column: Annotated[
        str | None, typer.Option("-c", "--column", help="The column of texts; by default the only one, or 'text'.")
    ] = None,
    private_column: Annotated[
        str | None, typer.Option("--private-column", help="The column of texts in PRIVATE, if it is called otherwise.")
    ] = None,
    key_column: Annotated[
        str | None, typer.Option("--key-column", help="A column in both files that must be equal row by row.")
    ] = None,
    author_column: Annotated[
        str | None, typer.Option("--author-column", help="The column of ORIGINAL that says who wrote a row.")
    ] = None,
    attribute_column: Annotated[
        list[str] | None,
        typer.Option("--attribute-column", help="A column of ORIGINAL to infer from the texts; may be repeated."),
    ] = None,
    spans_column: Annotated[
        str | None,
        typer.Option("--spans-column", help="A column of ORIGINAL with known entities: a list of {type, value}."),
    ] = None,
    format: Annotated[str | None, typer.Option(help="Format of ORIGINAL, if its name does not tell.")] = None,
    private_format: Annotated[
        str | None, typer.Option("--private-format", help="Format of PRIVATE, if its name does not tell.")
    ] = None,
    mechanism: Annotated[
        str | None,
        typer.Option("-m", "--mechanism", help="What made PRIVATE; by default what the card beside it says."),
    ] = None,
    epsilon: Annotated[float | None, typer.Option("-e", "--epsilon", help="Its epsilon.")] = None,
    option: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="Another option of the mechanism, such as vectors=FILE."),
    ] = None,
    attacks: Annotated[
        str,
        typer.Option(
            help="'all' that are possible, or of: inversion, mask, authorship, attributes, entities, linkage."
        ),
    ] = "all",
    language_model: Annotated[
        list[str] | None,
        typer.Option(
            "--language-model",
            help="A masked or causal model that guesses words: a folder, a hub name, 'smollm2'; may be repeated.",
        ),
    ] = None,
    encoder: Annotated[
        str, typer.Option(help="Sentence encoder for linkage: 'auto', 'none', 'minilm', a folder, a hub name.")
    ] = "auto",
    prior: Annotated[
        str | None,
        typer.Option(help="A public text whose word counts the inversion knows; by default public word frequencies."),
    ] = None,
    sample: Annotated[
        int, typer.Option(metavar="N", help="Rows (and words, for 'mask') that the slower attacks use at most.")
    ] = 2_000,
    seed: Annotated[int, typer.Option(help="Seed of the (public) randomness: samples and folds.")] = 0,
    html: Annotated[Path | None, typer.Option(help="Write one self-contained page.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")] = False,
    json_file: Annotated[Path | None, typer.Option("--json-file", help="Write the JSON object to a file.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace existing reports.")] = False,
    fail_on: FailOnOption = None,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="No progress bar.")] = False,
) -> None:
    """Attack a released text: invert words, guess them from context, find authors, attributes, entities, and originals.

    The report quotes the original text where an attack succeeded, so it is as private as the data. Exit code 3 means
    that the release does not fit the mechanism that its card claims.

    Example: tacit audit text reviews.csv private.csv --column text --author-column user --html audit.html
    """
    from tacit.report.parts import refuse_existing

    for path in (html, json_file):
        if path is not None:
            refuse_existing(path, force=force)
    if html is not None and html.suffix == ".json":
        raise BadParameterError(f"--html writes a page: name it {html.with_suffix('.html').name}, or use --json-file")
    if json_file is not None and json_file.suffix != ".json":
        raise BadParameterError(f"a report for machines ends in .json: name it {json_file.with_suffix('.json').name}")
    from tacit.audit.text.pairs import read_pairs
    from tacit.audit.text.plan import Settings, audit_text, chosen_attacks

    wanted = chosen_attacks(attacks)
    attributes = tuple(dict.fromkeys(attribute_column or ()))
    labels = [name for name in dict.fromkeys((author_column, *attributes)) if name is not None]
    pairs = read_pairs(
        original,
        private,
        column=column,
        private_column=private_column,
        key_column=key_column,
        label_columns=labels,
        spans_column=spans_column,
        original_format=format,
        private_format=private_format,
    )
    made, why = _made_by(private, mechanism, epsilon, option or [], wanted, everything=attacks.strip() == "all")
    settings = Settings(
        attacks=wanted,
        chosen=attacks.strip() != "all",
        author_column=author_column,
        attribute_columns=attributes,
        models=None if language_model is None else tuple(language_model),
        encoder=encoder,
        prior_texts=None if prior is None else _texts(prior),
        sample=sample,
        seed=seed,
        figures=html is not None,
    )
    with progress_bars(shown=not quiet) as update:
        report = audit_text(pairs, made, settings, progress=update, why_no_mechanism=why)
    report.facts = {"original": Path(original).name, "private": Path(private).name, **report.facts}
    deliver(report, html, json_file, as_json=as_json, force=force, fail_on=fail_on)


def _made_by(
    private: str,
    mechanism: str | None,
    epsilon: float | None,
    pairs: list[str],
    wanted: tuple[str, ...],
    *,
    everything: bool,
) -> tuple[MadeBy | None, str]:
    """The mechanism of the release; where only the card tells and its files are missing, why not."""
    from tacit.audit.text.release import made_by
    from tacit.jobs.fields import mechanism_options, named_values

    if "inversion" not in wanted:
        return None, ""
    options = mechanism_options(None, None, named_values(pairs))
    try:
        return made_by(private, mechanism, epsilon, options), ""
    except BadInputError as error:
        if not everything or mechanism is not None or options:
            raise
        return None, str(error)


def _texts(path: str) -> list[str]:
    from tacit.text.files import choose_columns, format_of, open_table, text_value

    with open_table(path, format_of(path)) as table:
        names = choose_columns(table.columns, (), ()).texts
        table.select(names)
        return [text_value(value, row, names[0]) for row, values in table.rows() for value in values]
