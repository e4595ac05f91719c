"""Rows that begin with what they are about: the public name of their label, like the subject line of a message.

    card arrival: Where is the next bank?

Public sentences that fit a label by the release often lack the words by which a person would name it, so a learner of
words does not connect the two: of 330,000 public sentences 27 have the word "apr", and they are drawn for several
labels. The name of a label is public by declaration and costs nothing. It is set before a tenth of the rows, not all:
where every row of a label had the same words in front, a learner would look at nothing else.

On 30 intents of a bank and 30 of travelers (CLINC150, epsilon 1, one sketch) a learner on words rises from a macro-F1
of .716 to .742 and from .831 to .875 by it, and one on vectors hardly (by a prototype; `benchmarks/evolution.py`
measures other sets). Names that say
nothing ("3", "topic 12") leave rows as they are.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tacit.text.spoken import spoken_label

USUAL_SHARE = 0.1


def with_subjects(
    texts: Sequence[str], labels: Sequence[str], sentences: Sequence[int], share: float, generator: np.random.Generator
) -> list[str]:
    """The texts, a share of those that are one sentence after the name of their label."""
    chosen = (generator.random(len(texts)) < share) & (np.asarray(sentences) == 1)
    names = {label: spoken_label(label) for label in dict.fromkeys(labels)}
    return [
        f"{names[label]}: {text}" if begins and names[label] else text
        for text, label, begins in zip(texts, labels, chosen.tolist(), strict=True)
    ]


def without_subjects(texts: Sequence[str], labels: Sequence[str]) -> list[str]:
    """The texts without the name of a label before them."""
    names = {name for label in labels if (name := spoken_label(label))}
    parts = [text.partition(": ") for text in texts]
    return [rest if colon and first in names else first + colon + rest for first, colon, rest in parts]
