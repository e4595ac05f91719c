"""`tacit audit canaries`: make the secrets that `tacit audit model --canaries` looks for."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tacit.errors import BadInputError


def canaries(
    output: Annotated[
        Path, typer.Option("-o", "--output", help="The texts to add to the training data, one per line.")
    ],
    secret: Annotated[Path, typer.Option("--secret", help="All canaries with their coins (jsonl), for the audit.")],
    count: Annotated[int, typer.Option("-n", "--count", help="Number of canaries, left-out ones included.")] = 1_000,
    pattern: Annotated[
        str,
        typer.Option(help="Their public format, with fields {digits:N}, {letters:N}, {hex:N} or {words:N}."),
    ] = "my secret number is {digits:9}",
    repeats: Annotated[
        list[int] | None, typer.Option(help="How often an included canary is inserted; several numbers take turns.")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="Repeat a test. Whoever knows the seed knows the coins, so never for an audit.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace existing files.")] = False,
) -> None:
    """Make canaries: made-up secrets of a public format, each included by its own fair coin.

    Add the texts of the output to the training data, train, and run 'tacit audit model MODEL --canaries SECRET'. The
    secret file says how the coins fell: keep it from whoever trains.

    Example: tacit audit canaries -n 1000 -o add-to-training.txt --secret canaries.jsonl
    """
    from tacit.audit.models.canaries import insert, make_canaries, save_canaries
    from tacit.noise.source import new_source
    from tacit.report.parts import refuse_existing

    if output.resolve() == secret.resolve():
        raise BadInputError("the texts to train on and the coins need two files: give --output and --secret two names")
    for path in (output, secret):
        refuse_existing(path, force=force)
    source = new_source(seed)
    made = make_canaries(count, source=source, pattern=pattern, repeats=tuple(repeats or (1,)))
    inserted = insert((), made, source)
    save_canaries(made, secret, force=force)
    try:
        output.write_text("".join(f"{text}\n" for text in inserted), encoding="utf-8")
    except OSError as error:
        raise BadInputError(f"cannot write {output}: {error.strerror}") from error
    included = sum(canary.included for canary in made)
    typer.echo(
        f"{included:,} of {count:,} canaries, {len(inserted):,} lines -> {output}; coins -> {secret}",
        err=True,
    )
