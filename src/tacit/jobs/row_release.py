"""The options of jobs that release something for every row: texts (`tacit rewrite`) or vectors (`tacit embed`)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field

from tacit.catalog import build, find
from tacit.devices import AUTO, PROCESSOR
from tacit.engines.charging import LedgerPlace
from tacit.engines.job import CARD_KINDS, USUAL_CARDS, card_kind
from tacit.engines.users import UserRule
from tacit.errors import BadParameterError
from tacit.guarantee import check_epsilon
from tacit.jobs.config import Config, Group, Option, Varied, file_name
from tacit.jobs.fields import (
    Columns,
    DatasetOfInput,
    Device,
    DocumentsPerUser,
    DryRun,
    Epsilon,
    Force,
    Format,
    Input,
    Labels,
    Ledger,
    MechanismName,
    MechanismOptions,
    Output,
    Randomize,
    RefuseNominal,
    Resume,
    Seed,
    UserColumn,
    UserMode,
    Vectors,
    Workers,
)
from tacit.jobs.values import CommaSeparated, split_at_commas
from tacit.labels import LabelRule
from tacit.mechanism import Mechanism
from tacit.parameters import parameters_of
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


class RowReleaseConfig(Config):
    """Texts, what is released for them, and where the release, its card and what it spent are written."""

    releases_vectors: ClassVar[bool] = False

    input: Input
    output: Annotated[Output[str | None], Field(description="The file to write; by default standard output.")] = None
    columns: Columns = ()
    keep: Annotated[
        tuple[str, ...],
        Field(
            description="A column to copy as it is, without any protection; may be repeated. All others are dropped."
        ),
        Option(Group.DATA),
    ] = ()
    format: Format = None
    mechanism: MechanismName[str | None] = None
    level: Annotated[
        Literal["word", "document"] | None,
        Field(description="What one secret is: 'word' (every word on its own) or 'document' (a whole text)."),
        Option(Group.PRIVACY),
    ] = None
    epsilon: Epsilon[float | None] = None
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
    randomize: Randomize = None
    label_epsilon: Annotated[
        float | None,
        Field(
            description="A budget for the label of a row (or of a user's labels) alone, which adds to epsilon: "
            "randomized response."
        ),
        Option(Group.PRIVACY),
    ] = None
    labels: Annotated[Labels[tuple[str, ...]], CommaSeparated, Varied(group=Group.PRIVACY, metavar="A,B,C")] = ()
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
    dataset: DatasetOfInput = None
    document_column: Annotated[
        str | None,
        Field(description="The column that names a document in the ledger; by default it is recognized by its text."),
        Option(Group.BUDGET, private=True),
    ] = None
    workers: Workers = 1
    device: Device = "auto"
    resume: Annotated[Resume, Field(description="Go on with a run that was stopped.")] = False
    force: Annotated[Force, Field(description="Overwrite the output, and throw away an unfinished run.")] = False
    dry_run: Annotated[DryRun, Field(description="Show the privacy card without reading any text.")] = False

    # To say in a job ----------------------------------------------------------------------------------------------

    @abstractmethod
    def chosen_mechanism(self) -> str:
        """The name of the mechanism."""

    @abstractmethod
    def usual_options(self) -> dict[str, Any]:
        """The options of the mechanism, those with a name of their own included."""

    @property
    def on_cluster(self) -> bool:
        """Whether the work is done by a cluster."""
        return False

    @property
    def is_shuffled(self) -> bool:
        """Whether the rows are released in a secret order."""
        return False

    # What the options mean together -------------------------------------------------------------------------------

    def check_card_file(self) -> None:
        """Refuse a name that is no name of a card."""
        if self.card_file is not None:
            card_kind(self.card_file)

    def check_labels_stated(self) -> bool:
        """Whether labels are released; refused where only half of what that needs is given."""
        if self.randomize is None and self.label_epsilon is None and not self.labels:
            return False
        if self.randomize is None or not self.labels:
            raise BadParameterError(
                "labels-not-stated",
                "labels are released with both {option.randomize[COLUMN]} and {option.labels[A,B,C]}: the list must be "
                "known publicly, so it is never read off the data",
            )
        return True

    def check_ledger_options(self) -> None:
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
        options, users = self.usual_options(), self.users()
        if users is not None and "epsilon" in options:
            width = max(1, len(set(self.columns)))
            options["epsilon"] = users.epsilon_of_document(check_epsilon(options["epsilon"]), width)
        if self.randomize is not None and self.label_epsilon is None:
            options["labels"] = self.labels
        return {**self._device_of_mechanism(), **options}

    def _device_of_mechanism(self) -> dict[str, Any]:
        """Where the models of the mechanism compute, if it has any. On a cluster that is the processor, unless a device
        is named."""
        name = self.chosen_mechanism()
        if "device" in parameters_of(find(name, vectors=self.releases_vectors)):
            return {} if self.device == AUTO and self.on_cluster else {"device": self.device}
        if self.device not in (AUTO, PROCESSOR):
            raise BadParameterError(
                "device-without-model",
                "{mechanism} has no model that could compute on '{device}': leave out {option.device}",
                mechanism=name,
                device=self.device,
            )
        return {}

    def build_mechanism(self) -> Mechanism:
        """The mechanism with its options, not loaded yet."""
        return build(self.chosen_mechanism(), self.of_mechanism(), vectors=self.releases_vectors)

    def ledger_place(self) -> LedgerPlace | None:
        """The ledger, and the name under which the releases of this input add up."""
        if self.ledger is None:
            return None
        return LedgerPlace(self.ledger, self.dataset or file_name(str(self.input)), self.document_column)

    def identity(self) -> dict[str, Any]:
        """The values that decide what is released, without the folders of files."""
        values = super().identity()
        values["options"] = {name: without_folder(value) for name, value in values["options"].items()}
        return values


def without_folder(value: object) -> object:
    """The name of a file alone; anything else as it is."""
    return file_name(value) if isinstance(value, str) else value


# The call, for the card -----------------------------------------------------------------------------------------------


def shown_release(config: RowReleaseConfig, own: Sequence[str]) -> list[tuple[str, str]]:
    """The options that the promise depends on, each with its value; those of the mechanism as NAME=VALUE, but for those
    that are options of the job itself (`own`).

    They stand on the card, so they are public; names of folders are not.
    """
    shown: list[tuple[str, str]] = [("columns", name) for name in config.columns]
    shown += [("keep", name) for name in config.keep]
    shown.append(("mechanism", config.chosen_mechanism()))
    for name, value in config.usual_options().items():
        text = file_name(exact(value) if isinstance(value, float) else str(value))
        shown.append((name, text) if name in own else ("options", f"{name}={text}"))
    if config.user_column is not None:
        shown += [("user_column", config.user_column), ("user_mode", config.user_mode)]
        shown += [("documents_per_user", str(config.documents_per_user))] if config.user_mode == "divide" else []
    if config.randomize is not None:
        shown.append(("randomize", config.randomize))
        shown += [] if config.label_epsilon is None else [("label_epsilon", exact(config.label_epsilon))]
        shown.append(("labels", ",".join(config.labels)))
    shown += [] if config.seed is None else [("seed", str(config.seed))]
    return [*shown, ("shuffle", "")] if config.is_shuffled else shown


AS_THEY_ARE = ("epsilon", "label_epsilon", "documents_per_user", "seed", "shuffle", "dimensions")


def call_text(function: str, config: RowReleaseConfig, shown: Sequence[tuple[str, str]]) -> str:
    """The call of a function of Tacit that a card shows."""
    values: dict[str, Any] = {}
    for name, value in shown:
        if name == "options":
            key, _, text = value.partition("=")
            values.setdefault(name, {})[key] = text
        elif name in ("columns", "keep"):
            values.setdefault(name, []).append(value)
        else:
            values[name] = getattr(config, name) if name in AS_THEY_ARE else value
    return f"tacit.{function}({', '.join(f'{name}={value!r}' for name, value in values.items())})"
