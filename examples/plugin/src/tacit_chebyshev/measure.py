"""A measure: one number for each pair of an original and its release."""

from collections.abc import Sequence


def same_length(originals: Sequence[str], releases: Sequence[str]) -> list[float]:
    """1 where a release has as many words as its original, less the more they differ.

    >>> same_length(["one two"], ["one two three four"])
    [0.5]
    """
    counts = [(len(before.split()), len(after.split())) for before, after in zip(originals, releases, strict=True)]
    return [min(pair) / max(1, *pair) for pair in counts]
