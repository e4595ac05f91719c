"""Made-up secrets for training data, each included by its own fair coin: what an audit of a model looks for.

tacit.jobs.audit.canaries.run(CanariesConfig(output="add-to-training.txt", secret="canaries.jsonl"))
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar, Self

from pydantic import Field, model_validator

from tacit.auditing.models.canaries import Canary, insert, make_canaries, save_canaries
from tacit.errors import BadInputError
from tacit.jobs.config import Config, Group, Option, Varied
from tacit.jobs.fields import Force, Output, Seed
from tacit.noise.source import new_source
from tacit.places import refuse_existing


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

    @model_validator(mode="after")
    def _two_files(self) -> Self:
        if self.output.resolve() == self.secret.resolve():
            raise BadInputError(
                "one-file-for-texts-and-coins",
                "the texts to train on and the coins need two files: give {option.output} and {option.secret} two "
                "names",
            )
        return self


@dataclass(frozen=True)
class MadeCanaries:
    """All canaries, and the lines for the training data in their order."""

    canaries: list[Canary]
    lines: list[str]

    @property
    def included(self) -> int:
        return sum(canary.included for canary in self.canaries)


def run(config: CanariesConfig) -> MadeCanaries:
    """The canaries, which are written with their coins to one file, and the included ones to the other."""
    for path in (config.output, config.secret):
        refuse_existing(path, force=config.force)
    source = new_source(config.seed)
    canaries = make_canaries(config.count, source=source, pattern=config.pattern, repeats=config.repeats)
    lines = insert((), canaries, source)
    save_canaries(canaries, config.secret, force=config.force)
    try:
        config.output.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    except OSError as error:
        raise BadInputError(
            "cannot-write", "cannot write {path}: {reason}", path=config.output, reason=error.strerror
        ) from error
    return MadeCanaries(list(canaries), list(lines))
