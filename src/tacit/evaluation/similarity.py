"""How much of the original texts is left in the released ones, beside what would be left by chance.

    BLEU, chrF      overlap of word and character n-grams (Papineni et al. 2002; Popović 2015), by sacrebleu
    BERTScore       each word piece matched with the closest one of the other text (Zhang et al., ICLR 2020):
                    R = mean over x of max over y of cos(x, y), P the same the other way, F1 = 2PR / (P + R)
    cosine          of the two sentence vectors
    kept words      same word at the same place; and same words in any order (multiset overlap, share of the original's)
    length change   | tokens released - tokens original | / tokens original
    perplexity      exp of the mean surprise per token under a public language model: fluency, not meaning

A number alone says little: two unrelated English sentences have a BERTScore of 0.4. So each measure comes with a
**floor**, the same score for originals against the releases of *other* texts (a fixed public shuffle without fixed
points), and a **ceiling**, the originals against themselves. Perplexity has no partner: its floor is the released words
in random order, its ceiling the originals.

High similarity is not simply good: kept words and BLEU are also what an attacker reads. They get no traffic light.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tacit import plugins
from tacit.arrays import Floats
from tacit.documents.encoder import SentenceEncoder
from tacit.encoders import load_encoder
from tacit.errors import BadInputError, BadParameterError, require
from tacit.evaluation.bertscore import bert_scores, idf_weights, unit_rows
from tacit.evaluation.scores import Interval, bootstrap_interval, mean_interval
from tacit.evaluation.vectors import TextVectors, plain_pieces, token_states, with_pieces
from tacit.noise.source import public_generator
from tacit.plugins import Registry
from tacit.progress import StepProgress, WorkProgress
from tacit.report import Finding, Light, Section, Table
from tacit.text.tokens import split

if TYPE_CHECKING:
    from sacrebleu.metrics.bleu import BLEU
    from sacrebleu.metrics.chrf import CHRF

    from tacit.documents.language_models import CausalModel, Generator

METRICS = ("bleu", "chrf", "bertscore", "cosine", "kept-words", "length", "perplexity")
DEFAULT_METRICS = ("bleu", "chrf", "bertscore", "cosine", "kept-words", "length")
PairMeasure = Callable[[Sequence[str], Sequence[str]], Sequence[float]]


def _is_measure(thing: object) -> bool:
    return callable(thing)


MEASURES: Registry[PairMeasure] = Registry(plugins.MEASURES, "measure", {}, _is_measure)
"""Measures of plug-ins: a function of the originals and the releases that returns one number for each pair."""

BOOTSTRAP = 300
LONGEST = 256
PERPLEXITY_TOKENS = 64


@dataclass(frozen=True)
class Measure:
    """One measure of the released texts, between its floor and its ceiling.

    interval   over texts (bootstrap); of a sample of them where `texts` is smaller than the file
    per_text   one number per text of the sample, where the measure has one
    """

    name: str
    interval: Interval
    floor: float
    ceiling: float
    texts: int
    note: str = ""
    logarithmic: bool = False
    per_text: Floats | None = field(default=None, repr=False, compare=False)

    @property
    def value(self) -> float:
        return self.interval.value

    @property
    def kept(self) -> float:
        """The share of the gap between floor and ceiling that is kept; NaN where there is no gap."""
        return share_kept(self.value, self.floor, self.ceiling, logarithmic=self.logarithmic)


def share_kept(value: float, floor: float, ceiling: float, *, logarithmic: bool = False) -> float:
    """(value - floor) / (ceiling - floor): 0 at the floor, 1 at the ceiling, whichever of them is larger."""
    if logarithmic:
        value, floor, ceiling = (math.log(x) if x > 0 else -math.inf for x in (value, floor, ceiling))
    gap = ceiling - floor
    return (value - floor) / gap if gap and math.isfinite(gap) else math.nan


def check_pairs(originals: Sequence[str], releases: Sequence[str]) -> None:
    if len(originals) != len(releases):
        shorter = min(len(originals), len(releases))
        raise BadInputError(
            "rows-do-not-align",
            "there are {originals:,} original texts and {released:,} released ones, so row {row} has no partner: "
            "give files with the same rows in the same order",
            originals=len(originals),
            released=len(releases),
            row=shorter + 1,
        )
    if len(originals) < 2:
        raise BadInputError(
            "too-few-rows", "similarity needs at least two texts, so that chance can be measured: give more rows"
        )


def strangers(count: int, seed: int = 0) -> NDArray[np.int64]:
    """For each text the place of another one: a random cycle, so that no text meets its own release."""
    order = public_generator(seed).permutation(count)
    partner = np.empty(count, dtype=np.int64)
    partner[order] = np.roll(order, 1)
    return partner


def sample(count: int, limit: int | None, seed: int = 0) -> NDArray[np.int64]:
    """A fixed public sample of places, in order."""
    if limit is None or count <= limit:
        return np.arange(count)
    return np.sort(public_generator(seed).permutation(count)[:limit])


# N-grams ----------------------------------------------------------------------------------------------------------


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


# Vectors ----------------------------------------------------------------------------------------------------------


def cosine(
    originals: Sequence[str],
    releases: Sequence[str],
    vectors: TextVectors | None = None,
    progress: StepProgress | None = None,
) -> Measure:
    """Cosine of the sentence vectors of original and release."""
    check_pairs(originals, releases)
    vectors = vectors or TextVectors()
    # Originals by themselves: an encoder with a cache then computes them once for many releases.
    before, after = vectors(originals, progress), vectors(releases, progress)
    per_text = np.einsum("ij,ij->i", before, after).astype(np.float64)
    floor = float(np.einsum("ij,ij->i", before, after[strangers(len(releases))]).mean())
    ceiling = float(np.einsum("ij,ij->i", before, before).mean())
    note = f"sentence vectors of {vectors.name}"
    return Measure("cosine", mean_interval(per_text), floor, ceiling, len(originals), note, per_text=per_text)


def bertscore(
    originals: Sequence[str],
    releases: Sequence[str],
    encoder: str | Path | SentenceEncoder = "minilm",
    *,
    idf: bool = False,
    progress: StepProgress | None = None,
) -> Measure:
    """BERTScore F1 with the last layer of the given encoder.

    The published numbers use a tuned layer of RoBERTa-large and are not comparable; floor and ceiling are.
    """
    check_pairs(originals, releases)
    encoder = with_pieces(load_encoder(encoder) if isinstance(encoder, str | Path) else encoder, "BERTScore")
    texts = list(dict.fromkeys([*originals, *releases]))
    pieces = plain_pieces(encoder.tokenizer, texts, min(LONGEST, encoder.pieces) - 2)
    states = token_states(encoder, pieces, progress)
    known = {
        text: (ids[: len(vectors)], unit_rows(vectors))
        for text, ids, vectors in zip(texts, pieces, states, strict=True)
    }
    before, after = [known[text] for text in originals], [known[text] for text in releases]
    weights = idf_weights([ids for ids, _ in before]) if idf else None
    scores = bert_scores(before, after, weights)
    shuffled = bert_scores(before, [after[i] for i in strangers(len(after))], weights)
    note = (
        f"last layer of {encoder.name}{', idf of the originals' if idf else ''}; "
        f"precision {scores.precision.mean():.3f}, recall {scores.recall.mean():.3f}"
    )
    ceiling = float(bert_scores(before, before, weights).f1.mean())
    return Measure(
        "BERTScore",
        mean_interval(scores.f1),
        float(shuffled.f1.mean()),
        ceiling,
        len(originals),
        note,
        per_text=scores.f1,
    )


# Words ------------------------------------------------------------------------------------------------------------


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


def length_change(original: Sequence[str], release: Sequence[str]) -> float:
    """How much longer or shorter, as a share of the original; one token counts as the length of an empty text."""
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


def of_plugin(name: str, measure: PairMeasure, originals: Sequence[str], releases: Sequence[str]) -> Measure:
    """A measure of a plug-in, with the floor and the ceiling that all measures have: the release of another text, and
    the original itself."""
    check_pairs(originals, releases)

    def values(others: Sequence[str]) -> Floats:
        result = np.asarray(measure(originals, others), dtype=np.float64)
        if result.shape != (len(originals),):
            raise BadInputError(
                "measure-shape",
                "the measure '{name}' must return one number for each of {texts:,} texts, not {shape}",
                name=name,
                texts=len(originals),
                shape=result.shape,
            )
        return result

    per_text = values(releases)
    floor = float(values([releases[i] for i in strangers(len(releases))]).mean())
    note = "a measure of a plug-in"
    ceiling = float(values(originals).mean())
    return Measure(name, mean_interval(per_text), floor, ceiling, len(originals), note, per_text=per_text)


# Fluency ----------------------------------------------------------------------------------------------------------


def surprise(texts: Sequence[str], model: CausalModel, progress: StepProgress | None = None) -> Floats:
    """(texts, 2): the summed surprise (nats) of the first tokens of each text, and how many tokens that is."""
    import torch

    first = list(model.special_frame().before) or [model.end if model.end is not None else model.pad]
    rows = [[*first, *model.tokens(text, PERPLEXITY_TOKENS)] for text in texts]
    surprises = np.zeros((len(rows), 2))
    order = sorted(range(len(rows)), key=lambda i: len(rows[i]))
    for start in range(0, len(order), 16):
        batch = order[start : start + 16]
        longest = max(len(rows[i]) for i in batch)
        ids = torch.tensor([rows[i] + [model.pad] * (longest - len(rows[i])) for i in batch])
        mask = torch.tensor([[1] * len(rows[i]) + [0] * (longest - len(rows[i])) for i in batch])
        if longest > len(first):
            with torch.inference_mode():
                logits = model.model(input_ids=ids, attention_mask=mask).logits[:, len(first) - 1 : -1].float()
                losses = torch.nn.functional.cross_entropy(
                    logits.transpose(1, 2), ids[:, len(first) :], reduction="none"
                )
                counted = mask[:, len(first) :].float()
                sums = (losses * counted).sum(dim=1)
            surprises[batch] = torch.stack([sums, counted.sum(dim=1)], dim=1).double().numpy()
        if progress is not None:
            progress(start + len(batch), len(order))
    return surprises


def perplexity(
    originals: Sequence[str],
    releases: Sequence[str],
    model: str | Generator = "smollm2",
    progress: StepProgress | None = None,
) -> Measure:
    """Perplexity per token of the released texts. Lower is more fluent; it says nothing about what they mean."""
    check_pairs(originals, releases)
    from tacit.documents.language_models import CausalModel, load_generator

    model = load_generator(model)
    if not isinstance(model, CausalModel):
        raise BadParameterError(
            "wrong-kind-of-model",
            "perplexity needs a causal language model, and {model} is {kind}",
            model=model.name,
            kind=model.kind,
        )
    rng = public_generator(1)
    salad = [" ".join(rng.permutation(np.array(text.split(), dtype=object)).tolist()) for text in releases]
    table = surprise([*originals, *releases, *salad], model, progress)
    parts = table[: len(originals)], table[len(originals) : 2 * len(originals)], table[2 * len(originals) :]

    def of(rows: Floats) -> float:
        tokens = rows[:, 1].sum()
        return math.exp(rows[:, 0].sum() / tokens) if tokens else math.nan

    before, after, floor = (of(part) for part in parts)
    if math.isnan(after):
        interval = Interval(after, math.nan, math.nan, len(releases))
    else:
        interval = bootstrap_interval(lambda at: of(parts[1][at]) if parts[1][at, 1].sum() else after, len(releases))
    note = f"{model.name}, first {PERPLEXITY_TOKENS} tokens; floor: the released words in random order; lower is better"
    per_text = parts[1][:, 0] / np.maximum(parts[1][:, 1], 1)
    return Measure("perplexity", interval, floor, before, len(releases), note, logarithmic=True, per_text=per_text)


# All together -----------------------------------------------------------------------------------------------------


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
        elif name == "length":
            measures.append(length(originals, releases))
        elif name == "cosine":
            measures.append(cosine(*taken(limit), vectors, steps_of_measure("sentence vectors")))
        elif name == "bertscore":
            pieces = with_pieces(vectors.encoder, "BERTScore")
            measures.append(bertscore(*taken(limit), pieces, idf=idf, progress=steps_of_measure("BERTScore")))
        elif name in MEASURES:
            measures.append(of_plugin(name, MEASURES[name], originals, releases))
        else:
            measures.append(perplexity(*taken(perplexity_limit), language_model, steps_of_measure("perplexity")))
    return SimilarityResult(tuple(measures), originals, releases)


LIT = ("cosine", "BERTScore")
"""The measures of meaning; the others also measure how much text shows through, which is no virtue."""
GREEN_FROM, AMBER_FROM = 0.5, 0.1


def similarity_light(measure: Measure) -> Light:
    if not measure.kept > 0 or (not math.isnan(measure.interval.low) and measure.interval.low <= measure.floor):
        return Light.RED
    return Light.GREEN if measure.kept >= GREEN_FROM else Light.AMBER if measure.kept >= AMBER_FROM else Light.RED


def similarity_section(similarity: SimilarityResult, name: str = "the release", worst: int = 5) -> Section:
    rows = [
        [m.name, m.value, m.interval.low, m.interval.high, m.floor, m.ceiling, m.kept, m.texts]
        for m in similarity.measures
    ]
    table = Table(
        "Measures",
        ["measure", "value", "from", "to", "floor", "ceiling", "gap kept", "texts"],
        rows,
        "from–to: 95 % bootstrap over texts. Floor: the same score against the release of another text. Ceiling: the "
        "original against itself. Gap kept: 0 at the floor, 1 at the ceiling.",
    )
    lit = next((m for name in LIT for m in similarity.measures if m.name == name), None)
    findings = []
    if lit is not None:
        findings.append(
            Finding(
                f"Meaning kept by {name}",
                similarity_light(lit),
                f"{lit.name} is {lit.value:.3f}, {lit.floor:.3f} for the release of another text and "
                f"{lit.ceiling:.3f} for the original itself: {lit.kept:.0%} of the gap is kept",
                f"good from {GREEN_FROM:.0%} of the gap between floor and ceiling, look from {AMBER_FROM:.0%}, bad "
                "below or when the interval reaches the floor. A single text need not be close for many texts to be "
                "useful together: where labels exist, the downstream task decides",
                numbers={"value": lit.value, "floor": lit.floor, "ceiling": lit.ceiling, "kept": lit.kept},
            )
        )
    tables = [
        table,
        Table("How they were measured", ["measure", "how"], [[m.name, m.note] for m in similarity.measures]),
    ]
    if not similarity.measures:
        tables = []
    if lit is not None and lit.per_text is not None and worst:
        tables.append(_extremes(similarity, lit, worst))
    return Section(
        f"Similarity of {name} to the originals",
        "What is left of each text, beside what chance alone leaves. N-gram overlap, kept words and length say how "
        "much of the wording shows through; they have no light, because that is what an attacker reads too.",
        findings,
        tables,
    )


def _extremes(similarity: SimilarityResult, lit: Measure, count: int) -> Table:
    assert lit.per_text is not None
    # The neural measures look at a fixed sample: the same one again.
    places = sample(len(similarity.originals), lit.texts)
    order = np.argsort(lit.per_text, kind="stable")
    chosen = [*order[:count], *order[::-1][:count][::-1]] if len(order) > 2 * count else list(order)
    rows = [
        [int(places[i]) + 1, float(lit.per_text[i]), shortened(similarity.originals[places[i]]),
         shortened(similarity.releases[places[i]])]
        for i in chosen
    ]  # fmt: skip
    return Table(f"Least and most similar texts by {lit.name}", ["row", lit.name, "original", "released"], rows,
                 private=True)  # fmt: skip


def shortened(text: str, limit: int = 160) -> str:
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 1] + "…"
