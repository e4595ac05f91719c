"""Made-up secrets for training data, each included by its own fair coin: what an audit of a model looks for.

tacit.jobs.audit.canaries.run(CanariesConfig(output="add-to-training.txt", secret="canaries.jsonl"))
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from tacit.auditing.models.canaries import Canary, inserted_canaries, make_canaries
from tacit.auditing.models.canary_files import save_canaries
from tacit.auditing.models.in_distribution import canaries_like
from tacit.auditing.models.members import read_texts
from tacit.errors import BadInputError, BadParameterError
from tacit.jobs.config import Config, Group, Option, Varied
from tacit.jobs.fields import Force, LabelColumn, Output, Seed, UsualColumn
from tacit.jobs.sources import Source, needs_of_source
from tacit.needs import Ability
from tacit.noise.source import Source as RandomSource
from tacit.noise.source import new_source
from tacit.places import refuse_existing
from tacit.text.files import write_columns


class CanariesConfig(Config):
    """How many secrets of which form, how often each is inserted, and the two files that are written."""

    job: ClassVar[str] = "audit canaries"

    output: Annotated[Output[Path], Field(description="The texts to add to the training data, one per line.")]
    secret: Annotated[
        Path,
        Field(description="All canaries with their coins (jsonl), for the audit."),
        Option(Group.DATA, private=True),
    ]
    count: Annotated[int, Field(description="Number of canaries, left-out ones included."), Option(Group.MEASURES)] = (
        1_000
    )
    like: Annotated[
        Source,
        Field(
            description="Ordinary texts of the same kind, not those that are trained on: canaries then begin like them "
            "and end in an unlikely secret, which is remembered better than a format. They quote these texts."
        ),
        Option(Group.DATA, metavar="FILE", private=True),
    ] = None
    column: UsualColumn = None
    label_column: Annotated[
        LabelColumn[str | None],
        Field(description="The column of labels in LIKE: each canary gets one of them at random, for classifiers and "
              "for synthetic rows with labels."),
    ] = None  # fmt: skip
    secret_kind: Annotated[
        Literal["bigram", "unigram", "words"],
        Field(description="The words of a secret: such as never follow each other in LIKE, the rarest ones there, or "
              "64 public words."),
        Option(Group.MEASURES),
    ] = "bigram"  # fmt: skip
    prefix_words: Annotated[
        int, Field(ge=1, description="Words that a canary takes from the beginning of a text of LIKE."),
        Option(Group.MEASURES),
    ] = 8  # fmt: skip
    secret_words: Annotated[int, Field(ge=1, description="Words of its secret."), Option(Group.MEASURES)] = 3
    pattern: Annotated[
        str,
        Field(description="Their public format, with fields {digits:N}, {letters:N}, {hex:N} or {words:N}."),
        Option(Group.MEASURES),
    ] = "my secret number is {digits:9}"
    repeats: Annotated[
        tuple[int, ...],
        Field(description="How often an included canary is inserted; several numbers take turns."),
        Option(Group.MEASURES),
    ] = (1,)
    seed: Annotated[
        Seed[int | None],
        Field(description="Repeat a test. Whoever knows the seed knows the coins, so never for an audit."),
        Varied(group=Group.MEASURES),
    ] = None
    force: Force = False

    def needs(self) -> list[Ability]:
        return needs_of_source(self.like, None) if self.like is not None else []

    @model_validator(mode="after")
    def _two_files(self) -> Self:
        if self.like is None and (self.label_column is not None or self.column is not None):
            raise BadParameterError(
                "columns-without-examples",
                "columns are those of example rows: give them with {option.like[FILE]}",
            )
        if self.output.resolve() == self.secret.resolve():
            raise BadInputError(
                "one-file-for-texts-and-coins",
                "the texts to train on and the coins need two files: give {option.output} and {option.secret} two "
                "names",
            )
        return self


@dataclass(frozen=True)
class MadeCanaries:
    """All canaries, and the lines for the training data in their order; with labels, the labels of these lines."""

    canaries: list[Canary]
    lines: list[str]
    labels: list[str] | None = None

    @property
    def included(self) -> int:
        return sum(canary.included for canary in self.canaries)


def run(config: CanariesConfig) -> MadeCanaries:
    """The canaries, which are written with their coins to one file, and the included ones to the other."""
    for path in (config.output, config.secret):
        refuse_existing(path, force=config.force)
    source = new_source(config.seed)
    canaries = _drawn(config, source)
    inserted = inserted_canaries(canaries, source)
    made = MadeCanaries(
        canaries,
        [canary.text for canary in inserted],
        None if config.label_column is None else [str(canary.label) for canary in inserted],
    )
    save_canaries(canaries, config.secret, force=config.force)
    try:
        _write(config, made)
    except OSError as error:
        raise BadInputError(
            "cannot-write", "cannot write {path}: {reason}", path=config.output, reason=error.strerror
        ) from error
    return made


def _drawn(config: CanariesConfig, source: RandomSource) -> list[Canary]:
    if config.like is None:
        return make_canaries(config.count, source=source, pattern=config.pattern, repeats=config.repeats)
    examples = read_texts(config.like, config.column, config.label_column)
    return canaries_like(
        examples.texts, config.count, source=source, labels=examples.labels, kind=config.secret_kind,
        prefix_words=config.prefix_words, secret_words=config.secret_words, repeats=config.repeats,
    )  # fmt: skip


def _write(config: CanariesConfig, made: MadeCanaries) -> None:
    """The lines as they are, or rows with the columns of the examples."""
    if config.label_column is not None:
        assert made.labels is not None
        columns = {config.column or "text": made.lines, config.label_column: made.labels}
        write_columns(config.output, columns, force=config.force)
    elif config.output.suffix in (".csv", ".tsv", ".jsonl", ".parquet"):
        write_columns(config.output, {config.column or "text": made.lines}, force=config.force)
    else:
        config.output.write_text("".join(f"{line}\n" for line in made.lines), encoding="utf-8")
