"""The evaluation of released texts: their utility beside floors, ceilings and the promise on their cards.

report = tacit.evaluate("reviews.csv", "private.csv", label_column="rating")
print(report)
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from tacit.auditing.text.release import readable_card, was_shuffled
from tacit.encoders import encoder_needs
from tacit.engines.cluster.session import Cluster
from tacit.errors import BadInputError, BadParameterError
from tacit.evaluation.learners import Task as DownstreamTask
from tacit.evaluation.releases import ComparedRows, RowFiles, read_comparison
from tacit.evaluation.rows import read_rows
from tacit.evaluation.similarity import DEFAULT_METRICS, check_metrics
from tacit.evaluation.utility import (
    UtilityPlan,
    utility_report,
)
from tacit.evaluation.vectors import TextVectors
from tacit.jobs.cluster import cluster_encoder, measure_releases, read_data_set
from tacit.jobs.config import Group, Option, Varied
from tacit.jobs.fields import (
    Columns,
    Device,
    Encoder,
    Format,
    LabelColumn,
    LanguageModel,
    Original,
    Private,
    PrivateFormat,
    Sample,
    Task,
    TestRows,
)
from tacit.jobs.group_fields import ByClass, GroupColumn
from tacit.jobs.running import EngineOptions, on_its_device
from tacit.jobs.sources import Source, needs_of_source
from tacit.jobs.values import CommaSeparated
from tacit.needs import BLEU, CLASSIFIERS, MODELS, PLOTS, Ability, needs_of_language_model
from tacit.progress import WorkProgress
from tacit.report import Report

if TYPE_CHECKING:
    from tacit.errors import MissingExtraError
    from tacit.evaluation.similarity import Measure

DEFAULT = "default"


class EvaluateConfig(EngineOptions):
    """Originals, the releases made from them, and what to measure."""

    job: ClassVar[str] = "evaluate"

    original: Original
    private: Annotated[
        Private[tuple[Source, ...]],
        Field(min_length=1, description="One or more files that were made from it, row by row."),
        Varied(metavar="PRIVATE..."),
    ]
    columns: Columns = ()
    private_columns: Annotated[
        tuple[str, ...], Field(description="The same in PRIVATE, if it is called otherwise."), Option(Group.DATA)
    ] = ()
    label_column: LabelColumn[str | None] = None
    test: Annotated[
        TestRows,
        Field(description="Original test texts with labels; by default a fifth of the rows is set aside."),
    ] = None
    private_tests: Annotated[
        tuple[Source, ...],
        Field(description="The rewritten test texts, one file per PRIVATE, in the same order."),
        Option(Group.DATA, private=True),
    ] = ()
    format: Format = None
    private_format: PrivateFormat = None
    task: Annotated[Task[DownstreamTask], Field(description="The downstream task."), Varied(group=Group.MEASURES)] = (
        "classification"
    )
    learner: Annotated[
        Literal["probe", "tfidf", "lstm", "transformer"],
        Field(description="What is trained on the released texts; a probe is fast."),
        Option(Group.MEASURES),
    ] = "probe"
    group_column: GroupColumn = None
    by_class: ByClass = False
    metrics: Annotated[
        tuple[str, ...],
        CommaSeparated,
        Field(
            description="Of: bleu, chrf, bertscore, cosine, kept-words, verbatim, length, perplexity; or all, none, "
            "default."
        ),
        Option(Group.MEASURES, comma_separated=True),
    ] = (DEFAULT,)
    seeds: Annotated[
        int, Field(ge=1, description="How many times a learner with randomness is trained."), Option(Group.MEASURES)
    ] = 3
    sample: Annotated[
        Sample, Field(ge=2, description="At most this many texts for the measures that need a neural model.")
    ] = 2000
    encoder: Encoder = "minilm"
    language_model: LanguageModel[str] = "smollm2"
    device: Device = "auto"

    def needs(self) -> list[Ability]:
        measures = set() if self.metrics == (DEFAULT,) else set(self.chosen_metrics)
        learner = self.learner if self.label_column is not None else None
        abilities = [*super().needs(), *needs_of_source(self.original, self.format)]
        for source in self.private:
            abilities += needs_of_source(source, self.private_format)
        if measures & {"bleu", "chrf"}:
            abilities.append(BLEU)
        if measures & {"bertscore", "cosine"} or learner in ("probe", "transformer"):
            abilities += encoder_needs(self.encoder)
        if "perplexity" in measures:
            abilities += needs_of_language_model(self.language_model)
        if learner in ("probe", "tfidf"):
            abilities.append(CLASSIFIERS)
        if learner == "lstm":
            abilities.append(MODELS)
        return [*abilities, *([PLOTS] if learner is not None or len(self.private) > 1 else [])]

    @model_validator(mode="after")
    def _options_fit_together(self) -> Self:
        if self.label_column is None and (self.test is not None or self.private_tests):
            raise BadParameterError(
                "test-without-labels",
                "test files measure a downstream task: say where its labels are, with {option.label_column}",
            )
        if self.label_column is None and (self.group_column is not None or self.by_class):
            raise BadParameterError(
                "groups-without-labels",
                "scores by group are those of a downstream task: say where its labels are, with {option.label_column}",
            )
        if self.private_tests and self.test is None:
            raise BadParameterError(
                "private-test-without-test",
                "{option.private_tests} needs {option.test}, the original texts that it was made from",
            )
        if self.private_tests and len(self.private_tests) != len(self.private):
            raise BadParameterError(
                "private-tests-do-not-match",
                "give {option.private_tests} once for each of the {releases} private files",
                releases=len(self.private),
            )
        self.chosen_metrics  # noqa: B018  # a name that does not exist is an error of the configuration
        return self

    @property
    def chosen_metrics(self) -> tuple[str, ...]:
        return DEFAULT_METRICS if self.metrics == (DEFAULT,) else check_metrics(self.metrics)


@on_its_device
def run(config: EvaluateConfig, progress: WorkProgress | None = None) -> Report:
    """The report of an evaluation: similarity, a downstream task if there are labels, and the trade-off."""
    _refuse_shuffled(config)
    with config.cluster() as cluster:
        comparison = read_comparison(
            _files(config), config.task, read_rows if cluster is None else partial(read_data_set, cluster)
        )
        plan = UtilityPlan(
            metrics=config.chosen_metrics,
            strict=config.metrics != (DEFAULT,),
            learner=config.learner,
            vectors=TextVectors(config.encoder if cluster is None else cluster_encoder(cluster, config.encoder)),
            language_model=config.language_model,
            seeds=config.seeds,
            sample=config.sample,
            group_column=config.group_column,
            by_class=config.by_class,
            measured=None if cluster is None else _measured(config, cluster, comparison, progress),
            progress=progress,
        )
        return utility_report(comparison, plan, config.encoder)


def evaluate(
    original: object, *private: object, aligned: bool = True, progress: WorkProgress | None = None, **options: Any
) -> Report:
    """The report on how useful releases of `original` are; files or data in memory, options as in `EvaluateConfig`.

    aligned   whether each release was made of it row by row; if not, it is one synthetic corpus, and options are those
              of `CorpusConfig` (`tacit.evaluate_corpus`)

    >>> import tacit
    >>> report = tacit.evaluate(["good film", "bad film"], ["good movie", "bad movie"], metrics="kept-words")
    >>> report.title
    'How useful the released texts are'
    """
    if not aligned:
        from tacit.jobs.evaluate_corpus import evaluate_corpus

        if len(private) != 1:
            raise BadParameterError(
                "several-corpora", "give one synthetic corpus at a time, not {given}", given=len(private)
            )
        return evaluate_corpus(original, private[0], progress=progress, **options)
    return run(EvaluateConfig(original=original, private=private, **options), progress)


def _refuse_shuffled(config: EvaluateConfig) -> None:
    """The error for a release that cannot be compared with the originals row by row."""
    if any(was_shuffled(readable_card(private)) for private in (*config.private, *config.private_tests)):
        raise BadInputError(
            "shuffled-release",
            "the card says that the rows of this release were shuffled, so they cannot be compared with the originals "
            "row by row: judge it as a corpus, with 'tacit evaluate corpus' or aligned=False in Python",
        )


def _files(config: EvaluateConfig) -> RowFiles:
    return RowFiles(
        original=config.original,
        private=config.private,
        columns=config.columns,
        private_columns=config.private_columns,
        label_column=config.label_column,
        test=config.test,
        private_tests=config.private_tests,
        format=config.format,
        private_format=config.private_format,
    )


def _measured(
    config: EvaluateConfig, cluster: Cluster, comparison: ComparedRows, progress: WorkProgress | None
) -> dict[tuple[str, str], tuple[list[Measure], MissingExtraError | None]]:
    return measure_releases(
        cluster, comparison.original.all_texts, {name: rows.all_texts for name, rows in comparison.releases.items()},
        config.chosen_metrics, encoder=config.encoder, language_model=config.language_model, limit=config.sample,
        progress=progress,
    )  # fmt: skip
