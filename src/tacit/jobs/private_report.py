"""The report of a release for the holder of the private rows, who alone may see it.

Beside the parts of the page that may be shared it has the private rows on the map, the true proportions, what learners
score on private rows, and what the best attack that was tried makes of the release. All of that is computed from
private rows without noise. So the page is another template with another title, a red band on top, a name with PRIVATE
in it, and a file that only its owner can read; nothing in `tacit.jobs.release_report` takes private rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tacit.auditing.synthetic import AuditedRows, ShadowAttack, membership_attack
from tacit.errors import BadInputError
from tacit.evaluation.corpus import CorpusScores, Labeled, corpus_scores
from tacit.jobs.release_report import (
    MAP_POINTS,
    SHOWN_LABELS,
    PublicRelease,
    ReleaseView,
    clouds_of,
    colored_clouds,
    first_rows,
    kinds_of,
    map_clouds,
    map_marks,
    release_view,
    share_bars,
)
from tacit.matching.corpus import pool_features
from tacit.matching.labels import NO_LABEL
from tacit.matching.proportions import label_proportions
from tacit.matching.sketch import Sketch
from tacit.matching.sums import RowSource
from tacit.noise.source import public_generator
from tacit.progress import WorkProgress
from tacit.report.parts import Figure
from tacit.report.release_figures import cloud_figure, proportions_figure
from tacit.templates import rendered

MOST_ROWS = 20_000
"""Private rows that are looked at, at most: enough for every number on the page."""
TEST_SHARE = 5
"""Without test rows of their own, every so many-th private row is held out from the learners."""
SHADOW_RELEASES = 400


@dataclass(frozen=True)
class HeldRows:
    """Private rows with labels of the release, in the memory of their holder.

    test   other rows to score learners on; without them some of the rows are held out from the learners
    """

    texts: Sequence[str]
    labels: Sequence[str]
    test: Labeled | None = None

    def split(self) -> tuple[Labeled, Labeled]:
        """Rows to learn from, and rows to score on."""
        if self.test is not None:
            return Labeled(self.texts, self.labels), self.test
        order = public_generator(3).permutation(len(self.texts)).tolist()
        held, rest = order[::TEST_SHARE], [place for rank, place in enumerate(order) if rank % TEST_SHARE]
        rows = Labeled(self.texts, self.labels)
        return rows.at(rest), rows.at(held)


@dataclass(frozen=True)
class ReleaseJudgment:
    """Scores and an attack, found with the private rows; a part is None where it could not be measured."""

    scores: CorpusScores | None
    attack: ShadowAttack | None


@dataclass(frozen=True)
class PrivateView:
    """The parts of the private page, as the template shows them."""

    shared: ReleaseView
    original_map: Figure
    released_map: Figure
    proportions: Figure
    originals: Mapping[str, Sequence[str]]
    judgment: ReleaseJudgment
    scored_on: str
    attack_words: str
    version: str


def held_rows(source: RowSource, sketch: Sketch, most: int = MOST_ROWS) -> HeldRows:
    """Some of the private rows, all equally probable, with their labels in the sketch; others have none and are left
    out."""
    generator = public_generator(5)
    texts: list[str] = []
    labels: list[str] = []
    seen = 0
    for block in source():
        places = sketch.rule.places(block.texts, block.labels)
        for text, place in zip(block.texts, places.tolist(), strict=True):
            if place == NO_LABEL:
                continue
            seen += 1
            if len(texts) < most:
                texts.append(text)
                labels.append(sketch.labels[place])
            elif (slot := int(generator.integers(seen))) < most:
                texts[slot], labels[slot] = text, sketch.labels[place]
    return HeldRows(texts, labels)


def judged(release: PublicRelease, held: HeldRows, progress: WorkProgress | None = None) -> ReleaseJudgment:
    """Scores of three learners, and the best membership attack on releases like this one."""
    train, test = held.split()
    try:
        scores = corpus_scores(train, Labeled(release.texts, release.labels), test, progress=progress)
    except BadInputError:  # one label, or too few rows to learn anything from
        scores = None
    steps = None if progress is None else (lambda done, total: progress("attacking", done, total))
    try:
        attack = membership_attack(
            AuditedRows(held.texts, held.labels), release.sketch, releases=SHADOW_RELEASES, progress=steps
        )
    except BadInputError:  # a promise that this attack is not made for
        attack = None
    return ReleaseJudgment(scores, attack)


def private_page(release: PublicRelease, held: HeldRows, judgment: ReleaseJudgment) -> str:
    """The page for the holder of the rows."""
    return rendered("release_private.html", view=private_view(release, held, judgment))


def private_view(release: PublicRelease, held: HeldRows, judgment: ReleaseJudgment) -> PrivateView:
    """The parts of the private page."""
    shared = release_view(release)
    shares = label_proportions(release.sketch, release.labels)
    kinds = kinds_of(shares)
    places = clouds_of(release)
    chosen = public_generator(4).permutation(len(held.texts))[:MAP_POINTS].tolist()
    rows = places.place(pool_features(release.sketch, [held.texts[place] for place in chosen]))
    original = colored_clouds(rows, [held.labels[place] for place in chosen], kinds)
    released, marks = map_clouds(places, kinds), map_marks(places, kinds)
    counts = Counter(held.labels)
    true = {label: count / len(held.labels) for label, count in counts.items()}
    return PrivateView(
        shared=shared,
        original_map=cloud_figure("original", [released[0], *original], marks, ORIGINAL_WORDS, beside=released),
        released_map=cloud_figure("released", released, marks, RELEASED_WORDS, beside=original),
        proportions=proportions_figure("proportions", share_bars(shares, kinds, true), TRUE_WORDS),
        originals=first_rows(held.texts, held.labels, list(kinds)[:SHOWN_LABELS]),
        judgment=judgment,
        scored_on="other private rows" if held.test is not None else (
            "private rows that were held out from the learners (the release was made of all rows)"
        ),
        attack_words=attack_sentence(judgment.attack),
        version=shared.version,
    )  # fmt: skip


ORIGINAL_WORDS = (
    "The private rows by their labels, with public sentences in gray and the released noisy means as crosses."
)
RELEASED_WORDS = "The released rows on the same map."
TRUE_WORDS = (
    "Red line: the true share of a label. Bar and error bar: what the release says about it. Circle: its share of the "
    "released rows."
)


def attack_sentence(attack: ShadowAttack | None) -> str:
    """The best attack in words."""
    if attack is None:
        return "No attack was tried on this promise."
    return (
        f"The best of {len(attack.attacks)} attacks guesses in {100 * attack.accuracy:.0f} of 100 releases whether a "
        f"record is in it ({attack.best.target}; 50 is guessing, and the card allows "
        f"{100 * attack.allowed_accuracy:.0f}; known to within {100 * attack.accuracy_margin:.0f})."
    )
