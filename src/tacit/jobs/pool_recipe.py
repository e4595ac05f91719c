"""A pool for a field by a recipe: sentences of installed packages, of a folder, and of a language model."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import Field

from tacit.errors import MissingExtraError
from tacit.jobs.config import Config, Group, Option
from tacit.jobs.fields import Force, Name, Output
from tacit.jobs.pool import Likeness
from tacit.matching.near_duplicates import USUAL_LIKENESS, NearDuplicates
from tacit.matching.pool import distinct, load_pool, write_pool
from tacit.matching.recipe_sources import available_sources, parted, recipe_entries
from tacit.matching.recipes import Recipe, load_recipe
from tacit.places import refuse_taken_file
from tacit.progress import WorkProgress


class PoolRecipeConfig(Config):
    """A recipe, where its files are if they are not in an installed package, and where the pool goes."""

    job: ClassVar[str] = "pool recipe"

    name: Annotated[Name[str], Field(description="A recipe; see 'tacit pool recipe list'.")]
    output: Annotated[
        Output[Path | None], Field(description="The pool; by default the name of the recipe with '.tacit'.")
    ] = None
    source_folder: Annotated[
        Path | None,
        Field(description="A folder with the files of the recipe, for those that are in no package."),
        Option(Group.DATA, metavar="FOLDER"),
    ] = None
    written: Annotated[
        tuple[Path, ...],
        Field(description="A pool that 'tacit pool write' made with the recipe, to be added; may be repeated."),
        Option(Group.DATA, metavar="POOL"),
    ] = ()
    likeness: Likeness = USUAL_LIKENESS
    force: Force = False

    @property
    def pool_path(self) -> Path:
        """Where the pool goes."""
        return self.output or Path(f"{self.name}.tacit")


@dataclass(frozen=True)
class PoolRecipeResult:
    """The pool, what it is made of, and the commands that would add more."""

    output: Path
    sentences: int
    near_duplicates: int
    digest: str
    sources: tuple[str, ...]
    missing: tuple[str, ...]


def run(config: PoolRecipeConfig, progress: WorkProgress | None = None) -> PoolRecipeResult:
    """The pool of a recipe, from all of its sources that are there; refused if none is."""
    recipe = load_recipe(config.name)
    output = config.pool_path
    refuse_taken_file(output, force=config.force)
    there, missing = available_sources(recipe, config.source_folder)
    if not there and not config.written:
        raise MissingExtraError(
            "recipe-without-files",
            "nothing that the recipe '{name}' is made of is here. Any of these would do: {ways}",
            name=recipe.name,
            ways="; ".join([*missing, *_writing(recipe)]),
        )
    written = [load_pool(path) for path in config.written]
    sources = [*(source.source for source, _ in there), *(source for pool in written for source in pool.sources)]
    near = NearDuplicates(config.likeness)
    entries = recipe_entries(there, written, progress)
    kept = ((sentence, *parted(credit)) for sentence, credit in near.kept(distinct(entries)))
    count, digest = write_pool(output, recipe.title, sources, kept)
    return PoolRecipeResult(
        output, count, near.removed, digest, tuple(source.name for source in sources), tuple(missing)
    )


def _writing(recipe: Recipe) -> list[str]:
    """How a language model would help, if the recipe has prompts."""
    return [f"a pool of 'tacit pool write' with the recipe '{recipe.name}'"] if recipe.prompts else []
