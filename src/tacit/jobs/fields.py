"""Options that several jobs have, each declared once."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BeforeValidator, Field, PlainSerializer

from tacit.errors import BadInputError, BadParameterError
from tacit.guarantee import check_epsilon
from tacit.jobs.config import Group, Option, quotable
from tacit.needs import DATASETS, Ability, needs_of_place
from tacit.text.files.memory import is_in_memory

IN_MEMORY = "(in memory)"


def _shown_source(source: Any) -> Any:
    """How a source stands in a file of options: by its path, or as data that is not there any more."""
    if source is None:
        return None
    if isinstance(source, tuple):
        return [_shown_source(each) for each in source]
    return IN_MEMORY if is_in_memory(source) else str(source)


def split_at_commas(value: Any) -> Any:
    """`a,b` as a list; lists as they are."""
    return tuple(part.strip() for part in value.split(",") if part.strip()) if isinstance(value, str) else value


def named_values(value: Any) -> Any:
    """`("limit=100", …)` as a mapping from names to values; mappings with plain names.

    >>> named_values(["spell-out=yes"])
    {'spell_out': 'yes'}
    """
    pairs = list(value.items()) if isinstance(value, Mapping) else [_named_value(text) for text in value or ()]
    values: dict[str, Any] = {}
    for name, item in pairs:
        plain = str(name).strip().replace("-", "_")
        if plain == "seed":
            raise BadParameterError(
                "seed-as-mechanism-option",
                "give a test seed with {option.seed}, so that the card says that there is no guarantee",
            )
        if plain in values:
            raise _option_twice(plain)
        values[plain] = item
    return values


def _named_value(text: Any) -> tuple[str, str]:
    name, equals, value = str(text).partition("=")
    if not equals or not name.strip():
        raise BadParameterError(
            "not-name-and-value",
            "write an option as {option.mechanism_options[name=value]}, not '{text}'",
            text=quotable(text),
        )
    return name, value.strip()


def mechanism_options(epsilon: float | None, vectors: str | None, options: Mapping[str, Any]) -> dict[str, Any]:
    """All options of a mechanism in one mapping; what is given in two ways is refused."""
    usual = {"epsilon": None if epsilon is None else check_epsilon(epsilon), "vectors": vectors}
    chosen = {name: value for name, value in usual.items() if value is not None}
    for name in chosen:
        if name in options:
            raise _option_twice(name)
    return {**chosen, **options}


def _option_twice(name: str) -> BadParameterError:
    return BadParameterError("option-twice", "the option '{name}' is given twice: give it once", name=name)


def needs_of_source(source: Any, format: str | None = None) -> list[Ability]:
    """What reading a source needs; data in memory needs nothing."""
    return [] if is_in_memory(source) else needs_of_place(str(source), format)


def needs_of_rows(source: Any) -> list[Ability]:
    """What reading rows as a whole needs; a folder is one of the library 'datasets'."""
    if is_in_memory(source):
        return []
    is_folder = "://" not in str(source) and Path(source).is_dir()
    return [*needs_of_place(str(source)), *([DATASETS] if is_folder else [])]


def _still_there(source: Any) -> Any:
    """The source; paths as text."""
    if isinstance(source, str) and source == IN_MEMORY:
        raise BadInputError(
            "data-were-in-memory", "these options were written down for data in memory, which is gone: name a file"
        )
    return source if is_in_memory(source) else str(source)


Source = Annotated[Any, BeforeValidator(_still_there), PlainSerializer(_shown_source)]
"""A file, or data in memory: a list of texts, a list of rows, a pandas frame, an Arrow table, a data set."""

Columns = Annotated[
    tuple[str, ...],
    Field(description="A column of texts; may be repeated. By default the only column, or 'text'."),
    Option(Group.DATA),
]
LabelColumn = Annotated[str | None, Field(description="The column of labels."), Option(Group.DATA)]
Format = Annotated[
    str | None,
    Field(description="Format of the input (txt, csv, tsv, tsv-raw, jsonl, parquet, or with .gz), if its name does "
          "not tell."),
    Option(Group.DATA),
]  # fmt: skip
Engine = Annotated[
    Literal["local", "ray"],
    Field(description="'local' (this machine), or 'ray' (a cluster; reads folders of files and fsspec paths such as "
          "s3://)."),
    Option(Group.RUN),
]  # fmt: skip
Address = Annotated[
    str | None,
    Field(description="With the engine 'ray': a running cluster ('auto', or HOST:PORT); by default one is started."),
    Option(Group.RUN),
]
Workers = Annotated[int, Field(ge=1, description="Processes to use."), Option(Group.RUN)]
Encoder = Annotated[str, Field(description="Sentence encoder: 'minilm', a folder, or a hub name."), Option(Group.MODEL)]
PublicName = Annotated[
    str | None,
    Field(description="Declare the text public, by the name it is known by."),
    Option(Group.PRIVACY, metavar="NAME"),
]
Force = Annotated[bool, Field(description="Replace files that exist."), Option(Group.RUN)]
OptionalEpsilon = Annotated[
    float | None,
    Field(description="The budget of the mechanism; smaller is more private."),
    Option(Group.PRIVACY),
]
Vectors = Annotated[str | None, Field(description="Public word vectors: a file, or a name."), Option(Group.PRIVACY)]
MechanismOptions = Annotated[
    dict[str, Any],
    BeforeValidator(named_values),
    Field(description="Another option of the mechanism; may be repeated."),
    Option(Group.PRIVACY, metavar="NAME=VALUE"),
]
Confidence = Annotated[float, Field(description="Confidence of intervals and verdicts."), Option(Group.MEASURES)]
UsualColumn = Annotated[
    str | None,
    Field(description="The column of texts; by default the only one, or 'text'."),
    Option(Group.DATA),
]
PrivateFormat = Annotated[str | None, Field(description="Format of PRIVATE and its test files."), Option(Group.DATA)]
AuditSeed = Annotated[
    int, Field(description="Seed of the (public) randomness: samples, folds and orders."), Option(Group.MEASURES)
]
PublicSeed = Annotated[int, Field(description="Seed of the (public) randomness."), Option(Group.MODEL)]
UserMode = Annotated[
    Literal["divide", "concatenate"],
    Field(description="'divide' the budget over a user's rows, or 'concatenate' them into one text (rows sorted by "
          "user)."),
    Option(Group.PRIVACY),
]  # fmt: skip
DocumentsPerUser = Annotated[
    int,
    Field(ge=1, description="With 'divide': how many rows of a user are used; further ones are left out."),
    Option(Group.PRIVACY),
]
CommaSeparated = BeforeValidator(split_at_commas)
LedgerName = Annotated[
    str | None,
    Field(description="Write down what is spent in this ledger, and keep its limits (see 'tacit ledger')."),
    Option(Group.BUDGET, metavar="FILE|URL", private=True),
]
DatasetName = Annotated[
    str | None,
    Field(description="Name of the data set in the ledger: releases of one name add up. By default the name of the "
          "input."),
    Option(Group.BUDGET, private=True),
]  # fmt: skip

# Training -------------------------------------------------------------------------------------------------------------
#
# An option that some jobs require and others do without is generic: `Epsilon[float]`, `Epsilon[float | None]`. Where it
# means something slightly different, its sentence is replaced: `Annotated[Epsilon[float], Field(description="…")]`.

T = TypeVar("T")

Column = Annotated[T, Field(description="The column of texts."), Option(Group.DATA)]


def _number_or_auto(value: Any) -> Any:
    """A delta as a number, or 'auto'."""
    if (isinstance(value, str) and value == "auto") or isinstance(value, int | float):
        return value
    try:
        return float(value)
    except (TypeError, ValueError):
        raise BadParameterError(
            "bad-delta", "{option.delta} is a number or 'auto', not '{value}'", value=quotable(value)
        ) from None


Data = Annotated[
    Source,
    Field(description="The private records: csv, tsv, jsonl, parquet (also .gz)."),
    Option(Group.DATA, positional=True, metavar="DATA"),
]
Output = Annotated[Path, Field(description="The folder for the model and its privacy card."), Option(Group.DATA)]
TestRows = Annotated[
    Source, Field(description="Rows to score the finished model on. They must not be private."), Option(Group.DATA)
]
TextColumn = Annotated[str, Field(description="The column of the text."), Option(Group.DATA)]
Epsilon = Annotated[
    T,
    Field(gt=0, description="The privacy budget of one record; 'inf' trains without privacy, for comparison."),
    Option(Group.PRIVACY),
]
Delta = Annotated[
    float | Literal["auto"],
    BeforeValidator(_number_or_auto),
    Field(description="What every probability may grow by; 'auto': well below 1 / records."),
    Option(Group.PRIVACY),
]
ReplaceOne = Annotated[
    bool,
    Field(description="Neighbors differ by replacing a record (twice the sensitivity)."),
    Option(Group.PRIVACY),
]
Trials = Annotated[
    int,
    Field(ge=1, description="How many runs on these records you compare before keeping one: their budgets add up."),
    Option(Group.PRIVACY),
]
Released = Annotated[
    Path | None,
    Field(description="The texts were released by 'tacit rewrite' with this card: no noise, and its promise."),
    Option(Group.PRIVACY),
]
TestSeed = Annotated[
    int | None, Field(description="Test seed: repeatable, and without any guarantee."), Option(Group.PRIVACY)
]
Model = Annotated[
    T, Field(description="minilm, bilstm (from scratch), a folder, or a name on the hub."), Option(Group.MODEL)
]
Strategy = Annotated[
    T,
    Field(
        description="What is trained: bias (default for one label or number), last-2 (any number; default for tags), "
        "lora (default otherwise), ia3, head, frozen-lstm, no-embeddings, full (default from scratch)."
    ),
    Option(Group.MODEL),
]
Rank = Annotated[int, Field(ge=1, description="Rank of the lora matrices."), Option(Group.MODEL)]
Tokenizer = Annotated[
    str | None,
    Field(description="Another tokenizer: a folder ('tacit vocabulary' makes private ones)."),
    Option(Group.MODEL),
]
Length = Annotated[T, Field(description="Word pieces of a record that count."), Option(Group.MODEL)]
Epochs = Annotated[
    float, Field(gt=0, allow_inf_nan=False, description="Passes over the data, on average."), Option(Group.TRAINING)
]
Batch = Annotated[
    int,
    Field(ge=1, description="Records per step, on average; large batches need less noise."),
    Option(Group.TRAINING),
]
LearningRate = Annotated[T, Field(gt=0, description="By default 5e-4 to 5e-3, by strategy."), Option(Group.TRAINING)]
Clipping = Annotated[
    Literal["flat", "per-layer", "quantile", "automatic"],
    Field(description="How gradients are shortened."),
    Option(Group.TRAINING),
]
Bound = Annotated[float, Field(gt=0, description="Longest gradient of one record."), Option(Group.TRAINING)]
GradientEngine = Annotated[
    Literal["auto", "taps", "vmap", "loop", "opacus"],
    Field(description="How the gradients of single records are computed."),
    Option(Group.TRAINING),
]
Optimizer = Annotated[
    Literal["adamw", "adam", "sgd"], Field(description="How steps follow from gradients."), Option(Group.TRAINING)
]
Schedule = Annotated[
    Literal["linear", "cosine", "constant"],
    Field(description="Learning rate over time."),
    Option(Group.TRAINING),
]
Physical = Annotated[
    int, Field(ge=1, description="Records worked on at a time; no influence on the result."), Option(Group.RUN)
]
Tensorboard = Annotated[bool, Field(description="Also log for TensorBoard (private/tensorboard)."), Option(Group.RUN)]
Resume = Annotated[bool, Field(description="Go on with an unfinished run in the output folder."), Option(Group.RUN)]
