"""Texts that a model was trained on, and texts of the same kind that it was not trained on."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from tacit.errors import BadInputError
from tacit.text.files import check_column, choose_columns, open_table, text_value
from tacit.text.files.memory import name_of


@dataclass(frozen=True)
class LabeledTexts:
    """Texts with their labels, if there are any; `read` counts the texts before some were left out."""

    name: str
    texts: list[str]
    labels: list[str] | None
    read: int

    def __str__(self) -> str:
        return f"{len(self.texts):,} of the {self.read:,} texts in {self.name}"


def read_members(
    members: object, non_members: object, column: str | None, label_column: str | None, format: str | None
) -> tuple[LabeledTexts, LabeledTexts]:
    """Both sides, without empty texts and without texts that occur more than once in the two together: whether such a
    text was trained on is not one fact. That looks at the pool only, so fair coins stay fair."""
    sides = [_read(source, column, label_column, format) for source in (members, non_members)]
    times = Counter(text for side in sides for text in side.texts)
    inside, outside = (_alone(side, times) for side in sides)
    return inside, outside


def _alone(side: LabeledTexts, times: Counter[str]) -> LabeledTexts:
    places = [i for i, text in enumerate(side.texts) if text.strip() and times[text] == 1]
    if not places:
        raise BadInputError(
            "no-text-left",
            "no text of {name} is left: all are empty or occur more than once in the two files, so nothing tells "
            "members from non-members; give files without common texts",
            name=side.name,
        )
    labels = None if side.labels is None else [side.labels[i] for i in places]
    return LabeledTexts(side.name, [side.texts[i] for i in places], labels, side.read)


def _read(source: object, column: str | None, label_column: str | None, format: str | None) -> LabeledTexts:
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
                label = values[1]
                labels.append(str(label) if isinstance(label, int) else text_value(label, row, label_column))
    return LabeledTexts(name_of(source), texts, None if label_column is None else labels, len(texts))
