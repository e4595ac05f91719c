"""Texts that a model was trained on, and texts of the same kind that it was not trained on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tacit.errors import BadInputError
from tacit.text.files import check_column, choose_columns, open_table, text_value
from tacit.text.files.memory import name_of


@dataclass(frozen=True)
class RoleColumns:
    """The columns of the rows that a model of 'tacit train' reads, by role, and which role is its target, if any."""

    columns: Mapping[str, str]
    target: str = ""
    optional: Sequence[str] = ()

    def named(self, column: str | None, label_column: str | None) -> RoleColumns:
        """The same, where the column of the texts or of the target was named otherwise."""
        changed = dict(self.columns)
        if column is not None:
            first = next(role for role in changed if role != self.target)
            changed[first] = column
        if label_column is not None and self.target:
            changed[self.target] = label_column
        return RoleColumns(changed, self.target, self.optional)


@dataclass(frozen=True)
class LabeledTexts:
    """Texts with their labels, if there are any; `read` counts the texts before some were left out. `rows` have the
    values by role, for models that read more than one text."""

    name: str
    texts: list[str]
    labels: list[str] | None
    read: int
    rows: list[dict[str, str]] | None = field(default=None, repr=False)

    def __str__(self) -> str:
        return f"{len(self.texts):,} of the {self.read:,} texts in {self.name}"


def read_members(
    members: object,
    non_members: object,
    column: str | None,
    label_column: str | None,
    format: str | None,
    roles: RoleColumns | None = None,
) -> tuple[LabeledTexts, LabeledTexts]:
    """Both sides, without empty texts and without texts that occur more than once in the two together: whether such a
    text was trained on is not one fact. That looks at the pool only, so fair coins stay fair."""
    named = None if roles is None else roles.named(column, label_column)
    sides = [
        read_texts(source, column, label_column, format) if named is None else _read_roles(source, named, format)
        for source in (members, non_members)
    ]
    if sum(side.labels is None for side in sides) == 1:
        raise BadInputError(
            "labels-on-one-side",
            "only one of the two files has the column of labels: both need it, or neither",
        )
    times = Counter(text for side in sides for text in side.texts)
    inside, outside = (_alone(side, times) for side in sides)
    return inside, outside


def read_texts(
    source: object, column: str | None = None, label_column: str | None = None, format: str | None = None
) -> LabeledTexts:
    """The texts of a file, with their labels if their column is named."""
    with open_table(source, format) as table:
        names = list(choose_columns(table.columns, () if column is None else (column,), ()).texts)
        if label_column is not None:
            check_column(label_column, table.columns)
            names.append(label_column)
        table.select(names)
        texts, labels = [], []
        for row, values in table.rows():
            texts.append(text_value(values[0], row, names[0]))
            if label_column is not None:
                labels.append(_label(values[1], row, label_column))
    return LabeledTexts(name_of(source), texts, None if label_column is None else labels, len(texts))


def _alone(side: LabeledTexts, times: Counter[str]) -> LabeledTexts:
    places = [i for i, text in enumerate(side.texts) if text.strip() and times[text] == 1]
    if not places:
        raise BadInputError(
            "no-text-left",
            "no text of {name} is left: all are empty or occur more than once in the two files, so nothing tells "
            "members from non-members; give files without common texts",
            name=side.name,
        )
    return taken(side, places)


def taken(side: LabeledTexts, places: Sequence[int]) -> LabeledTexts:
    """The texts at some places."""
    labels = None if side.labels is None else [side.labels[i] for i in places]
    rows = None if side.rows is None else [side.rows[i] for i in places]
    return LabeledTexts(side.name, [side.texts[i] for i in places], labels, side.read, rows)


def _read_roles(source: object, roles: RoleColumns, format: str | None) -> LabeledTexts:
    """Rows by the roles of a trained model; a target that is not there leaves `labels` empty."""
    with open_table(source, format) as table:
        inputs = [role for role in roles.columns if role != roles.target]
        # A single column of texts may be called as it likes.
        chosen = dict(roles.columns)
        required = [role for role in inputs if role not in roles.optional]
        if len(required) == 1 and chosen[required[0]] not in table.columns:
            others = tuple(chosen[role] for role in chosen if role != required[0] and chosen[role] in table.columns)
            chosen[required[0]] = choose_columns(table.columns, (), others).texts[0]
        used = []
        for role, column in chosen.items():
            if column not in table.columns and (role == roles.target or role in roles.optional):
                continue
            check_column(column, table.columns)
            used.append(role)
        names = [chosen[role] for role in used]
        table.select(names)
        rows = []
        for number, values in table.rows():
            read = zip(used, names, values, strict=True)
            rows.append(
                {
                    role: _label(value, number, name) if role == roles.target else text_value(value, number, name)
                    for role, name, value in read
                }
            )
    texts = ["\n".join(row[role] for role in used if role != roles.target) for row in rows]
    labels = [row[roles.target] for row in rows] if roles.target in used else None
    return LabeledTexts(name_of(source), texts, labels, len(texts), rows)


def _label(value: object, row: int, column: str) -> str:
    return str(value) if isinstance(value, int | float) else text_value(value, row, column)
