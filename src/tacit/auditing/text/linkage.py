"""Linkage: which original does a released text belong to?

The attacker holds all originals (a leaked copy, or texts published elsewhere) and ranks them for each released text by
similarity. Measured: how often the right one comes first (top-1), among the first ten (top-10), and the mean reciprocal
rank. By chance these are 1/n, 10/n and H_n / n for n originals, since every order is equally likely.

Attackers:
    words     cosine of TF-IDF vectors: texts that share rare words
    vectors   cosine of sentence vectors (any encoder): texts that say the same
    length    the number of tokens alone, which word mechanisms do not hide

Equal similarities are drawn at random, so each gets its expected share: c equal originals give 1/c. The ceiling is what
equal originals allow when nothing is rewritten. Similarities are computed in blocks of rows, so that memory grows with
n, not with n^2: 20,000 texts need some 50 MB beside their vectors.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats
from tacit.auditing.text import scale
from tacit.auditing.text.authorship import cut
from tacit.auditing.text.pairs import TextPairs
from tacit.auditing.text.scale import Success
from tacit.documents.encoder import Encoder
from tacit.errors import BadInputError, require
from tacit.progress import StepProgress
from tacit.report import Section, Table
from tacit.text.tokens import split

BLOCK_CELLS = 8_000_000
WORST = 10


@dataclass(frozen=True)
class Linkage:
    """One attacker.

    top1 top10    rates, with chance as floor
    reciprocal    mean reciprocal rank, and its value by chance
    linked        rows that were linked, by how far the right original is ahead of the next one (indices)
    """

    attacker: str
    texts: int
    top1: Success
    top10: Success
    reciprocal: float
    reciprocal_by_chance: float
    linked: list[int]


# Ranks --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Ranks:
    """For each released text: how many originals are more similar than the right one, how many equally similar (with
    the right one), and how far the right one is ahead of the best other one."""

    better: NDArray[np.int64]
    equal: NDArray[np.int64]
    lead: Floats

    def top(self, k: int) -> Floats:
        """Chance to be among the first k when equal ones are drawn at random."""
        chances: Floats = np.clip((k - self.better) / self.equal, 0.0, 1.0)
        return chances

    def reciprocal(self) -> Floats:
        """Mean of 1 / rank over the ranks that equal ones share."""
        n = int((self.better + self.equal).max())
        harmonic = np.concatenate([[0.0], np.cumsum(1.0 / np.arange(1, n + 1))])
        means: Floats = (harmonic[self.better + self.equal] - harmonic[self.better]) / self.equal
        return means


def ranks(
    count: int, similarities: Callable[[slice], NDArray[np.floating]], progress: StepProgress | None = None
) -> Ranks:
    """Ranks from blocks of similarities: `similarities(rows)` gives released rows x all originals."""
    better, equal = np.empty(count, dtype=np.int64), np.empty(count, dtype=np.int64)
    lead = np.empty(count)
    height = max(1, BLOCK_CELLS // count)
    for start in range(0, count, height):
        block_rows = slice(start, min(start + height, count))
        block = similarities(block_rows)
        local = np.arange(len(block))
        own = block[local, start + local].copy()
        better[block_rows] = (block > own[:, None]).sum(axis=1)
        equal[block_rows] = (block == own[:, None]).sum(axis=1)
        block[local, start + local] = -np.inf
        lead[block_rows] = own - block.max(axis=1)
        if progress is not None:
            progress(block_rows.stop, count)
    return Ranks(better, equal, lead)


def by_vectors(
    originals: NDArray[np.float32], released: NDArray[np.float32], progress: StepProgress | None = None
) -> Ranks:
    """Cosine of unit vectors (n, d)."""
    right = np.ascontiguousarray(originals.T)
    return ranks(len(released), lambda rows: released[rows] @ right, progress)


def by_words(originals: Sequence[str], released: Sequence[str], progress: StepProgress | None = None) -> Ranks:
    """Cosine of TF-IDF vectors; document frequencies from the originals, which the attacker holds."""
    require("sklearn", extra="audit", purpose="linking texts by their words")
    from sklearn.feature_extraction.text import TfidfVectorizer

    features = TfidfVectorizer(
        tokenizer=split, token_pattern=None, lowercase=False, sublinear_tf=True, dtype=np.float32
    )
    try:
        table = features.fit_transform(originals)
    except ValueError:
        raise BadInputError("no-words", "the originals hold no words at all: there is nothing to link") from None
    right = table.T.tocsc()
    queries = features.transform(released)
    return ranks(len(released), lambda rows: np.asarray((queries[rows] @ right).todense()), progress)


def by_length(originals: Sequence[str], released: Sequence[str]) -> Ranks:
    """The number of tokens alone."""
    old = np.array([len(split(text)) for text in originals], dtype=np.float32)
    new = np.array([len(split(text)) for text in released], dtype=np.float32)
    return ranks(len(new), lambda rows: -np.abs(new[rows, None] - old[None, :]))


# The attack ---------------------------------------------------------------------------------------------------------


def link(pairs: TextPairs, *, encoder: Encoder | None = None, progress: StepProgress | None = None) -> list[Linkage]:
    """All attackers on one release; sentence vectors only where an encoder is given."""
    if len(pairs) < 2:
        raise BadInputError(
            "too-few-rows", "there is one row only: linking needs at least two originals to choose from"
        )
    ranks_by_attacker = {
        "length": by_length(pairs.originals, pairs.released),
        "words": by_words(pairs.originals, pairs.released),
    }
    if encoder is not None:
        total = 2 * len(pairs)
        first = encoder.encode(pairs.originals, progress and (lambda done, _: progress(done, total)))
        second = encoder.encode(pairs.released, progress and (lambda done, _: progress(len(pairs) + done, total)))
        ranks_by_attacker[f"vectors ({encoder.name})"] = by_vectors(first, second)
    copies = Counter(pairs.originals)
    ceiling = np.array([1.0 / copies[text] for text in pairs.originals])
    ceiling_ten = np.array([min(1.0, 10.0 / copies[text]) for text in pairs.originals])
    return [
        summary(name, each, float(ceiling.mean()), float(ceiling_ten.mean()), looks=len(ranks_by_attacker))
        for name, each in ranks_by_attacker.items()
    ]


def summary(name: str, ranks: Ranks, ceiling: float, ceiling_ten: float, *, looks: int) -> Linkage:
    n = len(ranks.better)
    harmonic = float((1.0 / np.arange(1, n + 1)).sum())
    top_one, ten = ranks.top(1), ranks.top(10)
    sure = np.flatnonzero((ranks.better == 0) & (ranks.equal == 1))
    linked = sure[np.argsort(-ranks.lead[sure], kind="stable")][:WORST].tolist()
    return Linkage(
        name,
        n,
        scale.of_trials(top_one, floor=1.0 / n, ceiling=ceiling, looks=looks),
        scale.of_trials(ten, floor=min(1.0, 10.0 / n), ceiling=ceiling_ten, looks=looks),
        float(ranks.reciprocal().mean()),
        harmonic / n,
        linked,
    )


# The report ---------------------------------------------------------------------------------------------------------


TEXT_ATTACKERS = (
    "ranks them for each released text: by the words they share, by sentence vectors (where an encoder is installed), "
    "and by the number of tokens alone, which word mechanisms do not hide"
)
VECTOR_ATTACKER = "ranks them for each released vector by its cosine with their vectors, which anybody can compute"


def section(linkages: Sequence[Linkage], pairs: TextPairs, attackers: str = TEXT_ATTACKERS) -> Section:
    text = (
        f"The attacker holds {len(pairs):,} originals and {attackers}. Linking gets harder with more originals to "
        "choose from."
    )
    best = max(linkages, key=lambda each: each.top1.rate)
    findings = [
        scale.finding(
            "released texts linked to their originals",
            best.top1,
            f"The strongest attacker ({best.attacker}) finds the original",
            without="texts that are not rewritten are found in",
            attacker=best.attacker,
            top10=best.top10.rate,
            reciprocal=best.reciprocal,
        )
    ]
    rows = [[e.attacker, e.top1.rate, e.top1.low, e.top1.high, e.top10.rate, e.reciprocal] for e in linkages]
    rows.append(["by chance", best.top1.floor, None, None, best.top10.floor, best.reciprocal_by_chance])
    tables = [
        Table("Linkage", ("attacker", "first", "low", "high", "among ten", "mean reciprocal rank"), rows),
    ]
    if best.linked:
        shown = [[pairs.rows[i], cut(pairs.originals[i]), cut(pairs.released[i])] for i in best.linked]
        tables.append(
            Table("Released texts whose original stands out most", ("row", "original", "released"), shown, private=True)
        )
    return Section("Linkage: which original does a released text belong to?", text, findings, tables)
