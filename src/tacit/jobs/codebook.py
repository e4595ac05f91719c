"""A codebook of public sentences, from which the private codebook takes what it releases.

codebook = tacit.jobs.codebook.build("questions.txt", public="my public questions", output="questions-codebook")
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

from pydantic import Field, model_validator

from tacit.documents.codebook_build import SIZES, build_codebook
from tacit.documents.codebook_public import PublicCodebook
from tacit.documents.staircase import staircase_shares
from tacit.encoders import encoder_needs, load_encoder
from tacit.errors import BadParameterError
from tacit.guarantee import Provenance
from tacit.jobs.cluster import encoded_texts
from tacit.jobs.config import Group, Option, Varied
from tacit.jobs.fields import (
    Device,
    Encoder,
    Format,
    License,
    Output,
    PublicName,
    PublicSeed,
    PublicText,
    UsualColumn,
)
from tacit.jobs.running import EngineOptions, on_its_device
from tacit.jobs.sources import needs_of_source
from tacit.jobs.values import CommaSeparated
from tacit.needs import CLUSTERING, Ability
from tacit.places import refuse_taken_folder
from tacit.progress import StepProgress
from tacit.text.files import choose_columns, open_table, text_value


class CodebookConfig(EngineOptions):
    """Public text, how it is encoded, and where the codebook goes."""

    job: ClassVar[str] = "codebook"

    text: Annotated[
        PublicText,
        Field(description="A file of public texts (txt, csv, tsv, jsonl …)."),
        Varied(metavar="PUBLIC_TEXT"),
    ]
    output: Annotated[Output[Path], Field(description="The folder to write; it must not exist yet.")]
    public: PublicName = None
    column: UsualColumn = None
    format: Format = None
    license: License = ""
    encoder: Encoder = "minilm"
    device: Device = "auto"
    sizes: Annotated[
        tuple[Annotated[int, Field(ge=1)], ...],
        CommaSeparated,
        Field(min_length=1, description="Numbers of cells; by default 16 to 16384 in steps of 4."),
        Option(Group.MODEL, comma_separated=True, metavar="N,N,…"),
    ] = SIZES
    seed: PublicSeed = 0

    def needs(self) -> list[Ability]:
        return [*super().needs(), *encoder_needs(self.encoder), CLUSTERING, *needs_of_source(self.text, self.format)]

    @model_validator(mode="after")
    def _text_is_declared_public(self) -> Self:
        if not (self.public or "").strip():
            raise BadParameterError(
                "codebook-text-not-public",
                "every release repeats sentences of the codebook word for word, so they must be public: if they are, "
                "say so with {option.public[NAME]}; never build a codebook from the texts you want to protect",
            )
        return self


@on_its_device
def run(config: CodebookConfig, progress: StepProgress | None = None) -> tuple[PublicCodebook, int]:
    """The codebook, which is saved in its folder, and of how many texts it was chosen."""
    refuse_taken_folder(config.output)
    name = str(config.public).strip()
    with config.cluster() as cluster:
        vectors = None
        if cluster is None:
            texts = _texts(config.text, config.format, config.column)
        else:
            texts, vectors = encoded_texts(cluster, config.text, config.column, config.format, config.encoder, progress)
        codebook = build_codebook(
            texts,
            Provenance(name, name),
            load_encoder(config.encoder),
            vectors=vectors,
            license=config.license,
            sizes=config.sizes,
            seed=config.seed,
            progress=progress,
        )
    codebook.save(config.output)
    return codebook, len(texts)


def build(
    text: object, *, output: str | Path, public: str, progress: StepProgress | None = None, **options: Any
) -> PublicCodebook:
    """The codebook of some public text; options as in `CodebookConfig`."""
    return run(CodebookConfig(text=text, output=Path(output), public=public, **options), progress)[0]


def _texts(source: object, format: str | None, column: str | None) -> list[str]:
    with open_table(source, format) as table:
        names = choose_columns(table.columns, () if column is None else (column,), ()).texts
        table.select(names)
        return [text_value(value, row, names[0]) for row, values in table.rows() for value in values]


def expectations(codebook: PublicCodebook, epsilons: tuple[float, ...]) -> list[dict[str, float]]:
    """The choice at each budget, and the similarity of one sentence beside that of a sentence drawn blindly."""
    rows = []
    for epsilon in epsilons:
        symbols = codebook.choose_symbols(epsilon)
        choice = codebook.choose(epsilon / symbols)
        t, w = staircase_shares(epsilon / symbols, choice.k, choice.s)
        rows.append(
            {
                "epsilon": epsilon,
                "k": choice.k,
                "s": choice.s,
                "symbols": symbols,
                "near": choice.s * t / (choice.s * t + (choice.k - choice.s) * w),
                "similarity": choice.similarity,
                "chance": codebook.level(choice.k).chance(),
            }
        )
    return rows
