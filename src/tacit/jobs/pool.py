"""A pool of public sentences from files of one's own.

pool = tacit.jobs.pool.build(["faq.csv"], public="our published FAQ", license="CC BY 4.0", output="faq.tacit")
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

from pydantic import Field, model_validator

from tacit.errors import BadParameterError
from tacit.jobs.config import Config, Group, Option
from tacit.jobs.fields import Force, Format, License, Output, PublicName, UsualColumn
from tacit.jobs.sources import Source, needs_of_source
from tacit.matching.near_duplicates import LEAST_LIKENESS, USUAL_LIKENESS, NearDuplicates
from tacit.matching.pool import LONGEST, Cleaning, PoolSource, SentencePool, distinct, read_pool, write_pool
from tacit.needs import Ability
from tacit.places import refuse_taken_file
from tacit.progress import StepProgress
from tacit.text.files import choose_columns, open_table, text_value

REPORTED_ROWS = 10_000

Likeness = Annotated[
    float,
    Field(ge=LEAST_LIKENESS, le=1, description="Of sentences that share at least this part of their words and pairs of "
          "words only the first is kept; 1 keeps all that differ in a word."),
    Option(Group.DATA),
]  # fmt: skip


class PoolConfig(Config):
    """Public text, how it becomes sentences, and where the pool goes."""

    job: ClassVar[str] = "pool"

    public_files: Annotated[
        tuple[Source, ...],
        Field(min_length=1, description="Files of public texts (txt, csv, tsv, jsonl, parquet; also .gz)."),
        Option(Group.DATA, positional=True, metavar="FILE…"),
    ]
    output: Annotated[Output[Path], Field(description="The pool.")] = Path("pool.tacit")
    public: PublicName = None
    license: Annotated[License, Field(description="License of the text; it travels with every sentence.")] = ""
    column: UsualColumn = None
    format: Format = None
    split_sentences: Annotated[bool, Field(description="Cut texts into sentences."), Option(Group.DATA)] = False
    fewest_words: Annotated[int, Field(ge=1, description="Fewest words of a sentence."), Option(Group.DATA)] = 1
    most_characters: Annotated[
        int, Field(ge=1, description="Most characters of a sentence; longer ones are left out."), Option(Group.DATA)
    ] = LONGEST
    likeness: Likeness = USUAL_LIKENESS
    force: Force = False

    def needs(self) -> list[Ability]:
        return [need for source in self.public_files for need in needs_of_source(source, self.format)]

    @model_validator(mode="after")
    def _text_is_declared_public(self) -> Self:
        if not (self.public or "").strip():
            raise BadParameterError(
                "pool-text-not-public",
                "a corpus made from the pool repeats its sentences word for word, so they must be public: if they are, "
                "say so with {option.public[NAME]}; never build a pool from the texts you want to protect",
            )
        return self


@dataclass(frozen=True)
class PoolResult:
    """How many sentences are in the pool, of how many rows, how many near-duplicates were left out, and its digest."""

    output: Path
    sentences: int
    rows: int
    digest: str
    near_duplicates: int = 0


def run(config: PoolConfig, progress: StepProgress | None = None) -> PoolResult:
    """The pool of some public files, written as one file while they are read."""
    refuse_taken_file(config.output, force=config.force)
    name = str(config.public).strip()
    read = [0]
    cleaning = Cleaning(config.split_sentences, config.fewest_words, config.most_characters)
    sentences = ((sentence, "") for text in _texts(config, read, progress) for sentence in cleaning.sentences(text))
    near = NearDuplicates(config.likeness)
    entries = ((sentence, 0, credit) for sentence, credit in near.kept(distinct(sentences)))
    source = PoolSource(name, config.license, declared=True)
    count, digest = write_pool(config.output, name, [source], entries)
    return PoolResult(config.output, count, read[0], digest, near.removed)


def build(
    files: Sequence[Any], *, public: str, output: str | Path, progress: StepProgress | None = None, **options: Any
) -> SentencePool:
    """The pool of some public files or data in memory; options as in `PoolConfig`."""
    result = run(PoolConfig(public_files=tuple(files), public=public, output=Path(output), **options), progress)
    return read_pool(result.output)


def _texts(config: PoolConfig, read: list[int], progress: StepProgress | None) -> Iterator[str]:
    for source in config.public_files:
        with open_table(source, config.format) as table:
            names = choose_columns(table.columns, () if config.column is None else (config.column,), ()).texts
            table.select(names[:1])
            for row, values in table.rows():
                read[0] += 1
                yield text_value(values[0], row, names[0])
                if progress is not None and table.size_bytes and row % REPORTED_ROWS == 0:
                    progress(min(table.bytes_read(), table.size_bytes), table.size_bytes)
