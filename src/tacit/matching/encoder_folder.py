"""Writes the folder of a static encoder: vectors as small whole numbers, the tokenizer, and what they come from.

vector = scale of the dimension * (number of 8 bits, shifted left by the shift of its row), so that sums of vectors are
sums of whole numbers (`tacit.matching.encoder`). `tacit.jobs.encoder_static` makes the one that comes with Tacit.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats32, Ids32
from tacit.matching.encoder import LARGEST_NUMBER, LARGEST_SHIFT, weights_digest

PIECES = 512
STEPS = 2.5
"""The size of a coordinate (root of the mean square of its row), in steps of the row, up to the rounding of shifts."""
SOURCE = "distilled from all-MiniLM-L6-v2 with model2vec 0.10.0, then trained to agree with it on public sentences"
LICENSE = "Apache-2.0"
NOT_WORDS = ("[PAD]", "[UNK]")
NO_PAIRS: Ids32 = np.zeros((0, 2), dtype=np.int32)
NOTICE = """The vectors in this folder were distilled from the sentence encoder all-MiniLM-L6-v2
(sentence-transformers, https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2), Apache License 2.0, with the
library model2vec 0.10.0 (MinishLab, MIT License), and then trained to reproduce the vectors of that encoder on the
sentences of the pools that come with Tacit (whose sources and licenses are named in them) and of MedQuAD (Ben Abacha &
Demner-Fushman 2019, CC BY 4.0). Changes: one vector per word piece and per frequent pair of pieces, principal
directions, whole numbers. No sentence is stored. tokenizer.json is the one of that model without its special pieces,
under the same license.
"""


def quantized(vectors: Floats32) -> tuple[NDArray[np.int8], NDArray[np.uint8], Floats32]:
    """Small numbers, the shift of each row and the scale of each dimension.

    All coordinates of a row have one step, a third to two thirds of their size (`STEPS`): most numbers are then small,
    and compressed they take less than four bits each. A sentence of several pieces keeps its direction to .5 %.
    """
    sizes = np.sqrt(np.mean(np.square(vectors, dtype=np.float64), axis=1))
    scale = max(float(sizes.max()), 1e-9) / (STEPS * 2.0**LARGEST_SHIFT)
    wanted = np.log2(np.maximum(sizes, 1e-12) / (STEPS * scale))
    shifts = np.clip(np.rint(wanted), 0, LARGEST_SHIFT).astype(np.uint8)
    steps = np.rint(np.ldexp(vectors / scale, -shifts.astype(np.int32)[:, None]))
    small = np.clip(steps, -LARGEST_NUMBER, LARGEST_NUMBER).astype(np.int8)
    return small, shifts, np.full(vectors.shape[1], scale, dtype=np.float32)


def save(vectors: Floats32, tokenizer: str, folder: Path, pairs: Ids32 = NO_PAIRS, source: str = SOURCE) -> None:
    """Write the folder of a static encoder: the vectors of all pieces, then those of the pairs."""
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
        "digest": weights_digest(small, shifts, scales, pairs, written),
    }
    folder.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(folder / "vectors.npz", vectors=small, shifts=shifts, scales=scales, pairs=pairs)
    (folder / "tokenizer.json").write_bytes(written)
    (folder / "encoder.json").write_text(json.dumps(facts, indent=2) + "\n", encoding="utf-8")
    (folder / "ATTRIBUTION.txt").write_text(NOTICE, encoding="utf-8")
