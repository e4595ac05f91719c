"""An ADePT that begins with public word vectors (GloVe in Igamberdiev 2023, section 6.4.3), and learns on from there.

Words that the vectors do not know keep their random rows, as do the marks. The vectors are scaled by one number, so
that their mean norm is that of a random row (1): the output layer shares the embedding, and long rows would make it
sure of itself before it has learned anything.

Vectors are public, like everything a model is made from. The record of the model names them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch

from tacit.documents.autoencoders import vocabulary
from tacit.errors import BadInputError
from tacit.vectors.load import load_vectors

if TYPE_CHECKING:
    from tacit.documents.autoencoders.lstm import LstmAutoencoder

MARKS = (vocabulary.PADDING, vocabulary.START, vocabulary.END, vocabulary.UNKNOWN)


def begin_with_vectors(model: LstmAutoencoder, vectors: str) -> dict[str, object]:
    """Put the vectors of the words that a new model knows into its embedding; says how many of its words have one."""
    table = load_vectors(vectors)
    places = {word: place for place, word in enumerate(table.words)}
    words = {word: row for word, row in model.tokenizer.get_vocab().items() if word not in MARKS}
    known = {row: place for word, row in words.items() if (place := _place(places, word)) is not None}
    if not known:
        raise BadInputError(
            "no-word-has-a-vector",
            "none of the words of the text has a vector in {name}: give vectors of the language of the text",
            name=table.name,
        )
    rows = np.array(table.vectors[list(known.values())], dtype=np.float32)
    rows /= np.linalg.norm(rows, axis=1).mean()
    with torch.no_grad():
        model.network.embedding.weight[list(known)] = torch.from_numpy(rows)
    model.record.corpora = list(dict.fromkeys([*model.record.corpora, f"word vectors: {table.source}"]))
    return {"words_with_vectors": len(known), "words": len(words)}


def _place(places: dict[str, int], word: str) -> int | None:
    """The row of a word, or of the same word without capitals: most published vectors have none."""
    return places.get(word, places.get(word.lower()))
