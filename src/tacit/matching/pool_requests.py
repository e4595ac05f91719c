"""How the pool 'requests' was made: `python -m tacit.matching.pool_requests [MEASURED…]`; with the word `again` in
place of files, from the pool that comes with the package.

What people ask and write: requests to assistants, messages to companies, conversations. The sources are those of the
recipes 'support' and 'assistants' (packages of the registry, see `assets/recipes`). Sentences have 4 to 40 words and
are prose; of those that are nearly the same only the first is kept.

`again` needs no packages: it reads the pool that is there and leaves out what the rules of today do not call prose.
Near-duplicates are looked for before these rules, so the result is the pool that a new start would give.

MEASURED are the files of the data sets that the project measures itself on: a sentence that also stands there, with
the same words, is left out. Nothing else was looked at in them.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from tacit.errors import MissingExtraError
from tacit.matching.near_duplicates import NearDuplicates
from tacit.matching.pool import (
    ASSETS,
    SUFFIX,
    PoolSource,
    SentencePool,
    distinct,
    read_pool,
    words_key,
    write_pool,
)
from tacit.matching.recipe_sources import FEWEST_WORDS, available_sources, parted, recipe_entries
from tacit.matching.recipes import RecipeSource, load_recipe
from tacit.text.sentences import split_sentences

NAME = "requests"
RECIPES = ("support", "assistants")
LIKENESS = 0.8
MOST_WORDS, MOST_CHARACTERS = 40, 220
_NOT_PROSE = re.compile(r"[\[\]{}<>|\\_=#@]|https?:|\d{7,}|[,:;]$|\.\.\.$|^(?:A|Q): ", re.IGNORECASE)
_NOT_A_WORD = re.compile(
    r"\w{21,}"  # names of programs, keys, texts without spaces; no English word that people write is as long
    r"|[a-z]{8,}\d{3,}"  # names of tools with a number: openbankaccount4821
    r"|\w{3,}\.[\w-]+\.[a-z]{2,}"  # addresses of servers
    r"|(?:[A-Z]{3,}-){2,}[A-Z]{3,}"  # YOUR-API-KEY
    r"|[0-9a-f]{8}-[0-9a-f]{4}-"  # numbers of orders and machines
)


def is_prose(sentence: str) -> bool:
    """Whether a sentence is a whole one, without marks of a program or a form."""
    letters = sum(character.isalpha() or character.isspace() for character in sentence)
    return (
        FEWEST_WORDS <= len(sentence.split()) <= MOST_WORDS
        and len(sentence) <= MOST_CHARACTERS
        and letters >= 0.8 * len(sentence)
        and sentence.count('"') % 2 == 0
        and sentence.count("(") == sentence.count(")")
        and not _NOT_PROSE.search(sentence)
        and not _NOT_A_WORD.search(sentence)
    )


def keys_of_files(paths: Iterable[Path]) -> set[bytes]:
    """The keys of all texts in tables, and of their sentences."""
    csv.field_size_limit(1 << 30)
    keys: set[bytes] = set()
    for path in paths:
        with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as file:
            rows = csv.reader(file) if ".csv" in path.suffixes else (line.rstrip("\n").split("\t") for line in file)
            for text in (" ".join(cell.split()) for row in rows for cell in row if cell.count(" ") >= FEWEST_WORDS - 1):
                keys.update(words_key(part) for part in [text, *split_sentences(text)])
    return keys


def _all_sources() -> list[tuple[RecipeSource, list[Path]]]:
    """The sources of the recipes, each once; all have to be installed."""
    sources: dict[PoolSource, tuple[RecipeSource, list[Path]]] = {}
    for name in RECIPES:
        there, missing = available_sources(load_recipe(name))
        if missing:
            raise MissingExtraError(
                "package-not-installed", "the sentences come in a package that is not installed: {install}",
                install="; ".join(missing),
            )  # fmt: skip
        sources.update({source.source: (source, files) for source, files in there})
    return list(sources.values())


def build(without: Sequence[Path] = (), folder: Path = ASSETS) -> SentencePool:
    """The pool, written into the folder of the pools that come with the package."""
    there = _all_sources()
    measured = keys_of_files(without)
    near = NearDuplicates(LIKENESS)

    def entries() -> Iterator[tuple[str, int, str]]:
        for sentence, credit in near.kept(distinct(recipe_entries(there, []))):
            if is_prose(sentence) and words_key(sentence) not in measured:
                yield sentence, *parted(credit)

    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{NAME}{SUFFIX}"
    write_pool(path, NAME, [source.source for source, _ in there], entries(), small=True)
    return read_pool(path)


def build_again(folder: Path = ASSETS) -> SentencePool:
    """The pool that is there without what the rules do not call prose (any more)."""
    path = folder / f"{NAME}{SUFFIX}"
    pool = read_pool(path)
    entries = [
        (sentence, int(source), credit)
        for sentence, source, credit in zip(pool.sentences, pool.source_ids, pool.credits, strict=True)
        if is_prose(sentence)
    ]
    write_pool(path, NAME, pool.sources, entries, small=True)
    return read_pool(path)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("measured", nargs="*", default=[])
    chosen = parser.parse_args().measured
    print(build_again() if chosen == ["again"] else build([Path(each) for each in chosen]))
