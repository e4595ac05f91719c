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
from tacit.jobs import pool_fit, pool_recipe, pool_write
from tacit.jobs.config import Config, Group, Option, Varied
from tacit.jobs.fields import AsJson, Sentences
from tacit.jobs.pool import PoolConfig, run
from tacit.jobs.pool_fit import PoolFitConfig
from tacit.jobs.pool_recipe import PoolRecipeConfig
from tacit.jobs.pool_write import PoolWriteConfig
from tacit.matching.pool import SentencePool, bundled_pools, load_pool
from tacit.matching.pool_fit import PoolFit
from tacit.matching.recipes import Recipe, load_recipe, recipe_names

BUILD_HELP = """Build a pool from public files: the closer their kind to the private texts, the better.

A corpus made from a pool repeats its sentences word for word, so they must be public: say so with --public NAME. Never
build a pool from the texts you want to protect. Of sentences with the same words, or nearly the same (--likeness), only
the first is kept.

Example: tacit pool build faq.csv --column question --public "our published FAQ" --license "CC BY 4.0" -o faq.tacit
"""
FIT_HELP = """Which pools fit a sketch, and which mix of them: from the release and public sentences alone.

Rows are drawn as 'tacit synthesize' would draw them and held against a part of the released numbers that had no say in
the draw. 'explained' is 1 for rows with the averages of the private text, and 0 for public sentences at random. No
private text is looked at, and nothing is spent.

Example: tacit pool fit tickets-sketch.tacit --pool general --pool faq.tacit
"""
WRITE_HELP = """Let a public language model write a pool from public prompts: free of budget.

Prompts hold nothing private: your words, the names of labels (public by declaration), or those of a recipe. What is
written goes to the disk at once, so an interrupted writing goes on when the command is given again. Needs a language
model: see --model.

Example: tacit pool write --about "messages of customers to a bank" --labels "lost card,fees" --rows 2000 -o bank.tacit

Example: tacit pool write --about "requests to an assistant" --from tickets-sketch.tacit --example "music: play jazz"
"""
RECIPE_HELP = """Build the pool of a recipe from packages that are installed, a folder, and pools that a model wrote.

What is missing is named with the command that installs it; what is there is used.

Example: tacit pool recipe build medicine --source-folder medquad-sentences -o medicine.tacit
"""


def build(config: PoolConfig, shown: Quiet) -> None:
    with Bars(shown=not shown.quiet) as bars:
        result = run(config, lambda done, total: bars.show("reading", done, total))
    if not shown.quiet:
        left_out = f" ({result.near_duplicates:,} near-duplicates left out)" if result.near_duplicates else ""
        click.echo(f"{result.sentences:,} sentences of {result.rows:,} rows{left_out} -> {result.output}", err=True)


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


def fit(config: PoolFitConfig, printing: Printing, shown: Quiet) -> None:
    with Bars(shown=not shown.quiet) as bars:
        result = pool_fit.run(config, bars.show)
    if printing.as_json:
        click.echo(json.dumps(fit_facts(result), ensure_ascii=False))
        return
    click.echo(f"{'pools':<44}{'explained':>10}{'sentences a label':>19}  rows from each")
    for mix in result.mixes:
        shares = ", ".join(f"{share:.0%}" for share in mix.shares)
        click.echo(f"{' + '.join(result.named(mix)):<44}{mix.explained:>10.3f}{mix.sentences:>19,.0f}  {shares}")
    click.echo(f"recommended: {' + '.join(result.named(result.recommended))}")


def fit_facts(result: PoolFit) -> dict[str, Any]:
    """A comparison of pools as plain values."""
    return {
        "mixes": [
            {
                "pools": list(result.named(mix)),
                "explained": mix.explained,
                "sentences_a_label": mix.sentences,
                "shares": list(mix.shares),
            }
            for mix in result.mixes
        ],
        "recommended": list(result.named(result.recommended)),
    }


def write(config: PoolWriteConfig, shown: Quiet) -> None:
    with Bars(shown=not shown.quiet) as bars:
        result = pool_write.run(config, bars.show)
    if not shown.quiet:
        left_out = f" ({result.near_duplicates:,} near-duplicates left out)" if result.near_duplicates else ""
        click.echo(f"{result.sentences:,} sentences{left_out} -> {result.output}", err=True)


def recipe_build(config: PoolRecipeConfig, shown: Quiet) -> None:
    with Bars(shown=not shown.quiet) as bars:
        result = pool_recipe.run(config, bars.show)
    if shown.quiet:
        return
    left_out = f" ({result.near_duplicates:,} near-duplicates left out)" if result.near_duplicates else ""
    click.echo(f"{result.sentences:,} sentences{left_out} -> {result.output}", err=True)
    for source in result.sources:
        click.echo(f"from: {source}", err=True)
    for way in result.missing:
        click.echo(f"more with: {way}", err=True)


def recipe_listing(options: Printing) -> None:
    recipes = [load_recipe(name) for name in recipe_names()]
    if options.as_json:
        click.echo(json.dumps([recipe_facts(recipe) for recipe in recipes], ensure_ascii=False))
        return
    for recipe in recipes:
        click.echo(f"{recipe.name}: {recipe.title}")
        for source in recipe.sources:
            way = source.install if source.package else f"a folder with {source.files[0]}"
            click.echo(f"    {source.source.name} ({source.source.license.partition(', http')[0]})\n        {way}")
        if recipe.prompts:
            subjects = sum(len(kind.subjects) for kind in recipe.prompts)
            click.echo(f"    prompts about {subjects} subjects\n        tacit pool write --recipe {recipe.name}")


def recipe_facts(recipe: Recipe) -> dict[str, Any]:
    """A recipe as plain values."""
    return {
        "name": recipe.name,
        "title": recipe.title,
        "sources": [
            {
                **source.source.to_dict(),
                "package": source.package,
                "version": source.version,
                "files": list(source.files),
            }
            for source in recipe.sources
        ],
        "prompts": [kind.to_dict() for kind in recipe.prompts],
    }


recipe_group = group_of(
    "recipe",
    [
        command_for("list", [Printing], recipe_listing, help="The recipes: what they take, and under which licenses."),
        command_for("build", [PoolRecipeConfig, Quiet], recipe_build, help=RECIPE_HELP),
    ],
    help="Pools for a field: support mail, assistants, reviews, news, social media, medicine, law, finance.",
)
command = group_of(
    "pool",
    [
        command_for("build", [PoolConfig, Quiet], build, help=BUILD_HELP),
        command_for("fit", [PoolFitConfig, Printing, Quiet], fit, help=FIT_HELP),
        command_for("write", [PoolWriteConfig, Quiet], write, help=WRITE_HELP),
        recipe_group,
        command_for("list", [Printing], listing, help="The pools that come with Tacit."),
        command_for("show", [PoolShowOptions], show, help="Where a pool comes from, and some of its sentences."),
    ],
    help="Pools of public sentences, from which a corpus that may be shared is made.",
)
