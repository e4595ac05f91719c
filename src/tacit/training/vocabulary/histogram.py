"""The words of a private column with noisy counts.

A vocabulary that is learned from private text is a release: a name that stands in it shows that somebody wrote it. Here
it is paid for (Hoory et al., "Learning and evaluating a differentially private pre-trained language model", Findings of
EMNLP 2021, section 3.2; Ponomareva et al., "Training text-to-text transformers with privacy guarantees", Findings of
ACL 2022, section 4).

    1. Each unit (a record, or all records of a user) adds to the counts of at most L different words: 1 to each
       ("one"), or 1 / sqrt(k) to each of its k words ("shared"; Gopi et al., "Differentially private set union", ICML
       2020). Which L of more words count is a function of the unit alone: a choice from one stream of random numbers
       for all units would move with every unit that is added, and no sensitivity would hold.
    2. Every count gets noise: normal of width sigma, or discrete Laplace.
    3. Only words with a noisy count of at least tau are released, with that count.

Step 1 is `contribution`; steps 2 and 3, with the proof and the calibration, are `word_noise`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from tacit.account.delta import automatic_delta, check_delta
from tacit.arrays import Floats
from tacit.errors import BadInputError
from tacit.guarantee import Adjacency, Guarantee, Model, Notion, Provenance, Unit, VoidReason
from tacit.noise.source import new_source
from tacit.text.identity import user_name
from tacit.training.vocabulary.contribution import Contribution
from tacit.training.vocabulary.word_noise import WordNoise, calibrate

_WORD = re.compile(r"[^\W_]+|[^\w\s]|_")


def words_of(text: str, *, lowercase: bool = True) -> list[str]:
    """The words of a text by a fixed public rule: runs of letters and digits, and every other mark on its own (as
    BERT cuts words before it looks for pieces)."""
    return _WORD.findall(text.lower() if lowercase else text)


def count_words(units: Iterable[Sequence[str]], contribution: Contribution) -> dict[str, float]:
    """The bounded counts of all words: exact, and therefore private."""
    counts: Counter[str] = Counter()
    if contribution.weighting == "one":
        for words in units:
            counts.update(contribution.chosen(words))
        return {word: float(count) for word, count in counts.items()}
    weighted: dict[str, float] = {}
    for words in units:
        chosen = contribution.chosen(words)
        for word in chosen:
            weighted[word] = weighted.get(word, 0.0) + contribution.weight(len(chosen))
    return weighted


def units_of(
    texts: Sequence[str], users: Sequence[str] | None, known: frozenset[str] | None, *, lowercase: bool
) -> Iterator[list[str]]:
    """The words of each unit: of a text, or of all texts of a user; only known ones where the list is public."""

    def words(text: str) -> list[str]:
        all_words = words_of(text, lowercase=lowercase)
        return all_words if known is None else [word for word in all_words if word in known]

    if users is None:
        yield from map(words, texts)
        return
    of_user: dict[str, list[str]] = {}
    for row, (user, text) in enumerate(zip(users, texts, strict=True), 1):
        name = user_name(user)
        if not name:
            raise BadInputError("user-not-named", "row {row} has no user: every row must belong to one", row=row)
        of_user.setdefault(name, []).extend(words(text))
    yield from of_user.values()


# The release --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class WordHistogram:
    """Words with noisy counts, the most frequent first, and what was promised to each unit."""

    words: list[str]
    counts: Floats
    guarantee: Guarantee
    lowercase: bool = True

    def __len__(self) -> int:
        return len(self.words)


def private_histogram(
    texts: Sequence[str],
    *,
    epsilon: float,
    delta: float | None = None,
    users: Sequence[str] | None = None,
    contribution: Contribution | None = None,
    kind: str = "gaussian",
    public_words: Sequence[str] | None = None,
    public_name: str = "a public word list",
    adjacency: Adjacency = Adjacency.ADD_REMOVE,
    lowercase: bool = True,
    seed: int | None = None,
    before_noise: Callable[[Guarantee], None] = lambda promised: None,
) -> WordHistogram:
    """The words of private texts with noisy counts. Every call spends anew.

    before_noise   called with the promise before any noise is drawn; what it raises stops the release

    Without a delta, a tenth of what a training run takes by itself: the two together stay below 1 / units.
    """
    bounded = contribution or Contribution(weighting="one" if kind == "laplace" else "shared")
    if not texts:
        raise BadInputError("no-text", "there are no texts to take words from")
    count = len(texts) if users is None else len(set(users))
    chosen = automatic_delta(count) / 10 if delta is None else delta
    check_delta(chosen, count)
    known = None if public_words is None else _public(public_words, lowercase=lowercase)
    noise = calibrate(
        epsilon=epsilon,
        delta=chosen,
        contribution=bounded,
        kind=kind,
        adjacency=adjacency,
        public_words=known is not None,
    )
    exact = count_words(
        units_of(texts, users, None if known is None else frozenset(known), lowercase=lowercase), bounded
    )
    words = list(exact) if known is None else known
    source = new_source(seed)
    counts = np.array([exact.get(word, 0.0) for word in words], dtype=np.float64)
    guarantee = histogram_guarantee(
        noise, bounded, adjacency, Unit.RECORD if users is None else Unit.USER, public_name if known else None
    )
    if not source.secure:
        guarantee = guarantee.voided("its noise was drawn with a test seed, which undoes it", VoidReason.TEST_SEED)
    before_noise(guarantee)
    released, noisy = noise.released(words, counts, source)
    return WordHistogram(released, noisy, guarantee, lowercase)


def _public(words: Sequence[str], *, lowercase: bool) -> list[str]:
    """The words of a public list that the word rule can produce."""
    spelled = dict.fromkeys(word.lower() if lowercase else word for word in words)
    usable = [word for word in spelled if _WORD.fullmatch(word)]
    if not usable:
        raise BadInputError(
            "word-list-is-empty", "the public word list has no word that could occur: give one word per line"
        )
    return usable


def histogram_guarantee(
    noise: WordNoise, contribution: Contribution, adjacency: Adjacency, unit: Unit, public_name: str | None
) -> Guarantee:
    name = {"gaussian": "normal noise", "laplace": "discrete Laplace noise"}[noise.kind]
    parameters: dict[str, object] = {
        f"words of one {unit.value}": contribution.words,
        "weighting": contribution.weighting,
        "noise": f"{name} of scale {noise.scale:.6g}",
    }
    if noise.threshold is not None:
        parameters["threshold"] = f"{noise.threshold:.6g} (noisy count a word needs to be shown)"
    return Guarantee(
        notion=Notion.PURE if noise.delta == 0.0 else Notion.APPROXIMATE,
        epsilon=noise.epsilon,
        delta=noise.delta,
        model=Model.CENTRAL,
        unit=unit,
        adjacency=adjacency,
        mechanism="private vocabulary (noisy word counts; Hoory et al. 2021)",
        parameters=parameters,
        not_covered=(f"how many {unit.value}s there are",),
        assumptions=(
            f"the number of {unit.value}s is public",
            "the noise comes from a secret random key of the operating system",
        ),
        provenance=() if public_name is None else (Provenance("word list", public_name),),
    )
