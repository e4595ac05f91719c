"""All options of rewriting, and what they mean together."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from tacit.catalog import DEFAULT_MECHANISM, DEFAULT_OF_LEVEL, build, find, mechanism_names, needs_of_mechanism
from tacit.engines.charging import LedgerPlace
from tacit.engines.job import CARD_KINDS, USUAL_CARDS, card_kind
from tacit.engines.shuffling import shuffle_needs_local_engine
from tacit.engines.users import UserRule
from tacit.errors import BadParameterError
from tacit.guarantee import check_epsilon
from tacit.jobs.config import Group, Option, Varied, file_name
from tacit.jobs.fields import (
    Columns,
    Dataset,
    DocumentsPerUser,
    DryRun,
    Epsilon,
    Force,
    Format,
    Labels,
    Ledger,
    MechanismName,
    MechanismOptions,
    Output,
    RefuseNominal,
    Resume,
    Seed,
    UserColumn,
    UserMode,
    Vectors,
)
from tacit.jobs.running import EngineOptions
from tacit.jobs.sources import Source, needs_of_source
from tacit.jobs.values import CommaSeparated, mechanism_options, split_at_commas
from tacit.labels import LabelRule, labels_need_local_engine
from tacit.mechanism import Mechanism
from tacit.needs import Ability, needs_of_ledger, needs_of_place
from tacit.rounding import exact
from tacit.text.files import STANDARD_STREAM
from tacit.text.files.memory import is_in_memory


def _card_kinds(value: object) -> object:
    """Kinds of cards: at least one, none twice."""
    kinds = tuple(dict.fromkeys(str(kind).lower() for kind in split_at_commas(value)))
    if not kinds or set(kinds) - set(CARD_KINDS):
        raise BadParameterError(
            "bad-card-kinds",
            "{option.card} takes a list of {kinds}, such as {option.card[json,md]}: a release always has a card",
            kinds=", ".join(CARD_KINDS),
        )
    return kinds


class RewriteConfig(EngineOptions):
    """Texts, how they are rewritten, and where the release, its card and what it spent are written."""

    job: ClassVar[str] = "rewrite"

    input: Annotated[
        Source,
        Field(description="The file to rewrite, or - for standard input."),
        Option(Group.DATA, positional=True, metavar="INPUT", private=True),
    ]
    output: Annotated[Output[str | None], Field(description="The file to write; by default standard output.")] = None
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
        MechanismName[str | None],
        Field(description=f"See 'tacit mechanisms'. By default {DEFAULT_MECHANISM}, or that of the level."),
    ] = None
    level: Annotated[
        Literal["word", "document"] | None,
        Field(description="What one secret is: 'word' (every word on its own) or 'document' (a whole text)."),
        Option(Group.PRIVACY),
    ] = None
    epsilon: Annotated[
        Epsilon[float | None],
        Field(description="The privacy budget of one token, document or user; smaller is more private."),
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
        UserColumn[str | None],
        Field(description="The column that says who wrote a row: epsilon is then the budget of a person (document "
              "level)."),
        Varied(group=Group.PRIVACY),
    ] = None  # fmt: skip
    user_mode: UserMode = "divide"
    documents_per_user: DocumentsPerUser = 1
    randomize: Annotated[
        str | None,
        Field(description="A column of labels to release with noise; needs the list of labels. 'codebook' draws text "
              "and label together, covered by one epsilon; others need a label epsilon."),
        Option(Group.PRIVACY, metavar="COLUMN"),
    ] = None  # fmt: skip
    label_epsilon: Annotated[
        float | None,
        Field(
            description="A budget for the label of a row (or of a user's labels) alone, which adds to epsilon: "
            "randomized response."
        ),
        Option(Group.PRIVACY),
    ] = None
    labels: Annotated[Labels[tuple[str, ...]], CommaSeparated, Varied(group=Group.PRIVACY, metavar="A,B,C")] = ()
    shuffle: Annotated[
        bool,
        Field(description="Release the rows in a secret random order, which earns a second promise for the data set as "
              "a whole (document level; no kept columns)."),
        Option(Group.PRIVACY),
    ] = False  # fmt: skip
    refuse_nominal: Annotated[
        RefuseNominal[bool],
        Field(description="Stop, before any noise is drawn, where the card would say that the bound no longer protects "
              "(exit 3)."),
        Varied(variable="TACIT_REFUSE_NOMINAL"),
    ] = False  # fmt: skip
    seed: Annotated[
        Seed[int | None], Field(description="Repeatable noise for tests. The output then has NO guarantee.")
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
    ledger: Ledger = None
    dataset: Annotated[
        Dataset[str | None],
        Field(description="Name of the data set in the ledger: releases of one name add up. By default the name of the "
              "input."),
    ] = None  # fmt: skip
    document_column: Annotated[
        str | None,
        Field(description="The column that names a document in the ledger; by default it is recognized by its text."),
        Option(Group.BUDGET, private=True),
    ] = None
    resume: Annotated[Resume, Field(description="Go on with a run that was stopped.")] = False
    force: Annotated[Force, Field(description="Overwrite the output, and throw away an unfinished run.")] = False
    dry_run: Annotated[DryRun, Field(description="Show the privacy card without reading any text.")] = False

    @model_validator(mode="after")
    def _options_fit_together(self) -> Self:
        mechanism_options(self.epsilon, self.vectors, self.options)
        if self.card_file is not None:
            card_kind(self.card_file)
        self._check_labels()
        self._check_shuffle()
        self._check_ledger()
        return self

    def _check_labels(self) -> None:
        if self.randomize is None and self.label_epsilon is None and not self.labels:
            return
        if self.randomize is None or not self.labels:
            raise BadParameterError(
                "labels-not-stated",
                "labels are released with both {option.randomize[COLUMN]} and {option.labels[A,B,C]}: the list must be "
                "known publicly, so it is never read off the data",
            )
        if self.label_epsilon is None and not find(self._mechanism_name).joint_labels:
            raise BadParameterError(
                "label-budget-missing",
                "{mechanism} does not cover labels: give them a budget of their own with {option.label_epsilon[E]}, or "
                "take {option.mechanism[codebook]}, which draws text and label together",
                mechanism=self._mechanism_name,
            )
        if self.randomize is not None and self.on_cluster:
            raise labels_need_local_engine()

    def _check_shuffle(self) -> None:
        if self.shuffle and self.on_cluster:
            raise shuffle_needs_local_engine()

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
        if self.randomize is None:
            return None
        if self.label_epsilon is None:
            return LabelRule(self.labels, None, self.randomize)
        rule, users = LabelRule(self.labels, self.label_epsilon, self.randomize), self.users()
        return rule if users is None else replace(rule, epsilon=users.epsilon_of_document(self.label_epsilon))

    def of_mechanism(self) -> dict[str, Any]:
        """All options of the mechanism. The budget of a user is shared by all texts of all rows, one in each column."""
        options, users = mechanism_options(self.epsilon, self.vectors, self.options), self.users()
        if users is not None and "epsilon" in options:
            width = max(1, len(set(self.columns)))
            options["epsilon"] = users.epsilon_of_document(check_epsilon(options["epsilon"]), width)
        if self.randomize is not None and self.label_epsilon is None:
            options["labels"] = self.labels
        return options

    def build_mechanism(self) -> Mechanism:
        """The mechanism with its options, not loaded yet."""
        return build(self.chosen_mechanism(), self.of_mechanism())

    def ledger_place(self) -> LedgerPlace | None:
        """The ledger, and the name under which the releases of this input add up."""
        if self.ledger is None:
            return None
        return LedgerPlace(self.ledger, self.dataset or file_name(str(self.input)), self.document_column)


def _without_folder(value: object) -> object:
    return file_name(value) if isinstance(value, str) else value


# The call, for the card -----------------------------------------------------------------------------------------------


def shown_options(config: RewriteConfig) -> list[tuple[str, str]]:
    """The options that the promise depends on, each with its value; those of the mechanism as NAME=VALUE.

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
    if config.randomize is not None:
        shown.append(("randomize", config.randomize))
        shown += [] if config.label_epsilon is None else [("label_epsilon", exact(config.label_epsilon))]
        shown.append(("labels", ",".join(config.labels)))
    shown += [] if config.seed is None else [("seed", str(config.seed))]
    return [*shown, ("shuffle", "")] if config.shuffle else shown


AS_THEY_ARE = ("epsilon", "label_epsilon", "documents_per_user", "seed", "shuffle")


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
            values[name] = getattr(config, name) if name in AS_THEY_ARE else value
    return f"tacit.rewrite({', '.join(f'{name}={value!r}' for name, value in values.items())})"
