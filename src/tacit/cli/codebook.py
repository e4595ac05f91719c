"""`tacit codebook`: build the public part of the private codebook, and show what to expect of it."""

from __future__ import annotations

import json
from typing import Annotated, Any, ClassVar

import click
from pydantic import Field

from tacit.cli.bars import Bars
from tacit.cli.generated import command_for, group_of
from tacit.cli.quiet import Quiet
from tacit.documents.codebook_public import PublicCodebook, load_codebook
from tacit.jobs.codebook import CodebookConfig, expectations, run
from tacit.jobs.config import Config, Group, Option
from tacit.jobs.fields import AsJson, Budget, Epsilon

EPSILONS = (0.5, 1.0, 2.0, 3.0, 5.0, 8.0, 10.0, 15.0, 30.0)

BUILD_HELP = """Build a codebook from public text: the closer its kind to the private texts, the better.

Releases consist of these texts, word for word, so they must be public: say so with --public NAME. Never build a
codebook from the texts you want to protect.

Example: tacit codebook build questions.txt --public "my public questions" -o questions-codebook
"""


def build(config: CodebookConfig, shown: Quiet) -> None:
    with Bars(shown=not shown.quiet) as bars:
        codebook, texts = run(config, lambda done, total: bars.show("encoding", done, total))
    if not shown.quiet:
        click.echo(f"{len(codebook.sentences):,} sentences of {texts:,} texts -> {config.output}", err=True)
        click.echo(table(codebook, EPSILONS))


class CodebookShowOptions(Config):
    """Which codebook is shown, and how."""

    job: ClassVar[str] = "codebook show"

    codebook: Annotated[
        str,
        Field(description="A codebook folder, or 'default'."),
        Option(Group.DATA, positional=True, metavar="[DIR]"),
    ] = "default"
    epsilon: Annotated[Epsilon[tuple[Budget, ...]], Field(description="A budget to show; may be repeated.")] = ()
    as_json: AsJson = False


def show(options: CodebookShowOptions) -> None:
    codebook = load_codebook(options.codebook)
    epsilons = options.epsilon or EPSILONS
    if options.as_json:
        click.echo(json.dumps({**facts(codebook), "expected": expectations(codebook, epsilons)}, ensure_ascii=False))
        return
    for name, value in facts(codebook).items():
        line = ", ".join(f"{item:,}" for item in value) if isinstance(value, list) else value
        click.echo(f"{name + ':':<12}{line}")
    click.echo(table(codebook, epsilons))


def facts(codebook: PublicCodebook) -> dict[str, Any]:
    """Where a codebook comes from, as plain values."""
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


def table(codebook: PublicCodebook, epsilons: tuple[float, ...]) -> str:
    """Expected similarity of a held-out public text with what is released for it."""
    lines = [f"{'epsilon':>8} {'k':>7} {'s':>6} {'symbols':>8} {'near':>7} {'similarity':>11} {'chance':>7}"]
    for row in expectations(codebook, epsilons):
        lines.append(
            f"{row['epsilon']:>8g} {row['k']:>7,} {row['s']:>6,} {row['symbols']:>8} {row['near']:>7.1%} "
            f"{row['similarity']:>11.3f} {row['chance']:>7.3f}"
        )
    return "\n".join(lines)


command = group_of(
    "codebook",
    [
        command_for("build", [CodebookConfig, Quiet], build, help=BUILD_HELP),
        command_for(
            "show",
            [CodebookShowOptions],
            show,
            help="Where a codebook comes from, its sizes, and what to expect at each epsilon.",
        ),
    ],
    help="Codebooks of public sentences, from which 'tacit rewrite --mechanism codebook' takes what it releases.",
)
