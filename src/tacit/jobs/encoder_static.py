"""How the static encoder that comes with the package was made: `python -m tacit.jobs.encoder_static FOLDER`.

1. The library model2vec (0.10.0, MIT; `pip install 'model2vec[distill]'`) puts every word piece of all-MiniLM-L6-v2
   through the model alone, keeps the first principal components of the results, and weights a piece by a guess of its
   frequency from its rank in the vocabulary.
2. These vectors, and those of the most frequent neighboring pairs of pieces, are trained until their sums resemble the
   vectors of the model on public sentences (`tacit.jobs.encoder_training`).
3. They are written as whole numbers of few bits (`tacit.matching.encoder_folder`).

It takes a quarter of an hour on two cores. What the model says of the sentences is kept in FOLDER/teacher, so that a
stopped run goes on; the package gets the other files.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tacit.arrays import Floats32
from tacit.errors import BadInputError, require
from tacit.jobs.encoder_training import teacher_vectors, trained, training_sentences
from tacit.matching.encoder_folder import save
from tacit.matching.pieces import WordPieces
from tacit.vectors.minilm import minilm_folder

DIMENSIONS = 256


def distilled(dimensions: int = DIMENSIONS) -> tuple[Floats32, str]:
    """Vectors of all word pieces, and the tokenizer as JSON."""
    transformers = require("transformers", extra="documents", purpose="distilling an encoder")
    model2vec = require("model2vec.distill", extra="documents", purpose="distilling an encoder")
    place = minilm_folder()
    model = transformers.AutoModel.from_pretrained(place, trust_remote_code=False)
    tokenizer = transformers.AutoTokenizer.from_pretrained(place, trust_remote_code=False)
    made = model2vec.distill_from_model(model, tokenizer, pca_dims=dimensions, device="cpu")
    return made.embedding.astype(np.float32), made.tokenizer.to_str()


def main(arguments: Sequence[str]) -> None:
    """Distill, train and write; progress goes to the terminal."""
    if len(arguments) != 1:
        raise BadInputError("folder-missing", "give the folder to write: python -m tacit.jobs.encoder_static FOLDER")
    folder = Path(arguments[0])
    vectors, tokenizer = distilled()
    vocabulary = json.loads(tokenizer)["model"]["vocab"]
    words = [word for word in vocabulary if word.isalpha()]
    sentences = training_sentences(Path(os.environ.get("TACIT_DATA", "../shared/data")), words)
    teacher = teacher_vectors(sentences, folder / "teacher", _show)
    result = trained(vectors, WordPieces(vocabulary), sentences, teacher, _show)
    print(f"\nmean cosine with the model, held out: {result.cosine_before:.4f}, trained {result.cosine_after:.4f}")
    save(np.concatenate([result.pieces, result.of_pairs]), tokenizer, folder, result.pairs)


def _show(work: str, done: int, total: int) -> None:
    if done == total or done % 100 == 0:
        print(f"\r{work}: {done:,} of {total:,}", end="", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
