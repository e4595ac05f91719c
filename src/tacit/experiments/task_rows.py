"""Rows of a data set as a task of `tacit.training` reads them: by the roles of their columns."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from tacit.errors import BadInputError
from tacit.evaluation import scores
from tacit.experiments.config import DataSet
from tacit.experiments.inputs import check_apart, check_labeled, check_part
from tacit.experiments.raw import Rows, read_json
from tacit.noise.source import public_generator

TaskName = Literal["classification", "pairs", "tagging", "answering"]


def task_of(data: Path) -> TaskName:
    task: TaskName | None = read_json(data / "about.json")["task"]
    if task not in ("classification", "pairs", "tagging"):
        raise BadInputError(
            "untrained-task",
            "the data set has the task '{task}': models are trained for classification, pairs and tagging, or for task"
            ' = "answering" on the step',
            task=task,
        )
    return task


TaskRows = list[dict[str, str]]


def task_rows(name: TaskName, train: Rows, test: Rows, seed: int) -> tuple[TaskRows, TaskRows]:
    """Training and test rows, by the roles that a task of `tacit.training` reads."""
    for rows in (train, test):
        if any(label is None for label in rows.labels):
            raise BadInputError(
                "data-without-labels",
                "the data set names no label: add 'label' to it",
            )
    if name != "answering":
        return _plain_rows(name, train), _plain_rows(name, test)
    if len(train.texts[0]) == 2:
        return _question_rows(train), _question_rows(test)
    kinds = sorted({kind for label in train.labels for _, _, kind in scores.entities(str(label).split())})
    return questions_from_tags(train, kinds, seed), questions_from_tags(test, kinds, seed)


def _plain_rows(name: TaskName, rows: Rows) -> TaskRows:
    roles = {"classification": ("text",), "pairs": ("text", "pair"), "tagging": ("text",)}[name]
    target = "tags" if name == "tagging" else "label"
    return [
        {**dict(zip(roles, texts, strict=True)), target: str(label)}
        for texts, label in zip(rows.texts, rows.labels, strict=True)
    ]


def _question_rows(rows: Rows) -> TaskRows:
    return [
        {"question": question, "context": context, "answer": str(answer)}
        for (question, context), answer in zip(rows.texts, rows.labels, strict=True)
    ]


def questions_from_tags(rows: Rows, kinds: Sequence[str], seed: int) -> TaskRows:
    """One question about each tagged text: half of them ask for an entity that the text has once, half for a kind of
    entity that it does not have, to which the answer is nothing, as in SQuAD 2. Texts without either are left out.

    What is asked is drawn by a public hash of the text: a record decides about no other record's question.
    """
    if len(kinds) < 2:
        raise BadInputError(
            "too-few-kinds",
            "questions are made from tags such as B-artist: the data set has fewer than two kinds",
        )
    questions = []
    for texts, label in zip(rows.texts, rows.labels, strict=True):
        words = texts[0].split()
        hashed = hashlib.blake2b(texts[0].encode("utf-8"), digest_size=8, key=str(seed).encode("utf-8"))
        generator = public_generator(int.from_bytes(hashed.digest(), "little"))
        there: dict[str, list[str]] = {}
        for start, end, kind in sorted(scores.entities(str(label).split())):
            there.setdefault(kind, []).append(" ".join(words[start:end]))
        once = [kind for kind in there if len(there[kind]) == 1 and kind in kinds]
        absent = [kind for kind in kinds if kind not in there]
        answerable = once and (generator.random() < 0.5 or not absent)
        choice = once if answerable else absent
        if not choice:
            continue
        kind = choice[int(generator.integers(len(choice)))]
        questions.append({"question": f"{kind.replace('_', ' ')}?", "context": " ".join(words),
                      "answer": there[kind][0] if answerable else ""})  # fmt: skip
    return questions


def check_rows(data: DataSet, task: str | None, train: str, test: str) -> None:
    """Whether a data set has the rows that a model is trained and tested on."""
    if task not in ("classification", "pairs", "tagging", "answering"):
        has = "no task" if task is None else f"the task '{task}'"
        raise BadInputError(
            "untrained-task",
            "the data set has {has}: models are trained for classification, pairs and tagging; name one of them in "
            "'task' of the data set",
            has=has,
        )
    check_labeled(data)
    check_part(data, train, "train")
    check_part(data, test, "test")
    check_apart(data, train, test)
    there, wanted = len(data.text_columns), 2 if task == "pairs" else 1
    if there != wanted and task != "answering":
        raise BadInputError(
            "columns-of-task",
            "the task '{task}' reads {wanted} of the columns, and 'text' of the data set names {named}: change 'text' "
            "or 'task'",
            task=task,
            wanted=wanted,
            named=there,
        )
