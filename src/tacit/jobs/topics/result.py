"""Released topics, and the files that show them: a page with a map, a table, and JSON."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from tacit.card import Card
from tacit.guarantee import Guarantee
from tacit.jobs.topics.config import TopicsConfig
from tacit.report.parts import Report
from tacit.text.files import write_columns
from tacit.text.files.partial import write_together


@dataclass(frozen=True)
class Topic:
    """A topic.

    number      by its noisy count, from 1
    name        its most telling words, or a public sentence where no word was frequent enough
    count       noisy number of texts (of users, where the promise is made to them)
    low, high   where the true number lies in 95 of 100 releases; None where that is not known (lda)
    share       of all texts
    words       released words, the most telling first, with noisy weighted counts
    sentences   public sentences near it; nobody wrote them here
    place, radius   of its circle on the map, in units of the map's height
    region      topics of one region are alike
    """

    number: int
    name: str
    count: float
    low: float | None
    high: float | None
    share: float
    words: dict[str, float]
    sentences: list[str]
    place: tuple[float, float] = (0.0, 0.0)
    radius: float = 0.0
    region: int = 0


@dataclass(frozen=True)
class ReleasedTopics:
    """Topics with their card, the largest first.

    attribution   of the public sentences, as their licenses want it
    threshold     the noisy count from which on a word was shown
    """

    topics: Sequence[Topic]
    guarantee: Guarantee
    config: TopicsConfig = field(repr=False)
    attribution: str = field(repr=False)
    threshold: float = 0.0

    @property
    def card(self) -> Card:
        return Card(self.guarantee, configuration=self.config.identity())

    @property
    def unit(self) -> str:
        """Whose number the counts are: texts, or users."""
        return "texts" if self.config.user_column is None else "users"

    def __len__(self) -> int:
        return len(self.topics)

    def __str__(self) -> str:
        return str(self.report())

    def _repr_html_(self) -> str:
        return self.report()._repr_html_()

    def report(self) -> Report:
        """The page of these topics: a map, a table, and the promise."""
        from tacit.jobs.topics.page import topics_report

        return topics_report(self)

    def to_dict(self) -> dict[str, object]:
        """Everything that was released, as plain values."""
        return {
            "topics": [asdict(topic) for topic in self.topics],
            "counts_of": self.unit,
            "threshold_of_words": self.threshold,
            "created": datetime.datetime.now(datetime.UTC).date().isoformat(),
            "attribution": self.attribution,
            "card": self.card.to_dict(),
        }

    def columns(self) -> dict[str, list[str]]:
        """The table, column by column."""
        rows = [
            [str(t.number), t.name, f"{t.count:.0f}", _whole(t.low), _whole(t.high), f"{t.share:.4f}",
             " ".join(t.words), " | ".join(t.sentences)]
            for t in self.topics
        ]  # fmt: skip
        names = ["topic", "name", f"noisy_{self.unit}", "low", "high", "share", "words", "public_sentences"]
        return dict(zip(names, ([*column] for column in zip(*rows, strict=True)), strict=True))

    def save(self) -> None:
        """Write the files that the configuration names, each after its card and the attribution."""
        for path in self.config.output:
            write_together(dict(self._beside(path)))
            if path.suffix == ".csv":
                write_columns(path, self.columns(), force=True)
            else:
                write_together({path: self._text(path)})

    def _beside(self, path: Path) -> Iterator[tuple[Path, str]]:
        yield Path(f"{path}.card.json"), self.card.to_json()
        yield Path(f"{path}.card.md"), self.card.to_markdown()
        yield Path(f"{path}.ATTRIBUTION.txt"), self.attribution

    def _text(self, path: Path) -> str:
        if path.suffix == ".html":
            return self.report().to_html()
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False) + "\n"


def _whole(value: float | None) -> str:
    return "" if value is None else f"{value:.0f}"
