"""Originals and the releases made from them, read and aligned before anything is measured."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tacit.card import Card
from tacit.errors import BadInputError
from tacit.evaluation.downstream import Labeled, check_task, split_rows
from tacit.evaluation.learners import Task
from tacit.evaluation.rows import TextRows, align, card_beside, labeled, released_tags
from tacit.report import Finding, Light
from tacit.text.files.memory import is_in_memory

Reader = Callable[..., TextRows]
"""Reads a source: (source, columns, label column, format)."""


@dataclass(frozen=True)
class ComparedRows:
    """All rows that are compared: originals, releases by name, test rows, and the cards beside the releases."""

    task: Task
    label_column: str | None
    original: TextRows
    releases: dict[str, TextRows]
    test: TextRows | None
    released_tests: dict[str, TextRows]
    cards: dict[str, Card]


@dataclass(frozen=True)
class RowFiles:
    """The place of the rows: paths or data in memory, their columns and formats."""

    original: object
    private: Sequence[object]
    columns: Sequence[str] = ()
    private_columns: Sequence[str] = ()
    label_column: str | None = None
    test: object = None
    private_tests: Sequence[object] = ()
    format: str | None = None
    private_format: str | None = None


def read_comparison(files: RowFiles, task: Task, read: Reader) -> ComparedRows:
    """The rows of all files; each release must have the rows of its original, in the same order."""
    label = files.label_column
    original = read(files.original, files.columns, label, files.format)
    if label is not None and original.labels is None:
        raise BadInputError(
            "no-label-column",
            "{file} has no column '{column}': name the column of labels in it",
            file=original.name,
            column=label,
        )
    names = release_names(files.private)
    released_columns = files.private_columns or files.columns

    def read_release(source: object, partner: TextRows) -> TextRows:
        return align(partner, read(source, released_columns, label, files.private_format))

    releases = {name: read_release(source, original) for name, source in zip(names, files.private, strict=True)}
    test = None if files.test is None else read(files.test, files.columns, label, files.format)
    tests = {} if test is None else dict(zip(names, files.private_tests, strict=False))
    return ComparedRows(
        task=task,
        label_column=label,
        original=original,
        releases=releases,
        test=test,
        released_tests={name: read_release(source, test) for name, source in tests.items() if test is not None},
        cards=_cards(dict(zip(names, files.private, strict=True))),
    )


def _cards(sources: dict[str, object]) -> dict[str, Card]:
    cards = {name: card_beside(str(source).rstrip("/")) for name, source in sources.items() if not is_in_memory(source)}
    return {name: card for name, card in cards.items() if card is not None}


def release_names(sources: Sequence[object]) -> list[str]:
    """File names, with as much of the folder as it takes to tell them apart; data in memory is numbered."""
    paths = [
        f"release {number}" if is_in_memory(source) else str(source).rstrip("/")
        for number, source in enumerate(sources, start=1)
    ]
    if len(set(paths)) < len(paths):
        raise BadInputError("release-twice", "the same private file is given twice: name each file once")
    short = [Path(path).name for path in paths]
    return short if len(set(short)) == len(short) else paths


# Training and test rows -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Splits:
    """The rows for training and for testing, checked before anything slow begins."""

    train: Labeled
    test: Labeled
    releases: dict[str, Labeled]
    released_tests: dict[str, Labeled]
    remarks: list[Finding]
    tested: Sequence[int]
    """The places of the test rows in the test file, or in the originals where a part of them is set aside."""


def split_comparison(comparison: ComparedRows, label: str) -> Splits:
    """The rows of the given test file, or a fifth of all rows, are set aside in originals and releases alike."""
    task = comparison.task
    everything = labeled(task, comparison.original, label)
    remarks: list[Finding] = []
    tests: dict[str, Labeled] = {}
    if comparison.test is not None:
        train, test = everything, labeled(task, comparison.test, label)
        chosen: Sequence[int] = range(len(everything))
        held: Sequence[int] = range(len(test))
        for name, rows in comparison.released_tests.items():
            tests[name], more = _released_rows(task, name, rows, label, range(len(rows)))
            remarks += more
    else:
        chosen, held = split_rows(task, everything.labels)
        train, test = everything.at(chosen), everything.at(held)
        tests = {name: _released_rows(task, name, rows, label, held)[0] for name, rows in comparison.releases.items()}
    check_task(task, train, test)
    releases: dict[str, Labeled] = {}
    for name, rows in comparison.releases.items():
        releases[name], more = _released_rows(task, name, rows, label, chosen)
        remarks += [*more, *_changed_labels(comparison.original, name, rows)]
        check_task(task, releases[name], test)
    return Splits(train, test, releases, tests, remarks, held)


def _released_rows(
    task: Task, name: str, rows: TextRows, label: str, places: Sequence[int]
) -> tuple[Labeled, list[Finding]]:
    """The rows of a release at these places; for tagging, those that still have one token per tag."""
    if task != "tagging":
        return labeled(task, rows, label).at(places), []
    tagged = released_tags(rows, label)
    positions = {place: i for i, place in enumerate(tagged.places)}
    kept = tagged.rows.at([positions[place] for place in places if place in positions])
    if not tagged.unaligned:
        return kept, []
    remark = Finding(
        f"Tags of {name}", Light.AMBER,
        f"{len(tagged.unaligned):,} of {len(rows):,} rows do not have one released token per tag (the first is row "
        f"{tagged.unaligned[0]}) and were left out",
        numbers={"unaligned": len(tagged.unaligned)},
    )  # fmt: skip
    return kept, [remark]


def _changed_labels(original: TextRows, name: str, rows: TextRows) -> list[Finding]:
    if rows.labels is None or original.labels is None:
        return []
    changed = sum(a != b for a, b in zip(rows.labels, original.labels, strict=True))
    if not changed:
        return []
    share = changed / len(rows)
    sentence = f"{share:.1%} of the labels differ from the originals; training uses the released ones"
    return [Finding(f"Labels of {name}", Light.NONE, sentence, numbers={"changed": changed, "share": share})]
