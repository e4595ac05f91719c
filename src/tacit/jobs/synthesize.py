"""Synthetic rows: a corpus that may be shared in place of private rows.

made = tacit.synthesize("tickets.csv", label_column="intent", labels=["refund", "delivery"], epsilon=1)
made.texts, made.card

The usual way is matching: noisy sums of the rows are released once, as a sketch, and public sentences are drawn by it.
`by="training"` trains a language model under differential privacy instead (`tacit.jobs.synthesize_training`).
"""

from __future__ import annotations

import datetime
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from tacit.atomic import write_file
from tacit.card import Card, ReleaseFacts
from tacit.errors import BadInputError, BadParameterError
from tacit.guarantee import Guarantee
from tacit.jobs.config import Group, Option, Varied
from tacit.jobs.fields import USUAL_POOLS, Epsilon, Output, Pools, SampleSeed, SynthesisWay, SyntheticRowCount
from tacit.jobs.sketch import SketchConfig
from tacit.jobs.sketch import run as build
from tacit.jobs.sketch_input import first_label_source, label_rule, row_source
from tacit.jobs.sketched_rows import PrivateRows, SketchedRows
from tacit.needs import Ability, needs_of_language_model, needs_of_place
from tacit.progress import WorkProgress
from tacit.report.parts import refuse_existing
from tacit.text.files import format_of, write_columns, write_whole
from tacit.text.tokens import split

if TYPE_CHECKING:
    from tacit.jobs.synthesize_training import SyntheticRows
    from tacit.matching.corpus import MatchedCorpus
    from tacit.matching.evolution.rounds import SentenceWriter
    from tacit.matching.pool import SentencePool
    from tacit.matching.sketch import Sketch

"""The pools that are used if none are named; both come with Tacit."""
TEXT_COLUMN = "text"
LABEL_COLUMN = "label"
TOPIC_COLUMN = "topic"


class MatchingConfig(SketchedRows):
    """Private rows and what pays for their sketch, or a sketch that exists; the public sentences; the corpus."""

    job: ClassVar[str] = "synthesize"

    data: Annotated[PrivateRows, Varied(metavar="[DATA]")] = None
    output: Annotated[Output[Path], Field(description="The corpus; its card stands beside it.")] = Path("synthetic.csv")
    epsilon: Annotated[Epsilon[float | None], Field(gt=0, description="The privacy budget of one record or user.")] = (
        None
    )
    by: SynthesisWay[Literal["matching"]] = "matching"
    from_sketch: Annotated[
        Path | None,
        Field(description="Draw from a sketch that exists, at no further cost."),
        Option(Group.DATA, name="from", metavar="SKETCH"),
    ] = None
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
        Field(description="Rows to draw; by default as many as private ones, at least 30,000 and 500 a label."),
    ] = None
    evolve: Annotated[
        int,
        Field(ge=0, description="Rounds in which the best sentences are varied against the fixed sketch: they cost no "
              "budget, and go on after an interruption. No gain is shown for them yet."),
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


@dataclass(frozen=True)
class MatchedRows:
    """A corpus of public sentences with labels, column by column, with its card.

    output       the file that holds it; card and attribution stand beside it
    sketch_path  the sketch that it was drawn from, which gives any amount more at no further cost
    report_path  the page about it that may be shared, if one was written
    private_report_path  the page for the holder of the private rows, if one was written
    """

    columns: Mapping[str, Sequence[str]]
    text_column: str
    card: Card
    output: Path
    sketch_path: Path
    report_path: Path | None = None
    private_report_path: Path | None = None

    @property
    def guarantee(self) -> Guarantee:
        return self.card.guarantee

    @property
    def texts(self) -> list[str]:
        return list(self.columns[self.text_column])

    @property
    def rows(self) -> list[dict[str, str]]:
        """The rows, each by the names of its columns."""
        return [dict(zip(self.columns, values, strict=True)) for values in zip(*self.columns.values(), strict=True)]

    def __len__(self) -> int:
        return len(self.columns[self.text_column])

    def __str__(self) -> str:
        return f"{len(self):,} rows in {self.output}: {self.guarantee}"


def run(config: MatchingConfig, progress: WorkProgress | None = None) -> MatchedRows:
    """A corpus in a file, with its card and attribution; the sketch is built and saved first unless one is given.

    What was paid for is never lost: the sketch is on the disk before any sentence is drawn.
    """
    from tacit.jobs.private_pools import refuse_private_pools
    from tacit.matching.artifact import read_sketch
    from tacit.matching.corpus import matched_corpus
    from tacit.matching.drawable import check_drawable, warn_of_noise
    from tacit.matching.pool import load_pool

    config.check_files()
    pools = [load_pool(name) for name in config.pools]
    if config.from_sketch is None:
        refuse_private_pools(config.data, config.format, pools)
    writer = _loaded_writer(config)  # before anything is paid for: a name that is wrong costs nothing
    if config.from_sketch is None and config.labels_from_data is None:
        check_drawable(label_rule(config).names, pools)
    sketch = _built_sketch(config, progress) if config.from_sketch is None else read_sketch(config.from_sketch)
    check_drawable(sketch.labels, pools)
    warn_of_noise(sketch)
    seed = secrets.randbelow(1 << 31) if config.sample_seed is None else config.sample_seed
    if config.evolve:
        pools = [*pools, *_evolved(config, sketch, pools, writer, progress)]
    corpus = matched_corpus(sketch, pools, rows=config.rows, seed=seed, progress=progress)
    if config.evolve:
        corpus = _with_evolution(config, corpus, writer)
    made = _written(config, corpus)
    if config.report is None:
        return made
    return _with_report(config, made, sketch, pools, corpus, progress)


def _loaded_writer(config: MatchingConfig) -> SentenceWriter | None:
    """The language model that takes part in the rounds, if one does."""
    if config.writer is None:
        return None
    from tacit.documents.language_models.writing import PromptedWriter

    return PromptedWriter.of(config.writer)


def _evolved(
    config: MatchingConfig,
    sketch: Sketch,
    pools: Sequence[SentencePool],
    writer: SentenceWriter | None,
    progress: WorkProgress | None,
) -> list[SentencePool]:
    """The pool of what the rounds made, if they made anything."""
    from tacit.matching.evolution.rounds import Evolution, evolved_pool

    stem = config.output.name.split(".")[0]
    evolution = Evolution(config.evolve, config.sample_seed or 0, writer, config.output.parent, stem)
    pool = evolved_pool(sketch, pools, evolution, progress)
    return [] if pool is None else [pool]


def _with_evolution(config: MatchingConfig, corpus: MatchedCorpus, writer: SentenceWriter | None) -> MatchedCorpus:
    """The corpus whose card says how sentences were varied."""
    rounds = f"{config.evolve} rounds against the released sketch (post-processing, at no cost)"
    written = "" if writer is None else f"; a public language model took part: {writer.source}"
    parameters = {**corpus.guarantee.parameters, "evolved sentences": rounds + written}
    return replace(corpus, guarantee=replace(corpus.guarantee, parameters=parameters))


def _with_report(
    config: MatchingConfig,
    made: MatchedRows,
    sketch: Sketch,
    pools: Sequence[SentencePool],
    corpus: MatchedCorpus,
    progress: WorkProgress | None,
) -> MatchedRows:
    """The same rows with the page about them, which sees the release and the pools only, and the page for the holder of
    the rows, if that is wanted."""
    from tacit.jobs.release_report import public_release, release_page
    from tacit.matching.joint_corpus import column_view

    labels, source = corpus.labels, row_source(config)
    if corpus.columns:  # the pages show one label of a row: that of the first column
        sketch, labels = column_view(sketch, 0), next(iter(corpus.columns.values()))
        source = first_label_source(config)
    release = public_release(sketch, pools, corpus.texts, labels, made.card)
    write_whole(config.report_path, release_page(release))
    if config.report != "private":
        return replace(made, report_path=config.report_path)
    from tacit.jobs.private_report import held_rows, judged, private_page

    held = held_rows(source, sketch)
    page = private_page(release, held, judged(release, held, progress))
    write_file(config.private_report_path, page.encode(), private=True)
    return replace(made, report_path=config.report_path, private_report_path=config.private_report_path)


def _built_sketch(config: MatchingConfig, progress: WorkProgress | None) -> Sketch:
    shown = None if progress is None else (lambda done, total: progress("reading the rows", done, total))
    return build(config.sketch_config(), shown).sketch


def _written(config: MatchingConfig, corpus: MatchedCorpus) -> MatchedRows:
    text, label = _column_names(config)
    labels = {name: list(values) for name, values in corpus.columns.items()} or {label: list(corpus.labels)}
    columns = {text: list(corpus.texts), **labels}
    card = Card(corpus.guarantee, _facts(config, corpus))
    # Card and attribution first: no corpus is there without them.
    write_whole(Path(f"{config.output}.card.json"), card.to_json())
    write_whole(Path(f"{config.output}.card.md"), card.to_markdown())
    write_whole(Path(f"{config.output}.ATTRIBUTION.txt"), corpus.attribution)
    write_columns(config.output, columns, force=True)
    return MatchedRows(columns, text, card, config.output, config.sketch_path)


def _column_names(config: MatchingConfig) -> tuple[str, str]:
    """The names of the text and the label: those that were typed, so that learners find the columns that they know."""
    text = config.column or TEXT_COLUMN
    label = config.label_column or (LABEL_COLUMN if config.from_sketch is not None else TOPIC_COLUMN)
    return text, label


def _facts(config: MatchingConfig, corpus: MatchedCorpus) -> ReleaseFacts:
    lengths = [len(split(text)) for text in corpus.texts]
    return ReleaseFacts(
        rows=len(corpus),
        documents=len(corpus),
        units=sum(lengths),
        longest_document=max(lengths),
        longest_row=max(lengths),
        output=config.output.name,
        command="tacit synthesize",
        created=datetime.datetime.now(datetime.UTC).date().isoformat(),
        configuration=config.identity(),
    )


def synthesize(
    data: object = None, *, by: Literal["matching", "training"] = "matching", progress: Any = None, **options: Any
) -> MatchedRows | SyntheticRows:
    """Synthetic rows that may be shared; a file or data in memory.

    data   a file, a list of rows, a pandas frame, an Arrow table, a data set; not needed with `from_sketch`
    by     "matching" (options as in `MatchingConfig`), or "training" (as in `TrainedSynthesisConfig`)

        rows = [{"text": "where is my parcel", "intent": "delivery"}, ...]
        made = tacit.synthesize(rows, epsilon=1, label_column="intent", labels=["delivery", "refund"])
        made.rows[0], made.card
    """
    if by == "training":
        from tacit.jobs import synthesize_training

        return synthesize_training.run(synthesize_training.TrainedSynthesisConfig(data=data, **options), progress)
    return run(MatchingConfig(data=data, by=by, **options), progress)
