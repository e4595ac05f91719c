"""Vocabularies learned from private text, and what they cost.

histogram     the words of a private column with noisy counts
contribution  the bound on what one unit adds to them
word_noise    noise and threshold, with their proof
ngrams        phrases of several words, level by level
tokenizer     WordPiece, BPE and unigram tokenizers from such a histogram, and what they add to a training run
"""

from tacit.training.vocabulary.contribution import Contribution
from tacit.training.vocabulary.histogram import WordHistogram, private_histogram
from tacit.training.vocabulary.tokenizer import (
    CARD_FILE,
    WORDS_FILE,
    build_tokenizer,
    combined,
    load_vocabulary,
    save_vocabulary,
    vocabulary_guarantee,
)
from tacit.training.vocabulary.word_noise import WordNoise, calibrate, thresholded_delta

__all__ = [
    "CARD_FILE", "WORDS_FILE", "Contribution", "WordHistogram", "WordNoise", "build_tokenizer", "calibrate", "combined",
    "load_vocabulary", "private_histogram", "save_vocabulary", "thresholded_delta", "vocabulary_guarantee",
]  # fmt: skip
