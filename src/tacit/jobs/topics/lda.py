"""Topics by latent Dirichlet allocation with noisy sufficient statistics, from the options to the released topics."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tacit.account.release_charge import ReleaseCharge
from tacit.arrays import Floats
from tacit.errors import BadInputError
from tacit.guarantee import Guarantee, Provenance, Unit
from tacit.jobs.sketch_input import row_source
from tacit.jobs.topics.config import TopicsConfig
from tacit.jobs.topics.result import ReleasedTopics, Topic
from tacit.jobs.topics.words import public_words
from tacit.matching.features import LONGEST_CHARACTERS
from tacit.matching.pool import attribution_of
from tacit.matching.topics.cells import NO_CELL, PublicCells, load_cells, topic_vectors
from tacit.matching.topics.layout import circles
from tacit.matching.topics.merging import FEWEST_TOPICS, regions
from tacit.matching.topics.naming import SENTENCES, short_name
from tacit.matching.words import words_of
from tacit.noise.source import StreamKey
from tacit.progress import StepProgress, WorkProgress, steps_of
from tacit.text.identity import user_name
from tacit.training.plan import TrainingPlan
from tacit.training.topics.lda import BOUND, ETA, Bags, fitted_lda

WORDS = 2_000
PASSES = 10
PART = 2
"""One of so many units is drawn for a step, on average; chosen on CLINC150, as the passes."""
SHOWN_WORDS = 10
LEAST_TIMES = 20.0
"""A word is listed if its weight is so many times what every word has from the start."""
MECHANISM = "topics by latent Dirichlet allocation (noisy sufficient statistics; Park et al. 2016, sampled by Poisson)"


def released_lda(config: TopicsConfig, charge: ReleaseCharge, progress: WorkProgress | None) -> ReleasedTopics:
    """The topics of private texts, after all steps of the plan."""
    step = steps_of(progress)
    bags = _bags(config, step("reading texts"))
    plan = TrainingPlan.calibrated(
        epsilon=config.epsilon,
        records=len(bags),
        batch=max(1, len(bags) // PART),
        epochs=PASSES,
        delta=None if config.delta == "auto" else config.delta,
        unit=Unit.RECORD if config.user_column is None else Unit.USER,
    )
    key = StreamKey.from_os() if config.seed is None else StreamKey.from_test_seed(config.seed)
    topics = config.topics or FEWEST_TOPICS
    cells = load_cells()
    guarantee = _guarantee(plan, topics, cells, secure=key.secure)
    charge.reserve(guarantee)
    fitted = fitted_lda(bags, WORDS, topics, plan, key, step("fitting topics"))
    shown, attribution = _described(fitted.weights, len(bags), cells)
    return ReleasedTopics(shown, guarantee, config, attribution)


def _bags(config: TopicsConfig, progress: StepProgress) -> Bags:
    """The words of each unit that are on the public list; private."""
    known = public_words(WORDS)
    units: dict[str, list[int]] = {}
    row = 0
    for block in row_source(config, progress)():
        for place, text in enumerate(block.texts):
            row += 1
            name = str(row) if config.user_column is None else user_name(block.users[place])
            if not name:
                raise BadInputError("no-user", "row {row:,} has no user: every row must belong to one", row=row)
            words = words_of(text[:LONGEST_CHARACTERS])
            units.setdefault(name, []).extend(known[word] for word in words if word in known)
    if not units:
        raise BadInputError("no-rows", "{name} has no rows", name="the data")
    return Bags.of(list(units.values()))


def _guarantee(plan: TrainingPlan, topics: int, cells: PublicCells, *, secure: bool) -> Guarantee:
    promised = plan.guarantee(
        steps=plan.steps,
        secure=secure,
        what=MECHANISM,
        parameters={"topics": topics, "words": f"{WORDS:,} of a public list", "longest contribution": BOUND},
    )
    lines = [f"how many {plan.unit.value}s there are"]
    if plan.unit is Unit.RECORD:
        lines.append("a person who has several records: their budgets add up")
    words = Provenance("word list", "words of GloVe 6B, with their frequency in Tatoeba")
    return replace(promised, not_covered=tuple(lines), provenance=(words, *cells.provenance()))


def _described(weights: Floats, units: int, cells: PublicCells) -> tuple[list[Topic], str]:
    """Topics with names and places, the largest first, from released weights and public sentences."""
    names = list(public_words(WORDS))
    mass = weights.sum(axis=1)
    order = np.argsort(-mass, kind="stable")
    listed = [
        {names[word]: float(weights[topic, word]) for word in np.argsort(-weights[topic], kind="stable")[:SHOWN_WORDS]
         if weights[topic, word] > LEAST_TIMES * ETA}
        for topic in order
    ]  # fmt: skip
    directions = topic_vectors([" ".join(words) for words in listed])
    directions[~directions.any(axis=1), 0] = 1.0
    near = cells.places([" ".join(words) for words in listed])
    counts = mass[order] / mass.sum() * units
    places, radii = circles(directions, counts)
    alike = regions(directions, counts)
    shown, used = [], []
    for rank, words in enumerate(listed):
        own = [] if near[rank] == NO_CELL else [cells.sentence(int(p)) for p in cells.nearest[near[rank], :SENTENCES]]
        used += own
        sentences = [pool.sentences[place] for pool, place in own]
        shown.append(
            Topic(
                rank + 1, short_name(list(words), sentences), float(counts[rank]), None, None,
                float(counts[rank]) / units, words, sentences, (float(places[rank, 0]), float(places[rank, 1])),
                float(radii[rank]), int(alike[rank]),
            )
        )  # fmt: skip
    return shown, attribution_of(used)
