"""How much of the original texts is left in the released ones, beside what would be left by chance.

    BLEU, chrF      overlap of word and character n-grams (Papineni et al. 2002; Popović 2015), by sacrebleu
    BERTScore       each word piece matched with the closest one of the other text (Zhang et al., ICLR 2020):
                    R = mean over x of max over y of cos(x, y), P the same the other way, F1 = 2PR / (P + R)
    cosine          of the two sentence vectors
    kept words      same word at the same place; and same words in any order (multiset overlap, share of the original's)
    verbatim copies texts whose tokens are all the same; the floor is that of another text, 0 unless texts repeat
    length change   | tokens released - tokens original | / tokens original
    perplexity      exp of the mean surprise per token under a public language model: fluency, not meaning

A number alone says little: two unrelated English sentences have a BERTScore of 0.4. So each measure comes with a
**floor**, the same score for originals against the releases of *other* texts (a fixed public shuffle without fixed
points), and a **ceiling**, the originals against themselves. Perplexity has no partner: its floor is the released words
in random order, its ceiling the originals.

High similarity is not simply good: kept words and BLEU are also what an attacker reads. They get no traffic light.
"""

from __future__ import annotations

from tacit.evaluation.similarity.fluency import PERPLEXITY_TOKENS, perplexity, surprise
from tacit.evaluation.similarity.meaning import LONGEST, bertscore, cosine
from tacit.evaluation.similarity.measure import (
    MEASURES,
    Measure,
    PairMeasure,
    check_pairs,
    of_plugin,
    sample,
    share_kept,
    strangers,
)
from tacit.evaluation.similarity.report import (
    AMBER_FROM,
    GREEN_FROM,
    LIT,
    shortened,
    similarity_light,
    similarity_section,
)
from tacit.evaluation.similarity.result import (
    DEFAULT_METRICS,
    METRICS,
    SimilarityResult,
    check_metrics,
    measure_similarity,
)
from tacit.evaluation.similarity.wording import (
    BOOTSTRAP,
    bleu,
    chrf,
    kept_anywhere,
    kept_in_place,
    kept_words,
    length,
    length_change,
    verbatim_copies,
)

__all__ = [
    "AMBER_FROM",
    "BOOTSTRAP",
    "DEFAULT_METRICS",
    "GREEN_FROM",
    "LIT",
    "LONGEST",
    "MEASURES",
    "METRICS",
    "PERPLEXITY_TOKENS",
    "Measure",
    "PairMeasure",
    "SimilarityResult",
    "bertscore",
    "bleu",
    "check_metrics",
    "check_pairs",
    "chrf",
    "cosine",
    "kept_anywhere",
    "kept_in_place",
    "kept_words",
    "length",
    "length_change",
    "measure_similarity",
    "of_plugin",
    "perplexity",
    "sample",
    "share_kept",
    "shortened",
    "similarity_light",
    "similarity_section",
    "strangers",
    "surprise",
    "verbatim_copies",
]
