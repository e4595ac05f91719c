"""How the static encoder that comes with the package was made: `python -m tacit.matching.encoder_build FOLDER`.

The library model2vec (0.10.0, MIT; `pip install 'model2vec[distill]'`) puts every word piece of all-MiniLM-L6-v2
through the model alone, keeps the first principal components of the results, and weights a piece by a guess of its
frequency from its rank in the vocabulary. Nothing but the vocabulary and the weights of the model is read: no
text at all.

The vectors are then written as 8-bit numbers: vector = scale of the dimension * (number shifted left by the shift of
its row), so that sums of them are sums of whole numbers (`tacit.matching.encoder`).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats32
from tacit.errors import BadInputError, require
from tacit.matching.encoder import LARGEST_SHIFT, weights_digest
from tacit.vectors.minilm import minilm_folder

DIMENSIONS = 256
PIECES = 512
SOURCE = "distilled from all-MiniLM-L6-v2 with model2vec 0.10.0"
LICENSE = "Apache-2.0"
NOT_WORDS = ("[PAD]", "[UNK]")
NOTICE = """The vectors in this folder were distilled from the sentence encoder all-MiniLM-L6-v2
(sentence-transformers, https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2), Apache License 2.0, with the
library model2vec 0.10.0 (MinishLab, MIT License). Changes: one vector per word piece, principal components, weights by
rank, 8-bit numbers. tokenizer.json is the one of that model without its special pieces, under the same license.
"""


def distilled(dimensions: int = DIMENSIONS) -> tuple[Floats32, str]:
    """Vectors of all word pieces, and the tokenizer as JSON."""
    transformers = require("transformers", extra="documents", purpose="distilling an encoder")
    model2vec = require("model2vec.distill", extra="documents", purpose="distilling an encoder")
    place = minilm_folder()
    model = transformers.AutoModel.from_pretrained(place, trust_remote_code=False)
    tokenizer = transformers.AutoTokenizer.from_pretrained(place, trust_remote_code=False)
    made = model2vec.distill_from_model(model, tokenizer, pca_dims=dimensions, device="cpu")
    return made.embedding.astype(np.float32), made.tokenizer.to_str()


def quantized(vectors: Floats32) -> tuple[NDArray[np.int8], NDArray[np.uint8], Floats32]:
    """8-bit numbers, the shift of each row and the scale of each dimension."""
    largest = np.abs(vectors).max(axis=0)
    scales = np.where(largest > 0, largest, 1.0) / (127 * 2.0**LARGEST_SHIFT)
    steps = vectors / scales
    tops = np.maximum(np.abs(steps).max(axis=1), 1e-9)
    shifts = np.clip(np.ceil(np.log2(tops / 127.0)), 0, LARGEST_SHIFT).astype(np.uint8)
    small = np.clip(np.rint(np.ldexp(steps, -shifts.astype(np.int32)[:, None])), -127, 127).astype(np.int8)
    return small, shifts, scales.astype(np.float32)


def save(vectors: Floats32, tokenizer: str, folder: Path, source: str = SOURCE) -> None:
    """Write the folder of a static encoder."""
    pieces = json.loads(tokenizer)
    pieces["truncation"] = pieces["padding"] = None
    vectors = vectors.copy()
    for word in NOT_WORDS:
        vectors[pieces["model"]["vocab"][word]] = 0.0  # says nothing about the text
    small, shifts, scales = quantized(vectors)
    written = json.dumps(pieces, ensure_ascii=False, separators=(",", ":")).encode("utf-8")
    facts = {
        "source": source,
        "license": LICENSE,
        "pieces": PIECES,
        "digest": weights_digest(small, shifts, scales, written),
    }
    folder.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(folder / "vectors.npz", vectors=small, shifts=shifts, scales=scales)
    (folder / "tokenizer.json").write_bytes(written)
    (folder / "encoder.json").write_text(json.dumps(facts, indent=2) + "\n", encoding="utf-8")
    (folder / "ATTRIBUTION.txt").write_text(NOTICE, encoding="utf-8")


def main(arguments: Sequence[str]) -> None:
    if len(arguments) != 1:
        raise BadInputError("folder-missing", "give the folder to write: python -m tacit.matching.encoder_build FOLDER")
    save(*distilled(), Path(arguments[0]))


if __name__ == "__main__":
    main(sys.argv[1:])
