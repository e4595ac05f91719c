"""Topics of private texts: what they are about, how many are about it, and in which words.

made = tacit.topics("mails.csv", epsilon=1, output="topics.html")
print(made)
made.topics[0].words, made.card
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tacit.account.release_charge import ReleaseCharge
from tacit.errors import TacitWarning
from tacit.jobs.charging import charging
from tacit.jobs.topics.config import TopicsConfig
from tacit.jobs.topics.result import ReleasedTopics, Topic
from tacit.noise.source import new_source
from tacit.progress import StepProgress, WorkProgress, steps_of

if TYPE_CHECKING:
    from tacit.matching.topics.cells import PublicCells
    from tacit.training.topics.counts import ExactCounts

__all__ = ["ReleasedTopics", "Topic", "TopicsConfig", "run", "topics"]

COMMAND = "tacit topics"


def run(config: TopicsConfig, progress: WorkProgress | None = None) -> ReleasedTopics:
    """The topics of private texts, in the files that were named, with their card. Every call spends its budget anew."""
    config.check_files()
    with charging(config, COMMAND) as charge:
        made = _released_lda(config, charge, progress) if config.by == "lda" else _released(config, charge, progress)
        made.save()
        charge.commit()
    return made


def topics(
    data: Any,
    *,
    epsilon: float,
    output: str | Path | Sequence[str | Path] = (),
    progress: WorkProgress | None = None,
    **options: Any,
) -> ReleasedTopics:
    """The topics of private texts: noisy counts with intervals, words, and public sentences near each; a file or data
    in memory, options as in `TopicsConfig`. Without an output nothing is written: the result holds everything."""
    files = (Path(output),) if isinstance(output, str | Path) else tuple(map(Path, output))
    return run(TopicsConfig(data=data, epsilon=epsilon, output=files, **options), progress)


def _released(config: TopicsConfig, charge: ReleaseCharge, progress: WorkProgress | None) -> ReleasedTopics:
    from tacit.jobs.private_pools import refuse_private_pools
    from tacit.matching.topics.cells import load_cells
    from tacit.training.topics.release import TopicTerms, topic_noise

    step = steps_of(progress)
    cells = load_cells(config.pools, step("clustering public sentences"))
    compared = refuse_private_pools(config.data, config.format, cells.pools)
    exact = _counted(config, cells, step("reading texts"))
    source = new_source(config.seed)
    terms = TopicTerms(
        config.epsilon,
        None if config.delta == "auto" else config.delta,
        config.words_that_count,
        config.user_column is not None,
        cells.provenance(),
    )
    noise = topic_noise(terms, len(cells), exact.units, secure=source.secure)
    guarantee = noise.guarantee.also_not_covered(*compared)
    charge.reserve(guarantee)
    # From here on the texts are read no more: only their counts, each with its noise.
    from tacit.matching.topics.merging import merged, usual_topics

    noisy = noise.noisy_cells(exact, source)
    count = min(config.topics or usual_topics(noisy, noise.threshold), len(cells))
    topic_of = merged(cells.directions, noisy, noise.scale, count)
    words = noise.shown_words(exact, topic_of, count, source)
    from tacit.jobs.topics.description import described_topics

    shown, attribution = described_topics(cells, noisy, topic_of, words, noise.scale)
    made = ReleasedTopics(shown, guarantee, config, attribution, noise.threshold)
    _warn_of_noise(made)
    return made


def _released_lda(config: TopicsConfig, charge: ReleaseCharge, progress: WorkProgress | None) -> ReleasedTopics:
    from tacit.jobs.topics.lda import released_lda

    return released_lda(config, charge, progress)


def _counted(config: TopicsConfig, cells: PublicCells, progress: StepProgress) -> ExactCounts:
    """Exact counts of all texts; private."""
    from tacit.jobs.row_notes import RowNotes, said_first
    from tacit.jobs.sketch_input import row_source
    from tacit.jobs.topics.words import telling_words
    from tacit.matching.features import LONGEST_CHARACTERS
    from tacit.training.topics.counts import UnitCounts

    notes = RowNotes(("static",), "they add nothing")
    most = None if config.user_column is not None else config.words_that_count
    counts = UnitCounts(len(cells), config.words_that_count, by_user=config.user_column is not None)
    for block in notes.watched(row_source(config, progress))():
        texts = [text[:LONGEST_CHARACTERS] for text in block.texts]
        counts.add(cells.places(texts), [telling_words(text, most) for text in texts], block.users)
    said_first(notes, lambda sentence: warnings.warn(TacitWarning(sentence), stacklevel=5))
    return counts.finish()


def _warn_of_noise(made: ReleasedTopics) -> None:
    """Say how many topics cannot be told from noise: it can be read off the release."""
    lost = sum(topic.low is not None and topic.low <= 0 for topic in made.topics)
    if lost:
        warnings.warn(
            TacitWarning(
                f"{lost:,} of {len(made.topics):,} topics cannot be told from noise: ask for fewer topics, raise "
                "epsilon, or gather more texts"
            ),
            stacklevel=4,
        )
