"""Options of a corpus by matching: the private rows or a sketch of them, the public sentences, the corpus."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from tacit.errors import BadInputError, BadParameterError
from tacit.jobs.config import Group, Option, Varied
from tacit.jobs.fields import (
    USUAL_POOLS,
    Epsilon,
    FromSketch,
    Output,
    Pools,
    SampleSeed,
    SynthesisWay,
    SyntheticRowCount,
)
from tacit.jobs.sketched_rows import PrivateRows, SketchConfig, SketchedRows
from tacit.matching.subjects import USUAL_SHARE
from tacit.needs import Ability, needs_of_language_model, needs_of_place
from tacit.places import refuse_existing
from tacit.text.files import format_of


class MatchingConfig(SketchedRows):
    """Private rows and what pays for their sketch, or a sketch that exists; the public sentences; the corpus."""

    job: ClassVar[str] = "synthesize"

    data: Annotated[PrivateRows, Varied(metavar="[DATA]")] = None
    output: Annotated[Output[Path], Field(description="The corpus; its card stands beside it.")] = Path("synthetic.csv")
    epsilon: Annotated[Epsilon[float | None], Field(gt=0, description="The privacy budget of one record or user.")] = (
        None
    )
    by: SynthesisWay[Literal["matching"]] = "matching"
    from_sketch: Annotated[FromSketch, Field(description="Draw from a sketch that exists, at no further cost.")] = None
    keep_sketch: Annotated[
        Path | None,
        Field(description="Where the sketch goes; by default beside the corpus."),
        Option(Group.DATA, metavar="FILE"),
    ] = None
    pools: Annotated[
        Pools,
        Field(min_length=1, description="Public sentences to draw from: a name of 'tacit pool list', or a file of "
              "'tacit pool build'; may be repeated."),
    ] = USUAL_POOLS  # fmt: skip
    rows: Annotated[
        SyntheticRowCount[int | None],
        Field(
            description="Rows to draw; by default as many as private ones, at least 30,000 and 500 a label "
            "(fewer of long texts)."
        ),
    ] = None
    keep_proportions: Annotated[
        bool,
        Field(description="Draw labels in their noisy proportions. By default a rare label gets at least a third of "
              "an equal part, and at most 1 row in 30, so that it can be learned."),
        Option(Group.WRITING),
    ] = False  # fmt: skip
    subject_lines: Annotated[
        float,
        Field(ge=0, le=1, description="The share of rows of one sentence that begin with the public name of their "
              "label, like a subject line: learners of words gain. Not with several label columns."),
        Option(Group.WRITING, metavar="SHARE"),
    ] = USUAL_SHARE  # fmt: skip
    evolve: Annotated[
        int,
        Field(ge=0, description="Rounds in which the best sentences are varied against the fixed sketch: they cost no "
              "budget, and go on after an interruption. Without a writer no gain is shown for them."),
        Option(Group.WRITING, metavar="ROUNDS"),
    ] = 0  # fmt: skip
    writer: Annotated[
        str | None,
        Field(description="A public causal language model that takes part in the rounds: 'smollm2', a folder, or a hub "
              "name."),
        Option(Group.WRITING, metavar="MODEL"),
    ] = None  # fmt: skip
    sample_seed: SampleSeed = None
    report: Annotated[
        Literal["shareable", "private"] | None,
        Field(description="Also write a page with pictures of the release, which may be shared with it; 'private' "
              "writes a second one for you alone, with the private rows, scores of learners and an attack."),
        Option(Group.RUN),
    ] = None  # fmt: skip

    def needs(self) -> list[Ability]:
        written = needs_of_place(str(self.output))
        if self.writer is not None:
            written += needs_of_language_model(self.writer)
        return written if self.from_sketch is not None else [*super().needs(), *written]

    @model_validator(mode="after")
    def _rows_or_a_sketch(self) -> Self:
        if (self.data is None) == (self.from_sketch is None):
            raise BadParameterError(
                "rows-or-sketch",
                "give the private rows, or {option.from_sketch[SKETCH]} to draw from a sketch that exists",
            )
        if self.data is not None and self.epsilon is None:
            raise BadParameterError(
                "missing-epsilon", "say how much privacy a record gets, such as {option.epsilon[1]}"
            )
        if self.from_sketch is not None and (self.epsilon is not None or self.keep_sketch is not None):
            raise BadParameterError(
                "budget-of-existing-sketch",
                "a sketch that exists has its budget already: leave {option.epsilon} and {option.keep_sketch} out",
            )
        if self.from_sketch is not None and self.report == "private":
            raise BadParameterError(
                "private-report-of-sketch",
                "a private report needs the private rows, and a sketch does not have them: use "
                "{option.report[shareable]}",
            )
        if self.writer is not None and not self.evolve:
            raise BadParameterError(
                "writer-without-rounds", "{option.writer} writes in the rounds of {option.evolve[2]}"
            )
        return self

    @property
    def public_sentences(self) -> int | None:
        """The public number of sentences of a text; None if the release says how long texts are."""
        return None if self.sentences == "auto" else self.sentences

    @property
    def sketch_path(self) -> Path:
        """The file of the sketch."""
        usual = self.output.with_name(f"{self.output.name.split('.')[0]}-sketch.tacit")
        return self.from_sketch or self.keep_sketch or usual

    @property
    def report_path(self) -> Path:
        """The page about the release that may be shared, if one is wanted."""
        return self.output.with_name(f"{self.output.name.split('.')[0]}-report.html")

    @property
    def private_report_path(self) -> Path:
        """The page for the holder of the rows, if one is wanted."""
        return self.output.with_name(f"{self.output.name.split('.')[0]}-PRIVATE-report.html")

    def sketch_config(self) -> SketchConfig:
        """The same rows and labels as a job that builds their sketch."""
        assert self.epsilon is not None
        shared = {name: getattr(self, name) for name in SketchedRows.model_fields}
        return SketchConfig(**shared, epsilon=self.epsilon, output=self.sketch_path)

    def check_files(self) -> None:
        """Refuse what cannot be written before anything is spent."""
        format_of(str(self.output))
        # First of all, since whoever forces a new corpus at this name would pay for a new sketch as well.
        if self.from_sketch is None and self.sketch_path.exists() and not self.force:
            raise BadInputError(
                "sketch-exists",
                "{path} is a sketch that was paid for: draw from it at no further cost with {option.from_sketch}, or "
                "build another with {option.force}, which spends the budget again",
                path=self.sketch_path,
            )
        refuse_existing(self.output, force=self.force)
        if self.report is not None:
            refuse_existing(self.report_path, force=self.force)
        if self.report == "private":
            refuse_existing(self.private_report_path, force=self.force)
