"""An experiment file: data, steps that vary over axes, published values, findings and figures.

    [experiment]   name, title, paper, question, reference (the axis values of the run without privacy)
    [data.NAME]    rows of files, taken once and frozen
    [steps.NAME]   kind, its parameters, its inputs by name, and `over`: the axes it varies over
    [variants.AXIS.VALUE]   what a value of an axis stands for: parameters, and further axes
    [sizes.NAME]   any key of the above, replaced for this size
    [[published]], [[findings]], [[figures]], [[tables]]   what the report compares, checks and draws

Every error is one sentence that names the key and what is allowed there.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, ValidationError

from tacit.errors import BadInputError
from tacit.experiments.data_sets import DATA_VARIABLE, FOLDER, brought_folders

Value = str | int | float | bool
SIZES = ("quick", "full")
NAME = r"^[A-Za-z0-9][A-Za-z0-9+_.-]*$"
FileName = Annotated[str, Field(pattern=NAME)]
"""The name of something that becomes a file of that name: no path."""


class Strict(BaseModel):
    """A table of the file in which a misspelled key is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=True)


class Parameters(Strict):
    """Base of the parameters of a step kind. Numbers given as text are refused, not converted."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, protected_namespaces=())


class About(Strict):
    """What is asked. `reference` names the cells without privacy, such as { mechanism = "none" }: their scores are the
    ceilings. `watts` is what one busy core is taken to draw, for the energy estimate. What does not `count` (a test of
    the runner) is left out of the total over all experiments."""

    name: str = Field(pattern=NAME)
    title: str
    paper: str = ""
    question: str = ""
    reference: dict[str, Value] = {}
    watts: float = Field(default=15.0, gt=0)
    count: bool = True


class Part(Strict):
    """Some rows of one file: those that match `where`, shuffled by a public seed, after `skip` of them `rows`."""

    file: str
    format: str | None = None
    rows: int | None = Field(default=None, ge=1)
    skip: int = Field(default=0, ge=0)
    seed: int = 0
    where: dict[str, str] = {}


class DataSet(Strict):
    """Texts and labels of one task, in parts such as train and test; or `files` as they are (graphs).

    access   "private" unless it is declared "public": what pretrains a model must be public
    keep     further columns, for attackers
    """

    about: str = ""
    access: Literal["private", "public"] = "private"
    task: Literal["classification", "pairs", "similarity", "tagging"] | None = None
    text: str | list[str] = []
    label: str | None = None
    keep: list[str] = []
    parts: dict[FileName, Part] = {}
    files: dict[FileName, str] = {}

    @property
    def text_columns(self) -> list[str]:
        return [self.text] if isinstance(self.text, str) else list(self.text)


class Published(Strict):
    """Values of one table of a paper. Each row holds one value for each of `axes`, then the published number.

    ours         step and measure that it is compared with, such as "task.accuracy"
    difference   why ours can differ: a smaller model, other data
    mixed        why epsilons that mean different things stand in one table, where they do
    signed       whether the numbers are changes, of which the sign matters; by default, whether one is negative or ours
                 is a difference
    """

    source: str
    ours: str
    axes: list[str]
    rows: list[list[Value]]
    unit: str = ""
    difference: str
    mixed: str = ""
    signed: bool | None = None


class Finding(Strict):
    """A published statement and how to check it (see `tacit.experiments.findings`).

    ours          nobody has published it: it is counted apart
    explanation   why we do not agree, where that is known; needed for a disagreement
    untestable    why it cannot be checked here, in place of a check
    mixed         why epsilons that mean different things are compared, where they are
    """

    statement: str
    source: str
    ours: bool = False
    check: str | None = None
    explanation: str = ""
    untestable: str = ""
    mixed: str = ""


class Figure(Strict):
    """A drawing: `value` (an expression as in findings) against the axis `x`, one line (or row) for each value of
    `lines`, one picture for each value of `panels`."""

    title: str
    kind: Literal["curve", "heatmap", "bars"] = "curve"
    value: str
    x: str = "epsilon"
    lines: str = "mechanism"
    panels: str | None = None
    label: str = ""
    where: dict[str, Value | list[Value]] = {}


class WideTable(Strict):
    """One table of everything: a row for each value of the axis `rows`, and for each of `values` (expressions as in
    findings) a column for each value of the axis `columns`.

    labels   what the values are called; the expressions themselves by default
    """

    title: str
    values: list[str] = Field(min_length=1)
    labels: list[str] = []
    rows: str = "mechanism"
    columns: str = "epsilon"
    where: dict[str, Value | list[Value]] = {}
    note: str = ""


class Experiment(Strict):
    """A file in one size. `other_sizes` holds the same file in its other sizes."""

    experiment: About
    data: dict[str, DataSet] = {}
    variants: dict[str, dict[str, dict[str, Any]]] = {}
    steps: dict[str, dict[str, Any]]
    sizes: dict[str, dict[str, Any]] = {}
    published: list[Published] = []
    findings: list[Finding] = []
    figures: list[Figure] = []
    tables: list[WideTable] = []
    _other_sizes: dict[str, Experiment] = PrivateAttr(default_factory=dict)

    @property
    def other_sizes(self) -> Mapping[str, Experiment]:
        return self._other_sizes


# Reading ----------------------------------------------------------------------------------------------------------


def load(path: str | Path, size: str = "quick") -> Experiment:
    """The experiment of a file in one size, checked as far as the file alone allows."""
    return of_dict(read(path), size, Path(path).name)


def read(path: str | Path) -> dict[str, Any]:
    try:
        return tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise BadInputError(
            f"there is no experiment file '{path}': 'tacit experiment list' shows those of a folder"
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise BadInputError(f"the experiment file '{path}' cannot be read: {type(error).__name__}") from None
    except tomllib.TOMLDecodeError as error:
        raise BadInputError(f"'{path}' is not a TOML file: {error}") from None


def of_dict(found: Mapping[str, Any], size: str, name: str = "the experiment") -> Experiment:
    sizes = _sizes(found, name)
    if size not in sizes and size not in SIZES:
        raise BadInputError(f"{name} has no size '{size}': choose from {', '.join(dict.fromkeys((*SIZES, *sizes)))}")
    # A mistake in a size is found whichever size is asked for.
    _validated(found, name)
    known = dict.fromkeys((*SIZES, *sizes))
    every = {one: _validated(_replaced(found, sizes.get(one, {}), f"sizes.{one}"), f"{name}, {one}") for one in known}
    asked = every.pop(size)
    asked._other_sizes.update(every)
    return asked


def _sizes(found: Mapping[str, Any], name: str) -> Mapping[str, Mapping[str, Any]]:
    """What each size replaces. It is read before the file is validated, because it decides what is validated."""
    sizes = found.get("sizes", {})
    if not isinstance(sizes, Mapping) or not all(isinstance(changes, Mapping) for changes in sizes.values()):
        raise BadInputError(f"{name}: 'sizes' holds a table for each size, such as [sizes.full]; write it so")
    return sizes


def _validated(found: Mapping[str, Any], name: str) -> Experiment:
    try:
        return Experiment.model_validate(dict(found))
    except ValidationError as error:
        raise BadInputError(f"{name}: {sentence(error, Experiment)}") from None


def _replaced(base: Mapping[str, Any], changes: Mapping[str, Any], where: str) -> dict[str, Any]:
    """`changes` laid over `base`, table by table; lists and values are replaced as a whole."""
    result = dict(base)
    for key, value in changes.items():
        if isinstance(value, Mapping) and isinstance(result.get(key, {}), Mapping):
            result[key] = _replaced(result.get(key, {}), value, f"{where}.{key}")
        else:
            result[key] = value
    return result


# Errors -----------------------------------------------------------------------------------------------------------


def sentence(error: ValidationError, model: type[BaseModel], where: str = "") -> str:
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
            f"'{place}' is {_shown(first['input'])}, which is no name: take letters, digits and + _ . - only, with a "
            "letter or digit in front"
        )
    reason = str(first["msg"])
    return f"'{place}' is {_shown(first['input'])}, but {reason[:1].lower()}{reason[1:]}"


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"a {type(value).__name__}"


def _unknown(place: str, known: Sequence[str]) -> str:
    table, _, key = place.rpartition(".")
    close = get_close_matches(key, known, n=1)
    hint = f"; did you mean '{close[0]}'?" if close else ""
    allowed = f" The keys there are: {', '.join(known)}" if known else ""
    return f"unknown key '{key}'{f' in {table}' if table else ''}{hint}{allowed}"


def _fields_at(model: type[BaseModel], place: Sequence[str | int]) -> list[str]:
    """The keys that are allowed at a place, following names through tables of tables and lists."""
    here: Any = model
    for part in place:
        if isinstance(here, type) and issubclass(here, BaseModel):
            field = here.model_fields.get(str(part))
            here = None if field is None else field.annotation
        else:
            here = (get_args(here) or (None,))[-1]
    while not isinstance(here, type) and get_args(here):
        here = get_args(here)[-1]
    return list(here.model_fields) if isinstance(here, type) and issubclass(here, BaseModel) else []


def parse(model: type[Parameters], values: Mapping[str, Any], where: str) -> Parameters:
    """The parameters of a step, or a sentence about the first that is wrong."""
    try:
        return model.model_validate(dict(values))
    except ValidationError as error:
        raise BadInputError(sentence(error, model, where)) from None


# Files ------------------------------------------------------------------------------------------------------------


def data_folders(experiment_file: Path | None, given: Path | None = None) -> list[Path]:
    """Where data files are looked for, first to last."""
    folders = [*brought_folders(), *([experiment_file.parent] if experiment_file is not None else [])]
    if given is not None:
        return [*folders, given]
    named = os.environ.get(DATA_VARIABLE)
    here = Path(FOLDER) if Path(FOLDER).is_dir() else Path("../shared/data")
    return [*folders, Path(named) if named else here]


def wanted_files(experiment: Experiment) -> list[str]:
    """All data files that an experiment names, as it names them."""
    named = [part.file for data in experiment.data.values() for part in data.parts.values()]
    return list(dict.fromkeys([*named, *(file for data in experiment.data.values() for file in data.files.values())]))


def find_file(name: str, folders: Sequence[Path], where: str) -> Path:
    for folder in folders:
        if (folder / name).is_file():
            return folder / name
    looked = " or ".join(str(folder) for folder in folders)
    raise BadInputError(
        f"'{where}' names the file '{name}', which is not in {looked}: set {DATA_VARIABLE} (or --data) to the folder "
        "of the data sets"
    )
