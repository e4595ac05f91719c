"""The job of each way with its options: what the recommended command runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tacit.errors import BadInputError
from tacit.jobs.config import Config, file_name
from tacit.jobs.guide.config import GuideConfig
from tacit.jobs.guide.header import ColumnRoles, roles_of
from tacit.jobs.guide.questions import Purpose, Secret
from tacit.jobs.guide.rules import EPSILON, TOPIC_COUNT, Way
from tacit.text.files import open_table
from tacit.text.files.formats import listed_columns

UNNAMED_FILE: Final = "your-file.csv"
UNNAMED: Final = ColumnRoles("text", "label", "user")
"""The file and the columns of a command for a file that the guide has not seen."""
POOL: Final = "public-pool.tacit"
CODEBOOK: Final = "public-codebook"


@dataclass(frozen=True)
class CommandPlan:
    """The file and the answers that a command is made for.

    answers  of the questions
    columns  of the file; empty where there is none
    roles    the columns by what they are for
    rows     of the file; None where nobody knows
    """

    answers: GuideConfig
    columns: tuple[str, ...]
    roles: ColumnRoles
    rows: int | None

    @property
    def file(self) -> Any:
        return UNNAMED_FILE if self.answers.data is None else self.answers.data

    @property
    def text(self) -> str | None:
        """The column of texts as a command names it: not at all where it is the only one."""
        return None if len(self.columns) == 1 else self.roles.text

    @property
    def user(self) -> str | None:
        """The column of persons, where the promise is made to persons with several rows."""
        if self.answers.protect is not Secret.PERSON or not self.answers.several_rows:
            return None
        return self.roles.user or self._missing("user_column", "the person who wrote a row")

    @property
    def label(self) -> str:
        """The column of labels, where there must be one."""
        return self.roles.label or self._missing("label_column", "the label")

    @property
    def persons(self) -> int | None:
        """How many persons there are at least; None where nobody knows."""
        per_person = self.answers.rows_per_person
        return None if self.rows is None or per_person is None else max(1, self.rows // per_person)

    def epsilon(self, way: Way) -> float:
        return self.answers.epsilon or EPSILON[way]

    def _missing(self, option: str, what: str) -> str:
        raise BadInputError(
            "which-column-for",
            "say which column holds {what}, with {option." + option + "[NAME]}: this file has {columns}",
            what=what,
            columns=listed_columns(self.columns),
        )


@dataclass(frozen=True)
class JobSequence:
    """The job that is recommended, and jobs on public text that come before it."""

    config: Config
    before: tuple[Config, ...] = ()


def sequence_for(way: Way, plan: CommandPlan) -> JobSequence:
    """The job of a way for a file."""
    return _SEQUENCES[way](plan)


def _labels(plan: CommandPlan) -> dict[str, Any]:
    """The options of a sketch about labels: public topics where there is no column of labels."""
    if plan.roles.label is None:
        return {"topics": TOPIC_COUNT}
    known = {"labels": plan.answers.labels} if plan.answers.labels else {"declare_labels_public": True}
    return {"label_column": plan.roles.label, **known}


def _rows(plan: CommandPlan) -> dict[str, Any]:
    options = {"data": plan.file, "column": plan.text, "user_column": plan.user, "format": plan.answers.format}
    return {name: value for name, value in options.items() if value is not None}


def _pool(plan: CommandPlan) -> tuple[Config, ...]:
    """The job that turns the public text into a pool."""
    from tacit.jobs.pool import PoolConfig

    public = plan.answers.public_text
    if public is None:
        return ()
    return (
        PoolConfig(
            public_files=(public,), column=public_column(public), public=file_name(public), output=Path(POOL),
        ),
    )  # fmt: skip


def public_column(public: str) -> str | None:
    """The column of a public file that holds texts."""
    with open_table(public) as table:
        columns = table.columns
    return None if len(columns) == 1 else roles_of(columns, ColumnRoles()).text


def _corpus(plan: CommandPlan, labels: Mapping[str, Any], way: Way, output: str) -> JobSequence:
    from tacit.jobs.fields import USUAL_POOLS
    from tacit.jobs.synthesize_config import MatchingConfig

    before = _pool(plan)
    pools: dict[str, Any] = {"pools": (*USUAL_POOLS, POOL)} if before else {}
    return JobSequence(
        MatchingConfig(**_rows(plan), **labels, **pools, epsilon=plan.epsilon(way), output=Path(output)), before
    )


def _matching(plan: CommandPlan) -> JobSequence:
    return _corpus(plan, _labels(plan), Way.MATCHING, "synthetic.csv")


def _topics(plan: CommandPlan) -> JobSequence:
    return _corpus(plan, {"topics": TOPIC_COUNT}, Way.TOPICS, "topics.csv")


def _sketch(plan: CommandPlan) -> JobSequence:
    from tacit.jobs.sketched_rows import SketchConfig

    return JobSequence(
        SketchConfig(**_rows(plan), **_labels(plan), epsilon=plan.epsilon(Way.SKETCH), output=Path("sketch.tacit"))
    )


def _training(plan: CommandPlan) -> JobSequence:
    from tacit.jobs.train import TrainClassify

    return JobSequence(TrainClassify(**{**_model(plan, Way.TRAINING), **batch_for(plan.rows)}))


def _federated(plan: CommandPlan) -> JobSequence:
    from tacit.jobs.federate import CONFIGS

    usual = CONFIGS["classify"].model_fields["cohort"].default
    cohort = {"cohort": _quarter(plan.persons)} if _quarter(plan.persons, usual) < usual else {}
    return JobSequence(CONFIGS["classify"](**{**_model(plan, Way.FEDERATED), "user_column": plan.user, **cohort}))


def batch_for(rows: int | None) -> dict[str, int]:
    """The option of training that fits so many rows: at most a quarter of them in a step, on average."""
    from tacit.jobs.train import TrainClassify

    usual = TrainClassify.model_fields["batch"].default
    return {"batch": _quarter(rows)} if _quarter(rows, usual) < usual else {}


def _quarter(count: int | None, usual: int = 1) -> int:
    return usual if count is None else max(1, count // 4)


def _model(plan: CommandPlan, way: Way) -> dict[str, Any]:
    return {
        "data": plan.file,
        "text_column": plan.roles.text,
        "label_column": plan.label,
        "labels": plan.answers.labels,
        "epsilon": plan.epsilon(way),
        "output": Path("model"),
    }


def _words(plan: CommandPlan) -> JobSequence:
    from tacit.jobs.rewrite_config import RewriteConfig

    kept = plan.answers.purpose in (Purpose.SHARE, Purpose.CLASSIFIER) and plan.roles.label is not None
    return JobSequence(
        RewriteConfig(
            **_texts(plan),
            keep=(plan.label,) if kept else (),
            epsilon=plan.epsilon(Way.WORDS),
            output="rewritten.csv",
        )
    )


def _codebook(plan: CommandPlan) -> JobSequence:
    from tacit.jobs.codebook import CodebookConfig
    from tacit.jobs.rewrite_config import RewriteConfig

    options: dict[str, Any] = {}
    if plan.answers.labels and plan.roles.label is not None:
        options |= {"randomize": plan.label, "labels": plan.answers.labels}  # text and label by one choice
    before: tuple[Config, ...] = ()
    public = plan.answers.public_text
    if public is not None:
        before = (
            CodebookConfig(
                text=public, column=public_column(public), public=file_name(public), output=Path(CODEBOOK),
            ),
        )  # fmt: skip
        options["options"] = {"codebook": CODEBOOK}
    return JobSequence(
        RewriteConfig(
            **_texts(plan), level="document", epsilon=plan.epsilon(Way.CODEBOOK), user_column=plan.user,
            output="rewritten.csv", **options,
        ),
        before,
    )  # fmt: skip


def _texts(plan: CommandPlan) -> dict[str, Any]:
    return {
        "input": plan.file,
        "columns": () if plan.text is None else (plan.text,),
        "format": plan.answers.format,
    }


_SEQUENCES: Final[Mapping[Way, Callable[[CommandPlan], JobSequence]]] = {
    Way.MATCHING: _matching,
    Way.SKETCH: _sketch,
    Way.TOPICS: _topics,
    Way.TRAINING: _training,
    Way.FEDERATED: _federated,
    Way.CODEBOOK: _codebook,
    Way.WORDS: _words,
}
