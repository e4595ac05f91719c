"""`tacit pool`: public sentences from which a shared corpus is made."""

from __future__ import annotations

import json
from typing import Annotated, Any, ClassVar

import click
from pydantic import Field

from tacit.cli.bars import Bars
from tacit.cli.generated import command_for, group_of
from tacit.cli.options import Printing
from tacit.cli.quiet import Quiet
from tacit.jobs.config import Config, Group, Option, Varied
from tacit.jobs.fields import AsJson, Sentences
from tacit.jobs.pool import PoolConfig, run
from tacit.matching.pool import SentencePool, bundled_pools, load_pool

BUILD_HELP = """Build a pool from public files: the closer their kind to the private texts, the better.

A corpus made from a pool repeats its sentences word for word, so they must be public: say so with --public NAME. Never
build a pool from the texts you want to protect. Sentences with the same words are kept once.

Example: tacit pool build faq.csv --column question --public "our published FAQ" --license "CC BY 4.0" -o faq.tacit
"""


def build(config: PoolConfig, shown: Quiet) -> None:
    with Bars(shown=not shown.quiet) as bars:
        result = run(config, lambda done, total: bars.show("reading", done, total))
    if not shown.quiet:
        click.echo(f"{result.sentences:,} sentences of {result.rows:,} rows -> {result.output}", err=True)


def listing(options: Printing) -> None:
    pools = [facts(load_pool(name)) for name in bundled_pools()]
    if options.as_json:
        click.echo(json.dumps(pools, ensure_ascii=False))
        return
    for pool in pools:
        click.echo(f"{pool['name']:<12}{pool['sentences']:>10,} sentences  {', '.join(licenses_of(pool))}")


def licenses_of(pool: dict[str, Any]) -> list[str]:
    """The licenses of a pool, each once, without their addresses."""
    stated = [source["license"].partition(", http")[0] or "license not stated" for source in pool["sources"]]
    return list(dict.fromkeys(stated))


class PoolShowOptions(Config):
    """Which pool is shown, and how much of it."""

    job: ClassVar[str] = "pool show"

    pool: Annotated[
        str,
        Field(description="A pool that comes with Tacit, or a file."),
        Option(Group.DATA, positional=True, metavar="[POOL]"),
    ] = "general"
    sentences: Annotated[
        Sentences[int],
        Field(ge=0, description="How many of its sentences (also -n)."),
        Varied(group=Group.DATA, old_names=("-n",)),
    ] = 10
    as_json: AsJson = False


def show(options: PoolShowOptions) -> None:
    pool = load_pool(options.pool)
    if options.as_json:
        click.echo(json.dumps(facts(pool), ensure_ascii=False))
        return
    click.echo(f"{pool.name}: {len(pool):,} sentences, digest {pool.digest}")
    for source in pool.sources:
        click.echo(f"source: {source.name} ({source.license or 'license not stated'})")
    step = max(1, len(pool) // max(1, options.sentences))
    for sentence in pool.sentences[::step][: options.sentences]:
        click.echo(f"  {sentence}")


def facts(pool: SentencePool) -> dict[str, Any]:
    """A pool as plain values, without its sentences."""
    return {
        "name": pool.name,
        "sentences": len(pool),
        "sources": [source.to_dict() for source in pool.sources],
        "digest": pool.digest,
    }


command = group_of(
    "pool",
    [
        command_for("build", [PoolConfig, Quiet], build, help=BUILD_HELP),
        command_for("list", [Printing], listing, help="The pools that come with Tacit."),
        command_for("show", [PoolShowOptions], show, help="Where a pool comes from, and some of its sentences."),
    ],
    help="Pools of public sentences, from which a corpus that may be shared is made.",
)
