"""The options and rows of jobs that show private records to a public language model: text by prompting, and answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from tacit.account.delta import automatic_delta, check_delta
from tacit.errors import BadInputError, BadParameterError
from tacit.guarantee import Guarantee, Notion, Unit, VoidReason
from tacit.jobs.config import Config, Group, Option
from tacit.jobs.fields import (
    AutoDelta,
    CountedLabels,
    DatasetOfInput,
    DeclareLabelsPublic,
    Device,
    DryRun,
    Force,
    Format,
    LabelColumn,
    Ledger,
    Model,
    Physical,
    PromisedUsers,
    Resume,
    TestSeed,
    UsualColumn,
)
from tacit.text.files import cell_string, choose_columns, open_table, text_value
from tacit.text.identity import user_name

if TYPE_CHECKING:
    from tacit.documents.language_models import CausalModel
    from tacit.training.prompting.batches import PrivateRecord

SMOLLM2 = "smollm2"
SECRET_KEY = "the noise comes from a secret random key of the operating system, which is not shown"
MOST_LABELS = 1_000


class PromptedRows(Config):
    """Private records with public labels, the model that reads them, and where the budget is kept."""

    column: UsualColumn = None
    labels: CountedLabels = ()
    declare_labels_public: DeclareLabelsPublic = False
    format: Format = None
    delta: AutoDelta = "auto"
    user_column: PromisedUsers = None
    seed: TestSeed = None
    model: Annotated[Model[str], Field(description="'smollm2', a folder, or a hub name: a causal language model.")] = (
        SMOLLM2
    )
    input_tokens: Annotated[
        int, Field(ge=1, le=4096, description="Tokens of a private text that are read."), Option(Group.MODEL)
    ] = 48
    physical: Annotated[
        Physical[int], Field(ge=1, description="Prompts computed at a time, always exactly so many.")
    ] = 32
    device: Device = "auto"
    ledger: Ledger = None
    dataset: DatasetOfInput = None
    resume: Annotated[Resume, Field(description="Go on with a run that was stopped: no noise is drawn twice.")] = False
    dry_run: Annotated[
        DryRun,
        Field(description="Say what the budget buys and how long it takes, and do nothing. It speaks of the private "
              "rows: it is for you alone."),
    ] = False  # fmt: skip
    force: Force = False


def check_label_source(config: PromptedRows, label_column: str | None) -> None:
    """Refuse labels without a column, and a column of which nobody says which labels are public."""
    if label_column is None and (config.labels or config.declare_labels_public):
        raise BadParameterError(
            "labels-without-column", "name the column of the labels with {option.label_column[NAME]}"
        )
    if label_column is not None and bool(config.labels) == config.declare_labels_public:
        raise BadParameterError(
            "labels-public-or-listed",
            "say once which labels there are: {option.labels[A,B,C]}, or {option.declare_labels_public} if those that "
            "occur in the data are no secret",
        )


def private_records(
    config: PromptedRows, data: object, label_column: str | None
) -> tuple[list[PrivateRecord], list[str]]:
    """The private records that have a public label, and the labels in a public order."""
    from tacit.matching.labels import label_name
    from tacit.training.prompting.batches import PrivateRecord

    kept = [name for name in (label_column, config.user_column) if name is not None]
    rows: list[PrivateRecord] = []
    with open_table(data, config.format) as table:
        text = choose_columns(table.columns, () if config.column is None else (config.column,), kept).texts[0]
        table.select([text, *kept])
        for number, values in table.rows():
            cells = dict(zip([text, *kept], values, strict=True))
            user = "" if config.user_column is None else user_name(cell_string(cells[config.user_column]))
            if config.user_column is not None and not user:
                raise BadInputError("no-user", "row {row:,} has no user: every row must belong to one", row=number)
            rows.append(
                PrivateRecord(
                    text_value(cells[text], number, text),
                    "" if label_column is None else label_name(cells[label_column]),
                    user,
                )
            )
    if not rows:
        raise BadInputError("no-rows", "{name} has no rows", name="the private file")
    if label_column is None:
        return rows, [""]
    names = [label_name(name) for name in config.labels]
    if config.declare_labels_public:
        names = sorted({row.label for row in rows} - {""})
    if not names or len(set(names)) < len(names) or "" in names or len(names) > MOST_LABELS:
        raise BadParameterError(
            "bad-label-list",
            "{option.labels} must name between 1 and {most:,} labels, each once and none empty",
            most=MOST_LABELS,
        )
    known = set(names)
    return [row for row in rows if row.label in known], names


def chosen_delta(config: PromptedRows, units: int) -> float:
    """The delta of a release about so many records or users."""
    return check_delta(automatic_delta(units) if config.delta == "auto" else config.delta, units)


def label_lines(config: PromptedRows, label_column: str | None) -> tuple[str, ...]:
    """The assumptions about labels and delta on a card."""
    unit = "records" if config.user_column is None else "users"
    lines = []
    if label_column is not None:
        lines.append(
            "the names of the labels are public: they were read off the private rows"
            if config.declare_labels_public
            else "the names of the labels were given by the user, without looking them up in the private rows"
        )
    if config.delta == "auto":
        lines.append(f"the number of {unit} is public, because delta was chosen by it")
    return tuple(lines)


def number_line(config: PromptedRows) -> tuple[str, ...]:
    """The line of a card about the number of records, which an automatic delta shows."""
    return (f"how many {promised_unit(config).value}s there are, to one digit",) if config.delta == "auto" else ()


def promised_unit(config: PromptedRows) -> Unit:
    return Unit.RECORD if config.user_column is None else Unit.USER


def notion_of(delta: float) -> Notion:
    return Notion.APPROXIMATE if delta else Notion.PURE


def without_seed(config: PromptedRows, promised: Guarantee) -> Guarantee:
    """The promise, or none if a test seed makes the noise known."""
    if config.seed is None:
        return promised
    return promised.voided("the draws were made with a test seed, which undoes the noise", VoidReason.TEST_SEED)


def load_reader(name: str) -> CausalModel:
    """A public causal model; refused if it may repeat private text."""
    from tacit.documents.language_models import load_causal

    model = load_causal(name, "reading private rows")
    model.provenance()
    return model


PromptedLabelColumn = LabelColumn[str | None]
SetCount = int | Literal["users"]
