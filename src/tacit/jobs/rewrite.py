"""The release of texts under differential privacy: a file or data in memory in, rewritten texts and their card out.

    result = tacit.rewrite("reviews.csv", columns="text", keep="stars", epsilon=2, output="private.csv")
    print(result)

The engines write the card (`tacit.engines.release`), whoever calls them.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from tacit.account.ledger import Ledger
from tacit.card import Card, ReleaseFacts, for_file, plain_sentence, row_sentences
from tacit.catalog import DEFAULT_MECHANISM, DEFAULT_OF_LEVEL, build, find, mechanism_names, needs_of_mechanism
from tacit.engines.charging import LedgerPlace
from tacit.engines.job import (
    CARD_KINDS,
    USUAL_CARDS,
    RewriteJob,
    card_kind,
    check_input,
    check_output_name,
    choose_for,
    choose_output_format,
    input_format,
)
from tacit.engines.local import OnBlock, OnLedger, OnProgress, OnPromise, rewrite_file
from tacit.engines.release import Published
from tacit.engines.users import UserRule
from tacit.errors import BadParameterError, TacitWarning
from tacit.guarantee import Guarantee, check_epsilon
from tacit.jobs.config import Group, Option, file_name
from tacit.jobs.fields import (
    Columns,
    CommaSeparated,
    DocumentsPerUser,
    Format,
    MechanismOptions,
    Source,
    UserMode,
    Vectors,
    mechanism_options,
    needs_of_source,
    split_at_commas,
)
from tacit.jobs.running import Running
from tacit.labels import LabelRule, labels_need_local_engine
from tacit.mechanism import Mechanism
from tacit.needs import Ability, needs_of_ledger, needs_of_place
from tacit.rounding import exact
from tacit.text.files import STANDARD_STREAM, FileFormat, Selection, open_table
from tacit.text.files.memory import in_kind_of, is_in_memory, memory_columns


def _card_kinds(value: Any) -> Any:
    """Kinds of cards: at least one, none twice."""
    kinds = tuple(dict.fromkeys(str(kind).lower() for kind in split_at_commas(value)))
    if not kinds or set(kinds) - set(CARD_KINDS):
        raise BadParameterError(
            "bad-card-kinds",
            "{option.card} takes a list of {kinds}, such as {option.card[json,md]}: a release always has a card",
            kinds=", ".join(CARD_KINDS),
        )
    return kinds


class RewriteConfig(Running):
    """Texts, how they are rewritten, and where the release, its card and what it spent are written."""

    job: ClassVar[str] = "rewrite"

    input: Annotated[
        Source,
        Field(description="The file to rewrite, or - for standard input."),
        Option(Group.DATA, positional=True, metavar="INPUT", private=True),
    ]
    output: Annotated[
        str | None,
        Field(description="The file to write; by default standard output."),
        Option(Group.DATA, private=True),
    ] = None
    columns: Annotated[
        Columns,
        Field(description="A column of texts to rewrite; may be repeated. By default the only column, or 'text'."),
    ] = ()
    keep: Annotated[
        tuple[str, ...],
        Field(
            description="A column to copy as it is, without any protection; may be repeated. All others are dropped."
        ),
        Option(Group.DATA),
    ] = ()
    format: Format = None
    mechanism: Annotated[
        str | None,
        Field(description=f"See 'tacit mechanisms'. By default {DEFAULT_MECHANISM}, or that of the level."),
        Option(Group.PRIVACY),
    ] = None
    level: Annotated[
        Literal["word", "document"] | None,
        Field(description="What one secret is: 'word' (every word on its own) or 'document' (a whole text)."),
        Option(Group.PRIVACY),
    ] = None
    epsilon: Annotated[
        float | None,
        Field(description="The privacy budget of one token, document or user; smaller is more private."),
        Option(Group.PRIVACY),
    ] = None
    vectors: Vectors = None
    options: Annotated[
        MechanismOptions,
        Field(
            default_factory=dict,
            description="Another option of the mechanism; may be repeated. 'tacit mechanisms NAME' lists them.",
        ),
    ]
    user_column: Annotated[
        str | None,
        Field(description="The column that says who wrote a row: epsilon is then the budget of a person (document "
              "level)."),
        Option(Group.PRIVACY),
    ] = None  # fmt: skip
    user_mode: UserMode = "divide"
    documents_per_user: DocumentsPerUser = 1
    randomize: Annotated[
        str | None,
        Field(description="A column of labels to release by randomized response; needs a label epsilon and the "
              "labels."),
        Option(Group.PRIVACY, metavar="COLUMN"),
    ] = None  # fmt: skip
    label_epsilon: Annotated[
        float | None,
        Field(description="The budget of the label of a row (or of a user's labels); adds to epsilon."),
        Option(Group.PRIVACY),
    ] = None
    labels: Annotated[
        tuple[str, ...],
        CommaSeparated,
        Field(description="All labels that exist, from public knowledge: never read off the data."),
        Option(Group.PRIVACY, comma_separated=True, metavar="A,B,C"),
    ] = ()
    refuse_nominal: Annotated[
        bool,
        Field(description="Stop, before any noise is drawn, where the card would say that the bound no longer protects "
              "(exit 3)."),
        Option(Group.PRIVACY, variable="TACIT_REFUSE_NOMINAL"),
    ] = False  # fmt: skip
    seed: Annotated[
        int | None,
        Field(description="Repeatable noise for tests. The output then has NO guarantee."),
        Option(Group.PRIVACY),
    ] = None
    card: Annotated[
        tuple[str, ...],
        BeforeValidator(_card_kinds),
        Field(description="Kinds of privacy cards beside the output: json, md, html."),
        Option(Group.PRIVACY, comma_separated=True, private=True),
    ] = USUAL_CARDS
    card_file: Annotated[
        Path | None,
        Field(description="Write the card to this file (.json, .md or .html) as well."),
        Option(Group.PRIVACY, private=True),
    ] = None
    ledger: Annotated[
        str | None,
        Field(description="Write down what is spent in this ledger, and keep its limits (see 'tacit ledger')."),
        Option(Group.BUDGET, metavar="FILE|URL", private=True),
    ] = None
    dataset: Annotated[
        str | None,
        Field(description="Name of the data set in the ledger: releases of one name add up. By default the name of the "
              "input."),
        Option(Group.BUDGET, private=True),
    ] = None  # fmt: skip
    document_column: Annotated[
        str | None,
        Field(description="The column that names a document in the ledger; by default it is recognized by its text."),
        Option(Group.BUDGET),
    ] = None
    resume: Annotated[bool, Field(description="Go on with a run that was stopped."), Option(Group.RUN)] = False
    force: Annotated[
        bool, Field(description="Overwrite the output, and throw away an unfinished run."), Option(Group.RUN)
    ] = False
    dry_run: Annotated[
        bool, Field(description="Show the privacy card without reading any text."), Option(Group.RUN)
    ] = False

    @model_validator(mode="after")
    def _options_fit_together(self) -> Self:
        mechanism_options(self.epsilon, self.vectors, self.options)
        if self.card_file is not None:
            card_kind(self.card_file)
        self._check_labels()
        self._check_ledger()
        return self

    def _check_labels(self) -> None:
        stated = [self.randomize is not None, self.label_epsilon is not None, bool(self.labels)]
        if any(stated) and not all(stated):
            raise BadParameterError(
                "labels-not-stated",
                "labels are randomized with all three of {option.randomize[COLUMN]}, {option.label_epsilon[E]} and "
                "{option.labels[A,B,C]}: the list must be known publicly, so it is never read off the data",
            )
        if self.randomize is not None and self.on_cluster:
            raise labels_need_local_engine()

    def _check_ledger(self) -> None:
        if self.ledger is None and (self.dataset is not None or self.document_column is not None):
            raise BadParameterError(
                "no-ledger",
                "{option.dataset} and {option.document_column} are for a ledger: name it with {option.ledger[FILE]}",
            )
        if self.ledger is not None and self.dataset is None and not self._has_name:
            raise BadParameterError(
                "data-set-without-name",
                "what is rewritten has no name of its own: give the data set one with {option.dataset[NAME]}",
            )

    @property
    def _has_name(self) -> bool:
        return not is_in_memory(self.input) and str(self.input) != STANDARD_STREAM

    def needs(self) -> list[Ability]:
        name = self._mechanism_name
        only_the_card = self.dry_run and name in mechanism_names("document")  # most cards need no model
        vectors = {} if self.vectors is None else {"vectors": self.vectors}
        return [
            *super().needs(),
            *([] if only_the_card else needs_of_mechanism(name, {**self.options, **vectors})),
            *needs_of_source(self.input, self.format),
            *needs_of_place(self.output),
            *needs_of_ledger(self.ledger),
        ]

    def identity(self) -> dict[str, Any]:
        """The values that decide what is released, without the folders of files."""
        values = super().identity()
        values["options"] = {name: _without_folder(value) for name, value in values["options"].items()}
        return {**values, "mechanism": self._mechanism_name, "vectors": _without_folder(self.vectors)}

    @property
    def _mechanism_name(self) -> str:
        return self.mechanism or DEFAULT_OF_LEVEL[self.level or "word"]

    # What is derived from the options -----------------------------------------------------------------------------

    def chosen_mechanism(self) -> str:
        """The name of the mechanism: the one that is named, or that of the level."""
        if self.mechanism is None:
            return self._mechanism_name
        level = find(self.mechanism).level
        if self.level is not None and level != self.level:
            raise BadParameterError(
                "another-level",
                "{mechanism} works at the {level} level: leave out {option.level}",
                mechanism=self.mechanism,
                level=level,
            )
        return self.mechanism

    def users(self) -> UserRule | None:
        """How the rows of one user are treated."""
        if self.user_column is None:
            return None
        return UserRule(self.user_column, self.user_mode, self.documents_per_user)

    def label_rule(self) -> LabelRule | None:
        """The labels to randomize; the budget of a user's labels is divided as that of the texts."""
        if self.randomize is None or self.label_epsilon is None:
            return None
        rule, users = LabelRule(self.labels, self.label_epsilon, self.randomize), self.users()
        return rule if users is None else replace(rule, epsilon=users.epsilon_of_document(rule.epsilon))

    def of_mechanism(self) -> dict[str, Any]:
        """All options of the mechanism. The budget of a user is shared by all texts of all rows, one in each column."""
        options, users = mechanism_options(self.epsilon, self.vectors, self.options), self.users()
        if users is not None and "epsilon" in options:
            width = max(1, len(set(self.columns)))
            options["epsilon"] = users.epsilon_of_document(check_epsilon(options["epsilon"]), width)
        return options

    def build_mechanism(self) -> Mechanism:
        """The mechanism with its options, not loaded yet."""
        return build(self.chosen_mechanism(), self.of_mechanism())

    def ledger_place(self) -> LedgerPlace | None:
        """The ledger, and the name under which the releases of this input add up."""
        if self.ledger is None:
            return None
        return LedgerPlace(self.ledger, self.dataset or file_name(str(self.input)), self.document_column)


def _without_folder(value: Any) -> Any:
    return file_name(value) if isinstance(value, str) else value


@dataclass(frozen=True, repr=False)
class RewriteResult:
    """A release: what was promised, the facts of the output, and the released texts where they are in memory.

    card        the privacy card; of a dry run, the one that a release would have
    output      the file or folder that was written; None where there is none
    card_files  where the card lies
    data        the released rows in the container that the input came in; None where they went into a file
    texts       the released texts, row by row; None where they went into a file
    left_out    rows beyond the maximum of their user, for the owner's eyes
    spent       what one document of the data set has now spent by the ledger
    """

    config: RewriteConfig
    card: Card
    facts: ReleaseFacts
    selection: Selection | None = None
    output: str | None = None
    card_files: tuple[str, ...] = ()
    format: FileFormat | None = None
    data: Any = None
    texts: list[str] | None = None
    left_out: int = 0
    spent: str | None = None

    @property
    def guarantee(self) -> Guarantee:
        return self.card.guarantee

    def sentences(self) -> list[str]:
        """What was promised, a sentence for a unit and one for a row of several texts."""
        return [plain_sentence(self.guarantee), *row_sentences(self.guarantee, self.facts)]

    def counts(self) -> str:
        """How much was released.

        >>> "1 row" in tacit.rewrite(["good film"], epsilon=2, seed=1).counts()
        True
        """
        rows = f"{self.facts.rows:,} row{'' if self.facts.rows == 1 else 's'}"
        return rows if self.facts.units == self.facts.documents else f"{rows}, {self.facts.units:,} tokens"

    def __str__(self) -> str:
        cards = f"; card: {', '.join(self.card_files)}" if self.card_files else ""
        return "\n".join([f"{self.counts()} -> {self.facts.output}{cards}", *self.sentences()])

    def __repr__(self) -> str:
        return f"<RewriteResult of {self.counts()}: {self.card!r}>"

    def _repr_html_(self) -> str:
        return self.card._repr_html_()


def rewrite(
    input: Any,
    mechanism: str | None = None,
    *,
    epsilon: float | None = None,
    columns: str | tuple[str, ...] | list[str] = (),
    keep: str | tuple[str, ...] | list[str] = (),
    output: str | Path | None = None,
    progress: OnProgress | None = None,
    **options: Any,
) -> RewriteResult:
    """The release of texts: of a file, a list of texts or rows, a pandas frame or Series, an Arrow table, a data set.

    Without `output` the released rows are `result.data`, in the same kind of container; `result.card` says what was
    promised. Columns that are neither rewritten nor kept are dropped. Further options are those of `RewriteConfig`.

    >>> result = tacit.rewrite(["a charming film"], "santext", epsilon=2)
    >>> len(result.data), result.card.guarantee.epsilon
    (1, 2.0)
    """
    config = RewriteConfig(
        input=list(input) if isinstance(input, Iterator) else input,
        mechanism=mechanism,
        epsilon=epsilon,
        columns=_several(columns),
        keep=_several(keep),
        output=None if output is None else str(output),
        **options,
    )
    return run(config, progress)


def _several(names: str | tuple[str, ...] | list[str]) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names)


def run(
    config: RewriteConfig,
    progress: OnProgress | None = None,
    *,
    mechanism: Mechanism | None = None,
    on_block: OnBlock | None = None,
    on_promise: OnPromise | None = None,
    on_ledger: OnLedger | None = None,
    command: str | None = None,
) -> RewriteResult:
    """The release that a configuration describes, with its card, or of a dry run the card alone.

    The callbacks are those of the engines; `mechanism` is given where it is built already, and `command` is how the
    call is shown on the card.
    """
    job = replace(rewrite_job(config, mechanism), command=command or python_call(config))
    if config.dry_run:
        return _planned(config, job)
    ledger_seen = on_ledger or _warn_of_new_ledger
    if config.on_cluster:
        from tacit.engines.cluster.rewrite import rewrite_dataset

        published = rewrite_dataset(
            job, address=config.address, progress=progress, on_promise=on_promise, on_ledger=ledger_seen
        )
    else:
        published = rewrite_file(
            job, progress=progress, on_block=on_block, on_promise=on_promise, on_ledger=ledger_seen
        )
    return _result(config, job, published)


def rewrite_job(config: RewriteConfig, mechanism: Mechanism | None = None) -> RewriteJob:
    """The work of the engines; `mechanism` is given where it is built already."""
    return RewriteJob(
        mechanism=mechanism or config.build_mechanism(),
        input=memory_columns(config.input) if is_in_memory(config.input) else str(config.input),
        output=config.output,
        columns=config.columns,
        keep=config.keep,
        input_format=config.format,
        workers=config.workers,
        resume=config.resume,
        force=config.force,
        seed=config.seed,
        users=config.users(),
        labels=config.label_rule(),
        refuse_nominal=config.refuse_nominal,
        ledger=config.ledger_place(),
        card_kinds=config.card,
        card_file=config.card_file,
        configuration=config.identity(),
    )


def _result(config: RewriteConfig, job: RewriteJob, published: Published) -> RewriteResult:
    facts, columns = published.facts, published.columns
    data = texts = None
    if columns is not None:
        data = in_kind_of(config.input, columns, facts.kept_columns)
        rows = zip(*(columns[name] for name in facts.columns), strict=True)
        texts = [text for row in rows for text in row]
    return RewriteResult(
        config,
        published.card,
        facts,
        output=job.file_output,
        card_files=published.card_files,
        format=published.format,
        data=data,
        texts=texts,
        left_out=0 if job.users is None else job.users.left_out,
        spent=published.spent,
    )


def _planned(config: RewriteConfig, job: RewriteJob) -> RewriteResult:
    """The card and the fate of each column, from the header alone."""
    source = job.input
    if config.on_cluster:
        from tacit.engines.cluster.dataset import find_data_set

        source = find_data_set(job.input, job.input_format).files[0].url
        job = replace(job, input=source)
    else:
        check_input(job)
    if job.file_output is not None:
        check_output_name(job.file_output)
    source_format = input_format(job)
    with open_table(source, source_format) as table:
        selection = choose_for(job, table)
    choose_output_format(job, source_format)
    selection = replace(selection, kept=tuple(name for name in selection.kept if name != config.randomize))
    facts = ReleaseFacts(
        rows=0, documents=0, units=0, longest_document=0, longest_row=0,
        columns=selection.texts, kept_columns=selection.kept,
    )  # fmt: skip
    return RewriteResult(config, Card(for_file(job.promise(), selection.kept), facts), facts, selection)


def _warn_of_new_ledger(ledger: Ledger) -> None:
    """Whoever misspelled a name, or lost the file, has to know that what was spent before is not counted."""
    if ledger.making is not None:
        warnings.warn(TacitWarning(ledger.making), stacklevel=2)


# The call, for the card -----------------------------------------------------------------------------------------------


def shown_options(config: RewriteConfig) -> list[tuple[str, str]]:
    """The options that the promise depends on, each with its value; those of the mechanism as `options NAME=VALUE`.

    They stand on the card, so they are public; names of folders are not.
    """
    shown: list[tuple[str, str]] = [("columns", name) for name in config.columns]
    shown += [("keep", name) for name in config.keep]
    shown.append(("mechanism", config.chosen_mechanism()))
    for name, value in mechanism_options(config.epsilon, config.vectors, config.options).items():
        text = file_name(exact(value) if isinstance(value, float) else str(value))
        shown.append((name, text) if name in ("epsilon", "vectors") else ("options", f"{name}={text}"))
    if config.user_column is not None:
        shown += [("user_column", config.user_column), ("user_mode", config.user_mode)]
        shown += [("documents_per_user", str(config.documents_per_user))] if config.user_mode == "divide" else []
    if config.randomize is not None and config.label_epsilon is not None:
        shown += [("randomize", config.randomize), ("label_epsilon", exact(config.label_epsilon))]
        shown.append(("labels", ",".join(config.labels)))
    return shown if config.seed is None else [*shown, ("seed", str(config.seed))]


def python_call(config: RewriteConfig) -> str:
    """The call of `tacit.rewrite` that a card shows."""
    values: dict[str, Any] = {}
    for name, value in shown_options(config):
        if name == "options":
            key, _, text = value.partition("=")
            values.setdefault(name, {})[key] = text
        elif name in ("columns", "keep"):
            values.setdefault(name, []).append(value)
        else:
            values[name] = value
    return f"tacit.rewrite({', '.join(f'{name}={value!r}' for name, value in values.items())})"
