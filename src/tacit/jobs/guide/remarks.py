"""Sentences beside an advice: what was taken for granted, what is lost, and what comes next."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from tacit.errors import PYTHON, Naming, worded
from tacit.jobs.guide.config import GuideConfig
from tacit.jobs.guide.header import FileShape
from tacit.jobs.guide.questions import Purpose, Secret
from tacit.jobs.guide.rules import FEWEST_ROWS, Way
from tacit.jobs.guide.ways import CommandPlan, JobSequence


class RemarkKind(StrEnum):
    """The subjects of remarks."""

    COLUMNS = "columns"
    ASSUMED = "assumed"
    RESULT = "result"
    LOSS = "loss"
    NEXT = "next"


@dataclass(frozen=True)
class Remark:
    """A sentence beside an advice; options in it are called as its readers call them."""

    kind: RemarkKind
    sentence: str
    fields: Mapping[str, object] = field(default_factory=dict)

    def rendered(self, naming: Naming = PYTHON) -> str:
        return worded(self.sentence, naming, self.fields)


def remarks_on(
    way: Way, config: GuideConfig, shape: FileShape | None, plan: CommandPlan, sequence: JobSequence, rows: int | None
) -> list[Remark]:
    """The remarks on the advice for some answers; `rows`: how many rows, or persons, there are."""
    remarks = [_column_remark(shape, plan)]
    if sequence.before:
        remarks.append(
            Remark(
                RemarkKind.ASSUMED, "The public text must really be public: what is released repeats it word for word."
            )
        )
    if config.protect is Secret.PERSON and config.rows_per_person is None:
        remarks.append(
            Remark(
                RemarkKind.ASSUMED,
                "It was taken that a person may have several rows; if not, {option.rows_per_person[1]} needs less.",
            )
        )
    if rows is not None and rows < FEWEST_ROWS:
        remarks.append(
            Remark(
                RemarkKind.LOSS,
                "With {rows:,} {what} there is little to hide one of them among: expect less than any number here.",
                {"rows": rows, "what": "persons" if getattr(sequence.config, "user_column", None) else "rows"},
            )
        )
    return [*remarks, *_remarks_of_way(way, config, plan, sequence.config)]


def _column_remark(shape: FileShape | None, plan: CommandPlan) -> Remark:
    if shape is None:
        return Remark(
            RemarkKind.COLUMNS, "Put the names of your file and of its columns in place, or name the file to the guide."
        )
    roles = {"texts": plan.roles.text, "labels": plan.roles.label, "persons": plan.roles.user}
    return Remark(
        RemarkKind.COLUMNS,
        "By the names of its columns the file has {roles}; {option.column}, {option.label_column} and "
        "{option.user_column} say it otherwise. Its values were not looked at.",
        {"roles": ", ".join(f"{what} in '{name}'" for what, name in roles.items() if name is not None)},
    )


def _remarks_of_way(way: Way, config: GuideConfig, plan: CommandPlan, job: Any) -> list[Remark]:
    remarks = []
    if way in (Way.MATCHING, Way.SKETCH) and plan.roles.label is None:
        remarks.append(Remark(RemarkKind.ASSUMED, "No column looks like labels, so public topics take their place."))
    if getattr(job, "declare_labels_public", False):
        remarks.append(
            Remark(
                RemarkKind.ASSUMED,
                "The command declares that the labels in the file are no secret; if they are, name them from public "
                "knowledge with {option.labels[A,B,C]}.",
            )
        )
    if way is Way.SKETCH:
        remarks.append(
            Remark(
                RemarkKind.NEXT,
                "Each place or period builds its own sketch in the same way; 'tacit sketch merge' adds them up, and "
                "'tacit synthesize' draws a corpus from the sum at no further cost.",
            )
        )
    if way is Way.FEDERATED:
        remarks.append(
            Remark(
                RemarkKind.RESULT,
                "Not measured by size; on 2,000 authors with four posts each, at epsilon 2, a model kept .63 of an "
                "accuracy of .65 (docs/federated.md, benchmarks/federated.py).",
            )
        )
    if way is Way.CODEBOOK:
        remarks += _codebook_remarks(config, plan, job)
    if config.format is not None and "format" not in type(job).model_fields:
        remarks.append(
            Remark(
                RemarkKind.NEXT,
                "This command tells the format of a file by its name and has no {option.format}: convert the file "
                "first, to csv, tsv or jsonl.",
            )
        )
    if config.public_text is not None and way in (Way.TRAINING, Way.FEDERATED, Way.WORDS, Way.SKETCH):
        remarks.append(Remark(RemarkKind.RESULT, "Public text of the same kind changes nothing about this command."))
    return remarks


def _codebook_remarks(config: GuideConfig, plan: CommandPlan, job: Any) -> list[Remark]:
    remarks = [
        Remark(
            RemarkKind.RESULT,
            "A single sentence says next to nothing about its text; many of them show what the texts are about. Run it "
            "where the text is written, so that only its output leaves.",
        )
    ]
    if job.user_column is not None:
        remarks.append(
            Remark(
                RemarkKind.LOSS,
                "One row of each person is released and the others are left out: more rows would share the budget.",
            )
        )
    wanted = config.purpose in (Purpose.SHARE, Purpose.CLASSIFIER)
    if wanted and job.randomize is None:
        remarks.append(
            Remark(
                RemarkKind.LOSS,
                "Labels are left out, because nobody may see them: to release them with noise, name all that exist "
                "from public knowledge with {option.labels[A,B,C]}.",
            )
        )
    return remarks
