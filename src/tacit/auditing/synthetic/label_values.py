"""Values of label columns that an audit gives to rows of its own, and the labels that a corpus calls them by."""

from __future__ import annotations

from collections.abc import Sequence

from tacit.matching.labels import Bins, PublicLabels, Topics
from tacit.matching.marginals import JointLabels


def label_values(rule: PublicLabels) -> list[object]:
    """Values under which all labels of a rule occur; none for topics, which rows have by their texts.

    With several columns they are combinations, as many as the column with most labels has.
    """
    if isinstance(rule, Topics):
        return []
    if isinstance(rule, JointLabels):
        columns = [label_values(of_column) for _, of_column in rule.columns]
        longest = max(map(len, columns))
        return [tuple(values[place % len(values)] for values in columns) for place in range(longest)]
    return list(rule.edges[:-1]) if isinstance(rule, Bins) else list(rule.names)


def label_in_corpus(rule: PublicLabels, text: str, values: Sequence[object]) -> str:
    """The label that a corpus has for rows with this text and value of the label column (one, or none for topics)."""
    lines = rule.places([text], values).reshape(-1).tolist()
    if not isinstance(rule, JointLabels):
        return rule.names[lines[0]]
    starts = [rule.lines_of(column).start for column in range(len(rule.columns))]
    names = [of_column.names for _, of_column in rule.columns]
    return " / ".join(each[line - start] for each, line, start in zip(names, lines, starts, strict=True))
