"""Refusals of trainings on public text, whose options do not go together."""

from __future__ import annotations

from tacit.errors import BadParameterError


def only_adept_in_eight_bits() -> BadParameterError:
    return BadParameterError(
        "only-adept-in-eight-bits",
        "only an ADePT ({option.kind[adept]}) can be saved in 8 bits: use {option.half}",
    )


def vectors_of_another_model() -> BadParameterError:
    return BadParameterError(
        "vectors-of-another-model",
        "only a new ADePT ({option.kind[adept]}) begins with word vectors: leave out {option.vectors}",
    )


def vectors_of_word_pieces() -> BadParameterError:
    return BadParameterError(
        "vectors-of-word-pieces",
        "word vectors belong to whole words: add {option.whole_words} to {option.vectors}",
    )


def embedding_of_vectors() -> BadParameterError:
    return BadParameterError(
        "embedding-of-vectors",
        "the width of the words is that of their vectors: leave out {option.embedding}",
    )
