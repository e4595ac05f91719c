"""The sources of a recipe that are at hand: files of installed packages or of a folder, read as sentences."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from tacit.errors import MissingExtraError, package_folder
from tacit.matching.pool import LONGEST, Cleaning, SentencePool
from tacit.matching.recipe_readers import texts_of
from tacit.matching.recipes import Recipe, RecipeSource
from tacit.progress import WorkProgress

FEWEST_WORDS = 4


def available_sources(
    recipe: Recipe, folder: Path | None = None
) -> tuple[list[tuple[RecipeSource, list[Path]]], list[str]]:
    """The sources whose files are there, with the files; and what would bring the others."""
    there, missing = [], []
    for source in recipe.sources:
        files = _files(source, folder)
        if files:
            there.append((source, files))
        else:
            missing.append(source.install if source.package else f"a folder with {source.files[0]}")
    return there, list(dict.fromkeys(missing))


def _files(source: RecipeSource, folder: Path | None) -> list[Path]:
    """The files of a source in a folder of the user's, or in the installed package; none if they are not there."""
    places = [] if folder is None else [folder.expanduser()]
    if source.package:
        with contextlib.suppress(MissingExtraError):
            places.append(package_folder(source.module, "the sentences come", source.install))
    for place in places:
        files = [path for pattern in source.files for path in sorted(place.glob(pattern))]
        if files:
            return files
    return []


def recipe_entries(
    there: Sequence[tuple[RecipeSource, Sequence[Path]]],
    written: Sequence[SentencePool] = (),
    progress: WorkProgress | None = None,
) -> Iterator[tuple[str, str]]:
    """Sentences of files and then of written pools, each with the number of its source, counted through, and its credit
    ("number<TAB>credit")."""
    files = [(number, source, path) for number, (source, paths) in enumerate(there) for path in paths]
    for done, (number, source, path) in enumerate(files):
        if progress is not None:
            progress("reading", done, len(files))
        cleaning = Cleaning(source.split, FEWEST_WORDS, LONGEST)
        for text in texts_of(path, source.reader, source.fields):
            yield from ((sentence, f"{number}\t") for sentence in cleaning.sentences(text))
    before = len(there)
    for pool in written:
        for sentence, number, credit in zip(pool.sentences, pool.source_ids.tolist(), pool.credits, strict=True):
            yield sentence, f"{before + number}\t{credit}"
        before += len(pool.sources)


def parted(credit: str) -> tuple[int, str]:
    """The number of a source, and the credit."""
    number, _, rest = credit.partition("\t")
    return int(number), rest
