"""The report of a corpus by matching, as one page that may be shared with it.

It is made of the sketch, the pool and the released rows: all of them are public, so the page costs nothing and says
nothing that the corpus and its sketch do not say. It takes no private rows; the page for their holder is made by
`tacit.jobs.private_report`, from another template, under another name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tacit.arrays import Floats
from tacit.card import Card
from tacit.card.summary import five_lines
from tacit.matching.cloud_map import CloudMap, cloud_map
from tacit.matching.corpus import pool_features
from tacit.matching.discriminant import fitted_discriminant
from tacit.matching.noise_curve import DRAWS, NoisePoint, noise_curve
from tacit.matching.pool import SentencePool
from tacit.matching.proportions import Proportion, label_proportions
from tacit.matching.sketch import Sketch
from tacit.matching.subjects import without_subjects
from tacit.noise.source import public_generator
from tacit.report.parts import Figure
from tacit.report.release_figures import (
    Cloud,
    CurveStop,
    Mark,
    ShareBar,
    cloud_figure,
    curve_figure,
    label_kinds,
    proportions_figure,
)
from tacit.templates import rendered
from tacit.version import __version__

SHOWN_ROWS = 10
SHOWN_LABELS = 60
LOOKED_AT = 6_000
"""Released rows among which those that fit best are looked for."""
MAP_POINTS = 1_200
"""Points of the pool, and as many released rows, on the map: enough to see a cloud, few enough for a small page."""
CURVE_SENTENCES = 4_000
CURVE_ROWS = 3_000


@dataclass(frozen=True)
class PublicRelease:
    """All that the page is made of.

    pool            public sentences that could have been drawn, or some of them
    texts, labels   the released rows
    """

    sketch: Sketch
    pool: Sequence[str]
    texts: Sequence[str]
    labels: Sequence[str]
    card: Card


@dataclass(frozen=True)
class ReleaseView:
    """The parts of the page, as the template shows them.

    kinds      the color class of every label, the most frequent first
    examples   some rows of each label
    """

    summary: str
    card_lines: Sequence[tuple[str, str]]
    map: Figure
    kinds: Mapping[str, str]
    proportions: Figure
    curve: Figure | None
    curve_points: Sequence[NoisePoint]
    examples: Mapping[str, Sequence[str]]
    labels_left_out: int
    version: str = __version__


def public_release(
    sketch: Sketch, pools: Sequence[SentencePool], texts: Sequence[str], labels: Sequence[str], card: Card
) -> PublicRelease:
    """A release with some sentences of its pools, drawn with a public seed."""
    sentences = [sentence for pool in pools for sentence in pool.sentences]
    places = public_generator(0).permutation(len(sentences))[:CURVE_SENTENCES]
    return PublicRelease(sketch, [sentences[place] for place in places], texts, labels, card)


def release_page(release: PublicRelease) -> str:
    """The page that may be shared."""
    return page_of(release_view(release))


def page_of(view: ReleaseView) -> str:
    """The page with these parts."""
    return rendered("release.html", view=view)


def release_view(release: PublicRelease) -> ReleaseView:
    """The parts of the page."""
    proportions = label_proportions(release.sketch, release.labels)
    kinds = kinds_of(proportions)
    places = clouds_of(release)
    points = _curve_points(release)
    examples = shown_rows(release, list(kinds)[:SHOWN_LABELS])
    return ReleaseView(
        summary=summary_of(release),
        card_lines=five_lines(release.card),
        map=cloud_figure("map", map_clouds(places, kinds), map_marks(places, kinds), MAP_WORDS),
        kinds=kinds,
        proportions=proportions_figure("proportions", share_bars(proportions, kinds), _proportion_words(proportions)),
        curve=_curve_figure(points, len(release.sketch.labels)),
        curve_points=points,
        examples=examples,
        labels_left_out=max(0, len(kinds) - SHOWN_LABELS),
    )


def summary_of(release: PublicRelease) -> str:
    """The release in a sentence: nothing that was not released."""
    unit = release.sketch.guarantee.unit.value
    records = max(0.0, float(release.sketch.counts.sum()))
    return (
        f"{len(release.texts):,} public sentences with {len(release.sketch.labels):,} labels, chosen by noisy sums of "
        f"about {records:,.0f} private {unit}s."
    )


def kinds_of(proportions: Sequence[Proportion]) -> dict[str, str]:
    """A color for each label; the most frequent labels have one of their own."""
    return label_kinds([each.label for each in sorted(proportions, key=lambda each: -each.estimate)])


def shown_rows(release: PublicRelease, shown: Sequence[str]) -> dict[str, list[str]]:
    """Rows of each label: half of them those that fit it best by the sketch, then others at random."""
    order = public_generator(6).permutation(len(release.texts)).tolist()
    usual = first_rows([release.texts[row] for row in order], [release.labels[row] for row in order], shown)
    best = fitting_rows(release, shown)
    return {label: list(dict.fromkeys([*best[label], *usual[label]]))[:SHOWN_ROWS] for label in shown}


def fitting_rows(release: PublicRelease, shown: Sequence[str]) -> dict[str, list[str]]:
    """The rows of each label that fit it best by the sketch, among the first of the corpus."""
    texts, labels = release.texts[:LOOKED_AT], np.array(release.labels[:LOOKED_AT], dtype=object)
    # The name of a label before a sentence would put it first, whatever the sentence says.
    features = pool_features(release.sketch, without_subjects(texts, release.sketch.labels))
    discriminant = fitted_discriminant(release.sketch, pool_features(release.sketch, release.pool))
    fits, domain = discriminant.log_probabilities(features), discriminant.domain_scores(features)
    rows = {}
    for label in shown:
        own = np.flatnonzero(labels == label)
        order = own[np.argsort(-(fits[own, release.sketch.labels.index(label)] + domain[own]), kind="stable")]
        rows[label] = list(dict.fromkeys(texts[place] for place in order))[: SHOWN_ROWS // 2]
    return rows


def first_rows(texts: Sequence[str], labels: Sequence[str], shown: Sequence[str]) -> dict[str, list[str]]:
    """The first different rows of each label, as they stand in the corpus."""
    rows: dict[str, dict[str, None]] = {label: {} for label in shown}
    for text, label in zip(texts, labels, strict=True):
        if label in rows and len(rows[label]) < SHOWN_ROWS:
            rows[label][text] = None
    return {label: list(different) for label, different in rows.items()}


# The map ------------------------------------------------------------------------------------------------------------

MAP_WORDS = (
    "Gray: public sentences. Colored: the released rows, which are some of them. Cross: the noisy mean of the private "
    "rows of a label, from the sketch; the true mean lies within the dashed circle in at least 95 of 100 releases. "
    "Labels with too few rows to be told from noise have no cross. A flat map of many dimensions: what lies apart is "
    "different, what lies together may be."
)


def clouds_of(release: PublicRelease) -> CloudMap:
    """The map of the release, of some of its points."""
    chosen = public_generator(1).permutation(len(release.texts))[:MAP_POINTS]
    texts = [release.texts[place] for place in chosen]
    sentences = without_subjects(texts, release.sketch.labels)
    return cloud_map(release.sketch, release.pool[:MAP_POINTS], sentences, [release.labels[place] for place in chosen])


def map_clouds(places: CloudMap, kinds: Mapping[str, str]) -> list[Cloud]:
    """The pool, and above it the released rows by the color of their labels."""
    return [Cloud(points(places.pool), "pool"), *colored_clouds(places.rows, places.labels, kinds)]


def colored_clouds(rows: Floats, labels: Sequence[str], kinds: Mapping[str, str]) -> list[Cloud]:
    """Rows by the color of their labels."""
    by_kind: dict[str, list[tuple[float, float]]] = {}
    for label, place in zip(labels, points(rows), strict=True):
        by_kind.setdefault(kinds[label], []).append(place)
    return [Cloud(each, kind) for kind, each in sorted(by_kind.items())]


def map_marks(places: CloudMap, kinds: Mapping[str, str]) -> list[Mark]:
    """The noisy means, those of the most frequent labels first."""
    order = {label: number for number, label in enumerate(kinds)}
    return [
        Mark(mean.label, points(mean.place[None, :])[0], mean.radius, kinds[mean.label])
        for mean in sorted(places.means, key=lambda mean: order[mean.label])
    ]


def points(places: Floats) -> list[tuple[float, float]]:
    """Rows of two numbers as pairs."""
    return [(float(x), float(y)) for x, y in np.asarray(places)]


# Proportions and curve ----------------------------------------------------------------------------------------------


def share_bars(
    proportions: Sequence[Proportion], kinds: Mapping[str, str], true: Mapping[str, float] | None = None
) -> list[ShareBar]:
    """The bars of all labels; `true` shares are for the holder of the rows."""
    return [
        ShareBar(
            each.label, each.estimate, each.low, each.high, each.released, kinds[each.label],
            None if true is None else true.get(each.label, 0.0),
        )
        for each in proportions
    ]  # fmt: skip


def _proportion_words(proportions: Sequence[Proportion]) -> str:
    widest = max(each.high - each.low for each in proportions)
    return (
        "Bar: the share of a label in the private rows, from noisy counts. Error bar: where the true share lies in 95 "
        f"of 100 releases, by the noise that was added (at most {100 * widest:.2g} points wide here). Circle: its "
        "share of the released rows."
    )


def _curve_points(release: PublicRelease) -> list[NoisePoint]:
    chosen = public_generator(2).permutation(len(release.texts))[:CURVE_ROWS]
    texts = [release.texts[place] for place in chosen]
    return noise_curve(release.sketch, release.pool, texts, [release.labels[place] for place in chosen])


def _curve_figure(points: Sequence[NoisePoint], labels: int) -> Figure | None:
    if not points:
        return None
    stops = [CurveStop(each.epsilon, each.kept, each.low, each.high) for each in points]
    words = (
        "More noise was added to the released sketch, which is what a smaller epsilon would have added, and costs "
        "nothing. Measured on released rows, which are public: how many keep their label under a classifier made of "
        f"the noisier sketch, the mean over labels (band: {DRAWS} draws of noise). It is no score on private rows. "
        "What a larger epsilon would give cannot be seen without reading them again."
    )
    return curve_figure("curve", stops, 1 / labels, words)
