"""How much of the meaning is left: cosine of sentence vectors, BERTScore."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tacit.encoders import Encoder, load_encoder
from tacit.evaluation.bertscore import bert_scores, idf_weights, unit_rows
from tacit.evaluation.scores import mean_interval
from tacit.evaluation.similarity.measure import Measure, check_pairs, strangers
from tacit.evaluation.vectors import TextVectors, plain_pieces, token_states, with_pieces
from tacit.progress import StepProgress

LONGEST = 256


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
    encoder: str | Path | Encoder = "minilm",
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
