"""The page of released topics: it holds nothing that was not released, so it may be shared."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tacit.card.summary import five_lines
from tacit.report.parts import Report, Section, Table
from tacit.report.topic_map import TopicCircle, topic_figure

if TYPE_CHECKING:
    from tacit.jobs.topics.result import ReleasedTopics

SHOWN_WORDS = 10


def topics_report(made: ReleasedTopics) -> Report:
    """Map, table, promise and attribution."""
    total = sum(max(0.0, topic.count) for topic in made.topics)
    figure = topic_figure(
        "Map of topics",
        [
            TopicCircle(topic.place, topic.radius, topic.number, list(topic.words), topic.region)
            for topic in made.topics
        ],
        f"A circle is a topic, its area the noisy number of {made.unit}; topics that are alike lie near each "
        "other, and have one color. "
        "Small circles have a number only: the table has their words.",
    )
    rows = [
        [
            topic.number, round(topic.count), _interval(topic.low, topic.high),
            ", ".join(list(topic.words)[:SHOWN_WORDS]) or None, " · ".join(topic.sentences),
        ]
        for topic in made.topics
    ]  # fmt: skip
    table = Table(
        "Topics",
        ["topic", f"{made.unit} (noisy)", "95 % interval", "words of the texts", "public sentences nearby"],
        rows,
        note=_note(made),
    )
    text = f"About {total:,.0f} private {made.unit} in {len(made.topics):,} topics."
    card = Table("What is promised", ["", ""], [list(line) for line in five_lines(made.card)])
    return Report(
        "What these texts are about",
        [
            Section("Topics", text, tables=[table], figures=[figure]),
            Section("Privacy", tables=[card]),
            Section("Attribution", made.attribution),
        ],
    )


def _interval(low: float | None, high: float | None) -> str | None:
    return None if low is None or high is None else f"{max(0, round(low)):,} to {max(0, round(high)):,}"


def _note(made: ReleasedTopics) -> str:
    public = "The public sentences come from public pools: nobody wrote them in these texts."
    if made.config.by == "lda":
        return f"Words are those of a public list; numbers of {made.unit} are estimated from weights. {public}"
    return f"A word is shown where about {made.threshold:,.0f} {made.unit} or more are counted for it. {public}"
