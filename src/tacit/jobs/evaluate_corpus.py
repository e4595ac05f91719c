"""How good is a synthetic corpus in place of the originals? No row of it belongs to a row of theirs.

report = tacit.evaluate_corpus("tickets.csv", "synthetic.csv", label_column="intent", test="tickets-test.csv")
print(report)
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Self

from pydantic import Field, model_validator

from tacit.encoders import encoder_needs
from tacit.errors import BadInputError, BadParameterError
from tacit.evaluation.corpus.clouds import cloud_distances
from tacit.evaluation.corpus.facts import facts_in
from tacit.evaluation.corpus.fluency import fluency, installed_model
from tacit.evaluation.corpus.learning import LETTERS, TRANSFORMER, USUAL_LEARNERS, WORDS, corpus_scores
from tacit.evaluation.corpus.public import rows_by_name
from tacit.evaluation.corpus.report import CorpusMeasures, corpus_report
from tacit.evaluation.corpus.wording import label_shares, wordings
from tacit.evaluation.downstream import Labeled, split_rows
from tacit.evaluation.rows import TextRows, labels_of, read_rows
from tacit.jobs.config import Config, Group, Option, Varied
from tacit.jobs.fields import (
    USUAL_POOLS,
    Device,
    Encoder,
    Format,
    LabelColumn,
    LanguageModel,
    Original,
    Pools,
    TestRows,
    UsualColumn,
)
from tacit.jobs.named_labels import LabelBins
from tacit.jobs.running import on_its_device
from tacit.jobs.sources import Source, needs_of_source
from tacit.jobs.values import CommaSeparated
from tacit.matching.labels import NO_LABEL, Bins, label_name
from tacit.matching.pool import load_pool
from tacit.needs import MODELS, Ability, needs_of_language_model
from tacit.progress import WorkProgress, steps_of
from tacit.report import Finding, Light, Report

AUTO, NONE = "auto", "none"
UNLABELED = ""


class CorpusConfig(Config):
    """Originals, a synthetic corpus in place of them, other originals to test on, and what to measure."""

    job: ClassVar[str] = "evaluate corpus"

    original: Original
    synthetic: Annotated[
        Source,
        Field(description="The synthetic corpus, with the same columns."),
        Option(Group.DATA, positional=True, private=True),
    ]
    column: UsualColumn = None
    label_column: Annotated[
        LabelColumn[str | None],
        Field(description="The column of labels, in all files; without it no learners are trained."),
    ] = None
    synthetic_column: Annotated[
        str | None,
        Field(description="The column of texts in SYNTHETIC, if it is called otherwise."),
        Option(Group.DATA),
    ] = None
    synthetic_label_column: Annotated[
        str | None,
        Field(description="The column of labels in SYNTHETIC, if it is called otherwise."),
        Option(Group.DATA),
    ] = None
    bins: Annotated[
        LabelBins,
        Field(description="The labels of the originals are numbers, and the corpus was made with these bins."),
    ] = ()
    test: Annotated[
        TestRows,
        Field(description="Originals that the corpus was not made of, to test learners on and to know chance from; "
              "otherwise a fifth of ORIGINAL is set aside."),
    ] = None  # fmt: skip
    format: Format = None
    learners: Annotated[
        tuple[str, ...],
        CommaSeparated,
        Field(min_length=1, description="Of: words, letters, an encoder (static, minilm, …), transformer (MiniLM, "
              "fine-tuned: slow). The worst of them counts."),
        Option(Group.MEASURES, comma_separated=True),
    ] = USUAL_LEARNERS  # fmt: skip
    pools: Annotated[
        Pools,
        Field(description="Public sentences to compare with: a name of 'tacit pool list', a file of 'tacit pool "
              "build', or none; may be repeated."),
        Varied(group=Group.MEASURES),
    ] = USUAL_POOLS  # fmt: skip
    encoder: Annotated[Encoder, Field(description="Sentence encoder of the distance of the clouds.")] = "static"
    device: Device = "auto"
    language_model: Annotated[
        LanguageModel[str],
        Field(description="Public language model of the fluency: a name or folder; 'auto' takes smollm2 if it is "
              "installed and word triples of the pool otherwise; 'none' takes the triples."),
    ] = AUTO  # fmt: skip

    def needs(self) -> list[Ability]:
        abilities = [
            *needs_of_source(self.original, self.format),
            *needs_of_source(self.synthetic),
            *encoder_needs(self.encoder),
        ]
        for name in self.learners if self.label_column is not None else ():
            if name == TRANSFORMER:
                abilities += [MODELS, *encoder_needs("minilm")]
            elif name not in (WORDS, LETTERS):
                abilities += encoder_needs(name)
        if self.language_model not in (AUTO, NONE):
            abilities += needs_of_language_model(self.language_model)
        return abilities

    @model_validator(mode="after")
    def _learners_differ(self) -> Self:
        if len(set(self.learners)) != len(self.learners):
            raise BadParameterError("learner-twice", "a learner stands in {option.learners} twice: name each once")
        return self

    @property
    def pool_names(self) -> tuple[str, ...]:
        return tuple(name for name in self.pools if name != NONE)


@on_its_device
def run(config: CorpusConfig, progress: WorkProgress | None = None, *, figures: bool = False) -> Report:
    """The report on a corpus; it reads private rows and is private. With `figures`, drawings too."""
    original = _read(config.original, config.column, config.label_column, config.format)
    synthetic = _read(config.synthetic, config.synthetic_column or config.column, _label_of_synthetic(config), None)
    bins = Bins(config.bins) if config.bins else None
    test = None
    if config.test is not None:
        test = _rows(_read(config.test, config.column, config.label_column, None), config.label_column, bins)
    train, released = _rows(original, config.label_column, bins), _rows(synthetic, config.label_column)
    if not set(train.labels) & set(released.labels):
        raise BadInputError(
            "no-label-in-common",
            "no label of the originals occurs in the corpus: name the column of labels in each "
            "({option.label_column}, {option.synthetic_label_column}), and for numbers the bins that the corpus was "
            "made with ({option.bins[0,2,4]})",
        )
    pool = [sentence for name in config.pool_names for sentence in load_pool(name).sentences]
    steps = steps_of(progress)

    remarks = [] if test is not None else [_no_test_file(config.label_column is not None)]
    if len(train) < len(original):
        remarks.append(_without_label(len(original) - len(train), len(original)))
    scores = None
    if config.label_column is not None:
        part, tested = (train, test) if test is not None else _split(train)
        named = rows_by_name([str(label) for label in train.labels], pool) if pool else None
        scores = corpus_scores(part, released, tested, public=named, learners=config.learners, progress=progress)
    else:
        remarks.append(
            Finding("No learners", Light.NONE, "Without a column of labels nothing could be learned from the rows.")
        )
    model = installed_model() if config.language_model == AUTO else config.language_model
    if config.language_model == NONE:
        model = None
    measured = CorpusMeasures(
        labels=label_shares(train.labels, released.labels),
        wording=wordings(train, released),
        clouds=cloud_distances(train, released, pool, encoder=config.encoder),
        scores=scores,
        fluency=fluency(train, released, pool, model=model, progress=steps("fluency")),
        facts=None
        if test is None
        else facts_in(_texts(train), _texts(test), _texts(released), pool if config.pool_names else None),
        remarks=remarks,
    )
    facts: dict[str, object] = {
        "original": original.name,
        "rows": len(train),
        "synthetic": synthetic.name,
        "synthetic rows": len(released),
        "test rows": len(test) if test is not None else "a fifth of the originals" if scores is not None else None,
        "public sentences": ", ".join(config.pool_names) or None,
    }
    return corpus_report(measured, facts, figures=figures)


def evaluate_corpus(
    original: object,
    synthetic: object,
    *,
    progress: WorkProgress | None = None,
    figures: bool = False,
    **options: Any,
) -> Report:
    """The report on a synthetic corpus beside originals; files or data in memory, options as in `CorpusConfig`.

    >>> import tacit
    >>> rows = [{"text": f"{word} {number}", "label": word} for word in ("rain", "song") for number in range(40)]
    >>> report = tacit.evaluate_corpus(rows, rows, label_column="label", learners="words", pools=["none"])
    >>> report.title
    'How good a synthetic corpus is'
    """
    return run(CorpusConfig(original=original, synthetic=synthetic, **options), progress, figures=figures)


def _label_of_synthetic(config: CorpusConfig) -> str | None:
    return None if config.label_column is None else config.synthetic_label_column or config.label_column


def _read(source: object, column: str | None, label_column: str | None, format: str | None) -> TextRows:
    if column is not None:
        return read_rows(source, (column,), label_column, format)
    return read_rows(source, _text_column(source, label_column, format), label_column, format)


def _text_column(source: object, label_column: str | None, format: str | None) -> tuple[str, ...]:
    """The only column beside that of the labels, or 'text'."""
    from tacit.text.files import choose_columns, open_table

    with open_table(source, format) as table:
        kept = [label_column] if label_column is not None and label_column in table.columns else []
        return choose_columns(table.columns, (), kept).texts


def _rows(rows: TextRows, label_column: str | None, bins: Bins | None = None) -> Labeled:
    """Texts and labels by their names, so that 3, 3.0 and " 3" are one label, as for a sketch; numbers by their bins.
    Rows without a label are left out: a class of them is in no corpus."""
    if not len(rows):
        raise BadInputError("no-rows", "{name} has no rows", name=rows.name)
    if label_column is None:
        return Labeled(list(rows.texts[0]), [UNLABELED] * len(rows))
    names = [label_name(label) for label in labels_of(rows, label_column)]
    if bins is not None:
        places = bins.places([], names).tolist()
        names = [UNLABELED if place == NO_LABEL else bins.names[place] for place in places]
    kept = [row for row, name in enumerate(names) if name != UNLABELED]
    if not kept:
        raise BadInputError(
            "no-labels", "no row of {name} has a label in '{column}'", name=rows.name, column=label_column
        )
    return Labeled([rows.texts[0][row] for row in kept], [names[row] for row in kept])


def _split(rows: Labeled) -> tuple[Labeled, Labeled]:
    train, test = split_rows("classification", rows.labels)
    return rows.at(train), rows.at(test)


def _texts(rows: Labeled) -> list[str]:
    return [str(text) for text in rows.texts]


def _without_label(left_out: int, rows: int) -> Finding:
    return Finding(
        "Rows without a label",
        Light.NONE,
        f"{left_out:,} of {rows:,} originals have no label (or one in no bin) and were left out.",
    )


def _no_test_file(learned: bool) -> Finding:
    tested = (
        "Learners were tested on a fifth of the originals, which the corpus may have been made of. " if learned else ""
    )
    return Finding(
        "No test file",
        Light.AMBER,
        f"{tested}Facts and names were not looked for, because chance is known from rows that the corpus never saw: "
        "give other originals as the test file.",
    )
