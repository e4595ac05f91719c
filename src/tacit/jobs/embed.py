"""The release of vectors in place of texts: a file or data in memory in, vectors and their card out.

    result = tacit.embed("tickets.csv", columns="text", epsilon=10, output="vectors.parquet")
    print(result)

The engines write the card, as for texts (`tacit.engines.release`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Self, cast

import numpy as np
from pydantic import Field, model_validator

from tacit.arrays import Floats32
from tacit.catalog import build, find, needs_of_mechanism
from tacit.engines.local import OnBlock, OnLedger, OnProgress, OnPromise, rewrite_file
from tacit.errors import BadInputError, BadParameterError
from tacit.jobs.config import Group, Option
from tacit.jobs.fields import Columns, Encoder, Epsilon, Input, MechanismName, Output
from tacit.jobs.rewrite import RewriteResult, planned, release_result, rewrite_job, several, warn_of_new_ledger
from tacit.jobs.row_release import RowReleaseConfig, call_text, shown_release, without_folder
from tacit.jobs.sources import needs_of_source
from tacit.jobs.values import mechanism_options
from tacit.mechanism import Mechanism
from tacit.needs import Ability, needs_of_ledger, needs_of_place
from tacit.parameters import parameters_of
from tacit.text.files import STANDARD_STREAM

if TYPE_CHECKING:
    from tacit.embeddings.base import VectorMechanism

__all__ = ["EmbedConfig", "EmbedResult", "embed", "run"]

DEFAULT_OF_LEVEL: Final = {"word": "word-laplace", "document": "forward"}
OWN_OPTIONS: Final = ("epsilon", "vectors", "encoder", "dimensions")
DECIDING: Final = (
    "mechanism", "level", "epsilon", "vectors", "options", "columns", "user_column", "user_mode", "documents_per_user",
    "encoder", "dimensions",
)  # fmt: skip
"""Options of an embedding that decide about the mechanism and its parameters."""
DIGEST: Final = " digest"
"""How the names of parameters end that say which public parts a mechanism has."""


class EmbedConfig(RowReleaseConfig):
    """Texts, how their vectors are released, and where the release, its card and what it spent are written."""

    job: ClassVar[str] = "embed"
    releases_vectors: ClassVar[bool] = True

    input: Annotated[Input, Field(description="The file to embed, or - for standard input.")]
    output: Annotated[
        Output[str | None],
        Field(description="The file of vectors to write: .parquet, .jsonl, .csv (a list in a cell) or .npy (one column "
              "alone); by default standard output."),
    ] = None  # fmt: skip
    columns: Annotated[
        Columns,
        Field(description="A column of texts to embed; may be repeated. By default the only column, or 'text'."),
    ] = ()
    mechanism: Annotated[
        MechanismName[str | None],
        Field(description="See 'tacit mechanisms'. By default forward, or word-laplace at the word level."),
    ] = None
    epsilon: Annotated[
        Epsilon[float | None],
        Field(description="The privacy budget of one text, word or user; smaller is more private."),
    ] = None
    encoder: Encoder = "static"
    dimensions: Annotated[
        int | None,
        Field(ge=1, description="Directions of public text that are kept, by default what suits the mechanism (64; 16 "
              "for angular): few for single texts, more for many together."),
        Option(Group.MODEL),
    ] = None  # fmt: skip

    @model_validator(mode="after")
    def _options_fit_together(self) -> Self:
        self.usual_options()
        self.check_card_file()
        if self.check_labels_stated() and self.label_epsilon is None:
            raise BadParameterError(
                "label-budget-missing",
                "{mechanism} does not cover labels: give them a budget of their own with {option.label_epsilon[E]}",
                mechanism=self.chosen_mechanism(),
            )
        self.check_ledger_options()
        return self

    def chosen_mechanism(self) -> str:
        if self.mechanism is None:
            return DEFAULT_OF_LEVEL[self.level or "document"]
        level = find(self.mechanism, vectors=True).level
        if self.level is not None and level != self.level:
            raise BadParameterError(
                "another-level",
                "{mechanism} works at the {level} level: leave out {option.level}",
                mechanism=self.mechanism,
                level=level,
            )
        return self.mechanism

    def usual_options(self) -> dict[str, Any]:
        """Encoder and dimensions are given to the mechanisms that have them, and refused for the others. Their
        defaults, which a written configuration names, mean nothing there."""
        options = mechanism_options(self.epsilon, self.vectors, self.options)
        name = self.chosen_mechanism()
        known = parameters_of(find(name, vectors=True))
        for option in ("encoder", "dimensions"):
            value = getattr(self, option)
            if option in known and value is not None and option not in options:
                options[option] = value
            elif option not in known and value != type(self).model_fields[option].default:
                raise BadParameterError(
                    "unknown-mechanism-option",
                    "{mechanism} has no option '{name}': leave out {option." + option + "}",
                    mechanism=name,
                    name=option,
                )
        return options

    def identity(self) -> dict[str, Any]:
        return {
            **super().identity(),
            "mechanism": self.chosen_mechanism(),
            "vectors": without_folder(self.vectors),
            "encoder": without_folder(self.encoder),
        }

    def needs(self) -> list[Ability]:
        own = [] if self.dry_run else needs_of_mechanism(self.chosen_mechanism(), self.usual_options(), vectors=True)
        return [
            *own,
            *needs_of_source(self.input, self.format),
            *needs_of_place(self.output),
            *needs_of_ledger(self.ledger),
        ]


@dataclass(frozen=True, repr=False)
class EmbedResult(RewriteResult):
    """A release of vectors: what was promised, the facts of the output, and the vectors where they are in memory."""

    @property
    def matrix(self) -> Floats32:
        """The released vectors as rows of one matrix."""
        if self.vectors is None or any(vector.ndim != 1 for vector in self.vectors):
            raise BadInputError(
                "no-matrix",
                "there is no matrix: the vectors went into a file, or each text has a vector for every word",
            )
        return np.stack(self.vectors)

    def __repr__(self) -> str:
        return f"<EmbedResult of {self.counts()}: {self.card!r}>"


def embed(
    input: object,
    mechanism: str | None = None,
    *,
    epsilon: float | None = None,
    columns: str | tuple[str, ...] | list[str] = (),
    keep: str | tuple[str, ...] | list[str] = (),
    output: str | Path | None = None,
    progress: OnProgress | None = None,
    **options: Any,
) -> EmbedResult:
    """The release of vectors of texts: of a file, a list of texts or rows, a pandas frame, an Arrow table, a data set.

    Without `output` the released rows are `result.data`, and the vectors `result.matrix`; `result.card` says what was
    promised. Further options are those of `EmbedConfig`.

    >>> import tacit
    >>> result = tacit.embed(["a charming film", "play some music"], epsilon=10)
    >>> result.matrix.shape, result.card.guarantee.epsilon
    ((2, 64), 10.0)
    """
    config = EmbedConfig(
        input=list(input) if isinstance(input, Iterator) else input,
        mechanism=mechanism,
        epsilon=epsilon,
        columns=several(columns),
        keep=several(keep),
        output=None if output is None else str(output),
        **options,
    )
    return run(config, progress)


def run(
    config: EmbedConfig,
    progress: OnProgress | None = None,
    *,
    mechanism: Mechanism | None = None,
    on_block: OnBlock | None = None,
    on_promise: OnPromise | None = None,
    on_ledger: OnLedger | None = None,
    command: str | None = None,
) -> EmbedResult:
    """The release that a configuration describes, with its card, or of a dry run the card alone; the callbacks are
    those of the engine."""
    job = replace(rewrite_job(config, mechanism), command=command or python_call(config))
    if config.dry_run:
        return _of_vectors(planned(config, job))
    published = rewrite_file(
        job, progress=progress, on_block=on_block, on_promise=on_promise, on_ledger=on_ledger or warn_of_new_ledger
    )
    return _of_vectors(release_result(config, job, published))


def _of_vectors(result: RewriteResult) -> EmbedResult:
    return EmbedResult(**vars(result))


def shown_options(config: EmbedConfig) -> list[tuple[str, str]]:
    """The options that the promise depends on, each with its value."""
    return shown_release(config, OWN_OPTIONS)


def python_call(config: EmbedConfig) -> str:
    """The call of `tacit.embed` that a card shows."""
    return call_text("embed", config, shown_options(config))


# A mechanism again, from the card of its release ----------------------------------------------------------------------


def digests_of(parameters: Mapping[str, object]) -> dict[str, str]:
    """The digests of the public parts of a mechanism (directions, codebook) that the parameters of a card name."""
    return {name: str(value) for name, value in parameters.items() if name.endswith(DIGEST)}


def mechanism_again(
    made_by: Mapping[str, object], digests: Mapping[str, str], options: Mapping[str, object] | None = None
) -> VectorMechanism:
    """The mechanism of a release of vectors from what its card says, loaded. A card names files without their folders,
    so the public parts are compared: vectors in other directions would be read as if they were the same."""
    values = {name: made_by[name] for name in DECIDING if name in made_by}
    made = EmbedConfig.model_validate({"input": STANDARD_STREAM, **values})
    chosen = {**made.of_mechanism(), **(options or {})}
    mechanism = cast("VectorMechanism", build(made.chosen_mechanism(), chosen, vectors=True))
    try:
        mechanism.prepare()
    except BadInputError as error:
        if error.code != "no-such-file":
            raise
        raise _other_public_parts(chosen) from None
    present = digests_of(mechanism.promise().parameters)
    if any(present.get(name) != value for name, value in digests.items()):
        raise _other_public_parts(chosen)
    return mechanism


def _other_public_parts(options: Mapping[str, object]) -> BadInputError:
    names = [str(options[name]) for name in ("public", "vectors", "codebook") if options.get(name)]
    return BadInputError(
        "other-public-parts",
        "the vectors were made with public files ({files}) that are not found under these names, or have another "
        "content: work in the folder that holds the same files, or use the version of Tacit that made the vectors",
        files=", ".join(names) or "those of Tacit",
    )
