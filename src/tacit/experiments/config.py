"""An experiment file: data, steps that vary over axes, published values, figures and tables.

    [experiment]   name, title, paper, question, reference (the axis values of the run without privacy)
    [data.NAME]    rows of files, taken once and frozen
    [steps.NAME]   kind, its parameters, its inputs by name, and `over`: the axes it varies over
    [variants.AXIS.VALUE]   what a value of an axis stands for: parameters, and further axes
    [sizes.NAME]   any key of the above, replaced for this size
    [[published]], [[figures]], [[tables]]   what the report compares, draws and shows

Every error is one sentence that names the key and what is allowed there.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeVar, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PrivateAttr, ValidationError

from tacit.errors import BadInputError, did_you_mean
from tacit.experiments.data_sets import DATA_VARIABLE, FOLDER, brought_folders
from tacit.experiments.declared import EPSILON, Strict, Value, shown
from tacit.experiments.quantities import Amount

SIZES: Final = ("quick", "full")
NAME: Final = r"^[A-Za-z0-9][A-Za-z0-9+_.-]*$"
LONGEST_QUOTED: Final = 60
FileName = Annotated[str, Field(pattern=NAME)]
"""The name of something that becomes a file of that name: no path."""
RawTable = dict[str, Any]
"""A table of the file before it is validated."""


class Parameters(Strict):
    """Base of the parameters of a step kind. Numbers given as text are refused, not converted."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, protected_namespaces=())


class About(Strict):
    """The subject of an experiment.

    reference  the cells without privacy, such as { mechanism = "none" }: their scores are the ceilings
    watts      what a busy core is taken to draw, for the energy estimate
    count      false for what is no evidence (a test of the runner): it is left out of the total over all experiments
    """

    name: str = Field(pattern=NAME)
    title: str
    paper: str = ""
    question: str = ""
    reference: dict[str, Value] = Field(default={})
    watts: float = Field(default=15.0, gt=0)
    count: bool = True


class Part(Strict):
    """Some rows of one file: those that match `where`, shuffled by a public seed, after `skip` of them `rows`.

    where   the value that a column has, or several of which it has one
    """

    file: str
    format: str | None = None
    rows: int | None = Field(default=None, ge=1)
    skip: int = Field(default=0, ge=0)
    seed: int = 0
    where: dict[str, str | list[str]] = Field(default={})

    def matches(self, cells: Mapping[str, str]) -> bool:
        """Whether a row has a value that is wanted in each of these columns."""
        return all(
            cells[column] == wanted if isinstance(wanted, str) else cells[column] in wanted
            for column, wanted in self.where.items()
        )


class DataSet(Strict):
    """Texts and labels of one task, in parts such as train and test; or `files` as they are (graphs).

    access   "private" unless it is declared "public": what pretrains a model must be public
    keep     further columns, for attackers
    """

    about: str = ""
    access: Literal["private", "public"] = "private"
    task: Literal["classification", "pairs", "similarity", "tagging"] | None = None
    text: str | list[str] = Field(default=[])
    label: str | None = None
    keep: list[str] = Field(default=[])
    parts: dict[FileName, Part] = Field(default={})
    files: dict[FileName, str] = Field(default={})

    @property
    def text_columns(self) -> list[str]:
        return [self.text] if isinstance(self.text, str) else list(self.text)


class Published(Strict):
    """Values of one table of a paper. Each row holds one value for each of `axes`, then the published number.

    ours         the score that it is compared with, such as "task.accuracy"
    difference   why ours can differ: a smaller model, other data
    mixed        why epsilons that mean different things stand in one table, where they do
    signed       whether the numbers are changes, of which the sign matters; by default, whether one is negative or ours
                 is a difference
    """

    source: str
    ours: Amount
    axes: list[str]
    rows: list[list[Value]]
    unit: str = ""
    difference: str
    mixed: str = ""
    signed: bool | None = None


class FigureRule(Strict):
    """A drawing: `value` against the axis `x`, one line (or row) for each value of `lines`, one picture for each value
    of `panels`."""

    title: str
    kind: Literal["curve", "heatmap", "bars"] = "curve"
    value: Amount
    x: str = EPSILON
    lines: str = "mechanism"
    panels: str | None = None
    label: str = ""
    where: dict[str, Value | list[Value]] = Field(default={})


class WideTable(Strict):
    """One table of everything: a row for each value of the axis `rows`, and for each of `values` a column for each
    value of the axis `columns`.

    labels   what the values are called; their own names by default
    """

    title: str
    values: list[Amount] = Field(min_length=1)
    labels: list[str] = Field(default=[])
    rows: str = "mechanism"
    columns: str = EPSILON
    where: dict[str, Value | list[Value]] = Field(default={})
    note: str = ""


def _axis_values(values: object) -> object:
    if not isinstance(values, list) or not values or not all(isinstance(v, str | int | float) for v in values):
        raise ValueError("must be a list of values, such as [1, 2, 3]")
    if len({shown(value) for value in values}) < len(values):
        raise ValueError("must name each value once")
    return values


class VariantTable(Strict):
    """The meaning of one value of an axis: parameters and inputs of a step (`given`), and further axes."""

    model_config = ConfigDict(extra="allow", frozen=True, allow_inf_nan=True)

    over: dict[str, Annotated[list[Value], BeforeValidator(_axis_values)]] = Field(default={})

    @property
    def given(self) -> RawTable:
        return dict(self.model_extra or {})


class StepTable(VariantTable):
    """A step: its kind, its axes, which of its cells are run, and in which sizes; all by default."""

    kind: str = ""
    rename: dict[str, str] = Field(default={})
    only: list[dict[str, Value | list[Value]]] = Field(default=[])
    skip: list[dict[str, Value | list[Value]]] = Field(default=[])
    sizes: list[str] | None = None


class Experiment(Strict):
    """A file in one size. `other_sizes` holds the same file in its other sizes."""

    experiment: About
    data: dict[str, DataSet] = Field(default={})
    variants: dict[str, dict[str, VariantTable]] = Field(default={})
    steps: dict[str, StepTable]
    sizes: dict[str, RawTable] = Field(default={})
    published: list[Published] = Field(default=[])
    figures: list[FigureRule] = Field(default=[])
    tables: list[WideTable] = Field(default=[])
    _other_sizes: dict[str, Experiment] = PrivateAttr(default_factory=dict)

    @property
    def other_sizes(self) -> Mapping[str, Experiment]:
        return self._other_sizes


# Reading ----------------------------------------------------------------------------------------------------------


def load(path: str | Path, size: str = "quick") -> Experiment:
    """The experiment of a file in one size, checked as far as the file alone allows."""
    return of_dict(read(path), size, Path(path).name)


def read(path: str | Path) -> RawTable:
    """The tables of an experiment file, not yet validated."""
    try:
        return tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise BadInputError(
            "no-experiment-file",
            "there is no experiment file '{path}': 'tacit experiment list' shows those of a folder",
            path=path,
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise BadInputError(
            "unreadable-experiment",
            "the experiment file '{path}' cannot be read: {kind}",
            path=path,
            kind=type(error).__name__,
        ) from None
    except tomllib.TOMLDecodeError as error:
        raise BadInputError("bad-toml", "'{path}' is not a TOML file: {error}", path=path, error=error) from None


def of_dict(tables: Mapping[str, Any], size: str, name: str = "the experiment") -> Experiment:
    """The experiment that the tables of a file describe, in one size."""
    sizes = _sizes(tables, name)
    known = tuple(dict.fromkeys((*SIZES, *sizes)))
    if size not in known:
        raise BadInputError(
            "no-such-size",
            "{name} has no size '{size}': choose from {known}",
            name=name,
            size=size,
            known=", ".join(known),
        )
    if "findings" in tables:
        raise BadInputError(
            "findings-in-the-file",
            "{name}: findings are Python functions in a file beside this one, named like it with _findings.py at the "
            "end; move them there",
            name=name,
        )
    # A mistake in a size is an error whichever size is to run.
    _validated(tables, name)
    every = {other: _validated(_replaced(tables, sizes.get(other, {})), f"{name}, {other}") for other in known}
    experiment = every.pop(size)
    experiment._other_sizes.update(every)
    return experiment


def _sizes(tables: Mapping[str, Any], name: str) -> Mapping[str, Mapping[str, Any]]:
    """The tables that each size replaces. They are read before the file is validated, because they decide what is
    validated."""
    sizes = tables.get("sizes", {})
    if not isinstance(sizes, Mapping) or not all(isinstance(changes, Mapping) for changes in sizes.values()):
        raise BadInputError(
            "bad-sizes", "{name}: 'sizes' holds a table for each size, such as [sizes.full]; write it so", name=name
        )
    return sizes


def _validated(tables: Mapping[str, Any], name: str) -> Experiment:
    try:
        return Experiment.model_validate(dict(tables))
    except ValidationError as error:
        raise BadInputError(
            "bad-experiment", "{name}: {reason}", name=name, reason=first_mistake(error, Experiment)
        ) from None


def _replaced(base: Mapping[str, Any], changes: Mapping[str, Any]) -> RawTable:
    """`changes` laid over `base`, table by table; lists and values are replaced as a whole."""
    result = dict(base)
    for key, value in changes.items():
        if isinstance(value, Mapping) and isinstance(result.get(key, {}), Mapping):
            result[key] = _replaced(result.get(key, {}), value)
        else:
            result[key] = value
    return result


# Errors -----------------------------------------------------------------------------------------------------------


def first_mistake(error: ValidationError, model: type[BaseModel], where: str = "") -> str:
    """The first thing that is wrong, as a sentence with the key and what is allowed."""
    first = error.errors(include_url=False)[0]
    # A key that is wrong itself has the mark "[key]" behind it.
    named = [str(part) for part in first["loc"] if part != "[key]"]
    place = ".".join([*([where] if where else []), *named])
    kind, context = first["type"], first.get("ctx", {})
    if kind == "extra_forbidden":
        return _unknown(place, _fields_at(model, first["loc"][:-1]))
    if kind == "missing":
        return f"the key '{place}' is missing: add it"
    if kind == "literal_error":
        return f"'{place}' must be one of {context['expected']}, not {first['input']!r}"
    if kind == "value_error":
        return f"'{place}' {context['error']}, not {first['input']!r}"
    if kind == "string_pattern_mismatch" and context["pattern"] == NAME:
        return (
            f"'{place}' is {_quoted(first['input'])}, which is no name: take letters, digits and + _ . - only, with a "
            "letter or digit in front"
        )
    reason = str(first["msg"])
    return f"'{place}' is {_quoted(first['input'])}, but {reason[:1].lower()}{reason[1:]}"


def _quoted(value: object) -> str:
    text = repr(value)
    return text if len(text) <= LONGEST_QUOTED else f"a {type(value).__name__}"


def _unknown(place: str, known: Sequence[str]) -> str:
    table, _, key = place.rpartition(".")
    hint = did_you_mean(key, known, otherwise="")
    allowed = f" The keys there are: {', '.join(known)}" if known else ""
    return f"unknown key '{key}'{f' in {table}' if table else ''}{hint}{allowed}"


def _fields_at(model: type[BaseModel], place: Sequence[str | int]) -> list[str]:
    """The keys that are allowed at a place, following names through tables of tables and lists."""
    kind: Any = model
    for part in place:
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            field = kind.model_fields.get(str(part))
            kind = None if field is None else field.annotation
        else:
            kind = (get_args(kind) or (None,))[-1]
    while not isinstance(kind, type) and get_args(kind):
        kind = get_args(kind)[-1]
    return list(kind.model_fields) if isinstance(kind, type) and issubclass(kind, BaseModel) else []


P = TypeVar("P", bound=Strict)


def parse(model: type[P], values: Mapping[str, Any], where: str) -> P:
    """The parameters of a step, or a sentence about the first that is wrong."""
    try:
        return model.model_validate(dict(values))
    except ValidationError as error:
        raise BadInputError("bad-parameter", "{reason}", reason=first_mistake(error, model, where)) from None


# Files ------------------------------------------------------------------------------------------------------------


def data_folders(experiment_file: Path | None, given: Path | None = None) -> list[Path]:
    """Where data files are looked for, first to last."""
    folders = [*brought_folders(), *([experiment_file.parent] if experiment_file is not None else [])]
    if given is not None:
        return [*folders, given]
    named = os.environ.get(DATA_VARIABLE)
    usual = Path(FOLDER) if Path(FOLDER).is_dir() else Path("../shared/data")
    return [*folders, Path(named) if named else usual]


def wanted_files(experiment: Experiment) -> list[str]:
    """All data files that an experiment names, as it names them."""
    named = [part.file for data in experiment.data.values() for part in data.parts.values()]
    return list(dict.fromkeys([*named, *(file for data in experiment.data.values() for file in data.files.values())]))


def find_file(name: str, folders: Sequence[Path], where: str) -> Path:
    """Where a data file lies."""
    for folder in folders:
        if (folder / name).is_file():
            return folder / name
    raise BadInputError(
        "missing-data-file",
        "'{where}' names the file '{name}', which is not in {folders}: set {variable} (or {option.data_folder}) to the "
        "folder of the data sets",
        where=where,
        name=name,
        folders=" or ".join(str(folder) for folder in folders),
        variable=DATA_VARIABLE,
    )
