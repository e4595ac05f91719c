"""Vocabularies learned from private text, and what they cost.

histogram   the words of a private column with noisy counts: contribution bound, noise, threshold
tokenizer   WordPiece, BPE and unigram tokenizers from such a histogram, and what they add to a training run
"""

from tacit.training.vocabulary.histogram import (
    Contribution,
    WordHistogram,
    WordNoise,
    calibrate,
    private_histogram,
    thresholded_delta,
)
from tacit.training.vocabulary.tokenizer import (
    CARD_FILE,
    WORDS_FILE,
    build_tokenizer,
    combined,
    load_vocabulary,
    save_vocabulary,
    vocabulary_guarantee,
)

__all__ = [
    "CARD_FILE", "WORDS_FILE", "Contribution", "WordHistogram", "WordNoise", "build_tokenizer", "calibrate", "combined",
    "load_vocabulary", "private_histogram", "save_vocabulary", "thresholded_delta", "vocabulary_guarantee",
]  # fmt: skip
