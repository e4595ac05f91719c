"""Canaries in the distribution of the training texts: the beginning of an ordinary text, then a secret that is unlikely
after it.

Panda, Tang, Nasr, Choquette-Choo & Mittal, "Privacy auditing of large language models" (ICLR 2025): a sentence of
digits is so unlike all other texts that a model hardly learns from it; the beginning of an ordinary text puts the model
where it knows what comes next, and an unlikely word there is remembered far better. What is looked at is the secret
alone,

    loss of the secret after its prefix  =  -ln p(text) + ln p(prefix)

The secret is made of

    bigram    words that never follow the word before them in the example texts
    unigram   the rarest words of the example texts
    words     64 public words

Such a canary is also what comes back in synthetic text (Meeus, Wutschitz, Zanella-Beguelin, Tople & Shokri, "The
canary's echo", ICML 2025): a model that writes ordinary text comes past the prefix, and then writes the secret.

All texts are drawn before the coins and without them, and each canary has a fair coin of its own, so `one_run` bounds
epsilon whatever the texts are. Rows with labels get labels at random, which is what a classifier has to learn by heart.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import pairwise
from typing import Final, Literal

import numpy as np

from tacit.arrays import Floats
from tacit.auditing.models.canaries import WORDS, Canary
from tacit.auditing.models.rates import auc, auc_interval
from tacit.errors import BadInputError, BadParameterError
from tacit.noise.source import Source
from tacit.report import Finding, Light, Section, Table

SecretKind = Literal["bigram", "unigram", "words"]
RAREST: Final = 0.1
"""Share of the different words of the example texts that count as rare."""
LEAST_WORDS: Final = 10
TRIES: Final = 100


def canaries_like(
    texts: Sequence[str],
    count: int,
    *,
    source: Source,
    labels: Sequence[str] | None = None,
    kind: SecretKind = "bigram",
    prefix_words: int = 8,
    secret_words: int = 3,
    repeats: Sequence[int] = (1,),
) -> list[Canary]:
    """`count` canaries like these texts, each with its own fair coin; the numbers of repeats take turns.

    texts   ordinary texts of the kind that is trained on, best ones that are not trained on. The canaries quote them
    labels  the labels of the texts: each canary gets one of them at random
    """
    if count < 2:
        raise BadParameterError("too-few-canaries", "an audit needs at least 2 canaries, not {count}", count=count)
    if not repeats or min(repeats) < 1:
        raise BadParameterError("impossible-repeats", "a canary is inserted at least once: repeats are numbers from 1")
    if prefix_words < 1 or secret_words < 1:
        raise BadParameterError("impossible-count", "prefix and secret of a canary have at least 1 word each")
    rows = [words for words in (text.split() for text in texts) if words]
    if not rows:
        raise BadInputError("no-rows", "there is no text to take the beginnings of canaries from")
    draw = _Secrets(rows, kind, source.generator)
    names = sorted(set(labels or ()))
    made: dict[str, tuple[str, str | None]] = {}
    for _ in range(TRIES * count):
        if len(made) == count:
            break
        prefix = rows[int(source.generator.integers(len(rows)))][:prefix_words]
        text = " ".join([*prefix, *draw.after(prefix[-1], secret_words)])
        label = names[int(source.generator.integers(len(names)))] if names else None
        made.setdefault(text, (" ".join(prefix), label))
    if len(made) < count:
        raise BadParameterError(
            "too-few-candidates",
            "the example texts are too few or too short for {count:,} different canaries: give more texts, or longer "
            "secrets",
            count=count,
        )
    coins = source.generator.random(count) < 0.5
    return [
        Canary(text, "", int(repeats[place % len(repeats)]), bool(coin), prefix, label)
        for place, ((text, (prefix, label)), coin) in enumerate(zip(made.items(), coins.tolist(), strict=True))
    ]


class _Secrets:
    """Draws the words of secrets."""

    def __init__(self, rows: Sequence[Sequence[str]], kind: SecretKind, generator: np.random.Generator) -> None:
        counts = Counter(word for words in rows for word in words)
        # Equal counts are put in the order of the words, so that the same texts give the same candidates.
        ranked = sorted(counts, key=lambda word: (counts[word], word))
        if kind == "unigram":
            ranked = ranked[: max(LEAST_WORDS, int(RAREST * len(ranked)))]
        self.candidates: Sequence[str] = WORDS if kind == "words" else ranked
        if len(self.candidates) < LEAST_WORDS:
            raise BadInputError(
                "too-few-words",
                "the example texts have {words} different words, too few to make secrets of: give more texts, or take "
                "{option.secret_kind[words]}",
                words=len(self.candidates),
            )
        self.followers: dict[str, set[str]] = defaultdict(set)
        if kind == "bigram":
            for words in rows:
                for first, second in pairwise(words):
                    self.followers[first].add(second)
        self.generator = generator

    def after(self, word: str, count: int) -> list[str]:
        """Words of a secret after a word."""
        secret: list[str] = []
        for _ in range(count):
            for _ in range(TRIES):
                drawn = self.candidates[int(self.generator.integers(len(self.candidates)))]
                if drawn not in self.followers[word]:
                    break
            secret.append(drawn)
            word = drawn
        return secret


def is_in_distribution(canary: Canary) -> bool:
    """Whether a canary is of this kind, and not of a public format."""
    return not canary.pattern


def recognized_section(
    canaries: Sequence[Canary], signal: Floats, title: str, text: str, *, confidence: float = 0.95
) -> Section:
    """How well a signal, larger for what looks trained on, tells the inserted canaries from those left out."""
    included = np.array([canary.included for canary in canaries])
    inside, outside = signal[included], signal[~included]
    measured = auc(inside, outside)
    low, high = auc_interval(measured, len(inside), len(outside), confidence)
    shown = low > 0.5
    sentence = (
        f"an inserted canary looks more trained on than one that was left out in {measured:.1%} of all pairs (chance: "
        f"50 %; {confidence:.0%} interval {low:.1%} to {high:.1%}), {len(inside):,} inserted and {len(outside):,} left "
        "out"
    )
    order = np.argsort(-signal)[:10].tolist()
    table = Table(
        "Canaries that look most trained on",
        ("canary", "insertions", "signal"),
        [(canaries[place].text, canaries[place].insertions, float(signal[place])) for place in order],
        private=True,
    )
    finding = Finding(
        title, Light.RED if shown else Light.GREEN, sentence,
        "Red: the interval lies above one half. Green: it does not, which does not show that nothing is remembered.",
        numbers={"auc": measured, "auc.low": low, "auc.high": high, "inserted": len(inside), "left out": len(outside)},
    )  # fmt: skip
    return Section(title, text, (finding,), (table,))
