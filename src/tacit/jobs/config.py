"""The base class of all configurations of jobs: frozen, validated, complete in its fields.

A field says all that an adapter has to know: its type with choices and range, its default, what it means
(`description`), and by an `Option` in which group it is shown and whether it stands first on a command line. Fields of
the group `Group.RUN` change how fast, where or how loudly a job runs, and never what it releases or promises: they are
left out of `Config.identity`, by which a release names the configuration that made it.
"""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path, PurePath
from typing import Any, ClassVar, Self, get_origin

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError, model_validator
from pydantic.fields import FieldInfo

from tacit.errors import BadInputError, BadParameterError
from tacit.needs import Ability

LONGEST_QUOTED = 40


class Group(StrEnum):
    """The headings under which options are shown."""

    DATA = "Files and columns"
    PRIVACY = "Privacy"
    MODEL = "Model"
    TRAINING = "Training"
    WRITING = "Writing"
    MEASURES = "Measures"
    CHECK = "Check (private)"
    BUDGET = "Spent budget"
    RUN = "Running"


@dataclass(frozen=True)
class Option:
    """How a field is shown as an option.

    group       its heading
    positional  it stands first on a command line, without a name
    old_names   names of earlier versions, as fields are named, which still work and are not shown
    metavar     what stands for its value in help
    unit        the unit of a number, such as "rows"
    comma_separated  several values stand in one, with commas
    name        its name on a command line, if that is not the name of the field
    off_name    the name by which a yes or no is switched off on a command line
    variable    the variable of the environment that gives its value, where nothing else does
    alone       the value that it has on a command line when it is given without one
    private     it says where private data lie or what they are called, so no card names it
    scale       how much a 1 on a command line stands for: 1,000,000 for bytes that are given in megabytes
    """

    group: Group
    positional: bool = False
    old_names: tuple[str, ...] = ()
    metavar: str | None = None
    unit: str | None = None
    comma_separated: bool = False
    name: str | None = None
    off_name: str | None = None
    variable: str | None = None
    alone: int | None = None
    private: bool = False
    scale: int | None = None


class Varied:
    """How a shared option is shown otherwise in one configuration: `Annotated[Model[str], Varied(positional=True)]`.

    The option is declared once all the same: its name and what it means stay those of the declaration.
    """

    def __init__(self, **changes: Any) -> None:
        self.changes = changes


def _is_repeated(field: FieldInfo) -> bool:
    """Whether an option is a list of values, and none that reads a text in its own way (`a,b`)."""
    return get_origin(field.annotation) is tuple and not any(
        isinstance(part, BeforeValidator) for part in field.metadata
    )


class Config(BaseModel):
    """Base of all configurations; `job` names the use case in files and on cards."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True, ser_json_inf_nan="strings")

    job: ClassVar[str]

    def __init__(self, **values: Any) -> None:
        """Checked as a whole; what does not fit is one sentence about the first field that is wrong."""
        try:
            super().__init__(**values)
        except ValidationError as error:
            raise parameter_error(type(self), error) from None

    @model_validator(mode="before")
    @classmethod
    def _with_names_of_now(cls, values: object) -> object:
        """The values by the names of now: options keep working by the names of earlier versions. An option that may be
        repeated also takes one name alone."""
        if not isinstance(values, dict):
            return values
        renamed = dict(values)
        for name, field, option in cls.declared_options():
            for old in option.old_names:
                if old not in renamed or old in cls.model_fields:
                    continue
                if name in renamed:
                    raise option_twice(name)
                renamed[name] = renamed.pop(old)
            if isinstance(renamed.get(name), str | PurePath) and _is_repeated(field):
                renamed[name] = (renamed[name],)
        return renamed

    def __repr_args__(self) -> Iterator[tuple[str | None, object]]:
        """The values as a file would hold them: rows in memory are private, and are not shown."""
        yield from self.model_dump(mode="json").items()

    @classmethod
    def declared_options(cls) -> Iterator[tuple[str, FieldInfo, Option]]:
        """All fields with their options, in the order they are shown."""
        for name, field in cls.model_fields.items():
            yield name, field, option_of(field)

    def needs(self) -> list[Ability]:
        """The packages that this job needs with these options; checked before it begins."""
        return []

    def identity(self) -> dict[str, Any]:
        """The values that decide what is released, as plain JSON values; nothing that is private, and no folders."""
        left_out = {name for name, _, option in self.declared_options() if option.group is Group.RUN or option.private}
        values = self.model_dump(mode="json", exclude=left_out)
        shown = {
            name: file_name(str(value)) if isinstance(getattr(self, name), PurePath) else without_folders(value)
            for name, value in values.items()
        }
        return {"job": self.job, **shown}

    def to_toml(self) -> str:
        """This configuration as a TOML file that `tacit run` takes; fields at their default are left out."""
        values = self.model_dump(mode="json", exclude_defaults=True)
        lines = [f"{name} = {_toml(value)}" for name, value in {"job": self.job, **values}.items() if value is not None]
        return "\n".join(lines) + "\n"

    @classmethod
    def from_mapping(cls, values: Mapping[str, object]) -> Self:
        """A configuration from the values of a file, whose `job` must be this one."""
        fields = dict(values)
        job = fields.pop("job", cls.job)
        if job != cls.job:
            raise BadInputError(
                "another-job", "this file describes '{job}', not '{expected}'", job=job, expected=cls.job
            )
        return cls(**fields)


def file_name(path: str) -> str:
    """A path without its folders.

    >>> file_name("/home/me/vectors.txt")
    'vectors.txt'
    """
    return path.replace("\\", "/").rpartition("/")[2]


def without_folders(value: object) -> object:
    """A plain value whose texts that are certainly paths are cut to their names; a hub name stays as it is.

    >>> without_folders(["/home/me/vectors.txt", "glove", "someone/bert"])
    ['vectors.txt', 'glove', 'someone/bert']
    """
    if isinstance(value, str):
        return file_name(value) if value.startswith(("/", "~", "./", "../")) or "\\" in value else value
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)  # JSON has no infinite numbers
    if isinstance(value, list):
        return [without_folders(item) for item in value]
    if isinstance(value, dict):
        return {key: without_folders(item) for key, item in value.items()}
    return value


def option_of(field: FieldInfo) -> Option:
    """The option of a field with its variations; a field without one belongs to how a job runs."""
    option = declared_option(field) or Option(Group.RUN)
    for item in field.metadata:
        if isinstance(item, Varied):
            option = replace(option, **item.changes)
    return option


def declared_option(field: FieldInfo) -> Option | None:
    """The declaration of a field, which all fields of its name share."""
    return next((item for item in field.metadata if isinstance(item, Option)), None)


def option_twice(name: str) -> BadParameterError:
    """The error of an option that is given in two ways."""
    return BadParameterError("option-twice", "the option '{name}' is given twice: give it once", name=name)


def read_mapping(path: Path) -> dict[str, object]:
    """The values of a TOML or JSON file."""
    try:
        text = path.read_text(encoding="utf-8")
        values = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    except OSError as error:
        raise BadInputError(
            "no-such-file", "{path} cannot be read: {reason}", path=path, reason=error.strerror
        ) from None
    except ValueError:
        raise BadInputError("not-a-configuration", "{path} is neither TOML nor JSON", path=path) from None
    if not isinstance(values, dict):
        raise BadInputError("not-a-configuration", "{path} is not a table of options", path=path)
    return values


def _toml(value: object) -> str:
    """A JSON value as TOML; strings, numbers, booleans and lists are written alike in both."""
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{json.dumps(key)} = {_toml(item)}" for key, item in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(_toml(item) for item in value) + "]"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")  # the one character that only JSON allows


def parameter_error(config: type[Config], error: ValidationError) -> BadParameterError:
    """An error for the first value of a configuration that is not valid."""
    first = error.errors(include_url=False)[0]
    nested = first.get("ctx", {}).get("error")
    if isinstance(nested, BadParameterError):
        return nested
    name = str(first["loc"][0]) if first["loc"] else ""
    if first["type"] == "extra_forbidden":
        return BadParameterError(
            "unknown-option",
            "{job} has no option '{name}': it has {known}",
            job=config.job, name=name, known=", ".join(sorted(config.model_fields)),
        )  # fmt: skip
    if first["type"] == "missing":
        return BadParameterError("missing-option", "{job} needs {option." + name + "}", job=config.job, name=name)
    if not name:
        return BadParameterError("bad-options", "the options do not fit together: {reason}", reason=first["msg"])
    reason, details = _reason(first)
    return BadParameterError(
        "bad-option", "{option." + name + "} " + reason, name=name, given=quotable(first.get("input")), **details
    )


def quotable(value: object) -> str:
    """A value as an error may quote it: one that was typed, shortened; of anything larger, which may be the private
    data in the wrong place, only what kind of thing it is."""
    if not isinstance(value, str | int | float | bool | None):
        return f"a {type(value).__name__}"
    text = str(value)
    return text if len(text) <= LONGEST_QUOTED else f"{text[:LONGEST_QUOTED]}…"


def _reason(detail: Mapping[str, Any]) -> tuple[str, Mapping[str, object]]:
    """The reason why a value is not valid, as the rest of a sentence, and the fields that it names."""
    context = detail.get("ctx", {})
    known = _REASONS.get(str(detail["type"]))
    if known is not None:
        return known, {key: value for key, value in context.items() if key in ("expected", "ge", "gt", "le", "lt")}
    return "does not fit: {reason}", {"reason": str(detail["msg"]).removeprefix("Value error, ")}


_REASONS = {
    "literal_error": "must be one of {expected}, not '{given}'",
    "greater_than_equal": "must be at least {ge}, not {given}",
    "greater_than": "must be above {gt}, not {given}",
    "less_than_equal": "must be at most {le}, not {given}",
    "less_than": "must be below {lt}, not {given}",
    "int_parsing": "must be a whole number, not '{given}'",
    "int_from_float": "must be a whole number, not {given}",
    "int_type": "must be a whole number, not '{given}'",
    "float_parsing": "must be a number, not '{given}'",
    "float_type": "must be a number, not '{given}'",
    "string_type": "must be a text, not '{given}'",
    "bool_parsing": "must be yes or no, not '{given}'",
}
"""Our wording for the messages of pydantic, by their kind."""
