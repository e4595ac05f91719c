"""Labels beside a text: k-ary randomized response, with an epsilon of its own.

A label that is copied beside a rewritten text is not protected, and often it is what one must not know. Randomized
response (Kairouz, Bonawitz & Ramage, ICML 2016) tells the true one of k labels with probability
e**epsilon / (e**epsilon + k - 1) and each other one with probability 1 / (e**epsilon + k - 1).

Guarantee: epsilon-differential privacy, delta = 0, for one label against any other of the list. The list is public
knowledge: reading it off the private labels would tell that a rare one occurs.

Text and label of a record are two releases with independent noise, so their exponents add up (`of_record`):

    plain     epsilon(text) + epsilon(label)
    metric    epsilon d(x, x') + offset + epsilon(label):  what is added whatever the distance is an offset
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from tacit.card import Card
from tacit.card_words import promise_text, unit_name
from tacit.errors import BadInputError, BadParameterError
from tacit.guarantee import Adjacency, Guarantee, Notion, Unit, VoidReason, check_epsilon
from tacit.mechanism import TEST_SEED_REASON
from tacit.noise.response import respond
from tacit.noise.source import Source, new_source
from tacit.rounding import rounded_up

LENGTHS = "how many words each text has, and which texts are empty"
SENTENCES = "how many sentences each text has"
GIVEN = "the list of labels was given from public knowledge, not read off the private rows"


def labels_need_local_engine() -> BadInputError:
    """Labels are randomized on this machine only."""
    return BadInputError(
        "labels-on-a-cluster",
        "{option.randomize} needs {option.engine[local]}: the workers of a cluster copy columns as they are",
    )


@dataclass(frozen=True)
class LabelRelease:
    """Labels that may be shared, and what was promised about each of them."""

    labels: list[str]
    guarantee: Guarantee

    def __len__(self) -> int:
        return len(self.labels)

    def __repr__(self) -> str:
        return f"<LabelRelease of {len(self):,} labels: {promise_text(self.guarantee)}>"

    def _repr_html_(self) -> str:
        return self.card()._repr_html_()

    def card(self) -> Card:
        """The privacy card of one label."""
        return Card(self.guarantee)


def check_labels(labels: Sequence[str]) -> None:
    """Refuse what is no public list of labels."""
    if isinstance(labels, str) or len(set(labels)) != len(labels) or len(labels) < 2:
        raise BadParameterError(
            "too-few-labels",
            "the labels must be at least two different ones: list all labels that exist, once, as in "
            "{option.labels[a,b,c]}",
        )


@dataclass(frozen=True)
class LabelRule:
    """labels: all that exist, from public knowledge; epsilon: of one label; column: where a file has them.

    Without an epsilon of its own a label is released by the choice of the text, which covers both
    (`tacit.documents.codebook_joint`).
    """

    labels: tuple[str, ...]
    epsilon: float | None
    column: str = "label"
    _places: dict[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.epsilon is not None:
            check_epsilon(self.epsilon)
        check_labels(self.labels)
        object.__setattr__(self, "_places", {label: place for place, label in enumerate(self.labels)})

    @property
    def joint(self) -> bool:
        """Whether label and text are one choice."""
        return self.epsilon is None

    @property
    def own_epsilon(self) -> float:
        """The budget of a label that has one of its own."""
        assert self.epsilon is not None
        return self.epsilon

    def check(self, label: str, row: int) -> None:
        """Refuse a label that is not in the list, by its row: the label itself is private."""
        if label not in self._places:
            raise BadInputError(
                "label-not-listed",
                "row {row:,} has a label in '{column}' that is not among the {labels:,} given ones (it is not shown "
                "here, because it is private): list all labels that exist, spelled as in the data",
                row=row,
                column=self.column,
                labels=len(self.labels),
            )

    def draw(self, labels: Sequence[str], source: Source) -> list[str]:
        """The only private step. Every label was checked before."""
        numbers = np.array([self._places[label] for label in labels], dtype=np.int64)
        return [self.labels[place] for place in respond(numbers, len(self.labels), self.own_epsilon, source).tolist()]

    def digest(self, labels: Sequence[str]) -> bytes:
        """What, beside the key and the block, decides the noise: other labels get independent noise."""
        content = json.dumps([self.describe(), list(labels)], sort_keys=True).encode()
        return hashlib.blake2b(content, digest_size=32, person=b"tacit-labels").digest()

    def describe(self) -> dict[str, object]:
        return {"randomized column": self.column, "label epsilon": self.epsilon, "labels": list(self.labels)}

    def guarantee(self, *, secure: bool = True) -> Guarantee:
        """The guarantee of one label."""
        promised = Guarantee(
            notion=Notion.PURE,
            epsilon=self.own_epsilon,
            unit=Unit.RECORD,
            adjacency=Adjacency.ANY_TWO,
            mechanism="randomized response",
            parameters={"labels": f"{len(self.labels):,}, given publicly"},
            assumptions=(GIVEN,),
        )
        return promised if secure else promised.voided(TEST_SEED_REASON, VoidReason.TEST_SEED)

    def of_record(self, text: Guarantee, *, longest_row: int, width: int = 1) -> Guarantee:
        """From one token or text to a record: its `width` texts, of `longest_row` tokens together, and its label."""
        if self.joint:
            return text
        whole = text if width == 1 else text.for_group(width)
        if text.unit.is_part_of_text:
            whole = text.for_document(max(1, longest_row))
        own = self.guarantee()
        metric = whole.metric is not None
        composed = replace(
            whole,
            epsilon=whole.epsilon if metric else whole.epsilon + own.epsilon,
            offset=whole.offset + own.epsilon if metric else whole.offset,
            unit=Unit.RECORD,
            mechanism=f"{text.mechanism} + {own.mechanism} on '{self.column}'",
            parameters={**text.parameters, **self.budgets(text)},
            history=(*whole.history, "text and label of a record added up"),
        )
        if text.unit.is_part_of_text:
            composed = composed.also_not_covered(LENGTHS if text.unit is Unit.TOKEN else SENTENCES)
        return composed.also_assuming(*own.assumptions)

    def budgets(self, text: Guarantee) -> dict[str, str]:
        """Both budgets in words, for the card."""
        return {
            "epsilon of the text": f"{rounded_up(text.epsilon)} per {unit_name(text.unit)}",
            f"epsilon of '{self.column}'": f"{rounded_up(self.own_epsilon)}, randomized response among "
            f"{len(self.labels):,} labels that were given publicly; it adds to that of the text",
        }


def randomize_labels(
    labels: Sequence[Hashable], categories: Sequence[Hashable], epsilon: float, *, seed: int | None = None
) -> LabelRelease:
    """Randomize the label of each document. Every call draws new noise, and spends the budget again.

    `categories` are all labels that exist, from public knowledge. A test `seed` makes it repeatable and voids the
    guarantee.
    """
    rule = LabelRule(tuple(str(category) for category in categories), epsilon)
    given = [str(label) for label in labels]
    for row, label in enumerate(given, start=1):
        rule.check(label, row)
    source = new_source(seed)
    return LabelRelease(rule.draw(given, source), rule.guarantee(secure=source.secure))
