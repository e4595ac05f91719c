"""How much of the wording is left: n-grams, kept words, verbatim copies, length."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from tacit.arrays import Floats
from tacit.errors import require
from tacit.evaluation.scores import Interval, mean_interval
from tacit.evaluation.similarity.measure import Measure, check_pairs, strangers
from tacit.text.tokens import split

if TYPE_CHECKING:
    from sacrebleu.metrics.bleu import BLEU
    from sacrebleu.metrics.chrf import CHRF

BOOTSTRAP = 300


def bleu(originals: Sequence[str], releases: Sequence[str]) -> Measure:
    """Corpus BLEU, 0 to 100, without regard to case (word-level releases are lower-case)."""
    metrics = require("sacrebleu.metrics", extra="audit", purpose="BLEU")
    return _corpus_score("BLEU", lambda: metrics.BLEU(lowercase=True), originals, releases)


def chrf(originals: Sequence[str], releases: Sequence[str]) -> Measure:
    """Corpus chrF, 0 to 100, without regard to case."""
    metrics = require("sacrebleu.metrics", extra="audit", purpose="chrF")
    return _corpus_score("chrF", lambda: metrics.CHRF(lowercase=True), originals, releases)


def _corpus_score(
    name: str, metric: Callable[[], BLEU | CHRF], originals: Sequence[str], releases: Sequence[str]
) -> Measure:
    check_pairs(originals, releases)
    references, shuffled = list(originals), [releases[i] for i in strangers(len(releases))]

    def score(texts: Sequence[str]) -> float:
        return float(metric().corpus_score(list(texts), [references]).score)

    measured = metric()
    scored = measured.corpus_score(list(releases), [references], n_bootstrap=BOOTSTRAP)
    # sacrebleu gives the mean and half the width of its bootstrap interval
    value, reach = float(scored.score), float(scored._ci)
    interval = Interval(value, max(0.0, value - reach), min(100.0, value + reach), len(references))
    return Measure(
        name, interval, score(shuffled), score(references), len(references), f"sacrebleu {measured.get_signature()}"
    )


def kept_in_place(original: Sequence[str], release: Sequence[str]) -> float:
    """The share of the original's tokens that stand at their place in the release; nothing to keep counts as kept."""
    if not original:
        return 1.0
    return sum(a == b for a, b in zip(original, release, strict=False)) / len(original)


def kept_anywhere(original: Sequence[str], release: Sequence[str]) -> float:
    """The share of the original's tokens that the release holds somewhere, each as often as it is there."""
    if not original:
        return 1.0
    return (Counter(original) & Counter(release)).total() / len(original)


def is_copy(original: Sequence[str], release: Sequence[str]) -> float:
    """1 where all tokens are the same, else 0; a text without tokens has nothing to copy."""
    return float(bool(original) and list(original) == list(release))


def verbatim_copies(originals: Sequence[str], releases: Sequence[str]) -> Measure:
    """The share of texts that are released as they were."""
    note = "all tokens the same, without regard to case and spacing; texts without tokens do not count as copies"
    return _token_measure("verbatim copies", is_copy, originals, releases, note)


def length_change(original: Sequence[str], release: Sequence[str]) -> float:
    """The change of length, as a share of the original; one token counts as the length of an empty text."""
    return abs(len(release) - len(original)) / max(len(original), 1)


def kept_words(originals: Sequence[str], releases: Sequence[str]) -> tuple[Measure, Measure]:
    """By place and by word. Tokens are those of `tacit.text.tokens`, lower-case."""
    return (
        _token_measure("words kept in place", kept_in_place, originals, releases, "same word at the same place"),
        _token_measure("words kept anywhere", kept_anywhere, originals, releases, "same words in any order"),
    )


def length(originals: Sequence[str], releases: Sequence[str]) -> Measure:
    before, after = (sum(len(split(text)) for text in texts) for texts in (originals, releases))
    ratio = f"{after / before:.2f} released tokens for one of the original" if before else "the originals are empty"
    return _token_measure("length change", length_change, originals, releases, ratio)


def _token_measure(
    name: str,
    of_pair: Callable[[Sequence[str], Sequence[str]], float],
    originals: Sequence[str],
    releases: Sequence[str],
    note: str,
) -> Measure:
    check_pairs(originals, releases)
    before, after = [split(text) for text in originals], [split(text) for text in releases]

    def mean(other: Sequence[Sequence[str]]) -> Floats:
        return np.array([of_pair(a, b) for a, b in zip(before, other, strict=True)])

    per_text = mean(after)
    floor = float(mean([after[i] for i in strangers(len(after))]).mean())
    return Measure(
        name, mean_interval(per_text), floor, float(mean(before).mean()), len(before), note, per_text=per_text
    )
