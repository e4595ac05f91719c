"""The audit of released vectors: attacks on them with the original texts beside them.

report = tacit.audit_vectors("tickets.csv", "vectors.parquet", attribute_columns=("topic",))
print(report)
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, cast

from pydantic import Field

from tacit.auditing.text.pairs import check_counts, label_of
from tacit.auditing.text.release import card_beside
from tacit.auditing.vectors.report import ReleasedVectors, audit_words
from tacit.auditing.vectors.report import audit_vectors as attacked
from tacit.auditing.vectors.words import WordRows
from tacit.catalog import build
from tacit.embeddings.base import VectorMechanism
from tacit.embeddings.words import WordVectorMechanism
from tacit.errors import BadInputError
from tacit.jobs.config import Config, Varied
from tacit.jobs.embed import EmbedConfig, digests_of, mechanism_again
from tacit.jobs.fields import (
    AttributeColumns,
    AuditSeed,
    Format,
    MechanismEpsilon,
    MechanismName,
    MechanismOptions,
    Original,
    Private,
    PrivateColumn,
    PrivateFormat,
    Sample,
    UsualColumn,
)
from tacit.jobs.sources import Source, needs_of_source
from tacit.needs import CLASSIFIERS, Ability
from tacit.progress import WorkProgress
from tacit.report import Report
from tacit.text.files import check_column, choose_columns, open_table, text_value
from tacit.text.files.memory import name_of
from tacit.text.files.vectors import read_vectors

SAMPLE = 2_000


class VectorAuditConfig(Config):
    """The original texts, the vectors released for them, and what is attacked."""

    job: ClassVar[str] = "audit vectors"

    original: Original
    private: Annotated[Private[Source], Field(description="The file of vectors that 'tacit embed' made from it.")]
    column: UsualColumn = None
    private_column: Annotated[
        PrivateColumn, Field(description="The column of vectors in PRIVATE, if it is called otherwise.")
    ] = None
    attribute_columns: Annotated[
        AttributeColumns, Field(description="A column of ORIGINAL to infer from the vectors; may be repeated.")
    ] = ()
    format: Format = None
    private_format: PrivateFormat = None
    mechanism: Annotated[
        MechanismName[str | None], Field(description="What made PRIVATE; by default what the card beside it says.")
    ] = None
    epsilon: MechanismEpsilon = None
    options: MechanismOptions = Field(default_factory=dict)
    sample: Annotated[Sample, Field(ge=20, description="Rows that the attacks use at most."), Varied(metavar="N")] = (
        SAMPLE
    )
    seed: AuditSeed = 0

    def needs(self) -> list[Ability]:
        classifying = [CLASSIFIERS] if self.attribute_columns else []
        return [
            *needs_of_source(self.original, self.format),
            *needs_of_source(self.private, self.private_format),
            *classifying,
        ]


def run(config: VectorAuditConfig, progress: WorkProgress | None = None) -> Report:
    """The report of the attacks; it quotes the original text where one succeeded."""
    mechanism = _mechanism(config)
    texts, attributes, column = _originals(config)
    released = read_vectors(
        config.private, config.private_column or _if_there(config, column), format=config.private_format
    )
    check_counts(len(texts), len(released))
    if isinstance(mechanism, WordVectorMechanism):
        words = WordRows(texts, released.vectors, attributes)
        report = audit_words(words, mechanism, sample=config.sample, seed=config.seed, progress=progress)
    else:
        rows = ReleasedVectors(texts, released.matrix, attributes)
        report = attacked(rows, mechanism, sample=config.sample, seed=config.seed, progress=progress)
    report.facts = {"original": name_of(config.original), "private": name_of(config.private), **report.facts}
    return report


def audit_vectors(original: object, private: object, *, progress: WorkProgress | None = None, **options: Any) -> Report:
    """The report of attacks on released vectors; files or data in memory, options as in `VectorAuditConfig`."""
    return run(VectorAuditConfig(original=original, private=private, **options), progress)


def _originals(config: VectorAuditConfig) -> tuple[list[str], dict[str, list[str]], str]:
    with open_table(config.original, config.format) as table:
        name = choose_columns(table.columns, () if config.column is None else (config.column,), ()).texts[0]
        wanted = tuple(dict.fromkeys(config.attribute_columns))
        for each in wanted:
            check_column(each, table.columns)
        table.select(tuple(dict.fromkeys((name, *wanted))))
        texts: list[str] = []
        values: dict[str, list[str]] = {each: [] for each in wanted}
        for row, cells in table.rows():
            by_name = dict(zip(table.selected, cells, strict=True))
            texts.append(text_value(by_name[name], row, name))
            for each in wanted:
                values[each].append(label_of(by_name[each], row, each))
    return texts, values, name


def _if_there(config: VectorAuditConfig, column: str) -> str | None:
    """The column of the texts, if the vectors have it as well."""
    if str(config.private).lower().endswith(".npy") or hasattr(config.private, "ndim"):
        return None
    with open_table(config.private, config.private_format) as table:
        return column if column in table.columns else None


def _mechanism(config: VectorAuditConfig) -> VectorMechanism:
    """The mechanism of the release: what the user says, else what the card beside it says."""
    if config.mechanism is not None:
        options = {**config.options, **({} if config.epsilon is None else {"epsilon": config.epsilon})}
        built = build(config.mechanism, options, vectors=True)
    else:
        card = card_beside(config.private)
        if card is None or card.made_by.get("job") != EmbedConfig.job:
            raise BadInputError(
                "no-card-of-vectors",
                "there is no card of 'tacit embed' beside the vectors, so nobody says how they were made: name the "
                "mechanism with {option.mechanism[NAME]}, {option.epsilon[E]} and {option.options[NAME=VALUE]}",
            )
        options = {**config.options, **({} if config.epsilon is None else {"epsilon": config.epsilon})}
        built = mechanism_again(card.made_by, digests_of(card.guarantee.parameters), options)
    return cast("VectorMechanism", built)
