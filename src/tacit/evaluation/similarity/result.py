"""All measures of one release, chosen by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tacit.errors import BadParameterError
from tacit.evaluation.similarity.fluency import perplexity
from tacit.evaluation.similarity.meaning import bertscore, cosine
from tacit.evaluation.similarity.measure import MEASURES, Measure, check_pairs, of_plugin, sample
from tacit.evaluation.similarity.wording import bleu, chrf, kept_words, length, verbatim_copies
from tacit.evaluation.vectors import TextVectors
from tacit.progress import StepProgress, WorkProgress

if TYPE_CHECKING:
    from tacit.documents.language_models import Generator

METRICS = ("bleu", "chrf", "bertscore", "cosine", "kept-words", "verbatim", "length", "perplexity")
DEFAULT_METRICS = ("bleu", "chrf", "bertscore", "cosine", "kept-words", "verbatim", "length")


@dataclass(frozen=True)
class SimilarityResult:
    """All measures of one release."""

    measures: tuple[Measure, ...]
    originals: Sequence[str] = field(repr=False)
    releases: Sequence[str] = field(repr=False)

    def __getitem__(self, name: str) -> Measure:
        return next(m for m in self.measures if m.name == name)


def check_metrics(names: Sequence[str]) -> tuple[str, ...]:
    if tuple(names) == ("all",):
        return METRICS
    if tuple(names) == ("none",):
        return ()
    for name in names:
        if name not in METRICS and name not in MEASURES:
            raise BadParameterError(
                "unknown-metric",
                "there is no metric '{name}': choose from {known}, 'all' or 'none'",
                name=name,
                known=", ".join((*METRICS, *MEASURES)),
            )
    return tuple(dict.fromkeys(names))


def measure_similarity(
    originals: Sequence[str],
    releases: Sequence[str],
    metrics: Sequence[str] = DEFAULT_METRICS,
    *,
    vectors: TextVectors | None = None,
    language_model: str | Generator = "smollm2",
    limit: int | None = 2000,
    perplexity_limit: int | None = 200,
    idf: bool = False,
    progress: WorkProgress | None = None,
) -> SimilarityResult:
    """The measures by name. Those that need a neural model look at a fixed sample of `limit` texts."""
    check_pairs(originals, releases)
    vectors = vectors or TextVectors()

    def steps_of_measure(name: str) -> StepProgress | None:
        return None if progress is None else lambda done, total: progress(name, done, total)

    def taken(limit: int | None) -> tuple[list[str], list[str]]:
        places = sample(len(originals), limit)
        return [originals[i] for i in places], [releases[i] for i in places]

    measures: list[Measure] = []
    for name in check_metrics(metrics):
        if name == "bleu":
            measures.append(bleu(originals, releases))
        elif name == "chrf":
            measures.append(chrf(originals, releases))
        elif name == "kept-words":
            measures += kept_words(originals, releases)
        elif name == "verbatim":
            measures.append(verbatim_copies(originals, releases))
        elif name == "length":
            measures.append(length(originals, releases))
        elif name == "cosine":
            measures.append(cosine(*taken(limit), vectors, steps_of_measure("sentence vectors")))
        elif name == "bertscore":
            measures.append(bertscore(*taken(limit), vectors.encoder, idf=idf, progress=steps_of_measure("BERTScore")))
        elif name in MEASURES:
            measures.append(of_plugin(name, MEASURES[name], originals, releases))
        else:
            measures.append(perplexity(*taken(perplexity_limit), language_model, steps_of_measure("perplexity")))
    return SimilarityResult(tuple(measures), originals, releases)
