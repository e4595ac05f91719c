"""The advice of the guide: one job with its options, what it promises, and what to expect from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tacit.errors import PYTHON, BadInputError, BadParameterError, Naming
from tacit.guarantee import Model, Notion, Unit
from tacit.jobs.config import Config
from tacit.jobs.guide.config import GuideConfig
from tacit.jobs.guide.header import ColumnRoles, FileShape, roles_of, shape_of
from tacit.jobs.guide.measures import COMPARED_WITH, Expectation, expectation_sentence, expectations
from tacit.jobs.guide.remarks import Remark, remarks_on
from tacit.jobs.guide.rules import GAPS, PROMISES, Gap, Way, way_for
from tacit.jobs.guide.ways import UNNAMED, CommandPlan, sequence_for
from tacit.jobs.sources import IN_MEMORY
from tacit.needs import why_not
from tacit.progress import StepProgress
from tacit.rounding import exact, exponential_up
from tacit.text.files.memory import is_in_memory

REQUIRED: Final = ("protect", "seen_by", "purpose")
"""What has to be answered; everything else has an answer on the safe side."""
EXAMPLE_ROWS: Final = 10
"""Rows of a person for which a total is shown where their number is not known."""

CALLS: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    "synthesize": ("tacit.synthesize", ()),
    "sketch": ("tacit.sketch", ()),
    "rewrite": ("tacit.rewrite", ()),
    "train classify": ("tacit.train", ("classify",)),
    "federate classify": ("tacit.federate", ("classify",)),
    "pool": ("tacit.jobs.pool.build", ()),
    "codebook": ("tacit.jobs.codebook.build", ()),
}
"""The function of each job that is recommended, and what stands before the data in its call."""


@dataclass(frozen=True)
class Advice:
    """One job, ready to run, with what it promises and what to expect.

    config        the options of the job; `tacit.run` runs it
    before        jobs on public text that come first
    unit          what one secret is
    epsilon       its whole budget (of one word, per unit of distance, at the word level)
    promise       what is promised, in words
    gaps          what is not, as code knows it; `not_covered` in words
    rows          for how many rows, or persons, expectations are given; None where that is not known
    expected      what to expect, for each public data set that was measured
    compared      the same of another way that may do better with few rows; empty where there is none
    install       the command that installs what the job lacks; None if nothing is missing
    """

    way: Way
    config: Config
    before: tuple[Config, ...]
    unit: Unit
    model: Model
    notion: Notion
    epsilon: float
    promise: str
    gaps: tuple[Gap, ...]
    not_covered: tuple[str, ...]
    rows: int | None
    expected: tuple[Expectation, ...]
    compared: tuple[Expectation, ...]
    remarks: tuple[Remark, ...]
    install: str | None

    def to_dict(self, naming: Naming = PYTHON) -> dict[str, Any]:
        """The advice as plain JSON values."""
        return {
            "way": self.way.value,
            "job": self.config.job,
            "options": _plain_options(self.config),
            "python": python_call(self.config),
            "before": [{"job": each.job, "options": _plain_options(each)} for each in self.before],
            "unit": self.unit.value,
            "model": self.model.value,
            "notion": self.notion.value,
            "epsilon": self.epsilon,
            "promise": self.promise,
            "not_covered": list(self.not_covered),
            "rows": self.rows,
            "expectations": [each.to_dict() for each in self.expected],
            "compared": [each.to_dict() for each in self.compared],
            "remarks": [each.rendered(naming) for each in self.remarks],
            "install": self.install,
        }

    def __str__(self) -> str:
        calls = [python_call(each) for each in (*self.before, self.config)]
        lines = [*calls, "", self.promise, "Not covered:", *(f"- {line}" for line in self.not_covered)]
        lines += ["Expect:", *(f"- {expectation_sentence(each)}" for each in self.expected)]
        if self.compared:
            lines += ["For comparison:", *(f"- {expectation_sentence(each)}" for each in self.compared)]
        return "\n".join([*lines, *(each.rendered() for each in self.remarks)])


def guide(data: object = None, *, progress: StepProgress | None = None, **answers: Any) -> Advice:
    """Which job fits, what it promises and what to expect from it; answers as in `GuideConfig`.

    >>> guide(protect="text", seen_by="curator", purpose="share", private_rows=3_000).config.job
    'synthesize'
    """
    return run(GuideConfig(data=data, **answers), progress)


def run(config: GuideConfig, progress: StepProgress | None = None) -> Advice:
    """The advice for some answers. Of a private file only column names and the number of rows are looked at."""
    missing = [name for name in REQUIRED if getattr(config, name) is None]
    if missing:
        raise BadParameterError(
            "unanswered-question",
            "answer the guide's questions: " + ", ".join(f"{{option.{name}}}" for name in missing),
            missing=tuple(missing),
        )
    _check_public_text(config)
    shape = None if config.data is None else shape_of(config.data, config.format, progress)
    return _advice(config, shape)


def _check_public_text(config: GuideConfig) -> None:
    """Refuse a private file in the place of public text: releases repeat public text word for word."""
    public, data = config.public_text, config.data
    if public is None or data is None or is_in_memory(data):
        return
    if Path(public).resolve() == Path(str(data)).resolve():
        raise BadInputError(
            "private-as-public",
            "{option.public_text} is the private file itself, and releases repeat public text word for word: name a "
            "file that everybody may read, or leave it out",
        )


def _advice(config: GuideConfig, shape: FileShape | None) -> Advice:
    secret, reader, purpose = config.protect, config.seen_by, config.purpose
    assert secret is not None
    assert reader is not None
    assert purpose is not None
    way = way_for(secret, reader, purpose, several=config.several_rows)
    rows = config.private_rows if shape is None else shape.rows
    plan = _plan(config, shape, rows)
    sequence = sequence_for(way, plan)
    unit = unit_of(way, sequence.config)
    epsilon = budget_of(sequence.config)
    counted = plan.persons if unit is Unit.USER else rows
    gaps = gaps_of(way, sequence.config, unit)
    missing = why_not("this", [need for each in (*sequence.before, sequence.config) for need in each.needs()])
    promise = PROMISES[way]
    return Advice(
        way=way,
        config=sequence.config,
        before=sequence.before,
        unit=unit,
        model=promise.model,
        notion=promise.notion,
        epsilon=epsilon,
        promise=_promise_sentence(way, unit, epsilon),
        gaps=gaps,
        not_covered=tuple(_gap_sentence(gap, unit, epsilon, config, plan) for gap in gaps),
        rows=counted,
        expected=tuple(expectations(way, counted)),
        compared=tuple(expectations(COMPARED_WITH[way], counted)) if way in COMPARED_WITH else (),
        remarks=tuple(remarks_on(way, config, shape, plan, sequence, counted)),
        install=None if missing is None else str(missing.fields["install"]),
    )


def _plan(config: GuideConfig, shape: FileShape | None, rows: int | None) -> CommandPlan:
    chosen = ColumnRoles(config.column, config.label_column, config.user_column)
    if shape is not None:
        return CommandPlan(config, shape.columns, roles_of(shape.columns, chosen), rows)
    roles = ColumnRoles(chosen.text or UNNAMED.text, chosen.label or UNNAMED.label, chosen.user or UNNAMED.user)
    return CommandPlan(config, (), roles, rows)


# What a job promises --------------------------------------------------------------------------------------------------


def unit_of(way: Way, config: Config) -> Unit:
    """The unit of the promise of a job: a person where a column names them, a record where a label is released
    beside a text."""
    promise = PROMISES[way]
    if getattr(config, "user_column", None) is not None and promise.person_unit is not None:
        return promise.person_unit
    return Unit.RECORD if getattr(config, "randomize", None) is not None else promise.unit


def budget_of(config: Config) -> float:
    """The whole budget of one secret, with its label where one is released."""
    values: Any = config
    return float(values.epsilon)


def gaps_of(way: Way, config: Config, unit: Unit) -> tuple[Gap, ...]:
    """The gaps in the promise of a job."""
    gaps = list(PROMISES[way].gaps)
    if any(getattr(config, name, None) for name in ("label_column", "label_columns", "randomize")):
        gaps.insert(0, Gap.LABEL_LIST)
    if getattr(config, "keep", ()):
        gaps.append(Gap.LABELS)
    if unit in (Unit.RECORD, Unit.DOCUMENT):
        gaps.append(Gap.SEVERAL_ROWS)
    return tuple(gaps)


_CENTRAL_UNITS: Final = {Unit.RECORD: "one row", Unit.USER: "one person, with all rows,"}
_LOCAL_UNITS: Final = {
    Unit.TOKEN: "one word is",
    Unit.DOCUMENT: "one text says",
    Unit.RECORD: "one text says and whatever its label is",
    Unit.USER: "one person wrote",
}
_RESULTS: Final = {
    Way.MATCHING: "the corpus",
    Way.TOPICS: "the corpus",
    Way.SKETCH: "the sketch",
    Way.TRAINING: "the model",
    Way.FEDERATED: "the model",
}


def _promise_sentence(way: Way, unit: Unit, epsilon: float) -> str:
    words = _CENTRAL_UNITS if PROMISES[way].model is Model.CENTRAL else _LOCAL_UNITS
    return PROMISES[way].covered.format(
        unit=words[unit],
        result=_RESULTS.get(way, ""),
        epsilon=exact(epsilon),
        odds=exponential_up(epsilon, 3),
    )


def _gap_sentence(gap: Gap, unit: Unit, epsilon: float, config: GuideConfig, plan: CommandPlan) -> str:
    known = config.rows_per_person or 1
    rows = known if known > 1 else EXAMPLE_ROWS
    return GAPS[gap].format(
        units="persons" if unit is Unit.USER else "rows",
        rows=rows,
        total=f"epsilon {exact(epsilon * rows)}",
        label=plan.roles.label,
    )


# Plain values ---------------------------------------------------------------------------------------------------------


def _plain_options(config: Config) -> dict[str, Any]:
    """The options that are not at their default, as a file would hold them."""
    return config.model_dump(mode="json", exclude_defaults=True)


def python_call(config: Config) -> str:
    """The call that does the job in Python; data in memory are called `data`."""
    function, first = CALLS[config.job]
    options = _plain_options(config)
    options.pop("by", None)
    data = next((options.pop(name) for name in ("data", "input", "text", "public_files") if name in options), None)
    shown = "data" if data == IN_MEMORY else repr(data)
    values = [repr(value) for value in first] + [shown] + [f"{name}={value!r}" for name, value in options.items()]
    return f"{function}({', '.join(values)})"
